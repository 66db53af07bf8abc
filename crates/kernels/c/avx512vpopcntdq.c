/* AVX-512 VPOPCNTDQ: bits of eight 64-bit words counted by one instruction. BW for the masked tail of bytes.
 * Compiled with -mavx512f -mavx512bw -mavx512vpopcntdq. */
#include "avx512.h"

#define LW_ISA avx512vpopcntdq

#define LW_OP hamming
#define LW_TYPE bits
#define VEC __m512i
#define LANES 64
#define LOAD(p) _mm512_loadu_si512(p)
#define LOAD_TAIL(p, k) _mm512_maskz_loadu_epi8(LW_MASK64(k), p)
#define ACC __m512i
#define ZERO _mm512_setzero_si512()
#define ADD(acc, a, b) _mm512_add_epi64(acc, _mm512_popcnt_epi64(_mm512_xor_si512(a, b)))
#define MERGE(x, y) _mm512_add_epi64(x, y)
/* Counts stay below 2^31, so the high halves of the 64-bit lanes are zero and 32-bit sums are right. */
#define SUM(v) LW_SUM512_EPI32(v)
#define SUM4(v, out) LW_SUM512X4_EPI32(v, out)
#define BIAS(q, n) 0
#define UNBIAS(total, bias) ((void)(bias), (total))
#include "loops.h"
