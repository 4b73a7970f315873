#include "runtime/media/fit.h"
#include "tests/support/test.h"

static const int budgets[] = { 70, 140, 280, 560, 1120 };
enum { N_BUDGETS = 5 };

static struct burin_vision gemma(int max_soft)
{
    return (struct burin_vision){ .patch = 16, .pool = 3, .max_soft = max_soft };
}

static struct burin_grid fit(int max_soft, int width, int height)
{
    const struct burin_vision vision = gemma(max_soft);
    struct burin_grid grid = { 0, 0 };
    static struct burin_error err;
    if (burin_fit(&vision, width, height, &grid, &err))
        fail_msg("%d x %d at %d: %s", width, height, max_soft, err.message);
    return grid;
}

SPEC(sizes_are_those_of_the_reference)
{
    static const struct {
        int height, width;
        int side[N_BUDGETS][2]; /* height, width */
    } table[] = {
        { 50,
          50,
          { { 384, 384 }, { 528, 528 }, { 768, 768 }, { 1104, 1104 }, { 1584, 1584 } } },
        { 1080,
          1920,
          { { 288, 528 }, { 384, 720 }, { 576, 1056 }, { 816, 1488 }, { 1200, 2112 } } },
        { 3000,
          4000,
          { { 336, 432 }, { 480, 624 }, { 672, 912 }, { 960, 1296 }, { 1344, 1824 } } },
        { 100,
          10000,
          { { 48, 3360 }, { 48, 5664 }, { 48, 8016 }, { 96, 11328 }, { 144, 16032 } } },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        for (int k = 0; k < N_BUDGETS; k++) {
            const struct burin_grid grid = fit(budgets[k], table[i].width, table[i].height);
            assert_int_equal(grid.rows * 48, table[i].side[k][0]);
            assert_int_equal(grid.columns * 48, table[i].side[k][1]);
        }
}

SPEC(a_strip_has_as_many_soft_tokens_as_placeholders_and_never_more_than_the_cap)
{
    static const int strips[][4] = {
        /* width, height, budget, soft tokens */
        { 900, 3, 280, 280 },    { 3, 900, 280, 280 },   { 900, 3, 70, 70 },
        { 4000, 2, 1120, 1120 }, { 20000, 1, 280, 280 }, { 20000, 20, 280, 280 },
        { 65535, 1, 70, 70 },
    };
    for (size_t i = 0; i < sizeof strips / sizeof *strips; i++) {
        const int *strip = strips[i];
        assert_int_equal(burin_grid_soft(fit(strip[2], strip[0], strip[1])), strip[3]);
    }
}

SPEC(every_size_up_to_512_fits_every_budget)
{
    for (int k = 0; k < N_BUDGETS; k++)
        for (int width = 1; width <= 512; width++)
            for (int height = 1; height <= 512; height++) {
                const struct burin_grid grid = fit(budgets[k], width, height);
                assert_in_range(grid.rows, 1, budgets[k]);
                assert_in_range(burin_grid_soft(grid), 1, budgets[k]);
            }
}

SPEC(a_picture_without_pixels_is_refused)
{
    const struct burin_vision vision = gemma(280);
    struct burin_grid grid;
    struct burin_error err;
    assert_int_equal(burin_fit(&vision, 0, 7, &grid, &err), BURIN_ELIMIT);
    assert_string_equal(err.message, "a picture of 0 x 7 pixels has nothing to see");
}
