/* NEON with FMLAL (FEAT_FHM, Armv8.2): a product of two halves, exact, added to a float with one rounding. Compiled
 * with +fp16fml, which lets the compiler use the arithmetic on halves too (FEAT_FP16): every CPU that
 * has FMLAL has it, the architecture says. */
#include "neon.h"

#define LW_ISA fhm

#define REG float32x4_t
#define REG_TOTAL float
#define REG_ZERO vdupq_n_f32(0)
#define REG_ADD(x, y) vaddq_f32(x, y)
#define REG_SUM(x) lw_sum_f32(x)
#define REG_SUM4(xs, out) LW_SUM4_F32(xs, out)

#define LW_TYPE f16
#define LW_NO_L2
#define VEC float16x8_t
#define LANES 8
#define LOAD(p) vreinterpretq_f16_u16(LW_LOAD_U16(p))
#define LOAD_TAIL(p, k) vreinterpretq_f16_u16(LW_TAIL_U16(p, k))
#define DOT(acc, q, v) vfmlalq_high_f16(vfmlalq_low_f16(acc, q, v), q, v)
#include "metrics.h"
