/* NEON as every 64-bit Arm has it (Armv8.0): every kernel. Compiled with no flags of its own. */
#include "neon.h"

#define LW_ISA neon

/* Floats. */
#define REG float32x4_t
#define REG_TOTAL float
#define REG_ZERO vdupq_n_f32(0)
#define REG_ADD(x, y) vaddq_f32(x, y)
#define REG_SUM(x) lw_sum_f32(x)
#define REG_SUM4(xs, out) LW_SUM4_F32(xs, out)

static inline float32x4_t square(float32x4_t acc, float32x4_t q, float32x4_t v) {
    const float32x4_t d = vsubq_f32(q, v);
    return vfmaq_f32(acc, d, d);
}
#define LW_TYPE f32
#define VEC float32x4_t
#define LANES 4
#define LOAD(p) LW_LOAD_F32(p)
#define LOAD_TAIL(p, k) LW_TAIL_F32(p, k)
#define DOT(acc, q, v) vfmaq_f32(acc, q, v)
#define SQUARE(acc, q, v) square(acc, q, v)
#include "metrics.h"

#define LW_TYPE f32
#define VEC float32x4_t
#define LANES 4
#define LOAD(p) LW_LOAD_F32(p)
#define LOAD_TAIL(p, k) LW_TAIL_F32(p, k)
#define ACC REG
#define ZERO REG_ZERO
#define MERGE(x, y) REG_ADD(x, y)
#define SUM(acc) REG_SUM(acc)
#define SUM4(accs, out) REG_SUM4(accs, out)
#define LW_OP l1
#define ADD(acc, q, v) vaddq_f32(acc, vabdq_f32(q, v))
#include "loops.h"
#undef MERGE
#undef SUM
#undef SUM4
/* FMAX and FMAXV keep a NaN. */
#define MERGE(x, y) vmaxq_f32(x, y)
#define SUM(acc) vmaxvq_f32(acc)
#define LW_OP linf
#define ADD(acc, q, v) vmaxq_f32(acc, vabdq_f32(q, v))
#include "loops.h"
#include "forget.h"

/* Eight numbers of other kinds, as floats. */
typedef struct {
    float32x4_t low, high;
} pair;
static inline pair from_f32(const float *p) { return (pair){vld1q_f32(p), vld1q_f32(p + 4)}; }
static inline pair from_f32_tail(const float *p, size_t k) {
    float buffer[8] = {0};
    memcpy(buffer, p, k * sizeof *p);
    return from_f32(buffer);
}
static inline pair from_f16(uint16x8_t words) {
    const float16x8_t v = vreinterpretq_f16_u16(words);
    return (pair){vcvt_f32_f16(vget_low_f16(v)), vcvt_high_f32_f16(v)};
}
/* A bf16 is the upper half of a float. */
static inline pair from_bf16(uint16x8_t v) {
    return (pair){vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(v), 16)),
                  vreinterpretq_f32_u32(vshll_high_n_u16(v, 16))};
}
static inline pair from_s8(int8x8_t bytes) {
    const int16x8_t v = vmovl_s8(bytes);
    return (pair){vcvtq_f32_s32(vmovl_s16(vget_low_s16(v))), vcvtq_f32_s32(vmovl_high_s16(v))};
}
static inline pair from_u8(uint8x8_t bytes) {
    const uint16x8_t v = vmovl_u8(bytes);
    return (pair){vcvtq_f32_u32(vmovl_u16(vget_low_u16(v))), vcvtq_f32_u32(vmovl_high_u16(v))};
}
static inline float32x4_t dot_pair(float32x4_t acc, pair q, pair v) {
    return vfmaq_f32(vfmaq_f32(acc, q.low, v.low), q.high, v.high);
}
static inline float32x4_t square_pair(float32x4_t acc, pair q, pair v) {
    return square(square(acc, q.low, v.low), q.high, v.high);
}

#define LW_TYPE f16
#define VEC pair
#define LANES 8
#define LOAD(p) from_f16(LW_LOAD_U16(p))
#define LOAD_TAIL(p, k) from_f16(LW_TAIL_U16(p, k))
#define DOT dot_pair
#define SQUARE square_pair
#include "metrics.h"

#define LW_TYPE bf16
#define VEC pair
#define LANES 8
#define LOAD(p) from_bf16(LW_LOAD_U16(p))
#define LOAD_TAIL(p, k) from_bf16(LW_TAIL_U16(p, k))
#define DOT dot_pair
#define SQUARE square_pair
#include "metrics.h"

#define LOADQ(q, i, n) from_f32((q) + (i))
#define LOADQ_TAIL(q, i, n, k) from_f32_tail((q) + (i), k)
#define LW_TYPE f32f16
#define LW_NO_COSINE
#define VEC pair
#define LANES 8
#define LOAD(p) from_f16(LW_LOAD_U16(p))
#define LOAD_TAIL(p, k) from_f16(LW_TAIL_U16(p, k))
#define DOT dot_pair
#define SQUARE square_pair
#include "metrics.h"

