/* The loops of loops.h for SVE, whose registers have a length known only at run time (128 to 2048 bits): no arrays or
 * structs of them, and no tails, since a predicate says which lanes are loaded and the others read nothing.
 *
 *   LW_ISA, LW_OP, LW_TYPE    name of the kernel, as in list.h
 *   EACH                      bits of the lane that a row element lies in: 8, 16 or 32
 *   VEC, LOAD(pg, p)          row elements ready for ADD; those that pg leaves out are 0
 *   QVEC, LOADQ(pg, q, i, n)  the query's from element i of n on, where they differ
 *   ACC, ZERO, ADD(acc, q, v), MERGE(acc, acc), SUM(acc), TOTAL     as in loops.h; lanes of 0 add nothing
 *   ADD2(acc, q, v)           the same for a second accumulator, where a result needs two totals
 *   BIAS_ADD(acc, q)          what the query alone adds to an accumulator of its own
 *   FINISH(total, second, bias)                                     the result
 * LW_OP, ADD, ADD2, BIAS_ADD and FINISH are forgotten at the end; the others stay until forget.h is included.
 *
 * As in loops.h a row has one accumulator in `rows`, `ids` and `tile`, in element order. */

#include "names.h"

#ifndef LW_LOOPS_ONCE
#define LW_LOOPS_ONCE
#define LW_LANES_8 svcntb()
#define LW_LANES_16 svcnth()
#define LW_LANES_32 svcntw()
#define LW_PASTE_(x, y) x##y
#define LW_PASTE(x, y) LW_PASTE_(x, y)
#define LW_WHILE_8 svwhilelt_b8_u64
#define LW_WHILE_16 svwhilelt_b16_u64
#define LW_WHILE_32 svwhilelt_b32_u64
#define LW_WHILE(i, n) LW_PASTE(LW_WHILE_, EACH)(i, n)
#define LW_ALL LW_PASTE(svptrue_b, EACH)()
enum { LW_STREAM_GROUP = 4, LW_GROUP = 8 };
#endif

#ifndef QVEC
#define QVEC VEC
#endif
#ifndef LOADQ
#define LOADQ(pg, q, i, n) LOAD(pg, (q) + (i))
#endif
#ifndef TOTAL
#define TOTAL LW_RESULT
#endif
#ifndef FINISH
#define FINISH(total, second, bias) ((void)(second), (void)(bias), (total))
#endif
/* What a kernel does without is an int that stays 0. */
#ifdef ADD2
#define ACC2 ACC
#define ZERO2 ZERO
#define MERGE2(x, y) MERGE(x, y)
#define SUM2(acc) SUM(acc)
#define TOTAL2 TOTAL
#else
#define ADD2(acc, q, v) ((void)(q), (void)(v), (acc))
#define ACC2 int
#define ZERO2 0
#define MERGE2(x, y) ((x) + (y))
#define SUM2(acc) (acc)
#define TOTAL2 int
#endif
#define AT(base, bytes) ((const LW_ELEMENT *)lw_at(base, bytes))

#ifdef BIAS_ADD
#define BACC ACC
#define BZERO ZERO
#define BMERGE(x, y) MERGE(x, y)
#define BSUM(acc) SUM(acc)
#define BIAS TOTAL
LW_INLINE BIAS LW_NAME(_bias_)(const LW_QUERY *q, size_t n) {
    BACC s = BZERO;
    for (size_t i = 0; i < n; i += LW_PASTE(LW_LANES_, EACH)) {
        const QVEC x = LOADQ(LW_WHILE(i, n), q, i, n);
        s = BIAS_ADD(s, x);
    }
    return BSUM(s);
}
#else
#define BIAS_ADD(acc, q) ((void)(q), (acc))
#define BACC int
#define BZERO 0
#define BMERGE(x, y) ((x) + (y))
#define BSUM(acc) (acc)
#define BIAS int
LW_INLINE int LW_NAME(_bias_)(const LW_QUERY *q, size_t n) {
    (void)q, (void)n;
    return 0;
}
#endif

