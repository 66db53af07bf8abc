/* x86-64: its instruction sets, ascending, and which kernels each replaces. An instruction set that the compiler does
 * not know is left out with -DLW_WITHOUT_<ISA>. */
#ifndef LW_LIST_X86_H
#define LW_LIST_X86_H

#define LW_NEED_SSE41 (LW_SSE41 | LW_POPCNT)
#define LW_NEED_AVX2 (LW_NEED_SSE41 | LW_AVX2 | LW_FMA | LW_F16C)
#define LW_NEED_AVX512 (LW_NEED_AVX2 | LW_AVX512F | LW_AVX512BW | LW_AVX512VL)
#define LW_NEED_AVX512VNNI (LW_NEED_AVX512 | LW_AVX512VNNI)
#define LW_NEED_AMX (LW_NEED_AVX512VNNI | LW_AVX512BF16 | LW_AMX_TILE | LW_AMX_INT8 | LW_AMX_BF16)
/* What Ice Lake has, what Zen 4 has, and what Sapphire Rapids has. */
#define LW_LEVEL_VPOPCNTDQ (LW_NEED_AVX512VNNI | LW_AVX512VPOPCNTDQ)
#define LW_LEVEL_BF16 (LW_LEVEL_VPOPCNTDQ | LW_AVX512BF16)
#define LW_LEVEL_FP16 (LW_LEVEL_BF16 | LW_AVX512FP16)

#define LW_ISAS_X86(X)                                                                                       \
    X(sse41, LW_NEED_SSE41, LW_NEED_SSE41)                                                                   \
    X(avx2, LW_NEED_AVX2, LW_NEED_AVX2)                                                                      \
    X(avxvnni, LW_NEED_AVX2 | LW_AVXVNNI, LW_NEED_AVX2 | LW_AVXVNNI)                                         \
    X(avx512, LW_NEED_AVX512, LW_NEED_AVX512)                                                                \
    X(avx512vnni, LW_NEED_AVX512VNNI, LW_NEED_AVX512VNNI)                                                    \
    X(avx512vpopcntdq, LW_NEED_AVX512 | LW_AVX512VPOPCNTDQ, LW_LEVEL_VPOPCNTDQ)                              \
    X(avx512bf16, LW_NEED_AVX512 | LW_AVX512BF16, LW_LEVEL_BF16)                                             \
    X(avx512fp16, LW_NEED_AVX512 | LW_AVX512FP16 | LW_NAMED, LW_LEVEL_FP16 | LW_NAMED)                       \
    X(amx, LW_NEED_AMX, LW_LEVEL_BF16 | LW_NEED_AMX)

#define LW_VARIANTS_SSE41(X) LW_EVERY(X, sse41)
#define LW_VARIANTS_AVX2(X) LW_EVERY(X, avx2)
#ifndef LW_WITHOUT_AVXVNNI
#define LW_VARIANTS_AVXVNNI(X) LW_BYTES(X, avxvnni)
#else
#define LW_VARIANTS_AVXVNNI(X)
#endif

#define LW_VARIANTS_AVX512(X) LW_EVERY(X, avx512)
#define LW_VARIANTS_AVX512VNNI(X) LW_BYTES(X, avx512vnni)

#define LW_VARIANTS_AVX512VPOPCNTDQ(X)                                                                       \
    X(dot, u4bits, avx512vpopcntdq)                                                                          \
    X(hamming, bits, avx512vpopcntdq)                                                                        \
    X(jaccard, bits, avx512vpopcntdq)

#ifndef LW_WITHOUT_AVX512BF16
#define LW_VARIANTS_AVX512BF16(X) X(dot, bf16, avx512bf16)
#else
#define LW_VARIANTS_AVX512BF16(X)
#endif

#ifndef LW_WITHOUT_AVX512FP16
#define LW_VARIANTS_AVX512FP16(X)                                                                            \
    X(dot, f16, avx512fp16)                                                                                  \
    X(l2, f16, avx512fp16)
#else
#define LW_VARIANTS_AVX512FP16(X)
#endif

#if !defined(LW_WITHOUT_AMX) && !defined(LW_WITHOUT_AVX512BF16)
#define LW_VARIANTS_AMX(X)                                                                                   \
    X(dot, i8, amx)                                                                                          \
    X(l2, i8, amx)                                                                                           \
    X(cosine, i8, amx)                                                                                       \
    X(dot, u8, amx)                                                                                          \
    X(l2, u8, amx)                                                                                           \
    X(cosine, u8, amx)                                                                                       \
    X(dot, bf16, amx)                                                                                        \
    X(cosine, bf16, amx)
#else
#define LW_VARIANTS_AMX(X)
#endif

#define LW_VARIANTS_X86(X)                                                                                   \
    LW_VARIANTS_SSE41(X)                                                                                     \
    LW_VARIANTS_AVX2(X)                                                                                      \
    LW_VARIANTS_AVXVNNI(X)                                                                                   \
    LW_VARIANTS_AVX512(X)                                                                                    \
    LW_VARIANTS_AVX512VNNI(X)                                                                                \
    LW_VARIANTS_AVX512VPOPCNTDQ(X)                                                                           \
    LW_VARIANTS_AVX512BF16(X)                                                                                \
    LW_VARIANTS_AVX512FP16(X)                                                                                \
    LW_VARIANTS_AMX(X)

/* X(op, type, isa, quirk): needed besides what the instruction set needs. */
#define LW_SCAN_VARIANTS_X86(X)                                                                              \
    X(scan, pq4, sse41, 0)                                                                                   \
    X(scan, pq4, avx2, 0)                                                                                    \
    X(scan, pq4, avx512, LW_FAST_SHUFFLE512)

#endif
