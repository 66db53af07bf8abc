/* Totals of 128-bit registers, the last step of every x86 accumulator. The pairs are added in the same order for
 * one register as for four, so that both give the same bits. */
#ifndef LW_SUM128_H
#define LW_SUM128_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

static inline float lw_sum_ps(__m128 v) {
    v = _mm_add_ps(v, _mm_movehdup_ps(v));
    return _mm_cvtss_f32(_mm_add_ss(v, _mm_movehl_ps(v, v)));
}

static inline __m128 lw_sum4_ps(__m128 a, __m128 b, __m128 c, __m128 d) {
    return _mm_hadd_ps(_mm_hadd_ps(a, b), _mm_hadd_ps(c, d));
}

static inline int32_t lw_sum_epi32(__m128i v) {
    v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(v, _mm_shuffle_epi32(v, 0xb1)));
}

static inline __m128i lw_sum4_epi32(__m128i a, __m128i b, __m128i c, __m128i d) {
    return _mm_hadd_epi32(_mm_hadd_epi32(a, b), _mm_hadd_epi32(c, d));
}

/* Totals of the even and of the odd lanes. */
static inline __m128i lw_sum_pairs_epi32(__m128i v) { return _mm_add_epi32(v, _mm_shuffle_epi32(v, 0x4e)); }

static inline __m128i lw_sum2_pairs_epi32(__m128i a, __m128i b) {
    return _mm_add_epi32(_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b));
}

static inline int32_t lw_most_epi32(__m128i v) {
    v = _mm_max_epi32(v, _mm_shuffle_epi32(v, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(v, _mm_shuffle_epi32(v, 0xb1)));
}

/* By the smallest 16 bits of the complement. */
static inline int32_t lw_most_epu8(__m128i v) {
    v = _mm_max_epu8(v, _mm_srli_epi16(v, 8));
    v = _mm_sub_epi16(_mm_set1_epi16(255), _mm_and_si128(v, _mm_set1_epi16(255)));
    return 255 - (_mm_cvtsi128_si32(_mm_minpos_epu16(v)) & 0xffff);
}

#endif