LW_RESULT LW_NAME(_)(const LW_QUERY *a, const LW_ELEMENT *b, size_t n) {
    ACC s0 = ZERO, s1 = ZERO, s2 = ZERO, s3 = ZERO;
    ACC2 t0 = ZERO2, t1 = ZERO2, t2 = ZERO2, t3 = ZERO2;
    BACC u0 = BZERO, u1 = BZERO, u2 = BZERO, u3 = BZERO;
    const size_t lanes = LW_PASTE(LW_LANES_, EACH);
    size_t i = 0;
#define STEP(r, pg, at)                                                                                      \
    do {                                                                                                     \
        const QVEC x = LOADQ(pg, a, at, n);                                                                  \
        const VEC y = LOAD(pg, b + (at));                                                                    \
        s##r = ADD(s##r, x, y);                                                                              \
        t##r = ADD2(t##r, x, y);                                                                             \
        u##r = BIAS_ADD(u##r, x);                                                                            \
    } while (0)
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
        STEP(0, LW_ALL, i);
        STEP(1, LW_ALL, i + lanes);
        STEP(2, LW_ALL, i + 2 * lanes);
        STEP(3, LW_ALL, i + 3 * lanes);
    }
    for (; i < n; i += 2 * lanes) {
        const svbool_t first = LW_WHILE(i, n), second = LW_WHILE(i + lanes, n);
        STEP(0, first, i);
        STEP(1, second, i + lanes);
    }
#undef STEP
    const TOTAL total = SUM(MERGE(MERGE(s0, s1), MERGE(s2, s3)));
    const TOTAL2 second = SUM2(MERGE2(MERGE2(t0, t1), MERGE2(t2, t3)));
    const BIAS bias = BSUM(BMERGE(BMERGE(u0, u1), BMERGE(u2, u3)));
    return FINISH(total, second, bias);
}

