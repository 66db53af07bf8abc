/* SVE with BFDOT (FEAT_BF16, Armv8.6): as bf16.c, in registers of any length. Compiled with +sve+bf16. */
#include <arm_sve.h>

#include "lanewise_kernels.h"

#define LW_ISA svebf16

#define REG svfloat32_t
#define REG_TOTAL float
#define REG_ZERO svdup_n_f32(0)
#define LW_TYPE bf16
#define LW_NO_L2
#define EACH 16
#define VEC svbfloat16_t
#define LOAD(pg, p) svreinterpret_bf16_u16(svld1_u16(pg, p))
#define DOT(acc, q, v) svbfdot_f32(acc, q, v)
#include "metrics_sve.h"
