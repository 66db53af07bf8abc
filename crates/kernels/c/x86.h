/* Every kernel by what SSE4.1, AVX2 and AVX-512 have in common, at each one's width. They say:
 *   P(name)                   the intrinsic `name` of this width
 *   FLOATS, INTS, INT_BYTES, LW_REGISTERS
 *   I_AS_F, F_AS_I, I_ZERO, I_AND, I_XOR, I_OR
 *   FMA(a, b, acc), F_LOAD, F_TAIL, F_SUM, F_SUM4            floats
 *   I_LOAD, I_TAIL, I_SUM, I_SUM4                            bytes; totals of 32-bit lanes
 *   F16_LOAD, F16_TAIL, QUARTER_LOAD, QUARTER_TAIL, HALF_LOAD, HALF_TAIL
 *                             a register of floats from f16; as many bytes, or 16-bit words, as it has floats
 *   BYTES_HALF_LOAD, BYTES_HALF_TAIL                         half a register of bytes
 *   F_MOST(v), B_MOST(v)      largest 32-bit lane, largest unsigned byte
 *   SIXTEEN(v), FOLD16(v)     a 128-bit register in every such part; the sum of the parts as 16-bit lanes
 *   COUNT and the words of bits.h, where there is better than a table of halves */

/* Floats. */
#define REG FLOATS
#define REG_TOTAL float
#define REG_ZERO P(setzero_ps)()
#define REG_ADD(x, y) P(add_ps)(x, y)
#define REG_SUM(x) F_SUM(x)
#define REG_SUM4(xs, out) F_SUM4(xs, out)
#define F_LANES (INT_BYTES / 4)

static inline FLOATS lw_square_ps(FLOATS acc, FLOATS q, FLOATS v) {
    const FLOATS d = P(sub_ps)(q, v);
    return FMA(d, d, acc);
}
#define LW_DOT(acc, q, v) FMA(q, v, acc)

#define LW_TYPE f32
#define VEC FLOATS
#define LANES F_LANES
#define LOAD(p) F_LOAD(p)
#define LOAD_TAIL(p, k) F_TAIL(p, k)
#define DOT LW_DOT
#define SQUARE lw_square_ps
#include "metrics.h"

static inline void lw_widen_f16(const uint16_t *q, size_t n, float *to) {
    size_t i = 0;
    for (; i + F_LANES <= n; i += F_LANES) P(storeu_ps)(to + i, F16_LOAD(q + i));
    if (i < n) P(storeu_ps)(to + i, F16_TAIL(q + i, n - i));
}
#define WIDE f32f16
#define WIDEN(q, n, to) lw_widen_f16(q, n, to)
#define LW_TYPE f16
#define VEC FLOATS
#define LANES F_LANES
#define LOAD(p) F16_LOAD(p)
#define LOAD_TAIL(p, k) F16_TAIL(p, k)
#define DOT LW_DOT
#define SQUARE lw_square_ps
#include "metrics.h"

#define LOADQ(q, i, n) F_LOAD((q) + (i))
#define LOADQ_TAIL(q, i, n, k) F_TAIL((q) + (i), k)
#define LW_TYPE f32f16
#define LW_NO_COSINE
#define VEC FLOATS
#define LANES F_LANES
#define LOAD(p) F16_LOAD(p)
#define LOAD_TAIL(p, k) F16_TAIL(p, k)
#define DOT LW_DOT
#define SQUARE lw_square_ps
#include "metrics.h"

/* A bf16 is the upper half of a float. */
#define BF16(words) I_AS_F(P(slli_epi32)(P(cvtepu16_epi32)(words), 16))
#define LOADQ(q, i, n) F_LOAD((q) + (i))
#define LOADQ_TAIL(q, i, n, k) F_TAIL((q) + (i), k)
#define LW_TYPE f32bf16
#define LW_NO_COSINE
#define VEC FLOATS
#define LANES F_LANES
#define LOAD(p) BF16(HALF_LOAD(p))
#define LOAD_TAIL(p, k) BF16(HALF_TAIL(p, k))
#define DOT LW_DOT
#define SQUARE lw_square_ps
#include "metrics.h"

