/* tests/support/pictures.h -- Pictures that no file holds, as tests/golden/gemma4_tiny.py has them
 * too: byte i of all pixels of a prompt, picture behind picture, patches in the encoder's order,
 * is the highest of i * 2654435761.
 *
 * Memory   The caller frees the pixels of a picture. */
#ifndef BURIN_PICTURES_H
#define BURIN_PICTURES_H

#include "runtime/media/patches.h"

#include <stdlib.h>

enum { TEST_PATCHES = 9, TEST_PATCH_BYTES = 16 * 16 * 3 };

/* One of rows * columns soft tokens; *byte is its first among all, and goes on behind it. */
static inline struct burin_patches test_picture(int columns, int rows, size_t *byte)
{
    const size_t n = (size_t)(columns * rows) * TEST_PATCHES * TEST_PATCH_BYTES;
    struct burin_patches picture = { .grid = { .rows = rows, .columns = columns },
                                     .pixels = malloc(n) };
    if (!picture.pixels)
        abort();
    for (size_t i = 0; i < n; i++)
        picture.pixels[i] = (uint8_t)((uint32_t)(*byte)++ * 2654435761u >> 24);
    return picture;
}

#endif
