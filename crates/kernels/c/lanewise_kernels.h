/* What the C files share: the public header, and from the lists each kernel's types and each variant's declaration.
 * ../include/lanewise/kernels.h says what can be called; list.h which kernels there are and what they compute. */
#ifndef LANEWISE_KERNELS_H
#define LANEWISE_KERNELS_H

#include "../include/lanewise/kernels.h"
#include "list.h"

enum {
#define X(symbol, name, bit) symbol = 1 << bit,
    LW_FEATURES(X)
#undef X
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

typedef void (*lw_scan_fn)(const uint8_t *tables, const uint8_t *codes, size_t blocks, size_t m,
                           uint16_t *out);

/* For a function that the loader runs before anything is ready (exports.c): no sanitizer's shadow, no canary in
 * thread-local storage. What it calls is marked too. */
#ifdef __has_attribute
#if __has_attribute(no_stack_protector)
#define LW_BARE __attribute__((no_sanitize("address", "undefined", "thread"), no_stack_protector))
#endif
#endif
#ifndef LW_BARE
#define LW_BARE __attribute__((no_sanitize("address", "undefined", "thread")))
#endif

/* The best variant of a kernel for a CPU, if kernels may use the features `allowed`. */
const struct lw_variant *lw_best(uint32_t kernel, uint32_t allowed);

/* lw_cpu_features without a call to anything. Arm: from the words that Linux hands to a process (AT_HWCAP, AT_HWCAP2);
 * elsewhere they are not looked at. */
uint32_t lw_detect(uint64_t hwcap, uint64_t hwcap2);

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

#endif
