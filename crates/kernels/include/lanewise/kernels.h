/* Lanewise kernels: distances between vectors, each by the best code for the CPU that runs it.
 *
 * A kernel has four forms. Pointers need the alignment of their element only; rows are `stride` bytes apart, which may
 * be 0 or more than a row is long.
 *   lw_OP_TYPE        a query and a row, n row elements                   -> the result
 *   lw_OP_TYPE_rows   a query and `count` rows that follow each other     -> out[count]
 *   lw_OP_TYPE_ids    a query and the rows ids[0..count] of a matrix      -> out[count]
 *   lw_OP_TYPE_tile   `queries` queries, q_stride bytes apart, and `count` rows -> out[i * out_stride + j], out_stride
 *                     being counted in results, at least `count`
 * The last three give a row the same result wherever it stands in the call; the floats of tile may be added in another
 * order than those of rows and ids. Kernels never allocate, never fail, read no byte outside their operands and keep no
 * state: any thread may call any of them at any time, a signal's handler once a first call has returned. They want at
 * most 96 KiB of stack (AMX's tile; f16's rows, ids and tile 40 KiB; the others some KiB).
 *
 * Types. f16 (IEEE 754 half) and bf16 are bit patterns of 16 bits. i4 (two's complement) and u4 hold two numbers a byte.
 * In f32f16, f32bf16, f32i8, f32u8 the query is f32. In u8u4 the query has a byte (0 to 15) for each of the row's
 * numbers: q[i] meets the high half of row byte i and q[n + i] the low half. In u4bits the query is four bit planes of n
 * bytes, plane p worth 2^p a bit. n counts row elements; row bytes for i4, u4, u8u4, bits and u4bits.
 *
 * Results. dot = sum a*b. l2 = sum (a-b)^2, no root taken. cosine = dot / sqrt(sum a^2 * sum b^2), 0 if a sum is 0,
 * within -1 and 1; for floats the squares must stay inside float. l1 = sum |a-b|. linf = max |a-b|. hamming = bits that
 * differ. jaccard = 1 - (bits in both / bits in either), 0 if there are none. A NaN anywhere makes a NaN.
 *
 * Bounds. Integer results are the same on every CPU, and exact up to the n given at the kernel; beyond it a sum may leave
 * its 32 bits, and the result is any number. Float results are within (n + 3) * 2^-23 * sum |terms|, and may differ
 * between CPUs inside it.
 * Dot and cosine of bf16 may take numbers, products and sums nearer to 0 than 2^-126 as 0, in one form and not in another.
 * avx512fp16 alone, which runs only where LANEWISE_ISA names it, rounds products to 11 bits.
 *
 * LANEWISE_ISA. Not set, each kernel is the best that the CPU can run. Set to a level (lw_level lists them) when the
 * process first uses a kernel, nothing goes beyond that level. A name that is no level, or one that this CPU has not,
 * leaves the scalar kernels, and lw_chosen()->status says so. A program that sets it itself does so before it loads
 * (dlopen) what calls kernels by name: with glibc the loader looks, too.
 *
 * The sections of this file between the marks are made from the lists in c/list.h: cargo run -p xtask -- codegen */
#ifndef LANEWISE_KERNELS_PUBLIC_H
#define LANEWISE_KERNELS_PUBLIC_H

#include <stddef.h>
#include <stdint.h>

/* Given by the library's own build, which says by it what leaves the library. */
#if defined(LW_EXPORTING) && defined(_WIN32)
#define LW_API __declspec(dllexport)
#elif defined(LW_EXPORTING)
#define LW_API __attribute__((visibility("default")))
#else
#define LW_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

