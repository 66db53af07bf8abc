/* The drop-in for Lucene: the functions that its native vector interface (apache/lucene pull request 15508) looks up
 * by name in libdotProduct.so. This file makes that library together with the kernels; no other library has it.
 *
 * Exported, and nothing else:
 *   dotProduct dot8s squareDistance
 *   uint8DotProduct uint8SquareDistance
 *   int4DotProduct int4SquareDistance
 *   int4DotProductSinglePacked int4SquareDistanceSinglePacked
 *   int4DotProductBothPacked int4SquareDistanceBothPacked
 *   int4BitDotProduct int4DibitDotProduct
 *   int4DotProductSinglePackedBulk
 * A function that is not there Lucene computes itself. Left out on purpose: cosine, whose result changed from int to
 * float between revisions of the interface; the float functions, where Lucene's own code is faster by the price of the
 * call; and those that Lucene calls through a slow generic path (minMaxScalarQuantize, filterByScore and so on).
 *
 * The int argument is the size in bytes of the first operand; Lucene has checked that the second one's fits. A negative
 * size or count is taken as 0: no byte is read, the result is 0. Lucene's vectors have at most 1024 dimensions by
 * default (OpenSearch's 16,000), and no kernel's sum leaves its 32 bits below 33025; beyond that it wraps.
 * Operands need no alignment. Nothing here or below allocates, so a call through Linker.Option.critical is safe.
 *
 * Each function jumps through a pointer that its first call replaces by the best kernel's address: the choice of
 * lw_chosen, which heeds LANEWISE_ISA, as an IFUNC resolver could not (it runs before getenv does). */
#include "lanewise_kernels.h"

#include <stdatomic.h>
#include <stdio.h>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

/* There is no caller to hand an error to: say once what LANEWISE_ISA could not do, and compute on. */
static const struct lw_variant *chosen(enum lw_kernel kernel) {
    static atomic_flag told = ATOMIC_FLAG_INIT;
    const struct lw_choice *choice = lw_chosen();
    if (choice->status != LW_CHOSEN && !atomic_flag_test_and_set(&told)) {
        fprintf(stderr, "libdotProduct: LANEWISE_ISA %s; computing with %s. Levels:",
                choice->status == LW_UNKNOWN_LEVEL ? "names no level" : "names a level that this CPU has not",
                choice->slot[kernel]->isa);
        for (size_t i = 0; lw_level(i, NULL); i++) fprintf(stderr, " %s", lw_level(i, NULL));
        fputc('\n', stderr);
    }
    return choice->slot[kernel];
}

