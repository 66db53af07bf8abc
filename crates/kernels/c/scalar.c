/* The reference: each kernel as its definition reads. Serves CPUs without any of the other instruction sets, and
 * every slot that they leave empty. Integer variants must give these bits exactly. */
#include "lanewise_kernels.h"

#define DEFINE(op, type, TERM)                                                                               \
    typedef lw_##op##_##type##_element element_##op##_##type;                                                \
    typedef lw_##op##_##type##_result result_##op##_##type;                                                  \
    result_##op##_##type lw_##op##_##type##_scalar(const element_##op##_##type *a,                           \
                                                   const element_##op##_##type *b, size_t n) {               \
        result_##op##_##type sum = 0;                                                                        \
        for (size_t i = 0; i < n; i++) sum += TERM(a[i], b[i]);                                              \
        return sum;                                                                                          \
    }                                                                                                        \
    void lw_##op##_##type##_rows_scalar(const element_##op##_##type *q, const element_##op##_##type *base,   \
                                        size_t stride, size_t count, size_t n, result_##op##_##type *out) {  \
        for (size_t k = 0; k < count; k++)                                                                   \
            out[k] = lw_##op##_##type##_scalar(                                                              \
                q, (const element_##op##_##type *)((const char *)base + k * stride), n);                     \
    }                                                                                                        \
    void lw_##op##_##type##_ids_scalar(const element_##op##_##type *q, const element_##op##_##type *base,    \
                                       size_t stride, const uint32_t *ids, size_t count, size_t n,           \
                                       result_##op##_##type *out) {                                          \
        for (size_t k = 0; k < count; k++)                                                                   \
            out[k] = lw_##op##_##type##_scalar(                                                              \
                q, (const element_##op##_##type *)((const char *)base + (size_t)ids[k] * stride), n);        \
    }

#define MULTIPLY(x, y) ((x) * (y))
#define SQUARE(x, y) (((x) - (y)) * ((x) - (y)))

/* Bits set in a byte, by halves: no POPCNT in the base instruction set. */
static inline int32_t differ(uint8_t x, uint8_t y) {
    uint32_t v = x ^ y;
    v -= (v >> 1) & 0x55;
    v = (v & 0x33) + ((v >> 2) & 0x33);
    return (int32_t)((v + (v >> 4)) & 0x0f);
}

DEFINE(dot, f32, MULTIPLY)
DEFINE(l2, f32, SQUARE)
DEFINE(dot, i8, MULTIPLY)
DEFINE(l2, i8, SQUARE)
DEFINE(hamming, bits, differ)