// clang-format off
// <!-- generated: numbers -->
enum lw_kernel {
    LW_dot_f32,
    LW_l2_f32,
    LW_cosine_f32,
    LW_l1_f32,
    LW_linf_f32,
    LW_dot_f16,
    LW_l2_f16,
    LW_cosine_f16,
    LW_dot_bf16,
    LW_l2_bf16,
    LW_cosine_bf16,
    LW_dot_f32f16,
    LW_l2_f32f16,
    LW_dot_f32bf16,
    LW_l2_f32bf16,
    LW_dot_f32i8,
    LW_l2_f32i8,
    LW_dot_f32u8,
    LW_l2_f32u8,
    LW_dot_i8,
    LW_l2_i8,
    LW_cosine_i8,
    LW_l1_i8,
    LW_linf_i8,
    LW_dot_u8,
    LW_l2_u8,
    LW_cosine_u8,
    LW_dot_i4,
    LW_l2_i4,
    LW_dot_u4,
    LW_l2_u4,
    LW_dot_i8u4,
    LW_l2_u8u4,
    LW_dot_u4bits,
    LW_hamming_bits,
    LW_jaccard_bits,
    LW_scan_pq4,
    LW_KERNEL_COUNT
};
// <!-- end -->
// clang-format on

/* The table: every variant of every kernel, and which of them this process has chosen. For callers that keep pointers,
 * or want to say what runs. The numbers of kernels and the layout of these structures belong to one version of the
 * library; its soname changes with them. */

#define LW_ANY SIZE_MAX

/* A function pointer of any form of any kernel; cast to the kernel's own type before the call. */
typedef void (*lw_function)(void);

struct lw_variant {
    const char *op, *type, *isa;
    uint32_t kernel;                  /* enum lw_kernel */
    uint32_t needs;                   /* features without which the code is illegal, or better not used */
    lw_function one, rows, ids, tile; /* a scan has `rows` alone */
};

enum lw_choice_status { LW_CHOSEN, LW_UNKNOWN_LEVEL, LW_LEVEL_NOT_ON_THIS_CPU };

struct lw_choice {
    const char *level;            /* the level forced, or the highest that the CPU has whole */
    uint32_t cpu;                 /* features of the CPU */
    uint32_t allowed;             /* features that kernels may use */
    enum lw_choice_status status; /* on an error every slot is scalar */
    const struct lw_variant *slot[LW_KERNEL_COUNT];
};

/* The choice of this process: made at the first call from LANEWISE_ISA and the CPU, then kept. */
LW_API const struct lw_choice *lw_chosen(void);

/* Every variant compiled into this library. */
LW_API const struct lw_variant *lw_variants(size_t *count);

/* LW_KERNEL_COUNT, for callers in other languages to compare with their own. */
LW_API uint32_t lw_kernel_count(void);

/* Largest n for which the kernel's result is exact; LW_ANY: no bound. */
LW_API size_t lw_bound(uint32_t kernel);

/* Query elements for each row element: 1, 2 or 4. */
LW_API uint32_t lw_per(uint32_t kernel);

/* Name of the i-th level, ascending; NULL past the last. `features` may be NULL. */
LW_API const char *lw_level(size_t i, uint32_t *features);

/* Name of a feature bit; NULL if there is none. */
LW_API const char *lw_feature_name(uint32_t bit);

/* Features of the CPU that runs this, as the operating system lets them be used. */
LW_API uint32_t lw_cpu_features(void);

/* Chooses for a CPU with `cpu` features; `level` NULL or "" means the best. Pure. */
LW_API struct lw_choice lw_choose(const char *level, uint32_t cpu);

/* Lets the variants of `features` run in this process, where an operating system wants to be asked (Linux, for AMX's
 * tiles). 0: it refused. Nobody has to call it: the first tile form that wants tiles asks by itself, and where they are
 * refused it does as VNNI and BF16 do. */
LW_API int lw_permit(uint32_t features);

/* Squared L2 distances from inner products of the same rows: out[k] = query_norm + norms[id] - 2 out[k], id being
 * ids[k], or k where ids is NULL. Norms are squared lengths. Exact for any integers whose distance fits int32. */
static inline void lw_l2_from_dots(int32_t query_norm, const int32_t *norms, const uint32_t *ids,
                                   size_t count, int32_t *out) {
    for (size_t k = 0; k < count; k++) {
        const uint32_t norm = (uint32_t)norms[ids ? ids[k] : k];
        out[k] = (int32_t)((uint32_t)query_norm + norm - 2 * (uint32_t)out[k]);
    }
}

