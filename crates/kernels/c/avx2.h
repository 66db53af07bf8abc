/* What the files of 256-bit registers share: tails and totals, and how x86.h's words are said. */
#ifndef LW_AVX2_H
#define LW_AVX2_H

#include "sum128.h"

#include <string.h>

#define LW_REGISTERS 16
#define P(name) _mm256_##name
#define FLOATS __m256
#define INTS __m256i
#define INT_BYTES 32
#define I_AS_F(x) _mm256_castsi256_ps(x)
#define F_AS_I(x) _mm256_castps_si256(x)
#define I_ZERO _mm256_setzero_si256()
#define I_AND(x, y) _mm256_and_si256(x, y)
#define I_XOR(x, y) _mm256_xor_si256(x, y)
#define I_OR(x, y) _mm256_or_si256(x, y)

static inline __m128 lw_fold_ps(__m256 v) {
    return _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
}
static inline __m128i lw_fold_epi32(__m256i v) {
    return _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}

/* AVX2 masks no bytes, and a masked load of floats over an absent page faults under emulators and takes a slow path
 * on CPUs: a copy through the stack reads no byte too many anywhere. */
static inline __m256i lw_tail256(const void *p, size_t bytes) {
    uint8_t buffer[32] = {0};
    memcpy(buffer, p, bytes);
    return _mm256_loadu_si256((const __m256i *)buffer);
}
static inline __m128i lw_tail128(const void *p, size_t bytes) {
    uint8_t buffer[16] = {0};
    memcpy(buffer, p, bytes);
    return _mm_loadu_si128((const __m128i *)buffer);
}

#define F_LOAD(p) _mm256_loadu_ps(p)
#define F_TAIL(p, k) _mm256_castsi256_ps(lw_tail256(p, 4 * (k)))
#define F_SUM(v) lw_sum_ps(lw_fold_ps(v))
#define F_SUM4(v, out)                                                                                       \
    _mm_storeu_ps(                                                                                           \
        out, lw_sum4_ps(lw_fold_ps((v)[0]), lw_fold_ps((v)[1]), lw_fold_ps((v)[2]), lw_fold_ps((v)[3])))
#define I_LOAD(p) _mm256_loadu_si256((const __m256i *)(p))
#define I_TAIL(p, k) lw_tail256(p, k)
#define I_SUM(v) lw_sum_epi32(lw_fold_epi32(v))
#define I_SUM4(v, out)                                                                                       \
    _mm_storeu_si128((__m128i *)(out), lw_sum4_epi32(lw_fold_epi32((v)[0]), lw_fold_epi32((v)[1]),           \
                                                     lw_fold_epi32((v)[2]), lw_fold_epi32((v)[3])))
#define HALF_LOAD(p) _mm_loadu_si128((const __m128i *)(p))
#define HALF_TAIL(p, k) lw_tail128(p, 2 * (k))
#define BYTES_HALF_LOAD(p) _mm_loadu_si128((const __m128i *)(p))
#define BYTES_HALF_TAIL(p, k) lw_tail128(p, k)

#endif
