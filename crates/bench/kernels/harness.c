/* The clock of the kernel benchmark: calls a kernel over a job's rows and says how long it took. Whoever's kernel it
 * is, it is called through a pointer from a loop of this file; the loops differ only in how a library takes its
 * arguments. Nothing here names a library's function: the driver looks them up and fills the job (native.py). */
#include "lanewise_kernels.h"

#include <time.h>

/* How `fn` is called. Conventions of one pair are looped over the queries, and over the rows in order or by id. */
enum shape {
    PAIR_I32,   /* int32_t fn(a, b, n) */
    PAIR_F32,   /* float fn(a, b, n) */
    PAIR_OUT,   /* void fn(a, b, n, out); 8 bytes of out may be written */
    PAIR_SELF,  /* float fn(self, row number): a C++ distance computer that keeps query and rows */
    ROWS,       /* Lanewise: fn(q, base, stride, count, n, out) */
    IDS,        /* Lanewise: fn(q, base, stride, ids, count, n, out), per_call ids a call */
    TILE,       /* Lanewise: fn(q, q_stride, queries, base, stride, count, n, out, out_stride) */
    SCAN,       /* Lanewise: fn(tables, codes, blocks, m, out); base holds count blocks */
    PAIR_NORMS, /* PAIR_I32, ROWS and IDS of an inner product, then squared L2 from stored norms */
    ROWS_NORMS,
    IDS_NORMS,
    FAISS_NY,       /* fn(out, q, base, n, count), rows dense */
    FAISS_BY_IDX,   /* fn(out, q, base, ids64, n, queries, count), rows dense */
    FAISS_HAMMINGS, /* fn(q, base, queries, count, bytes, out), rows dense */
    NUMKONG_PACKED, /* fn(q, packed rows, out, queries, count, n, q_stride, out_stride in bytes) */
    SGEMM,          /* BLAS: out = q base', rows dense */
};

struct job {
    uint32_t shape, result_bytes; /* result_bytes: between the results of PAIR_OUT */
    void (*fn)(void);
    void *self;
    const char *q;
    size_t q_stride, queries;
    const char *base;
    size_t stride, count, n; /* n as the kernel counts it; SCAN: sub-quantizers */
    const uint32_t *ids;     /* count of them, or NULL */
    const int64_t *ids64;    /* the same */
    size_t per_call;
    const int32_t *norms; /* by row number */
    int32_t query_norm;
    char *out;
};

typedef int32_t pair_i32(const void *, const void *, size_t);
typedef float pair_f32(const void *, const void *, size_t);
typedef void pair_out(const void *, const void *, size_t, void *);
typedef float pair_self(void *, int64_t);
typedef void rows_fn(const void *, const void *, size_t, size_t, size_t, void *);
typedef void ids_fn(const void *, const void *, size_t, const uint32_t *, size_t, size_t, void *);
typedef void tile_fn(const void *, size_t, size_t, const void *, size_t, size_t, size_t, void *, size_t);
typedef void scan_fn(const void *, const void *, size_t, size_t, void *);
typedef void ny_fn(void *, const void *, const void *, size_t, size_t);
typedef void by_idx_fn(void *, const void *, const void *, const int64_t *, size_t, size_t, size_t);
typedef void hammings_fn(const void *, const void *, size_t, size_t, size_t, void *);
typedef void packed_fn(const void *, const void *, void *, size_t, size_t, size_t, size_t, size_t);
typedef void sgemm_fn(const char *, const char *, const int *, const int *, const int *, const float *,
                      const float *, const int *, const float *, const int *, const float *, float *,
                      const int *);

#define EACH_PAIR(CALL)                                                                                      \
    for (size_t i = 0; i < j->queries; i++)                                                                  \
        for (size_t k = 0; k < j->count; k++) {                                                              \
            const char *q = j->q + i * j->q_stride;                                                          \
            const size_t number = j->ids ? j->ids[k] : k, at = i * j->count + k;                             \
            const char *row = j->base + number * j->stride;                                                  \
            (void)q, (void)row;                                                                              \
            CALL;                                                                                            \
        }

