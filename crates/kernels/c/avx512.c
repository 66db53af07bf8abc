/* AVX-512 as Skylake-X has it: F for floats, BW for bytes, VL where a half register is loaded under a mask.
 * Compiled with -mavx512f -mavx512bw -mavx512vl. */
#include "avx512.h"

#define LW_ISA avx512

#define LW_OP dot
#define LW_TYPE f32
#define VEC __m512
#define LANES 16
#define LOAD(p) _mm512_loadu_ps(p)
#define LOAD_TAIL(p, k) _mm512_maskz_loadu_ps(LW_MASK16(k), p)
#define ACC __m512
#define ZERO _mm512_setzero_ps()
#define ADD(acc, a, b) _mm512_fmadd_ps(a, b, acc)
#define MERGE(x, y) _mm512_add_ps(x, y)
#define SUM(v) LW_SUM512_PS(v)
#define SUM4(v, out) LW_SUM512X4_PS(v, out)
#define BIAS(q, n) 0
#define UNBIAS(total, bias) ((void)(bias), (total))
#include "loops.h"

static inline __m512 add_square_ps(__m512 acc, __m512 a, __m512 b) {
    const __m512 d = _mm512_sub_ps(a, b);
    return _mm512_fmadd_ps(d, d, acc);
}
#define LW_OP l2
#define LW_TYPE f32
#define VEC __m512
#define LANES 16
#define LOAD(p) _mm512_loadu_ps(p)
#define LOAD_TAIL(p, k) _mm512_maskz_loadu_ps(LW_MASK16(k), p)
#define ACC __m512
#define ZERO _mm512_setzero_ps()
#define ADD(acc, a, b) add_square_ps(acc, a, b)
#define MERGE(x, y) _mm512_add_ps(x, y)
#define SUM(v) LW_SUM512_PS(v)
#define SUM4(v, out) LW_SUM512X4_PS(v, out)
#define BIAS(q, n) 0
#define UNBIAS(total, bias) ((void)(bias), (total))
#include "loops.h"

/* Bytes widened to 16 bits, products added in pairs. */
#define LW_OP dot
#define LW_TYPE i8
#define VEC __m512i
#define LANES 32
#define LOAD(p) _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(p)))
#define LOAD_TAIL(p, k) _mm512_cvtepi8_epi16(_mm256_maskz_loadu_epi8(LW_MASK32(k), p))
#define ACC __m512i
#define ZERO _mm512_setzero_si512()
#define ADD(acc, a, b) _mm512_add_epi32(acc, _mm512_madd_epi16(a, b))
#define MERGE(x, y) _mm512_add_epi32(x, y)
#define SUM(v) LW_SUM512_EPI32(v)
#define SUM4(v, out) LW_SUM512X4_EPI32(v, out)
#define BIAS(q, n) 0
#define UNBIAS(total, bias) ((void)(bias), (total))
#include "loops.h"

static inline __m512i add_square_epi16(__m512i acc, __m512i a, __m512i b) {
    const __m512i d = _mm512_sub_epi16(a, b);
    return _mm512_add_epi32(acc, _mm512_madd_epi16(d, d));
}
#define LW_OP l2
#define LW_TYPE i8
#define VEC __m512i
#define LANES 32
#define LOAD(p) _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(p)))
#define LOAD_TAIL(p, k) _mm512_cvtepi8_epi16(_mm256_maskz_loadu_epi8(LW_MASK32(k), p))
#define ACC __m512i
#define ZERO _mm512_setzero_si512()
#define ADD(acc, a, b) add_square_epi16(acc, a, b)
#define MERGE(x, y) _mm512_add_epi32(x, y)
#define SUM(v) LW_SUM512_EPI32(v)
#define SUM4(v, out) LW_SUM512X4_EPI32(v, out)
#define BIAS(q, n) 0
#define UNBIAS(total, bias) ((void)(bias), (total))
#include "loops.h"

/* Bits of a byte by looking both its halves up (Mula), bytes summed to 64 bits by SAD. */
static inline __m512i add_popcount(__m512i acc, __m512i v) {
    const __m512i counts =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    const __m512i low = _mm512_set1_epi8(0x0f);
    const __m512i bits =
        _mm512_add_epi8(_mm512_shuffle_epi8(counts, _mm512_and_si512(v, low)),
                        _mm512_shuffle_epi8(counts, _mm512_and_si512(_mm512_srli_epi16(v, 4), low)));
    return _mm512_add_epi64(acc, _mm512_sad_epu8(bits, _mm512_setzero_si512()));
}
#define LW_OP hamming
#define LW_TYPE bits
#define VEC __m512i
#define LANES 64
#define LOAD(p) _mm512_loadu_si512(p)
#define LOAD_TAIL(p, k) _mm512_maskz_loadu_epi8(LW_MASK64(k), p)
#define ACC __m512i
#define ZERO _mm512_setzero_si512()
#define ADD(acc, a, b) add_popcount(acc, _mm512_xor_si512(a, b))
#define MERGE(x, y) _mm512_add_epi64(x, y)
/* Counts stay below 2^31, so the high halves of the 64-bit lanes are zero and 32-bit sums are right. */
#define SUM(v) LW_SUM512_EPI32(v)
#define SUM4(v, out) LW_SUM512X4_EPI32(v, out)
#define BIAS(q, n) 0
#define UNBIAS(total, bias) ((void)(bias), (total))
#include "loops.h"
