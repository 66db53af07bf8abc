/* The words of nibbles.h for x86, MAC apart, which has instructions of its own under VNNI. */
#define BYTES INTS
#define BYTES_LANES INT_BYTES
#define BYTES_LOAD(p) I_LOAD(p)
#define BYTES_TAIL(p, k) I_TAIL(p, k)
#define LOW(v) I_AND(v, P(set1_epi8)(0x0f))
#define HIGH(v) I_AND(P(srli_epi16)(v, 4), P(set1_epi8)(0x0f))
#define FLIP(v) I_XOR(v, P(set1_epi8)((char)0x88))
#define LESS8(v) P(sub_epi8)(v, P(set1_epi8)(8))
#define APART(x, y) P(abs_epi8)(P(sub_epi8)(x, y))
#define EIGHTS P(set1_epi8)(8)
#include "nibbles.h"
