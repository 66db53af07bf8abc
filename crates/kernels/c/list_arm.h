/* 64-bit Arm: its instruction sets, ascending, and which kernels each replaces. */
#ifndef LW_LIST_ARM_H
#define LW_LIST_ARM_H

#define LW_NEED_DOTPROD (LW_NEON | LW_DOTPROD)
/* Apple's M1 has the first; Neoverse V1, N2 and V2 have all. */
#define LW_ARM_FHM (LW_NEED_DOTPROD | LW_FHM)
#define LW_ARM_BF16 (LW_ARM_FHM | LW_BF16)
#define LW_ARM_I8MM (LW_ARM_BF16 | LW_I8MM)

/* SVE with registers of 128 bits has nothing that NEON has not, and fewer rows at once: so it is taken only where they
 * are longer. It comes before dotprod, which is as good for bytes on such CPUs as have both (Neoverse V1: two SVE
 * registers of 256 bits a cycle, or four of NEON). */
#define LW_ISAS_ARM(X)                                                                                       \
    X(neon, LW_NEON, LW_NEON)                                                                                \
    X(sve, LW_NEON | LW_SVE | LW_WIDE_SVE, LW_NEON | LW_SVE)                                                 \
    X(dotprod, LW_NEED_DOTPROD, LW_NEED_DOTPROD)                                                             \
    X(fhm, LW_NEON | LW_FHM, LW_ARM_FHM)                                                                     \
    X(bf16, LW_NEON | LW_BF16, LW_ARM_BF16)                                                                  \
    X(i8mm, LW_NEED_DOTPROD | LW_I8MM, LW_ARM_I8MM)

#define LW_VARIANTS_NEON(X) LW_EVERY(X, neon)

#define LW_VARIANTS_SVE(X)                                                                                   \
    X(dot, f32, sve)                                                                                         \
    X(l2, f32, sve)                                                                                          \
    X(cosine, f32, sve)                                                                                      \
    X(l1, f32, sve)                                                                                          \
    X(linf, f32, sve)                                                                                        \
    X(dot, f16, sve)                                                                                         \
    X(l2, f16, sve)                                                                                          \
    X(cosine, f16, sve)                                                                                      \
    X(dot, bf16, sve)                                                                                        \
    X(l2, bf16, sve)                                                                                         \
    X(cosine, bf16, sve)                                                                                     \
    X(dot, f32f16, sve)                                                                                      \
    X(l2, f32f16, sve)                                                                                       \
    X(dot, f32bf16, sve)                                                                                     \
    X(l2, f32bf16, sve)                                                                                      \
    X(dot, f32i8, sve)                                                                                       \
    X(l2, f32i8, sve)                                                                                        \
    X(dot, f32u8, sve)                                                                                       \
    X(l2, f32u8, sve)                                                                                        \
    X(dot, i8, sve)                                                                                          \
    X(l2, i8, sve)                                                                                           \
    X(cosine, i8, sve)                                                                                       \
    X(dot, u8, sve)                                                                                          \
    X(l2, u8, sve)                                                                                           \
    X(cosine, u8, sve)                                                                                       \
    X(hamming, bits, sve)

#define LW_VARIANTS_DOTPROD(X)                                                                               \
    X(dot, i8, dotprod)                                                                                      \
    X(l2, i8, dotprod)                                                                                       \
    X(cosine, i8, dotprod)                                                                                   \
    X(dot, u8, dotprod)                                                                                      \
    X(l2, u8, dotprod)                                                                                       \
    X(cosine, u8, dotprod)                                                                                   \
    X(dot, i4, dotprod)                                                                                      \
    X(l2, i4, dotprod)                                                                                       \
    X(dot, u4, dotprod)                                                                                      \
    X(l2, u4, dotprod)                                                                                       \
    X(dot, u8u4, dotprod)                                                                                    \
    X(l2, u8u4, dotprod)                                                                                     \
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

#define LW_VARIANTS_ARM(X)                                                                                   \
    LW_VARIANTS_NEON(X)                                                                                      \
    LW_VARIANTS_SVE(X)                                                                                       \
    LW_VARIANTS_DOTPROD(X)                                                                                   \
    LW_VARIANTS_FHM(X)                                                                                       \
    LW_VARIANTS_BF16(X)                                                                                      \
    LW_VARIANTS_I8MM(X)

#define LW_SCAN_VARIANTS_ARM(X) X(scan, pq4, neon, 0)

#endif
