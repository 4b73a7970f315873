/* tests/ops/attention_check.h -- Sequences of tokens go through kv_append and attention in
 * steps cut in many ways; every row must have the same bytes, and be near a reference in
 * double. Pages lie in a mixed order and hold NaN wherever no token has been written; so do
 * rings, which are written behind attention. */
#ifndef BURIN_TESTS_OPS_ATTENTION_CHECK_H
#define BURIN_TESTS_OPS_ATTENTION_CHECK_H

#include "tests/ops/prelude.h"

enum { PAGE = 64, MAX_CHECK_SEQUENCES = 8, MAX_CHECK_PAGES = 64 };

struct check_config {
    const char *name;
    int n_heads, n_kv_heads, d;
    bool kv_f32;
    enum { OUT_F32, OUT_BF16, OUT_Q8 } out;
    size_t page_bytes;   /* of two layers: this one is the second */
    size_t layer_offset; /* in a page */
    size_t scratch_bytes;
    int window;        /* 0: pages */
    bool spans;        /* some tokens of a sequence see each other */
    size_t slot_bytes; /* of two layers, too */
    team_run *append;  /* context: struct check_step */
    team_run *attend;
};

/* The arguments of both kernels. */
struct check_step {
    const struct check_config *config;
    void *y;
    const float *q, *k, *v;
    int q_stride, kv_stride, max_pages, n_tokens, n_sequences;
    uint8_t *pages, *ring, *scratch;
    int32_t *positions, *sequence_of, *sequence_begin, *page_table, *state_of, *spans;
};

struct check_world {
    const struct check_config *c;
    int n_sequences;
    int length[MAX_CHECK_SEQUENCES];
    int n_expected[MAX_CHECK_SEQUENCES]; /* rows that are compared */
    size_t row_bytes;                    /* of y */
    float *q[MAX_CHECK_SEQUENCES];       /* (length, n_heads * d) */
    float *k[MAX_CHECK_SEQUENCES];       /* (length, n_kv_heads * d) */
    float *v[MAX_CHECK_SEQUENCES];
    int *span[MAX_CHECK_SEQUENCES];  /* (length): one past the last position that is seen */
    uint8_t *y[MAX_CHECK_SEQUENCES]; /* rows of the first way of cutting */
    bool done;                       /* y is there */
};

static inline size_t check_row_bytes(const struct check_config *c)
{
    const int width = c->n_heads * c->d;
    return c->out == OUT_F32    ? (size_t)width * 4
           : c->out == OUT_BF16 ? (size_t)width * 2
                                : burin_q8_stride(width);
}

static inline void check_world_begin(
        struct check_world *w,
        const struct check_config *c,
        int n_sequences,
        const int *lengths)
{
    *w = (struct check_world){ .c = c,
                               .n_sequences = n_sequences,
                               .row_bytes = check_row_bytes(c) };
    for (int s = 0; s < n_sequences; s++) {
        const size_t n = (size_t)lengths[s], d = (size_t)c->d;
        w->length[s] = w->n_expected[s] = lengths[s];
        w->q[s] = obtain(n * d * (size_t)c->n_heads * sizeof(float));
        w->k[s] = obtain(n * d * (size_t)c->n_kv_heads * sizeof(float));
        w->v[s] = obtain(n * d * (size_t)c->n_kv_heads * sizeof(float));
        w->y[s] = obtain(n * w->row_bytes);
        w->span[s] = obtain(n * sizeof(int));
        for (int p = 0, in_span = 9; p < lengths[s]; p++) { /* of 30, 2 and 75 tokens */
            const int at = p % 131, size = at < 30 ? 30 : at < 32 ? 2 : 75;
            const int begin = at < 30 ? p - at : at < 32 ? p - (at - 30) : p - (at - 40);
            in_span =
                    c->spans && (at < 32 || (at >= 40 && at < 115)) ? begin + size : p + 1;
            w->span[s][p] = in_span < lengths[s] ? in_span : lengths[s];
        }
        random_fill(w->q[s], n * d * (size_t)c->n_heads, (uint64_t)(3 * s + 1));
        random_fill(w->k[s], n * d * (size_t)c->n_kv_heads, (uint64_t)(3 * s + 2));
        random_fill(w->v[s], n * d * (size_t)c->n_kv_heads, (uint64_t)(3 * s + 3));
        for (size_t i = 0; i < n * d * (size_t)c->n_heads; i++)
            w->q[s][i] *= 2.0f;
    }
}

