/* The lists: every kernel, every instruction set and every variant, one line each. Declarations, table slots, the Rust
 * door's lookup, the test loops and docs/kernels.md are all made from these lines.
 *
 *   LW_KERNELS:    X(op, type, query, row, result, per, bound)
 *                  query, row: C types of their elements; per: query elements for each row element;
 *                  bound: largest count of row elements that is exact
 *   LW_ISAS_*:     X(isa, needs, level)
 *                  needs: the CPU features that its file is compiled for, and nothing else of it may run without;
 *                  level: the features that kernels may use when LANEWISE_ISA names it
 *   LW_VARIANTS_*: X(op, type, isa)
 *
 * Within a kernel, a later variant is preferred over an earlier one; scalar fills every slot. An instruction set that
 * needs LW_NAMED runs only where LANEWISE_ISA names it.
 *
 * Types. f16 and bf16 are bit patterns of 16 bits. i4 (two's complement) and u4 hold two numbers a byte. In f32f16,
 * f32bf16, f32i8, f32u8 the query is f32. In i8u4 and u8u4 the query has a byte (u8u4: 0 to 15) for each of the row's
 * numbers: q[i] meets the high half of row byte i and q[n + i] the low half (Lucene's "single packed"). In u4bits the
 * query is four bit planes of n bytes, plane p worth 2^p a bit. Counts n are of row elements; of row bytes for i4, u4,
 * i8u4, u8u4, bits and u4bits.
 *
 * Results. dot = sum a*b. l2 = sum (a-b)^2. cosine = dot / sqrt(sum a^2 * sum b^2), 0 if a sum is 0, within -1 and 1;
 * for floats the squares must stay inside float. l1 = sum |a-b|. linf = max |a-b|. hamming = bits that differ.
 * jaccard = 1 - (bits in both / bits in either), 0 if there are none. A NaN anywhere makes a NaN.
 *
 * Bounds: integer sums stay inside int32 (131071 * 128^2, 33025 * 255^2 and, two numbers a byte, 559240 * 2 * 15 * 128
 * are the last that do); floats have none, LW_ANY; hamming counts 8 bits a byte. */
#ifndef LW_LIST_H
#define LW_LIST_H

#define LW_KERNELS(X)                                                                                        \
    X(dot, f32, float, float, float, 1, LW_ANY)                                                              \
    X(l2, f32, float, float, float, 1, LW_ANY)                                                               \
    X(cosine, f32, float, float, float, 1, LW_ANY)                                                           \
    X(l1, f32, float, float, float, 1, LW_ANY)                                                               \
    X(linf, f32, float, float, float, 1, LW_ANY)                                                             \
    X(dot, f16, uint16_t, uint16_t, float, 1, LW_ANY)                                                        \
    X(l2, f16, uint16_t, uint16_t, float, 1, LW_ANY)                                                         \
    X(cosine, f16, uint16_t, uint16_t, float, 1, LW_ANY)                                                     \
    X(dot, bf16, uint16_t, uint16_t, float, 1, LW_ANY)                                                       \
    X(l2, bf16, uint16_t, uint16_t, float, 1, LW_ANY)                                                        \
    X(cosine, bf16, uint16_t, uint16_t, float, 1, LW_ANY)                                                    \
    X(dot, f32f16, float, uint16_t, float, 1, LW_ANY)                                                        \
    X(l2, f32f16, float, uint16_t, float, 1, LW_ANY)                                                         \
    X(dot, f32bf16, float, uint16_t, float, 1, LW_ANY)                                                       \
    X(l2, f32bf16, float, uint16_t, float, 1, LW_ANY)                                                        \
    X(dot, f32i8, float, int8_t, float, 1, LW_ANY)                                                           \
    X(l2, f32i8, float, int8_t, float, 1, LW_ANY)                                                            \
    X(dot, f32u8, float, uint8_t, float, 1, LW_ANY)                                                          \
    X(l2, f32u8, float, uint8_t, float, 1, LW_ANY)                                                           \
    X(dot, i8, int8_t, int8_t, int32_t, 1, 131071)                                                           \
    X(l2, i8, int8_t, int8_t, int32_t, 1, 33025)                                                             \
    X(cosine, i8, int8_t, int8_t, float, 1, 131071)                                                          \
    X(l1, i8, int8_t, int8_t, int32_t, 1, 8421504)                                                           \
    X(linf, i8, int8_t, int8_t, int32_t, 1, LW_ANY)                                                          \
    X(dot, u8, uint8_t, uint8_t, int32_t, 1, 33025)                                                          \
    X(l2, u8, uint8_t, uint8_t, int32_t, 1, 33025)                                                           \
    X(cosine, u8, uint8_t, uint8_t, float, 1, 33025)                                                         \
    X(dot, i4, uint8_t, uint8_t, int32_t, 1, 16777215)                                                       \
    X(l2, i4, uint8_t, uint8_t, int32_t, 1, 4772185)                                                         \
    X(dot, u4, uint8_t, uint8_t, int32_t, 1, 4772185)                                                        \
    X(l2, u4, uint8_t, uint8_t, int32_t, 1, 4772185)                                                         \
    X(dot, i8u4, int8_t, uint8_t, int32_t, 2, 559240)                                                        \
    X(l2, u8u4, uint8_t, uint8_t, int32_t, 2, 4772185)                                                       \
    X(dot, u4bits, uint8_t, uint8_t, int32_t, 4, 17895697)                                                   \
    X(hamming, bits, uint8_t, uint8_t, int32_t, 1, 268435455)                                                \
    X(jaccard, bits, uint8_t, uint8_t, float, 1, 268435455)

