/* NEON with the dot-product extension (Armv8.2): four byte products added into each 32-bit lane by one instruction.
 * Compiled with -march=armv8.2-a+dotprod. */
#include "neon.h"

#define LW_ISA dotprod

#define LW_OP dot
#define LW_TYPE i8
#define VEC int8x16_t
#define LANES 16
#define LOAD(p) vld1q_s8(p)
#define LOAD_TAIL(p, k) lw_tail_s8(p, k)
#define ACC int32x4_t
#define ZERO vdupq_n_s32(0)
#define ADD(acc, a, b) vdotq_s32(acc, a, b)
#define MERGE(x, y) vaddq_s32(x, y)
#define SUM(v) vaddvq_s32(v)
#define SUM4(v, out) LW_SUM4_S32(v, out)
#define BIAS(q, n) 0
#define UNBIAS(total, bias) ((void)(bias), (total))
#include "loops.h"

static inline int32x4_t add_square_s8(int32x4_t acc, int8x16_t a, int8x16_t b) {
    const uint8x16_t d = vreinterpretq_u8_s8(vabdq_s8(a, b)); /* |a - b| fits an unsigned byte */
    return vreinterpretq_s32_u32(vdotq_u32(vreinterpretq_u32_s32(acc), d, d));
}
#define LW_OP l2
#define LW_TYPE i8
#define VEC int8x16_t
#define LANES 16
#define LOAD(p) vld1q_s8(p)
#define LOAD_TAIL(p, k) lw_tail_s8(p, k)
#define ACC int32x4_t
#define ZERO vdupq_n_s32(0)
#define ADD(acc, a, b) add_square_s8(acc, a, b)
#define MERGE(x, y) vaddq_s32(x, y)
#define SUM(v) vaddvq_s32(v)
#define SUM4(v, out) LW_SUM4_S32(v, out)
#define BIAS(q, n) 0
#define UNBIAS(total, bias) ((void)(bias), (total))
#include "loops.h"