/* The kernels by name. */

// clang-format off
// <!-- generated: functions -->
/* dot, f32. */
LW_API float lw_dot_f32(const float *a, const float *b, size_t n);
LW_API void lw_dot_f32_rows(const float *q, const float *base, size_t stride, size_t count, size_t n,
                            float *out);
LW_API void lw_dot_f32_ids(const float *q, const float *base, size_t stride, const uint32_t *ids,
                           size_t count, size_t n, float *out);
LW_API void lw_dot_f32_tile(const float *q, size_t q_stride, size_t queries, const float *base, size_t stride,
                            size_t count, size_t n, float *out, size_t out_stride);

/* l2, f32. */
LW_API float lw_l2_f32(const float *a, const float *b, size_t n);
LW_API void lw_l2_f32_rows(const float *q, const float *base, size_t stride, size_t count, size_t n,
                           float *out);
LW_API void lw_l2_f32_ids(const float *q, const float *base, size_t stride, const uint32_t *ids, size_t count,
                          size_t n, float *out);
LW_API void lw_l2_f32_tile(const float *q, size_t q_stride, size_t queries, const float *base, size_t stride,
                           size_t count, size_t n, float *out, size_t out_stride);

/* cosine, f32. */
LW_API float lw_cosine_f32(const float *a, const float *b, size_t n);
LW_API void lw_cosine_f32_rows(const float *q, const float *base, size_t stride, size_t count, size_t n,
                               float *out);
LW_API void lw_cosine_f32_ids(const float *q, const float *base, size_t stride, const uint32_t *ids,
                              size_t count, size_t n, float *out);
LW_API void lw_cosine_f32_tile(const float *q, size_t q_stride, size_t queries, const float *base,
                               size_t stride, size_t count, size_t n, float *out, size_t out_stride);

/* l1, f32. */
LW_API float lw_l1_f32(const float *a, const float *b, size_t n);
LW_API void lw_l1_f32_rows(const float *q, const float *base, size_t stride, size_t count, size_t n,
                           float *out);
LW_API void lw_l1_f32_ids(const float *q, const float *base, size_t stride, const uint32_t *ids, size_t count,
                          size_t n, float *out);
LW_API void lw_l1_f32_tile(const float *q, size_t q_stride, size_t queries, const float *base, size_t stride,
                           size_t count, size_t n, float *out, size_t out_stride);

/* linf, f32. */
LW_API float lw_linf_f32(const float *a, const float *b, size_t n);
LW_API void lw_linf_f32_rows(const float *q, const float *base, size_t stride, size_t count, size_t n,
                             float *out);
LW_API void lw_linf_f32_ids(const float *q, const float *base, size_t stride, const uint32_t *ids,
                            size_t count, size_t n, float *out);
LW_API void lw_linf_f32_tile(const float *q, size_t q_stride, size_t queries, const float *base,
                             size_t stride, size_t count, size_t n, float *out, size_t out_stride);

/* dot, f16. */
LW_API float lw_dot_f16(const uint16_t *a, const uint16_t *b, size_t n);
LW_API void lw_dot_f16_rows(const uint16_t *q, const uint16_t *base, size_t stride, size_t count, size_t n,
                            float *out);
LW_API void lw_dot_f16_ids(const uint16_t *q, const uint16_t *base, size_t stride, const uint32_t *ids,
                           size_t count, size_t n, float *out);
LW_API void lw_dot_f16_tile(const uint16_t *q, size_t q_stride, size_t queries, const uint16_t *base,
                            size_t stride, size_t count, size_t n, float *out, size_t out_stride);

/* l2, f16. */
LW_API float lw_l2_f16(const uint16_t *a, const uint16_t *b, size_t n);
LW_API void lw_l2_f16_rows(const uint16_t *q, const uint16_t *base, size_t stride, size_t count, size_t n,
                           float *out);
LW_API void lw_l2_f16_ids(const uint16_t *q, const uint16_t *base, size_t stride, const uint32_t *ids,
                          size_t count, size_t n, float *out);
