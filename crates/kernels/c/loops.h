/* The loops, once for every kernel of every instruction set. An instruction set's file says in macros how one
 * register's worth of elements is loaded and added up, then includes this file, which defines the three forms and
 * forgets the macros.
 *
 *   LW_OP, LW_TYPE, LW_ISA    name of the kernel, as in list.h
 *   VEC, LANES                register of elements, and how many elements it holds
 *   LOAD(p), LOAD_TAIL(p, k)  a full register; one whose first k lanes come from p and the rest are zero, with no
 *                             byte beyond them read
 *   ACC, ZERO                 accumulator register, and an empty one
 *   ADD(acc, a, b)            acc plus the terms of query register a and row register b; zero lanes add nothing
 *   MERGE(acc, acc)           sum of two accumulators
 *   SUM(acc), SUM4(accs, out) an accumulator's total; the totals of four, each the same bits as from SUM
 *   BIAS(q, n)                what every total is too large by, from the query alone (0 for most)
 *   UNBIAS(total, bias)       the total without it
 *
 * In `rows` and `ids` a row has one accumulator, in element order, so a row's float result does not depend on its
 * neighbours in the call. Eight rows at once hide the latency of the addition (4 cycles, up to two a cycle).
 *
 * Memory. Rows gathered by id come from anywhere: the count of lines in flight limits them, and the L1's miss
 * buffers cap that count, so lines are asked for into the L2 (T1), one a row and step of the loop ("spread"), a
 * group of rows ahead; the first group's are asked for before the loop. Rows that follow each other are a stream,
 * which interleaving breaks up for the hardware's prefetcher: one prefetch a line in address order, a group of four
 * rows ahead, mends it. Measured on Zen 4: 80 -> 38 ns for a random row of 768 bytes, 63 -> 24 ns for a sequential
 * one; `_MM_HINT_T0` for random rows gains almost nothing. */

#include "lanewise_kernels.h"

#ifndef LW_LOOPS_ONCE
#define LW_LOOPS_ONCE
#define LW_INLINE static inline __attribute__((always_inline))
#define LW_UNROLL _Pragma("GCC unroll 8")
#define LW_NAME__(op, type, form, isa) lw_##op##_##type##form##isa
#define LW_NAME_(op, type, form, isa) LW_NAME__(op, type, form, isa)
#define LW_NAME(form) LW_NAME_(LW_OP, LW_TYPE, form, LW_ISA)
#define LW_ELEMENT LW_NAME_(LW_OP, LW_TYPE, _element, )
#define LW_RESULT LW_NAME_(LW_OP, LW_TYPE, _result, )
#define LW_LINE 64
enum { LW_GROUP = 8, LW_STREAM_GROUP = 4 };
/* Lines of each row of the first gathered group that are asked for before its loop starts. */
enum { LW_HEAD_LINES = 4 };
#endif

/* The totals of `R` rows (1, 2, 4 or 8). `ahead` holds `A` addresses (0: no prefetch): one line of each is asked
 * for at every line of the query, `apart` bytes further on each time, into the L1 if `near`, else into the L2. */
LW_INLINE void LW_NAME(_group_)(const LW_ELEMENT *q, const LW_ELEMENT *const *row, const int R, size_t n,
                                const char *const *ahead, const int A, size_t apart, const int near,
                                LW_RESULT bias, LW_RESULT *out) {
    ACC acc[LW_GROUP];
    LW_UNROLL for (int r = 0; r < R; r++) acc[r] = ZERO;
    size_t i = 0, line = 0;
    for (; i + LANES <= n; i += LANES) {
        const VEC x = LOAD(q + i);
        LW_UNROLL for (int r = 0; r < R; r++) acc[r] = ADD(acc[r], x, LOAD(row[r] + i));
        if (A && (LANES * sizeof(LW_ELEMENT) >= LW_LINE || (i * sizeof(LW_ELEMENT)) % LW_LINE == 0)) {
            LW_UNROLL for (int r = 0; r < A; r++) __builtin_prefetch(ahead[r] + line, 0, near ? 3 : 2);
            line += apart;
        }
    }
    if (i < n) {
        const VEC x = LOAD_TAIL(q + i, n - i);
        LW_UNROLL for (int r = 0; r < R; r++) acc[r] = ADD(acc[r], x, LOAD_TAIL(row[r] + i, n - i));
        LW_UNROLL for (int r = 0; r < A; r++) __builtin_prefetch(ahead[r] + line, 0, near ? 3 : 2);
    }
    if (R >= 4) {
        LW_UNROLL for (int r = 0; r < R; r += 4) SUM4((acc + r), (out + r));
    } else {
        LW_UNROLL for (int r = 0; r < R; r++) out[r] = SUM(acc[r]);
    }
    LW_UNROLL for (int r = 0; r < R; r++) out[r] = UNBIAS(out[r], bias);
}

