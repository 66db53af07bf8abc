/* AVX-512 VNNI. Compiled with -mavx512f -mavx512bw -mavx512vl -mavx512vnni. */
#include "avx512.h"

#define LW_ISA avx512vnni

#define DPBUSD(acc, u, s) _mm512_dpbusd_epi32(acc, u, s)
#define DPWSSD(acc, x, y) _mm512_dpwssd_epi32(acc, x, y)
#define LW_VNNI_COSINE
#include "vnni.h"