/* 4-bit product quantization ("fast scan"): distances of blocks of 32 vectors from tables of 16 bytes per
 * sub-quantizer. X(op, type, bound), bound: largest count of sub-quantizers, 257 * 255 being the last in 16 bits. */
#define LW_SCANS(X) X(scan, pq4, 257)

#define LW_ISAS_ANY(X) X(scalar, 0, 0)
/* An instruction set that improves every kernel. */
#define LW_EVERY(X, isa)                                                                                     \
    X(dot, f32, isa)                                                                                         \
    X(l2, f32, isa)                                                                                          \
    X(cosine, f32, isa)                                                                                      \
    X(l1, f32, isa)                                                                                          \
    X(linf, f32, isa)                                                                                        \
    X(dot, f16, isa)                                                                                         \
    X(l2, f16, isa)                                                                                          \
    X(cosine, f16, isa)                                                                                      \
    X(dot, bf16, isa)                                                                                        \
    X(l2, bf16, isa)                                                                                         \
    X(cosine, bf16, isa)                                                                                     \
    X(dot, f32f16, isa)                                                                                      \
    X(l2, f32f16, isa)                                                                                       \
    X(dot, f32bf16, isa)                                                                                     \
    X(l2, f32bf16, isa)                                                                                      \
    X(dot, f32i8, isa)                                                                                       \
    X(l2, f32i8, isa)                                                                                        \
    X(dot, f32u8, isa)                                                                                       \
    X(l2, f32u8, isa)                                                                                        \
    X(dot, i8, isa)                                                                                          \
    X(l2, i8, isa)                                                                                           \
    X(cosine, i8, isa)                                                                                       \
    X(l1, i8, isa)                                                                                           \
    X(linf, i8, isa)                                                                                         \
    X(dot, u8, isa)                                                                                          \
    X(l2, u8, isa)                                                                                           \
    X(cosine, u8, isa)                                                                                       \
    X(dot, i4, isa)                                                                                          \
    X(l2, i4, isa)                                                                                           \
    X(dot, u4, isa)                                                                                          \
    X(l2, u4, isa)                                                                                           \
    X(dot, i8u4, isa)                                                                                        \
    X(l2, u8u4, isa)                                                                                         \
    X(dot, u4bits, isa)                                                                                      \
    X(hamming, bits, isa)                                                                                    \
    X(jaccard, bits, isa)