LW_API void lw_l2_f16_tile(const uint16_t *q, size_t q_stride, size_t queries, const uint16_t *base,
                           size_t stride, size_t count, size_t n, float *out, size_t out_stride);

/* cosine, f16. */
LW_API float lw_cosine_f16(const uint16_t *a, const uint16_t *b, size_t n);
LW_API void lw_cosine_f16_rows(const uint16_t *q, const uint16_t *base, size_t stride, size_t count, size_t n,
                               float *out);
LW_API void lw_cosine_f16_ids(const uint16_t *q, const uint16_t *base, size_t stride, const uint32_t *ids,
                              size_t count, size_t n, float *out);
LW_API void lw_cosine_f16_tile(const uint16_t *q, size_t q_stride, size_t queries, const uint16_t *base,
                               size_t stride, size_t count, size_t n, float *out, size_t out_stride);

/* dot, bf16. */
LW_API float lw_dot_bf16(const uint16_t *a, const uint16_t *b, size_t n);
LW_API void lw_dot_bf16_rows(const uint16_t *q, const uint16_t *base, size_t stride, size_t count, size_t n,
                             float *out);
LW_API void lw_dot_bf16_ids(const uint16_t *q, const uint16_t *base, size_t stride, const uint32_t *ids,
                            size_t count, size_t n, float *out);
LW_API void lw_dot_bf16_tile(const uint16_t *q, size_t q_stride, size_t queries, const uint16_t *base,
                             size_t stride, size_t count, size_t n, float *out, size_t out_stride);

/* l2, bf16. */
LW_API float lw_l2_bf16(const uint16_t *a, const uint16_t *b, size_t n);
LW_API void lw_l2_bf16_rows(const uint16_t *q, const uint16_t *base, size_t stride, size_t count, size_t n,
                            float *out);
LW_API void lw_l2_bf16_ids(const uint16_t *q, const uint16_t *base, size_t stride, const uint32_t *ids,
                           size_t count, size_t n, float *out);
LW_API void lw_l2_bf16_tile(const uint16_t *q, size_t q_stride, size_t queries, const uint16_t *base,
                            size_t stride, size_t count, size_t n, float *out, size_t out_stride);

/* cosine, bf16. */
LW_API float lw_cosine_bf16(const uint16_t *a, const uint16_t *b, size_t n);
LW_API void lw_cosine_bf16_rows(const uint16_t *q, const uint16_t *base, size_t stride, size_t count,
                                size_t n, float *out);
LW_API void lw_cosine_bf16_ids(const uint16_t *q, const uint16_t *base, size_t stride, const uint32_t *ids,
                               size_t count, size_t n, float *out);
LW_API void lw_cosine_bf16_tile(const uint16_t *q, size_t q_stride, size_t queries, const uint16_t *base,
                                size_t stride, size_t count, size_t n, float *out, size_t out_stride);

/* dot, f32f16. */
LW_API float lw_dot_f32f16(const float *a, const uint16_t *b, size_t n);
LW_API void lw_dot_f32f16_rows(const float *q, const uint16_t *base, size_t stride, size_t count, size_t n,
                               float *out);
LW_API void lw_dot_f32f16_ids(const float *q, const uint16_t *base, size_t stride, const uint32_t *ids,
                              size_t count, size_t n, float *out);
LW_API void lw_dot_f32f16_tile(const float *q, size_t q_stride, size_t queries, const uint16_t *base,
                               size_t stride, size_t count, size_t n, float *out, size_t out_stride);

/* l2, f32f16. */
LW_API float lw_l2_f32f16(const float *a, const uint16_t *b, size_t n);
LW_API void lw_l2_f32f16_rows(const float *q, const uint16_t *base, size_t stride, size_t count, size_t n,
                              float *out);
LW_API void lw_l2_f32f16_ids(const float *q, const uint16_t *base, size_t stride, const uint32_t *ids,
                             size_t count, size_t n, float *out);