/* The pointer to a kernel's form. Relaxed: the address stands alone, and every thread that races here stores the same. */
#define POINTER(name, form, result, CALL_BEST, ...)                                                          \
    static result name##_##form##_first(__VA_ARGS__);                                                        \
    static _Atomic(lw_##name##_##form##_fn) name##_##form = name##_##form##_first;                           \
    static result name##_##form##_first(__VA_ARGS__) {                                                       \
        const lw_##name##_##form##_fn best = (lw_##name##_##form##_fn)chosen(LW_##name)->form;               \
        atomic_store_explicit(&name##_##form, best, memory_order_relaxed);                                   \
        CALL_BEST;                                                                                           \
    }
#define ONE(name, element)                                                                                   \
    POINTER(name, one, int32_t, return best(a, b, n), const element *a, const element *b, size_t n)
/* Lucene's bytes are 0 to 15, the same signed. */
POINTER(dot_i8u4, one, int32_t, return best(a, b, n), const int8_t *a, const uint8_t *b, size_t n)

ONE(dot_i8, int8_t)
ONE(l2_i8, int8_t)
ONE(dot_u8, uint8_t)
ONE(l2_u8, uint8_t)
ONE(l2_u8u4, uint8_t)
ONE(dot_u4, uint8_t)
ONE(l2_u4, uint8_t)
ONE(dot_u4bits, uint8_t)

#define CALL(pointer) atomic_load_explicit(&pointer, memory_order_relaxed)

static inline size_t size(int32_t bytes) { return bytes < 0 ? 0 : (size_t)bytes; }

/* Signed bytes. `dot8s` is the name that the pull request had before it was merged. */
EXPORT int32_t dotProduct(const int8_t *a, const int8_t *b, int32_t bytes) {
    return CALL(dot_i8_one)(a, b, size(bytes));
}
EXPORT int32_t dot8s(const int8_t *a, const int8_t *b, int32_t bytes) {
    return CALL(dot_i8_one)(a, b, size(bytes));
}
EXPORT int32_t squareDistance(const int8_t *a, const int8_t *b, int32_t bytes) {
    return CALL(l2_i8_one)(a, b, size(bytes));
}

/* Unsigned bytes; int4 has one number, 0 to 15, a byte. */
EXPORT int32_t uint8DotProduct(const uint8_t *a, const uint8_t *b, int32_t bytes) {
    return CALL(dot_u8_one)(a, b, size(bytes));
}
EXPORT int32_t uint8SquareDistance(const uint8_t *a, const uint8_t *b, int32_t bytes) {
    return CALL(l2_u8_one)(a, b, size(bytes));
}
EXPORT int32_t int4DotProduct(const uint8_t *a, const uint8_t *b, int32_t bytes) {
    return CALL(dot_u8_one)(a, b, size(bytes));
}
EXPORT int32_t int4SquareDistance(const uint8_t *a, const uint8_t *b, int32_t bytes) {
    return CALL(l2_u8_one)(a, b, size(bytes));
}

/* The first operand has a number a byte, an even count of them; the second packs numbers i and bytes / 2 + i into the
 * high and the low half of byte i. */
EXPORT int32_t int4DotProductSinglePacked(const uint8_t *unpacked, const uint8_t *packed, int32_t bytes) {
    return CALL(dot_i8u4_one)((const int8_t *)unpacked, packed, size(bytes) / 2);
}
EXPORT int32_t int4SquareDistanceSinglePacked(const uint8_t *unpacked, const uint8_t *packed, int32_t bytes) {
    return CALL(l2_u8u4_one)(unpacked, packed, size(bytes) / 2);
}
EXPORT int32_t int4DotProductBothPacked(const uint8_t *a, const uint8_t *b, int32_t bytes) {
    return CALL(dot_u4_one)(a, b, size(bytes));
}
EXPORT int32_t int4SquareDistanceBothPacked(const uint8_t *a, const uint8_t *b, int32_t bytes) {
    return CALL(l2_u4_one)(a, b, size(bytes));
}

/* `q` is four bit planes of bytes / 4 each, lowest bit first; `d` is one such plane, or the low and the high one. */
EXPORT int64_t int4BitDotProduct(const uint8_t *q, const uint8_t *d, int32_t bytes) {
    return CALL(dot_u4bits_one)(q, d, size(bytes) / 4);
}
EXPORT int64_t int4DibitDotProduct(const uint8_t *q, const uint8_t *d, int32_t bytes) {
    const size_t plane = size(bytes) / 4;
    const int64_t low = CALL(dot_u4bits_one)(q, d, plane);
    return low + 2 * (int64_t)CALL(dot_u4bits_one)(q, d + plane, plane);
}

POINTER(dot_i8u4, ids, void, best(q, base, stride, ids, count, n, out), const int8_t *q, const uint8_t *base,
        size_t stride, const uint32_t *ids, size_t count, size_t n, int32_t *out)

/* One query of 2 * packedLength bytes against `count` rows of packedLength, `stride` bytes apart (Lucene keeps 16
 * bytes of corrections behind each). Ordinals are not negative. */
EXPORT void int4DotProductSinglePackedBulk(const uint8_t *unpacked, const uint8_t *vectors, int32_t stride,
                                           const int32_t *ordinals, int32_t count, int32_t packedLength,
                                           int32_t *results) {
    CALL(dot_i8u4_ids)
    ((const int8_t *)unpacked, vectors, size(stride), (const uint32_t *)ordinals, size(count),
     size(packedLength), results);
}
