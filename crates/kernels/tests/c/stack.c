/* On a thread whose stack is too small, a kernel hits the guard page: it does not step over it into what lies below,
 * as a frame larger than a page does unless the compiler probes it (-fstack-clash-protection). Each kernel runs in a
 * process of its own, once with room and then with none. Exits with 1 if anything below a guard page was written. */
#define _GNU_SOURCE
#include <lanewise/kernels.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "list.h"

enum { N = 200, ROWS = 40, QUERIES = 9, BELOW = 256 << 10, SMALL = 24 << 10, GUARD = 64 << 10 };

static _Alignas(64) char queries[QUERIES * N * 4 * 4], rows[ROWS * N * 4], out[QUERIES * ROWS * 4];
static int kernel;

static void *call(void *unused) {
    (void)unused;
    switch (kernel) {
#define X(op, type, query, row, result, per, bound)                                                          \
    case LW_##op##_##type:                                                                                   \
        lw_##op##_##type##_tile((const query *)queries, N *per * sizeof(query), QUERIES, (const row *)rows,  \
                                N * sizeof(row), ROWS, N, (result *)out, ROWS);                              \
        lw_##op##_##type##_rows((const query *)queries, (const row *)rows, N * sizeof(row), ROWS, N,         \
                                (result *)out);                                                              \
        break;
        LW_KERNELS(X)
#undef X
    }
    return NULL;
}

static int child(void) {
    const int kind = MAP_PRIVATE | MAP_ANONYMOUS;
    char *memory = mmap(NULL, BELOW + GUARD + SMALL, PROT_READ | PROT_WRITE, kind, -1, 0);
    if (memory == MAP_FAILED) return 2;
    memset(memory, 0x5a, BELOW);
    /* As threads have: a page, on Arm 64 KiB, which is what compilers count on there. */
#ifdef __aarch64__
    const long guard = GUARD;
#else
    const long guard = sysconf(_SC_PAGESIZE);
#endif
    char *stack = memory + BELOW + guard;
    if (guard > GUARD || mprotect(memory + BELOW, (size_t)guard, PROT_NONE)) return 2;
    call(NULL); /* what is loaded or asked for once needs more room */
    pthread_attr_t attributes;
    pthread_t thread;
    if (pthread_attr_init(&attributes) || pthread_attr_setstack(&attributes, stack, SMALL) ||
        pthread_create(&thread, &attributes, call, NULL) || pthread_join(thread, NULL))
        return 2;
    for (size_t i = 0; i < BELOW; i++)
        if (memory[i] != 0x5a) return 1;
    return 0;
}

int main(void) {
    int failed = 0, ended = 0;
    for (kernel = 0; kernel < LW_KERNEL_COUNT; kernel++) {
        const pid_t pid = fork();
        if (pid < 0) return 2;
        if (pid == 0) _exit(child());
        int status;
        if (waitpid(pid, &status, 0) != pid) return 2;
        ended += WIFSIGNALED(status);
        if (WIFSIGNALED(status) || !WEXITSTATUS(status)) continue;
        failed = 1;
        const struct lw_variant *variant = lw_chosen()->slot[kernel];
        fprintf(stderr, "%s_%s_%s %s\n", variant->op, variant->type, variant->isa,
                WEXITSTATUS(status) == 1 ? "wrote below its stack's guard page" : "did not run");
    }
    printf("%d of %d kernels wanted more than %d KiB of stack and met the guard page\n", ended,
           LW_KERNEL_COUNT, SMALL >> 10);
    return failed;
}
