/* AVX-512 FP16: twice the lanes of float, at 11 bits. Only where it is named, since it is less exact: products, and
 * sums of four neighbours, are rounded to 11 bits, and beyond 65504 they are infinite; sums of those are floats.
 * Compiled with -mavx512fp16 and what avx512.c is compiled with.
 *
 * Floats cost two conversions for each pair of registers, which take two of the CPU's two ports: 44 ns for 768
 * dimensions on Sapphire Rapids. Four products here cost one. */
#include "avx512.h"

#define LW_ISA avx512fp16

typedef struct {
    __m512h part[4];
} lw_halves4;
static inline lw_halves4 load(const uint16_t *p) {
    return (lw_halves4){
        {_mm512_loadu_ph(p), _mm512_loadu_ph(p + 32), _mm512_loadu_ph(p + 64), _mm512_loadu_ph(p + 96)}};
}
/* The lanes of part `at` among the first k. */
static inline __m512h load_some(const uint16_t *p, size_t at, size_t k) {
    if (k <= at) return _mm512_setzero_ph();
    const __mmask32 some = k - at < 32 ? LW_MASK32(k - at) : ~(__mmask32)0;
    return (__m512h)_mm512_maskz_loadu_epi16(some, p + at);
}
static inline lw_halves4 load_tail(const uint16_t *p, size_t k) {
    return (lw_halves4){{load_some(p, 0, k), load_some(p, 32, k), load_some(p, 64, k), load_some(p, 96, k)}};
}
static inline __m512 add_halves(__m512 acc, __m512h v) {
    const __m256h low = _mm512_castph512_ph256(v);
    const __m256h high = (__m256h)_mm512_extracti64x4_epi64((__m512i)v, 1);
    return _mm512_add_ps(_mm512_add_ps(acc, _mm512_cvtxph_ps(low)), _mm512_cvtxph_ps(high));
}
static inline __m512 add_products(__m512 acc, lw_halves4 q, lw_halves4 v) {
    __m512h sum = _mm512_mul_ph(q.part[0], v.part[0]);
    sum = _mm512_fmadd_ph(q.part[1], v.part[1], sum);
    sum = _mm512_fmadd_ph(q.part[2], v.part[2], sum);
    return add_halves(acc, _mm512_fmadd_ph(q.part[3], v.part[3], sum));
}
static inline __m512 add_squares(__m512 acc, lw_halves4 q, lw_halves4 v) {
    lw_halves4 d;
    for (int k = 0; k < 4; k++) d.part[k] = _mm512_sub_ph(q.part[k], v.part[k]);
    return add_products(acc, d, d);
}
#define REG __m512
#define REG_TOTAL float
#define REG_ZERO _mm512_setzero_ps()
#define REG_ADD(x, y) _mm512_add_ps(x, y)
#define REG_SUM(x) F_SUM(x)
#define REG_SUM4(xs, out) F_SUM4(xs, out)

#define LW_TYPE f16
#define LW_NO_COSINE
#define VEC lw_halves4
#define LANES 128
#define LOAD(p) load(p)
#define LOAD_TAIL(p, k) load_tail(p, k)
#define DOT add_products
#define SQUARE add_squares
#define TILE 2
#include "metrics.h"
