/* SVE (Armv8.2, optional), registers of any length: every kernel on numbers and bits. Compiled with +sve.
 *
 * What NEON does by pairs of registers is done here by one that holds fewer elements: a load widens bytes and halves to
 * the lanes that they are computed in. */
#include <arm_sve.h>

#include "lanewise_kernels.h"

#define LW_ISA sve

/* Floats: as many numbers of each type as a register holds floats. */
#define REG svfloat32_t
#define REG_TOTAL float
#define REG_ZERO svdup_n_f32(0)

static inline svfloat32_t multiply_f32(svfloat32_t acc, svfloat32_t q, svfloat32_t v) {
    return svmla_f32_x(svptrue_b32(), acc, q, v);
}
static inline svfloat32_t square_f32(svfloat32_t acc, svfloat32_t q, svfloat32_t v) {
    const svfloat32_t d = svsub_f32_x(svptrue_b32(), q, v);
    return svmla_f32_x(svptrue_b32(), acc, d, d);
}
/* A half lies in the lower half of its lane, where the conversion wants it; a bf16 is the upper half of a float. */
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

#define LW_TYPE f32
#define LOAD svld1_f32
#include "floats_sve.h"

#define LW_TYPE f16
#define LOAD load_f16
#include "floats_sve.h"

#define LW_TYPE bf16
#define LOAD load_bf16
#include "floats_sve.h"

#define LW_TYPE f32f16
#define LOAD load_f16
#define LW_FLOAT_QUERY
#include "floats_sve.h"

#define LW_TYPE f32bf16
#define LOAD load_bf16
#define LW_FLOAT_QUERY
#include "floats_sve.h"

#define LW_TYPE f32i8
#define LOAD load_s8
#define LW_FLOAT_QUERY
#include "floats_sve.h"

#define LW_TYPE f32u8
#define LOAD load_u8
#define LW_FLOAT_QUERY
#include "floats_sve.h"

#define LW_TYPE f32
#define EACH 32
#define VEC svfloat32_t
#define LOAD svld1_f32
#define ACC svfloat32_t
#define ZERO svdup_n_f32(0)
#define MERGE(x, y) svadd_f32_x(svptrue_b32(), x, y)
#define SUM(acc) svaddv_f32(svptrue_b32(), acc)
#define LW_OP l1
#define ADD(acc, q, v) svadd_f32_x(svptrue_b32(), acc, svabd_f32_x(svptrue_b32(), q, v))
#include "loops_sve.h"
#undef MERGE
#undef SUM
/* FMAX and FMAXV keep a NaN. */
#define MERGE(x, y) svmax_f32_x(svptrue_b32(), x, y)
#define SUM(acc) svmaxv_f32(svptrue_b32(), acc)
#define LW_OP linf
#define ADD(acc, q, v) svmax_f32_x(svptrue_b32(), acc, svabd_f32_x(svptrue_b32(), q, v))
#include "loops_sve.h"
#undef EACH
#include "forget.h"

#undef REG
#undef REG_TOTAL
#undef REG_ZERO

#include "bytes_sve.h"
