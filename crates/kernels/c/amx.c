/* AMX: the `tile` form of 16 rows against 16 queries by one instruction, 64 bytes of each at a time; the other forms
 * are those of VNNI and BF16. Compiled with -mamx-tile -mamx-int8 -mamx-bf16 and what those two are compiled with.
 *
 *   for each panel of rows that the L2 holds, group of 64 queries, and part of their length of 1 KiB
 *     pack that part of the queries
 *     for each 32 queries and each 32 rows of the panel (64, where 16 queries are left)
 *       for each 64 bytes: 4 products of a tile of 16 rows and a tile of 16 queries
 *       transpose the sums, add those of the parts before, and finish with the last part
 *
 * Intel's manual (Architectures Software Developer's Manual, volume 2, TDPBSSD, TDPBUUD, TDPBF16PS): tile A holds a
 * vector a row, as rows lie in memory, so they are loaded from there; tile B holds the vectors as columns, four bytes
 * (two bf16) in each of its 32-bit elements: that is what packing does. C then has the results row by row, and `out`
 * wants them query by query. The other way round every row would be packed instead of every result transposed: more
 * work once a row is longer than 4 * queries bytes. A product takes 16 cycles and a tile's load 8, but a sum waits 52
 * cycles for the one before it: hence four sums at once, by two tiles of either side.
 *
 * No byte past a row's end is read: the last bytes of rows are copied, with zeroes behind them, which add nothing.
 * Where rows end, tiles start earlier, and what was there already is not stored again. A float result has the same
 * bits in every call: its terms are added in an order that its length alone decides.
 *
 * Squared L2 and cosine come from the product and the vectors' own: exact in integers, which wrap and end where they
 * should. Floats would cancel in an L2, which is left out. */
#include "avx512.h"

#include "cosine.h"
#include "lanewise_kernels.h"

#include <stdatomic.h>
#include <string.h>

#define LW_INLINE static inline __attribute__((always_inline))
#define LW_UNROLL _Pragma("GCC unroll 16")

/* The system is asked at the first tile, so that who wants none keeps what it costs to be permitted: threads with
 * small signal stacks. The first answer holds, and results with it. */
static int permitted(void) {
    enum { UNKNOWN, YES, NO };
    static atomic_int answer;
    int known = atomic_load_explicit(&answer, memory_order_relaxed);
    if (known == UNKNOWN) {
        const int asked = lw_permit(LW_AMX_TILE) ? YES : NO;
        if (atomic_compare_exchange_strong_explicit(&answer, &known, asked, memory_order_relaxed,
                                                    memory_order_relaxed))
            known = asked;
    }
    return known == YES;
}

enum type { I8, U8, BF16 };
enum op { DOT, L2, COSINE };

/* SIDE: vectors of a tile. STEP: bytes of a vector in a tile. */
enum { SIDE = 16, STEP = 64, TILE = SIDE * STEP };
/* GROUP: queries packed at once. PART: bytes of a query packed at once. */
enum { GROUP = 64, PART = 1024 };
/* Rows of a panel, and their bytes: three quarters of the L2 of the cores that have AMX. */
enum { PANEL_ROWS = 1024, PANEL = 3 << 19 };

