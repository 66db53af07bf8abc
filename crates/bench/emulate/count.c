// A plugin for qemu-aarch64 (QEMU 6 to 8.1, plugin interface 1) that counts the instructions that a program ran: all of
// them, exclusive loads and stores, and LSE atomics. It prints the three numbers to standard error when the program ends.
//
//     cc -shared -fPIC -O2 -o count.so count.c && qemu-aarch64 -plugin ./count.so PROGRAM

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// The part of QEMU's interface that is used; Debian does not package its header.
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void each_time(unsigned vcpu, void *what);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t i);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *instruction);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *instruction, each_time *call, int flags,
                                            void *what);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
                                           void (*call)(uint64_t id, struct qemu_plugin_tb *block));
void qemu_plugin_register_atexit_cb(uint64_t id, void (*call)(uint64_t id, void *what), void *what);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;

enum { OTHER, EXCLUSIVE, LSE, KINDS };
// QEMU numbers the threads; each counts by itself, on lines of its own.
enum { THREADS = 2048 };
static struct {
    _Alignas(128) uint64_t of[KINDS];
} counts[THREADS];

// Arm Architecture Reference Manual, "Loads and Stores": exclusive (LDXR, STLXR, …), compare and swap, atomic memory
// operations (LDADD, SWP, …) but for LDAPR, a plain load that is encoded among them.
static uintptr_t kind(uint32_t word) {
    if ((word & 0x3fa00000) == 0x08000000) {
        return EXCLUSIVE;
    }
    int compare = (word & 0x3fa07c00) == 0x08a07c00;
    int memory = (word & 0x3f200c00) == 0x38200000 && (word & 0x3ffffc00) != 0x38bfc000;
    return compare || memory ? LSE : OTHER;
}

static void count(unsigned vcpu, void *what) { counts[vcpu % THREADS].of[(uintptr_t)what]++; }

static void translated(uint64_t id, struct qemu_plugin_tb *block) {
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
        uint32_t word;
        memcpy(&word, qemu_plugin_insn_data(instruction), sizeof word);
        qemu_plugin_register_vcpu_insn_exec_cb(instruction, count, 0, (void *)kind(word));
    }
}

static void ended(uint64_t id, void *what) {
    (void)id;
    (void)what;
    uint64_t sum[KINDS] = {0};
    for (size_t thread = 0; thread < THREADS; thread++) {
        for (size_t i = 0; i < KINDS; i++) {
            sum[i] += counts[thread].of[i];
        }
    }
    fprintf(stderr, "instructions %llu exclusive %llu lse %llu\n",
            (unsigned long long)(sum[OTHER] + sum[EXCLUSIVE] + sum[LSE]), (unsigned long long)sum[EXCLUSIVE],
            (unsigned long long)sum[LSE]);
}

EXPORT int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv) {
    (void)info;
    (void)argc;
    (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
