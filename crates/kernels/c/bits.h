/* Kernels on packed bits, from these words:
 *   BITS, BITS_LANES                     register, and how many bytes it holds
 *   BITS_LOAD(p), BITS_TAIL(p, k), BITS_XOR, BITS_AND, BITS_OR
 *   COUNTS, COUNTS_ZERO, COUNTS_ADD(x, y), COUNTS_SUM(x), COUNTS_SUM4(xs, out)    accumulated counts
 *   COUNT(acc, v)                        acc plus the bits set in v
 *   COUNT4(acc, v0, v1, v2, v3)          the same, those of v1 worth 2, of v2 4, of v3 8
 *   OVERLAP_SUM(x), OVERLAP_SUM4(xs, out)    where both counts of a Jaccard distance are better summed at once */
#include "cosine.h"

#define VEC BITS
#define LANES BITS_LANES
#define LOAD(p) BITS_LOAD(p)
#define LOAD_TAIL(p, k) BITS_TAIL(p, k)
#define ACC COUNTS
#define ZERO COUNTS_ZERO
#define MERGE(x, y) COUNTS_ADD(x, y)
#define SUM(acc) COUNTS_SUM(acc)
#define SUM4(accs, out) COUNTS_SUM4(accs, out)
#define LW_OP hamming
#define LW_TYPE bits
#define ADD(acc, q, v) COUNT(acc, BITS_XOR(q, v))
#include "loops.h"
#include "forget.h"

/* The query's planes follow each other. */
typedef struct {
    BITS plane[4];
} lw_planes;
#define QVEC lw_planes
#define PLANE(q, i, n, p) ((q) + (p) * (n) + (i))
#define LOADQ(q, i, n)                                                                                       \
    ((lw_planes){{BITS_LOAD(PLANE(q, i, n, 0)), BITS_LOAD(PLANE(q, i, n, 1)), BITS_LOAD(PLANE(q, i, n, 2)),  \
                  BITS_LOAD(PLANE(q, i, n, 3))}})
#define LOADQ_TAIL(q, i, n, k)                                                                               \
    ((lw_planes){{BITS_TAIL(PLANE(q, i, n, 0), k), BITS_TAIL(PLANE(q, i, n, 1), k),                          \
                  BITS_TAIL(PLANE(q, i, n, 2), k), BITS_TAIL(PLANE(q, i, n, 3), k)}})
#define VEC BITS
#define LANES BITS_LANES
#define LOAD(p) BITS_LOAD(p)
#define LOAD_TAIL(p, k) BITS_TAIL(p, k)
#define ACC COUNTS
#define ZERO COUNTS_ZERO
#define MERGE(x, y) COUNTS_ADD(x, y)
#define SUM(acc) COUNTS_SUM(acc)
#define SUM4(accs, out) COUNTS_SUM4(accs, out)
#define LW_OP dot
#define LW_TYPE u4bits
#define ADD(acc, q, v)                                                                                       \
    COUNT4(acc, BITS_AND((q).plane[0], v), BITS_AND((q).plane[1], v), BITS_AND((q).plane[2], v),             \
           BITS_AND((q).plane[3], v))
#include "loops.h"
#include "forget.h"
#undef PLANE

typedef struct {
    COUNTS both, either;
} lw_overlap;
static inline lw_overlap lw_overlap_merge(lw_overlap x, lw_overlap y) {
    return (lw_overlap){COUNTS_ADD(x.both, y.both), COUNTS_ADD(x.either, y.either)};
}
static inline lw_overlap_total lw_overlap_sum(lw_overlap x) {
    return (lw_overlap_total){(int32_t)COUNTS_SUM(x.both), (int32_t)COUNTS_SUM(x.either)};
}
#define VEC BITS
#define LANES BITS_LANES
#define LOAD(p) BITS_LOAD(p)
#define LOAD_TAIL(p, k) BITS_TAIL(p, k)
#define ACC lw_overlap
#define ZERO ((lw_overlap){COUNTS_ZERO, COUNTS_ZERO})
#define MERGE(x, y) lw_overlap_merge(x, y)
#define TOTAL lw_overlap_total
#ifdef OVERLAP_SUM
#define SUM(acc) OVERLAP_SUM(acc)
#define SUM4(accs, out) OVERLAP_SUM4(accs, out)
#else
#define SUM(acc) lw_overlap_sum(acc)
#endif
#define CHAINS 2
#define GROUP (LW_REGISTERS / 4)
#define TILE (LW_REGISTERS / 16)
#define LW_OP jaccard
#define LW_TYPE bits
#define ADD(acc, q, v) ((lw_overlap){COUNT((acc).both, BITS_AND(q, v)), COUNT((acc).either, BITS_OR(q, v))})
#define FINISH(total, bias) ((void)(bias), lw_jaccard(total))
#include "loops.h"
#include "forget.h"
