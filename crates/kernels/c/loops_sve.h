/* The loops of loops.h for SVE, whose registers have a length known only at run time (128 to 2048 bits): no arrays or
 * structs of them, and no tails, since a predicate says which lanes are loaded and the others read nothing.
 *
 *   LW_ISA, LW_OP, LW_TYPE    name of the kernel, as in list.h
 *   LANES                     row elements in a VEC
 *   WHILE(i, n), ALL          predicate of the lanes from element i of n on, and of all
 *   VEC, LOAD(pg, p)          row elements ready for ADD; those that pg leaves out are 0
 *   QVEC, LOADQ(pg, p)        the same of the query, where it differs
 *   ACC, ZERO, ADD(acc, q, v), MERGE(acc, acc), SUM(acc), TOTAL, FINISH(total, bias)     as in loops.h; lanes of 0
 *                             add nothing
 *   BIAS, BIAS_OF(q, n)       what the query alone gives to FINISH, and its type
 * All words but LW_ISA are forgotten at the end.
 *
 * As in loops.h a row has one accumulator in `rows`, `ids` and `tile`, in element order. Four rows at once. */

#include "names.h"

#ifndef LW_LOOPS_ONCE
#define LW_LOOPS_ONCE
enum { LW_GROUP = 4 };
#endif

#ifndef QVEC
#define QVEC VEC
#define LOADQ(pg, p) LOAD(pg, p)
#endif
#ifndef TOTAL
#define TOTAL LW_RESULT
#endif
#ifndef FINISH
#define FINISH(total, bias) ((void)(bias), (total))
#endif
#ifndef BIAS_OF
#define BIAS int
#define BIAS_OF(q, n) 0
#endif
#define AT(base, bytes) ((const LW_ELEMENT *)lw_at(base, bytes))

LW_RESULT LW_NAME(_)(const LW_QUERY *a, const LW_ELEMENT *b, size_t n) {
    ACC s0 = ZERO, s1 = ZERO, s2 = ZERO, s3 = ZERO;
    const size_t lanes = LANES;
    size_t i = 0;
#define STEP(s, pg, at) s = ADD(s, LOADQ(pg, a + (at)), LOAD(pg, b + (at)))
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
        STEP(s0, ALL, i);
        STEP(s1, ALL, i + lanes);
        STEP(s2, ALL, i + 2 * lanes);
        STEP(s3, ALL, i + 3 * lanes);
    }
    for (; i < n; i += 2 * lanes) {
        const svbool_t first = WHILE(i, n), second = WHILE(i + lanes, n);
        STEP(s0, first, i);
        STEP(s1, second, i + lanes);
    }
#undef STEP
    const TOTAL total = SUM(MERGE(MERGE(s0, s1), MERGE(s2, s3)));
    return FINISH(total, BIAS_OF(a, n));
}

LW_INLINE LW_RESULT LW_NAME(_alone_)(const LW_QUERY *q, const LW_ELEMENT *row, size_t n, BIAS bias) {
    ACC s = ZERO;
    const size_t lanes = LANES;
    for (size_t i = 0; i < n; i += lanes) {
        const svbool_t pg = WHILE(i, n);
        s = ADD(s, LOADQ(pg, q + i), LOAD(pg, row + i));
    }
    const TOTAL total = SUM(s);
    return FINISH(total, bias);
}

/* Four rows. `ahead` (NULL: no prefetch): as in loops.h. */
LW_INLINE void LW_NAME(_group_)(const LW_QUERY *q, const LW_ELEMENT *const *row, size_t n,
                                const char *const *ahead, size_t apart, const int near, BIAS bias,
                                LW_RESULT *out) {
    ACC s0 = ZERO, s1 = ZERO, s2 = ZERO, s3 = ZERO;
    const size_t lanes = LANES;
    size_t line = 0, next = 0;
    for (size_t i = 0; i < n; i += lanes) {
        const svbool_t pg = WHILE(i, n);
        const QVEC x = LOADQ(pg, q + i);
        s0 = ADD(s0, x, LOAD(pg, row[0] + i));
        s1 = ADD(s1, x, LOAD(pg, row[1] + i));
        s2 = ADD(s2, x, LOAD(pg, row[2] + i));
        s3 = ADD(s3, x, LOAD(pg, row[3] + i));
        if (ahead && i * sizeof(LW_ELEMENT) >= next) {
            for (int r = 0; r < LW_GROUP; r++) lw_prefetch(ahead[r] + line, near);
            line += apart, next += LW_LINE;
        }
    }
    const TOTAL t0 = SUM(s0), t1 = SUM(s1), t2 = SUM(s2), t3 = SUM(s3);
    out[0] = FINISH(t0, bias);
    out[1] = FINISH(t1, bias);
    out[2] = FINISH(t2, bias);
    out[3] = FINISH(t3, bias);
}

