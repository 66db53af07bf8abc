/* SVE with the matrix extension (FEAT_I8MM, Armv8.6): as i8mm.c, in registers of any length, whose every 128 bits hold
 * the 2 x 2 sums of other bytes of the same vectors; these are added up at the end. Compiled with +sve+i8mm. */
#include <arm_neon.h>
#include <arm_sve.h>

#include "names.h"

#define LW_ISA svei8mm
#define LW_BASE sve
enum { SIDE = 8, LONGEST = 256 };

typedef svint32_t multiply_fn(svint32_t acc, svuint64_t x, svuint64_t y);
static inline svint32_t multiply_i8(svint32_t acc, svuint64_t x, svuint64_t y) {
    return svmmla_s32(acc, svreinterpret_s8_u64(x), svreinterpret_s8_u64(y));
}
static inline svint32_t multiply_u8(svint32_t acc, svuint64_t x, svuint64_t y) {
    const svuint32_t sum = svreinterpret_u32_s32(acc);
    return svreinterpret_s32_u32(svmmla_u32(sum, svreinterpret_u8_u64(x), svreinterpret_u8_u64(y)));
}

/* Sums of two queries and two rows. */
static inline void store(svint32_t acc, int32_t *even, int32_t *odd) {
    int32_t parts[LONGEST / 4];
    svst1_s32(svptrue_b32(), parts, acc);
    int32x4_t sum = vld1q_s32(parts);
    for (size_t i = 4; i < svcntw(); i += 4) sum = vaddq_s32(sum, vld1q_s32(parts + i));
    vst1_s32(even, vget_low_s32(sum));
    vst1_s32(odd, vget_high_s32(sum));
}

/* a<j><r> has the sums of queries 2j and 2j + 1 with rows 2r and 2r + 1. Bytes are interleaved by eights. */
#define EACH_PAIR(F) F(0) F(1) F(2) F(3)
LW_INLINE void block(const uint8_t *q, size_t q_stride, const uint8_t *row, size_t stride, size_t n,
                     int32_t *out, size_t out_stride, multiply_fn *const multiply) {
#define SUMS(j) svint32_t a##j##0 = svdup_n_s32(0), a##j##1 = a##j##0, a##j##2 = a##j##0, a##j##3 = a##j##0;
    EACH_PAIR(SUMS)
    for (size_t i = 0; i < n; i += svcntb()) {
        const svbool_t pg = svwhilelt_b8_u64(i, n);
#define LOAD(p) svreinterpret_u64_u8(svld1_u8(pg, (p) + i))
#define ROWS(r)                                                                                              \
    const svuint64_t even##r = LOAD(row + 2 * r * stride), odd##r = LOAD(row + (2 * r + 1) * stride);        \
    const svuint64_t low##r = svzip1_u64(even##r, odd##r), high##r = svzip2_u64(even##r, odd##r);
        EACH_PAIR(ROWS)
#define QUERIES(j)                                                                                           \
    {                                                                                                        \
        const svuint64_t even = LOAD(q + 2 * j * q_stride), odd = LOAD(q + (2 * j + 1) * q_stride);          \
        const svuint64_t low = svzip1_u64(even, odd), high = svzip2_u64(even, odd);                          \
        a##j##0 = multiply(multiply(a##j##0, low, low0), high, high0);                                       \
        a##j##1 = multiply(multiply(a##j##1, low, low1), high, high1);                                       \
        a##j##2 = multiply(multiply(a##j##2, low, low2), high, high2);                                       \
        a##j##3 = multiply(multiply(a##j##3, low, low3), high, high3);                                       \
    }
        EACH_PAIR(QUERIES)
    }
#define STORE(j)                                                                                             \
    {                                                                                                        \
        int32_t *even = out + 2 * j * out_stride, *odd = even + out_stride;                                  \
        store(a##j##0, even, odd);                                                                           \
        store(a##j##1, even + 2, odd + 2);                                                                   \
        store(a##j##2, even + 4, odd + 4);                                                                   \
        store(a##j##3, even + 6, odd + 6);                                                                   \
    }
    EACH_PAIR(STORE)
}

#define LW_TYPE i8
#define BLOCK(...) block(__VA_ARGS__, multiply_i8)
#include "mmla.h"

#define LW_TYPE u8
#define BLOCK(...) block(__VA_ARGS__, multiply_u8)
#include "mmla.h"
