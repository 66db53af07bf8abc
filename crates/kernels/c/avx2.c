/* AVX2, and FMA for floats. Compiled with -mavx2 -mfma; entered only where the CPU has them. */
#include "sum128.h"

#include <string.h>

#define LW_ISA avx2

static inline __m128 fold_ps(__m256 v) {
    return _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
}
static inline __m128i fold_epi32(__m256i v) {
    return _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}

/* AVX2 masks no bytes, and a masked load of floats over an absent page faults under emulators and takes a slow path
 * on CPUs: a copy through the stack reads no byte too many anywhere. */
static inline __m256 tail_ps(const float *p, size_t k) {
    float buffer[8] = {0};
    memcpy(buffer, p, k * sizeof *p);
    return _mm256_loadu_ps(buffer);
}
static inline __m256i tail_epi8(const void *p, size_t k) {
    uint8_t buffer[32] = {0};
    memcpy(buffer, p, k);
    return _mm256_loadu_si256((const __m256i *)buffer);
}
static inline __m256i tail_epi8_epi16(const int8_t *p, size_t k) {
    int8_t buffer[16] = {0};
    memcpy(buffer, p, k);
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)buffer));
}

#define SUM_PS(v) lw_sum_ps(fold_ps(v))
#define SUM4_PS(v, out)                                                                                      \
    _mm_storeu_ps(out, lw_sum4_ps(fold_ps((v)[0]), fold_ps((v)[1]), fold_ps((v)[2]), fold_ps((v)[3])))
#define SUM_EPI32(v) lw_sum_epi32(fold_epi32(v))
#define SUM4_EPI32(v, out)                                                                                   \
    _mm_storeu_si128((__m128i *)(out), lw_sum4_epi32(fold_epi32((v)[0]), fold_epi32((v)[1]),                 \
                                                     fold_epi32((v)[2]), fold_epi32((v)[3])))

#define LW_OP dot
#define LW_TYPE f32
#define VEC __m256
#define LANES 8
#define LOAD(p) _mm256_loadu_ps(p)
#define LOAD_TAIL(p, k) tail_ps(p, k)
#define ACC __m256
#define ZERO _mm256_setzero_ps()
#define ADD(acc, a, b) _mm256_fmadd_ps(a, b, acc)
#define MERGE(x, y) _mm256_add_ps(x, y)
#define SUM(v) SUM_PS(v)
#define SUM4(v, out) SUM4_PS(v, out)
#define BIAS(q, n) 0
#define UNBIAS(total, bias) ((void)(bias), (total))
#include "loops.h"

static inline __m256 add_square_ps(__m256 acc, __m256 a, __m256 b) {
    const __m256 d = _mm256_sub_ps(a, b);
    return _mm256_fmadd_ps(d, d, acc);
}
#define LW_OP l2
#define LW_TYPE f32
#define VEC __m256
#define LANES 8
#define LOAD(p) _mm256_loadu_ps(p)
#define LOAD_TAIL(p, k) tail_ps(p, k)
#define ACC __m256
#define ZERO _mm256_setzero_ps()
#define ADD(acc, a, b) add_square_ps(acc, a, b)
#define MERGE(x, y) _mm256_add_ps(x, y)
#define SUM(v) SUM_PS(v)
#define SUM4(v, out) SUM4_PS(v, out)
#define BIAS(q, n) 0
#define UNBIAS(total, bias) ((void)(bias), (total))
#include "loops.h"

/* Bytes widened to 16 bits: a product of two, and the sum of two such products, fit 32 bits. */
#define LW_OP dot
#define LW_TYPE i8
#define VEC __m256i
#define LANES 16
#define LOAD(p) _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(p)))
#define LOAD_TAIL(p, k) tail_epi8_epi16(p, k)
#define ACC __m256i
#define ZERO _mm256_setzero_si256()
#define ADD(acc, a, b) _mm256_add_epi32(acc, _mm256_madd_epi16(a, b))
#define MERGE(x, y) _mm256_add_epi32(x, y)
#define SUM(v) SUM_EPI32(v)
#define SUM4(v, out) SUM4_EPI32(v, out)
#define BIAS(q, n) 0
#define UNBIAS(total, bias) ((void)(bias), (total))
#include "loops.h"

static inline __m256i add_square_epi16(__m256i acc, __m256i a, __m256i b) {
    const __m256i d = _mm256_sub_epi16(a, b);
    return _mm256_add_epi32(acc, _mm256_madd_epi16(d, d));
}
#define LW_OP l2
#define LW_TYPE i8
#define VEC __m256i
#define LANES 16
#define LOAD(p) _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(p)))
#define LOAD_TAIL(p, k) tail_epi8_epi16(p, k)
#define ACC __m256i
#define ZERO _mm256_setzero_si256()
#define ADD(acc, a, b) add_square_epi16(acc, a, b)
#define MERGE(x, y) _mm256_add_epi32(x, y)
#define SUM(v) SUM_EPI32(v)
#define SUM4(v, out) SUM4_EPI32(v, out)
#define BIAS(q, n) 0
#define UNBIAS(total, bias) ((void)(bias), (total))
#include "loops.h"

/* Bits of a byte by looking both its halves up (Mula), bytes summed to 64 bits by SAD. */
static inline __m256i add_popcount(__m256i acc, __m256i v) {
    const __m256i counts = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2,
                                            2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i low = _mm256_set1_epi8(0x0f);
    const __m256i bits =
        _mm256_add_epi8(_mm256_shuffle_epi8(counts, _mm256_and_si256(v, low)),
                        _mm256_shuffle_epi8(counts, _mm256_and_si256(_mm256_srli_epi16(v, 4), low)));
    return _mm256_add_epi64(acc, _mm256_sad_epu8(bits, _mm256_setzero_si256()));
}
#define LW_OP hamming
#define LW_TYPE bits
#define VEC __m256i
#define LANES 32
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(p))
#define LOAD_TAIL(p, k) tail_epi8(p, k)
#define ACC __m256i
#define ZERO _mm256_setzero_si256()
#define ADD(acc, a, b) add_popcount(acc, _mm256_xor_si256(a, b))
#define MERGE(x, y) _mm256_add_epi64(x, y)
/* Counts stay below 2^31, so the high halves of the 64-bit lanes are zero and 32-bit sums are right. */
#define SUM(v) SUM_EPI32(v)
#define SUM4(v, out) SUM4_EPI32(v, out)
#define BIAS(q, n) 0
#define UNBIAS(total, bias) ((void)(bias), (total))
#include "loops.h"