LW_RESULT LW_NAME(_)(const LW_ELEMENT *a, const LW_ELEMENT *b, size_t n) {
    ACC s0 = ZERO, s1 = ZERO, s2 = ZERO, s3 = ZERO;
    size_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        s0 = ADD(s0, LOAD(a + i), LOAD(b + i));
        s1 = ADD(s1, LOAD(a + i + LANES), LOAD(b + i + LANES));
        s2 = ADD(s2, LOAD(a + i + 2 * LANES), LOAD(b + i + 2 * LANES));
        s3 = ADD(s3, LOAD(a + i + 3 * LANES), LOAD(b + i + 3 * LANES));
    }
    if (i + 2 * LANES <= n) {
        s0 = ADD(s0, LOAD(a + i), LOAD(b + i));
        s1 = ADD(s1, LOAD(a + i + LANES), LOAD(b + i + LANES));
        i += 2 * LANES;
    }
    if (i + LANES <= n) {
        s2 = ADD(s2, LOAD(a + i), LOAD(b + i));
        i += LANES;
    }
    if (i < n) s3 = ADD(s3, LOAD_TAIL(a + i, n - i), LOAD_TAIL(b + i, n - i));
    return UNBIAS(SUM(MERGE(MERGE(s0, s1), MERGE(s2, s3))), BIAS(a, n));
}

void LW_NAME(_rows_)(const LW_ELEMENT *q, const LW_ELEMENT *base, size_t stride, size_t count, size_t n,
                     LW_RESULT *out) {
    const LW_RESULT bias = BIAS(q, n);
    const char *at = (const char *)base;
    size_t k = 0;
    for (; k + LW_STREAM_GROUP <= count; k += LW_STREAM_GROUP, at += LW_STREAM_GROUP * stride) {
        const LW_ELEMENT *row[LW_STREAM_GROUP];
        const char *ahead[LW_STREAM_GROUP];
        LW_UNROLL for (int r = 0; r < LW_STREAM_GROUP; r++) {
            row[r] = (const LW_ELEMENT *)(at + r * stride);
            ahead[r] = at + LW_STREAM_GROUP * stride + r * LW_LINE;
        }
        LW_NAME(_group_)(q, row, LW_STREAM_GROUP, n, ahead, LW_STREAM_GROUP, LW_STREAM_GROUP * LW_LINE, 1,
                         bias, out + k);
    }
    for (; k < count; k++, at += stride) {
        const LW_ELEMENT *row = (const LW_ELEMENT *)at;
        LW_NAME(_group_)(q, &row, 1, n, NULL, 0, 0, 0, bias, out + k);
    }
}

void LW_NAME(_ids_)(const LW_ELEMENT *q, const LW_ELEMENT *base, size_t stride, const uint32_t *ids,
                    size_t count, size_t n, LW_RESULT *out) {
#define ROW(k) ((const char *)base + (size_t)ids[k] * stride)
    const size_t bytes = n * sizeof(LW_ELEMENT);
    for (size_t line = 0; line < LW_HEAD_LINES * LW_LINE && line < bytes; line += LW_LINE)
        for (size_t k = 0; k < LW_GROUP && k < count; k++) __builtin_prefetch(ROW(k) + line, 0, 2);
    const LW_RESULT bias = BIAS(q, n);
    const LW_ELEMENT *row[LW_GROUP];
    size_t k = 0;
    for (; k + LW_GROUP <= count; k += LW_GROUP) {
        const char *ahead[LW_GROUP];
        LW_UNROLL for (int r = 0; r < LW_GROUP; r++) {
            row[r] = (const LW_ELEMENT *)ROW(k + r);
            ahead[r] = k + LW_GROUP + r < count ? ROW(k + LW_GROUP + r) : ROW(k + r);
        }
        LW_NAME(_group_)(q, row, LW_GROUP, n, ahead, LW_GROUP, LW_LINE, 0, bias, out + k);
    }
    for (size_t r = 0; k + r < count; r++) row[r] = (const LW_ELEMENT *)ROW(k + r);
    const LW_ELEMENT **rest = row;
    if (k + 4 <= count) {
        LW_NAME(_group_)(q, rest, 4, n, NULL, 0, 0, 0, bias, out + k);
        k += 4, rest += 4;
    }
    if (k + 2 <= count) {
        LW_NAME(_group_)(q, rest, 2, n, NULL, 0, 0, 0, bias, out + k);
        k += 2, rest += 2;
    }
    if (k < count) LW_NAME(_group_)(q, rest, 1, n, NULL, 0, 0, 0, bias, out + k);
#undef ROW
}

#undef LW_OP
#undef LW_TYPE
#undef VEC
#undef LANES
#undef LOAD
#undef LOAD_TAIL
#undef ACC
#undef ZERO
#undef ADD
#undef MERGE
#undef SUM
#undef SUM4
#undef BIAS
#undef UNBIAS
