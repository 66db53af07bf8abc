/* SVE2 (Armv9): FMLALB and FMLALT multiply the even and the odd halves of a register, exactly, and add them to floats with
 * one rounding, and FCVTLT converts the odd ones; so halves are loaded a register at a time. Nothing else here gains by
 * SVE2. Compiled with +sve2. */
#include <arm_sve.h>

#include "lanewise_kernels.h"

#define LW_ISA sve2

static inline svfloat32_t multiply(svfloat32_t acc, svfloat16_t q, svfloat16_t v) {
    return svmlalt_f32(svmlalb_f32(acc, q, v), q, v);
}
static inline svfloat32_t square(svfloat32_t acc, svfloat16_t q, svfloat16_t v) {
    const svbool_t all = svptrue_b32();
    const svfloat32_t even = svsub_f32_x(all, svcvt_f32_f16_x(all, q), svcvt_f32_f16_x(all, v));
    const svfloat32_t odd = svsub_f32_x(all, svcvtlt_f32_f16_x(all, q), svcvtlt_f32_f16_x(all, v));
    return svmla_f32_x(all, svmla_f32_x(all, acc, even, even), odd, odd);
}

#define REG svfloat32_t
#define REG_TOTAL float
#define REG_ZERO svdup_n_f32(0)
#define LW_TYPE f16
#define EACH 16
#define VEC svfloat16_t
#define LOAD(pg, p) svreinterpret_f16_u16(svld1_u16(pg, p))
#define DOT multiply
#define SQUARE square
#include "metrics_sve.h"
