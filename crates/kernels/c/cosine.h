/* The last steps of the kernels whose result is a quotient, in double precision, so that equal sums give equal bits. */
#ifndef LW_COSINE_H
#define LW_COSINE_H

#include <stdint.h>

/* Never beyond 1, whatever was rounded; 0 where a vector has no length; a NaN stays one. */
static inline float lw_cosine(double dot, double row, double query) {
    if (row == 0 || query == 0) return (float)(dot == dot ? 0 : dot); /* a NaN in the other vector */
    const double c = dot / __builtin_sqrt(row * query);
    return (float)(c > 1 ? 1 : c < -1 ? -1 : c);
}

/* Bits that both have, and that either has. */
typedef struct {
    int32_t both, either;
} lw_overlap_total;
static inline float lw_jaccard(lw_overlap_total bits) {
    return bits.either == 0 ? 0 : (float)((double)(bits.either - bits.both) / bits.either);
}

#endif
