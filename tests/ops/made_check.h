/* tests/ops/made_check.h -- clipped_linear and patch_embed, whose rows are made before they are
 * multiplied: near a reference in double that makes them itself, and the same bytes however many
 * rows and threads there are. */
#ifndef BURIN_TESTS_OPS_MADE_CHECK_H
#define BURIN_TESTS_OPS_MADE_CHECK_H

#include "tests/ops/linear_check.h"

/* x is what rows are made from: floats to be clipped, or bytes. */
struct made_step {
    float *y;
    const void *x;
    const uint8_t *w;
    uint8_t *scratch;
    size_t scratch_stride;
    int n_rows;
};

static const float made_in[2] = { -0.7f, 1.1f }, made_out[2] = { -2.0f, 3.0f };
static const float made_scale = 2.0f / 255.0f, made_shift = -1.0f;
static float made_bias[512];

/* c->kind: STORE clips, ADD makes rows of bytes and adds a bias. */
static inline void check_made(const struct linear_config *c)
{
    const bool clips = c->kind == STORE;
    const int n_tiles = (c->n + 31) / 32;
    const size_t from_bytes = (size_t)c->k * (clips ? 4 : 1), y_bytes = (size_t)c->n * 4;
    const size_t scratch_stride = (c->scratch_bytes + 63) / 64 * 64;
    uint64_t seed = (uint64_t)(c->k * 1000 + c->n);

    uint8_t *file = obtain((size_t)c->n * c->file_row_bytes);
    uint8_t *w = obtain((size_t)n_tiles * c->tile_bytes);
    for (int out = 0; out < c->n; out++)
        check_random_row(file + (size_t)out * c->file_row_bytes, c, &seed);
    for (int tile = 0; tile < n_tiles; tile++) {
        const uint8_t *rows[32];
        const int n = burin_min(32, c->n - tile * 32);
        for (int i = 0; i < n; i++)
            rows[i] = file + (size_t)(tile * 32 + i) * c->file_row_bytes;
        c->pack(w + (size_t)tile * c->tile_bytes, rows, n, c->k);
    }
    random_fill(made_bias, sizeof made_bias / sizeof *made_bias, 5);

    uint8_t *x = obtain(MAX_ROWS * from_bytes);
    for (int i = 0; i < MAX_ROWS * c->k; i++) {
        const float value = random_normal(&seed);
        if (clips)
            memcpy(x + (size_t)i * 4, &value, 4);
        else
            x[i] = (uint8_t)random_u64(&seed);
    }

    uint8_t *expected = obtain(MAX_ROWS * y_bytes), *y = obtain(MAX_ROWS * y_bytes);
    uint8_t *made = obtain(check_act_bytes(c->x, c->k));
    struct made_step step = { .w = w, .scratch_stride = scratch_stride, .n_rows = 1 };
    step.scratch = obtain(scratch_stride * MAX_THREADS);
    double worst = 0.0;
    for (int row = 0; row < MAX_ROWS; row++) {
        const uint8_t *from = x + (size_t)row * from_bytes;
        float z[4096];
        step.x = from;
        step.y = (float *)(void *)(expected + (size_t)row * y_bytes);
        on_team(1, c->run, &step);
        if (row % 16 != 0)
            continue;
        for (int i = 0; i < c->k; i++)
            if (clips) {
                memcpy(&z[i], from + (size_t)i * 4, 4);
                z[i] = fmaxf(made_in[0], fminf(made_in[1], z[i]));
            } else
                z[i] = (float)from[i] * made_scale + made_shift;
        check_put_row(made, c->x, z, c->k);
        for (int i = 0; i < c->n; i++) {
            double size = 0.0, right = check_dot(c, file, i, made, &size);
            if (clips)
                right = fmax((double)made_out[0], fmin((double)made_out[1], right));
            else
                right += (double)made_bias[i];
            const double error = fabs((double)step.y[i] - right) / size;
            if (!(error <= worst))
                worst = error;
        }
    }
    printf("%s error %.3g\n", c->name, worst);

    const int counts[] = { 1, 2, 3, 5, 8, 17, 64, 130 };
    for (int i = 0; i < 8; i++)
        for (int n_threads = 1; n_threads <= 3; n_threads++) {
            const int n = counts[i],
                      first = n == MAX_ROWS ? 0 : (i * 31 + n_threads) % (MAX_ROWS - n);
            memset(y, 0x3c, MAX_ROWS * y_bytes);
            memset(step.scratch, 0xff, scratch_stride * MAX_THREADS);
            step.x = x + (size_t)first * from_bytes;
            step.y = (float *)(void *)y;
            step.n_rows = n;
            on_team(n_threads, c->run, &step);
            CHECK(memcmp(y, expected + (size_t)first * y_bytes, (size_t)n * y_bytes) == 0);
            for (size_t b = (size_t)n * y_bytes; b < MAX_ROWS * y_bytes; b++)
                CHECK(y[b] == 0x3c);
        }

    free(file);
    free(w);
    free(x);
    free(expected);
    free(y);
    free(made);
    free(step.scratch);
}

#endif
