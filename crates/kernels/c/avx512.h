/* What the AVX-512 files share: masked tails and totals, by F, BW and VL, and how x86.h's words are said. */
#ifndef LW_AVX512_H
#define LW_AVX512_H

#include "sum128.h"

#define LW_REGISTERS 32
#define P(name) _mm512_##name
#define FLOATS __m512
#define INTS __m512i
#define INT_BYTES 64
#define I_AS_F(x) _mm512_castsi512_ps(x)
#define F_AS_I(x) _mm512_castps_si512(x)
#define I_ZERO _mm512_setzero_si512()
#define I_AND(x, y) _mm512_and_si512(x, y)
#define I_XOR(x, y) _mm512_xor_si512(x, y)
#define I_OR(x, y) _mm512_or_si512(x, y)

static inline __m128 lw_fold_ps(__m512 v) {
    const __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1));
    const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(v), high);
    return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}
static inline __m128i lw_fold_epi32(__m512i v) {
    const __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

/* Masks of the first k lanes, k less than the lanes of a register. */
#define LW_MASK16(k) ((__mmask16)((1u << (k)) - 1))
#define LW_MASK32(k) ((__mmask32)((1u << (k)) - 1))
#define LW_MASK64(k) ((__mmask64)((1ull << (k)) - 1))

#define F_LOAD(p) _mm512_loadu_ps(p)
#define F_TAIL(p, k) _mm512_maskz_loadu_ps(LW_MASK16(k), p)
#define F_SUM(v) lw_sum_ps(lw_fold_ps(v))
#define F_SUM4(v, out)                                                                                       \
    _mm_storeu_ps(                                                                                           \
        out, lw_sum4_ps(lw_fold_ps((v)[0]), lw_fold_ps((v)[1]), lw_fold_ps((v)[2]), lw_fold_ps((v)[3])))
#define I_LOAD(p) _mm512_loadu_si512(p)
#define I_TAIL(p, k) _mm512_maskz_loadu_epi8(LW_MASK64(k), p)
#define I_SUM(v) lw_sum_epi32(lw_fold_epi32(v))
#define I_SUM4(v, out)                                                                                       \
    _mm_storeu_si128((__m128i *)(out), lw_sum4_epi32(lw_fold_epi32((v)[0]), lw_fold_epi32((v)[1]),           \
                                                     lw_fold_epi32((v)[2]), lw_fold_epi32((v)[3])))
#define HALF_LOAD(p) _mm256_loadu_si256((const __m256i *)(p))
#define HALF_TAIL(p, k) _mm256_maskz_loadu_epi16(LW_MASK16(k), p)
#define BYTES_HALF_LOAD(p) _mm256_loadu_si256((const __m256i *)(p))
#define BYTES_HALF_TAIL(p, k) _mm256_maskz_loadu_epi8(LW_MASK32(k), p)

#endif
