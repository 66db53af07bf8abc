/* SSE4.1 (with SSSE3) and POPCNT: what x86 had from 2008 on. Compiled with -msse4.1 -mpopcnt. */
#include "sum128.h"

#include <string.h>

#define LW_ISA sse41
#define LW_REGISTERS 16

#define P(name) _mm_##name
#define FLOATS __m128
#define INTS __m128i
#define INT_BYTES 16
#define I_AS_F(x) _mm_castsi128_ps(x)
#define F_AS_I(x) _mm_castps_si128(x)
#define I_ZERO _mm_setzero_si128()
#define I_AND(x, y) _mm_and_si128(x, y)
#define I_XOR(x, y) _mm_xor_si128(x, y)
#define I_OR(x, y) _mm_or_si128(x, y)

/* No masked loads: a copy through the stack reads no byte too many. */
static inline __m128i tail(const void *p, size_t bytes) {
    uint8_t buffer[16] = {0};
    memcpy(buffer, p, bytes);
    return _mm_loadu_si128((const __m128i *)buffer);
}

static inline __m128i load32(const void *p) {
    int32_t v;
    memcpy(&v, p, sizeof v);
    return _mm_cvtsi32_si128(v);
}

/* The bits of a half, shifted to a float's place, are the number times 2^-112, subnormal ones too; infinities and NaN
 * get the rest of their exponent. */
static inline __m128 from_f16(__m128i words) {
    const __m128i h = _mm_cvtepu16_epi32(words);
    const __m128i rest = _mm_and_si128(h, _mm_set1_epi32(0x7fff));
    const __m128 value = _mm_mul_ps(_mm_castsi128_ps(_mm_slli_epi32(rest, 13)), _mm_set1_ps(0x1p112f));
    const __m128i huge =
        _mm_and_si128(_mm_cmpgt_epi32(rest, _mm_set1_epi32(0x7bff)), _mm_set1_epi32(0x7f800000));
    const __m128i sign = _mm_slli_epi32(_mm_xor_si128(h, rest), 16);
    return _mm_castsi128_ps(_mm_or_si128(_mm_castps_si128(value), _mm_or_si128(huge, sign)));
}

#define FMA(a, b, acc) _mm_add_ps(acc, _mm_mul_ps(a, b))
#define F_LOAD(p) _mm_loadu_ps(p)
#define F_TAIL(p, k) _mm_castsi128_ps(tail(p, 4 * (k)))
#define F_SUM(v) lw_sum_ps(v)
#define F_SUM4(v, out) _mm_storeu_ps(out, lw_sum4_ps((v)[0], (v)[1], (v)[2], (v)[3]))
#define I_LOAD(p) _mm_loadu_si128((const __m128i *)(p))
#define I_TAIL(p, k) tail(p, k)
#define I_SUM(v) lw_sum_epi32(v)
#define I_SUM4(v, out) _mm_storeu_si128((__m128i *)(out), lw_sum4_epi32((v)[0], (v)[1], (v)[2], (v)[3]))
#define HALF_LOAD(p) _mm_loadl_epi64((const __m128i *)(p))
#define HALF_TAIL(p, k) tail(p, 2 * (k))
#define F16_LOAD(p) from_f16(HALF_LOAD(p))
#define F16_TAIL(p, k) from_f16(HALF_TAIL(p, k))
#define QUARTER_LOAD(p) load32(p)
#define QUARTER_TAIL(p, k) tail(p, k)
#define BYTES_HALF_LOAD(p) _mm_loadl_epi64((const __m128i *)(p))
#define BYTES_HALF_TAIL(p, k) tail(p, k)
#define F_MOST(v) lw_most_epi32(v)
#define B_MOST(v) lw_most_epu8(v)
#define FOLD16(v) (v)

/* Bits: 64 at a time by POPCNT. */
static inline uint64_t load64(const void *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline uint64_t tail64(const void *p, size_t k) {
    uint64_t v = 0;
    memcpy(&v, p, k);
    return v;
}
static inline uint64_t count(uint64_t v) { return (uint64_t)_mm_popcnt_u64(v); }
#define BITS uint64_t
#define BITS_LANES 8
#define BITS_LOAD(p) load64(p)
#define BITS_TAIL(p, k) tail64(p, k)
#define BITS_XOR(x, y) ((x) ^ (y))
#define BITS_AND(x, y) ((x) & (y))
#define BITS_OR(x, y) ((x) | (y))
#define COUNTS uint64_t
#define COUNTS_ZERO 0
#define COUNTS_ADD(x, y) ((x) + (y))
#define COUNTS_SUM(x) ((int32_t)(x))
#define COUNTS_SUM4(x, out)                                                                                  \
    ((out)[0] = (int32_t)(x)[0], (out)[1] = (int32_t)(x)[1], (out)[2] = (int32_t)(x)[2],                     \
     (out)[3] = (int32_t)(x)[3])
#define COUNT(acc, v) ((acc) + count(v))
#define COUNT4(acc, v0, v1, v2, v3) ((acc) + count(v0) + 2 * count(v1) + 4 * count(v2) + 8 * count(v3))

#include "x86.h"