/* `R` rows: 1, 4 or 8. `ahead` (NULL: no prefetch): as in loops.h. */
LW_INLINE void LW_NAME(_group_)(const LW_QUERY *q, const LW_ELEMENT *const *row, const int R, size_t n,
                                const char *const *ahead, size_t apart, const int near, BIAS bias,
                                LW_RESULT *out) {
    ACC s0 = ZERO, s1 = ZERO, s2 = ZERO, s3 = ZERO, s4 = ZERO, s5 = ZERO, s6 = ZERO, s7 = ZERO;
    ACC2 t0 = ZERO2, t1 = ZERO2, t2 = ZERO2, t3 = ZERO2, t4 = ZERO2, t5 = ZERO2, t6 = ZERO2, t7 = ZERO2;
    const size_t lanes = LW_PASTE(LW_LANES_, EACH);
    size_t line = 0, next = 0;
#define STEP(r)                                                                                              \
    do {                                                                                                     \
        const VEC y = LOAD(pg, row[r] + i);                                                                  \
        s##r = ADD(s##r, x, y);                                                                              \
        t##r = ADD2(t##r, x, y);                                                                             \
    } while (0)
#define EACH_ROW(F)                                                                                          \
    do {                                                                                                     \
        F(0);                                                                                                \
        if (R >= 4) {                                                                                        \
            F(1);                                                                                            \
            F(2);                                                                                            \
            F(3);                                                                                            \
        }                                                                                                    \
        if (R >= 8) {                                                                                        \
            F(4);                                                                                            \
            F(5);                                                                                            \
            F(6);                                                                                            \
            F(7);                                                                                            \
        }                                                                                                    \
    } while (0)
    for (size_t i = 0; i < n; i += lanes) {
        const svbool_t pg = LW_WHILE(i, n);
        const QVEC x = LOADQ(pg, q, i, n);
        EACH_ROW(STEP);
        if (ahead && i * sizeof(LW_ELEMENT) >= next) {
            for (int r = 0; r < R; r++) lw_prefetch(ahead[r] + line, near);
            line += apart, next += LW_LINE;
        }
    }
#undef STEP
#define STEP(r)                                                                                              \
    do {                                                                                                     \
        const TOTAL total = SUM(s##r);                                                                       \
        const TOTAL2 second = SUM2(t##r);                                                                    \
        out[r] = FINISH(total, second, bias);                                                                \
    } while (0)
    EACH_ROW(STEP);
#undef STEP
#undef EACH_ROW
}

void LW_NAME(_rows_)(const LW_QUERY *q, const LW_ELEMENT *base, size_t stride, size_t count, size_t n,
                     LW_RESULT *out) {
    const BIAS bias = LW_NAME(_bias_)(q, n);
    const char *at = (const char *)base;
    size_t k = 0;
    for (; k + LW_STREAM_GROUP <= count; k += LW_STREAM_GROUP, at += LW_STREAM_GROUP * stride) {
        const LW_ELEMENT *row[LW_STREAM_GROUP];
        const char *ahead[LW_STREAM_GROUP];
        for (int r = 0; r < LW_STREAM_GROUP; r++) {
            row[r] = AT(at, r * stride);
            ahead[r] = at + LW_STREAM_GROUP * stride + r * LW_LINE;
        }
        LW_NAME(_group_)(q, row, LW_STREAM_GROUP, n, ahead, LW_STREAM_GROUP * LW_LINE, 1, bias, out + k);
    }
    for (; k < count; k++, at += stride) {
        const LW_ELEMENT *row = AT(at, 0);
        LW_NAME(_group_)(q, &row, 1, n, NULL, 0, 0, bias, out + k);
    }
}

void LW_NAME(_ids_)(const LW_QUERY *q, const LW_ELEMENT *base, size_t stride, const uint32_t *ids,
                    size_t count, size_t n, LW_RESULT *out) {
#define ROW(k) AT(base, (size_t)ids[k] * stride)
    const size_t bytes = n * sizeof(LW_ELEMENT);
    for (size_t line = 0; line < LW_HEAD_LINES * LW_LINE && line < bytes; line += LW_LINE)
        for (size_t k = 0; k < LW_GROUP && k < count; k++) lw_prefetch((const char *)ROW(k) + line, 0);
    const BIAS bias = LW_NAME(_bias_)(q, n);
    const LW_ELEMENT *row[LW_GROUP];
    size_t k = 0;
    for (; k + LW_GROUP <= count; k += LW_GROUP) {
        const char *ahead[LW_GROUP];
        for (int r = 0; r < LW_GROUP; r++) {
            const size_t later = k + LW_GROUP + r;
            row[r] = ROW(k + r);
            ahead[r] = (const char *)(later < count ? ROW(later) : row[r]);
        }
        LW_NAME(_group_)(q, row, LW_GROUP, n, ahead, LW_LINE, 0, bias, out + k);
    }
    for (size_t r = 0; k + r < count; r++) row[r] = ROW(k + r);
    const LW_ELEMENT **rest = row;
    if (k + 4 <= count) {
        LW_NAME(_group_)(q, rest, 4, n, NULL, 0, 0, bias, out + k);
        k += 4, rest += 4;
    }
    for (; k < count; k++, rest++) LW_NAME(_group_)(q, rest, 1, n, NULL, 0, 0, bias, out + k);
#undef ROW
}

/* Two queries against four rows: a row's register is loaded once for both. */
LW_INLINE void LW_NAME(_block_)(const LW_QUERY *q, const LW_QUERY *p, const LW_ELEMENT *const *row, size_t n,
                                const BIAS *bias, LW_RESULT *out, size_t out_stride) {
    ACC s0 = ZERO, s1 = ZERO, s2 = ZERO, s3 = ZERO, s4 = ZERO, s5 = ZERO, s6 = ZERO, s7 = ZERO;
    ACC2 t0 = ZERO2, t1 = ZERO2, t2 = ZERO2, t3 = ZERO2, t4 = ZERO2, t5 = ZERO2, t6 = ZERO2, t7 = ZERO2;
    const size_t lanes = LW_PASTE(LW_LANES_, EACH);
#define STEP(a, b, r)                                                                                        \
    do {                                                                                                     \
        const VEC y = LOAD(pg, row[r] + i);                                                                  \
        s##a = ADD(s##a, x, y);                                                                              \
        t##a = ADD2(t##a, x, y);                                                                             \
        s##b = ADD(s##b, z, y);                                                                              \
        t##b = ADD2(t##b, z, y);                                                                             \
    } while (0)
    for (size_t i = 0; i < n; i += lanes) {
        const svbool_t pg = LW_WHILE(i, n);
        const QVEC x = LOADQ(pg, q, i, n), z = LOADQ(pg, p, i, n);
        STEP(0, 4, 0);
        STEP(1, 5, 1);
        STEP(2, 6, 2);
        STEP(3, 7, 3);
    }
#undef STEP
    const TOTAL total[8] = {SUM(s0), SUM(s1), SUM(s2), SUM(s3), SUM(s4), SUM(s5), SUM(s6), SUM(s7)};
    const TOTAL2 second[8] = {SUM2(t0), SUM2(t1), SUM2(t2), SUM2(t3), SUM2(t4), SUM2(t5), SUM2(t6), SUM2(t7)};
    for (int r = 0; r < 4; r++) {
        out[r] = FINISH(total[r], second[r], bias[0]);
        out[out_stride + r] = FINISH(total[4 + r], second[4 + r], bias[1]);
    }
}

void LW_NAME(_tile_)(const LW_QUERY *q, size_t q_stride, size_t queries, const LW_ELEMENT *base,
                     size_t stride, size_t count, size_t n, LW_RESULT *out, size_t out_stride) {
    const size_t bytes = n * sizeof(LW_ELEMENT), fit = LW_PANEL / (bytes + !bytes);
    const size_t panel = fit < 4 ? 4 : fit - fit % 4;
    for (size_t first = 0; first < count; first += panel) {
        const size_t last = count - first < panel ? count : first + panel;
        for (size_t j = 0; j < queries; j += 2) {
            const LW_QUERY *const x = (const LW_QUERY *)lw_at(q, j * q_stride);
            const int both = j + 1 < queries;
            const LW_QUERY *const z = both ? (const LW_QUERY *)lw_at(x, q_stride) : x;
            const BIAS bias[2] = {LW_NAME(_bias_)(x, n), LW_NAME(_bias_)(z, n)};
            LW_RESULT *const to = out + j * out_stride;
            size_t k = first;
            for (; k + 4 <= last; k += 4) {
                const LW_ELEMENT *row[4];
                for (int r = 0; r < 4; r++) row[r] = AT(base, (k + r) * stride);
                if (both)
                    LW_NAME(_block_)(x, z, row, n, bias, to + k, out_stride);
                else
                    LW_NAME(_group_)(x, row, 4, n, NULL, 0, 0, bias[0], to + k);
            }
            for (; k < last; k++) {
                const LW_ELEMENT *row = AT(base, k * stride);
                LW_NAME(_group_)(x, &row, 1, n, NULL, 0, 0, bias[0], to + k);
                if (both) LW_NAME(_group_)(z, &row, 1, n, NULL, 0, 0, bias[1], to + out_stride + k);
            }
        }
    }
}

#undef AT
#undef LW_OP
#undef ADD
#undef ADD2
#undef ACC2
#undef ZERO2
#undef MERGE2
#undef SUM2
#undef TOTAL2
#undef BIAS_ADD
#undef BACC
#undef BZERO
#undef BMERGE
#undef BSUM
#undef BIAS
#undef FINISH
