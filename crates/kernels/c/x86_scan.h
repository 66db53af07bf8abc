/* 4-bit product quantization by table shuffles (André et al., "Cache locality is not enough", VLDB 2015, and Quick ADC).
 * A register holds the codes of 32 vectors for several sub-quantizers, 16 bytes each, and the same sub-quantizers'
 * tables. Looked up bytes are added as 16-bit lanes: an even vector's byte and 256 times the next one's together, and
 * the odd ones alone; the difference is what the even ones have. The lanes of 128 bits are added at the end. */
#define LW_SCAN_NAME_(isa) lw_scan_pq4_##isa
#define LW_SCAN_NAME(isa) LW_SCAN_NAME_(isa)
void LW_SCAN_NAME(LW_ISA)(const uint8_t *tables, const uint8_t *codes, size_t blocks, size_t m,
                          uint16_t *out) {
    const INTS half = P(set1_epi8)(0x0f);
    const size_t bytes = m * 16;
    for (size_t block = 0; block < blocks; block++, codes += bytes, out += 32) {
        INTS low = I_ZERO, low_odd = low, high = low, high_odd = low;
        for (size_t i = 0; i < bytes; i += INT_BYTES) {
            const size_t left = bytes - i;
            const INTS code = left >= INT_BYTES ? I_LOAD(codes + i) : I_TAIL(codes + i, left);
            const INTS table = left >= INT_BYTES ? I_LOAD(tables + i) : I_TAIL(tables + i, left);
            const INTS first = P(shuffle_epi8)(table, I_AND(code, half));
            const INTS second = P(shuffle_epi8)(table, I_AND(P(srli_epi16)(code, 4), half));
            low = P(add_epi16)(low, first);
            low_odd = P(add_epi16)(low_odd, P(srli_epi16)(first, 8));
            high = P(add_epi16)(high, second);
            high_odd = P(add_epi16)(high_odd, P(srli_epi16)(second, 8));
        }
        low = P(sub_epi16)(low, P(slli_epi16)(low_odd, 8));
        high = P(sub_epi16)(high, P(slli_epi16)(high_odd, 8));
        const __m128i even[2] = {FOLD16(low), FOLD16(high)}, odd[2] = {FOLD16(low_odd), FOLD16(high_odd)};
        for (int r = 0; r < 2; r++) {
            _mm_storeu_si128((__m128i *)(out + 16 * r), _mm_unpacklo_epi16(even[r], odd[r]));
            _mm_storeu_si128((__m128i *)(out + 16 * r + 8), _mm_unpackhi_epi16(even[r], odd[r]));
        }
    }
}
