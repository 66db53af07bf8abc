/* SVE (Armv8.2, optional): registers of any length. Compiled with -march=armv8.2-a+sve. */
#include <arm_sve.h>

#include "cosine.h"

#include "lanewise_kernels.h"

#define LW_ISA sve

static inline svfloat32_t square(svfloat32_t acc, svfloat32_t q, svfloat32_t v) {
    const svfloat32_t d = svsub_f32_x(svptrue_b32(), q, v);
    return svmla_f32_x(svptrue_b32(), acc, d, d);
}

typedef struct {
    float dot, norm;
} float_totals;

/* Loads that widen: a register holds as many numbers of each type as it has floats. A half lies in the lower half of
 * its lane, where the conversion wants it; a bf16 is the upper half of a float. */
static inline svfloat32_t load_f16(svbool_t pg, const uint16_t *p) {
    return svcvt_f32_f16_x(svptrue_b32(), svreinterpret_f16_u32(svld1uh_u32(pg, p)));
}
static inline svfloat32_t load_bf16(svbool_t pg, const uint16_t *p) {
    return svreinterpret_f32_u32(svlsl_n_u32_x(svptrue_b32(), svld1uh_u32(pg, p), 16));
}
static inline svfloat32_t load_s8(svbool_t pg, const int8_t *p) {
    return svcvt_f32_s32_x(svptrue_b32(), svld1sb_s32(pg, p));
}
static inline svfloat32_t load_u8(svbool_t pg, const uint8_t *p) {
    return svcvt_f32_u32_x(svptrue_b32(), svld1ub_u32(pg, p));
}

#define LOAD_ROW svld1_f32
#define LOAD_QUERY svld1_f32
#define FLOAT_TYPE f32
#define LW_WITH_COSINE
#include "floats_sve.h"

#define LOAD_ROW load_f16
#define LOAD_QUERY load_f16
#define FLOAT_TYPE f16
#define LW_WITH_COSINE
#include "floats_sve.h"

#define LOAD_ROW load_bf16
#define LOAD_QUERY load_bf16
#define FLOAT_TYPE bf16
#define LW_WITH_COSINE
#include "floats_sve.h"

#define LOAD_ROW load_f16
#define LOAD_QUERY svld1_f32
#define FLOAT_TYPE f32f16
#include "floats_sve.h"

#define LOAD_ROW load_bf16
#define LOAD_QUERY svld1_f32
#define FLOAT_TYPE f32bf16
#include "floats_sve.h"

#define LOAD_ROW load_s8
#define LOAD_QUERY svld1_f32
#define FLOAT_TYPE f32i8
#include "floats_sve.h"

#define LOAD_ROW load_u8
#define LOAD_QUERY svld1_f32
#define FLOAT_TYPE f32u8
#include "floats_sve.h"

#define LW_OP l1
#define LW_TYPE f32
#define LANES svcntw()
#define WHILE(i, n) svwhilelt_b32_u64(i, n)
#define ALL svptrue_b32()
#define VEC svfloat32_t
#define LOAD(pg, p) svld1_f32(pg, p)
#define ACC svfloat32_t
#define ZERO svdup_n_f32(0)
#define ADD(acc, q, v) svadd_f32_x(svptrue_b32(), acc, svabd_f32_x(svptrue_b32(), q, v))
#define MERGE(x, y) svadd_f32_x(svptrue_b32(), x, y)
#define SUM(acc) svaddv_f32(svptrue_b32(), acc)
#include "loops_sve.h"

/* FMAX and FMAXV keep a NaN. */
#define LW_OP linf
#define LW_TYPE f32
#define LANES svcntw()
#define WHILE(i, n) svwhilelt_b32_u64(i, n)
#define ALL svptrue_b32()
#define VEC svfloat32_t
#define LOAD(pg, p) svld1_f32(pg, p)
#define ACC svfloat32_t
#define ZERO svdup_n_f32(0)
#define ADD(acc, q, v) svmax_f32_x(svptrue_b32(), acc, svabd_f32_x(svptrue_b32(), q, v))
#define MERGE(x, y) svmax_f32_x(svptrue_b32(), x, y)
#define SUM(acc) svmaxv_f32(svptrue_b32(), acc)
#include "loops_sve.h"

/* Bytes: four products added into each 32-bit lane by one instruction; |a - b| of either kind fits an unsigned byte.
 * The reductions go by 64 bits: the totals fit 32. */
static inline svint32_t square_u8(svint32_t acc, svuint8_t d) {
    return svreinterpret_s32_u32(svdot_u32(svreinterpret_u32_s32(acc), d, d));
}
typedef struct {
    int64_t dot, norm;
} byte_totals;
#define LW_OP dot
#define LW_TYPE i8
#define LANES svcntb()
#define WHILE(i, n) svwhilelt_b8_u64(i, n)
#define ALL svptrue_b8()
#define VEC svint8_t
#define LOAD(pg, p) svld1_s8(pg, p)
#define ACC svint32_t
#define ZERO svdup_n_s32(0)
#define ADD(acc, q, v) svdot_s32(acc, q, v)
#define MERGE(x, y) svadd_s32_x(svptrue_b32(), x, y)
#define SUM(acc) ((int32_t)svaddv_s32(svptrue_b32(), acc))
#include "loops_sve.h"

