#include "runtime/media/patches.h"
#include "tests/support/test.h"

#include <string.h>

/* Small enough to count by hand: patches of 2, 2 x 2 of them a soft token. */
static const struct burin_vision vision = { .patch = 2, .pool = 2, .max_soft = 8 };
enum { PATCH_BYTES = 12, PER_SOFT = 4 };

static struct burin_arena arena;

/* An item whose pixel at (x, y) is red 10 x, green 10 y, blue `tint`. */
static struct burin_patches item_of(int rows, int columns, int tint)
{
    struct burin_patches item;
    assert_int_equal(
            burin_patches_take(
                    &item, &vision, (struct burin_grid){ rows, columns }, &arena, NULL),
            BURIN_OK);
    uint8_t line[64];
    for (int y = 0; y < rows * 4; y++) {
        for (int x = 0; x < columns * 4; x++) {
            line[3 * x] = (uint8_t)(10 * x);
            line[3 * x + 1] = (uint8_t)(10 * y);
            line[3 * x + 2] = (uint8_t)tint;
        }
        burin_patches_fill(&item, &vision, y, line);
    }
    return item;
}

SPEC(patches_of_a_soft_token_lie_beside_each_other_row_by_row)
{
    const struct burin_patches item = item_of(1, 2, 7);

    static const int corners[8][2] = {
        /* x, y of each patch's first pixel, in packed order */
        { 0, 0 }, { 2, 0 }, { 0, 2 }, { 2, 2 }, { 4, 0 }, { 6, 0 }, { 4, 2 }, { 6, 2 },
    };
    for (int i = 0; i < 8; i++) {
        const uint8_t *patch = item.pixels + i * PATCH_BYTES;
        const int x = corners[i][0], y = corners[i][1];
        const uint8_t expected[PATCH_BYTES] = {
            (uint8_t)(10 * x),      (uint8_t)(10 * y),      7,
            (uint8_t)(10 * x + 10), (uint8_t)(10 * y),      7,
            (uint8_t)(10 * x),      (uint8_t)(10 * y + 10), 7,
            (uint8_t)(10 * x + 10), (uint8_t)(10 * y + 10), 7,
        };
        assert_memory_equal(patch, expected, PATCH_BYTES);
    }
    burin_arena_close(&arena);
}

SPEC(items_of_several_sizes_are_packed_behind_each_other_and_what_is_left_is_empty)
{
    const struct burin_patches items[] = { item_of(1, 2, 3), item_of(2, 1, 5) };
    uint8_t pixels[8 * PER_SOFT * PATCH_BYTES];
    int32_t positions[8 * PER_SOFT][2];
    int32_t begin[9];
    memset(pixels, 255, sizeof pixels);

    const int n_soft =
            burin_patches_pack(items, 2, &vision, 8, pixels, &positions[0][0], begin);

    assert_int_equal(n_soft, 4);
    static const int32_t begins[9] = { 0, 8, 16, 16, 16, 16, 16, 16, 16 };
    assert_memory_equal(begin, begins, sizeof begins);
    static const int32_t expected[16][2] = {
        /* column, row */
        { 0, 0 }, { 1, 0 }, { 0, 1 }, { 1, 1 }, { 2, 0 }, { 3, 0 }, { 2, 1 }, { 3, 1 },
        { 0, 0 }, { 1, 0 }, { 0, 1 }, { 1, 1 }, { 0, 2 }, { 1, 2 }, { 0, 3 }, { 1, 3 },
    };
    assert_memory_equal(positions, expected, sizeof expected);
    assert_memory_equal(pixels, items[0].pixels, 8 * PATCH_BYTES);
    assert_memory_equal(pixels + 8 * PATCH_BYTES, items[1].pixels, 8 * PATCH_BYTES);
    assert_int_equal(pixels[16 * PATCH_BYTES], 255); /* not touched */
    burin_arena_close(&arena);
}

SPEC(nothing_packed_is_nothing_but_empty_items)
{
    int32_t begin[9];
    assert_int_equal(burin_patches_pack(NULL, 0, &vision, 8, NULL, NULL, begin), 0);
    for (int i = 0; i < 9; i++)
        assert_int_equal(begin[i], 0);
}