LW_API void lw_l2_f32f16_tile(const float *q, size_t q_stride, size_t queries, const uint16_t *base,
                              size_t stride, size_t count, size_t n, float *out, size_t out_stride);

/* dot, f32bf16. */
LW_API float lw_dot_f32bf16(const float *a, const uint16_t *b, size_t n);
LW_API void lw_dot_f32bf16_rows(const float *q, const uint16_t *base, size_t stride, size_t count, size_t n,
                                float *out);
LW_API void lw_dot_f32bf16_ids(const float *q, const uint16_t *base, size_t stride, const uint32_t *ids,
                               size_t count, size_t n, float *out);
LW_API void lw_dot_f32bf16_tile(const float *q, size_t q_stride, size_t queries, const uint16_t *base,
                                size_t stride, size_t count, size_t n, float *out, size_t out_stride);

/* l2, f32bf16. */
LW_API float lw_l2_f32bf16(const float *a, const uint16_t *b, size_t n);
LW_API void lw_l2_f32bf16_rows(const float *q, const uint16_t *base, size_t stride, size_t count, size_t n,
                               float *out);
LW_API void lw_l2_f32bf16_ids(const float *q, const uint16_t *base, size_t stride, const uint32_t *ids,
                              size_t count, size_t n, float *out);
LW_API void lw_l2_f32bf16_tile(const float *q, size_t q_stride, size_t queries, const uint16_t *base,
                               size_t stride, size_t count, size_t n, float *out, size_t out_stride);

/* dot, f32i8. */
LW_API float lw_dot_f32i8(const float *a, const int8_t *b, size_t n);
LW_API void lw_dot_f32i8_rows(const float *q, const int8_t *base, size_t stride, size_t count, size_t n,
                              float *out);
LW_API void lw_dot_f32i8_ids(const float *q, const int8_t *base, size_t stride, const uint32_t *ids,
                             size_t count, size_t n, float *out);
LW_API void lw_dot_f32i8_tile(const float *q, size_t q_stride, size_t queries, const int8_t *base,
                              size_t stride, size_t count, size_t n, float *out, size_t out_stride);

/* l2, f32i8. */
LW_API float lw_l2_f32i8(const float *a, const int8_t *b, size_t n);
LW_API void lw_l2_f32i8_rows(const float *q, const int8_t *base, size_t stride, size_t count, size_t n,
                             float *out);
LW_API void lw_l2_f32i8_ids(const float *q, const int8_t *base, size_t stride, const uint32_t *ids,
                            size_t count, size_t n, float *out);
LW_API void lw_l2_f32i8_tile(const float *q, size_t q_stride, size_t queries, const int8_t *base,
                             size_t stride, size_t count, size_t n, float *out, size_t out_stride);

/* dot, f32u8. */
LW_API float lw_dot_f32u8(const float *a, const uint8_t *b, size_t n);
LW_API void lw_dot_f32u8_rows(const float *q, const uint8_t *base, size_t stride, size_t count, size_t n,
                              float *out);
LW_API void lw_dot_f32u8_ids(const float *q, const uint8_t *base, size_t stride, const uint32_t *ids,
                             size_t count, size_t n, float *out);
LW_API void lw_dot_f32u8_tile(const float *q, size_t q_stride, size_t queries, const uint8_t *base,
                              size_t stride, size_t count, size_t n, float *out, size_t out_stride);

/* l2, f32u8. */
LW_API float lw_l2_f32u8(const float *a, const uint8_t *b, size_t n);
LW_API void lw_l2_f32u8_rows(const float *q, const uint8_t *base, size_t stride, size_t count, size_t n,
                             float *out);
LW_API void lw_l2_f32u8_ids(const float *q, const uint8_t *base, size_t stride, const uint32_t *ids,
                            size_t count, size_t n, float *out);
LW_API void lw_l2_f32u8_tile(const float *q, size_t q_stride, size_t queries, const uint8_t *base,
                             size_t stride, size_t count, size_t n, float *out, size_t out_stride);

