/* AVX-512 as Skylake-X has it: F for floats, BW for bytes, VL where part of a register is loaded under a mask.
 * Compiled with -mavx512f -mavx512bw -mavx512vl, and what AVX2 is compiled with. */
#include "avx512.h"

#define LW_ISA avx512

#define FMA(a, b, acc) _mm512_fmadd_ps(a, b, acc)
#define F16_LOAD(p) _mm512_cvtph_ps(HALF_LOAD(p))
#define F16_TAIL(p, k) _mm512_cvtph_ps(HALF_TAIL(p, k))
#define QUARTER_LOAD(p) _mm_loadu_si128((const __m128i *)(p))
#define QUARTER_TAIL(p, k) _mm_maskz_loadu_epi8(LW_MASK16(k), p)
static inline __m256i half_max(__m512i v, const int bytes) {
    const __m256i low = _mm512_castsi512_si256(v), high = _mm512_extracti64x4_epi64(v, 1);
    return bytes ? _mm256_max_epu8(low, high) : _mm256_max_epi32(low, high);
}
static inline int32_t most_epi32(__m512i v) {
    const __m256i half = half_max(v, 0);
    return lw_most_epi32(_mm_max_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)));
}
static inline int32_t most_epu8(__m512i v) {
    const __m256i half = half_max(v, 1);
    return lw_most_epu8(_mm_max_epu8(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)));
}
static inline __m128i fold16(__m512i v) {
    const __m256i half = _mm256_add_epi16(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    return _mm_add_epi16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}
#define F_MOST(v) most_epi32(v)
#define B_MOST(v) most_epu8(v)
#define SIXTEEN(v) _mm512_broadcast_i32x4(v)
#define FOLD16(v) fold16(v)

#include "x86.h"