/* One that adds up products of bytes, and nothing else. */
#define LW_BYTES(X, isa)                                                                                     \
    X(dot, i8, isa)                                                                                          \
    X(l2, i8, isa)                                                                                           \
    X(cosine, i8, isa)                                                                                       \
    X(dot, u8, isa)                                                                                          \
    X(l2, u8, isa)                                                                                           \
    X(cosine, u8, isa)                                                                                       \
    X(dot, i4, isa)                                                                                          \
    X(l2, i4, isa)                                                                                           \
    X(dot, u4, isa)                                                                                          \
    X(l2, u4, isa)                                                                                           \
    X(dot, i8u4, isa)                                                                                        \
    X(l2, u8u4, isa)

#include "list_arm.h"
#include "list_x86.h"

/* CPU features that some kernel needs: symbol, name as people know it, bit. Three are
 * none: LW_FAST_SHUFFLE512 is the absence of a quirk, Zen 4's shuffles of whole 512-bit registers at half speed;
 * LW_NAMED is had by no CPU; and LW_WIDE_SVE says that SVE's registers are longer than NEON's 128 bits. */
#define LW_FEATURES(X)                                                                                       \
    X(LW_SSE41, "sse4.1", 0)                                                                                 \
    X(LW_POPCNT, "popcnt", 1)                                                                                \
    X(LW_AVX2, "avx2", 2)                                                                                    \
    X(LW_FMA, "fma", 3)                                                                                      \
    X(LW_F16C, "f16c", 4)                                                                                    \
    X(LW_AVXVNNI, "avxvnni", 5)                                                                              \
    X(LW_AVX512F, "avx512f", 6)                                                                              \
    X(LW_AVX512BW, "avx512bw", 7)                                                                            \
    X(LW_AVX512VL, "avx512vl", 8)                                                                            \
    X(LW_AVX512VNNI, "avx512vnni", 9)                                                                        \
    X(LW_AVX512VPOPCNTDQ, "avx512vpopcntdq", 10)                                                             \
    X(LW_AVX512BF16, "avx512bf16", 11)                                                                       \
    X(LW_AVX512FP16, "avx512fp16", 12)                                                                       \
    X(LW_AMX_TILE, "amx-tile", 13)                                                                           \
    X(LW_AMX_INT8, "amx-int8", 14)                                                                           \
    X(LW_AMX_BF16, "amx-bf16", 15)                                                                           \
    X(LW_NEON, "neon", 16)                                                                                   \
    X(LW_DOTPROD, "dotprod", 17)                                                                             \
    X(LW_FHM, "fhm", 18)                                                                                     \
    X(LW_BF16, "bf16", 19)                                                                                   \
    X(LW_I8MM, "i8mm", 20)                                                                                   \
    X(LW_SVE, "sve", 21)                                                                                     \
    X(LW_SVE2, "sve2", 22)                                                                                   \
    X(LW_FAST_SHUFFLE512, "fast-shuffle512", 23)                                                             \
    X(LW_NAMED, "its name in LANEWISE_ISA", 24)                                                              \
    X(LW_WIDE_SVE, "wide-sve", 25)                                                                           \
    X(LW_SVEBF16, "sve-bf16", 26)                                                                            \
    X(LW_SVEI8MM, "sve-i8mm", 27)

#if defined(__x86_64__) || defined(_M_X64)
#define LW_ISAS(X) LW_ISAS_ANY(X) LW_ISAS_X86(X)
#define LW_VARIANTS(X) LW_EVERY(X, scalar) LW_VARIANTS_X86(X)
#define LW_SCAN_VARIANTS(X) X(scan, pq4, scalar, 0) LW_SCAN_VARIANTS_X86(X)
#elif defined(__aarch64__) || defined(_M_ARM64)
#define LW_ISAS(X) LW_ISAS_ANY(X) LW_ISAS_ARM(X)
#define LW_VARIANTS(X) LW_EVERY(X, scalar) LW_VARIANTS_ARM(X)
#define LW_SCAN_VARIANTS(X) X(scan, pq4, scalar, 0) LW_SCAN_VARIANTS_ARM(X)
#else
#define LW_ISAS(X) LW_ISAS_ANY(X)
#define LW_VARIANTS(X) LW_EVERY(X, scalar)
#define LW_SCAN_VARIANTS(X) X(scan, pq4, scalar, 0)
#endif

#endif
