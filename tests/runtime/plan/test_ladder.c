#include "runtime/plan/ladder.h"
#include "tests/support/test.h"

#include <string.h>

static struct burin_ladder doubled(int smallest, int largest)
{
    struct burin_ladder ladder;
    struct burin_error err = { 0 };
    if (burin_ladder_double(&ladder, smallest, largest, &err))
        fail_msg("%s", err.message);
    return ladder;
}

static struct burin_ladder padded(int most, int percent)
{
    struct burin_ladder ladder;
    struct burin_error err = { 0 };
    if (burin_ladder_padded(&ladder, most, percent, &err))
        fail_msg("%s", err.message);
    return ladder;
}

static void assert_sizes(const struct burin_ladder *ladder, const int *sizes, int n)
{
    assert_int_equal(ladder->n, n);
    assert_memory_equal(ladder->sizes, sizes, (size_t)n * sizeof *sizes);
}

SPEC(A1_an_encoder_s_graphs_double_from_its_smallest_and_end_with_the_largest)
{
    const struct burin_ladder ladder = doubled(70, 4096);

    assert_sizes(&ladder, (const int[]){ 70, 140, 280, 560, 1120, 2240, 4096 }, 7);
}

SPEC(A2_a_largest_that_doubling_meets_stands_once)
{
    const struct burin_ladder ladder = doubled(64, 4096);

    assert_sizes(&ladder, (const int[]){ 64, 128, 256, 512, 1024, 2048, 4096 }, 7);
}

SPEC(A3_one_size_is_a_ladder_and_what_is_none_is_told_with_both_numbers)
{
    struct burin_ladder ladder = doubled(70, 70);
    struct burin_error err;
    assert_sizes(&ladder, (const int[]){ 70 }, 1);

    assert_int_equal(burin_ladder_double(&ladder, 0, 10, &err), BURIN_EUSAGE);
    assert_non_null(strstr(err.message, "from 0 to 10"));
    assert_int_equal(burin_ladder_double(&ladder, 70, 69, &err), BURIN_EUSAGE);
    assert_non_null(strstr(err.message, "from 70 to 69"));
}

SPEC(S4_sizes_rise_from_1_to_the_limit_and_no_run_is_padded_beyond_the_percentage)
{
    static const int percents[] = { 3, 10, 25, 50, 90, 99 };
    for (int p = 0; p < 6; p++)
        for (int most = 1; most <= 300; most += most < 80 ? 1 : 37) {
            struct burin_ladder ladder;
            if (burin_ladder_padded(&ladder, most, percents[p], NULL))
                continue; /* more than a ladder holds */
            assert_int_equal(ladder.sizes[0], 1);
            assert_int_equal(ladder.sizes[ladder.n - 1], most);
            for (int i = 1; i < ladder.n; i++)
                assert_true(ladder.sizes[i - 1] < ladder.sizes[i]);
            for (int n = 1; n <= most; n++) {
                const int size = burin_ladder_size(&ladder, n);
                assert_true(size >= n);
                assert_true((size - n) * 100 <= percents[p] * size);
            }
        }
}

/* The fewest sizes for 1 ... most, by trying each next size from below. */
static int fewest(int most, int percent)
{
    int n[301] = { 0, 1 };
    for (int size = 2; size <= most; size++) {
        n[size] = 1000;
        for (int below = 1; below < size; below++)
            if ((size - below - 1) * 100 <= percent * size && n[below] + 1 < n[size])
                n[size] = n[below] + 1;
    }
    return n[most];
}

SPEC(a_ladder_by_padding_has_no_size_too_many)
{
    static const int percents[] = { 0, 7, 25, 50 };
    for (int p = 0; p < 4; p++)
        for (int most = 1; most <= 200; most++)
            assert_int_equal(padded(most, percents[p]).n, fewest(most, percents[p]));
}

SPEC(sixty_four_sequences_padded_by_a_quarter_take_twelve_graphs)
{
    const struct burin_ladder ladder = padded(64, 25);

    assert_sizes(&ladder, (const int[]){ 1, 2, 3, 5, 7, 10, 14, 19, 26, 35, 47, 64 }, 12);
}

SPEC(without_padding_every_size_has_its_graph_as_far_as_a_ladder_holds_them)
{
    struct burin_ladder ladder;
    struct burin_error err;
    assert_int_equal(padded(BURIN_MAX_LADDER, 0).n, BURIN_MAX_LADDER);

    assert_int_equal(
            burin_ladder_padded(&ladder, BURIN_MAX_LADDER + 1, 0, &err), BURIN_EUSAGE);
    assert_non_null(strstr(err.message, "more than 256 graphs"));
    assert_int_equal(burin_ladder_padded(&ladder, 8, 100, &err), BURIN_EUSAGE);
    assert_non_null(strstr(err.message, "--graph-padding 100"));
}

SPEC(a_missing_size_is_served_by_the_next)
{
    const struct burin_ladder ladder = padded(8, 50);

    assert_sizes(&ladder, (const int[]){ 1, 3, 8 }, 3);
    assert_int_equal(burin_ladder_without(&ladder, 0), 3);
    assert_int_equal(burin_ladder_without(&ladder, 1), 8);
    assert_int_equal(burin_ladder_without(&ladder, 2), 0);
    assert_int_equal(burin_ladder_size(&ladder, 9), 0);
}

SPEC(a_list_is_rising_numbers)
{
    struct burin_ladder ladder;
    assert_int_equal(burin_ladder_parse(&ladder, "1,2,40 rest", 6, NULL), BURIN_OK);
    assert_sizes(&ladder, (const int[]){ 1, 2, 40 }, 3);

    static const char *const wrong[] = { "",    "0",           "1,",  ",1",  "2,1",
                                         "1,1", "1;2",         "-1",  "1 2", "+1",
                                         "x",   "99999999999", "1,,2" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(
                burin_ladder_parse(&ladder, wrong[i], strlen(wrong[i]), NULL),
                BURIN_EUSAGE);
}
