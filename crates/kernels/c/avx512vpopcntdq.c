/* AVX-512 VPOPCNTDQ: bits of eight 64-bit words counted by one instruction. Compiled with -mavx512vpopcntdq and what
 * avx512.c is compiled with.
 *
 * BITALG, which counts bits of bytes, is not used: its counts would still have to be added up across bytes, which one
 * more instruction does and this one needs not. */
#include "avx512.h"
#include "cosine.h"

#define LW_ISA avx512vpopcntdq
/* As in avx512vnni.c. */
#define LW_ALIGN 512

static inline __m512i add_count(__m512i acc, __m512i v) {
    return _mm512_add_epi64(acc, _mm512_popcnt_epi64(v));
}
static inline __m512i doubled(__m512i v) { return _mm512_add_epi64(v, v); }
static inline __m512i add_count4(__m512i acc, __m512i v0, __m512i v1, __m512i v2, __m512i v3) {
    const __m512i upper = add_count(doubled(_mm512_popcnt_epi64(v3)), v2);
    return _mm512_add_epi64(acc, add_count(doubled(add_count(doubled(upper), v1)), v0));
}
#define COUNT(acc, v) add_count(acc, v)
#define COUNT4(acc, v0, v1, v2, v3) add_count4(acc, v0, v1, v2, v3)
#include "x86_bits.h"
