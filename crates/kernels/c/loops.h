/* The loops, once for every kernel of every instruction set. An instruction set's file says in macros how one
 * register's worth of elements is loaded and added up, then includes this file, which defines the four forms.
 *
 *   LW_ISA, LW_OP, LW_TYPE    name of the kernel, as in list.h
 *   VEC, LANES                row elements ready for ADD, and how many there are
 *   LOAD(p), LOAD_TAIL(p, k)  a VEC of the row; one whose first k lanes come from p and the rest add nothing, with no
 *                             byte beyond them read
 *   ACC, ZERO                 accumulator register, and an empty one
 *   ADD(acc, q, v)            acc plus the terms of a query's QVEC and a row's VEC
 *   MERGE(acc, acc)           sum of two accumulators
 *   SUM(acc)                  an accumulator's total
 * and, where the defaults below do not do:
 *   QVEC, LOADQ(q, i, n), LOADQ_TAIL(q, i, n, k)   the query's lanes from element i of n on
 *   TOTAL, SUM4(accs, out)    type of a total; the totals of four, each the same bits as from SUM
 *   BIAS_ADD(acc, q)          what the query alone adds to an accumulator of its own: with BACC, BZERO, BMERGE, BSUM
 *                             and BIAS, the type of its total
 *   FINISH(total, bias)       the result
 *   ONE(acc, bacc)            the result of one-to-one, where both are better summed together
 *   LW_ALIGN                  row elements from which one-to-one pays for a first part that brings the row to a
 *                             register's alignment: for bytes whose sums do not depend on their order
 *   WIDE, WIDEN(q, n, to)     type of the kernel of the same rows whose query is this one's as floats, and the function
 *                             that writes them (up to a register too many): many rows then meet a query that was
 *                             converted once. The sums are the same.
 *   CHAINS                    accumulators of one-to-one: 4, or 2 where an ADD takes longer than half its latency
 *   GROUP, TILE               rows compared at once in `rows` and `ids` (8, or 4 where an ACC is two of the CPU's
 *                             LW_REGISTERS registers), queries at once in `tile`
 * The words of the one kernel (LW_OP, ADD, BIAS…, FINISH) are forgotten at the end; the others stay for the next one,
 * until `forget.h` is included.
 *
 * In `rows`, `ids` and `tile` a row has one accumulator, in element order, so a row's float result does not depend on
 * its neighbours in the call. Eight rows at once hide the latency of the addition (4 cycles, up to two a cycle).
 *
 * Memory. Rows gathered by id come from anywhere: the count of lines in flight limits them, and the L1's miss
 * buffers cap that count, so lines are asked for into the L2 (T1), one a row and step of the loop ("spread"), a
 * group of rows ahead; the first group's are asked for before the loop. Rows that follow each other are a stream,
 * which interleaving breaks up for the hardware's prefetcher: one prefetch a line in address order, a group of four
 * rows ahead, mends it. From 4 KiB a row a group ahead is more than the L1 holds: each row's own lines are asked for,
 * 512 bytes ahead (16 KiB rows from the L2 in 157 instead of 243 ns, from memory a sixth faster). Measured on Zen 4:
 * 80 -> 38 ns for a random row of 768 bytes, 63 -> 24 ns for a sequential one; `_MM_HINT_T0` for random rows gains
 * almost nothing. */

#include "names.h"

#ifndef LW_LOOPS_ONCE
#define LW_LOOPS_ONCE
#define LW_UNROLL _Pragma("GCC unroll 16")
enum { LW_STREAM_GROUP = 4, LW_GROUP_MOST = 8 };
/* Bytes: from where a row is long, and how far ahead a long one is asked for. */
enum { LW_LONG_ROW = 4096, LW_AHEAD = 512 };
/* Floats that WIDEN may write (32 KiB of stack), and how many rows repay it. */
enum { LW_WIDE = 8192, LW_WIDE_ROWS = 16 };
#endif

