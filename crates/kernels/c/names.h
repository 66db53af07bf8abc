/* What loops.h and loops_sve.h share: names made of the words of one kernel (LW_ISA, LW_OP, LW_TYPE), and how the memory
 * of rows is asked for. */
#ifndef LW_NAMES_H
#define LW_NAMES_H

#include "lanewise_kernels.h"

#define LW_INLINE static inline __attribute__((always_inline))
#define LW_NAME__(op, type, form, isa) lw_##op##_##type##form##isa
#define LW_NAME_(op, type, form, isa) LW_NAME__(op, type, form, isa)
#define LW_NAME(form) LW_NAME_(LW_OP, LW_TYPE, form, LW_ISA)
#define LW_QUERY LW_NAME_(LW_OP, LW_TYPE, _query, )
#define LW_ELEMENT LW_NAME_(LW_OP, LW_TYPE, _row, )
#define LW_RESULT LW_NAME_(LW_OP, LW_TYPE, _result, )
#define LW_LINE 64
/* Lines of each row of the first gathered group that are asked for before its loop starts. */
enum { LW_HEAD_LINES = 4 };
/* Bytes of rows that the tile form keeps warm in the L2 while it goes through the queries. */
enum { LW_PANEL = 256 << 10 };
/* Into the L1 if `near`, else into the L2. The hint has to be a constant. */
LW_INLINE void lw_prefetch(const char *line, const int near) {
    if (near)
        __builtin_prefetch(line, 0, 3);
    else
        __builtin_prefetch(line, 0, 2);
}
static inline const char *lw_at(const void *base, size_t bytes) { return (const char *)base + bytes; }

#endif
