/* dot and l2, and cosine if LW_WITH_COSINE is defined, of FLOAT_TYPE, whose numbers become floats as they are loaded:
 * LOAD_ROW(pg, p) and LOAD_QUERY(pg, p) give svfloat32_t, 0 where pg leaves a lane out. A cosine needs the row's length
 * beside the product, so two accumulators a row. All four words are forgotten at the end. */

#define LW_OP dot
#define LW_TYPE FLOAT_TYPE
#define LANES svcntw()
#define WHILE(i, n) svwhilelt_b32_u64(i, n)
#define ALL svptrue_b32()
#define VEC svfloat32_t
#define QVEC svfloat32_t
#define LOAD(pg, p) LOAD_ROW(pg, p)
#define LOADQ(pg, p) LOAD_QUERY(pg, p)
#define ACC svfloat32_t
#define ZERO svdup_n_f32(0)
#define ADD(acc, q, v) svmla_f32_x(svptrue_b32(), acc, q, v)
#define MERGE(x, y) svadd_f32_x(svptrue_b32(), x, y)
#define SUM(acc) svaddv_f32(svptrue_b32(), acc)
#include "loops_sve.h"

#define LW_OP l2
#define LW_TYPE FLOAT_TYPE
#define LANES svcntw()
#define WHILE(i, n) svwhilelt_b32_u64(i, n)
#define ALL svptrue_b32()
#define VEC svfloat32_t
#define QVEC svfloat32_t
#define LOAD(pg, p) LOAD_ROW(pg, p)
#define LOADQ(pg, p) LOAD_QUERY(pg, p)
#define ACC svfloat32_t
#define ZERO svdup_n_f32(0)
#define ADD(acc, q, v) square(acc, q, v)
#define MERGE(x, y) svadd_f32_x(svptrue_b32(), x, y)
#define SUM(acc) svaddv_f32(svptrue_b32(), acc)
#include "loops_sve.h"

#ifdef LW_WITH_COSINE
#define LW_OP cosine
#define LW_TYPE FLOAT_TYPE
#define LANES svcntw()
#define WHILE(i, n) svwhilelt_b32_u64(i, n)
#define ALL svptrue_b32()
#define VEC svfloat32_t
#define QVEC svfloat32_t
#define LOAD(pg, p) LOAD_ROW(pg, p)
#define LOADQ(pg, p) LOAD_QUERY(pg, p)
#define ACC svfloat32x2_t
#define ZERO svcreate2_f32(svdup_n_f32(0), svdup_n_f32(0))
#define ADD(acc, q, v)                                                                                       \
    svcreate2_f32(svmla_f32_x(svptrue_b32(), svget2_f32(acc, 0), q, v),                                      \
                  svmla_f32_x(svptrue_b32(), svget2_f32(acc, 1), v, v))
#define MERGE(x, y)                                                                                          \
    svcreate2_f32(svadd_f32_x(svptrue_b32(), svget2_f32(x, 0), svget2_f32(y, 0)),                            \
                  svadd_f32_x(svptrue_b32(), svget2_f32(x, 1), svget2_f32(y, 1)))
#define TOTAL float_totals
#define SUM(acc)                                                                                             \
    (float_totals) {                                                                                         \
        svaddv_f32(svptrue_b32(), svget2_f32(acc, 0)), svaddv_f32(svptrue_b32(), svget2_f32(acc, 1))         \
    }
#define BIAS float
#define BIAS_OF(q, n) LW_NAME_(dot, LW_TYPE, _, LW_ISA)(q, q, n)
#define FINISH(total, bias) lw_cosine((total).dot, (total).norm, bias)
#include "loops_sve.h"
#endif

#undef LW_WITH_COSINE
#undef FLOAT_TYPE
#undef LOAD_ROW
#undef LOAD_QUERY
