/* runtime/media/items.h -- Pictures and frames as an encoder takes them.
 *
 * Order    Soft tokens go row by row through the picture. The pool x pool patches of one lie
 *          beside each other, again row by row, so pooling is a mean of adjacent rows. Within
 *          a patch: rows, columns, then red, green, blue.
 * Memory   The caller's arena owns the pixels.
 * Threads  Values; free to share once they are filled. */
#ifndef BURIN_MEDIA_ITEMS_H
#define BURIN_MEDIA_ITEMS_H

#include "runtime/base/arena.h"
#include "runtime/base/status.h"
#include "runtime/media/fit.h"

#include <stdint.h>

/* One picture, or one frame of a video. */
struct burin_item {
    struct burin_grid grid;
    uint8_t *pixels; /* (patches of a soft token * soft tokens, bytes of a patch) */
};

enum burin_status burin_item_take(
        struct burin_item *item,
        const struct burin_vision *vision,
        struct burin_grid grid,
        struct burin_arena *arena,
        struct burin_error *err);

/* Row `row` of the resized picture: columns * patch * pool pixels of 3 bytes. */
void burin_item_fill(
        struct burin_item *item,
        const struct burin_vision *vision,
        int row,
        const uint8_t *rgb);

/* The inputs of an encoder's run over some whole items, packed behind each other. With
 * n = max_soft patches of a soft token:
 *
 *     pixels      (n, bytes of a patch)
 *     positions   (n, 2)          column and row of the patch in its picture
 *     item_begin  (max_soft + 1)  the first patch of each item; behind the last item always
 *                                 the number of patches, so that what is left are empty items
 *
 * What lies behind the last item's rows in the first two is not touched. Returns the number of
 * soft tokens; the caller has chosen items that are together at most max_soft. */
int burin_items_pack(
        const struct burin_item *items,
        int n_items,
        const struct burin_vision *vision,
        int max_soft,
        uint8_t *pixels,
        int32_t *positions,
        int32_t *item_begin);

#endif
