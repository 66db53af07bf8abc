/* The arithmetic of a line of a row, on registers. */
#include "limits.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* Enough sums in flight for an instruction of 6 cycles that starts twice a cycle. */
enum { SUMS = 12, LINE = 64 };

/* One step: `row` and `query` are registers of unknown content, `sum` is added to. HIDE keeps the compiler from moving
 * a step's work out of the loop. */
#define STEP(name, target, vector, zero, ...)                                                                \
    TARGET(target)                                                                                           \
    static void name(const char *q, const char *base, size_t stride, size_t count, size_t bytes,             \
                     void *out) {                                                                            \
        (void)q, (void)base, (void)stride, (void)out;                                                        \
        vector sums[SUMS], query = zero, row = zero;                                                         \
        _Pragma("GCC unroll 12") for (int each = 0; each < SUMS; each++) sums[each] = zero;                  \
        HIDE(query);                                                                                         \
        for (size_t done = 0; done < count * bytes; done += SUMS * LINE) {                                   \
            _Pragma("GCC unroll 12") for (int each = 0; each < SUMS; each++) {                               \
                vector sum = sums[each];                                                                     \
                HIDE(row);                                                                                   \
                __VA_ARGS__;                                                                                 \
                sums[each] = sum;                                                                            \
                HIDE(sums[each]);                                                                            \
            }                                                                                                \
        }                                                                                                    \
    }

#if defined(__x86_64__)
#define TARGET(t) __attribute__((target(t)))
#define HIDE(v) __asm__ volatile("" : "+v"(v))
#define F __m512
#define I __m512i
#define ZF _mm512_setzero_ps()
#define ZI _mm512_setzero_si512()
#define PS(v) _mm512_castsi512_ps(v)
#define HALF(v) _mm512_castsi512_si256(v)
#define BASE512 "avx512f,avx512bw,avx512vl"

STEP(dot_f32, BASE512, F, ZF, sum = _mm512_fmadd_ps(query, row, sum))
STEP(cosine_f32, BASE512, F, ZF, sum = _mm512_fmadd_ps(query, row, sum); sum = _mm512_fmadd_ps(row, row, sum))
STEP(l2_f32, BASE512, F, ZF, F d = _mm512_sub_ps(query, row); sum = _mm512_fmadd_ps(d, d, sum))
STEP(l1_f32, BASE512, F, ZF, sum = _mm512_add_ps(sum, _mm512_abs_ps(_mm512_sub_ps(query, row))))
STEP(linf_f32, BASE512, F, ZF, sum = _mm512_max_ps(sum, _mm512_abs_ps(_mm512_sub_ps(query, row))))

/* Half floats: two conversions a line, then as floats. */
#define HALVES(EACH)                                                                                         \
    F r = _mm512_cvtph_ps(HALF(row));                                                                        \
    EACH;                                                                                                    \
    HIDE(row);                                                                                               \
    r = _mm512_cvtph_ps(HALF(row));                                                                          \
    EACH
#define DOT_EACH s = _mm512_fmadd_ps(PS(query), r, s)
#define L2_EACH d = _mm512_sub_ps(PS(query), r), s = _mm512_fmadd_ps(d, d, s)
#define FLOATS(...)                                                                                          \
    F s = PS(sum), d = ZF;                                                                                   \
    (void)d;                                                                                                 \
    __VA_ARGS__;                                                                                             \
    sum = _mm512_castps_si512(s)
#define COSINE_EACH s = _mm512_fmadd_ps(PS(query), r, s), s = _mm512_fmadd_ps(r, r, s)
STEP(cosine_f16, BASE512, I, ZI, FLOATS(HALVES(COSINE_EACH)))
STEP(dot_f16, BASE512, I, ZI, FLOATS(HALVES(DOT_EACH)))
STEP(l2_f16, BASE512, I, ZI, FLOATS(HALVES(L2_EACH)))
/* bfloat16: the odd elements are floats once the even ones are masked off, the even ones once shifted up. */
#define BHALVES(EACH)                                                                                        \
    F r = PS(_mm512_slli_epi32(row, 16));                                                                    \
    EACH;                                                                                                    \
    r = PS(_mm512_and_si512(row, _mm512_set1_epi32(-65536)));                                                \
    EACH
STEP(dot_f32bf16, BASE512, I, ZI, FLOATS(BHALVES(DOT_EACH)))
STEP(l2_bf16, BASE512, I, ZI, FLOATS(BHALVES(L2_EACH)))
#define QUARTERS(WIDEN, EACH)                                                                                \
    F r = ZF;                                                                                                \
    _Pragma("GCC unroll 4") for (int part = 0; part < 4; part++) {                                           \
        HIDE(row);                                                                                           \
        r = _mm512_cvtepi32_ps(WIDEN(_mm512_castsi512_si128(row)));                                          \
        EACH;                                                                                                \
    }
