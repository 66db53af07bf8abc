/* The words of bits.h for x86's registers, COUNT and COUNT4 apart, which add to 64-bit lanes. Counts stay below 2^31,
 * so the high halves of the lanes are zero: 32-bit sums are right, and a second count has room there. */
#define BITS INTS
#define BITS_LANES INT_BYTES
#define BITS_LOAD(p) I_LOAD(p)
#define BITS_TAIL(p, k) I_TAIL(p, k)
#define BITS_XOR(x, y) I_XOR(x, y)
#define BITS_AND(x, y) I_AND(x, y)
#define BITS_OR(x, y) I_OR(x, y)
#define COUNTS INTS
#define COUNTS_ZERO I_ZERO
#define COUNTS_ADD(x, y) P(add_epi64)(x, y)
#define COUNTS_SUM(x) _mm_cvtsi128_si32(lw_sum_pairs_epi32(lw_fold_epi32(x)))
#define COUNTS_SUM4(xs, out) I_SUM4(xs, out)

static inline __m128i lw_overlap_fold(INTS both, INTS either) {
    return lw_fold_epi32(P(add_epi64)(both, P(slli_epi64)(either, 32)));
}
static inline lw_overlap_total lw_overlap_of(__m128i pairs) {
    const uint64_t sum = (uint64_t)_mm_cvtsi128_si64(lw_sum_pairs_epi32(pairs));
    return (lw_overlap_total){(int32_t)sum, (int32_t)(sum >> 32)};
}
#define OVERLAP_SUM(x) lw_overlap_of(lw_overlap_fold((x).both, (x).either))
#define OVERLAP_SUM4(xs, out)                                                                                \
    do {                                                                                                     \
        __m128i folds[4];                                                                                    \
        LW_UNROLL for (int k = 0; k < 4; k++) folds[k] = lw_overlap_fold((xs)[k].both, (xs)[k].either);      \
        _mm_storeu_si128((__m128i *)(out), lw_sum2_pairs_epi32(folds[0], folds[1]));                         \
        _mm_storeu_si128((__m128i *)((out) + 2), lw_sum2_pairs_epi32(folds[2], folds[3]));                   \
    } while (0)

#include "bits.h"
