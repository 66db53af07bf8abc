/* The tables that arm_loops.c defines, one a way of compiling it. */
#ifndef ARM_LOOPS_H
#define ARM_LOOPS_H

#include <stddef.h>
#include <stdint.h>

enum { LOOPS = 9 };

struct loop {
    const char *op, *type;
    double (*run)(const void *left, const void *right, size_t n);
};

extern const struct loop compiler_scalar[LOOPS + 1], compiler_vector[LOOPS + 1], compiler_sve[LOOPS + 1];

#endif