struct config {
    uint8_t palette, start, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

/* Tiles 0 to 3 are sums, 4 and 5 rows, 6 and 7 queries. */
static void begin(size_t rows) {
    struct config config = {.palette = 1};
    for (int t = 0; t < 8; t++) config.row_bytes[t] = STEP, config.rows[t] = t < 6 ? (uint8_t)rows : SIDE;
    /* GCC believes that only 8 of the bytes are read. */
    __asm__ volatile("" ::"r"(&config) : "memory");
    _tile_loadconfig(&config);
}

/* Elements c to c + 3 of 16 vectors that are STEP apart: out[i] has those at c + i. */
LW_INLINE void transpose(const char *from, size_t c, __m512i *out) {
    __m512i r[4];
    LW_UNROLL for (int i = 0; i < 4; i++) {
        const char *p = from + i * STEP + c * 4;
#define QUARTER(lane) _mm_load_si128((const __m128i *)(p + (lane) * 4 * STEP))
        r[i] = _mm512_castsi128_si512(QUARTER(0));
        r[i] = _mm512_inserti32x4(r[i], QUARTER(1), 1);
        r[i] = _mm512_inserti32x4(r[i], QUARTER(2), 2);
        r[i] = _mm512_inserti32x4(r[i], QUARTER(3), 3);
#undef QUARTER
    }
    const __m512i a = _mm512_unpacklo_epi32(r[0], r[1]), b = _mm512_unpacklo_epi32(r[2], r[3]);
    const __m512i d = _mm512_unpackhi_epi32(r[0], r[1]), e = _mm512_unpackhi_epi32(r[2], r[3]);
    out[0] = _mm512_unpacklo_epi64(a, b);
    out[1] = _mm512_unpackhi_epi64(a, b);
    out[2] = _mm512_unpacklo_epi64(d, e);
    out[3] = _mm512_unpackhi_epi64(d, e);
}

/* `bytes` (at most 64) of each of `count` vectors, zeroes behind them. */
LW_INLINE void copy(const char *from, size_t stride, size_t count, size_t bytes, char *to) {
    const __mmask64 mask = bytes < STEP ? LW_MASK64(bytes) : ~0ull;
    for (size_t r = 0; r < count; r++)
        _mm512_store_si512(to + r * STEP, _mm512_maskz_loadu_epi8(mask, from + r * stride));
}

/* Packs `bytes` of up to 16 queries: a tile B a step. */
static void pack(const char *q, size_t stride, size_t queries, size_t bytes, char *to) {
    _Alignas(64) char flat[TILE] = {0};
    for (size_t at = 0; at < bytes; at += STEP, to += TILE) {
        copy(q + at, stride, queries, bytes - at < STEP ? bytes - at : STEP, flat);
        LW_UNROLL for (int c = 0; c < SIDE; c += 4) {
            __m512i columns[4];
            transpose(flat, c, columns);
            LW_UNROLL for (int i = 0; i < 4; i++) _mm512_store_si512(to + (c + i) * STEP, columns[i]);
        }
    }
}

/* lw_cosine of half of 16 results, to the bit. */
LW_INLINE __m256 cosines(__m512d dot, __m512d row, __m512d query) {
    const __m512d one = _mm512_set1_pd(1), zero = _mm512_setzero_pd();
    const __mmask8 none =
        _mm512_cmp_pd_mask(row, zero, _CMP_EQ_OQ) | _mm512_cmp_pd_mask(query, zero, _CMP_EQ_OQ);
    /* No 0 / 0: it would end a program that traps on invalid operations. */
    __m512d c = _mm512_maskz_div_pd((__mmask8)~none, dot, _mm512_sqrt_pd(_mm512_mul_pd(row, query)));
    /* As written there, a NaN stays. */
    c = _mm512_mask_mov_pd(c, _mm512_cmp_pd_mask(c, one, _CMP_GT_OQ), one);
    c = _mm512_mask_mov_pd(c, _mm512_cmp_pd_mask(c, _mm512_sub_pd(zero, one), _CMP_LT_OQ),
                           _mm512_sub_pd(zero, one));
    const __m512d plain = _mm512_mask_mov_pd(dot, _mm512_cmp_pd_mask(dot, dot, _CMP_EQ_OQ), zero);
    return _mm512_cvtpd_ps(_mm512_mask_mov_pd(c, none, plain));
}

#define LOW(x) _mm512_castsi512_si256(x)
#define HIGH(x) _mm512_extracti64x4_epi64(x, 1)
#define WIDE(x) (type == BF16 ? _mm512_cvtps_pd(_mm256_castsi256_ps(x)) : _mm512_cvtepi32_pd(x))

/* Results from products, and from the rows' and the query's with themselves. */
LW_INLINE __m512i finish(const enum op op, const enum type type, __m512i sum, __m512i rows, __m512i query) {
    if (op == DOT) return sum;
    if (op == L2) return _mm512_sub_epi32(_mm512_add_epi32(rows, query), _mm512_slli_epi32(sum, 1));
    const __m256 low = cosines(WIDE(LOW(sum)), WIDE(LOW(rows)), WIDE(LOW(query)));
    const __m256 high = cosines(WIDE(HIGH(sum)), WIDE(HIGH(rows)), WIDE(HIGH(query)));
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_castps_si256(low)), _mm256_castps_si256(high), 1);
}

/* Four tiles of rows with one of queries, or two with two: where the rows start; which of them have results to be
 * stored; the first byte of the part that is multiplied; the last step of it, copied, if `tail`; the packed queries;
 * and the sums, a tile of queries after the other. */
