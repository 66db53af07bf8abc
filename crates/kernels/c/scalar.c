/* The reference: each kernel as its definition reads. Serves CPUs without any of the other instruction sets, and
 * every slot that they leave empty. Integer variants must give these bits exactly. */
#include "cosine.h"
#include "lanewise_kernels.h"

#include <string.h>

#define DEFINE(op, type, ...)                                                                                \
    lw_##op##_##type##_result lw_##op##_##type##_scalar(const lw_##op##_##type##_query *a,                   \
                                                        const lw_##op##_##type##_row *b, size_t n) {         \
        __VA_ARGS__                                                                                          \
    }                                                                                                        \
    void lw_##op##_##type##_rows_scalar(const lw_##op##_##type##_query *q,                                   \
                                        const lw_##op##_##type##_row *base, size_t stride, size_t count,     \
                                        size_t n, lw_##op##_##type##_result *out) {                          \
        for (size_t k = 0; k < count; k++) out[k] = lw_##op##_##type##_scalar(q, at(base, k * stride), n);   \
    }                                                                                                        \
    void lw_##op##_##type##_ids_scalar(                                                                      \
        const lw_##op##_##type##_query *q, const lw_##op##_##type##_row *base, size_t stride,                \
        const uint32_t *ids, size_t count, size_t n, lw_##op##_##type##_result *out) {                       \
        for (size_t k = 0; k < count; k++)                                                                   \
            out[k] = lw_##op##_##type##_scalar(q, at(base, (size_t)ids[k] * stride), n);                     \
    }                                                                                                        \
    void lw_##op##_##type##_tile_scalar(const lw_##op##_##type##_query *q, size_t q_stride, size_t queries,  \
                                        const lw_##op##_##type##_row *base, size_t stride, size_t count,     \
                                        size_t n, lw_##op##_##type##_result *out, size_t out_stride) {       \
        for (size_t i = 0; i < queries; i++)                                                                 \
            for (size_t k = 0; k < count; k++)                                                               \
                out[i * out_stride + k] =                                                                    \
                    lw_##op##_##type##_scalar(at(q, i * q_stride), at(base, k * stride), n);                 \
    }

static inline const void *at(const void *base, size_t bytes) { return (const char *)base + bytes; }