#ifndef QVEC
#define QVEC VEC
#endif
#ifndef LOADQ
#define LOADQ(q, i, n) LOAD((q) + (i))
#define LOADQ_TAIL(q, i, n, k) LOAD_TAIL((q) + (i), k)
#endif
#ifndef TOTAL
#define TOTAL LW_RESULT
#endif
#ifndef SUM4
#define SUM4(accs, out)                                                                                      \
    ((out)[0] = SUM((accs)[0]), (out)[1] = SUM((accs)[1]), (out)[2] = SUM((accs)[2]),                        \
     (out)[3] = SUM((accs)[3]))
#endif
#ifndef FINISH
#define FINISH(total, bias) ((void)(bias), (total))
#endif
#ifndef CHAINS
#define CHAINS 4
#endif
#ifndef GROUP
#define GROUP 8
#endif
#ifndef TILE
#define TILE (LW_REGISTERS / 8)
#endif
#ifdef BIAS_ADD
#ifndef BACC
#define BACC ACC
#define BZERO ZERO
#define BMERGE(x, y) MERGE(x, y)
#define BSUM(acc) SUM(acc)
#endif
#ifndef BIAS
#define BIAS TOTAL
#endif
#ifndef ONE
#define ONE(acc, bacc) FINISH(SUM(acc), BSUM(bacc))
#endif
LW_INLINE BIAS LW_NAME(_bias_)(const LW_QUERY *q, size_t n) {
    BACC s0 = BZERO, s1 = BZERO;
    size_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        s0 = BIAS_ADD(s0, LOADQ(q, i, n));
        s1 = BIAS_ADD(s1, LOADQ(q, i + LANES, n));
    }
    if (i + LANES <= n) {
        s0 = BIAS_ADD(s0, LOADQ(q, i, n));
        i += LANES;
    }
    if (i < n) s1 = BIAS_ADD(s1, LOADQ_TAIL(q, i, n, n - i));
    return BSUM(BMERGE(s0, s1));
}
#else
#define BIAS int
LW_INLINE int LW_NAME(_bias_)(const LW_QUERY *q, size_t n) {
    (void)q, (void)n;
    return 0;
}
#endif

/* The totals of `R` rows (1, 2, 4 or 8). `ahead` holds `A` addresses (0: no prefetch): one line of each is asked
 * for at every line of the query, `apart` bytes further on each time, into the L1 if `near`, else into the L2. */
LW_INLINE void LW_NAME(_group_)(const LW_QUERY *q, const LW_ELEMENT *const *row, const int R, size_t n,
                                const char *const *ahead, const int A, size_t apart, const int near,
                                BIAS bias, LW_RESULT *out) {
    ACC acc[LW_GROUP_MOST];
    LW_UNROLL for (int r = 0; r < R; r++) acc[r] = ZERO;
    size_t i = 0, line = 0;
    for (; i + LANES <= n; i += LANES) {
        const QVEC x = LOADQ(q, i, n);
        LW_UNROLL for (int r = 0; r < R; r++) acc[r] = ADD(acc[r], x, LOAD(row[r] + i));
        if (A && (LANES * sizeof(LW_ELEMENT) >= LW_LINE || (i * sizeof(LW_ELEMENT)) % LW_LINE == 0)) {
            LW_UNROLL for (int r = 0; r < A; r++) lw_prefetch(ahead[r] + line, near);
            line += apart;
        }
    }
    if (i < n) {
        const QVEC x = LOADQ_TAIL(q, i, n, n - i);
        LW_UNROLL for (int r = 0; r < R; r++) acc[r] = ADD(acc[r], x, LOAD_TAIL(row[r] + i, n - i));
        LW_UNROLL for (int r = 0; r < A; r++) lw_prefetch(ahead[r] + line, near);
    }
    TOTAL total[LW_GROUP_MOST];
    if (R >= 4) {
        LW_UNROLL for (int r = 0; r < R; r += 4) SUM4((acc + r), (total + r));
    } else {
        LW_UNROLL for (int r = 0; r < R; r++) total[r] = SUM(acc[r]);
    }
    LW_UNROLL for (int r = 0; r < R; r++) out[r] = FINISH(total[r], bias);
}

