/* No kernel raises "invalid" or "division by zero" on plain numbers and on vectors of zeroes: a program that traps on these
 * would end. Exits with 1 and names the kernel if one does. */
#include <lanewise/kernels.h>

#include <fenv.h>
#include <stdio.h>
#include <string.h>

#include "list.h"

enum { N = 100, ROWS = 40, QUERIES = 9 };

static _Alignas(64) char queries[QUERIES * N * 4 * 4], rows[ROWS * N * 4], out[QUERIES * ROWS * 4];

/* Leaves numbers that trap where a kernel's own memory will be. */
static void soil(void) {
    volatile unsigned char stack[96 << 10];
    for (size_t i = 0; i < sizeof stack; i++) stack[i] = i % 4 == 3 ? 0x7f : 0xa0;
}

int main(void) {
    /* Small positive numbers as any type; the first of each side are zeroes. */
    for (size_t i = 0; i < sizeof queries; i++) queries[i] = i % 4 == 3 ? 0x3d : 0x0c;
    for (size_t i = 0; i < sizeof rows; i++) rows[i] = i % 4 == 3 ? 0x3d : 0x0c;
    memset(queries, 0, N * 4 * 4), memset(rows, 0, N * 4);
    int failed = 0;
#define X(op, type, query, row, result, per, bound)                                                          \
    soil();                                                                                                  \
    feclearexcept(FE_ALL_EXCEPT);                                                                            \
    lw_##op##_##type##_tile((const query *)queries, N *per * sizeof(query), QUERIES, (const row *)rows,      \
                            N * sizeof(row), ROWS, N, (result *)out, ROWS);                                  \
    lw_##op##_##type##_rows((const query *)queries, (const row *)rows, N * sizeof(row), ROWS, N,             \
                            (result *)out);                                                                  \
    if (fetestexcept(FE_INVALID | FE_DIVBYZERO)) {                                                           \
        fprintf(stderr, "%s_%s_%s raises an exception\n", #op, #type,                                        \
                lw_chosen()->slot[LW_##op##_##type]->isa);                                                   \
        failed = 1;                                                                                          \
    }
    LW_KERNELS(X)
#undef X
    return failed;
}
