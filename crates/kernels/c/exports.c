/* The kernels by name: lw_dot_f32, lw_dot_f32_rows … for each line of the lists. Whoever calls one gets the best variant.
 *
 * A *jump* goes through a pointer that its first call replaces by the address of what lw_chosen chose: that needs
 * nothing of the loader, and serves musl, macOS, Windows, and any build with -DLW_WITHOUT_IFUNC. With glibc the name is
 * an indirect function instead: the loader asks its resolver once and binds every caller to the variant itself.
 *
 * A resolver may run before libc, sanitizers and thread-local storage are ready, so it calls nothing outside of this
 * library, by no PLT, and carries no instrumentation (LW_BARE). It cannot call getenv, but LANEWISE_ISA holds for these
 * names too: where the environment shows that nobody has set it, the answer is the CPU's best; where somebody has, or
 * libc has not got its environment yet (a program linked with -z now), the answer is the jump, which asks at its first
 * call. So it is where a program binds to a library that the loader has not relocated yet (it was preloaded, or whoever
 * calls does not name it among what it needs): neither the environment nor the table can be reached then. */
#include "lanewise_kernels.h"

#include <stdatomic.h>

#if defined(__ELF__) && defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__)) &&               \
    !defined(LW_WITHOUT_IFUNC)
#define IFUNC 1
#endif

#ifdef IFUNC
extern char **environ;

LW_BARE static int may_be_forced(void) {
    static const char name[] = "LANEWISE_ISA=";
    /* The loader writes this address as it does all others here; the code knows it without. */
    static const char *const volatile relocated = name;
    if (relocated != name) return 1;
    __asm__ volatile("" ::: "memory"); /* Clang reads environ before otherwise. */
    if (!environ) return 1;
    for (char **entry = environ; *entry; entry++) {
        size_t i = 0;
        while (name[i] && (*entry)[i] == name[i]) i++;
        if (!name[i]) return 1;
    }
    return 0;
}

/* The best variant, or NULL if that is for the first call to find out. */
#ifdef __x86_64__
#define ASKED void
#define BEST(kernel) best(kernel)
LW_BARE static const struct lw_variant *best(uint32_t kernel) {
    return may_be_forced() ? NULL : lw_best(kernel, lw_detect(0, 0));
}
#else
/* Arm's ABI: what glibc hands to a resolver, since its version 2.30, which it marks by this bit. */
struct words {
    unsigned long bytes, hwcap, hwcap2;
};
#define ASKED unsigned long hwcap, const struct words *words
#define BEST(kernel) best(kernel, hwcap, words)
LW_BARE static const struct lw_variant *best(uint32_t kernel, unsigned long hwcap,
                                             const struct words *words) {
    const unsigned long has_words = 1ul << 62;
    if (!(hwcap & has_words) || may_be_forced()) return NULL;
    return lw_best(kernel, lw_detect(words->hwcap, words->hwcap2));
}
#endif

#define JUMP(name, result, parameters) static result name##_jump parameters
#define BIND(name, kernel, form, fn, result, parameters)                                                     \
    LW_BARE static fn name##_resolve(ASKED) {                                                                \
        const struct lw_variant *variant = BEST(kernel);                                                     \
        return variant ? (fn)variant->form : name##_jump;                                                    \
    }                                                                                                        \
    LW_API result name parameters __attribute__((ifunc(#name "_resolve")));
#else
#define JUMP(name, result, parameters) LW_API result name parameters
#define BIND(name, kernel, form, fn, result, parameters)
#endif

/* Relaxed: the address stands alone, and every thread that races here stores the same. */
#define NAME(name, kernel, form, fn, result, parameters, arguments)                                          \
    static result name##_first parameters;                                                                   \
    static _Atomic(fn) name##_chosen = name##_first;                                                         \
    static result name##_first parameters {                                                                  \
        const fn chosen = (fn)lw_chosen()->slot[kernel]->form;                                               \
        atomic_store_explicit(&name##_chosen, chosen, memory_order_relaxed);                                 \
        return chosen arguments;                                                                             \
    }                                                                                                        \
    JUMP(name, result, parameters) {                                                                         \
        return atomic_load_explicit(&name##_chosen, memory_order_relaxed) arguments;                         \
    }                                                                                                        \
    BIND(name, kernel, form, fn, result, parameters)

#define X(op, type, query, row, result, per, bound)                                                          \
    NAME(lw_##op##_##type, LW_##op##_##type, one, lw_##op##_##type##_one_fn, result,                         \
         (const query *a, const row *b, size_t n), (a, b, n))                                                \
    NAME(lw_##op##_##type##_rows, LW_##op##_##type, rows, lw_##op##_##type##_rows_fn, void,                  \
         (const query *q, const row *base, size_t stride, size_t count, size_t n, result *out),              \
         (q, base, stride, count, n, out))                                                                   \
    NAME(lw_##op##_##type##_ids, LW_##op##_##type, ids, lw_##op##_##type##_ids_fn, void,                     \
         (const query *q, const row *base, size_t stride, const uint32_t *ids, size_t count, size_t n,       \
          result *out),                                                                                      \
         (q, base, stride, ids, count, n, out))                                                              \
    NAME(lw_##op##_##type##_tile, LW_##op##_##type, tile, lw_##op##_##type##_tile_fn, void,                  \
         (const query *q, size_t q_stride, size_t queries, const row *base, size_t stride, size_t count,     \
          size_t n, result *out, size_t out_stride),                                                         \
         (q, q_stride, queries, base, stride, count, n, out, out_stride))
LW_KERNELS(X)
#undef X

#define X(op, type, bound)                                                                                   \
    NAME(lw_##op##_##type, LW_##op##_##type, rows, lw_scan_fn, void,                                         \
         (const uint8_t *tables, const uint8_t *codes, size_t blocks, size_t m, uint16_t *out),              \
         (tables, codes, blocks, m, out))
LW_SCANS(X)