#define I8_PS(bytes) P(cvtepi32_ps)(P(cvtepi8_epi32)(bytes))
#define LOADQ(q, i, n) F_LOAD((q) + (i))
#define LOADQ_TAIL(q, i, n, k) F_TAIL((q) + (i), k)
#define LW_TYPE f32i8
#define LW_NO_COSINE
#define VEC FLOATS
#define LANES F_LANES
#define LOAD(p) I8_PS(QUARTER_LOAD(p))
#define LOAD_TAIL(p, k) I8_PS(QUARTER_TAIL(p, k))
#define DOT LW_DOT
#define SQUARE lw_square_ps
#include "metrics.h"

#define U8_PS(bytes) P(cvtepi32_ps)(P(cvtepu8_epi32)(bytes))
#define LOADQ(q, i, n) F_LOAD((q) + (i))
#define LOADQ_TAIL(q, i, n, k) F_TAIL((q) + (i), k)
#define LW_TYPE f32u8
#define LW_NO_COSINE
#define VEC FLOATS
#define LANES F_LANES
#define LOAD(p) U8_PS(QUARTER_LOAD(p))
#define LOAD_TAIL(p, k) U8_PS(QUARTER_TAIL(p, k))
#define DOT LW_DOT
#define SQUARE lw_square_ps
#include "metrics.h"

/* Two bf16 a lane: the odd ones as they stand, the even ones shifted up. */
typedef struct {
    FLOATS even, odd;
} lw_bf16_pair;
static inline lw_bf16_pair lw_bf16_split(INTS v) {
    const INTS upper = P(set1_epi32)((int)0xffff0000);
    return (lw_bf16_pair){I_AS_F(P(slli_epi32)(v, 16)), I_AS_F(I_AND(v, upper))};
}
#define LW_TYPE bf16
#define VEC lw_bf16_pair
#define LANES (2 * F_LANES)
#define LOAD(p) lw_bf16_split(I_LOAD(p))
#define LOAD_TAIL(p, k) lw_bf16_split(I_TAIL(p, 2 * (k)))
#define DOT(acc, q, v) FMA((q).odd, (v).odd, FMA((q).even, (v).even, acc))
#define SQUARE(acc, q, v) lw_square_ps(lw_square_ps(acc, (q).even, (v).even), (q).odd, (v).odd)
#include "metrics.h"

static inline FLOATS lw_apart_ps(FLOATS q, FLOATS v) {
    return I_AS_F(I_AND(F_AS_I(P(sub_ps)(q, v)), P(set1_epi32)(0x7fffffff)));
}
#define LW_TYPE f32
#define VEC FLOATS
#define LANES F_LANES
#define LOAD(p) F_LOAD(p)
#define LOAD_TAIL(p, k) F_TAIL(p, k)
#define ACC REG
#define ZERO REG_ZERO
#define MERGE(x, y) REG_ADD(x, y)
#define SUM(acc) REG_SUM(acc)
#define SUM4(accs, out) REG_SUM4(accs, out)
#define LW_OP l1
#define ADD(acc, q, v) P(add_ps)(acc, lw_apart_ps(q, v))
#include "loops.h"
#include "forget.h"

/* The bits of floats that are not negative are in the order of the floats, NaN above all: so none is lost. */
static inline float lw_most_ps(INTS v) {
    const union {
        int32_t bits;
        float value;
    } most = {F_MOST(v)};
    return most.value;
}
#define LW_TYPE f32
#define VEC FLOATS
#define LANES F_LANES
#define LOAD(p) F_LOAD(p)
#define LOAD_TAIL(p, k) F_TAIL(p, k)
#define ACC INTS
#define ZERO I_ZERO
#define MERGE(x, y) P(max_epi32)(x, y)
#define SUM(acc) lw_most_ps(acc)
#define LW_OP linf
#define ADD(acc, q, v) P(max_epi32)(acc, F_AS_I(lw_apart_ps(q, v)))
#include "loops.h"
#include "forget.h"

#undef REG
#undef REG_TOTAL
#undef REG_ZERO
#undef REG_ADD
#undef REG_SUM
#undef REG_SUM4

/* Bytes widened to 16 bits: a product of two, and the sum of two such products, fit 32 bits. */
#define REG INTS
#define REG_TOTAL int32_t
#define REG_ZERO I_ZERO
#define REG_ADD(x, y) P(add_epi32)(x, y)
#define REG_SUM(x) I_SUM(x)
#define REG_SUM4(xs, out) I_SUM4(xs, out)