#define LW_OP l2
#define LW_TYPE i8
#define LANES svcntb()
#define WHILE(i, n) svwhilelt_b8_u64(i, n)
#define ALL svptrue_b8()
#define VEC svint8_t
#define LOAD(pg, p) svld1_s8(pg, p)
#define ACC svint32_t
#define ZERO svdup_n_s32(0)
#define ADD(acc, q, v) square_u8(acc, svreinterpret_u8_s8(svabd_s8_x(svptrue_b8(), q, v)))
#define MERGE(x, y) svadd_s32_x(svptrue_b32(), x, y)
#define SUM(acc) ((int32_t)svaddv_s32(svptrue_b32(), acc))
#include "loops_sve.h"

#define LW_OP cosine
#define LW_TYPE i8
#define LANES svcntb()
#define WHILE(i, n) svwhilelt_b8_u64(i, n)
#define ALL svptrue_b8()
#define VEC svint8_t
#define LOAD(pg, p) svld1_s8(pg, p)
#define ACC svint32x2_t
#define ZERO svcreate2_s32(svdup_n_s32(0), svdup_n_s32(0))
#define ADD(acc, q, v) svcreate2_s32(svdot_s32(svget2_s32(acc, 0), q, v), svdot_s32(svget2_s32(acc, 1), v, v))
#define MERGE(x, y)                                                                                          \
    svcreate2_s32(svadd_s32_x(svptrue_b32(), svget2_s32(x, 0), svget2_s32(y, 0)),                            \
                  svadd_s32_x(svptrue_b32(), svget2_s32(x, 1), svget2_s32(y, 1)))
#define TOTAL byte_totals
#define SUM(acc)                                                                                             \
    (byte_totals) {                                                                                          \
        svaddv_s32(svptrue_b32(), svget2_s32(acc, 0)), svaddv_s32(svptrue_b32(), svget2_s32(acc, 1))         \
    }
#define BIAS int32_t
#define BIAS_OF(q, n) lw_dot_i8_sve(q, q, n)
#define FINISH(total, bias) lw_cosine((total).dot, (total).norm, bias)
#include "loops_sve.h"

#define LW_OP dot
#define LW_TYPE u8
#define LANES svcntb()
#define WHILE(i, n) svwhilelt_b8_u64(i, n)
#define ALL svptrue_b8()
#define VEC svuint8_t
#define LOAD(pg, p) svld1_u8(pg, p)
#define ACC svuint32_t
#define ZERO svdup_n_u32(0)
#define ADD(acc, q, v) svdot_u32(acc, q, v)
#define MERGE(x, y) svadd_u32_x(svptrue_b32(), x, y)
#define SUM(acc) ((int32_t)svaddv_u32(svptrue_b32(), acc))
#include "loops_sve.h"

#define LW_OP l2
#define LW_TYPE u8
#define LANES svcntb()
#define WHILE(i, n) svwhilelt_b8_u64(i, n)
#define ALL svptrue_b8()
#define VEC svuint8_t
#define LOAD(pg, p) svld1_u8(pg, p)
#define ACC svint32_t
#define ZERO svdup_n_s32(0)
#define ADD(acc, q, v) square_u8(acc, svabd_u8_x(svptrue_b8(), q, v))
#define MERGE(x, y) svadd_s32_x(svptrue_b32(), x, y)
#define SUM(acc) ((int32_t)svaddv_s32(svptrue_b32(), acc))
#include "loops_sve.h"

#define LW_OP cosine
#define LW_TYPE u8
#define LANES svcntb()
#define WHILE(i, n) svwhilelt_b8_u64(i, n)
#define ALL svptrue_b8()
#define VEC svuint8_t
#define LOAD(pg, p) svld1_u8(pg, p)
#define ACC svuint32x2_t
#define ZERO svcreate2_u32(svdup_n_u32(0), svdup_n_u32(0))
#define ADD(acc, q, v) svcreate2_u32(svdot_u32(svget2_u32(acc, 0), q, v), svdot_u32(svget2_u32(acc, 1), v, v))
#define MERGE(x, y)                                                                                          \
    svcreate2_u32(svadd_u32_x(svptrue_b32(), svget2_u32(x, 0), svget2_u32(y, 0)),                            \
                  svadd_u32_x(svptrue_b32(), svget2_u32(x, 1), svget2_u32(y, 1)))
#define TOTAL byte_totals
#define SUM(acc)                                                                                             \
    (byte_totals) {                                                                                          \
        svaddv_u32(svptrue_b32(), svget2_u32(acc, 0)), svaddv_u32(svptrue_b32(), svget2_u32(acc, 1))         \
    }
#define BIAS int32_t
#define BIAS_OF(q, n) lw_dot_u8_sve(q, q, n)
#define FINISH(total, bias) lw_cosine((total).dot, (total).norm, bias)
#include "loops_sve.h"

/* Counts of bits, added up as products with 1. */
#define LW_OP hamming
#define LW_TYPE bits
#define LANES svcntb()
#define WHILE(i, n) svwhilelt_b8_u64(i, n)
#define ALL svptrue_b8()
#define VEC svuint8_t
#define LOAD(pg, p) svld1_u8(pg, p)
#define ACC svuint32_t
#define ZERO svdup_n_u32(0)
#define ADD(acc, q, v) svdot_u32(acc, svcnt_u8_x(svptrue_b8(), sveor_u8_x(svptrue_b8(), q, v)), svdup_n_u8(1))
#define MERGE(x, y) svadd_u32_x(svptrue_b32(), x, y)
#define SUM(acc) ((int32_t)svaddv_u32(svptrue_b32(), acc))
#include "loops_sve.h"
