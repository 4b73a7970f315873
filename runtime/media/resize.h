/* runtime/media/resize.h -- Pictures made smaller and larger: bicubic, antialiased, on bytes.
 * Keys 1981, "Cubic convolution interpolation for digital image processing" (a = -0.5), with
 * the kernel widened by the scale where a picture shrinks.
 *
 * Same     Bit for bit what torchvision computes of uint8 on a CPU (what transformers' image
 *          processors call): columns first, rounded to bytes between the passes, weights of
 *          16 bits. Pillow differs from both, mostly by one level (its weights have 22 bits).
 * Memory   Rows come in one by one and go out as soon as they can: of the source only as many
 *          are kept as the kernel is high, so a picture of any size takes about 12 bytes for
 *          each of its columns. All of it is the arena's.
 * Threads  One at a time on a struct. */
#ifndef BURIN_MEDIA_RESIZE_H
#define BURIN_MEDIA_RESIZE_H

#include "runtime/base/arena.h"
#include "runtime/base/status.h"

#include <stdint.h>

/* Out of which elements each one is made, along one axis. */
struct burin_resize_axis {
    int n_in;
    int n_out;
    int most;         /* elements that one is made of, at most */
    int precision;    /* bits behind the point of `weights` */
    int *begin;       /* (n_out) */
    int *count;       /* (n_out) */
    int16_t *weights; /* (n_out, most) */
};

/* Told of each finished row, from the top: n_out * 3 bytes that live until it returns. */
typedef void burin_resize_emit(void *context, int row, const uint8_t *rgb);

struct burin_resize {
    struct burin_resize_axis x;
    struct burin_resize_axis y;
    burin_resize_emit *emit;
    void *context;
    uint8_t *ring; /* (y.most, x.n_out, 3): the last source rows, at their new width */
    uint8_t *line; /* (x.n_out, 3): one row as it is made */
    int n_rows;    /* that came in */
    int n_done;    /* that went out */
};

/* From width x height to new_width x new_height, all at least 1. BURIN_ENOMEM. */
enum burin_status burin_resize_begin(
        struct burin_resize *resize,
        struct burin_arena *arena,
        int width,
        int height,
        int new_width,
        int new_height,
        burin_resize_emit *emit,
        void *context,
        struct burin_error *err);

/* The next row of the source, width * 3 bytes. After `height` of them all rows are out. */
void burin_resize_row(struct burin_resize *resize, const uint8_t *rgb);

#endif