/* dot, i8: n up to 131071. */
LW_API int32_t lw_dot_i8(const int8_t *a, const int8_t *b, size_t n);
LW_API void lw_dot_i8_rows(const int8_t *q, const int8_t *base, size_t stride, size_t count, size_t n,
                           int32_t *out);
LW_API void lw_dot_i8_ids(const int8_t *q, const int8_t *base, size_t stride, const uint32_t *ids,
                          size_t count, size_t n, int32_t *out);
LW_API void lw_dot_i8_tile(const int8_t *q, size_t q_stride, size_t queries, const int8_t *base,
                           size_t stride, size_t count, size_t n, int32_t *out, size_t out_stride);

/* l2, i8: n up to 33025. */
LW_API int32_t lw_l2_i8(const int8_t *a, const int8_t *b, size_t n);
LW_API void lw_l2_i8_rows(const int8_t *q, const int8_t *base, size_t stride, size_t count, size_t n,
                          int32_t *out);
LW_API void lw_l2_i8_ids(const int8_t *q, const int8_t *base, size_t stride, const uint32_t *ids,
                         size_t count, size_t n, int32_t *out);
LW_API void lw_l2_i8_tile(const int8_t *q, size_t q_stride, size_t queries, const int8_t *base, size_t stride,
                          size_t count, size_t n, int32_t *out, size_t out_stride);

/* cosine, i8: n up to 131071. */
LW_API float lw_cosine_i8(const int8_t *a, const int8_t *b, size_t n);
LW_API void lw_cosine_i8_rows(const int8_t *q, const int8_t *base, size_t stride, size_t count, size_t n,
                              float *out);
LW_API void lw_cosine_i8_ids(const int8_t *q, const int8_t *base, size_t stride, const uint32_t *ids,
                             size_t count, size_t n, float *out);
LW_API void lw_cosine_i8_tile(const int8_t *q, size_t q_stride, size_t queries, const int8_t *base,
                              size_t stride, size_t count, size_t n, float *out, size_t out_stride);

/* l1, i8: n up to 8421504. */
LW_API int32_t lw_l1_i8(const int8_t *a, const int8_t *b, size_t n);
LW_API void lw_l1_i8_rows(const int8_t *q, const int8_t *base, size_t stride, size_t count, size_t n,
                          int32_t *out);
LW_API void lw_l1_i8_ids(const int8_t *q, const int8_t *base, size_t stride, const uint32_t *ids,
                         size_t count, size_t n, int32_t *out);
LW_API void lw_l1_i8_tile(const int8_t *q, size_t q_stride, size_t queries, const int8_t *base, size_t stride,
                          size_t count, size_t n, int32_t *out, size_t out_stride);

/* linf, i8. */
LW_API int32_t lw_linf_i8(const int8_t *a, const int8_t *b, size_t n);
LW_API void lw_linf_i8_rows(const int8_t *q, const int8_t *base, size_t stride, size_t count, size_t n,
                            int32_t *out);
LW_API void lw_linf_i8_ids(const int8_t *q, const int8_t *base, size_t stride, const uint32_t *ids,
                           size_t count, size_t n, int32_t *out);
LW_API void lw_linf_i8_tile(const int8_t *q, size_t q_stride, size_t queries, const int8_t *base,
                            size_t stride, size_t count, size_t n, int32_t *out, size_t out_stride);

/* dot, u8: n up to 33025. */
LW_API int32_t lw_dot_u8(const uint8_t *a, const uint8_t *b, size_t n);
LW_API void lw_dot_u8_rows(const uint8_t *q, const uint8_t *base, size_t stride, size_t count, size_t n,
                           int32_t *out);
LW_API void lw_dot_u8_ids(const uint8_t *q, const uint8_t *base, size_t stride, const uint32_t *ids,
                          size_t count, size_t n, int32_t *out);
LW_API void lw_dot_u8_tile(const uint8_t *q, size_t q_stride, size_t queries, const uint8_t *base,
                           size_t stride, size_t count, size_t n, int32_t *out, size_t out_stride);

/* l2, u8: n up to 33025. */
LW_API int32_t lw_l2_u8(const uint8_t *a, const uint8_t *b, size_t n);
LW_API void lw_l2_u8_rows(const uint8_t *q, const uint8_t *base, size_t stride, size_t count, size_t n,
                          int32_t *out);