#define EACH_CALL(FN)                                                                                        \
    for (size_t k = 0; k < j->count; k += j->per_call) {                                                     \
        const size_t some = j->count - k < j->per_call ? j->count - k : j->per_call;                         \
        ((ids_fn *)j->fn)(j->q, j->base, j->stride, j->ids + k, some, j->n, words + k);                      \
        FN;                                                                                                  \
    }

static void pass(const struct job *j) {
    float *const floats = (float *)j->out;
    int32_t *const words = (int32_t *)j->out;
    switch ((enum shape)j->shape) {
    case PAIR_I32:
        EACH_PAIR(words[at] = ((pair_i32 *)j->fn)(q, row, j->n)) break;
    case PAIR_F32:
        EACH_PAIR(floats[at] = ((pair_f32 *)j->fn)(q, row, j->n)) break;
    case PAIR_OUT:
        EACH_PAIR(((pair_out *)j->fn)(q, row, j->n, j->out + at * j->result_bytes)) break;
    case PAIR_SELF:
        EACH_PAIR(floats[at] = ((pair_self *)j->fn)(j->self, (int64_t)number)) break;
    case ROWS:
        ((rows_fn *)j->fn)(j->q, j->base, j->stride, j->count, j->n, j->out);
        break;
    case IDS:
        EACH_CALL() break;
    case TILE:
        ((tile_fn *)j->fn)(j->q, j->q_stride, j->queries, j->base, j->stride, j->count, j->n, j->out,
                           j->count);
        break;
    case SCAN:
        ((scan_fn *)j->fn)(j->q, j->base, j->count, j->n, j->out);
        break;
    case PAIR_NORMS:
        EACH_PAIR(words[at] = j->query_norm + j->norms[number] - 2 * ((pair_i32 *)j->fn)(q, row, j->n))
        break;
    case ROWS_NORMS:
        ((rows_fn *)j->fn)(j->q, j->base, j->stride, j->count, j->n, j->out);
        lw_l2_from_dots(j->query_norm, j->norms, NULL, j->count, words);
        break;
    case IDS_NORMS:
        EACH_CALL(lw_l2_from_dots(j->query_norm, j->norms, j->ids + k, some, words + k)) break;
    case FAISS_NY:
        ((ny_fn *)j->fn)(j->out, j->q, j->base, j->n, j->count);
        break;
    case FAISS_BY_IDX:
        ((by_idx_fn *)j->fn)(j->out, j->q, j->base, j->ids64, j->n, 1, j->count);
        break;
    case FAISS_HAMMINGS:
        ((hammings_fn *)j->fn)(j->q, j->base, j->queries, j->count, j->n, j->out);
        break;
    case NUMKONG_PACKED:
        ((packed_fn *)j->fn)(j->q, j->base, j->out, j->queries, j->count, j->n, j->q_stride,
                             j->count * j->result_bytes);
        break;
    case SGEMM: {
        const int m = (int)j->count, n = (int)j->queries, k = (int)j->n;
        const float one = 1, zero = 0;
        ((sgemm_fn *)j->fn)("T", "N", &m, &n, &k, &one, (const float *)j->base, &k, (const float *)j->q, &k,
                            &zero, floats, &m);
        break;
    }
    }
}

/* Nanoseconds of this thread's processor time that `passes` passes over the job took: on a shared machine, what others
 * run in between does not count. */
double bench_time(const struct job *j, size_t passes) {
    struct timespec start, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    for (size_t i = 0; i < passes; i++) {
        pass(j);
        __asm__ volatile("" ::: "memory");
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return (double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec);
}

/* The feature that no CPU has: variants that need it run where they are named. */
uint32_t bench_named(void) { return LW_NAMED; }
