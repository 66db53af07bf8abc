/* AVX2, with FMA for floats and F16C for halves. Compiled with -mavx2 -mfma -mf16c -mpopcnt. */
#include "avx2.h"

#define LW_ISA avx2

#define FMA(a, b, acc) _mm256_fmadd_ps(a, b, acc)
#define F16_LOAD(p) _mm256_cvtph_ps(HALF_LOAD(p))
#define F16_TAIL(p, k) _mm256_cvtph_ps(HALF_TAIL(p, k))
#define QUARTER_LOAD(p) _mm_loadl_epi64((const __m128i *)(p))
#define QUARTER_TAIL(p, k) lw_tail128(p, k)
#define F_MOST(v) lw_most_epi32(_mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)))
#define B_MOST(v) lw_most_epu8(_mm_max_epu8(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)))
#define SIXTEEN(v) _mm256_broadcastsi128_si256(v)
#define FOLD16(v) _mm_add_epi16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1))

#include "x86.h"
