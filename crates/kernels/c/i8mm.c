/* NEON with the matrix extension (FEAT_I8MM, Armv8.6): SMMLA and UMMLA multiply eight bytes of two queries by eight of
 * two rows, the 2 x 2 sums in one register: twice the products of a dot-product instruction. So the tile form goes by
 * 8 queries x 8 rows (a smaller block would spend on arranging the bytes what it gains); what is left over, and the
 * other forms, are those of dotprod.c. Compiled with -march=armv8.2-a+dotprod+i8mm. */
#include "neon.h"

#include "lanewise_kernels.h"

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

static inline int32x4_t multiply_i8(int32x4_t acc, uint8x16_t x, uint8x16_t y) {
    return vmmlaq_s32(acc, vreinterpretq_s8_u8(x), vreinterpretq_s8_u8(y));
}
static inline int32x4_t multiply_u8(int32x4_t acc, uint8x16_t x, uint8x16_t y) {
    return vreinterpretq_s32_u32(vmmlaq_u32(vreinterpretq_u32_s32(acc), x, y));
}

#define DEFINE(type)                                                                                         \
    static inline __attribute__((always_inline)) void step_##type(                                           \
        int32x4_t acc[PAIRS][PAIRS], const uint8_t *q, size_t q_stride, const uint8_t *row, size_t stride,   \
        size_t left) {                                                                                       \
        interleaved y[PAIRS];                                                                                \
        UNROLL for (int r = 0; r < PAIRS; r++) {                                                             \
            const uint8_t *even = row + 2 * r * stride, *odd = even + stride;                                \
            y[r] = left >= STEP ? interleave(vld1q_u8(even), vld1q_u8(odd))                                  \
                                : interleave(lw_tail128(even, left), lw_tail128(odd, left));                 \
        }                                                                                                    \
        UNROLL for (int j = 0; j < PAIRS; j++) {                                                             \
            const uint8_t *even = q + 2 * j * q_stride, *odd = even + q_stride;                              \
            const interleaved x = left >= STEP ? interleave(vld1q_u8(even), vld1q_u8(odd))                   \
                                               : interleave(lw_tail128(even, left), lw_tail128(odd, left));  \
            UNROLL for (int h = 0; h < 2; h++) {                                                             \
                UNROLL for (int r = 0; r < PAIRS; r++) acc[j][r] =                                           \
                    multiply_##type(acc[j][r], x.half[h], y[r].half[h]);                                     \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
    static void block_##type(const uint8_t *q, size_t q_stride, const uint8_t *row, size_t stride, size_t n, \
                             int32_t *out, size_t out_stride) {                                              \
        int32x4_t acc[PAIRS][PAIRS];                                                                         \
        UNROLL for (int j = 0; j < PAIRS; j++) {                                                             \
            UNROLL for (int r = 0; r < PAIRS; r++) acc[j][r] = vdupq_n_s32(0);                               \
        }                                                                                                    \
        size_t i = 0;                                                                                        \
        for (; i + STEP <= n; i += STEP) step_##type(acc, q + i, q_stride, row + i, stride, STEP);           \
        if (i < n) step_##type(acc, q + i, q_stride, row + i, stride, n - i);                                \
        UNROLL for (int j = 0; j < PAIRS; j++) {                                                             \
            int32_t *even = out + 2 * j * out_stride, *odd = even + out_stride;                              \
            UNROLL for (int r = 0; r < PAIRS; r++) {                                                         \
                vst1_s32(even + 2 * r, vget_low_s32(acc[j][r]));                                             \
                vst1_s32(odd + 2 * r, vget_high_s32(acc[j][r]));                                             \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
    int32_t lw_dot_##type##_i8mm(const lw_dot_##type##_query *a, const lw_dot_##type##_row *b, size_t n) {   \
        return lw_dot_##type##_dotprod(a, b, n);                                                             \
    }                                                                                                        \
    void lw_dot_##type##_rows_i8mm(const lw_dot_##type##_query *q, const lw_dot_##type##_row *base,          \
                                   size_t stride, size_t count, size_t n, int32_t *out) {                    \
        lw_dot_##type##_rows_dotprod(q, base, stride, count, n, out);                                        \
    }                                                                                                        \
    void lw_dot_##type##_ids_i8mm(const lw_dot_##type##_query *q, const lw_dot_##type##_row *base,           \
                                  size_t stride, const uint32_t *ids, size_t count, size_t n,                \
                                  int32_t *out) {                                                            \
        lw_dot_##type##_ids_dotprod(q, base, stride, ids, count, n, out);                                    \
    }                                                                                                        \
    void lw_dot_##type##_tile_i8mm(const lw_dot_##type##_query *q, size_t q_stride, size_t queries,          \
                                   const lw_dot_##type##_row *base, size_t stride, size_t count, size_t n,   \
                                   int32_t *out, size_t out_stride) {                                        \
        const size_t whole_queries = queries - queries % SIDE, whole_rows = count - count % SIDE;            \
        for (size_t k = 0; k < whole_rows; k += SIDE)                                                        \
            for (size_t j = 0; j < whole_queries; j += SIDE)                                                 \
                block_##type((const uint8_t *)q + j * q_stride, q_stride,                                    \
                             (const uint8_t *)base + k * stride, stride, n, out + j * out_stride + k,        \
                             out_stride);                                                                    \
        lw_dot_##type##_tile_dotprod(q, q_stride, whole_queries, base + whole_rows * stride, stride,         \
                                     count - whole_rows, n, out + whole_rows, out_stride);                   \
        lw_dot_##type##_tile_dotprod(q + whole_queries * q_stride, q_stride, queries - whole_queries, base,  \
                                     stride, count, n, out + whole_queries * out_stride, out_stride);        \
    }
DEFINE(i8)
DEFINE(u8)
