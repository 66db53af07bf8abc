/* NEON with the matrix extension (FEAT_I8MM, Armv8.6): SMMLA and UMMLA multiply eight bytes of two queries by eight of
 * two rows, the 2 x 2 sums in one register: twice the products of a dot-product instruction. Compiled with
 * +dotprod+i8mm. */
#include "neon.h"

#include "names.h"

#define LW_ISA i8mm
#define LW_BASE dotprod
enum { SIDE = 8, PAIRS = SIDE / 2, STEP = 16 };
#define UNROLL _Pragma("GCC unroll 8")

/* 16 bytes of two vectors as two registers: the first eight of both, the last eight of both. */
typedef struct {
    uint8x16_t half[2];
} interleaved;
static inline interleaved interleave(uint8x16_t a, uint8x16_t b) {
    const uint64x2_t x = vreinterpretq_u64_u8(a), y = vreinterpretq_u64_u8(b);
    return (interleaved){{vreinterpretq_u8_u64(vzip1q_u64(x, y)), vreinterpretq_u8_u64(vzip2q_u64(x, y))}};
}
static inline interleaved load(const uint8_t *even, size_t stride, size_t left) {
    const uint8_t *odd = even + stride;
    return left >= STEP ? interleave(vld1q_u8(even), vld1q_u8(odd))
                        : interleave(lw_tail128(even, left), lw_tail128(odd, left));
}

typedef int32x4_t multiply_fn(int32x4_t acc, uint8x16_t x, uint8x16_t y);
static inline int32x4_t multiply_i8(int32x4_t acc, uint8x16_t x, uint8x16_t y) {
    return vmmlaq_s32(acc, vreinterpretq_s8_u8(x), vreinterpretq_s8_u8(y));
}
static inline int32x4_t multiply_u8(int32x4_t acc, uint8x16_t x, uint8x16_t y) {
    return vreinterpretq_s32_u32(vmmlaq_u32(vreinterpretq_u32_s32(acc), x, y));
}

LW_INLINE void step(int32x4_t acc[PAIRS][PAIRS], const uint8_t *q, size_t q_stride, const uint8_t *row,
                    size_t stride, size_t left, multiply_fn *const multiply) {
    interleaved y[PAIRS];
    UNROLL for (int r = 0; r < PAIRS; r++) y[r] = load(row + 2 * r * stride, stride, left);
    UNROLL for (int j = 0; j < PAIRS; j++) {
        const interleaved x = load(q + 2 * j * q_stride, q_stride, left);
        UNROLL for (int h = 0; h < 2; h++) {
            UNROLL for (int r = 0; r < PAIRS; r++) acc[j][r] = multiply(acc[j][r], x.half[h], y[r].half[h]);
        }
    }
}

LW_INLINE void block(const uint8_t *q, size_t q_stride, const uint8_t *row, size_t stride, size_t n,
                     int32_t *out, size_t out_stride, multiply_fn *const multiply) {
    int32x4_t acc[PAIRS][PAIRS];
    UNROLL for (int j = 0; j < PAIRS; j++) {
        UNROLL for (int r = 0; r < PAIRS; r++) acc[j][r] = vdupq_n_s32(0);
    }
    size_t i = 0;
    for (; i + STEP <= n; i += STEP) step(acc, q + i, q_stride, row + i, stride, STEP, multiply);
    if (i < n) step(acc, q + i, q_stride, row + i, stride, n - i, multiply);
    UNROLL for (int j = 0; j < PAIRS; j++) {
        int32_t *even = out + 2 * j * out_stride, *odd = even + out_stride;
        UNROLL for (int r = 0; r < PAIRS; r++) {
            vst1_s32(even + 2 * r, vget_low_s32(acc[j][r]));
            vst1_s32(odd + 2 * r, vget_high_s32(acc[j][r]));
        }
    }
}

#define LW_TYPE i8
#define BLOCK(...) block(__VA_ARGS__, multiply_i8)
#include "mmla.h"

#define LW_TYPE u8
#define BLOCK(...) block(__VA_ARGS__, multiply_u8)
#include "mmla.h"
