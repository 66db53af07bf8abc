/* dot of LW_TYPE for an instruction set LW_ISA that multiplies matrices of bytes: the tile form goes by 8 queries x 8 rows
 * (a smaller block would spend on arranging the bytes what it gains), which BLOCK(q, q_stride, row, stride, n, out,
 * out_stride) does; what is left over, and the other forms, are those of LW_BASE. LW_TYPE is forgotten at the end. */
#include "names.h"

#define LW_OP dot
#define BASE(form) LW_NAME_(LW_OP, LW_TYPE, form, LW_BASE)

LW_RESULT LW_NAME(_)(const LW_QUERY *a, const LW_ELEMENT *b, size_t n) { return BASE(_)(a, b, n); }

void LW_NAME(_rows_)(const LW_QUERY *q, const LW_ELEMENT *base, size_t stride, size_t count, size_t n,
                     LW_RESULT *out) {
    BASE(_rows_)(q, base, stride, count, n, out);
}

void LW_NAME(_ids_)(const LW_QUERY *q, const LW_ELEMENT *base, size_t stride, const uint32_t *ids,
                    size_t count, size_t n, LW_RESULT *out) {
    BASE(_ids_)(q, base, stride, ids, count, n, out);
}

void LW_NAME(_tile_)(const LW_QUERY *q, size_t q_stride, size_t queries, const LW_ELEMENT *base,
                     size_t stride, size_t count, size_t n, LW_RESULT *out, size_t out_stride) {
    const size_t whole_queries = queries - queries % SIDE, whole_rows = count - count % SIDE;
    for (size_t k = 0; k < whole_rows; k += SIDE)
        for (size_t j = 0; j < whole_queries; j += SIDE)
            BLOCK((const uint8_t *)q + j * q_stride, q_stride, (const uint8_t *)base + k * stride, stride, n,
                  out + j * out_stride + k, out_stride);
    BASE(_tile_)(q, q_stride, whole_queries, base + whole_rows * stride, stride, count - whole_rows, n,
                 out + whole_rows, out_stride);
    BASE(_tile_)(q + whole_queries * q_stride, q_stride, queries - whole_queries, base, stride, count, n,
                 out + whole_queries * out_stride, out_stride);
}

#undef BASE
#undef BLOCK
#undef LW_OP
#undef LW_TYPE