#define LOADQ(q, i, n) from_f32((q) + (i))
#define LOADQ_TAIL(q, i, n, k) from_f32_tail((q) + (i), k)
#define LW_TYPE f32bf16
#define LW_NO_COSINE
#define VEC pair
#define LANES 8
#define LOAD(p) from_bf16(LW_LOAD_U16(p))
#define LOAD_TAIL(p, k) from_bf16(LW_TAIL_U16(p, k))
#define DOT dot_pair
#define SQUARE square_pair
#include "metrics.h"

#define LOADQ(q, i, n) from_f32((q) + (i))
#define LOADQ_TAIL(q, i, n, k) from_f32_tail((q) + (i), k)
#define LW_TYPE f32i8
#define LW_NO_COSINE
#define VEC pair
#define LANES 8
#define LOAD(p) from_s8(vld1_s8(p))
#define LOAD_TAIL(p, k) from_s8(vget_low_s8(LW_TAIL_S8(p, k)))
#define DOT dot_pair
#define SQUARE square_pair
#include "metrics.h"

#define LOADQ(q, i, n) from_f32((q) + (i))
#define LOADQ_TAIL(q, i, n, k) from_f32_tail((q) + (i), k)
#define LW_TYPE f32u8
#define LW_NO_COSINE
#define VEC pair
#define LANES 8
#define LOAD(p) from_u8(vld1_u8(p))
#define LOAD_TAIL(p, k) from_u8(vget_low_u8(lw_tail128(p, k)))
#define DOT dot_pair
#define SQUARE square_pair
#include "metrics.h"

#undef REG
#undef REG_TOTAL
#undef REG_ZERO
#undef REG_ADD
#undef REG_SUM
#undef REG_SUM4

/* One product of two bytes fits 16 bits (128 * 128 = 2^14, 255 * 255 < 2^16), two of them do not always: each widening
 * product is added in pairs to 32 bits at once. */
static inline int32x4_t multiply_s8(int32x4_t acc, int8x16_t x, int8x16_t y) {
    acc = vpadalq_s16(acc, vmull_s8(vget_low_s8(x), vget_low_s8(y)));
    return vpadalq_s16(acc, vmull_high_s8(x, y));
}
static inline int32x4_t multiply_u8(int32x4_t acc, uint8x16_t x, uint8x16_t y) {
    const uint32x4_t sum = vpadalq_u16(vreinterpretq_u32_s32(acc), vmull_u8(vget_low_u8(x), vget_low_u8(y)));
    return vreinterpretq_s32_u32(vpadalq_u16(sum, vmull_high_u8(x, y)));
}
/* Four products of halves fit 16 bits. */
static inline int32x4_t mac(int32x4_t acc, int8x16_t u, int8x16_t s, int8x16_t v, int8x16_t t) {
    int16x8_t sum = vmull_s8(vget_low_s8(u), vget_low_s8(s));
    sum = vmlal_high_s8(sum, u, s);
    sum = vmlal_s8(sum, vget_low_s8(v), vget_low_s8(t));
    return vpadalq_s16(acc, vmlal_high_s8(sum, v, t));
}
#define MULTIPLY_S8(acc, x, y) multiply_s8(acc, x, y)
#define MULTIPLY_U8(acc, x, y) multiply_u8(acc, x, y)
#define MAC(acc, u, s, v, t) mac(acc, u, s, v, t)
#define COUNT_BYTES(acc, v) vpadalq_u16(acc, vpaddlq_u8(v))
#include "neon_bytes.h"

#define LW_TYPE i8
#define VEC int8x16_t
#define LANES 16
#define LOAD(p) LW_LOAD_S8(p)
#define LOAD_TAIL(p, k) LW_TAIL_S8(p, k)
#define ACC uint8x16_t
#define ZERO vdupq_n_u8(0)
#define MERGE(x, y) vmaxq_u8(x, y)
#define SUM(acc) vmaxvq_u8(acc)
#define LW_OP linf
#define ADD(acc, q, v) vmaxq_u8(acc, vreinterpretq_u8_s8(vabdq_s8(q, v)))
#include "loops.h"
#include "forget.h"

/* 4-bit product quantization by table look-ups (André et al., "Cache locality is not enough", VLDB 2015): one look-up
 * instruction has 16 bytes of a table, the distances from a sub-quantizer's centres, and looks up 16 vectors' codes. */
void lw_scan_pq4_neon(const uint8_t *tables, const uint8_t *codes, size_t blocks, size_t m, uint16_t *out) {
    for (size_t block = 0; block < blocks; block++, out += 32) {
        uint16x8_t sum[4] = {vdupq_n_u16(0), vdupq_n_u16(0), vdupq_n_u16(0), vdupq_n_u16(0)};
        for (size_t s = 0; s < m; s++, codes += 16) {
            const uint8x16_t table = vld1q_u8(tables + s * 16), code = vld1q_u8(codes);
            const uint8x16_t low = vqtbl1q_u8(table, vandq_u8(code, vdupq_n_u8(0x0f)));
            const uint8x16_t high = vqtbl1q_u8(table, vshrq_n_u8(code, 4));
            sum[0] = vaddw_u8(sum[0], vget_low_u8(low));
            sum[1] = vaddw_high_u8(sum[1], low);
            sum[2] = vaddw_u8(sum[2], vget_low_u8(high));
            sum[3] = vaddw_high_u8(sum[3], high);
        }
        for (int r = 0; r < 4; r++) vst1q_u16(out + 8 * r, sum[r]);
    }
}
