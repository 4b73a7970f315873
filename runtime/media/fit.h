/* runtime/media/fit.h -- How large a picture becomes for an encoder, and how many soft tokens
 * that makes: one function says both, so that placeholders and embeddings are as many.
 *
 * Rule     The aspect is kept; both sides are multiples of a soft token's; there are at most
 *          `max_soft` of them. A picture is made smaller or larger to come near that.
 *          Gemma 4: transformers' get_aspect_ratio_preserving_size.
 * Threads  Pure. */
#ifndef BURIN_MEDIA_FIT_H
#define BURIN_MEDIA_FIT_H

#include "runtime/base/status.h"
#include "runtime/model.h"

#include <stdint.h>

/* What an encoder sees of a picture. Gemma 4: patches of 16, 3 x 3 of them a soft token, at
 * most 280 (a frame of video: 70). */
struct burin_vision {
    int patch;    /* pixels of a patch's side */
    int pool;     /* patches of a soft token's side */
    int max_soft; /* soft tokens of one picture */
};

/* Patch and pool, read off the shape of an encoder's input: pixels (pool^2 soft, 3 patch^2). */
struct burin_vision burin_vision_of(const struct burin_input *pixels, int max_soft);

/* Soft tokens of one picture. */
struct burin_grid {
    int rows;
    int columns;
};

/* The grid of a picture of this size. BURIN_ELIMIT where it would hold no soft token or more
 * than max_soft. */
enum burin_status burin_fit(
        const struct burin_vision *vision,
        int64_t width,
        int64_t height,
        struct burin_grid *grid,
        struct burin_error *err);

static inline int burin_grid_soft(struct burin_grid grid)
{
    return grid.rows * grid.columns;
}

/* Pixels of a soft token's side, patches of a soft token, bytes of a patch. */
static inline int burin_vision_side(const struct burin_vision *vision)
{
    return vision->patch * vision->pool;
}
static inline int burin_vision_patches(const struct burin_vision *vision)
{
    return vision->pool * vision->pool;
}
static inline int burin_vision_patch_bytes(const struct burin_vision *vision)
{
    return vision->patch * vision->patch * 3;
}

#endif