struct block {
    size_t tiles, starts[4];
    __mmask16 masks[4];
    const char *rows[4], *queries[2];
    size_t stride, steps;
    int tail;
    _Alignas(64) char last[4][TILE], sums[4][TILE];
};

/* Where the results of a tile of queries go, and what they are finished with. `before`: those of earlier parts are
 * there, to be added. */
struct results {
    char *out;
    size_t stride, queries;
    int before;
    const int32_t *row_norms, *query_norms; /* the rows' from row `first` - SIDE on */
    size_t first;
};

/* Tiles of rows are stored beside each other, so that pages of `out` are touched one after the other. Where there is no
 * result there are zeroes, for what memory held before may be a number that traps. */
LW_INLINE void store(const enum op op, const enum type type, const struct block *b, const char (*sums)[TILE],
                     const struct results *r) {
    LW_UNROLL for (size_t c = 0; c < SIDE; c += 4) for (size_t t = 0; t < b->tiles; t++) {
        __m512i sum[4];
        transpose(sums[t], c, sum);
        LW_UNROLL for (size_t j = 0; j < 4; j++) {
            if (c + j >= r->queries) break;
            char *to = r->out + (c + j) * r->stride + b->starts[t] * 4;
            sum[j] = _mm512_maskz_mov_epi32(b->masks[t], sum[j]);
            if (r->before) {
                const __m512i old = _mm512_maskz_loadu_epi32(b->masks[t], to);
                sum[j] = type == BF16 ? F_AS_I(_mm512_add_ps(I_AS_F(old), I_AS_F(sum[j])))
                                      : _mm512_add_epi32(old, sum[j]);
            }
            if (op != DOT)
                sum[j] = finish(
                    op, type, sum[j],
                    _mm512_maskz_loadu_epi32(b->masks[t], r->row_norms + SIDE + b->starts[t] - r->first),
                    _mm512_set1_epi32(r->query_norms[c + j]));
            _mm512_mask_storeu_epi32(to, b->masks[t], sum[j]);
        }
    }
}

/* Two tiles of rows by two of queries, or four by one. */
#define PRODUCTS(type, multiply)                                                                             \
    static __attribute__((noinline)) void two_by_two_##type(struct block *b) {                               \
        const char *r0 = b->rows[0], *r1 = b->rows[1], *q0 = b->queries[0], *q1 = b->queries[1];             \
        _tile_zero(0);                                                                                       \
        _tile_zero(1);                                                                                       \
        _tile_zero(2);                                                                                       \
        _tile_zero(3);                                                                                       \
        size_t stride = b->stride;                                                                           \
        for (size_t s = 0; s < b->steps + b->tail; s++) {                                                    \
            if (s == b->steps) r0 = b->last[0], r1 = b->last[1], stride = STEP;                              \
            _tile_loadd(4, r0, stride);                                                                      \
            _tile_loadd(6, q0, STEP);                                                                        \
            multiply(0, 4, 6);                                                                               \
            _tile_loadd(5, r1, stride);                                                                      \
            multiply(1, 5, 6);                                                                               \
            _tile_loadd(7, q1, STEP);                                                                        \
            multiply(2, 4, 7);                                                                               \
            multiply(3, 5, 7);                                                                               \
            r0 += STEP, r1 += STEP, q0 += TILE, q1 += TILE;                                                  \
        }                                                                                                    \
        _tile_stored(0, b->sums[0], STEP);                                                                   \
        _tile_stored(1, b->sums[1], STEP);                                                                   \
        _tile_stored(2, b->sums[2], STEP);                                                                   \
        _tile_stored(3, b->sums[3], STEP);                                                                   \
    }                                                                                                        \
    static __attribute__((noinline)) void four_by_one_##type(struct block *b) {                              \
        const char *r0 = b->rows[0], *r1 = b->rows[1], *r2 = b->rows[2], *r3 = b->rows[3];                   \
        const char *q = b->queries[0];                                                                       \
        _tile_zero(0);                                                                                       \
        _tile_zero(1);                                                                                       \
        _tile_zero(2);                                                                                       \
        _tile_zero(3);                                                                                       \
        size_t stride = b->stride;                                                                           \
        for (size_t s = 0; s < b->steps + b->tail; s++) {                                                    \
            if (s == b->steps) {                                                                             \
                r0 = b->last[0], r1 = b->last[1], r2 = b->last[2], r3 = b->last[3];                          \
                stride = STEP;                                                                               \
            }                                                                                                \
            _tile_loadd(6, q, STEP);                                                                         \
            _tile_loadd(4, r0, stride);                                                                      \
            multiply(0, 4, 6);                                                                               \
            _tile_loadd(5, r1, stride);                                                                      \
            multiply(1, 5, 6);                                                                               \
            _tile_loadd(4, r2, stride);                                                                      \
            multiply(2, 4, 6);                                                                               \
            _tile_loadd(5, r3, stride);                                                                      \
            multiply(3, 5, 6);                                                                               \
            r0 += STEP, r1 += STEP, r2 += STEP, r3 += STEP, q += TILE;                                       \
        }                                                                                                    \
        _tile_stored(0, b->sums[0], STEP);                                                                   \
        _tile_stored(1, b->sums[1], STEP);                                                                   \
        _tile_stored(2, b->sums[2], STEP);                                                                   \
        _tile_stored(3, b->sums[3], STEP);                                                                   \
    }
