/* AVX-VNNI: the byte products of AVX-512 VNNI in 256-bit registers (Alder Lake and later, Zen 5). Compiled with
 * -mavx2 -mfma -mf16c -mpopcnt -mavxvnni. */
#include "avx2.h"

#define LW_ISA avxvnni

#define DPBUSD(acc, u, s) _mm256_dpbusd_avx_epi32(acc, u, s)
#define APART(x, y) _mm256_or_si256(_mm256_subs_epu8(x, y), _mm256_subs_epu8(y, x))
#include "vnni.h"
