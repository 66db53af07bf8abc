/* What the Arm files share: loads, tails and totals. AArch64 has no masked loads; a copy through the stack reads no
 * byte too many. Compiled with the flags of the file that includes it. */
#ifndef LW_NEON_H
#define LW_NEON_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LW_REGISTERS 32

static inline uint8x16_t lw_tail128(const void *p, size_t bytes) {
    uint8_t buffer[16] = {0};
    memcpy(buffer, p, bytes);
    return vld1q_u8(buffer);
}
#define LW_LOAD_F32(p) vld1q_f32(p)
#define LW_TAIL_F32(p, k) vreinterpretq_f32_u8(lw_tail128(p, 4 * (k)))
#define LW_LOAD_S8(p) vld1q_s8((const int8_t *)(p))
#define LW_TAIL_S8(p, k) vreinterpretq_s8_u8(lw_tail128(p, k))
#define LW_LOAD_U16(p) vld1q_u16(p)
#define LW_TAIL_U16(p, k) vreinterpretq_u16_u8(lw_tail128(p, 2 * (k)))

/* Pairwise sums: (a0 + a1) + (a2 + a3), the same order for one register as for four. */
static inline float lw_sum_f32(float32x4_t v) {
    v = vpaddq_f32(v, v);
    return vgetq_lane_f32(vpaddq_f32(v, v), 0);
}
#define LW_SUM4_F32(v, out) vst1q_f32(out, vpaddq_f32(vpaddq_f32((v)[0], (v)[1]), vpaddq_f32((v)[2], (v)[3])))
#define LW_SUM4_S32(v, out) vst1q_s32(out, vpaddq_s32(vpaddq_s32((v)[0], (v)[1]), vpaddq_s32((v)[2], (v)[3])))

#endif
