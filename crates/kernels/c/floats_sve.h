/* Kernels of LW_TYPE, whose numbers become floats as LOAD(pg, p) loads them, in as many lanes; if LW_FLOAT_QUERY is
 * defined the query is floats already, and there is no cosine. LW_FLOAT_QUERY is forgotten too. */
#define EACH 32
#define VEC svfloat32_t
#define DOT multiply_f32
#define SQUARE square_f32
#ifdef LW_FLOAT_QUERY
#define LOADQ(pg, q, i, n) svld1_f32(pg, (q) + (i))
#define LW_NO_COSINE
#endif
#include "metrics_sve.h"
#undef LW_FLOAT_QUERY
