/* VNNI: products of bytes, four added into each 32-bit lane by one instruction, DPBUSD, which multiplies unsigned by
 * signed bytes.
 *
 * A signed row byte v becomes unsigned as v + 128 (its top bit flipped), so a total is too large by 128 * sum(q); an
 * unsigned one becomes signed as v - 128 the same way, and a total too small by as much. Either depends on the query
 * alone. A square has one factor of either kind, v * v = v * (v - 128) + 128 * v, and the bytes are added up beside
 * it. Sums wrap modulo 2^32 on the way; the end is exact, since the true total fits.
 *   DPBUSD(acc, u, s)         acc plus the products of unsigned u and signed s
 *   APART(x, y)               |x - y| of unsigned bytes */
#include "cosine.h"

#define TOP P(set1_epi8)((char)0x80)
#define FLIP(v) I_XOR(v, TOP)

/* Sums of products and of bytes. */
typedef struct {
    INTS product, bytes;
} lw_squares;
static inline lw_squares lw_squares_zero(void) { return (lw_squares){I_ZERO, I_ZERO}; }
static inline lw_squares lw_squares_add(lw_squares x, lw_squares y) {
    return (lw_squares){P(add_epi32)(x.product, y.product), P(add_epi32)(x.bytes, y.bytes)};
}
static inline INTS lw_128_times(INTS bytes) { return P(slli_epi32)(bytes, 7); }
/* acc plus the squares of unsigned bytes, and their total. */
static inline lw_squares lw_square_u8(lw_squares acc, INTS v) {
    return (lw_squares){DPBUSD(acc.product, v, FLIP(v)), DPBUSD(acc.bytes, v, P(set1_epi8)(1))};
}
static inline INTS lw_squares_of_u8(lw_squares acc) {
    return P(add_epi32)(acc.product, lw_128_times(acc.bytes));
}
/* The same for signed bytes; `u` is v with its top bit flipped. */
static inline lw_squares lw_square_i8(lw_squares acc, INTS v, INTS u) {
    return (lw_squares){DPBUSD(acc.product, u, v), DPBUSD(acc.bytes, P(set1_epi8)(1), v)};
}
static inline INTS lw_squares_of_i8(lw_squares acc) {
    return P(sub_epi32)(acc.product, lw_128_times(acc.bytes));
}

#define VEC INTS
#define LANES INT_BYTES
#define LOAD(p) FLIP(I_LOAD(p))
#define LOAD_TAIL(p, k) FLIP(I_TAIL(p, k))
#define LOADQ(q, i, n) I_LOAD((q) + (i))
#define LOADQ_TAIL(q, i, n, k) I_TAIL((q) + (i), k)
#define ACC INTS
#define ZERO I_ZERO
#define MERGE(x, y) P(add_epi32)(x, y)
#define SUM(acc) I_SUM(acc)
#define SUM4(accs, out) I_SUM4(accs, out)

#define LW_OP dot
#define LW_TYPE i8
#define ADD(acc, q, v) DPBUSD(acc, v, q)
#define BIAS_ADD(acc, q) DPBUSD(acc, TOP, q)
#define FINISH(total, bias) ((int32_t)((uint32_t)(total) - (uint32_t)(bias)))
#define ONE(acc, bacc) I_SUM(P(sub_epi32)(acc, bacc))
#include "loops.h"

#undef LW_TYPE
#define LW_OP dot
#define LW_TYPE u8
#define ADD(acc, q, v) DPBUSD(acc, q, v)
#define BIAS_ADD(acc, q) DPBUSD(acc, q, TOP)
#define FINISH(total, bias) ((int32_t)((uint32_t)(total) - (uint32_t)(bias)))
#define ONE(acc, bacc) I_SUM(P(sub_epi32)(acc, bacc))
#include "loops.h"
#include "forget.h"

/* Bytes are as far apart with their top bits flipped. */
#define VEC INTS
#define LANES INT_BYTES
#define ACC lw_squares
#define ZERO lw_squares_zero()
#define MERGE(x, y) lw_squares_add(x, y)
#define SUM(acc) I_SUM(lw_squares_of_u8(acc))
#define SUM4(accs, out)                                                                                      \
    do {                                                                                                     \
        const INTS sums[4] = {lw_squares_of_u8((accs)[0]), lw_squares_of_u8((accs)[1]),                      \
                              lw_squares_of_u8((accs)[2]), lw_squares_of_u8((accs)[3])};                     \
        I_SUM4(sums, out);                                                                                   \
    } while (0)