#ifdef BIAS_ADD
#define STEP_(acc, bacc, q, v)                                                                               \
    do {                                                                                                     \
        const QVEC x = q;                                                                                    \
        acc = ADD(acc, x, v);                                                                                \
        bacc = BIAS_ADD(bacc, x);                                                                            \
    } while (0)
#else
#define BACC int
#define BZERO 0
#define BMERGE(x, y) ((void)(y), (x))
#define ONE(acc, bacc) FINISH(SUM(acc), bacc)
#define STEP_(acc, bacc, q, v) acc = ADD(acc, q, v)
#endif
#define STEP(acc, bacc, at) STEP_(acc, bacc, LOADQ(a, at, n), LOAD(b + (at)))
#define STEP_TAIL(acc, bacc, at, k) STEP_(acc, bacc, LOADQ_TAIL(a, at, n, k), LOAD_TAIL(b + (at), k))

/* One-to-one from element i on; with four chains, where fewer than four registers are left. */
LW_INLINE LW_RESULT LW_NAME(_end_)(const LW_QUERY *a, const LW_ELEMENT *b, size_t i, size_t n, ACC s0, ACC s1,
                                   BACC b0, BACC b1) {
    while (i + 2 * LANES <= n) {
        STEP(s0, b0, i);
        STEP(s1, b1, i + LANES);
        i += 2 * LANES;
        if (CHAINS == 4) break;
    }
    if (i + LANES <= n) {
        STEP(s0, b0, i);
        i += LANES;
    }
    if (i < n) STEP_TAIL(s1, b1, i, n - i);
    return ONE(MERGE(s0, s1), BMERGE(b0, b1));
}

LW_RESULT LW_NAME(_)(const LW_QUERY *a, const LW_ELEMENT *b, size_t n) {
    ACC s0 = ZERO, s1 = ZERO;
    BACC b0 = BZERO, b1 = BZERO;
    if (n < 4 * LANES) return LW_NAME(_end_)(a, b, 0, n, s0, s1, b0, b1);
    size_t i = 0;
#ifdef LW_ALIGN
    const size_t head = -(uintptr_t)b % LANES;
    if (n >= LW_ALIGN && head) {
        STEP_TAIL(s0, b0, 0, head);
        i = head;
    }
#endif
#if CHAINS == 2
    return LW_NAME(_end_)(a, b, i, n, s0, s1, b0, b1);
#else
    ACC s2 = ZERO, s3 = ZERO;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        STEP(s0, b0, i);
        STEP(s1, b1, i + LANES);
        STEP(s2, b0, i + 2 * LANES);
        STEP(s3, b1, i + 3 * LANES);
    }
    return LW_NAME(_end_)(a, b, i, n, MERGE(s0, s2), MERGE(s1, s3), b0, b1);
#endif
}
#undef STEP
#undef STEP_TAIL
#undef STEP_

#ifdef WIDE
/* Apart from the forms, so that only calls that repay it take that much of the stack. */
static __attribute__((noinline)) void LW_NAME(_wide_rows_)(const LW_QUERY *q, const LW_ELEMENT *base,
                                                           size_t stride, size_t count, size_t n,
                                                           LW_RESULT *out) {
    float wide[LW_WIDE + LANES];
    WIDEN(q, n, wide);
    LW_NAME_(LW_OP, WIDE, _rows_, LW_ISA)(wide, base, stride, count, n, out);
}
static __attribute__((noinline)) void LW_NAME(_wide_ids_)(const LW_QUERY *q, const LW_ELEMENT *base,
                                                          size_t stride, const uint32_t *ids, size_t count,
                                                          size_t n, LW_RESULT *out) {
    float wide[LW_WIDE + LANES];
    WIDEN(q, n, wide);
    LW_NAME_(LW_OP, WIDE, _ids_, LW_ISA)(wide, base, stride, ids, count, n, out);
}
static __attribute__((noinline)) void LW_NAME(_wide_tile_)(const LW_QUERY *q, size_t q_stride, size_t blocks,
                                                           const LW_ELEMENT *base, size_t stride,
                                                           size_t count, size_t n, LW_RESULT *out,
                                                           size_t out_stride) {
    float wide[LW_WIDE + LANES];
    for (; blocks; blocks--, out += TILE * out_stride) {
        for (size_t t = 0; t < TILE; t++, q = (const LW_QUERY *)lw_at(q, q_stride)) WIDEN(q, n, wide + t * n);
        LW_NAME_(LW_OP, WIDE, _tile_, LW_ISA)
        (wide, n * sizeof *wide, TILE, base, stride, count, n, out, out_stride);
    }
}
#endif

