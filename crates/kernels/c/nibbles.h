/* Kernels on two numbers a byte, from the words REG … of metrics.h and these:
 *   BYTES, BYTES_LANES, BYTES_LOAD(p), BYTES_TAIL(p, k)
 *   LOW(v), HIGH(v)           the halves of each byte as bytes 0 to 15
 *   FLIP(v)                   v with bit 3 of each half flipped: two's complement becomes 8 more, 0 to 15
 *   LESS8(v)                  each byte less 8
 *   APART(x, y)               |x - y| of bytes 0 to 15
 *   EIGHTS                    bytes of 8
 *   MAC(acc, u, s, v, t)      acc plus u * s and v * t, bytes 0 to 15 times signed bytes
 * The halves of a row are split as it is loaded, once for all queries. */

typedef struct {
    BYTES low, high;
} lw_halves;
static inline lw_halves lw_split(BYTES v) { return (lw_halves){LOW(v), HIGH(v)}; }
static inline lw_halves lw_split_signed(BYTES v) {
    const lw_halves h = lw_split(FLIP(v));
    return (lw_halves){LESS8(h.low), LESS8(h.high)};
}
static inline REG lw_square_halves(REG acc, lw_halves x, lw_halves y) {
    const BYTES low = APART(x.low, y.low), high = APART(x.high, y.high);
    return MAC(acc, low, low, high, high);
}

#define VEC lw_halves
#define LANES BYTES_LANES
#define LOAD(p) lw_split(BYTES_LOAD(p))
#define LOAD_TAIL(p, k) lw_split(BYTES_TAIL(p, k))
#define LW_TYPE u4
#define LW_NO_COSINE
#define DOT(acc, q, v) MAC(acc, (q).low, (v).low, (q).high, (v).high)
#define SQUARE(acc, q, v) lw_square_halves(acc, q, v)
#include "metrics.h"

/* q[i] meets the high half of row byte i, q[n + i] the low one. */
#define QVEC lw_halves
#define LOADQ(q, i, n) ((lw_halves){BYTES_LOAD((q) + (n) + (i)), BYTES_LOAD((q) + (i))})
#define LOADQ_TAIL(q, i, n, k) ((lw_halves){BYTES_TAIL((q) + (n) + (i), k), BYTES_TAIL((q) + (i), k)})
#define VEC lw_halves
#define LANES BYTES_LANES
#define LOAD(p) lw_split(BYTES_LOAD(p))
#define LOAD_TAIL(p, k) lw_split(BYTES_TAIL(p, k))
#define ACC REG
#define ZERO REG_ZERO
#define MERGE(x, y) REG_ADD(x, y)
#define SUM(acc) REG_SUM(acc)
#define SUM4(accs, out) REG_SUM4(accs, out)
#define LW_OP dot
#define LW_TYPE i8u4
#define ADD(acc, q, v) MAC(acc, (v).low, (q).low, (v).high, (q).high)
#include "loops.h"
/* Differences of numbers 0 to 15 fit a byte, those of any bytes would not. */
#undef LW_TYPE
#define LW_OP l2
#define LW_TYPE u8u4
#define ADD(acc, q, v) lw_square_halves(acc, q, v)
#include "loops.h"
#include "forget.h"

#define ACC REG
#define ZERO REG_ZERO
#define MERGE(x, y) REG_ADD(x, y)
#define SUM(acc) REG_SUM(acc)
#define SUM4(accs, out) REG_SUM4(accs, out)

/* Both 8 too large: the differences are right. */
#define VEC lw_halves
#define LANES BYTES_LANES
#define LOAD(p) lw_split(FLIP(BYTES_LOAD(p)))
#define LOAD_TAIL(p, k) lw_split(FLIP(BYTES_TAIL(p, k)))
#define LW_OP l2
#define LW_TYPE i4
#define ADD(acc, q, v) lw_square_halves(acc, q, v)
#include "loops.h"

/* The row is 8 too large, so the total is 8 * sum(q) too large. Past a tail the query is 0. */
#undef LOADQ
#undef LOADQ_TAIL
#define LOADQ(q, i, n) lw_split_signed(BYTES_LOAD((q) + (i)))
#define LOADQ_TAIL(q, i, n, k) lw_split_signed(BYTES_TAIL((q) + (i), k))
#define LW_OP dot
#define ADD(acc, q, v) MAC(acc, (v).low, (q).low, (v).high, (q).high)
#define BIAS_ADD(acc, q) MAC(acc, EIGHTS, (q).low, EIGHTS, (q).high)
#define FINISH(total, bias) ((total) - (bias))
#include "loops.h"
#include "forget.h"
