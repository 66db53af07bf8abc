/* Forgets the words of loops.h that describe registers, so that others can be said. */
#undef LW_TYPE
#undef VEC
#undef LANES
#undef LOAD
#undef LOAD_TAIL
#undef QVEC
#undef LOADQ
#undef LOADQ_TAIL
#undef ACC
#undef TOTAL
#undef ZERO
#undef MERGE
#undef SUM
#undef SUM4
#undef GROUP
#undef TILE
