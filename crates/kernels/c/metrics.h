/* dot, l2 and cosine of LW_TYPE, but for those that LW_NO_DOT, LW_NO_L2 and LW_NO_COSINE leave out: from the words of
 * loops.h for its elements (VEC, LANES, LOAD …), and these:
 *   REG, REG_TOTAL            an accumulator, and the type of its total (float or int32_t)
 *   REG_ZERO, REG_ADD(x, y), REG_SUM(x), REG_SUM4(xs, out)
 *   DOT(acc, q, v)            acc plus the products
 *   SQUARE(acc, q, v)         acc plus the squared differences
 * The words for the elements are forgotten at the end. A cosine needs the row's length beside the product: two
 * accumulators a row; the query's own is its bias. */
#include "cosine.h"

#define ACC REG
#define ZERO REG_ZERO
#define MERGE(x, y) REG_ADD(x, y)
#define SUM(acc) REG_SUM(acc)
#define SUM4(accs, out) REG_SUM4(accs, out)

#ifndef LW_NO_DOT
#define LW_OP dot
#define ADD(acc, q, v) DOT(acc, q, v)
#include "loops.h"
#endif

#ifndef LW_NO_L2
#define LW_OP l2
#define ADD(acc, q, v) SQUARE(acc, q, v)
#include "loops.h"
#endif

#ifndef LW_NO_COSINE
#undef ACC
#undef ZERO
#undef MERGE
#undef SUM
#undef SUM4
#undef TOTAL
#undef WIDE
#undef GROUP
#undef TILE
#define LW_OP cosine
typedef struct {
    REG dot, norm;
} LW_NAME(_registers);
typedef struct {
    REG_TOTAL dot, norm;
} LW_NAME(_total);
#define ACC LW_NAME(_registers)
#define TOTAL LW_NAME(_total)
#define ZERO ((ACC){REG_ZERO, REG_ZERO})
#define ADD(acc, q, v) ((ACC){DOT((acc).dot, q, v), DOT((acc).norm, v, v)})
#define MERGE(x, y) LW_NAME(_merge)(x, y)
static inline ACC LW_NAME(_merge)(ACC x, ACC y) {
    return (ACC){REG_ADD(x.dot, y.dot), REG_ADD(x.norm, y.norm)};
}
#define SUM(acc) LW_NAME(_sum)(acc)
static inline TOTAL LW_NAME(_sum)(ACC acc) { return (TOTAL){REG_SUM(acc.dot), REG_SUM(acc.norm)}; }
#define GROUP (LW_REGISTERS / 4)
#define TILE (LW_REGISTERS / 16)
#define BIAS REG_TOTAL
#define BACC REG
#define BZERO REG_ZERO
#define BMERGE(x, y) REG_ADD(x, y)
#define BSUM(acc) REG_SUM(acc)
#define BIAS_ADD(acc, q) DOT(acc, q, q)
#define FINISH(total, bias) lw_cosine((total).dot, (total).norm, bias)
#include "loops.h"
#endif

#undef LW_NO_DOT
#undef LW_NO_L2
#undef LW_NO_COSINE
#undef DOT
#undef SQUARE
#include "forget.h"
