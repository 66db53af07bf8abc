/* metrics.h for SVE: dot, l2 and cosine of LW_TYPE, but for those that LW_NO_L2 and LW_NO_COSINE leave out. From the
 * words of loops_sve.h for its elements (EACH, VEC, LOAD …), and these:
 *   REG, REG_ZERO, REG_TOTAL  an accumulator of four-byte lanes, an empty one, the type of its total
 *   DOT(acc, q, v)            acc plus the products
 *   SQUARE(acc, q, v)         acc plus the squared differences
 * The words for the elements are forgotten at the end. */
#include "cosine.h"

#define ACC REG
#define ZERO REG_ZERO
#define MERGE(x, y) svadd_x(svptrue_b32(), x, y)
#define TOTAL REG_TOTAL
#define SUM(acc) ((REG_TOTAL)svaddv(svptrue_b32(), acc))

#define LW_OP dot
#define ADD(acc, q, v) DOT(acc, q, v)
#include "loops_sve.h"

#ifndef LW_NO_L2
#define LW_OP l2
#define ADD(acc, q, v) SQUARE(acc, q, v)
#include "loops_sve.h"
#endif

#ifndef LW_NO_COSINE
#define LW_OP cosine
#define ADD(acc, q, v) DOT(acc, q, v)
#define ADD2(acc, q, v) DOT(acc, v, v)
#define BIAS_ADD(acc, q) DOT(acc, q, q)
#define FINISH(total, second, bias) lw_cosine(total, second, bias)
#include "loops_sve.h"
#endif

#undef LW_NO_L2
#undef LW_NO_COSINE
#undef DOT
#undef SQUARE
#undef EACH
#include "forget.h"
