/* What the Arm files share: totals and tails. AArch64 has no masked loads; a copy through the stack reads no byte
 * too many. */
#ifndef LW_NEON_H
#define LW_NEON_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline float32x4_t lw_tail_f32(const float *p, size_t k) {
    float buffer[4] = {0};
    memcpy(buffer, p, k * sizeof *p);
    return vld1q_f32(buffer);
}
static inline int8x16_t lw_tail_s8(const void *p, size_t k) {
    int8_t buffer[16] = {0};
    memcpy(buffer, p, k);
    return vld1q_s8(buffer);
}

/* Pairwise sums: (a0 + a1) + (a2 + a3), the same order for one register as for four. */
static inline float lw_sum_f32(float32x4_t v) {
    v = vpaddq_f32(v, v);
    return vgetq_lane_f32(vpaddq_f32(v, v), 0);
}
#define LW_SUM4_F32(v, out) vst1q_f32(out, vpaddq_f32(vpaddq_f32((v)[0], (v)[1]), vpaddq_f32((v)[2], (v)[3])))
#define LW_SUM4_S32(v, out) vst1q_s32(out, vpaddq_s32(vpaddq_s32((v)[0], (v)[1]), vpaddq_s32((v)[2], (v)[3])))

#endif
