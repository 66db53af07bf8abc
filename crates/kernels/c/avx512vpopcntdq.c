/* AVX-512 VPOPCNTDQ: bits of eight 64-bit words counted by one instruction. Compiled with -mavx512vpopcntdq and what
 * avx512.c is compiled with.
 *
 * BITALG, which counts bits of bytes, is not used: its counts would still have to be added up across bytes, which one
 * more instruction does and this one needs not. */
#include "avx512.h"

#define LW_ISA avx512vpopcntdq

static inline __m512i add_count(__m512i acc, __m512i v) {
    return _mm512_add_epi64(acc, _mm512_popcnt_epi64(v));
}
static inline __m512i doubled(__m512i v) { return _mm512_add_epi64(v, v); }
static inline __m512i add_count4(__m512i acc, __m512i v0, __m512i v1, __m512i v2, __m512i v3) {
    const __m512i upper = add_count(doubled(_mm512_popcnt_epi64(v3)), v2);
    return _mm512_add_epi64(acc, add_count(doubled(add_count(doubled(upper), v1)), v0));
}
#define BITS __m512i
#define BITS_LANES 64
#define BITS_LOAD(p) I_LOAD(p)
#define BITS_TAIL(p, k) I_TAIL(p, k)
#define BITS_XOR(x, y) I_XOR(x, y)
#define BITS_AND(x, y) I_AND(x, y)
#define BITS_OR(x, y) I_OR(x, y)
#define COUNTS __m512i
#define COUNTS_ZERO I_ZERO
#define COUNTS_ADD(x, y) _mm512_add_epi64(x, y)
/* Counts stay below 2^31, so the high halves of the 64-bit lanes are zero and 32-bit sums are right. */
#define COUNTS_SUM(x) I_SUM(x)
#define COUNTS_SUM4(xs, out) I_SUM4(xs, out)
#define COUNT(acc, v) add_count(acc, v)
#define COUNT4(acc, v0, v1, v2, v3) add_count4(acc, v0, v1, v2, v3)
#include "bits.h"
