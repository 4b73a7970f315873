/* runtime/media/patches.h -- Pictures and frames as an encoder takes them.
 *
 * Order    Soft tokens go row by row through the picture. The pool x pool patches of one lie
 *          beside each other, again row by row, so pooling is a mean of adjacent rows. Within
 *          a patch: rows, columns, then red, green, blue.
 * Memory   The caller's arena owns the pixels.
 * Threads  Values; free to share once they are filled. */
#ifndef BURIN_MEDIA_PATCHES_H
#define BURIN_MEDIA_PATCHES_H

#include "runtime/base/arena.h"
#include "runtime/base/status.h"
#include "runtime/media/fit.h"

#include <stdint.h>

/* One picture, or one frame of a video. */
struct burin_patches {
    struct burin_grid grid;
    uint8_t *pixels; /* (patches of a soft token * soft tokens, bytes of a patch) */
};

enum burin_status burin_patches_take(
        struct burin_patches *picture,
        const struct burin_vision *vision,
        struct burin_grid grid,
        struct burin_arena *arena,
        struct burin_error *err);

/* Row `row` of the resized picture: columns * patch * pool pixels of 3 bytes. */
void burin_patches_fill(
        struct burin_patches *picture,
        const struct burin_vision *vision,
        int row,
        const uint8_t *rgb);

/* The inputs of an encoder's run over some whole pictures, packed behind each other. With
 * n = max_soft patches of a soft token:
 *
 *     pixels      (n, bytes of a patch)
 *     positions   (n, 2)          column and row of the patch in its picture
 *     item_begin  (max_soft + 1)  the first patch of each picture; behind the last always
 *                                 the number of patches, so that what is left are empty ones
 *
 * What lies behind the last picture's rows in the first two is not touched. Returns the number of
 * soft tokens; the caller has chosen pictures that are together at most max_soft. */
int burin_patches_pack(
        const struct burin_patches *pictures,
        int n_pictures,
        const struct burin_vision *vision,
        int max_soft,
        uint8_t *pixels,
        int32_t *positions,
        int32_t *item_begin);

#endif
