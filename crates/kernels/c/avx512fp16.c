/* AVX-512 FP16: twice the lanes of float, at 11 bits. Only where it is named, since it is less exact: products of two
 * neighbours are rounded to 11 bits, and beyond 65504 they are infinite; sums of them are floats. Compiled with
 * -mavx512fp16 and what avx512.c is compiled with. */
#include "avx512.h"

#define LW_ISA avx512fp16

static inline __m512 add_halves(__m512 acc, __m512h v) {
    const __m256h low = _mm512_castph512_ph256(v);
    const __m256h high = (__m256h)_mm512_extracti64x4_epi64((__m512i)v, 1);
    return _mm512_add_ps(_mm512_add_ps(acc, _mm512_cvtxph_ps(low)), _mm512_cvtxph_ps(high));
}
static inline __m512 add_products(__m512 acc, __m512h q, __m512h v) {
    return add_halves(acc, _mm512_mul_ph(q, v));
}
static inline __m512 add_squares(__m512 acc, __m512h q, __m512h v) {
    const __m512h d = _mm512_sub_ph(q, v);
    return add_halves(acc, _mm512_mul_ph(d, d));
}
#define REG __m512
#define REG_TOTAL float
#define REG_ZERO _mm512_setzero_ps()
#define REG_ADD(x, y) _mm512_add_ps(x, y)
#define REG_SUM(x) F_SUM(x)
#define REG_SUM4(xs, out) F_SUM4(xs, out)

#define LW_TYPE f16
#define LW_NO_COSINE
#define VEC __m512h
#define LANES 32
#define LOAD(p) _mm512_loadu_ph(p)
#define LOAD_TAIL(p, k) ((__m512h)_mm512_maskz_loadu_epi16(LW_MASK32(k), p))
#define DOT add_products
#define SQUARE add_squares
#include "metrics.h"