static inline void check_world_end(struct check_world *w)
{
    for (int s = 0; s < w->n_sequences; s++) {
        free(w->q[s]);
        free(w->k[s]);
        free(w->v[s]);
        free(w->y[s]);
        free(w->span[s]);
    }
}

/* How sequences are cut into steps: every step takes up to chunk[s] tokens of each sequence
 * that has begun; sequence s begins at step start[s]. */
struct check_cut {
    int n_threads;
    int chunk[MAX_CHECK_SEQUENCES];
    int start[MAX_CHECK_SEQUENCES];
    bool reversed; /* the last sequence comes first in the batch */
};

/* Tokens of a sequence in this step. What sees each other is not cut. */
static inline int check_taken(
        const struct check_world *w, const struct check_cut *cut, int s, int at, int round)
{
    const int rest = w->length[s] - at;
    int n = round < cut->start[s] ? 0 : rest < cut->chunk[s] ? rest : cut->chunk[s];

    while (n > 0 && w->span[s][at + n - 1] > at + n)
        n++;
    return n;
}

static inline void check_run(struct check_world *w, const struct check_cut *cut)
{
    const struct check_config *c = w->c;
    const int q_width = c->n_heads * c->d, kv_width = c->n_kv_heads * c->d;
    const int q_stride = q_width + 2 * kv_width; /* as q | k | v of one linear */
    int n_pages = 0, longest = 0, total = 0, at[MAX_CHECK_SEQUENCES] = { 0 };

    for (int s = 0; s < w->n_sequences; s++) {
        const int pages = (w->length[s] + PAGE - 1) / PAGE;
        n_pages += pages;
        total += w->length[s];
        longest = pages > longest ? pages : longest;
    }
    const int max_pages = longest + 3;
    uint8_t *pages = obtain((size_t)n_pages * c->page_bytes);
    memset(pages, 0xff, (size_t)n_pages * c->page_bytes);
    uint8_t *ring = obtain((size_t)(w->n_sequences + 2) * c->slot_bytes);
    memset(ring, 0xff, (size_t)(w->n_sequences + 2) * c->slot_bytes);
    float *qkv = obtain((size_t)total * (size_t)q_stride * sizeof(float));
    uint8_t *y = obtain((size_t)total * w->row_bytes);
    const size_t scratch_bytes = (c->scratch_bytes + 63) / 64 * 64 + 64;
    uint8_t *scratch = obtain(scratch_bytes * (size_t)cut->n_threads);
    int32_t *ints =
            obtain((size_t)(3 * total + 96 + w->n_sequences * max_pages) * sizeof *ints);
    struct check_step step = {
        .config = c,
        .y = y,
        .q = qkv,
        .k = qkv + q_width,
        .v = qkv + q_width + kv_width,
        .q_stride = q_stride,
        .kv_stride = q_stride,
        .max_pages = max_pages,
        .pages = pages + c->layer_offset,
        .ring = ring + c->slot_bytes / 2,
        .scratch = scratch,
        .positions = ints,
        .sequence_of = ints + total,
        .spans = ints + 2 * total,
        .sequence_begin = ints + 3 * total,
        .state_of = ints + 3 * total + 64,
        .page_table = ints + 3 * total + 96,
    };

    for (int round = 0, left = total; left > 0; round++) {
        int32_t *table = step.page_table;
        step.n_tokens = step.n_sequences = 0;
        memset(scratch, 0xff, scratch_bytes * (size_t)cut->n_threads);
        for (int i = 0; i < w->n_sequences; i++) {
            const int s = cut->reversed ? w->n_sequences - 1 - i : i;
            const int n = check_taken(w, cut, s, at[s], round);
            if (n == 0)
                continue;
            step.sequence_begin[step.n_sequences] = step.n_tokens;
            for (int p = 0, first = 0; p < max_pages; p++) {
                for (int before = first = 0; before < s; before++)
                    first += (w->length[before] + PAGE - 1) / PAGE;
                const int mine = p < (w->length[s] + PAGE - 1) / PAGE;
                table[p] = mine ? n_pages - 1 - (first + p) : 1 << 30;
            }
            table += max_pages;
            for (int j = 0; j < n; j++, step.n_tokens++) {
                float *row = qkv + (size_t)step.n_tokens * (size_t)q_stride;
                const size_t from = (size_t)(at[s] + j);
                step.positions[step.n_tokens] = at[s] + j;
                step.spans[step.n_tokens] = w->span[s][at[s] + j];
                step.sequence_of[step.n_tokens] = step.n_sequences;
                memcpy(row, w->q[s] + from * (size_t)q_width, (size_t)q_width * 4);
                memcpy(row + q_width, w->k[s] + from * (size_t)kv_width,
                       (size_t)kv_width * 4);
                memcpy(row + q_width + kv_width, w->v[s] + from * (size_t)kv_width,
                       (size_t)kv_width * 4);
            }
            step.state_of[step.n_sequences++] = (s + 2) % (w->n_sequences + 2);
        }
        step.sequence_begin[step.n_sequences] = step.n_tokens;

        if (!c->window)
            on_team(cut->n_threads, c->append, &step);
        memset(y, 0, (size_t)step.n_tokens * w->row_bytes);
        on_team(cut->n_threads, c->attend, &step);
        if (c->window)
            on_team(cut->n_threads, c->append, &step);

        int row = 0;
        for (int i = 0; i < w->n_sequences; i++) {
            const int s = cut->reversed ? w->n_sequences - 1 - i : i;
            const int n = check_taken(w, cut, s, at[s], round);
            for (int j = 0; j < n; j++, row++) {
                uint8_t *kept = w->y[s] + (size_t)(at[s] + j) * w->row_bytes;
                const uint8_t *found = y + (size_t)row * w->row_bytes;
                if (!w->done)
                    memcpy(kept, found, w->row_bytes);
                else if (
                        at[s] + j < w->n_expected[s] &&
                        memcmp(kept, found, w->row_bytes) != 0) {
                    printf("%s: other bits at position %d of sequence %d, chunk %d, %d "
                           "threads\n",
                           c->name, at[s] + j, s, cut->chunk[s], cut->n_threads);
                    exit(1);
                }
            }
            at[s] += n;
            left -= n;
        }
    }
    w->done = true;
    free(pages);
    free(ring);
    free(qkv);
    free(y);
    free(scratch);
    free(ints);
}