PRODUCTS(i8, _tile_dpbssd)
PRODUCTS(u8, _tile_dpbuud)
PRODUCTS(bf16, _tile_dpbf16ps)

/* The product of a vector with itself, as 32 bits. */
LW_INLINE int32_t norm(const enum type type, const char *v, size_t n) {
    if (type == I8) return lw_dot_i8_avx512vnni((const int8_t *)v, (const int8_t *)v, n);
    if (type == U8) return lw_dot_u8_avx512vnni((const uint8_t *)v, (const uint8_t *)v, n);
    const float sum = lw_dot_bf16_avx512bf16((const uint16_t *)v, (const uint16_t *)v, n);
    int32_t bits;
    memcpy(&bits, &sum, sizeof bits);
    return bits;
}

/* Points the block at the rows from `k` on, `here` bytes of each from `at` on. */
LW_INLINE void point(struct block *b, const size_t tall, const char *base, size_t count, size_t k, size_t end,
                     size_t at, size_t here) {
    const size_t side = count < SIDE ? count : SIDE, tiles = (end - k + SIDE - 1) / SIDE, left = here % STEP;
    b->tiles = tiles < tall ? tiles : tall;
    b->steps = here / STEP, b->tail = left > 0;
    for (size_t t = 0; t < tall; t++) {
        const size_t wanted = k + t * SIDE, start = wanted + side < count ? wanted : count - side;
        const unsigned stored = (unsigned)(wanted - start) % 32; /* a tile past the end has no results */
        b->starts[t] = start;
        b->masks[t] = (__mmask16)(((1u << side) - 1) & ~((1u << stored) - 1));
        b->rows[t] = base + start * b->stride + at;
        if (left) copy(b->rows[t] + here - left, b->stride, side, left, b->last[t]);
    }
}

struct room {
    _Alignas(64) char packed[GROUP / SIDE][PART / STEP * TILE];
    struct block block;
    /* Tiles of rows may start before the panel. */
    int32_t row_norms[SIDE + PANEL_ROWS + SIDE], query_norms[GROUP];
};

