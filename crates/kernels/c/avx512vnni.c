/* AVX-512 VNNI: products of bytes, four added into each 32-bit lane by one instruction.
 *
 * vpdpbusd multiplies unsigned by signed bytes. A row byte x becomes unsigned as x + 128 (its top bit flipped), so a
 * total is too large by 128 * sum(q), which depends on the query alone. Sums wrap modulo 2^32 on the way; the end is
 * exact, since the true total fits. Compiled with -mavx512f -mavx512bw -mavx512vl -mavx512vnni. */
#include "avx512.h"

#define LW_ISA avx512vnni

static inline int32_t query_bias(const int8_t *q, size_t n) {
    const __m512i flip = _mm512_set1_epi8((char)0x80);
    __m512i sum = _mm512_setzero_si512();
    size_t i = 0;
    for (; i + 64 <= n; i += 64) sum = _mm512_dpbusd_epi32(sum, flip, _mm512_loadu_si512(q + i));
    if (i < n) sum = _mm512_dpbusd_epi32(sum, flip, _mm512_maskz_loadu_epi8(LW_MASK64(n - i), q + i));
    return LW_SUM512_EPI32(sum);
}
static inline __m512i add_product(__m512i acc, __m512i a, __m512i b) {
    return _mm512_dpbusd_epi32(acc, _mm512_xor_si512(b, _mm512_set1_epi8((char)0x80)), a);
}
#define LW_OP dot
#define LW_TYPE i8
#define VEC __m512i
#define LANES 64
#define LOAD(p) _mm512_loadu_si512(p)
#define LOAD_TAIL(p, k) _mm512_maskz_loadu_epi8(LW_MASK64(k), p)
#define ACC __m512i
#define ZERO _mm512_setzero_si512()
#define ADD(acc, a, b) add_product(acc, a, b)
#define MERGE(x, y) _mm512_add_epi32(x, y)
#define SUM(v) LW_SUM512_EPI32(v)
#define SUM4(v, out) LW_SUM512X4_EPI32(v, out)
#define BIAS(q, n) query_bias(q, n)
#define UNBIAS(total, bias) ((int32_t)((uint32_t)(total) - (uint32_t)(bias)))
#include "loops.h"

/* Differences need 16 bits; vpdpwssd squares and adds pairs of them. */
static inline __m512i add_square(__m512i acc, __m512i a, __m512i b) {
    const __m512i d = _mm512_sub_epi16(a, b);
    return _mm512_dpwssd_epi32(acc, d, d);
}
#define LW_OP l2
#define LW_TYPE i8
#define VEC __m512i
#define LANES 32
#define LOAD(p) _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(p)))
#define LOAD_TAIL(p, k) _mm512_cvtepi8_epi16(_mm256_maskz_loadu_epi8(LW_MASK32(k), p))
#define ACC __m512i
#define ZERO _mm512_setzero_si512()
#define ADD(acc, a, b) add_square(acc, a, b)
#define MERGE(x, y) _mm512_add_epi32(x, y)
#define SUM(v) LW_SUM512_EPI32(v)
#define SUM4(v, out) LW_SUM512X4_EPI32(v, out)
#define BIAS(q, n) 0
#define UNBIAS(total, bias) ((void)(bias), (total))
#include "loops.h"
