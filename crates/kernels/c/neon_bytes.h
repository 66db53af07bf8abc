/* Every kernel on integers and bits that adds products up in 32-bit lanes, by what NEON and its dot-product extension
 * have in common. They say:
 *   MULTIPLY_S8(acc, x, y)    acc, four 32-bit lanes, plus the products of 16 signed bytes
 *   MULTIPLY_U8(acc, x, y)    the same of unsigned bytes
 *   MAC(acc, u, s, v, t)      as nibbles.h has it
 *   COUNT_BYTES(acc, v)       acc, four unsigned 32-bit lanes, plus the bytes of v
 *   COUNT4                    as bits.h has it, if there is a better one than the sum in bytes */
#define REG int32x4_t
#define REG_TOTAL int32_t
#define REG_ZERO vdupq_n_s32(0)
#define REG_ADD(x, y) vaddq_s32(x, y)
#define REG_SUM(x) vaddvq_s32(x)
#define REG_SUM4(xs, out) LW_SUM4_S32(xs, out)

/* |a - b| of either kind of byte fits an unsigned byte. */
static inline int32x4_t lw_square_s8(int32x4_t acc, int8x16_t q, int8x16_t v) {
    const uint8x16_t d = vreinterpretq_u8_s8(vabdq_s8(q, v));
    return MULTIPLY_U8(acc, d, d);
}
static inline int32x4_t lw_square_u8(int32x4_t acc, uint8x16_t q, uint8x16_t v) {
    const uint8x16_t d = vabdq_u8(q, v);
    return MULTIPLY_U8(acc, d, d);
}

#define LW_TYPE i8
#define VEC int8x16_t
#define LANES 16
#define LOAD(p) LW_LOAD_S8(p)
#define LOAD_TAIL(p, k) LW_TAIL_S8(p, k)
#define DOT MULTIPLY_S8
#define SQUARE lw_square_s8
#include "metrics.h"

#define LW_TYPE u8
#define VEC uint8x16_t
#define LANES 16
#define LOAD(p) vld1q_u8(p)
#define LOAD_TAIL(p, k) lw_tail128(p, k)
#define DOT MULTIPLY_U8
#define SQUARE lw_square_u8
#include "metrics.h"

#define LW_TYPE i8
#define VEC int8x16_t
#define LANES 16
#define LOAD(p) LW_LOAD_S8(p)
#define LOAD_TAIL(p, k) LW_TAIL_S8(p, k)
#define ACC uint32x4_t
#define ZERO vdupq_n_u32(0)
#define MERGE(x, y) vaddq_u32(x, y)
#define SUM(acc) ((int32_t)vaddvq_u32(acc))
#define LW_OP l1
#define ADD(acc, q, v) COUNT_BYTES(acc, vreinterpretq_u8_s8(vabdq_s8(q, v)))
#include "loops.h"
#include "forget.h"

/* Halves are signed bytes, for they all fit. */
#define BYTES int8x16_t
#define BYTES_LANES 16
#define BYTES_LOAD(p) LW_LOAD_S8(p)
#define BYTES_TAIL(p, k) LW_TAIL_S8(p, k)
#define LOW(v) vandq_s8(v, vdupq_n_s8(0x0f))
#define HIGH(v) vreinterpretq_s8_u8(vshrq_n_u8(vreinterpretq_u8_s8(v), 4))
#define FLIP(v) veorq_s8(v, vdupq_n_s8((int8_t)0x88))
#define LESS8(v) vsubq_s8(v, vdupq_n_s8(8))
#define APART(x, y) vabdq_s8(x, y)
#define EIGHTS vdupq_n_s8(8)
#include "nibbles.h"

#ifndef COUNT4
static inline uint8x16_t lw_doubled(uint8x16_t v) { return vaddq_u8(v, v); }
/* 8 bits worth at most 15 each fit a byte. */
static inline uint32x4_t lw_count4(uint32x4_t acc, uint8x16_t v0, uint8x16_t v1, uint8x16_t v2,
                                   uint8x16_t v3) {
    uint8x16_t sum = vaddq_u8(vcntq_u8(v2), lw_doubled(vcntq_u8(v3)));
    sum = vaddq_u8(vcntq_u8(v1), lw_doubled(sum));
    return COUNT_BYTES(acc, vaddq_u8(vcntq_u8(v0), lw_doubled(sum)));
}
#define COUNT4 lw_count4
#endif
#define BITS uint8x16_t
#define BITS_LANES 16
#define BITS_LOAD(p) vld1q_u8(p)
#define BITS_TAIL(p, k) lw_tail128(p, k)
#define BITS_XOR(x, y) veorq_u8(x, y)
#define BITS_AND(x, y) vandq_u8(x, y)
#define BITS_OR(x, y) vorrq_u8(x, y)
#define COUNTS uint32x4_t
#define COUNTS_ZERO vdupq_n_u32(0)
#define COUNTS_ADD(x, y) vaddq_u32(x, y)
#define COUNTS_SUM(x) ((int32_t)vaddvq_u32(x))
#define COUNTS_SUM4(xs, out)                                                                                 \
    vst1q_s32(out,                                                                                           \
              vreinterpretq_s32_u32(vpaddq_u32(vpaddq_u32((xs)[0], (xs)[1]), vpaddq_u32((xs)[2], (xs)[3]))))
#define COUNT(acc, v) COUNT_BYTES(acc, vcntq_u8(v))
#include "bits.h"
