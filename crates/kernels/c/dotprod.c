/* NEON with the dot-product extension (Armv8.2): four byte products added into each 32-bit lane by one instruction,
 * or four counts of bits, as products with what a bit is worth. Compiled with +dotprod. */
#include "neon.h"

#define LW_ISA dotprod

static inline int32x4_t multiply_u8(int32x4_t acc, uint8x16_t x, uint8x16_t y) {
    return vreinterpretq_s32_u32(vdotq_u32(vreinterpretq_u32_s32(acc), x, y));
}
#define MULTIPLY_S8(acc, x, y) vdotq_s32(acc, x, y)
#define MULTIPLY_U8(acc, x, y) multiply_u8(acc, x, y)
#define MAC(acc, u, s, v, t) vdotq_s32(vdotq_s32(acc, u, s), v, t)
#define COUNT_BYTES(acc, v) vdotq_u32(acc, v, vdupq_n_u8(1))

static inline uint32x4_t count4(uint32x4_t acc, uint8x16_t v0, uint8x16_t v1, uint8x16_t v2, uint8x16_t v3) {
    acc = vdotq_u32(acc, vcntq_u8(v0), vdupq_n_u8(1));
    acc = vdotq_u32(acc, vcntq_u8(v1), vdupq_n_u8(2));
    acc = vdotq_u32(acc, vcntq_u8(v2), vdupq_n_u8(4));
    return vdotq_u32(acc, vcntq_u8(v3), vdupq_n_u8(8));
}
#define COUNT4 count4

#include "neon_bytes.h"