STEP(dot_f32i8, BASE512, I, ZI, FLOATS(QUARTERS(_mm512_cvtepi8_epi32, DOT_EACH)))
STEP(l2_f32i8, BASE512, I, ZI, FLOATS(QUARTERS(_mm512_cvtepi8_epi32, L2_EACH)))

#define VNNI BASE512 ",avx512vnni"
STEP(dot_i8, VNNI, I, ZI,
     sum = _mm512_dpbusd_epi32(sum, _mm512_xor_si512(row, _mm512_set1_epi8(-128)), query))
#define LOW4 _mm512_set1_epi8(15)
STEP(dot_u4, VNNI, I, ZI, sum = _mm512_dpbusd_epi32(sum, _mm512_and_si512(row, LOW4), query);
     sum = _mm512_dpbusd_epi32(sum, _mm512_and_si512(_mm512_srli_epi16(row, 4), LOW4), query))
STEP(l2_u4, VNNI, I, ZI, I d = _mm512_abs_epi8(_mm512_sub_epi8(_mm512_and_si512(row, LOW4), query));
     sum = _mm512_dpbusd_epi32(sum, d, d);
     d = _mm512_abs_epi8(_mm512_sub_epi8(_mm512_and_si512(_mm512_srli_epi16(row, 4), LOW4), query));
     sum = _mm512_dpbusd_epi32(sum, d, d))
STEP(linf_i8, BASE512, I, ZI,
     sum = _mm512_max_epu8(sum, _mm512_sub_epi8(_mm512_max_epi8(row, query), _mm512_min_epi8(row, query))))
STEP(l1_i8, BASE512, I, ZI,
     sum = _mm512_add_epi64(sum, _mm512_sad_epu8(_mm512_xor_si512(row, _mm512_set1_epi8(-128)), query)))

#define COUNTS BASE512 ",avx512vpopcntdq"
STEP(hamming_bits, COUNTS, I, ZI,
     sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(_mm512_xor_si512(row, query))))
STEP(jaccard_bits, COUNTS, I, ZI,
     sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(_mm512_and_si512(row, query)));
     sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(_mm512_or_si512(row, query))))
STEP(
    dot_u4bits, COUNTS, I, ZI, _Pragma("GCC unroll 4") for (int plane = 0; plane < 4; plane++) {
        HIDE(row);
        sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(_mm512_and_si512(row, query)));
    })
STEP(scan_pq4, BASE512, I, ZI, const I low = _mm512_shuffle_epi8(query, _mm512_and_si512(row, LOW4));
     const I high = _mm512_shuffle_epi8(query, _mm512_and_si512(_mm512_srli_epi16(row, 4), LOW4));
     sum = _mm512_add_epi16(sum, low); sum = _mm512_add_epi16(sum, _mm512_srli_epi16(low, 8));
     sum = _mm512_add_epi16(sum, high); sum = _mm512_add_epi16(sum, _mm512_srli_epi16(high, 8)))
#ifndef LW_WITHOUT_AVX512BF16
STEP(cosine_bf16, BASE512 ",avx512bf16", I, ZI,
     F s = _mm512_dpbf16_ps(PS(sum), (__m512bh)query, (__m512bh)row);
     s = _mm512_dpbf16_ps(s, (__m512bh)row, (__m512bh)row); sum = _mm512_castps_si512(s))
STEP(dot_bf16, BASE512 ",avx512bf16", I, ZI, F s = _mm512_dpbf16_ps(PS(sum), (__m512bh)query, (__m512bh)row);
     sum = _mm512_castps_si512(s))
#endif

#ifndef LW_WITHOUT_AMX
/* AMX: one instruction brings 16 lines of queries and 16 lines of rows together, 256 pairs of lines. */
#define TILES(name, feature, INSTRUCTION)                                                                    \
    TARGET("amx-tile," feature)                                                                              \
    static void name(const char *q, const char *base, size_t stride, size_t count, size_t bytes,             \
                     void *out) {                                                                            \
        (void)q, (void)base, (void)stride, (void)out;                                                        \
        struct {                                                                                             \
            uint8_t palette, start, zero[14];                                                                \
            uint16_t row_bytes[16];                                                                          \
            uint8_t rows[16];                                                                                \
        } config = {.palette = 1};                                                                           \
        for (int i = 0; i < 8; i++) config.row_bytes[i] = LINE, config.rows[i] = 16;                         \
        /* GCC believes that only 8 of the bytes are read. */                                                \
        __asm__ volatile("" ::"r"(&config) : "memory");                                                      \
        _tile_loadconfig(&config);                                                                           \
        for (size_t done = 0; done < count * bytes; done += 4 * 256 * LINE) {                                \
            INSTRUCTION(0, 4, 6);                                                                            \
            INSTRUCTION(1, 4, 7);                                                                            \
            INSTRUCTION(2, 5, 6);                                                                            \
            INSTRUCTION(3, 5, 7);                                                                            \
        }                                                                                                    \
        _tile_release();                                                                                     \
    }
