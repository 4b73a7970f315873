/* tests/ops/linear_check.h -- linear, adding or not, and linear_glu on weights that went from a
 * file's blocks through pack(): near a reference in double that decodes the blocks itself,
 * and the same bytes however many rows and threads there are. */
#ifndef BURIN_TESTS_OPS_LINEAR_CHECK_H
#define BURIN_TESTS_OPS_LINEAR_CHECK_H

#include "tests/ops/prelude.h"

enum { MAX_ROWS = 130 };

enum check_format { F32, F16, BF16, Q4_0, Q4_1, Q8_0 }; /* as enum burin_format */
enum check_act { ACT_F32, ACT_BF16, ACT_Q8, ACT_Q8X2 };

typedef void check_pack(
        uint8_t *tile, const uint8_t *const *rows, int n_rows, int64_t n_cols);

struct linear_config {
    const char *name;
    enum check_format format;
    enum check_act x, y;
    enum { STORE, ADD, SILU, GELU_TANH } kind;
    int k, n;
    size_t tile_bytes, file_row_bytes, scratch_bytes;
    check_pack *pack;
    team_run *run; /* context: struct linear_step */
};

struct linear_step {
    void *y;
    int y_stride; /* of f32 results that are not a gated unit's */
    const void *x;
    const uint8_t *w;
    uint8_t *scratch;
    size_t scratch_stride;
    int n_tokens;
};

/* ---- Blocks of a file ------------------------------------------------------------- */

static inline uint16_t check_f16(float x)
{
    const _Float16 half = (_Float16)x;
    uint16_t bits;
    memcpy(&bits, &half, sizeof bits);
    return bits;
}

static inline double check_of_f16(const uint8_t *at)
{
    _Float16 half;
    memcpy(&half, at, sizeof half);
    return (double)half;
}

/* A row of the file: any quants, steps about 1/8 of a unit's. */
static inline void check_random_row(
        uint8_t *row, const struct linear_config *c, uint64_t *seed)
{
    const int block = c->format == Q4_0 ? 18 : c->format == Q4_1 ? 20 : 34;

    if (c->format < Q4_0) {
        for (int i = 0; i < c->k; i++) {
            const float x = random_normal(seed);
            const uint16_t half = c->format == F16 ? check_f16(x) : burin_bf16_of_f32(x);
            if (c->format == F32)
                memcpy(row + i * 4, &x, 4);
            else
                memcpy(row + i * 2, &half, 2);
        }
        return;
    }
    for (int g = 0; g < c->k / 32; g++) {
        uint8_t *b = row + g * block;
        for (int i = 0; i < block; i++)
            b[i] = (uint8_t)random_u64(seed);
        const float scale = c->format == Q8_0 ? 0.01f : 0.15f;
        const uint16_t d = check_f16(random_normal(seed) * scale);
        const uint16_t m = check_f16(random_normal(seed));
        memcpy(b, &d, 2);
        if (c->format == Q4_1)
            memcpy(b + 2, &m, 2);
    }
}

static inline double check_weight(const uint8_t *row, enum check_format format, int col)
{
    const int in = col % 32;
    uint32_t bits = 0;
    float x;

    switch (format) {
    case F32:
        memcpy(&x, row + col * 4, 4);
        return (double)x;
    case F16:
        return check_of_f16(row + col * 2);
    case BF16:
        memcpy((uint8_t *)&bits + 2, row + col * 2, 2);
        memcpy(&x, &bits, 4);
        return (double)x;
    case Q4_0:
        row += col / 32 * 18;
        return check_of_f16(row) *
               ((in < 16 ? row[2 + in] & 15 : row[2 + in - 16] >> 4) - 8);
    case Q4_1:
        row += col / 32 * 20;
        return check_of_f16(row) * (in < 16 ? row[4 + in] & 15 : row[4 + in - 16] >> 4) +
               check_of_f16(row + 2);
    default:
        row += col / 32 * 34;
        return check_of_f16(row) * (int8_t)row[2 + in];
    }
}

/* ---- Activations ------------------------------------------------------------------ */

static inline size_t check_act_bytes(enum check_act act, int k)
{
    return act == ACT_F32    ? (size_t)k * 4
           : act == ACT_BF16 ? (size_t)k * 2
           : act == ACT_Q8   ? burin_q8_stride(k)
                             : 2 * burin_q8_stride(k);
}

static inline void check_put_row(uint8_t *row, enum check_act act, const float *x, int k)
{
    if (act == ACT_F32)
        memcpy(row, x, (size_t)k * 4);
    else if (act == ACT_BF16)
        burin_store_bf16((uint16_t *)(void *)row, x, k);
    else
        burin_q8_row(row, x, k);
    if (act == ACT_Q8X2) {
        float rest[4096];
        burin_q8_rest(rest, row, x, k);
        burin_q8_row(row + burin_q8_stride(k), rest, k);
    }
}

static inline double check_value(const uint8_t *row, enum check_act act, int k, int i)
{
    float scale;

    switch (act) {
    case ACT_F32:
        memcpy(&scale, row + i * 4, 4);
        return (double)scale;
    case ACT_BF16:
        return (double)burin_f32_of_bf16(burin_load_u16(row + i * 2));
    case ACT_Q8X2:
        return check_value(row, ACT_Q8, k, i) +
               check_value(row + burin_q8_stride(k), ACT_Q8, k, i);
    default:
        memcpy(&scale, row + (k + 31) / 32 * 32 + i / 32 * 4, 4);
        return (double)scale * ((const int8_t *)row)[i];
    }
}

/* ---- The check -------------------------------------------------------------------- */

