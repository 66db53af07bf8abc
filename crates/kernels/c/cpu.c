/* Which features the CPU has and the operating system saves. x86: cpuid and xgetbv. Arm: the kernel's hwcaps only,
 * never an `mrs` of an ID register, which traps on old kernels. */
#include "lanewise_kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>

static uint64_t xcr0(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return ((uint64_t)high << 32) | low;
}

uint32_t lw_cpu_features(void) {
    uint32_t a, b, c, d, features = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 27))) return 0; /* OSXSAVE: xgetbv may be used */
    uint64_t saved = xcr0();
    uint32_t fma = c & (1u << 12), avx = c & (1u << 28);
    if ((saved & 0x6) != 0x6 || !avx || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    if (b & (1u << 5)) features |= LW_AVX2;
    if (fma) features |= LW_FMA;
    if ((saved & 0xe6) == 0xe6 && (b & (1u << 16))) {
        features |= LW_AVX512F;
        if (b & (1u << 30)) features |= LW_AVX512BW;
        if (b & (1u << 31)) features |= LW_AVX512VL;
        if (c & (1u << 11)) features |= LW_AVX512VNNI;
        if (c & (1u << 14)) features |= LW_AVX512VPOPCNTDQ;
    }
    return features;
}

#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>

uint32_t lw_cpu_features(void) {
    unsigned long hwcap = getauxval(AT_HWCAP);
    uint32_t features = 0;
    if (hwcap & (1ul << 1)) features |= LW_NEON;     /* HWCAP_ASIMD */
    if (hwcap & (1ul << 20)) features |= LW_DOTPROD; /* HWCAP_ASIMDDP */
    return features;
}

#elif defined(__aarch64__) && defined(__APPLE__)
/* Every Apple core that runs 64-bit macOS has both. */
uint32_t lw_cpu_features(void) { return LW_NEON | LW_DOTPROD; }

#elif defined(__aarch64__)
uint32_t lw_cpu_features(void) { return LW_NEON; } /* part of the base architecture */

#else
uint32_t lw_cpu_features(void) { return 0; }
#endif