TILES(tile_i8, "amx-int8", _tile_dpbssd)
TILES(tile_u8, "amx-int8", _tile_dpbuud)
TILES(tile_bf16, "amx-bf16", _tile_dpbf16ps)
#endif

/* AVX2: a line is two registers. */
STEP(dot_f32_avx2, "avx2,fma", __m256, _mm256_setzero_ps(), sum = _mm256_fmadd_ps(query, row, sum); HIDE(row);
     sum = _mm256_fmadd_ps(query, row, sum))
STEP(l2_f32_avx2, "avx2,fma", __m256, _mm256_setzero_ps(), __m256 d = _mm256_sub_ps(query, row);
     sum = _mm256_fmadd_ps(d, d, sum); HIDE(row); d = _mm256_sub_ps(query, row);
     sum = _mm256_fmadd_ps(d, d, sum))
#define WIDE_PRODUCT                                                                                         \
    HIDE(row);                                                                                               \
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(query, _mm256_cvtepi8_epi16(_mm256_castsi256_si128(row))))
STEP(dot_i8_avx2, "avx2", __m256i, _mm256_setzero_si256(), WIDE_PRODUCT; WIDE_PRODUCT; WIDE_PRODUCT;
     WIDE_PRODUCT)

#define NEED512 (LW_AVX512F | LW_AVX512BW | LW_AVX512VL)
#define NEEDVNNI (NEED512 | LW_AVX512VNNI)
#define NEEDCOUNTS (NEED512 | LW_AVX512VPOPCNTDQ)
static const struct lw_limit_step steps[] = {
    {"dot", "f32", "avx2", LW_AVX2 | LW_FMA, "2 fma", dot_f32_avx2},
    {"l2", "f32", "avx2", LW_AVX2 | LW_FMA, "2 (sub, fma)", l2_f32_avx2},
    {"dot", "i8", "avx2", LW_AVX2, "4 (pmovsxbw, pmaddwd, paddd)", dot_i8_avx2},
    {"dot", "f32", "avx512", NEED512, "fma", dot_f32},
    {"cosine", "f32", "avx512", NEED512, "2 fma", cosine_f32},
    {"cosine", "f16", "avx512", NEED512, "2 (cvtph2ps, 2 fma)", cosine_f16},
    {"l2", "f32", "avx512", NEED512, "sub, fma", l2_f32},
    {"l1", "f32", "avx512", NEED512, "sub, and, add", l1_f32},
    {"linf", "f32", "avx512", NEED512, "sub, and, max", linf_f32},
    {"dot", "f16", "avx512", NEED512, "2 (cvtph2ps, fma)", dot_f16},
    {"l2", "f16", "avx512", NEED512, "2 (cvtph2ps, sub, fma)", l2_f16},
    {"dot", "f32f16", "avx512", NEED512, "2 (cvtph2ps, fma)", dot_f16},
    {"l2", "f32f16", "avx512", NEED512, "2 (cvtph2ps, sub, fma)", l2_f16},
    {"l2", "bf16", "avx512", NEED512, "2 (shift or and, sub, fma)", l2_bf16},
    {"dot", "f32bf16", "avx512", NEED512, "2 (shift or and, fma)", dot_f32bf16},
    {"l2", "f32bf16", "avx512", NEED512, "2 (shift or and, sub, fma)", l2_bf16},
    {"dot", "f32i8", "avx512", NEED512, "4 (pmovsxbd, cvtdq2ps, fma)", dot_f32i8},
    {"l2", "f32i8", "avx512", NEED512, "4 (pmovsxbd, cvtdq2ps, sub, fma)", l2_f32i8},
    {"dot", "f32u8", "avx512", NEED512, "4 (pmovsxbd, cvtdq2ps, fma)", dot_f32i8},
    {"l2", "f32u8", "avx512", NEED512, "4 (pmovsxbd, cvtdq2ps, sub, fma)", l2_f32i8},
    {"linf", "i8", "avx512", NEED512, "max, min, sub, max", linf_i8},
    {"l1", "i8", "avx512", NEED512, "xor, psadbw, add", l1_i8},
    {"scan", "pq4", "avx512", NEED512, "3 and or shift, 2 pshufb, 4 add, 2 shift", scan_pq4},
    {"dot", "i8", "avx512vnni", NEEDVNNI, "xor, dpbusd", dot_i8},
    {"dot", "u8", "avx512vnni", NEEDVNNI, "xor, dpbusd", dot_i8},
    /* From stored norms; without them more. */
    {"l2", "i8", "avx512vnni", NEEDVNNI, "xor, dpbusd", dot_i8},
    {"l2", "u8", "avx512vnni", NEEDVNNI, "xor, dpbusd", dot_i8},
    {"l2", "u4", "avx512vnni", NEEDVNNI, "3 and or shift, 2 (sub, abs, dpbusd)", l2_u4},
    {"l2", "i4", "avx512vnni", NEEDVNNI, "3 and or shift, 2 (sub, abs, dpbusd)", l2_u4},
    {"l2", "u8u4", "avx512vnni", NEEDVNNI, "3 and or shift, 2 (sub, abs, dpbusd)", l2_u4},
    {"dot", "u4", "avx512vnni", NEEDVNNI, "3 and or shift, 2 dpbusd", dot_u4},
    {"dot", "i4", "avx512vnni", NEEDVNNI, "3 and or shift, 2 dpbusd", dot_u4},
    {"dot", "i8u4", "avx512vnni", NEEDVNNI, "3 and or shift, 2 dpbusd", dot_u4},
    {"hamming", "bits", "avx512vpopcntdq", NEEDCOUNTS, "xor, vpopcntq, add", hamming_bits},
    {"jaccard", "bits", "avx512vpopcntdq", NEEDCOUNTS, "and, or, 2 (vpopcntq, add)", jaccard_bits},
    {"dot", "u4bits", "avx512vpopcntdq", NEEDCOUNTS, "4 (and, vpopcntq, add)", dot_u4bits},
#ifndef LW_WITHOUT_AVX512BF16
    {"cosine", "bf16", "avx512bf16", NEED512 | LW_AVX512BF16, "2 dpbf16ps", cosine_bf16},
    {"dot", "bf16", "avx512bf16", NEED512 | LW_AVX512BF16, "dpbf16ps", dot_bf16},
#endif
#ifndef LW_WITHOUT_AMX
    {"dot", "i8", "amx", LW_AMX_TILE | LW_AMX_INT8, "1/256 tdpbssd", tile_i8},
    {"dot", "u8", "amx", LW_AMX_TILE | LW_AMX_INT8, "1/256 tdpbuud", tile_u8},
    {"dot", "bf16", "amx", LW_AMX_TILE | LW_AMX_BF16, "1/256 tdpbf16ps", tile_bf16},
#endif
};

