/* The kernels' definitions as plain loops, for the compiler to make what it can of them. Compiled three times
 * (arm.py): without vectorisation, with, and with SVE; SET names the table. The types are those of list.h. */
#include "arm_loops.h"

#define LOOP(op, type, element, result, TERM)                                                                \
    static double op##_##type(const void *left, const void *right, size_t n) {                               \
        const element *a = left, *b = right;                                                                 \
        result sum = 0;                                                                                      \
        for (size_t i = 0; i < n; i++) sum += TERM(a[i], b[i]);                                              \
        return (double)sum;                                                                                  \
    }
#define PRODUCT(x, y) ((x) * (y))
#define SQUARE(x, y) (((x) - (y)) * ((x) - (y)))
#define HALF_PRODUCT(x, y) ((float)(x) * (float)(y))
#define HALF_SQUARE(x, y) (((float)(x) - (float)(y)) * ((float)(x) - (float)(y)))
#define BITS(x, y) __builtin_popcount((x) ^ (y))

LOOP(dot, f32, float, float, PRODUCT)
LOOP(l2, f32, float, float, SQUARE)
LOOP(dot, f16, __fp16, float, HALF_PRODUCT)
LOOP(l2, f16, __fp16, float, HALF_SQUARE)
LOOP(dot, i8, int8_t, int32_t, PRODUCT)
LOOP(l2, i8, int8_t, int32_t, SQUARE)
LOOP(dot, u8, uint8_t, int32_t, PRODUCT)
LOOP(l2, u8, uint8_t, int32_t, SQUARE)
LOOP(hamming, bits, uint8_t, int32_t, BITS)

const struct loop SET[LOOPS + 1] = {
    {"dot", "f32", dot_f32}, {"l2", "f32", l2_f32}, {"dot", "f16", dot_f16},
    {"l2", "f16", l2_f16},   {"dot", "i8", dot_i8}, {"l2", "i8", l2_i8},
    {"dot", "u8", dot_u8},   {"l2", "u8", l2_u8},   {"hamming", "bits", hamming_bits},
    {NULL, NULL, NULL},
};
