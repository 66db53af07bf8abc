/* Bytes, halves of bytes, and bits for SVE: four products of bytes are added into each 32-bit lane by one instruction.
 * The reductions go by 64 bits: the totals fit 32. */
static inline svint32_t multiply_s8(svint32_t acc, svint8_t x, svint8_t y) { return svdot_s32(acc, x, y); }
static inline svint32_t multiply_u8(svint32_t acc, svuint8_t x, svuint8_t y) {
    return svreinterpret_s32_u32(svdot_u32(svreinterpret_u32_s32(acc), x, y));
}
/* |a - b| of either kind of byte fits an unsigned byte. */
static inline svuint8_t apart_s8(svint8_t x, svint8_t y) {
    return svreinterpret_u8_s8(svabd_s8_x(svptrue_b8(), x, y));
}
static inline svint32_t square_s8(svint32_t acc, svint8_t q, svint8_t v) {
    const svuint8_t d = apart_s8(q, v);
    return multiply_u8(acc, d, d);
}
static inline svint32_t square_u8(svint32_t acc, svuint8_t q, svuint8_t v) {
    const svuint8_t d = svabd_u8_x(svptrue_b8(), q, v);
    return multiply_u8(acc, d, d);
}

#define REG svint32_t
#define REG_TOTAL int32_t
#define REG_ZERO svdup_n_s32(0)

#define LW_TYPE i8
#define EACH 8
#define VEC svint8_t
#define LOAD svld1_s8
#define DOT multiply_s8
#define SQUARE square_s8
#include "metrics_sve.h"

#define LW_TYPE u8
#define EACH 8
#define VEC svuint8_t
#define LOAD svld1_u8
#define DOT multiply_u8
#define SQUARE square_u8
#include "metrics_sve.h"

#define LW_TYPE i8
#define EACH 8
#define VEC svint8_t
#define LOAD svld1_s8
#define ACC svint32_t
#define ZERO svdup_n_s32(0)
#define MERGE(x, y) svadd_s32_x(svptrue_b32(), x, y)
#define SUM(acc) ((int32_t)svaddv_s32(svptrue_b32(), acc))
#define LW_OP l1
#define ADD(acc, q, v) multiply_u8(acc, apart_s8(q, v), svdup_n_u8(1))
#include "loops_sve.h"
#undef ACC
#undef ZERO
#undef MERGE
#undef SUM
#define ACC svuint8_t
#define ZERO svdup_n_u8(0)
#define MERGE(x, y) svmax_u8_x(svptrue_b8(), x, y)
#define SUM(acc) ((int32_t)svmaxv_u8(svptrue_b8(), acc))
#define LW_OP linf
#define ADD(acc, q, v) svmax_u8_x(svptrue_b8(), acc, apart_s8(q, v))
#include "loops_sve.h"
#undef EACH
#include "forget.h"

/* Halves of bytes, as bytes: all fit signed ones. A vector stays packed until it is added; what two rows or two queries
 * have in common is split once. */
static inline svint8_t low(svuint8_t v) { return svreinterpret_s8_u8(svand_n_u8_x(svptrue_b8(), v, 0x0f)); }
static inline svint8_t high(svuint8_t v) { return svreinterpret_s8_u8(svlsr_n_u8_x(svptrue_b8(), v, 4)); }
/* Bit 3 of each half flipped: two's complement becomes 8 more, 0 to 15. */
static inline svuint8_t flip(svuint8_t v) { return sveor_n_u8_x(svptrue_b8(), v, 0x88); }
static inline svint8_t less8(svint8_t v) { return svsub_n_s8_x(svptrue_b8(), v, 8); }

static inline svint32_t multiply_u4(svint32_t acc, svuint8_t q, svuint8_t v) {
    return multiply_s8(multiply_s8(acc, low(q), low(v)), high(q), high(v));
}
static inline svint32_t square_u4(svint32_t acc, svuint8_t q, svuint8_t v) {
    return square_s8(square_s8(acc, low(q), low(v)), high(q), high(v));
}
/* The row's numbers are taken as 8 more than they are; add8 makes what that adds to the total. */
static inline svint32_t multiply_i4(svint32_t acc, svuint8_t q, svuint8_t v) {
    const svuint8_t x = flip(q), y = flip(v);
    return multiply_s8(multiply_s8(acc, less8(low(x)), low(y)), less8(high(x)), high(y));
}
static inline svint32_t add8(svint32_t acc, svuint8_t q) {
    const svuint8_t x = flip(q);
    const svint8_t eights = svdup_n_s8(8);
    return multiply_s8(multiply_s8(acc, less8(low(x)), eights), less8(high(x)), eights);
}