/* What an element is worth. */
static inline float bits_f32(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline float f32(float x) { return x; }
static inline float bf16(uint16_t x) { return bits_f32((uint32_t)x << 16); }
/* The bits of a half, shifted to a float's place, are the number times 2^-112, subnormal ones too. */
static inline float f16(uint16_t x) {
    const uint32_t rest = x & 0x7fff;
    const float value = rest > 0x7bff ? bits_f32(rest << 13 | 0x7f800000) : bits_f32(rest << 13) * 0x1p112f;
    return x & 0x8000 ? -value : value;
}
static inline int32_t i8(int8_t x) { return x; }
static inline int32_t u8(uint8_t x) { return x; }
static inline int32_t low(uint8_t x) { return x & 15; }
static inline int32_t high(uint8_t x) { return x >> 4; }
static inline int32_t low_signed(uint8_t x) { return (low(x) ^ 8) - 8; }
static inline int32_t high_signed(uint8_t x) { return (high(x) ^ 8) - 8; }
static inline int32_t square(int32_t x) { return x * x; }

/* Bits set in a byte, by halves: no POPCNT in the base instruction set. */
static inline int32_t count(uint32_t v) {
    v -= (v >> 1) & 0x55;
    v = (v & 0x33) + ((v >> 2) & 0x33);
    return (int32_t)((v + (v >> 4)) & 0x0f);
}

#define SUM(TERM)                                                                                            \
    int32_t sum = 0;                                                                                         \
    for (size_t i = 0; i < n; i++) sum += TERM;                                                              \
    return sum;
#define DOT(total, x, y)                                                                                     \
    total sum = 0;                                                                                           \
    for (size_t i = 0; i < n; i++) sum += x(a[i]) * y(b[i]);                                                 \
    return sum;
#define L2(total, x, y)                                                                                      \
    total sum = 0;                                                                                           \
    for (size_t i = 0; i < n; i++) {                                                                         \
        const total d = x(a[i]) - y(b[i]);                                                                   \
        sum += d * d;                                                                                        \
    }                                                                                                        \
    return sum;
#define COSINE(total, x)                                                                                     \
    total dot = 0, row = 0, query = 0;                                                                       \
    for (size_t i = 0; i < n; i++) {                                                                         \
        const total p = x(a[i]), q = x(b[i]);                                                                \
        dot += p * q, query += p * p, row += q * q;                                                          \
    }                                                                                                        \
    return lw_cosine(dot, row, query);
/* Written so that a NaN is kept. */
#define APART(x) ((x) < 0 ? -(x) : (x))

DEFINE(dot, f32, DOT(float, f32, f32))
DEFINE(l2, f32, L2(float, f32, f32))
DEFINE(cosine, f32, COSINE(float, f32))
DEFINE(l1, f32, float sum = 0; for (size_t i = 0; i < n; i++) sum += APART(a[i] - b[i]); return sum;)
DEFINE(
    linf, f32, float most = 0; for (size_t i = 0; i < n; i++) {
        const float d = APART(a[i] - b[i]);
        most = d <= most || most != most ? most : d;
    } return most;)
DEFINE(dot, f16, DOT(float, f16, f16))
DEFINE(l2, f16, L2(float, f16, f16))
DEFINE(cosine, f16, COSINE(float, f16))
DEFINE(dot, bf16, DOT(float, bf16, bf16))
DEFINE(l2, bf16, L2(float, bf16, bf16))
DEFINE(cosine, bf16, COSINE(float, bf16))
DEFINE(dot, f32f16, DOT(float, f32, f16))
DEFINE(l2, f32f16, L2(float, f32, f16))
DEFINE(dot, f32bf16, DOT(float, f32, bf16))
DEFINE(l2, f32bf16, L2(float, f32, bf16))
DEFINE(dot, f32i8, DOT(float, f32, i8))
DEFINE(l2, f32i8, L2(float, f32, i8))
DEFINE(dot, f32u8, DOT(float, f32, u8))
DEFINE(l2, f32u8, L2(float, f32, u8))
DEFINE(dot, i8, DOT(int32_t, i8, i8))
DEFINE(l2, i8, L2(int32_t, i8, i8))
DEFINE(cosine, i8, COSINE(int32_t, i8))
DEFINE(l1, i8, SUM(APART(a[i] - b[i])))
DEFINE(
    linf, i8, int32_t most = 0; for (size_t i = 0; i < n; i++) {
        const int32_t d = APART(a[i] - b[i]);
        most = d > most ? d : most;
    } return most;)
DEFINE(dot, u8, DOT(int32_t, u8, u8))
DEFINE(l2, u8, L2(int32_t, u8, u8))
DEFINE(cosine, u8, COSINE(int32_t, u8))
DEFINE(dot, i4, SUM(low_signed(a[i]) * low_signed(b[i]) + high_signed(a[i]) * high_signed(b[i])))
DEFINE(l2, i4,
       SUM(square(low_signed(a[i]) - low_signed(b[i])) + square(high_signed(a[i]) - high_signed(b[i]))))
DEFINE(dot, u4, SUM(low(a[i]) * low(b[i]) + high(a[i]) * high(b[i])))
DEFINE(l2, u4, SUM(square(low(a[i]) - low(b[i])) + square(high(a[i]) - high(b[i]))))
DEFINE(dot, i8u4, SUM(a[i] * high(b[i]) + a[n + i] * low(b[i])))
DEFINE(l2, u8u4, SUM(square(a[i] - high(b[i])) + square(a[n + i] - low(b[i]))))
DEFINE(dot, u4bits,
       SUM(count(a[i] & b[i]) + 2 * count(a[n + i] & b[i]) + 4 * count(a[2 * n + i] & b[i]) +
           8 * count(a[3 * n + i] & b[i])))
DEFINE(hamming, bits, SUM(count(a[i] ^ b[i])))
DEFINE(
    jaccard, bits, int32_t both = 0, either = 0; for (size_t i = 0; i < n; i++) {
        both += count(a[i] & b[i]);
        either += count(a[i] | b[i]);
    } return lw_jaccard((lw_overlap_total){both, either});)

void lw_scan_pq4_scalar(const uint8_t *tables, const uint8_t *codes, size_t blocks, size_t m, uint16_t *out) {
    memset(out, 0, blocks * 32 * sizeof *out);
    for (size_t block = 0; block < blocks; block++, out += 32)
        for (size_t s = 0; s < m; s++, codes += 16)
            for (size_t i = 0; i < 16; i++) {
                out[i] += tables[s * 16 + low(codes[i])];
                out[16 + i] += tables[s * 16 + high(codes[i])];
            }
}
