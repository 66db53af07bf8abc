/* Distance kernels: what can be called, and how a variant is chosen.
 *
 * A kernel has three forms. Pointers need the alignment of their element only; rows are `stride` bytes apart.
 *   one   a and b, n elements each                                     -> the result
 *   rows  one query against `count` rows that follow each other        -> out[count]
 *   ids   one query against the rows ids[0..count] of a matrix         -> out[count]
 * `rows` and `ids` give a row the same result wherever it stands in the call. Kernels never allocate, never fail,
 * read no byte outside their operands and keep no state. */
#ifndef LANEWISE_KERNELS_H
#define LANEWISE_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "list.h"

#define LW_ANY SIZE_MAX

enum {
#define X(symbol, name, bit) symbol = 1 << bit,
    LW_FEATURES(X)
#undef X
};

enum lw_kernel {
#define X(op, type, element, result, bound) LW_##op##_##type,
    LW_KERNELS(X)
#undef X
        LW_KERNEL_COUNT
};

#define X(op, type, element, result, bound)                                                                  \
    typedef element lw_##op##_##type##_element;                                                              \
    typedef result lw_##op##_##type##_result;                                                                \
    typedef result (*lw_##op##_##type##_one)(const element *a, const element *b, size_t n);                  \
    typedef void (*lw_##op##_##type##_rows)(const element *q, const element *base, size_t stride,            \
                                            size_t count, size_t n, result *out);                            \
    typedef void (*lw_##op##_##type##_ids)(const element *q, const element *base, size_t stride,             \
                                           const uint32_t *ids, size_t count, size_t n, result *out);
LW_KERNELS(X)
#undef X

/* A function pointer of any of the types above; cast back to the kernel's own type before the call. */
typedef void (*lw_function)(void);

struct lw_variant {
    const char *op, *type, *isa;
    uint32_t kernel; /* enum lw_kernel */
    uint32_t needs;  /* features without which the code is illegal */
    lw_function one, rows, ids;
};

enum lw_choice_status { LW_CHOSEN, LW_UNKNOWN_LEVEL, LW_LEVEL_NOT_ON_THIS_CPU };

struct lw_choice {
    const char *level;            /* the level forced, or the highest that the CPU has whole */
    uint32_t cpu;                 /* features of the CPU */
    uint32_t allowed;             /* features that kernels may use */
    enum lw_choice_status status; /* on an error every slot is scalar */
    const struct lw_variant *slot[LW_KERNEL_COUNT];
};

/* LW_KERNEL_COUNT, for callers in other languages to compare with their own. */
uint32_t lw_kernel_count(void);

/* Every variant compiled into this library. */
const struct lw_variant *lw_variants(size_t *count);

/* Largest n for which the kernel's result is exact; LW_ANY: no bound. */
size_t lw_bound(uint32_t kernel);

/* Name of the i-th level, ascending; NULL past the last. `features` may be NULL. */
const char *lw_level(size_t i, uint32_t *features);

/* Name of a feature bit; NULL if there is none. */
const char *lw_feature_name(uint32_t bit);

/* Features of the CPU that runs this, as the operating system lets them be used. */
uint32_t lw_cpu_features(void);

/* Chooses for a CPU with `cpu` features; `level` NULL or "" means the best. Pure. */
struct lw_choice lw_choose(const char *level, uint32_t cpu);

/* The choice of this process: made at the first call from LANEWISE_ISA and the CPU, then kept. */
const struct lw_choice *lw_chosen(void);

#define X(op, type, isa, needs)                                                                              \
    lw_##op##_##type##_result lw_##op##_##type##_##isa(const lw_##op##_##type##_element *,                   \
                                                       const lw_##op##_##type##_element *, size_t);          \
    void lw_##op##_##type##_rows_##isa(const lw_##op##_##type##_element *,                                   \
                                       const lw_##op##_##type##_element *, size_t, size_t, size_t,           \
                                       lw_##op##_##type##_result *);                                         \
    void lw_##op##_##type##_ids_##isa(const lw_##op##_##type##_element *,                                    \
                                      const lw_##op##_##type##_element *, size_t, const uint32_t *, size_t,  \
                                      size_t, lw_##op##_##type##_result *);
LW_VARIANTS(X)
#undef X

#endif
