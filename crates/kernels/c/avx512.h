/* What the AVX-512 files share: masked tails and totals, by F (and BW for bytes) alone. */
#ifndef LW_AVX512_H
#define LW_AVX512_H

#include "sum128.h"

static inline __m128 lw_fold512_ps(__m512 v) {
    const __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1));
    const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(v), high);
    return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}
static inline __m128i lw_fold512_epi32(__m512i v) {
    const __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

#define LW_SUM512_PS(v) lw_sum_ps(lw_fold512_ps(v))
#define LW_SUM512X4_PS(v, out)                                                                               \
    _mm_storeu_ps(out, lw_sum4_ps(lw_fold512_ps((v)[0]), lw_fold512_ps((v)[1]), lw_fold512_ps((v)[2]),       \
                                  lw_fold512_ps((v)[3])))
#define LW_SUM512_EPI32(v) lw_sum_epi32(lw_fold512_epi32(v))
#define LW_SUM512X4_EPI32(v, out)                                                                            \
    _mm_storeu_si128((__m128i *)(out), lw_sum4_epi32(lw_fold512_epi32((v)[0]), lw_fold512_epi32((v)[1]),     \
                                                     lw_fold512_epi32((v)[2]), lw_fold512_epi32((v)[3])))

/* Masks of the first k lanes, k less than the lanes of a register. */
#define LW_MASK16(k) ((__mmask16)((1u << (k)) - 1))
#define LW_MASK32(k) ((__mmask32)((1u << (k)) - 1))
#define LW_MASK64(k) ((__mmask64)((1ull << (k)) - 1))

#endif