LW_INLINE void tile(const enum op op, const enum type type, const char *q, size_t q_stride, size_t queries,
                    const char *base, size_t stride, size_t count, size_t n, char *out, size_t out_stride) {
    void (*const two_by_two)(struct block *) = type == I8   ? two_by_two_i8
                                               : type == U8 ? two_by_two_u8
                                                            : two_by_two_bf16;
    void (*const four_by_one)(struct block *) = type == I8   ? four_by_one_i8
                                                : type == U8 ? four_by_one_u8
                                                             : four_by_one_bf16;
    struct room room;
    struct block *b = &room.block;
    const size_t bytes = n << (type == BF16);
    /* The least number of parts, alike but for the last one. */
    const size_t parts = bytes / PART + !!(bytes % PART) + !bytes;
    const size_t part = (bytes / parts + !!(bytes % parts) + STEP - 1) / STEP * STEP;
    const size_t fit = PANEL / (bytes + !bytes) / GROUP * GROUP;
    const size_t panel = fit > PANEL_ROWS ? PANEL_ROWS : fit ? fit : GROUP;
    if (!queries || !count) return;
    begin(count < SIDE ? count : SIDE);
    b->stride = stride;
    for (size_t first = 0; first < count; first += panel) {
        const size_t end = count - first < panel ? count : first + panel;
        if (op != DOT)
            for (size_t k = first; k < end; k++)
                room.row_norms[SIDE + k - first] = norm(type, base + k * stride, n);
        for (size_t group = 0; group < queries; group += GROUP) {
            const size_t some = queries - group < GROUP ? queries - group : GROUP;
            const char *from = q + group * q_stride;
            if (op != DOT)
                for (size_t j = 0; j < some; j++) room.query_norms[j] = norm(type, from + j * q_stride, n);
            for (size_t p = 0; p < parts; p++) {
                const size_t at = p * part, here = bytes - at < part ? bytes - at : part;
                for (size_t j = 0; j < some; j += SIDE)
                    pack(from + j * q_stride + at, q_stride, some - j < SIDE ? some - j : SIDE, here,
                         room.packed[j / SIDE]);
                for (size_t j = 0; j < some; j += 2 * SIDE) {
                    const size_t wide = some - j > SIDE ? 2 : 1, tall = 4 / wide;
                    b->queries[0] = room.packed[j / SIDE], b->queries[1] = room.packed[j / SIDE + wide - 1];
                    for (size_t k = first; k < end; k += tall * SIDE) {
                        point(b, tall, base, count, k, end, at, here);
                        (wide == 2 ? two_by_two : four_by_one)(b);
                        for (size_t c = 0; c < wide; c++) {
                            const size_t query = j + c * SIDE;
                            const struct results results = {
                                .out = out + (group + query) * out_stride * 4,
                                .stride = out_stride * 4,
                                .queries = some - query,
                                .before = p > 0,
                                .row_norms = room.row_norms,
                                .query_norms = room.query_norms + query,
                                .first = first,
                            };
                            if (p + 1 == parts)
                                store(op, type, b, b->sums + c * tall, &results);
                            else
                                store(DOT, type, b, b->sums + c * tall, &results);
                        }
                    }
                }
            }
        }
    }
    _tile_release();
}

/* Below this VNNI is faster, and integers are the same. Floats are not: they stay with the tiles, so that a result has
 * the same bits however many there are in a call. */
LW_INLINE int worth(const enum type type, size_t queries, size_t count) {
    return type == BF16 || (queries >= 8 && count >= 2 * SIDE);
}

#define DEFINE(op, OP, type, TYPE, base_isa)                                                                 \
    lw_##op##_##type##_result lw_##op##_##type##_amx(const lw_##op##_##type##_query *a,                      \
                                                     const lw_##op##_##type##_row *b, size_t n) {            \
        return lw_##op##_##type##_##base_isa(a, b, n);                                                       \
    }                                                                                                        \
    void lw_##op##_##type##_rows_amx(const lw_##op##_##type##_query *q, const lw_##op##_##type##_row *base,  \
                                     size_t stride, size_t count, size_t n,                                  \
                                     lw_##op##_##type##_result *out) {                                       \
        lw_##op##_##type##_rows_##base_isa(q, base, stride, count, n, out);                                  \
    }                                                                                                        \
    void lw_##op##_##type##_ids_amx(const lw_##op##_##type##_query *q, const lw_##op##_##type##_row *base,   \
                                    size_t stride, const uint32_t *ids, size_t count, size_t n,              \
                                    lw_##op##_##type##_result *out) {                                        \
        lw_##op##_##type##_ids_##base_isa(q, base, stride, ids, count, n, out);                              \
    }                                                                                                        \
    void lw_##op##_##type##_tile_amx(const lw_##op##_##type##_query *q, size_t q_stride, size_t queries,     \
                                     const lw_##op##_##type##_row *base, size_t stride, size_t count,        \
                                     size_t n, lw_##op##_##type##_result *out, size_t out_stride) {          \
        if (worth(TYPE, queries, count) && permitted())                                                      \
            tile(OP, TYPE, (const char *)q, q_stride, queries, (const char *)base, stride, count, n,         \
                 (char *)out, out_stride);                                                                   \
        else                                                                                                 \
            lw_##op##_##type##_tile_##base_isa(q, q_stride, queries, base, stride, count, n, out,            \
                                               out_stride);                                                  \
    }
DEFINE(dot, DOT, i8, I8, avx512vnni)
DEFINE(dot, DOT, u8, U8, avx512vnni)
DEFINE(dot, DOT, bf16, BF16, avx512bf16)
DEFINE(l2, L2, i8, I8, avx512vnni)
DEFINE(l2, L2, u8, U8, avx512vnni)
DEFINE(cosine, COSINE, i8, I8, avx512vnni)
DEFINE(cosine, COSINE, u8, U8, avx512vnni)
DEFINE(cosine, COSINE, bf16, BF16, avx512)
