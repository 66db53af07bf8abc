/* AMX: 16 queries against 16 rows by one instruction, 64 bytes of each at a time; the other forms are those of VNNI
 * and BF16. Only where it is named: the tiles have to be asked for (lw_permit), and few machines can test them.
 * Compiled with -mamx-tile -mamx-int8 -mamx-bf16 and what those two are compiled with.
 *
 * Intel's manual (Architectures Software Developer's Manual, volume 2, TDPBSSD, TDPBUUD, TDPBF16PS): tile A holds a
 * query a row, tile B the rows as columns, four bytes (two bf16) of a row in each of its 32-bit elements: so 64 bytes
 * of 16 rows are transposed as 16 x 16 elements. Past the end of a row both are zero and add nothing. */
#include "avx512.h"

#include "lanewise_kernels.h"

#include <string.h>

enum { SIDE = 16, STEP = 64 };

struct config {
    uint8_t palette, start, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

/* 64 bytes of up to 16 rows, from byte `at` of `bytes` on, one row after the other, zeroes beyond. */
static void gather(const char *base, size_t stride, size_t rows, size_t at, size_t bytes, __m512i *out) {
    const size_t left = bytes - at;
    for (size_t r = 0; r < SIDE; r++) {
        const char *from = base + r * stride + at;
        if (r >= rows)
            out[r] = _mm512_setzero_si512();
        else
            out[r] = left >= STEP ? _mm512_loadu_si512(from) : _mm512_maskz_loadu_epi8(LW_MASK64(left), from);
    }
}

static void transpose(const __m512i *in, __m512i *out) {
    const __m512i by16 =
        _mm512_setr_epi32(0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240);
    for (int c = 0; c < SIDE; c++) out[c] = _mm512_i32gather_epi32(by16, (const int *)in + c, 4);
}

/* One tile of results, as 32-bit lanes whatever they are. */
#define LW_PRODUCTS(name, multiply)                                                                          \
    static void name(const char *q, size_t q_stride, size_t queries, const char *base, size_t stride,        \
                     size_t rows, size_t bytes, __m512i *out) {                                              \
        _Alignas(64) __m512i a[SIDE], b[SIDE], flat[SIDE];                                                   \
        _tile_zero(0);                                                                                       \
        for (size_t at = 0; at < bytes; at += STEP) {                                                        \
            gather(q, q_stride, queries, at, bytes, a);                                                      \
            gather(base, stride, rows, at, bytes, flat);                                                     \
            transpose(flat, b);                                                                              \
            _tile_loadd(1, a, STEP);                                                                         \
            _tile_loadd(2, b, STEP);                                                                         \
            multiply(0, 1, 2);                                                                               \
        }                                                                                                    \
        _tile_stored(0, out, STEP);                                                                          \
    }
LW_PRODUCTS(products_i8, _tile_dpbssd)
LW_PRODUCTS(products_u8, _tile_dpbuud)
LW_PRODUCTS(products_bf16, _tile_dpbf16ps)

static void begin(void) {
    struct config config = {.palette = 1};
    for (int t = 0; t < 3; t++) config.row_bytes[t] = STEP, config.rows[t] = SIDE;
    _tile_loadconfig(&config);
}

#define DEFINE(type, base_isa)                                                                               \
    lw_dot_##type##_result lw_dot_##type##_amx(const lw_dot_##type##_query *a, const lw_dot_##type##_row *b, \
                                               size_t n) {                                                   \
        return lw_dot_##type##_##base_isa(a, b, n);                                                          \
    }                                                                                                        \
    void lw_dot_##type##_rows_amx(const lw_dot_##type##_query *q, const lw_dot_##type##_row *base,           \
                                  size_t stride, size_t count, size_t n, lw_dot_##type##_result *out) {      \
        lw_dot_##type##_rows_##base_isa(q, base, stride, count, n, out);                                     \
    }                                                                                                        \
    void lw_dot_##type##_ids_amx(const lw_dot_##type##_query *q, const lw_dot_##type##_row *base,            \
                                 size_t stride, const uint32_t *ids, size_t count, size_t n,                 \
                                 lw_dot_##type##_result *out) {                                              \
        lw_dot_##type##_ids_##base_isa(q, base, stride, ids, count, n, out);                                 \
    }                                                                                                        \
    void lw_dot_##type##_tile_amx(const lw_dot_##type##_query *q, size_t q_stride, size_t queries,           \
                                  const lw_dot_##type##_row *base, size_t stride, size_t count, size_t n,    \
                                  lw_dot_##type##_result *out, size_t out_stride) {                          \
        _Alignas(64) lw_dot_##type##_result tile[SIDE][SIDE];                                                \
        begin();                                                                                             \
        for (size_t k = 0; k < count; k += SIDE)                                                             \
            for (size_t j = 0; j < queries; j += SIDE) {                                                     \
                const size_t rows = count - k < SIDE ? count - k : SIDE;                                     \
                const size_t some = queries - j < SIDE ? queries - j : SIDE;                                 \
                products_##type((const char *)q + j * q_stride, q_stride, some,                              \
                                (const char *)base + k * stride, stride, rows, n * sizeof *base,             \
                                (__m512i *)tile);                                                            \
                for (size_t i = 0; i < some; i++)                                                            \
                    memcpy(out + (j + i) * out_stride + k, tile[i], rows * sizeof *out);                     \
            }                                                                                                \
        _tile_release();                                                                                     \
    }
DEFINE(i8, avx512vnni)
DEFINE(u8, avx512vnni)
DEFINE(bf16, avx512bf16)
