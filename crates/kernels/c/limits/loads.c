/* The loads of each form, and nothing else. */
#include "limits.h"

#if defined(__x86_64__)
#define KEEP(v) __asm__ volatile("" ::"v"(v))
#define TARGET(t) __attribute__((target(t)))
#elif defined(__aarch64__)
#define KEEP(v) __asm__ volatile("" ::"w"(v))
#define TARGET(t)
#else
#define KEEP(v) __asm__ volatile("" ::"r"(v))
#define TARGET(t)
#endif

enum { LINE = 64, LINES_IN_FLIGHT = 96 };

/* Rows by id are asked for into the L2 a number of rows ahead, a line at a time: the most lines in flight. Rows that
 * lie one after the other are one stream. */
#define LOADS(isa, target, vector)                                                                           \
    typedef vector isa##_vector __attribute__((aligned(1), may_alias));                                      \
    TARGET(target) static inline void isa##_line(const char *at) {                                           \
        _Pragma("GCC unroll 4") for (size_t i = 0; i < LINE; i += sizeof(isa##_vector)) {                    \
            const isa##_vector v = *(const isa##_vector *)(at + i);                                          \
            KEEP(v);                                                                                         \
        }                                                                                                    \
    }                                                                                                        \
    TARGET(target) static float isa##_one(const char *a, const char *b, size_t bytes) {                      \
        _Pragma("GCC unroll 4") for (size_t i = 0; i < bytes; i += LINE) {                                   \
            isa##_line(a + i);                                                                               \
            isa##_line(b + i);                                                                               \
        }                                                                                                    \
        return 0;                                                                                            \
    }                                                                                                        \
    TARGET(target)                                                                                           \
    static void isa##_rows(const char *q, const char *base, size_t stride, size_t count, size_t bytes,       \
                           void *out) {                                                                      \
        (void)q, (void)out;                                                                                  \
        (void)bytes;                                                                                         \
        const char *end = base + count * stride;                                                             \
        _Pragma("GCC unroll 8") for (const char *at = base; at < end; at += LINE) isa##_line(at);            \
    }                                                                                                        \
    TARGET(target)                                                                                           \
    static void isa##_ids(const char *q, const char *base, size_t stride, const uint32_t *ids, size_t count, \
                          size_t bytes, void *out) {                                                         \
        (void)q, (void)out;                                                                                  \
        const size_t lines = (bytes + LINE - 1) / LINE;                                                      \
        const size_t ahead = 1 + LINES_IN_FLIGHT / lines;                                                    \
        for (size_t k = 0; k < ahead && k < count; k++)                                                      \
            for (size_t i = 0; i < bytes; i += LINE)                                                         \
                __builtin_prefetch(base + (size_t)ids[k] * stride + i, 0, 2);                                \
        for (size_t k = 0; k < count; k++) {                                                                 \
            const char *row = base + (size_t)ids[k] * stride;                                                \
            const char *next = base + (size_t)ids[k + ahead < count ? k + ahead : k] * stride;               \
            for (size_t i = 0; i < bytes; i += LINE) {                                                       \
                isa##_line(row + i);                                                                         \
                __builtin_prefetch(next + i, 0, 2);                                                          \
            }                                                                                                \
        }                                                                                                    \
    }

#if defined(__x86_64__)
typedef char bytes16 __attribute__((vector_size(16)));
typedef char bytes32 __attribute__((vector_size(32)));
typedef char bytes64 __attribute__((vector_size(64)));
LOADS(base, "sse2", bytes16)
LOADS(avx2, "avx2", bytes32)
LOADS(avx512, "avx512f", bytes64)
#elif defined(__aarch64__)
typedef char bytes16 __attribute__((vector_size(16)));
LOADS(base, "", bytes16)
#else
LOADS(base, "", uint64_t)
#endif

static const struct lw_limit_loads loads[] = {
    {"base", 0, base_one, base_rows, base_ids},
#if defined(__x86_64__)
    {"avx2", LW_AVX2, avx2_one, avx2_rows, avx2_ids},
    {"avx512", LW_AVX512F, avx512_one, avx512_rows, avx512_ids},
#endif
};

const struct lw_limit_loads *lw_limit_loads(size_t *count) {
    *count = sizeof loads / sizeof *loads;
    return loads;
}
