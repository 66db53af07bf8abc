/* Which features the CPU has and the operating system saves. x86: cpuid and xgetbv. Linux on Arm: its hwcaps only, never
 * an `mrs` of an ID register, which traps on old kernels. lw_detect serves resolvers too (exports.c), so it calls
 * nothing. */
#include "lanewise_kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>

LW_BARE static uint64_t xcr0(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return ((uint64_t)high << 32) | low;
}

/* AMD's family of Zen 3 and Zen 4; the first has no AVX-512. */
enum { ZEN4 = 0x19 };

LW_BARE uint32_t lw_detect(uint64_t hwcap, uint64_t hwcap2) {
    (void)hwcap, (void)hwcap2;
    uint32_t a, b, c, d, leaves, features = 0;
    __cpuid(0, leaves, b, c, d);
    if (leaves < 1) return 0;
    __cpuid(1, a, b, c, d);
    const uint32_t family = (a >> 8 & 15) + (a >> 20 & 255), one = c;
    if ((one & (1u << 19)) && (one & (1u << 9)) && (one & 1)) features |= LW_SSE41; /* with SSSE3 and SSE3 */
    if (one & (1u << 23)) features |= LW_POPCNT;
    if (!(one & (1u << 27))) return features; /* OSXSAVE: xgetbv may be used */
    const uint64_t saved = xcr0();
    if ((saved & 0x6) != 0x6 || !(one & (1u << 28)) || leaves < 7) return features;
    __cpuid_count(7, 0, a, b, c, d);
    if (b & (1u << 5)) features |= LW_AVX2;
    if (one & (1u << 12)) features |= LW_FMA;
    if (one & (1u << 29)) features |= LW_F16C;
    if ((saved & 0xe6) == 0xe6 && (b & (1u << 16))) {
        features |= LW_AVX512F;
        if (b & (1u << 30)) features |= LW_AVX512BW;
        if (b & (1u << 31)) features |= LW_AVX512VL;
        if (c & (1u << 11)) features |= LW_AVX512VNNI;
        if (c & (1u << 14)) features |= LW_AVX512VPOPCNTDQ;
        if (d & (1u << 23)) features |= LW_AVX512FP16;
        if (family != ZEN4) features |= LW_FAST_SHUFFLE512;
    }
    if ((saved & 0x60000) == 0x60000) {
        if (d & (1u << 24)) features |= LW_AMX_TILE;
        if (d & (1u << 25)) features |= LW_AMX_INT8;
        if (d & (1u << 22)) features |= LW_AMX_BF16;
    }
    if (a) {
        __cpuid_count(7, 1, a, b, c, d);
        if (a & (1u << 4)) features |= LW_AVXVNNI;
        if ((features & LW_AVX512F) && (a & (1u << 5))) features |= LW_AVX512BF16;
    }
    return features;
}

uint32_t lw_cpu_features(void) { return lw_detect(0, 0); }

#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>

/* The length of SVE's registers. As a number, because nothing in this file may be compiled for SVE. */
LW_BARE static uint64_t sve_bytes(void) {
    register uint64_t bytes __asm__("x0");
    __asm__ volatile(".inst 0x04bf5020" : "=r"(bytes)); /* rdvl x0, #1 */
    return bytes;
}

LW_BARE uint32_t lw_detect(uint64_t hwcap, uint64_t hwcap2) {
    uint32_t features = 0;
    if (hwcap & (1ul << 1)) features |= LW_NEON;     /* HWCAP_ASIMD */
    if (hwcap & (1ul << 20)) features |= LW_DOTPROD; /* HWCAP_ASIMDDP */
    if (hwcap & (1ul << 23)) features |= LW_FHM;     /* HWCAP_ASIMDFHM */
    if (hwcap & (1ul << 22)) features |= sve_bytes() > 16 ? LW_SVE | LW_WIDE_SVE : LW_SVE; /* HWCAP_SVE */
    if (hwcap2 & (1ul << 1)) features |= LW_SVE2;                                          /* HWCAP2_SVE2 */
    if (hwcap2 & (1ul << 9)) features |= LW_SVEI8MM;  /* HWCAP2_SVEI8MM */
    if (hwcap2 & (1ul << 12)) features |= LW_SVEBF16; /* HWCAP2_SVEBF16 */
    if (hwcap2 & (1ul << 13)) features |= LW_I8MM;    /* HWCAP2_I8MM */
    if (hwcap2 & (1ul << 14)) features |= LW_BF16;    /* HWCAP2_BF16 */
    return features;
}

uint32_t lw_cpu_features(void) { return lw_detect(getauxval(AT_HWCAP), getauxval(AT_HWCAP2)); }

#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>

static int has(const char *name) {
    int value = 0;
    size_t bytes = sizeof value;
    return !sysctlbyname(name, &value, &bytes, NULL, 0) && value;
}

uint32_t lw_cpu_features(void) {
    uint32_t features = LW_NEON | LW_DOTPROD; /* every Apple core that runs macOS has both */
    if (has("hw.optional.arm.FEAT_FHM")) features |= LW_FHM;
    if (has("hw.optional.arm.FEAT_BF16")) features |= LW_BF16;
    if (has("hw.optional.arm.FEAT_I8MM")) features |= LW_I8MM;
    return features;
}

#elif defined(__aarch64__)
uint32_t lw_cpu_features(void) { return LW_NEON; } /* part of the base architecture */

#else
uint32_t lw_cpu_features(void) { return 0; }
#endif

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>

int lw_permit(uint32_t features) {
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18 };
    return !(features & LW_AMX_TILE) || !syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XTILEDATA);
}
#else
int lw_permit(uint32_t features) { return !(features & LW_AMX_TILE); }
#endif
