/* NEON as every 64-bit Arm has it (Armv8.0). */
#include "neon.h"

#define LW_ISA neon

#define LW_OP dot
#define LW_TYPE f32
#define VEC float32x4_t
#define LANES 4
#define LOAD(p) vld1q_f32(p)
#define LOAD_TAIL(p, k) lw_tail_f32(p, k)
#define ACC float32x4_t
#define ZERO vdupq_n_f32(0)
#define ADD(acc, a, b) vfmaq_f32(acc, a, b)
#define MERGE(x, y) vaddq_f32(x, y)
#define SUM(v) lw_sum_f32(v)
#define SUM4(v, out) LW_SUM4_F32(v, out)
#define BIAS(q, n) 0
#define UNBIAS(total, bias) ((void)(bias), (total))
#include "loops.h"

static inline float32x4_t add_square_f32(float32x4_t acc, float32x4_t a, float32x4_t b) {
    const float32x4_t d = vsubq_f32(a, b);
    return vfmaq_f32(acc, d, d);
}
#define LW_OP l2
#define LW_TYPE f32
#define VEC float32x4_t
#define LANES 4
#define LOAD(p) vld1q_f32(p)
#define LOAD_TAIL(p, k) lw_tail_f32(p, k)
#define ACC float32x4_t
#define ZERO vdupq_n_f32(0)
#define ADD(acc, a, b) add_square_f32(acc, a, b)
#define MERGE(x, y) vaddq_f32(x, y)
#define SUM(v) lw_sum_f32(v)
#define SUM4(v, out) LW_SUM4_F32(v, out)
#define BIAS(q, n) 0
#define UNBIAS(total, bias) ((void)(bias), (total))
#include "loops.h"

/* One product of two bytes fits 16 bits (128 * 128 = 2^14), two of them do not always: each widening product is
 * added in pairs to 32 bits at once. */
static inline int32x4_t add_product_s8(int32x4_t acc, int8x16_t a, int8x16_t b) {
    acc = vpadalq_s16(acc, vmull_s8(vget_low_s8(a), vget_low_s8(b)));
    return vpadalq_s16(acc, vmull_high_s8(a, b));
}
#define LW_OP dot
#define LW_TYPE i8
#define VEC int8x16_t
#define LANES 16
#define LOAD(p) vld1q_s8(p)
#define LOAD_TAIL(p, k) lw_tail_s8(p, k)
#define ACC int32x4_t
#define ZERO vdupq_n_s32(0)
#define ADD(acc, a, b) add_product_s8(acc, a, b)
#define MERGE(x, y) vaddq_s32(x, y)
#define SUM(v) vaddvq_s32(v)
#define SUM4(v, out) LW_SUM4_S32(v, out)
#define BIAS(q, n) 0
#define UNBIAS(total, bias) ((void)(bias), (total))
#include "loops.h"

/* |a - b| fits an unsigned byte, its square 16 unsigned bits. */
static inline int32x4_t add_square_s8(int32x4_t acc, int8x16_t a, int8x16_t b) {
    const uint8x16_t d = vreinterpretq_u8_s8(vabdq_s8(a, b));
    uint32x4_t sum = vreinterpretq_u32_s32(acc);
    sum = vpadalq_u16(sum, vmull_u8(vget_low_u8(d), vget_low_u8(d)));
    return vreinterpretq_s32_u32(vpadalq_u16(sum, vmull_high_u8(d, d)));
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

static inline int32x4_t add_differing_bits(int32x4_t acc, int8x16_t a, int8x16_t b) {
    const uint8x16_t bits = vcntq_u8(vreinterpretq_u8_s8(veorq_s8(a, b)));
    return vreinterpretq_s32_u32(vpadalq_u16(vreinterpretq_u32_s32(acc), vpaddlq_u8(bits)));
}
#define LW_OP hamming
#define LW_TYPE bits
#define VEC int8x16_t
#define LANES 16
#define LOAD(p) vld1q_s8((const int8_t *)(p))
#define LOAD_TAIL(p, k) lw_tail_s8(p, k)
#define ACC int32x4_t
#define ZERO vdupq_n_s32(0)
#define ADD(acc, a, b) add_differing_bits(acc, a, b)
#define MERGE(x, y) vaddq_s32(x, y)
#define SUM(v) vaddvq_s32(v)
#define SUM4(v, out) LW_SUM4_S32(v, out)
#define BIAS(q, n) 0
#define UNBIAS(total, bias) ((void)(bias), (total))
#include "loops.h"
