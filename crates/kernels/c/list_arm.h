/* 64-bit Arm: its instruction sets, ascending, and which kernels each replaces. */
#ifndef LW_LIST_ARM_H
#define LW_LIST_ARM_H

#define LW_NEED_DOTPROD (LW_NEON | LW_DOTPROD)
#define LW_NEED_SVE (LW_NEON | LW_SVE | LW_WIDE_SVE)
/* Apple's M1 has the first; Neoverse N2 and V2 have all, V1 all but the last. */
#define LW_ARM_FHM (LW_NEED_DOTPROD | LW_FHM)
#define LW_ARM_BF16 (LW_ARM_FHM | LW_BF16)
#define LW_ARM_I8MM (LW_ARM_BF16 | LW_I8MM)
#define LW_ARM_SVEBF16 (LW_ARM_I8MM | LW_NEED_SVE | LW_SVEBF16)
#define LW_ARM_SVEI8MM (LW_ARM_SVEBF16 | LW_SVEI8MM)
#define LW_ARM_SVE2 (LW_ARM_SVEI8MM | LW_SVE2)

/* SVE with registers of 128 bits has nothing that NEON has not, and fewer rows at once: so all SVE is taken only where
 * they are longer. There it does a distance of bytes with fewer instructions than dotprod, and one of halves with more
 * than fhm (docs/arm.md); Neoverse V1 starts two SVE instructions a cycle, or four of NEON, and loads 64 bytes a cycle
 * with SVE, or 48. */
#define LW_ISAS_ARM(X)                                                                                       \
    X(neon, LW_NEON, LW_NEON)                                                                                \
    X(dotprod, LW_NEED_DOTPROD, LW_NEED_DOTPROD)                                                             \
    X(sve, LW_NEED_SVE, LW_NEED_SVE)                                                                         \
    X(fhm, LW_NEON | LW_FHM, LW_ARM_FHM)                                                                     \
    X(bf16, LW_NEON | LW_BF16, LW_ARM_BF16)                                                                  \
    X(i8mm, LW_NEED_DOTPROD | LW_I8MM, LW_ARM_I8MM)                                                          \
    X(svebf16, LW_NEED_SVE | LW_SVEBF16, LW_ARM_SVEBF16)                                                     \
    X(svei8mm, LW_NEED_SVE | LW_SVEI8MM, LW_ARM_SVEI8MM)                                                     \
    X(sve2, LW_NEED_SVE | LW_SVE2, LW_ARM_SVE2)

#define LW_VARIANTS_NEON(X) LW_EVERY(X, neon)
#define LW_VARIANTS_SVE(X) LW_EVERY(X, sve)

#define LW_VARIANTS_DOTPROD(X)                                                                               \
    LW_BYTES(X, dotprod)                                                                                     \
    X(l1, i8, dotprod)                                                                                       \
    X(dot, u4bits, dotprod)                                                                                  \
    X(hamming, bits, dotprod)                                                                                \
    X(jaccard, bits, dotprod)

#define LW_VARIANTS_FHM(X)                                                                                   \
    X(dot, f16, fhm)                                                                                         \
    X(cosine, f16, fhm)

#define LW_VARIANTS_BF16(X)                                                                                  \
    X(dot, bf16, bf16)                                                                                       \
    X(cosine, bf16, bf16)

#define LW_VARIANTS_I8MM(X)                                                                                  \
    X(dot, i8, i8mm)                                                                                         \
    X(dot, u8, i8mm)

#define LW_VARIANTS_SVEBF16(X)                                                                               \
    X(dot, bf16, svebf16)                                                                                    \
    X(cosine, bf16, svebf16)

#define LW_VARIANTS_SVEI8MM(X)                                                                               \
    X(dot, i8, svei8mm)                                                                                      \
    X(dot, u8, svei8mm)

#define LW_VARIANTS_SVE2(X)                                                                                  \
    X(dot, f16, sve2)                                                                                        \
    X(l2, f16, sve2)                                                                                         \
    X(cosine, f16, sve2)

#define LW_VARIANTS_ARM(X)                                                                                   \
    LW_VARIANTS_NEON(X)                                                                                      \
    LW_VARIANTS_DOTPROD(X)                                                                                   \
    LW_VARIANTS_SVE(X)                                                                                       \
    LW_VARIANTS_FHM(X)                                                                                       \
    LW_VARIANTS_BF16(X)                                                                                      \
    LW_VARIANTS_I8MM(X)                                                                                      \
    LW_VARIANTS_SVEBF16(X)                                                                                   \
    LW_VARIANTS_SVEI8MM(X)                                                                                   \
    LW_VARIANTS_SVE2(X)

#define LW_SCAN_VARIANTS_ARM(X) X(scan, pq4, neon, 0)

#endif
