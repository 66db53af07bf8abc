/* VNNI: products of bytes, four added into each 32-bit lane by one instruction, DPBUSD, which multiplies unsigned by
 * signed bytes; DPWSSD does it with pairs of 16 bits.
 *
 * A signed row byte v becomes unsigned as v + 128 (its top bit flipped), so a total is too large by 128 * sum(q); an
 * unsigned one becomes signed as v - 128 the same way, and a total too small by as much. Either depends on the query
 * alone. Sums wrap modulo 2^32 on the way; the end is exact, since the true total fits. */

#define REG INTS
#define REG_TOTAL int32_t
#define REG_ZERO I_ZERO
#define REG_ADD(x, y) P(add_epi32)(x, y)
#define REG_SUM(x) I_SUM(x)
#define REG_SUM4(xs, out) I_SUM4(xs, out)
#define TOP P(set1_epi8)((char)0x80)

#define VEC INTS
#define LANES INT_BYTES
#define LOAD(p) I_XOR(I_LOAD(p), TOP)
#define LOAD_TAIL(p, k) I_XOR(I_TAIL(p, k), TOP)
#define LOADQ(q, i, n) I_LOAD((q) + (i))
#define LOADQ_TAIL(q, i, n, k) I_TAIL((q) + (i), k)
#define ACC REG
#define ZERO REG_ZERO
#define MERGE(x, y) REG_ADD(x, y)
#define SUM(acc) REG_SUM(acc)
#define SUM4(accs, out) REG_SUM4(accs, out)

#define LW_OP dot
#define LW_TYPE i8
#define ADD(acc, q, v) DPBUSD(acc, v, q)
#define BIAS_ADD(acc, q) DPBUSD(acc, TOP, q)
#define FINISH(total, bias) ((int32_t)((uint32_t)(total) - (uint32_t)(bias)))
#include "loops.h"

#undef LW_TYPE
#define LW_OP dot
#define LW_TYPE u8
#define ADD(acc, q, v) DPBUSD(acc, q, v)
#define BIAS_ADD(acc, q) DPBUSD(acc, q, TOP)
#define FINISH(total, bias) ((int32_t)((uint32_t)(total) - (uint32_t)(bias)))
#include "loops.h"
#include "forget.h"

/* Differences, and a row's own length beside the product, need 16 bits. */
static inline INTS lw_square_words(INTS acc, INTS q, INTS v) {
    const INTS d = P(sub_epi16)(q, v);
    return DPWSSD(acc, d, d);
}
#define VEC INTS
#define LANES (INT_BYTES / 2)
#define LOAD(p) P(cvtepi8_epi16)(BYTES_HALF_LOAD(p))
#define LOAD_TAIL(p, k) P(cvtepi8_epi16)(BYTES_HALF_TAIL(p, k))
#define LW_TYPE i8
#define LW_NO_DOT
#define DOT DPWSSD
#define SQUARE lw_square_words
#include "metrics.h"

#define VEC INTS
#define LANES (INT_BYTES / 2)
#define LOAD(p) P(cvtepu8_epi16)(BYTES_HALF_LOAD(p))
#define LOAD_TAIL(p, k) P(cvtepu8_epi16)(BYTES_HALF_TAIL(p, k))
#define LW_TYPE u8
#define LW_NO_DOT
#define DOT DPWSSD
#define SQUARE lw_square_words
#include "metrics.h"

#define MAC(acc, u, s, v, t) DPBUSD(DPBUSD(acc, u, s), v, t)
#include "x86_nibbles.h"
