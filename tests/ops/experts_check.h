/* tests/ops/experts_check.h -- experts_glu and experts_down on weights that went from a file's blocks
 * through pack(): near a reference in double, and a choice's result the same bytes whichever tokens
 * are beside it, however many threads there are. */
#ifndef BURIN_TESTS_OPS_EXPERTS_CHECK_H
#define BURIN_TESTS_OPS_EXPERTS_CHECK_H

#include "tests/ops/linear_check.h"

enum { N_EXPERTS = 7, N_SLOTS = 3, N_CHECK_TOKENS = 150 };

struct experts_step {
    void *y;
    const void *x;
    const uint8_t *w;
    const int32_t *rows;
    const int32_t *begin;
    uint8_t *scratch;
    size_t scratch_stride;
};

/* Choices by expert, as gen/ops/expert_begin.lua and expert_rows.lua have them. */
static inline void experts_order(
        int32_t *rows, int32_t *begin, const int32_t *experts, int n_choices)
{
    int n = 0;
    for (int e = 0; e < N_EXPERTS; e++) {
        begin[e] = n;
        for (int c = 0; c < n_choices; c++)
            if (experts[c] == e)
                rows[n++] = c;
    }
    begin[N_EXPERTS] = n;
}

/* c->n outputs of a choice. Kinds: STORE is experts_down, SILU and GELU_TANH are experts_glu. */
static inline void check_experts(const struct linear_config *c)
{
    const bool glu = c->kind >= SILU;
    const int n_parts = glu ? 2 : 1, n_tiles = (c->n + 31) / 32;
    const int n_choices = N_CHECK_TOKENS * N_SLOTS;
    const int n_x = glu ? N_CHECK_TOKENS : n_choices;
    const size_t x_bytes = check_act_bytes(c->x, c->k);
    const size_t y_bytes = check_act_bytes(c->y, c->n);
    const size_t scratch_stride = (c->scratch_bytes + 63) / 64 * 64;
    uint64_t seed = (uint64_t)(c->k * 1000 + c->n);

    uint8_t *file[N_EXPERTS][2],
            *w = obtain(N_EXPERTS * (size_t)(n_tiles * n_parts) * c->tile_bytes);
    for (int e = 0; e < N_EXPERTS; e++)
        for (int part = 0; part < n_parts; part++) {
            file[e][part] = obtain((size_t)c->n * c->file_row_bytes);
            for (int out = 0; out < c->n; out++)
                check_random_row(file[e][part] + (size_t)out * c->file_row_bytes, c, &seed);
            for (int tile = 0; tile < n_tiles; tile++) {
                const uint8_t *rows[32];
                const int n = burin_min(32, c->n - tile * 32);
                for (int i = 0; i < n; i++)
                    rows[i] = file[e][part] + (size_t)(tile * 32 + i) * c->file_row_bytes;
                c->pack(w + (size_t)((e * n_tiles + tile) * n_parts + part) * c->tile_bytes,
                        rows, n, c->k);
            }
        }

    uint8_t *x = obtain((size_t)n_x * x_bytes);
    for (int row = 0; row < n_x; row++) {
        float in[4096];
        random_fill(in, (size_t)c->k, (uint64_t)row + 77);
        check_put_row(x + (size_t)row * x_bytes, c->x, in, c->k);
    }

    /* Most tokens agree on one expert, so that it has several parts; the last has few. */
    int32_t experts[N_CHECK_TOKENS * N_SLOTS], rows[N_CHECK_TOKENS * N_SLOTS];
    int32_t begin[N_EXPERTS + 1];
    for (int token = 0; token < N_CHECK_TOKENS; token++)
        for (int slot = 0; slot < N_SLOTS; slot++)
            experts[token * N_SLOTS + slot] =
                    slot == 0 ? 2 : (token % 50 == 0 ? 5 : token % 2 * 3) + slot - 1;

    uint8_t *expected = obtain((size_t)n_choices * y_bytes);
    uint8_t *y = obtain((size_t)n_choices * y_bytes);
    memset(expected, 0x3c, (size_t)n_choices * y_bytes);
    struct experts_step step = {
        .y = expected, .x = x, .w = w, .rows = rows, .begin = begin
    };
    step.scratch_stride = scratch_stride;
    step.scratch = obtain(scratch_stride * MAX_THREADS);
    memset(step.scratch, 0xff, scratch_stride * MAX_THREADS);
    experts_order(rows, begin, experts, n_choices);
    on_team(1, c->run, &step);

    double worst = 0.0;
    for (int choice = 0; choice < n_choices; choice += 7) {
        const uint8_t *in = x + (size_t)(glu ? choice / N_SLOTS : choice) * x_bytes;
        const uint8_t *out = expected + (size_t)choice * y_bytes;
        uint8_t **mine = file[experts[choice]];
        for (int i = 0; i < c->n; i++) {
            double size = 0.0, right = check_dot(c, mine[0], i, in, &size);
            if (glu) {
                const double up = check_dot(c, mine[1], i, in, &size);
                const double u =
                        sqrt(2 / M_PI) * (right + 0.044715 * right * right * right);
                const double f = c->kind == SILU ? right / (1 + exp(-right))
                                                 : right / (1 + exp(-2 * u));
                float scale = 0; /* of q8: half a step is right */
                if (c->y == ACT_Q8)
                    memcpy(&scale, out + (c->n + 31) / 32 * 32 + i / 32 * 4, 4);
                size = size * (fabs(f) + fabs(up) + 1) + scale * 0.501 * 1e6;
                right = f * up;
            }
            const double error = fabs(check_value(out, c->y, c->n, i) - right) / size;
            if (!(error <= worst))
                worst = error;
        }
    }
    printf("%s error %.3g\n", c->name, worst);

    const int counts[] = { 1, 2, 9, 64, N_CHECK_TOKENS };
    for (int i = 0; i < 5; i++)
        for (int n_threads = 1; n_threads <= 3; n_threads++) {
            const int n = counts[i];
            const int first = n == N_CHECK_TOKENS
                                      ? 0
                                      : (i * 31 + n_threads * 7) % (N_CHECK_TOKENS - n);
            const size_t at = (size_t)first * N_SLOTS,
                         bytes = (size_t)n * N_SLOTS * y_bytes;
            memset(y, 0x3c, (size_t)n_choices * y_bytes);
            memset(step.scratch, 0xff, scratch_stride * MAX_THREADS);
            experts_order(rows, begin, experts + at, n * N_SLOTS);
            step.x = x + (glu ? (size_t)first : at) * x_bytes;
            step.y = y;
            on_team(n_threads, c->run, &step);
            CHECK(memcmp(y, expected + at * y_bytes, bytes) == 0);
            for (size_t b = bytes; b < (size_t)n_choices * y_bytes; b++)
                CHECK(y[b] == 0x3c);
        }

    for (int e = 0; e < N_EXPERTS; e++)
        for (int part = 0; part < n_parts; part++)
            free(file[e][part]);
    free(w);
    free(x);
    free(expected);
    free(y);
    free(step.scratch);
}

#endif