#define LW_TYPE u4
#define LW_NO_COSINE
#define EACH 8
#define VEC svuint8_t
#define LOAD svld1_u8
#define DOT multiply_u4
#define SQUARE square_u4
#include "metrics_sve.h"

/* q[i] meets the high half of row byte i, q[n + i] the low one. */
static inline svint32_t multiply_i8u4(svint32_t acc, svint8x2_t q, svuint8_t v) {
    return multiply_s8(multiply_s8(acc, svget2_s8(q, 0), high(v)), svget2_s8(q, 1), low(v));
}
static inline svint32_t square_u8u4(svint32_t acc, svint8x2_t q, svuint8_t v) {
    return square_s8(square_s8(acc, svget2_s8(q, 0), high(v)), svget2_s8(q, 1), low(v));
}
static inline svint8x2_t load_i8u4(svbool_t pg, const int8_t *q, size_t n) {
    return svcreate2_s8(svld1_s8(pg, q), svld1_s8(pg, q + n));
}
#define EACH 8
#define VEC svuint8_t
#define LOAD svld1_u8
#define ACC REG
#define ZERO REG_ZERO
#define MERGE(x, y) svadd_s32_x(svptrue_b32(), x, y)
#define SUM(acc) ((int32_t)svaddv_s32(svptrue_b32(), acc))
#define QVEC svint8x2_t
#define LOADQ(pg, q, i, n) load_i8u4(pg, (const int8_t *)(q) + (i), n)
#define LW_TYPE i8u4
#define LW_OP dot
#define ADD(acc, q, v) multiply_i8u4(acc, q, v)
#include "loops_sve.h"
#undef LW_TYPE
#define LW_TYPE u8u4
#define LW_OP l2
#define ADD(acc, q, v) square_u8u4(acc, q, v)
#include "loops_sve.h"

#undef LW_TYPE
#undef QVEC
#undef LOADQ
#define LW_TYPE i4
#define LW_OP l2
#define ADD(acc, q, v) square_u4(acc, flip(q), flip(v))
#include "loops_sve.h"

#define LW_OP dot
#define ADD(acc, q, v) multiply_i4(acc, q, v)
#define BIAS_ADD(acc, q) add8(acc, q)
#define FINISH(total, second, bias) ((void)(second), (total) - (bias))
#include "loops_sve.h"
#undef EACH
#include "forget.h"

/* Counts of bits, added up as products with what a bit is worth. */
static inline svint32_t count(svint32_t acc, svuint8_t v, uint8_t worth) {
    return multiply_u8(acc, svcnt_u8_x(svptrue_b8(), v), svdup_n_u8(worth));
}
/* The query's planes follow each other. */
static inline svuint8x4_t load_planes(svbool_t pg, const uint8_t *q, size_t n) {
    return svcreate4_u8(svld1_u8(pg, q), svld1_u8(pg, q + n), svld1_u8(pg, q + 2 * n),
                        svld1_u8(pg, q + 3 * n));
}
static inline svint32_t count_planes(svint32_t acc, svuint8x4_t q, svuint8_t v) {
    const svbool_t all = svptrue_b8();
    acc = count(acc, svand_u8_x(all, svget4_u8(q, 0), v), 1);
    acc = count(acc, svand_u8_x(all, svget4_u8(q, 1), v), 2);
    acc = count(acc, svand_u8_x(all, svget4_u8(q, 2), v), 4);
    return count(acc, svand_u8_x(all, svget4_u8(q, 3), v), 8);
}

#define EACH 8
#define VEC svuint8_t
#define LOAD svld1_u8
#define ACC REG
#define ZERO REG_ZERO
#define MERGE(x, y) svadd_s32_x(svptrue_b32(), x, y)
#define SUM(acc) ((int32_t)svaddv_s32(svptrue_b32(), acc))
#define TOTAL int32_t
#define LW_TYPE bits
#define LW_OP hamming
#define ADD(acc, q, v) count(acc, sveor_u8_x(svptrue_b8(), q, v), 1)
#include "loops_sve.h"

#define LW_OP jaccard
#define ADD(acc, q, v) count(acc, svand_u8_x(svptrue_b8(), q, v), 1)
#define ADD2(acc, q, v) count(acc, svorr_u8_x(svptrue_b8(), q, v), 1)
#define FINISH(total, second, bias) ((void)(bias), lw_jaccard((lw_overlap_total){total, second}))
#include "loops_sve.h"

#undef LW_TYPE
#undef QVEC
#undef LOADQ
#define LW_TYPE u4bits
#define QVEC svuint8x4_t
#define LOADQ(pg, q, i, n) load_planes(pg, (q) + (i), n)
#define LW_OP dot
#define ADD(acc, q, v) count_planes(acc, q, v)
#include "loops_sve.h"
#undef EACH
#include "forget.h"
#undef REG
#undef REG_TOTAL
#undef REG_ZERO