void LW_NAME(_rows_)(const LW_QUERY *q, const LW_ELEMENT *base, size_t stride, size_t count, size_t n,
                     LW_RESULT *out) {
    const BIAS bias = BIAS_OF(q, n);
    const char *at = (const char *)base;
    size_t k = 0;
    for (; k + LW_GROUP <= count; k += LW_GROUP, at += LW_GROUP * stride) {
        const LW_ELEMENT *row[LW_GROUP];
        const char *ahead[LW_GROUP];
        for (int r = 0; r < LW_GROUP; r++) {
            row[r] = AT(at, r * stride);
            ahead[r] = at + LW_GROUP * stride + r * LW_LINE;
        }
        LW_NAME(_group_)(q, row, n, ahead, LW_GROUP * LW_LINE, 1, bias, out + k);
    }
    for (; k < count; k++, at += stride) out[k] = LW_NAME(_alone_)(q, AT(at, 0), n, bias);
}

void LW_NAME(_ids_)(const LW_QUERY *q, const LW_ELEMENT *base, size_t stride, const uint32_t *ids,
                    size_t count, size_t n, LW_RESULT *out) {
#define ROW(k) AT(base, (size_t)ids[k] * stride)
    const size_t bytes = n * sizeof(LW_ELEMENT);
    for (size_t line = 0; line < LW_HEAD_LINES * LW_LINE && line < bytes; line += LW_LINE)
        for (size_t k = 0; k < LW_GROUP && k < count; k++)
            __builtin_prefetch((const char *)ROW(k) + line, 0, 2);
    const BIAS bias = BIAS_OF(q, n);
    size_t k = 0;
    for (; k + LW_GROUP <= count; k += LW_GROUP) {
        const LW_ELEMENT *row[LW_GROUP];
        const char *ahead[LW_GROUP];
        for (int r = 0; r < LW_GROUP; r++) {
            const size_t later = k + LW_GROUP + r;
            row[r] = ROW(k + r);
            ahead[r] = (const char *)(later < count ? ROW(later) : row[r]);
        }
        LW_NAME(_group_)(q, row, n, ahead, LW_LINE, 0, bias, out + k);
    }
    for (; k < count; k++) out[k] = LW_NAME(_alone_)(q, ROW(k), n, bias);
#undef ROW
}

/* Two queries against four rows: a row's register is loaded once for both. */
LW_INLINE void LW_NAME(_block_)(const LW_QUERY *q, const LW_QUERY *p, const LW_ELEMENT *const *row, size_t n,
                                const BIAS *bias, LW_RESULT *out, size_t out_stride) {
    ACC s0 = ZERO, s1 = ZERO, s2 = ZERO, s3 = ZERO, t0 = ZERO, t1 = ZERO, t2 = ZERO, t3 = ZERO;
    const size_t lanes = LANES;
#define STEP(s, t, r)                                                                                        \
    do {                                                                                                     \
        const VEC y = LOAD(pg, row[r] + i);                                                                  \
        s = ADD(s, x, y);                                                                                    \
        t = ADD(t, z, y);                                                                                    \
    } while (0)
    for (size_t i = 0; i < n; i += lanes) {
        const svbool_t pg = WHILE(i, n);
        const QVEC x = LOADQ(pg, q + i), z = LOADQ(pg, p + i);
        STEP(s0, t0, 0);
        STEP(s1, t1, 1);
        STEP(s2, t2, 2);
        STEP(s3, t3, 3);
    }
#undef STEP
    const TOTAL total[2][4] = {{SUM(s0), SUM(s1), SUM(s2), SUM(s3)}, {SUM(t0), SUM(t1), SUM(t2), SUM(t3)}};
    for (int j = 0; j < 2; j++)
        for (int r = 0; r < 4; r++) out[j * out_stride + r] = FINISH(total[j][r], bias[j]);
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
            const BIAS bias[2] = {BIAS_OF(x, n), BIAS_OF(z, n)};
            LW_RESULT *const to = out + j * out_stride;
            size_t k = first;
            for (; k + 4 <= last; k += 4) {
                const LW_ELEMENT *row[4];
                for (int r = 0; r < 4; r++) row[r] = AT(base, (k + r) * stride);
                if (both)
                    LW_NAME(_block_)(x, z, row, n, bias, to + k, out_stride);
                else
                    LW_NAME(_group_)(x, row, n, NULL, 0, 0, bias[0], to + k);
            }
            for (; k < last; k++) {
                to[k] = LW_NAME(_alone_)(x, AT(base, k * stride), n, bias[0]);
                if (both) to[out_stride + k] = LW_NAME(_alone_)(z, AT(base, k * stride), n, bias[1]);
            }
        }
    }
}

#undef AT
#undef LW_OP
#undef LW_TYPE
#undef LANES
#undef WHILE
#undef ALL
#undef VEC
#undef LOAD
#undef QVEC
#undef LOADQ
#undef ACC
#undef ZERO
#undef ADD
#undef MERGE
#undef SUM
#undef TOTAL
#undef FINISH
#undef BIAS
#undef BIAS_OF
