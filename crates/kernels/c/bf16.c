/* NEON with BFDOT (FEAT_BF16, Armv8.6): two products added into each float lane by one instruction, which takes
 * subnormal numbers as zero and rounds to odd, so by up to an ulp. Compiled with +bf16. */
#include "neon.h"

#define LW_ISA bf16

#define REG float32x4_t
#define REG_TOTAL float
#define REG_ZERO vdupq_n_f32(0)
#define REG_ADD(x, y) vaddq_f32(x, y)
#define REG_SUM(x) lw_sum_f32(x)
#define REG_SUM4(xs, out) LW_SUM4_F32(xs, out)

#define LW_TYPE bf16
#define LW_NO_L2
#define VEC bfloat16x8_t
#define LANES 8
#define LOAD(p) vreinterpretq_bf16_u16(LW_LOAD_U16(p))
#define LOAD_TAIL(p, k) vreinterpretq_bf16_u16(LW_TAIL_U16(p, k))
#define DOT(acc, q, v) vbfdotq_f32(acc, q, v)
#include "metrics.h"