void LW_NAME(_rows_)(const LW_QUERY *q, const LW_ELEMENT *base, size_t stride, size_t count, size_t n,
                     LW_RESULT *out) {
#ifdef WIDE
    if (count >= LW_WIDE_ROWS && n <= LW_WIDE) {
        LW_NAME(_wide_rows_)(q, base, stride, count, n, out);
        return;
    }
#endif
    const BIAS bias = LW_NAME(_bias_)(q, n);
    const char *at = (const char *)base;
    const int long_rows = n * sizeof(LW_ELEMENT) >= LW_LONG_ROW;
    size_t k = 0;
    for (; k + LW_STREAM_GROUP <= count; k += LW_STREAM_GROUP, at += LW_STREAM_GROUP * stride) {
        const LW_ELEMENT *row[LW_STREAM_GROUP];
        const char *ahead[LW_STREAM_GROUP];
        LW_UNROLL for (int r = 0; r < LW_STREAM_GROUP; r++) {
            row[r] = (const LW_ELEMENT *)(at + r * stride);
            ahead[r] = long_rows ? at + r * stride + LW_AHEAD : at + LW_STREAM_GROUP * stride + r * LW_LINE;
        }
        LW_NAME(_group_)(q, row, LW_STREAM_GROUP, n, ahead, LW_STREAM_GROUP,
                         long_rows ? LW_LINE : LW_STREAM_GROUP * LW_LINE, 1, bias, out + k);
    }
    for (; k < count; k++, at += stride) {
        const LW_ELEMENT *row = (const LW_ELEMENT *)at;
        LW_NAME(_group_)(q, &row, 1, n, NULL, 0, 0, 0, bias, out + k);
    }
}