#elif defined(__aarch64__)
#define TARGET(t) __attribute__((target(t)))
#define HIDE(v) __asm__ volatile("" : "+w"(v))
#define F float32x4_t
#define ZF vdupq_n_f32(0)
/* A line is four registers. */
#define FOUR(EACH)                                                                                           \
    EACH;                                                                                                    \
    HIDE(row);                                                                                               \
    EACH;                                                                                                    \
    HIDE(row);                                                                                               \
    EACH;                                                                                                    \
    HIDE(row);                                                                                               \
    EACH
STEP(dot_f32, "arch=armv8-a", F, ZF, FOUR(sum = vfmaq_f32(sum, query, row)))
STEP(l2_f32, "arch=armv8-a", F, ZF, F d = ZF; FOUR((d = vsubq_f32(query, row), sum = vfmaq_f32(sum, d, d))))
STEP(dot_i8, "arch=armv8.2-a+dotprod", int32x4_t, vdupq_n_s32(0),
     FOUR(sum = vdotq_s32(sum, vreinterpretq_s8_s32(query), vreinterpretq_s8_s32(row))))
STEP(hamming_bits, "arch=armv8-a", uint8x16_t, vdupq_n_u8(0),
     FOUR(sum = vaddq_u8(sum, vcntq_u8(veorq_u8(query, row)))))

static const struct lw_limit_step steps[] = {
    {"dot", "f32", "neon", LW_NEON, "4 fmla", dot_f32},
    {"l2", "f32", "neon", LW_NEON, "4 (fsub, fmla)", l2_f32},
    {"hamming", "bits", "neon", LW_NEON, "4 (eor, cnt, add)", hamming_bits},
    {"dot", "i8", "dotprod", LW_NEON | LW_DOTPROD, "4 sdot", dot_i8},
};
#else
static const struct lw_limit_step steps[] = {{0}};
#endif

const struct lw_limit_step *lw_limit_steps(size_t *count) {
    *count = steps[0].op ? sizeof steps / sizeof *steps : 0;
    return steps;
}
