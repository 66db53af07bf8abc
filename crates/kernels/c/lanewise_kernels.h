/* Distance kernels: what can be called, and how a variant is chosen.
 *
 * A kernel has four forms. Pointers need the alignment of their element only; rows are `stride` bytes apart.
 *   one   a and b, n row elements each                                 -> the result
 *   rows  one query against `count` rows that follow each other        -> out[count]
 *   ids   one query against the rows ids[0..count] of a matrix         -> out[count]
 *   tile  `queries` queries against `count` rows                       -> out[i * out_stride + j]
 * The last three give a row the same result wherever it stands in the call; the floats of `tile` may be added in
 * another order than those of `rows` and `ids`. Kernels never allocate, never fail, read no byte outside their operands
 * and keep no state. list.h says which there are and what they compute. */
#ifndef LANEWISE_KERNELS_H
#define LANEWISE_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "list.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LW_ANY SIZE_MAX

enum {
#define X(symbol, name, bit) symbol = 1 << bit,
    LW_FEATURES(X)
#undef X
};

enum lw_kernel {
#define X(op, type, query, row, result, per, bound) LW_##op##_##type,
    LW_KERNELS(X)
#undef X
#define X(op, type, bound) LW_##op##_##type,
        LW_SCANS(X)
#undef X
            LW_KERNEL_COUNT
};

#define X(op, type, query, row, result, per, bound)                                                          \
    typedef query lw_##op##_##type##_query;                                                                  \
    typedef row lw_##op##_##type##_row;                                                                      \
    typedef result lw_##op##_##type##_result;                                                                \
    enum { lw_##op##_##type##_per = per };                                                                   \
    typedef result (*lw_##op##_##type##_one_fn)(const query *a, const row *b, size_t n);                     \
    typedef void (*lw_##op##_##type##_rows_fn)(const query *q, const row *base, size_t stride, size_t count, \
                                               size_t n, result *out);                                       \
    typedef void (*lw_##op##_##type##_ids_fn)(const query *q, const row *base, size_t stride,                \
                                              const uint32_t *ids, size_t count, size_t n, result *out);     \
    typedef void (*lw_##op##_##type##_tile_fn)(const query *q, size_t q_stride, size_t queries,              \
                                               const row *base, size_t stride, size_t count, size_t n,       \
                                               result *out, size_t out_stride);
LW_KERNELS(X)
#undef X

/* A block of 32 vectors has 16 bytes for each of `m` sub-quantizers: byte i holds the code of vector i in its low half
 * and of vector 16 + i in its high half. tables: 16 bytes a sub-quantizer. out: 32 sums a block. */
typedef void (*lw_scan_fn)(const uint8_t *tables, const uint8_t *codes, size_t blocks, size_t m,
                           uint16_t *out);

/* A function pointer of any of the types above; cast back to the kernel's own type before the call. */
typedef void (*lw_function)(void);

struct lw_variant {
    const char *op, *type, *isa;
    uint32_t kernel;                  /* enum lw_kernel */
    uint32_t needs;                   /* features without which the code is illegal, or better not used */
    lw_function one, rows, ids, tile; /* a scan has `rows` alone */
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

/* Query elements for each row element: 1, 2 or 4. */
uint32_t lw_per(uint32_t kernel);

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

/* Lets the variants of `features` run in this process, where an operating system wants to be asked (Linux, for AMX's
 * tiles). 0: it refused. Nobody has to call it: the first tile form that wants tiles asks by itself, and where they are
 * refused it does as VNNI and BF16 do. */
int lw_permit(uint32_t features);

/* Squared L2 distances from inner products of the same rows: out[k] = query_norm + norms[id] - 2 out[k], id being
 * ids[k], or k where ids is NULL. Norms are squared lengths. Exact for any integers whose distance fits int32. */
static inline void lw_l2_from_dots(int32_t query_norm, const int32_t *norms, const uint32_t *ids,
                                   size_t count, int32_t *out) {
    for (size_t k = 0; k < count; k++) {
        const uint32_t norm = (uint32_t)norms[ids ? ids[k] : k];
        out[k] = (int32_t)((uint32_t)query_norm + norm - 2 * (uint32_t)out[k]);
    }
}

#define X(op, type, isa)                                                                                     \
    lw_##op##_##type##_result lw_##op##_##type##_##isa(const lw_##op##_##type##_query *,                     \
                                                       const lw_##op##_##type##_row *, size_t);              \
    void lw_##op##_##type##_rows_##isa(const lw_##op##_##type##_query *, const lw_##op##_##type##_row *,     \
                                       size_t, size_t, size_t, lw_##op##_##type##_result *);                 \
    void lw_##op##_##type##_ids_##isa(const lw_##op##_##type##_query *, const lw_##op##_##type##_row *,      \
                                      size_t, const uint32_t *, size_t, size_t,                              \
                                      lw_##op##_##type##_result *);                                          \
    void lw_##op##_##type##_tile_##isa(const lw_##op##_##type##_query *, size_t, size_t,                     \
                                       const lw_##op##_##type##_row *, size_t, size_t, size_t,               \
                                       lw_##op##_##type##_result *, size_t);
LW_VARIANTS(X)
#undef X
#define X(op, type, isa, quirk)                                                                              \
    void lw_##op##_##type##_##isa(const uint8_t *, const uint8_t *, size_t, size_t, uint16_t *);
LW_SCAN_VARIANTS(X)
#undef X

#ifdef __cplusplus
}
#endif

#endif
