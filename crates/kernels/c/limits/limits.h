/* What binds a kernel, as programs that do only half of its work: the loads alone, or the arithmetic alone. A kernel
 * measured beside them in one run is given as a share of the slower of the two.
 *
 *   loads  every byte of the operands is brought into a register, by the widest loads, and nothing is done with it
 *   step   the arithmetic that one line (64 bytes) of a row needs at least, on registers: no load, no reduction
 *
 * For the kernel benchmark; no part of the kernel library. Steps leave out what can be hoisted (the query's own
 * conversion), so a step is a bound from below. */
#ifndef LW_LIMITS_H
#define LW_LIMITS_H

#include "../lanewise_kernels.h"

struct lw_limit_loads {
    const char *isa;
    uint32_t needs; /* features, as lw_variant's */
    float (*one)(const char *a, const char *b, size_t bytes);
    void (*rows)(const char *q, const char *base, size_t stride, size_t count, size_t bytes, void *out);
    void (*ids)(const char *q, const char *base, size_t stride, const uint32_t *ids, size_t count,
                size_t bytes, void *out);
};

struct lw_limit_step {
    const char *op, *type, *isa;
    uint32_t needs;
    const char *what; /* its instructions, for people */
    void (*run)(const char *q, const char *base, size_t stride, size_t count, size_t bytes, void *out);
};

/* Ascending: the last one whose needs are met is the limit to take. */
const struct lw_limit_loads *lw_limit_loads(size_t *count);
const struct lw_limit_step *lw_limit_steps(size_t *count);

#endif