/* From position `from` on, a sequence's keys and values are NaN, and nothing is expected of
 * its rows: those before must keep their bits. */
static inline void check_poison(struct check_world *w, int s, int from)
{
    const int width = w->c->n_kv_heads * w->c->d;

    for (int i = from * width; i < w->length[s] * width; i++)
        w->k[s][i] = w->v[s][i] = NAN;
    w->n_expected[s] = from;
    while (from > 0 && w->span[s][w->n_expected[s] - 1] > from)
        w->n_expected[s]--;
}

/* The largest |y - reference| over every `every`th row, in units of the values' deviation. */
static inline double check_error(const struct check_world *w, int every)
{
    const struct check_config *c = w->c;
    const int d = c->d, group = c->n_heads / c->n_kv_heads;
    const int q_width = c->n_heads * d, kv_width = c->n_kv_heads * d;
    double worst = 0.0;

    for (int s = 0; s < w->n_sequences; s++)
        for (int p = w->length[s] - 1; p >= 0; p -= every)
            for (int head = 0; head < c->n_heads; head++) {
                const float *q = w->q[s] + p * q_width + head * d;
                const int to = w->span[s][p];
                const int from = c->window && p + 1 > c->window ? p + 1 - c->window : 0;
                double *score = obtain((size_t)to * sizeof *score);
                double most = -INFINITY, sum = 0.0;
                for (int j = from; j < to; j++) {
                    const float *k = w->k[s] + j * kv_width + head / group * d;
                    for (int i = 0; i < d; i++)
                        score[j] +=
                                (double)q[i] *
                                (c->kv_f32 ? k[i]
                                           : burin_f32_of_bf16(burin_bf16_of_f32(k[i])));
                    score[j] /= sqrt(d);
                    most = score[j] > most ? score[j] : most;
                }
                for (int j = from; j < to; j++)
                    sum += score[j] = exp(score[j] - most);
                uint8_t *row = w->y[s] + (size_t)p * w->row_bytes;
                for (int i = 0; i < d; i++) {
                    const int column = head * d + i;
                    double expected = 0.0, found;
                    for (int j = from; j < to; j++) {
                        const float v = w->v[s][j * kv_width + head / group * d + i];
                        expected +=
                                score[j] *
                                (c->kv_f32 ? v : burin_f32_of_bf16(burin_bf16_of_f32(v)));
                    }
                    expected /= sum;
                    if (c->out == OUT_F32)
                        found = ((float *)(void *)row)[column];
                    else if (c->out == OUT_BF16)
                        found = burin_f32_of_bf16(((uint16_t *)(void *)row)[column]);
                    else
                        found = burin_q8_scales(row, q_width)[column / 32] *
                                ((int8_t *)row)[column];
                    const double error = fabs(found - expected);
                    if (!(error <= worst))
                        worst = error;
                }
                free(score);
            }
    return worst;
}

#endif