static inline double check_dot(
        const struct linear_config *c,
        const uint8_t *file,
        int out,
        const uint8_t *x,
        double *size)
{
    const uint8_t *row = file + (size_t)out * c->file_row_bytes;
    double sum = 0.0;

    for (int i = 0; i < c->k; i++) {
        const double part = check_weight(row, c->format, i) * check_value(x, c->x, c->k, i);
        sum += part;
        *size += fabs(part);
    }
    return sum;
}

static inline void check_linear(const struct linear_config *c)
{
    const int n_parts = c->kind >= SILU ? 2 : 1, n_tiles = (c->n + 31) / 32;
    const size_t x_bytes = check_act_bytes(c->x, c->k);
    const int y_stride = c->n + 5; /* columns of a wider buffer */
    const size_t y_bytes =
            c->kind >= SILU ? check_act_bytes(c->y, c->n) : (size_t)y_stride * 4;
    uint64_t seed = (uint64_t)(c->k * 1000 + c->n);

    /* The file's rows, and its tiles: gate and up in turn. */
    uint8_t *file[2], *w = obtain((size_t)n_tiles * n_parts * c->tile_bytes);
    for (int part = 0; part < n_parts; part++) {
        file[part] = obtain((size_t)c->n * c->file_row_bytes);
        for (int out = 0; out < c->n; out++)
            check_random_row(file[part] + (size_t)out * c->file_row_bytes, c, &seed);
        for (int tile = 0; tile < n_tiles; tile++) {
            const uint8_t *rows[32];
            const int n = burin_min(32, c->n - tile * 32);
            for (int i = 0; i < n; i++)
                rows[i] = file[part] + (size_t)(tile * 32 + i) * c->file_row_bytes;
            uint8_t *at = w + (size_t)(tile * n_parts + part) * c->tile_bytes;
            memset(at, 0xee, c->tile_bytes);
            c->pack(at, rows, n, c->k);
        }
    }

    uint8_t *x = obtain(MAX_ROWS * x_bytes);
    for (int row = 0; row < MAX_ROWS; row++) {
        float in[4096];
        random_fill(in, (size_t)c->k, (uint64_t)row + 77);
        check_put_row(x + (size_t)row * x_bytes, c->x, in, c->k);
    }

    /* Row after row, alone, by one thread: near the reference. */
    uint8_t *expected = obtain(MAX_ROWS * y_bytes), *y = obtain(MAX_ROWS * y_bytes);
    const size_t scratch_stride = (c->scratch_bytes + 63) / 64 * 64;
    struct linear_step step = { .y_stride = y_stride,
                                .w = w,
                                .scratch_stride = scratch_stride };
    step.scratch = obtain(scratch_stride * MAX_THREADS);
    memset(expected, 0x3c, MAX_ROWS * y_bytes);
    double worst = 0.0;
    for (int row = 0; row < MAX_ROWS; row++) {
        uint8_t *in = x + (size_t)row * x_bytes, *out = expected + (size_t)row * y_bytes;
        float before;
        memcpy(&before, out, 4);
        step.x = in;
        step.y = out;
        step.n_tokens = 1;
        on_team(1, c->run, &step);
        if (row % 16 != 0)
            continue;
        for (int i = 0; i < c->n; i++) {
            double size = 0.0, right = check_dot(c, file[0], i, in, &size), found;
            if (c->kind >= SILU) {
                const double up = check_dot(c, file[1], i, in, &size);
                const double u =
                        sqrt(2 / M_PI) * (right + 0.044715 * right * right * right);
                const double f = c->kind == SILU ? right / (1 + exp(-right))
                                                 : right / (1 + exp(-2 * u));
                size *= fabs(f) + fabs(up) + 1;
                right = f * up;
                found = check_value(out, c->y, c->n, i);
                float scale = 0; /* of q8: half a step is right */
                if (c->y == ACT_Q8)
                    memcpy(&scale, out + (c->n + 31) / 32 * 32 + i / 32 * 4, 4);
                size += scale * 0.501 * 1e6;
            } else {
                right += c->kind == ADD ? before : 0.0;
                found = check_value(out, ACT_F32, y_stride, i);
            }
            const double error = fabs(found - right) / size;
            if (!(error <= worst))
                worst = error;
        }
        if (c->kind < SILU)
            for (size_t i = (size_t)c->n * 4; i < y_bytes; i++)
                CHECK(out[i] == 0x3c);
    }
    printf("%s error %.3g\n", c->name, worst);

    /* Any rows together, by any number of threads: the same bytes. */
    const int counts[] = { 1, 2, 3, 5, 8, 17, 64, 130 };
    for (int i = 0; i < 8; i++)
        for (int n_threads = 1; n_threads <= 3; n_threads++) {
            const int n = counts[i],
                      first = n == MAX_ROWS ? 0 : (i * 31 + n_threads) % (MAX_ROWS - n);
            memset(y, 0x3c, MAX_ROWS * y_bytes);
            memset(step.scratch, 0xff, scratch_stride * MAX_THREADS);
            step.x = x + (size_t)first * x_bytes;
            step.y = y;
            step.n_tokens = n;
            on_team(n_threads, c->run, &step);
            if (memcmp(y, expected + (size_t)first * y_bytes, (size_t)n * y_bytes) != 0) {
                printf("%s: %d rows and %d threads give other bits\n", c->name, n,
                       n_threads);
                exit(1);
            }
            for (size_t b = (size_t)n * y_bytes; b < MAX_ROWS * y_bytes; b++)
                CHECK(y[b] == 0x3c);
        }

    for (int part = 0; part < n_parts; part++)
        free(file[part]);
    free(w);
    free(x);
    free(expected);
    free(y);
    free(step.scratch);
}

#endif