static inline INTS lw_square_epi16(INTS acc, INTS q, INTS v) {
    const INTS d = P(sub_epi16)(q, v);
    return P(add_epi32)(acc, P(madd_epi16)(d, d));
}
#define LW_TYPE i8
#define VEC INTS
#define LANES (INT_BYTES / 2)
#define LOAD(p) P(cvtepi8_epi16)(BYTES_HALF_LOAD(p))
#define LOAD_TAIL(p, k) P(cvtepi8_epi16)(BYTES_HALF_TAIL(p, k))
#define DOT(acc, q, v) P(add_epi32)(acc, P(madd_epi16)(q, v))
#define SQUARE lw_square_epi16
#include "metrics.h"

#define LW_TYPE u8
#define VEC INTS
#define LANES (INT_BYTES / 2)
#define LOAD(p) P(cvtepu8_epi16)(BYTES_HALF_LOAD(p))
#define LOAD_TAIL(p, k) P(cvtepu8_epi16)(BYTES_HALF_TAIL(p, k))
#define DOT(acc, q, v) P(add_epi32)(acc, P(madd_epi16)(q, v))
#define SQUARE lw_square_epi16
#include "metrics.h"

/* Signed bytes with the top bit flipped are as far apart, and unsigned. */
#define UNSIGNED(v) I_XOR(v, P(set1_epi8)((char)0x80))
#define LW_TYPE i8
#define VEC INTS
#define LANES INT_BYTES
#define LOAD(p) UNSIGNED(I_LOAD(p))
#define LOAD_TAIL(p, k) UNSIGNED(I_TAIL(p, k))
#define ACC INTS
#define ZERO I_ZERO
/* Sums of bytes stay below 2^31, so the high halves of the 64-bit lanes are zero and 32-bit sums are right. */
#define MERGE(x, y) P(add_epi64)(x, y)
#define SUM(acc) I_SUM(acc)
#define SUM4(accs, out) I_SUM4(accs, out)
#define LW_OP l1
#define ADD(acc, q, v) P(add_epi64)(acc, P(sad_epu8)(q, v))
#include "loops.h"
#undef MERGE
#undef SUM
#undef SUM4
#define MERGE(x, y) P(max_epu8)(x, y)
#define SUM(acc) B_MOST(acc)
#define LW_OP linf
#define ADD(acc, q, v) P(max_epu8)(acc, I_OR(P(subs_epu8)(q, v), P(subs_epu8)(v, q)))
#include "loops.h"
#include "forget.h"

static inline INTS lw_mac_nibbles(INTS acc, INTS u, INTS s, INTS v, INTS t) {
    const INTS pairs = P(add_epi16)(P(maddubs_epi16)(u, s), P(maddubs_epi16)(v, t));
    return P(add_epi32)(acc, P(madd_epi16)(pairs, P(set1_epi16)(1)));
}
#define MAC lw_mac_nibbles
#include "x86_nibbles.h"

#ifndef COUNT
/* Bits of a byte by looking both its halves up (Mula), bytes summed to 64 bits by SAD. */
static inline INTS lw_count_bytes(INTS v) {
    const INTS low = P(set1_epi8)(0x0f);
    const INTS counts = SIXTEEN(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    return P(add_epi8)(P(shuffle_epi8)(counts, I_AND(v, low)),
                       P(shuffle_epi8)(counts, I_AND(P(srli_epi16)(v, 4), low)));
}
static inline INTS lw_count(INTS acc, INTS v) {
    return P(add_epi64)(acc, P(sad_epu8)(lw_count_bytes(v), I_ZERO));
}
static inline INTS lw_doubled(INTS v) { return P(add_epi8)(v, v); }
/* 8 bits worth at most 15 each fit a byte. */
static inline INTS lw_count4(INTS acc, INTS v0, INTS v1, INTS v2, INTS v3) {
    INTS sum = P(add_epi8)(lw_count_bytes(v2), lw_doubled(lw_count_bytes(v3)));
    sum = P(add_epi8)(lw_count_bytes(v1), lw_doubled(sum));
    sum = P(add_epi8)(lw_count_bytes(v0), lw_doubled(sum));
    return P(add_epi64)(acc, P(sad_epu8)(sum, I_ZERO));
}
#define COUNT lw_count
#define COUNT4 lw_count4
#include "x86_bits.h"
#else
#include "bits.h"
#endif

#include "x86_scan.h"
