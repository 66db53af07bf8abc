/* The table of variants and the choice among them: for each kernel the last variant in the list whose needs are
 * all allowed. Decided once per process; the loser of a race waits the microseconds that the winner takes. */
#include "lanewise_kernels.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
#define X(isa, needs, level) NEEDS_##isa = needs,
    LW_ISAS(X)
#undef X
};

#define X(op, type, isa)                                                                                     \
    {#op,                                                                                                    \
     #type,                                                                                                  \
     #isa,                                                                                                   \
     LW_##op##_##type,                                                                                       \
     NEEDS_##isa,                                                                                            \
     (lw_function)lw_##op##_##type##_##isa,                                                                  \
     (lw_function)lw_##op##_##type##_rows_##isa,                                                             \
     (lw_function)lw_##op##_##type##_ids_##isa,                                                              \
     (lw_function)lw_##op##_##type##_tile_##isa},
#define S(op, type, isa, quirk)                                                                              \
    {                                                                                                        \
        #op,                                                                                                 \
        #type,                                                                                               \
        #isa,                                                                                                \
        LW_##op##_##type,                                                                                    \
        NEEDS_##isa | (quirk),                                                                               \
        NULL,                                                                                                \
        (lw_function)lw_##op##_##type##_##isa,                                                               \
        NULL,                                                                                                \
        NULL},
static const struct lw_variant variants[] = {LW_VARIANTS(X) LW_SCAN_VARIANTS(S)};
#undef X
#undef S

static const struct {
    const char *name;
    uint32_t features;
} levels[] = {
#define X(name, needs, level) {#name, level},
    LW_ISAS(X)
#undef X
};

enum { VARIANTS = sizeof variants / sizeof *variants, LEVELS = sizeof levels / sizeof *levels };

uint32_t lw_kernel_count(void) { return LW_KERNEL_COUNT; }

const struct lw_variant *lw_variants(size_t *count) {
    *count = VARIANTS;
    return variants;
}

size_t lw_bound(uint32_t kernel) {
    static const size_t bounds[LW_KERNEL_COUNT] = {
#define X(op, type, query, row, result, per, bound) [LW_##op##_##type] = bound,
        LW_KERNELS(X)
#undef X
#define X(op, type, bound) [LW_##op##_##type] = bound,
            LW_SCANS(X)
#undef X
    };
    return kernel < LW_KERNEL_COUNT ? bounds[kernel] : 0;
}

uint32_t lw_per(uint32_t kernel) {
    static const uint8_t per[LW_KERNEL_COUNT] = {
#define X(op, type, query, row, result, per, bound) [LW_##op##_##type] = per,
        LW_KERNELS(X)
#undef X
    };
    return kernel < LW_KERNEL_COUNT && per[kernel] ? per[kernel] : 1;
}

const char *lw_level(size_t i, uint32_t *features) {
    if (i >= LEVELS) return NULL;
    if (features) *features = levels[i].features;
    return levels[i].name;
}

const char *lw_feature_name(uint32_t bit) {
    switch (bit) {
#define X(symbol, name, bit)                                                                                 \
    case symbol:                                                                                             \
        return name;
        LW_FEATURES(X)
#undef X
    }
    return NULL;
}

LW_BARE const struct lw_variant *lw_best(uint32_t kernel, uint32_t allowed) {
    const struct lw_variant *best = NULL;
    for (size_t i = 0; i < VARIANTS; i++)
        if (variants[i].kernel == kernel && (variants[i].needs & allowed) == variants[i].needs)
            best = &variants[i];
    return best;
}

struct lw_choice lw_choose(const char *level, uint32_t cpu) {
    struct lw_choice choice = {.level = levels[0].name, .cpu = cpu, .allowed = cpu, .status = LW_CHOSEN};
    if (level && *level) {
        choice.allowed = 0;
        choice.status = LW_UNKNOWN_LEVEL;
        for (size_t i = 0; i < LEVELS; i++)
            if (!strcmp(level, levels[i].name)) {
                int whole = (levels[i].features & (cpu | LW_NAMED)) == levels[i].features;
                choice.status = whole ? LW_CHOSEN : LW_LEVEL_NOT_ON_THIS_CPU;
                /* The quirks are the CPU's whichever level is named. */
                if (whole) choice.allowed = levels[i].features | (cpu & (LW_FAST_SHUFFLE512 | LW_WIDE_SVE));
            }
    }
    for (size_t i = 0; i < LEVELS; i++)
        if ((levels[i].features & choice.allowed) == levels[i].features) choice.level = levels[i].name;
    for (uint32_t kernel = 0; kernel < LW_KERNEL_COUNT; kernel++)
        choice.slot[kernel] = lw_best(kernel, choice.allowed);
    return choice;
}

const struct lw_choice *lw_chosen(void) {
    static struct lw_choice choice;
    static atomic_int state; /* 0 unmade, 1 being made, 2 made */
    int expected = 0;
    /* Acquire pairs with the release below, so that whoever sees 2 sees the whole choice. */
    if (atomic_load_explicit(&state, memory_order_acquire) != 2) {
        if (atomic_compare_exchange_strong_explicit(&state, &expected, 1, memory_order_relaxed,
                                                    memory_order_relaxed)) {
            choice = lw_choose(getenv("LANEWISE_ISA"), lw_cpu_features());
            atomic_store_explicit(&state, 2, memory_order_release);
        } else {
            while (atomic_load_explicit(&state, memory_order_acquire) != 2) {
            }
        }
    }
    return &choice;
}
