/* Calls one kernel a number of times, for a counter of instructions to watch.
 *
 *     arm_calls --list                          "op type isa" of each variant of the library
 *     arm_calls OP TYPE WHO N TIMES             WHO: an isa, or a table of arm_loops.h
 *
 * The result is not looked at: that every variant is right is what the library's own tests are for. */
#include "arm_loops.h"
#include "lanewise_kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 17 };

typedef int32_t one_fn(const void *, const void *, size_t);

int main(int argc, char **argv) {
    size_t count;
    const struct lw_variant *variants = lw_variants(&count);
    if (argc == 2 && !strcmp(argv[1], "--list")) {
        for (size_t i = 0; i < count; i++)
            if (variants[i].one) printf("%s %s %s\n", variants[i].op, variants[i].type, variants[i].isa);
        return 0;
    }
    if (argc != 6) return 2;
    const char *op = argv[1], *type = argv[2], *who = argv[3];
    const size_t n = strtoul(argv[4], NULL, 10), times = strtoul(argv[5], NULL, 10);
    /* Aligned like the rows of an index; all ones, whatever the type. */
    char *a = aligned_alloc(64, BYTES), *b = aligned_alloc(64, BYTES);
    if (!a || !b || n > BYTES / 16) return 1;
    memset(a, 1, BYTES), memset(b, 1, BYTES);

    const struct {
        const char *name;
        const struct loop *loops;
    } sets[] = {{"compiler_scalar", compiler_scalar},
                {"compiler_vector", compiler_vector},
                {"compiler_sve", compiler_sve}};
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++)
        for (const struct loop *loop = sets[s].loops; loop->op; loop++)
            if (!strcmp(who, sets[s].name) && !strcmp(op, loop->op) && !strcmp(type, loop->type)) {
                for (size_t i = 0; i < times; i++) loop->run(a, b, n);
                return 0;
            }
    for (size_t v = 0; v < count; v++)
        if (!strcmp(who, variants[v].isa) && !strcmp(op, variants[v].op) && !strcmp(type, variants[v].type)) {
            one_fn *one = (one_fn *)variants[v].one;
            for (size_t i = 0; i < times; i++) one(a, b, n);
            return 0;
        }
    return 3;
}
