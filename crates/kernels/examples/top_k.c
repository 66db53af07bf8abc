/* The nearest of 10,000 vectors to a query, by squared L2 distance: `make -C crates/kernels example` builds it with the
 * flags of pkg-config alone. Row 4242 is a copy of the query, slightly moved, so it has to come first. */
#include <lanewise/kernels.h>

#include <stdio.h>

enum { DIMENSIONS = 384, ROWS = 10000, BLOCK = 128, K = 5, PLANTED = 4242 };

struct hit {
    float distance;
    size_t row;
};

/* Between -1 and 1, from a seed that every run shares. */
static float next(uint32_t *seed) {
    *seed = *seed * 1664525 + 1013904223;
    return (float)(*seed >> 8) / (1 << 23) - 1;
}

/* Keeps the K smallest, ascending. Returns how many there are now. */
static size_t keep(struct hit *best, size_t kept, struct hit new) {
    if (kept == K && new.distance >= best[K - 1].distance) return kept;
    size_t at = kept < K ? kept : K - 1;
    for (; at && best[at - 1].distance > new.distance; at--) best[at] = best[at - 1];
    best[at] = new;
    return kept < K ? kept + 1 : K;
}

int main(void) {
    const struct lw_choice *choice = lw_chosen();
    if (choice->status != LW_CHOSEN) {
        fprintf(stderr, "LANEWISE_ISA %s. Levels:",
                choice->status == LW_UNKNOWN_LEVEL ? "names no level"
                                                   : "names a level that this CPU has not");
        for (size_t i = 0; lw_level(i, NULL); i++) fprintf(stderr, " %s", lw_level(i, NULL));
        fputc('\n', stderr);
        return 2;
    }
    printf("l2 of f32 runs as %s\n", choice->slot[LW_l2_f32]->isa);

    static float rows[ROWS][DIMENSIONS], query[DIMENSIONS];
    uint32_t seed = 1;
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < DIMENSIONS; j++) rows[i][j] = next(&seed);
    for (size_t j = 0; j < DIMENSIONS; j++) query[j] = rows[PLANTED][j] + next(&seed) / 100;

    struct hit best[K];
    size_t kept = 0;
    for (size_t from = 0; from < ROWS; from += BLOCK) {
        const size_t count = ROWS - from < BLOCK ? ROWS - from : BLOCK;
        float distances[BLOCK];
        lw_l2_f32_rows(query, rows[from], sizeof rows[0], count, DIMENSIONS, distances);
        for (size_t i = 0; i < count; i++)
            kept = keep(best, kept, (struct hit){.distance = distances[i], .row = from + i});
    }
    for (size_t i = 0; i < kept; i++) printf("row %zu at %.3f\n", best[i].row, best[i].distance);
    return best[0].row != PLANTED;
}
