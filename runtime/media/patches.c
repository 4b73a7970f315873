#include "runtime/media/patches.h"

#include <assert.h>
#include <string.h>

static size_t bytes_of(const struct burin_vision *vision, struct burin_grid grid)
{
    return (size_t)burin_grid_soft(grid) * (size_t)burin_vision_patches(vision) *
           (size_t)burin_vision_patch_bytes(vision);
}

enum burin_status burin_patches_take(
        struct burin_patches *picture,
        const struct burin_vision *vision,
        struct burin_grid grid,
        struct burin_arena *arena,
        struct burin_error *err)
{
    picture->grid = grid;
    picture->pixels = burin_arena_take(arena, bytes_of(vision, grid), 1, 64);
    if (!picture->pixels)
        return burin_fail(
                err, BURIN_ENOMEM, "no memory for the %d soft tokens of a picture",
                burin_grid_soft(grid));
    return BURIN_OK;
}

/* The patch at (column, row) of patches, counted in packed order. */
static size_t packed(
        const struct burin_vision *vision, struct burin_grid grid, int column, int row)
{
    const int pool = vision->pool;
    const int soft = row / pool * grid.columns + column / pool;
    return (size_t)soft * (size_t)burin_vision_patches(vision) +
           (size_t)(row % pool * pool + column % pool);
}

void burin_patches_fill(
        struct burin_patches *picture,
        const struct burin_vision *vision,
        int row,
        const uint8_t *rgb)
{
    const size_t stripe = (size_t)vision->patch * 3;
    for (int column = 0; column < picture->grid.columns * vision->pool; column++) {
        const size_t patch = packed(vision, picture->grid, column, row / vision->patch);
        memcpy(picture->pixels + patch * (size_t)burin_vision_patch_bytes(vision) +
                       (size_t)(row % vision->patch) * stripe,
               rgb + (size_t)column * stripe, stripe);
    }
}

static void fill_positions(
        const struct burin_vision *vision, struct burin_grid grid, int32_t *positions)
{
    for (int row = 0; row < grid.rows * vision->pool; row++)
        for (int column = 0; column < grid.columns * vision->pool; column++) {
            int32_t *at = positions + 2 * packed(vision, grid, column, row);
            at[0] = column;
            at[1] = row;
        }
}

int burin_patches_pack(
        const struct burin_patches *pictures,
        int n_pictures,
        const struct burin_vision *vision,
        int max_soft,
        uint8_t *pixels,
        int32_t *positions,
        int32_t *item_begin)
{
    int n_soft = 0;
    for (int i = 0; i < n_pictures; i++) {
        const struct burin_grid grid = pictures[i].grid;
        const size_t bytes = bytes_of(vision, grid);
        assert(n_soft + burin_grid_soft(grid) <= max_soft);
        item_begin[i] = n_soft * burin_vision_patches(vision);
        memcpy(pixels, pictures[i].pixels, bytes);
        fill_positions(vision, grid, positions + 2 * (size_t)item_begin[i]);
        pixels += bytes;
        n_soft += burin_grid_soft(grid);
    }
    for (int i = n_pictures; i <= max_soft; i++)
        item_begin[i] = n_soft * burin_vision_patches(vision);
    return n_soft;
}