#define CHAINS 2
#define GROUP (LW_REGISTERS / 4)
#define TILE (LW_REGISTERS / 16)
#define LOAD(p) I_LOAD(p)
#define LOAD_TAIL(p, k) I_TAIL(p, k)
#define LW_OP l2
#define LW_TYPE u8
#define ADD(acc, q, v) lw_square_u8(acc, APART(q, v))
#include "loops.h"
#undef LOAD
#undef LOAD_TAIL
#undef LW_TYPE
#define LOAD(p) FLIP(I_LOAD(p))
#define LOAD_TAIL(p, k) FLIP(I_TAIL(p, k))
#define LW_OP l2
#define LW_TYPE i8
#define ADD(acc, q, v) lw_square_u8(acc, APART(q, v))
#include "loops.h"
#include "forget.h"

/* A cosine needs the row's length beside the product, and the query's. */
typedef struct {
    INTS dot;
    lw_squares norm;
} lw_cosine_registers;
typedef struct {
    int32_t dot, norm;
} lw_cosine_total;
typedef struct {
    int32_t bytes, norm;
} lw_cosine_bias;
static inline lw_cosine_registers lw_cosine_zero(void) {
    return (lw_cosine_registers){I_ZERO, lw_squares_zero()};
}
static inline lw_cosine_registers lw_cosine_add(lw_cosine_registers x, lw_cosine_registers y) {
    return (lw_cosine_registers){P(add_epi32)(x.dot, y.dot), lw_squares_add(x.norm, y.norm)};
}
/* x plus or minus 128 * y, which is what the query's bytes owe to a product. */
static inline int32_t lw_plus_128(int32_t x, int32_t y, const int sign) {
    return (int32_t)((uint32_t)x + (uint32_t)sign * 128u * (uint32_t)y);
}
#define VEC INTS
#define LANES INT_BYTES
#define ACC lw_cosine_registers
#define ZERO lw_cosine_zero()
#define MERGE(x, y) lw_cosine_add(x, y)
#define TOTAL lw_cosine_total
#define CHAINS 2
#define GROUP (LW_REGISTERS / 8)
#define TILE (LW_REGISTERS / 16)
#define LOAD(p) I_LOAD(p)
#define LOAD_TAIL(p, k) I_TAIL(p, k)

#define SUM(acc) ((lw_cosine_total){I_SUM((acc).dot), I_SUM(lw_squares_of_u8((acc).norm))})
#define LW_OP cosine
#define LW_TYPE u8
#define BIAS lw_cosine_bias
#define BACC lw_squares
#define BZERO lw_squares_zero()
#define BMERGE(x, y) lw_squares_add(x, y)
#define BSUM(acc) ((lw_cosine_bias){I_SUM((acc).bytes), I_SUM(lw_squares_of_u8(acc))})
#define BIAS_ADD(acc, q) lw_square_u8(acc, q)
#define ADD(acc, q, v) ((lw_cosine_registers){DPBUSD((acc).dot, q, FLIP(v)), lw_square_u8((acc).norm, v)})
#define FINISH(total, bias) lw_cosine(lw_plus_128((total).dot, (bias).bytes, 1), (total).norm, (bias).norm)
#include "loops.h"

#undef LW_TYPE
#undef SUM
#define SUM(acc) ((lw_cosine_total){I_SUM((acc).dot), I_SUM(lw_squares_of_i8((acc).norm))})
#define LW_OP cosine
#define LW_TYPE i8
#define BIAS lw_cosine_bias
#define BACC lw_squares
#define BZERO lw_squares_zero()
#define BMERGE(x, y) lw_squares_add(x, y)
#define BSUM(acc) ((lw_cosine_bias){I_SUM((acc).bytes), I_SUM(lw_squares_of_i8(acc))})
#define BIAS_ADD(acc, q) lw_square_i8(acc, q, FLIP(q))
#define ADD(acc, q, v)                                                                                       \
    ((lw_cosine_registers){DPBUSD((acc).dot, FLIP(v), q), lw_square_i8((acc).norm, v, FLIP(v))})
#define FINISH(total, bias) lw_cosine(lw_plus_128((total).dot, (bias).bytes, -1), (total).norm, (bias).norm)
#include "loops.h"
#include "forget.h"

#undef APART
#undef FLIP
#define REG INTS
#define REG_TOTAL int32_t
#define REG_ZERO I_ZERO
#define REG_ADD(x, y) P(add_epi32)(x, y)
#define REG_SUM(x) I_SUM(x)
#define REG_SUM4(xs, out) I_SUM4(xs, out)
#define MAC(acc, u, s, v, t) DPBUSD(DPBUSD(acc, u, s), v, t)
#include "x86_nibbles.h"
