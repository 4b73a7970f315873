#include "runtime/media/resize.h"

#include <math.h>
#include <string.h>

enum { MOST_PRECISION = 22, LARGEST_WEIGHT = 1 << 15 };

static double cubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2)
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    return 0;
}

/* Begin, count and weights (which sum to 1) of element `i`; returns the largest weight. */
static double weigh(struct burin_resize_axis *axis, double *weights, int i)
{
    const double scale = (double)axis->n_in / axis->n_out;
    const double support = scale >= 1 ? 2 * scale : 2;
    const double shrink = scale >= 1 ? 1 / scale : 1;
    const double center = scale * (i + 0.5);
    const int first = (int)(center - support + 0.5);
    const int last = (int)(center + support + 0.5);
    const int begin = first > 0 ? first : 0;
    int count = (last < axis->n_in ? last : axis->n_in) - begin;
    if (count > axis->most)
        count = axis->most;

    double sum = 0, largest = 0;
    for (int k = 0; k < count; k++) {
        weights[k] = cubic((k + begin - center + 0.5) * shrink);
        sum += weights[k];
    }
    for (int k = 0; k < count; k++) {
        weights[k] /= sum;
        if (weights[k] > largest)
            largest = weights[k];
    }
    axis->begin[i] = begin;
    axis->count[i] = count;
    return largest;
}

/* As many bits as leave the largest weight within 16. */
static int choose_precision(double largest)
{
    int precision = 0;
    while (precision < MOST_PRECISION &&
           (int)(0.5 + largest * (1 << (precision + 1))) < LARGEST_WEIGHT)
        precision++;
    return precision;
}

static enum burin_status make_axis(
        struct burin_resize_axis *axis,
        struct burin_arena *arena,
        int n_in,
        int n_out,
        struct burin_error *err)
{
    const double scale = (double)n_in / n_out;
    *axis = (struct burin_resize_axis){ .n_in = n_in, .n_out = n_out };
    axis->most = 2 * (int)ceil(scale >= 1 ? 2 * scale : 2) + 1;
    axis->begin = BURIN_TAKE(arena, (size_t)n_out, int);
    axis->count = BURIN_TAKE(arena, (size_t)n_out, int);
    axis->weights = BURIN_TAKE(arena, (size_t)n_out * (size_t)axis->most, int16_t);
    double *real = BURIN_TAKE(arena, (size_t)axis->most, double);
    if (!axis->begin || !axis->count || !axis->weights || !real)
        return burin_fail(
                err, BURIN_ENOMEM, "no memory to bring %d pixels to %d", n_in, n_out);

    double largest = 0;
    for (int i = 0; i < n_out; i++)
        largest = fmax(largest, weigh(axis, real, i));
    axis->precision = choose_precision(largest);

    const double one = 1 << axis->precision;
    for (int i = 0; i < n_out; i++) {
        weigh(axis, real, i);
        int16_t *weights = axis->weights + (size_t)i * (size_t)axis->most;
        for (int k = 0; k < axis->count[i]; k++)
            weights[k] = (int16_t)(real[k] * one + (real[k] < 0 ? -0.5 : 0.5));
    }
    return BURIN_OK;
}

enum burin_status burin_resize_begin(
        struct burin_resize *resize,
        struct burin_arena *arena,
        int width,
        int height,
        int new_width,
        int new_height,
        burin_resize_emit *emit,
        void *context,
        struct burin_error *err)
{
    *resize = (struct burin_resize){ .emit = emit, .context = context };
    enum burin_status status = make_axis(&resize->x, arena, width, new_width, err);
    if (!status)
        status = make_axis(&resize->y, arena, height, new_height, err);
    if (status)
        return status;
    const size_t row = (size_t)new_width * 3;
    resize->ring = BURIN_TAKE(arena, row * (size_t)resize->y.most, uint8_t);
    resize->line = BURIN_TAKE(arena, row, uint8_t);
    if (!resize->ring || !resize->line)
        return burin_fail(
                err, BURIN_ENOMEM, "no memory to bring %d x %d pixels to %d x %d", width,
                height, new_width, new_height);
    return BURIN_OK;
}

static uint8_t to_byte(int32_t sum, int precision)
{
    const int32_t level = sum >> precision;
    return (uint8_t)(level < 0 ? 0 : level > 255 ? 255 : level);
}

static void across(const struct burin_resize_axis *x, const uint8_t *in, uint8_t *out)
{
    if (x->n_in == x->n_out) {
        memcpy(out, in, (size_t)x->n_in * 3);
        return;
    }
    const int32_t half = 1 << (x->precision - 1);
    for (int i = 0; i < x->n_out; i++) {
        const int16_t *weights = x->weights + (size_t)i * (size_t)x->most;
        const uint8_t *from = in + (size_t)x->begin[i] * 3;
        int32_t r = half, g = half, b = half;
        for (int k = 0; k < x->count[i]; k++, from += 3) {
            r += weights[k] * from[0];
            g += weights[k] * from[1];
            b += weights[k] * from[2];
        }
        *out++ = to_byte(r, x->precision);
        *out++ = to_byte(g, x->precision);
        *out++ = to_byte(b, x->precision);
    }
}

static uint8_t *ring_row(const struct burin_resize *resize, int row)
{
    return resize->ring + (size_t)(row % resize->y.most) * (size_t)resize->x.n_out * 3;
}

enum { BLOCK = 256 }; /* bytes summed at once: the sums stay in the first cache */

static void down(const struct burin_resize *resize, int i, uint8_t *out)
{
    const struct burin_resize_axis *y = &resize->y;
    const int16_t *weights = y->weights + (size_t)i * (size_t)y->most;
    const int n_bytes = resize->x.n_out * 3;
    for (int at = 0; at < n_bytes; at += BLOCK) {
        const int n = n_bytes - at < BLOCK ? n_bytes - at : BLOCK;
        int32_t sums[BLOCK];
        for (int c = 0; c < n; c++)
            sums[c] = 1 << (y->precision - 1);
        for (int k = 0; k < y->count[i]; k++) {
            const uint8_t *row = ring_row(resize, y->begin[i] + k) + at;
            for (int c = 0; c < n; c++)
                sums[c] += weights[k] * row[c];
        }
        for (int c = 0; c < n; c++)
            out[at + c] = to_byte(sums[c], y->precision);
    }
}

void burin_resize_row(struct burin_resize *resize, const uint8_t *rgb)
{
    const struct burin_resize_axis *y = &resize->y;
    uint8_t *row = ring_row(resize, resize->n_rows);
    across(&resize->x, rgb, row);
    resize->n_rows++;
    if (y->n_in == y->n_out) {
        resize->emit(resize->context, resize->n_done++, row);
        return;
    }
    while (resize->n_done < y->n_out &&
           y->begin[resize->n_done] + y->count[resize->n_done] <= resize->n_rows) {
        down(resize, resize->n_done, resize->line);
        resize->emit(resize->context, resize->n_done++, resize->line);
    }
}