LW_API void lw_l2_u8_ids(const uint8_t *q, const uint8_t *base, size_t stride, const uint32_t *ids,
                         size_t count, size_t n, int32_t *out);
LW_API void lw_l2_u8_tile(const uint8_t *q, size_t q_stride, size_t queries, const uint8_t *base,
                          size_t stride, size_t count, size_t n, int32_t *out, size_t out_stride);

/* cosine, u8: n up to 33025. */
LW_API float lw_cosine_u8(const uint8_t *a, const uint8_t *b, size_t n);
LW_API void lw_cosine_u8_rows(const uint8_t *q, const uint8_t *base, size_t stride, size_t count, size_t n,
                              float *out);
LW_API void lw_cosine_u8_ids(const uint8_t *q, const uint8_t *base, size_t stride, const uint32_t *ids,
                             size_t count, size_t n, float *out);
LW_API void lw_cosine_u8_tile(const uint8_t *q, size_t q_stride, size_t queries, const uint8_t *base,
                              size_t stride, size_t count, size_t n, float *out, size_t out_stride);

/* dot, i4: n up to 16777215. */
LW_API int32_t lw_dot_i4(const uint8_t *a, const uint8_t *b, size_t n);
LW_API void lw_dot_i4_rows(const uint8_t *q, const uint8_t *base, size_t stride, size_t count, size_t n,
                           int32_t *out);
LW_API void lw_dot_i4_ids(const uint8_t *q, const uint8_t *base, size_t stride, const uint32_t *ids,
                          size_t count, size_t n, int32_t *out);
LW_API void lw_dot_i4_tile(const uint8_t *q, size_t q_stride, size_t queries, const uint8_t *base,
                           size_t stride, size_t count, size_t n, int32_t *out, size_t out_stride);

/* l2, i4: n up to 4772185. */
LW_API int32_t lw_l2_i4(const uint8_t *a, const uint8_t *b, size_t n);
LW_API void lw_l2_i4_rows(const uint8_t *q, const uint8_t *base, size_t stride, size_t count, size_t n,
                          int32_t *out);
LW_API void lw_l2_i4_ids(const uint8_t *q, const uint8_t *base, size_t stride, const uint32_t *ids,
                         size_t count, size_t n, int32_t *out);
LW_API void lw_l2_i4_tile(const uint8_t *q, size_t q_stride, size_t queries, const uint8_t *base,
                          size_t stride, size_t count, size_t n, int32_t *out, size_t out_stride);

/* dot, u4: n up to 4772185. */
LW_API int32_t lw_dot_u4(const uint8_t *a, const uint8_t *b, size_t n);
LW_API void lw_dot_u4_rows(const uint8_t *q, const uint8_t *base, size_t stride, size_t count, size_t n,
                           int32_t *out);
LW_API void lw_dot_u4_ids(const uint8_t *q, const uint8_t *base, size_t stride, const uint32_t *ids,
                          size_t count, size_t n, int32_t *out);
LW_API void lw_dot_u4_tile(const uint8_t *q, size_t q_stride, size_t queries, const uint8_t *base,
                           size_t stride, size_t count, size_t n, int32_t *out, size_t out_stride);

/* l2, u4: n up to 4772185. */
LW_API int32_t lw_l2_u4(const uint8_t *a, const uint8_t *b, size_t n);
LW_API void lw_l2_u4_rows(const uint8_t *q, const uint8_t *base, size_t stride, size_t count, size_t n,
                          int32_t *out);
LW_API void lw_l2_u4_ids(const uint8_t *q, const uint8_t *base, size_t stride, const uint32_t *ids,
                         size_t count, size_t n, int32_t *out);
LW_API void lw_l2_u4_tile(const uint8_t *q, size_t q_stride, size_t queries, const uint8_t *base,
                          size_t stride, size_t count, size_t n, int32_t *out, size_t out_stride);

