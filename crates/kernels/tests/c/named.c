/* Calls every kernel by its exported name, in every form and on random data, and compares: bit for bit with the variant
 * that lw_chosen names, and with the scalar one (integers exactly; sums of non-negative floats by their relative error).
 * Uses the installed header; the lists serve to go over the names.
 *
 *   named [LEVEL]    LEVEL: set LANEWISE_ISA to it inside of the process, before the first call
 * With LANEWISE_SEED=n the data are those of an earlier run. Built with -DINDIRECT where names are indirect functions:
 * then it is also asked what the loader binds them to. Prints the level and what was compared; exits with 1 at the
 * first difference. */
#ifdef INDIRECT
#define _GNU_SOURCE
#include <dlfcn.h>
#endif
#include <lanewise/kernels.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "list.h"

enum { MOST = 1001, ROWS = 5, QUERIES = 3, PAD = 3 };

static uint64_t state;
static uint64_t compared, unlike_scalar;

static uint32_t draw(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

/* Random elements. Where results are floats no term is negative, so that their error is relative to the sum. The
 * patterns of 16 bits are small positive numbers as f16 and as bf16; a byte of u8u4's query is at most 15. */
static void fill_float(float *x, size_t n, int positive, int nibbles) {
    (void)positive, (void)nibbles;
    for (size_t i = 0; i < n; i++) x[i] = (float)(draw() >> 8) / (1 << 23);
}
static void fill_uint16_t(uint16_t *x, size_t n, int positive, int nibbles) {
    (void)positive, (void)nibbles;
    for (size_t i = 0; i < n; i++) x[i] = (uint16_t)(0x3800 | (draw() & 0x3ff));
}
static void fill_int8_t(int8_t *x, size_t n, int positive, int nibbles) {
    (void)nibbles;
    for (size_t i = 0; i < n; i++) x[i] = (int8_t)(draw() & (positive ? 127 : 255));
}
static void fill_uint8_t(uint8_t *x, size_t n, int positive, int nibbles) {
    (void)positive;
    for (size_t i = 0; i < n; i++) x[i] = (uint8_t)(draw() & (nibbles ? 15 : 255));
}

static const struct lw_variant *scalar(uint32_t kernel) {
    size_t count;
    const struct lw_variant *all = lw_variants(&count);
    for (size_t i = 0; i < count; i++)
        if (all[i].kernel == kernel && !strcmp(all[i].isa, "scalar")) return &all[i];
    fprintf(stderr, "kernel %u has no scalar variant\n", kernel);
    exit(1);
}

static void fail(const char *name, size_t n, const char *what) {
    fprintf(stderr, "%s, n = %zu: not as %s\n", name, n, what);
    exit(1);
}

static int near_float(float got, float want, size_t n) {
    const float apart = got < want ? want - got : got - want;
    return apart <= (float)(n + 3) * 0x1p-22f * (want < 0 ? -want : want) + 0x1p-20f;
}
static int near_int32_t(int32_t got, int32_t want, size_t n) {
    (void)n;
    return got == want;
}

#define COMPARE(name, result, count)                                                                         \
    for (size_t i = 0; i < (count); i++) {                                                                   \
        if (memcmp(&got[i], &want[i], sizeof *got)) fail(name, n, "what lw_chosen names");                   \
        if (!near_##result(got[i], plain[i], n)) fail(name, n, "the scalar kernel");                         \
        unlike_scalar += memcmp(&got[i], &plain[i], sizeof *got) != 0;                                       \
        compared++;                                                                                          \
    }

#define X(op, type, query, row, result, per, bound)                                                          \
    static void test_##op##_##type(size_t n) {                                                               \
        typedef result (*one_fn)(const query *, const row *, size_t);                                        \
        typedef void (*rows_fn)(const query *, const row *, size_t, size_t, size_t, result *);               \
        typedef void (*ids_fn)(const query *, const row *, size_t, const uint32_t *, size_t, size_t,         \
                               result *);                                                                    \
        typedef void (*tile_fn)(const query *, size_t, size_t, const row *, size_t, size_t, size_t,          \
                                result *, size_t);                                                           \
        static query q[QUERIES * (per) * MOST];                                                              \
        static row rows[ROWS * (MOST + PAD)];                                                                \
        static const uint32_t ids[ROWS] = {4, 0, 3, 3, 1};                                                   \
        const struct lw_variant *chosen = lw_chosen()->slot[LW_##op##_##type];                               \
        const struct lw_variant *plainest = scalar(LW_##op##_##type);                                        \
        const size_t stride = (n + PAD) * sizeof(row), q_stride = (per) * n * sizeof(query), out = ROWS + 1; \
        result got[QUERIES * (ROWS + 1)] = {0}, want[QUERIES * (ROWS + 1)] = {0},                            \
                                     plain[QUERIES * (ROWS + 1)] = {0};                                      \
        const int positive = _Generic((result)0, float: 1, default: 0);                                      \
        fill_##query(q, QUERIES *(per) * n, positive, (per) == 2);                                           \
        fill_##row(rows, ROWS *(n + PAD), positive, 0);                                                      \
        got[0] = lw_##op##_##type(q, rows, n);                                                               \
        want[0] = ((one_fn)chosen->one)(q, rows, n);                                                         \
        plain[0] = ((one_fn)plainest->one)(q, rows, n);                                                      \
        COMPARE("lw_" #op "_" #type, result, 1)                                                              \
        lw_##op##_##type##_rows(q, rows, stride, ROWS, n, got);                                              \
        ((rows_fn)chosen->rows)(q, rows, stride, ROWS, n, want);                                             \
        ((rows_fn)plainest->rows)(q, rows, stride, ROWS, n, plain);                                          \
        COMPARE("lw_" #op "_" #type "_rows", result, ROWS)                                                   \
        lw_##op##_##type##_ids(q, rows, stride, ids, ROWS, n, got);                                          \
        ((ids_fn)chosen->ids)(q, rows, stride, ids, ROWS, n, want);                                          \
        ((ids_fn)plainest->ids)(q, rows, stride, ids, ROWS, n, plain);                                       \
        COMPARE("lw_" #op "_" #type "_ids", result, ROWS)                                                    \
        lw_##op##_##type##_tile(q, q_stride, QUERIES, rows, stride, ROWS, n, got, out);                      \
        ((tile_fn)chosen->tile)(q, q_stride, QUERIES, rows, stride, ROWS, n, want, out);                     \
        ((tile_fn)plainest->tile)(q, q_stride, QUERIES, rows, stride, ROWS, n, plain, out);                  \
        COMPARE("lw_" #op "_" #type "_tile", result, QUERIES *out)                                           \
    }
LW_KERNELS(X)
#undef X

#define X(op, type, bound)                                                                                   \
    static void test_##op##_##type(size_t n) {                                                               \
        typedef void (*rows_fn)(const uint8_t *, const uint8_t *, size_t, size_t, uint16_t *);               \
        static uint8_t tables[16 * (bound)], codes[ROWS * 16 * (bound)];                                     \
        static uint16_t got[ROWS * 32], want[ROWS * 32], plain[ROWS * 32];                                   \
        if (n > (bound)) n = bound;                                                                          \
        fill_uint8_t(tables, 16 * n, 0, 0);                                                                  \
        fill_uint8_t(codes, ROWS * 16 * n, 0, 0);                                                            \
        lw_##op##_##type(tables, codes, ROWS, n, got);                                                       \
        ((rows_fn)lw_chosen()->slot[LW_##op##_##type]->rows)(tables, codes, ROWS, n, want);                  \
        ((rows_fn)scalar(LW_##op##_##type)->rows)(tables, codes, ROWS, n, plain);                            \
        COMPARE("lw_" #op "_" #type, int32_t, ROWS * 32)                                                     \
    }
LW_SCANS(X)
#undef X

int main(int argc, char **argv) {
#ifndef _WIN32
    if (argc > 1) setenv("LANEWISE_ISA", argv[1], 1);
#else
    (void)argc, (void)argv;
#endif
    const char *seed = getenv("LANEWISE_SEED");
    state = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
    printf("seed %llu, ", (unsigned long long)state);
    static const size_t counts[] = {1, 7, 31, 64, 65, 257, MOST};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
#define X(op, type, query, row, result, per, bound) test_##op##_##type(counts[i]);
        LW_KERNELS(X)
#undef X
#define X(op, type, bound) test_##op##_##type(counts[i]);
        LW_SCANS(X)
    }
    const struct lw_choice *choice = lw_chosen();
    const char *isa = choice->slot[LW_dot_f32]->isa;
    /* Else the comparison with lw_chosen's variants would say nothing: vectors add in another order. */
    if (!strcmp(isa, "scalar") != !unlike_scalar) {
        fprintf(stderr, "dot_f32 is %s, yet %llu results differ from scalar ones\n", isa,
                (unsigned long long)unlike_scalar);
        return 1;
    }
#ifdef INDIRECT
    const int bound = dlsym(RTLD_DEFAULT, "lw_dot_f32") == (void *)choice->slot[LW_dot_f32]->one;
    const char *forced = getenv("LANEWISE_ISA");
    if (bound != !forced) {
        fprintf(stderr, "LANEWISE_ISA is %s, yet the loader binds lw_dot_f32 to %s\n",
                forced ? forced : "not set", bound ? "the kernel" : "the jump");
        return 1;
    }
#endif
    printf("level %s, dot_f32 %s: %llu results\n", choice->level, isa, (unsigned long long)compared);
    return 0;
}
