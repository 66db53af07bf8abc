/* The list: every kernel and every variant of it, one line each. Declarations, table slots, the Rust door's
 * lookup, the test loops and docs/kernels.md are all made from these lines.
 *
 *   LW_KERNELS:   X(op, type, element, result, bound)      bound: largest count of elements that is exact
 *   LW_VARIANTS_*: X(op, type, isa, needs)                 needs: every CPU feature that its file is compiled for,
 *                                                          since the compiler may use any of them anywhere in it
 *
 * Within a kernel, a later variant is preferred over an earlier one; scalar fills every slot.
 * Sizes count elements (bytes for `bits`). Results: dot = sum a*b, l2 = sum (a-b)^2, hamming = bits that differ.
 * Bounds: integer sums stay inside int32 (131071 * 128^2 and 33025 * 255^2 are the last that do); f32 has none,
 * LW_ANY; hamming counts 8 bits a byte. */
#ifndef LW_LIST_H
#define LW_LIST_H

#define LW_KERNELS(X)                                                                                        \
    X(dot, f32, float, float, LW_ANY)                                                                        \
    X(l2, f32, float, float, LW_ANY)                                                                         \
    X(dot, i8, int8_t, int32_t, 131071)                                                                      \
    X(l2, i8, int8_t, int32_t, 33025)                                                                        \
    X(hamming, bits, uint8_t, int32_t, 268435455)

#define LW_VARIANTS_ANY(X)                                                                                   \
    X(dot, f32, scalar, 0)                                                                                   \
    X(l2, f32, scalar, 0)                                                                                    \
    X(dot, i8, scalar, 0)                                                                                    \
    X(l2, i8, scalar, 0)                                                                                     \
    X(hamming, bits, scalar, 0)

#define LW_VARIANTS_X86(X)                                                                                   \
    X(dot, f32, avx2, LW_AVX2 | LW_FMA)                                                                      \
    X(l2, f32, avx2, LW_AVX2 | LW_FMA)                                                                       \
    X(dot, i8, avx2, LW_AVX2)                                                                                \
    X(l2, i8, avx2, LW_AVX2)                                                                                 \
    X(hamming, bits, avx2, LW_AVX2)                                                                          \
    X(dot, f32, avx512, LW_AVX512F | LW_AVX512BW | LW_AVX512VL)                                              \
    X(l2, f32, avx512, LW_AVX512F | LW_AVX512BW | LW_AVX512VL)                                               \
    X(dot, i8, avx512, LW_AVX512F | LW_AVX512BW | LW_AVX512VL)                                               \
    X(l2, i8, avx512, LW_AVX512F | LW_AVX512BW | LW_AVX512VL)                                                \
    X(hamming, bits, avx512, LW_AVX512F | LW_AVX512BW | LW_AVX512VL)                                         \
    X(dot, i8, avx512vnni, LW_AVX512F | LW_AVX512BW | LW_AVX512VL | LW_AVX512VNNI)                           \
    X(l2, i8, avx512vnni, LW_AVX512F | LW_AVX512BW | LW_AVX512VL | LW_AVX512VNNI)                            \
    X(hamming, bits, avx512vpopcntdq, LW_AVX512F | LW_AVX512BW | LW_AVX512VPOPCNTDQ)

#define LW_VARIANTS_ARM(X)                                                                                   \
    X(dot, f32, neon, LW_NEON)                                                                               \
    X(l2, f32, neon, LW_NEON)                                                                                \
    X(dot, i8, neon, LW_NEON)                                                                                \
    X(l2, i8, neon, LW_NEON)                                                                                 \
    X(hamming, bits, neon, LW_NEON)                                                                          \
    X(dot, i8, dotprod, LW_NEON | LW_DOTPROD)                                                                \
    X(l2, i8, dotprod, LW_NEON | LW_DOTPROD)

/* Levels that LANEWISE_ISA accepts: name, and the features that kernels may then use. Ascending. */
#define LW_LEVELS_ANY(X) X(scalar, 0)
#define LW_LEVELS_X86(X)                                                                                     \
    X(avx2, LW_AVX2 | LW_FMA)                                                                                \
    X(avx512, LW_AVX2 | LW_FMA | LW_AVX512F | LW_AVX512BW | LW_AVX512VL)                                     \
    X(avx512vnni, LW_AVX2 | LW_FMA | LW_AVX512F | LW_AVX512BW | LW_AVX512VL | LW_AVX512VNNI)                 \
    X(avx512vpopcntdq,                                                                                       \
      LW_AVX2 | LW_FMA | LW_AVX512F | LW_AVX512BW | LW_AVX512VL | LW_AVX512VNNI | LW_AVX512VPOPCNTDQ)
#define LW_LEVELS_ARM(X)                                                                                     \
    X(neon, LW_NEON)                                                                                         \
    X(dotprod, LW_NEON | LW_DOTPROD)

/* CPU features that some kernel needs: name as people know it, and its bit. */
#define LW_FEATURES(X)                                                                                       \
    X(LW_AVX2, "avx2", 0)                                                                                    \
    X(LW_FMA, "fma", 1)                                                                                      \
    X(LW_AVX512F, "avx512f", 2)                                                                              \
    X(LW_AVX512BW, "avx512bw", 3)                                                                            \
    X(LW_AVX512VL, "avx512vl", 4)                                                                            \
    X(LW_AVX512VNNI, "avx512vnni", 5)                                                                        \
    X(LW_AVX512VPOPCNTDQ, "avx512vpopcntdq", 6)                                                              \
    X(LW_NEON, "neon", 16)                                                                                   \
    X(LW_DOTPROD, "dotprod", 17)

#if defined(__x86_64__) || defined(_M_X64)
#define LW_VARIANTS(X) LW_VARIANTS_ANY(X) LW_VARIANTS_X86(X)
#define LW_LEVELS(X) LW_LEVELS_ANY(X) LW_LEVELS_X86(X)
#elif defined(__aarch64__)
#define LW_VARIANTS(X) LW_VARIANTS_ANY(X) LW_VARIANTS_ARM(X)
#define LW_LEVELS(X) LW_LEVELS_ANY(X) LW_LEVELS_ARM(X)
#else
#define LW_VARIANTS(X) LW_VARIANTS_ANY(X)
#define LW_LEVELS(X) LW_LEVELS_ANY(X)
#endif

#endif