/* dot, i8u4: n up to 559240. */
LW_API int32_t lw_dot_i8u4(const int8_t *a, const uint8_t *b, size_t n);
LW_API void lw_dot_i8u4_rows(const int8_t *q, const uint8_t *base, size_t stride, size_t count, size_t n,
                             int32_t *out);
LW_API void lw_dot_i8u4_ids(const int8_t *q, const uint8_t *base, size_t stride, const uint32_t *ids,
                            size_t count, size_t n, int32_t *out);
LW_API void lw_dot_i8u4_tile(const int8_t *q, size_t q_stride, size_t queries, const uint8_t *base,
                             size_t stride, size_t count, size_t n, int32_t *out, size_t out_stride);

/* l2, u8u4: n up to 4772185. */
LW_API int32_t lw_l2_u8u4(const uint8_t *a, const uint8_t *b, size_t n);
LW_API void lw_l2_u8u4_rows(const uint8_t *q, const uint8_t *base, size_t stride, size_t count, size_t n,
                            int32_t *out);
LW_API void lw_l2_u8u4_ids(const uint8_t *q, const uint8_t *base, size_t stride, const uint32_t *ids,
                           size_t count, size_t n, int32_t *out);
LW_API void lw_l2_u8u4_tile(const uint8_t *q, size_t q_stride, size_t queries, const uint8_t *base,
                            size_t stride, size_t count, size_t n, int32_t *out, size_t out_stride);

/* dot, u4bits: n up to 17895697. */
LW_API int32_t lw_dot_u4bits(const uint8_t *a, const uint8_t *b, size_t n);
LW_API void lw_dot_u4bits_rows(const uint8_t *q, const uint8_t *base, size_t stride, size_t count, size_t n,
                               int32_t *out);
LW_API void lw_dot_u4bits_ids(const uint8_t *q, const uint8_t *base, size_t stride, const uint32_t *ids,
                              size_t count, size_t n, int32_t *out);
LW_API void lw_dot_u4bits_tile(const uint8_t *q, size_t q_stride, size_t queries, const uint8_t *base,
                               size_t stride, size_t count, size_t n, int32_t *out, size_t out_stride);

/* hamming, bits: n up to 268435455. */
LW_API int32_t lw_hamming_bits(const uint8_t *a, const uint8_t *b, size_t n);
LW_API void lw_hamming_bits_rows(const uint8_t *q, const uint8_t *base, size_t stride, size_t count, size_t n,
                                 int32_t *out);
LW_API void lw_hamming_bits_ids(const uint8_t *q, const uint8_t *base, size_t stride, const uint32_t *ids,
                                size_t count, size_t n, int32_t *out);
LW_API void lw_hamming_bits_tile(const uint8_t *q, size_t q_stride, size_t queries, const uint8_t *base,
                                 size_t stride, size_t count, size_t n, int32_t *out, size_t out_stride);

/* jaccard, bits: n up to 268435455. */
LW_API float lw_jaccard_bits(const uint8_t *a, const uint8_t *b, size_t n);
LW_API void lw_jaccard_bits_rows(const uint8_t *q, const uint8_t *base, size_t stride, size_t count, size_t n,
                                 float *out);
LW_API void lw_jaccard_bits_ids(const uint8_t *q, const uint8_t *base, size_t stride, const uint32_t *ids,
                                size_t count, size_t n, float *out);
LW_API void lw_jaccard_bits_tile(const uint8_t *q, size_t q_stride, size_t queries, const uint8_t *base,
                                 size_t stride, size_t count, size_t n, float *out, size_t out_stride);

/* Sums of pq4 codes by table. A block of 32 vectors has 16 bytes for each of `m` sub-quantizers, at most 257:
 * byte i holds the code of vector i in its low half and of vector 16 + i in its high half. tables: 16 bytes a
 * sub-quantizer. out: 32 sums a block. */
LW_API void lw_scan_pq4(const uint8_t *tables, const uint8_t *codes, size_t blocks, size_t m, uint16_t *out);
// <!-- end -->
// clang-format on

#ifdef __cplusplus
}
#endif

#endif