void LW_NAME(_ids_)(const LW_QUERY *q, const LW_ELEMENT *base, size_t stride, const uint32_t *ids,
                    size_t count, size_t n, LW_RESULT *out) {
#ifdef WIDE
    if (count >= LW_WIDE_ROWS && n <= LW_WIDE) {
        LW_NAME(_wide_ids_)(q, base, stride, ids, count, n, out);
        return;
    }
#endif
#define ROW(k) lw_at(base, (size_t)ids[k] * stride)
    const size_t bytes = n * sizeof(LW_ELEMENT);
    for (size_t line = 0; line < LW_HEAD_LINES * LW_LINE && line < bytes; line += LW_LINE)
        for (size_t k = 0; k < GROUP && k < count; k++) __builtin_prefetch(ROW(k) + line, 0, 2);
    const BIAS bias = LW_NAME(_bias_)(q, n);
    const LW_ELEMENT *row[GROUP];
    size_t k = 0;
    for (; k + GROUP <= count; k += GROUP) {
        const char *ahead[GROUP];
        LW_UNROLL for (int r = 0; r < GROUP; r++) {
            row[r] = (const LW_ELEMENT *)ROW(k + r);
            ahead[r] = k + GROUP + r < count ? ROW(k + GROUP + r) : ROW(k + r);
        }
        LW_NAME(_group_)(q, row, GROUP, n, ahead, GROUP, LW_LINE, 0, bias, out + k);
    }
    for (size_t r = 0; k + r < count; r++) row[r] = (const LW_ELEMENT *)ROW(k + r);
    const LW_ELEMENT **rest = row;
    if (GROUP > 4 && k + 4 <= count) {
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

/* `Q` queries against four rows: a row's register is loaded once for all of them. */
LW_INLINE void LW_NAME(_block_)(const LW_QUERY *const *q, const int Q, const LW_ELEMENT *const *row, size_t n,
                                const BIAS *bias, LW_RESULT *out, size_t out_stride) {
    ACC acc[TILE * 4];
    LW_UNROLL for (int j = 0; j < Q * 4; j++) acc[j] = ZERO;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const VEC y[4] = {LOAD(row[0] + i), LOAD(row[1] + i), LOAD(row[2] + i), LOAD(row[3] + i)};
        LW_UNROLL for (int j = 0; j < Q; j++) {
            const QVEC x = LOADQ(q[j], i, n);
            LW_UNROLL for (int r = 0; r < 4; r++) acc[j * 4 + r] = ADD(acc[j * 4 + r], x, y[r]);
        }
    }
    if (i < n) {
        const size_t k = n - i;
        const VEC y[4] = {LOAD_TAIL(row[0] + i, k), LOAD_TAIL(row[1] + i, k), LOAD_TAIL(row[2] + i, k),
                          LOAD_TAIL(row[3] + i, k)};
        LW_UNROLL for (int j = 0; j < Q; j++) {
            const QVEC x = LOADQ_TAIL(q[j], i, n, k);
            LW_UNROLL for (int r = 0; r < 4; r++) acc[j * 4 + r] = ADD(acc[j * 4 + r], x, y[r]);
        }
    }
    LW_UNROLL for (int j = 0; j < Q; j++) {
        TOTAL total[4];
        SUM4((acc + j * 4), total);
        LW_UNROLL for (int r = 0; r < 4; r++) out[j * out_stride + r] = FINISH(total[r], bias[j]);
    }
}

void LW_NAME(_tile_)(const LW_QUERY *q, size_t q_stride, size_t queries, const LW_ELEMENT *base,
                     size_t stride, size_t count, size_t n, LW_RESULT *out, size_t out_stride) {
#ifdef WIDE
    const size_t blocks = queries / TILE;
    if (count >= LW_WIDE_ROWS && blocks && n <= LW_WIDE / TILE) {
        LW_NAME(_wide_tile_)(q, q_stride, blocks, base, stride, count, n, out, out_stride);
        q = (const LW_QUERY *)lw_at(q, blocks * TILE * q_stride);
        out += blocks * TILE * out_stride;
        queries %= TILE;
    }
#endif
    const size_t bytes = n * sizeof(LW_ELEMENT), fit = LW_PANEL / (bytes + !bytes);
    const size_t panel = fit < 4 ? 4 : fit - fit % 4;
    for (size_t first = 0; first < count; first += panel) {
        const size_t last = count - first < panel ? count : first + panel;
        for (size_t j = 0; j < queries;) {
            const int Q = queries - j >= TILE ? TILE : 1;
            const LW_QUERY *query[TILE];
            BIAS bias[TILE];
            for (int t = 0; t < Q; t++) {
                query[t] = (const LW_QUERY *)lw_at(q, (j + t) * q_stride);
                bias[t] = LW_NAME(_bias_)(query[t], n);
            }
            size_t k = first;
            for (; k + 4 <= last; k += 4) {
                const LW_ELEMENT *row[4];
                LW_UNROLL for (int r = 0; r < 4; r++) row[r] =
                    (const LW_ELEMENT *)lw_at(base, (k + r) * stride);
                LW_RESULT *to = out + j * out_stride + k;
                if (Q == TILE)
                    LW_NAME(_block_)(query, TILE, row, n, bias, to, out_stride);
                else
                    LW_NAME(_block_)(query, 1, row, n, bias, to, out_stride);
            }
            for (; k < last; k++) {
                const LW_ELEMENT *row = (const LW_ELEMENT *)lw_at(base, k * stride);
                for (int t = 0; t < Q; t++)
                    LW_NAME(_group_)(query[t], &row, 1, n, NULL, 0, 0, 0, bias[t],
                                     out + (j + t) * out_stride + k);
            }
            j += Q;
        }
    }
}

#undef LW_OP
#undef ADD
#undef BIAS
#undef BIAS_ADD
#undef BACC
#undef BZERO
#undef BMERGE
#undef BSUM
#undef ONE
#undef FINISH
