#include "runtime/plan/encoder.h"
#include "runtime/plan/size.h"
#include "tests/runtime/plan/gpu.h"

/* The report's model: 630 patches a frame of 70 soft tokens, 2520 a picture of 280, 768 values
 * a patch in bf16. */
static const int budgets[7] = { 70, 140, 280, 560, 1120, 2240, 4096 };
enum { FRAME = 70, PICTURE = 280, PATCH_VALUES = 768, ONE_HOT = 163840 };

static const struct burin_program *image = &vision_programs[2];

static struct burin_input packed_bf16(void)
{
    struct burin_input input = vision_image_inputs[0];
    input.dtype = BURIN_BF16;
    return input;
}

static int64_t packed_bytes(const struct burin_input *input, int n_soft)
{
    const struct burin_params params = { 0 };
    const int n[BURIN_N_EXTENTS] = { [BURIN_SOFT] = n_soft };
    return (int64_t)burin_input_bytes(input, &params, n);
}

static int64_t arena_of(int n_soft)
{
    const struct burin_params params = { 0 };
    const int n[BURIN_N_EXTENTS] = { [BURIN_SOFT] = n_soft };
    return (int64_t)burin_arena_bytes(image, &params, n);
}

static int largest_run(int64_t bytes, int step)
{
    const struct burin_params params = { 0 };
    return burin_run_largest(image, &params, bytes, step, 1 << 20);
}

/* ---- A: what a run of items reads ----------------------------------------------------- */

SPEC(A4_graphs_from_70_to_4096_are_made_for_58_items)
{
    int n;
    assert_int_equal(burin_run_items(FRAME, 70, 4096, 0, &n, NULL), BURIN_OK);
    assert_int_equal(n, 58);
}

SPEC(A5_a_graph_holds_as_many_items_as_its_own_budget_has_room_for)
{
    static const int rows[7] = { 1, 2, 4, 8, 16, 32, 58 };
    for (int i = 0; i < 7; i++) {
        const struct burin_run_limits limits = burin_run_limits(budgets[i], FRAME, PATCHES);
        assert_int_equal(limits.n_items, rows[i]);
        assert_int_equal(limits.n_rows, PATCHES * budgets[i]);
    }
}

SPEC(A6_rows_of_a_whole_picture_take_440_MiB_where_packed_ones_take_112)
{
    static const int64_t dense[7] = { 967680,   3870720,   15482880, 30965760,
                                      61931520, 123863040, 224501760 };
    const struct burin_input input = packed_bf16();
    int64_t dense_sum = 0, packed_sum = 0;
    for (int i = 0; i < 7; i++) {
        const int rows = burin_run_limits(budgets[i], FRAME, PATCHES).n_items;
        const int wide = budgets[i] < PICTURE ? budgets[i] : PICTURE;
        const int64_t theirs = (int64_t)rows * PATCHES * wide * PATCH_VALUES * 2;
        const int64_t ours = packed_bytes(&input, budgets[i]);
        assert_int_equal(theirs, dense[i]);
        assert_true(ours <= theirs);
        dense_sum += theirs;
        packed_sum += ours;
    }
    assert_int_equal(dense_sum, 461583360);
    assert_int_equal(packed_sum, 117586944);
}

SPEC(A7_packed_inputs_are_one_buffer_of_the_largest_budget_and_half_of_it_as_bytes)
{
    static const int64_t packed[7] = { 967680,   1935360,  3870720, 7741440,
                                       15482880, 30965760, 56623104 };
    const struct burin_input input = packed_bf16();
    for (int i = 0; i < 7; i++)
        assert_int_equal(packed_bytes(&input, budgets[i]), packed[i]);

    struct burin_plan_request request = gpu_request(4 * GIB);
    request.images_given = true;
    request.n_frames = 32;
    request.graphs = graphs_of("encode_image=70,140,280,560,1120,2240,4096");
    const struct burin_plan plan = gpu_plan(&request);
    const int64_t begins = (4097 * 4 + 63) / 64 * 64;
    assert_int_equal(owner_bytes(&plan, "inputs"), 56623104 / 2 + begins);
}

SPEC(A10_a_run_of_4096_holds_14_pictures_or_58_of_the_smallest_items)
{
    struct burin_item items[60];
    const struct burin_run_limits limits = burin_run_limits(4096, FRAME, PATCHES);
    int n;
    for (int i = 0; i < 60; i++)
        items[i] = (struct burin_item){ PICTURE, PATCHES * PICTURE };
    assert_int_equal(burin_run_take(&limits, items, 60, &n, NULL), BURIN_OK);
    assert_int_equal(n, 14);

    for (int i = 0; i < 60; i++)
        items[i] = (struct burin_item){ FRAME, PATCHES * FRAME };
    assert_int_equal(burin_run_take(&limits, items, 60, &n, NULL), BURIN_OK);
    assert_int_equal(n, 58);

    struct burin_plan_request request = gpu_request(4 * GIB);
    request.images_given = true; /* neither pictures nor frames */
    assert_int_equal(gpu_plan(&request).params.value[BURIN_MAX_SOFT], 0);
}

/* All runs of a request: each takes one item at least and none is above a limit. */
static int runs_of(const struct burin_item *items, int n_items, int n_soft)
{
    const struct burin_run_limits limits = burin_run_limits(n_soft, FRAME, PATCHES);
    int n_runs = 0;
    for (int done = 0; done < n_items; n_runs++) {
        int n, soft = 0, rows = 0;
        assert_int_equal(
                burin_run_take(&limits, items + done, n_items - done, &n, NULL), BURIN_OK);
        assert_true(n > 0 && n <= limits.n_items);
        for (int i = done; i < done + n; i++) {
            soft += items[i].n_soft;
            rows += items[i].n_rows;
        }
        assert_true(soft <= limits.n_soft && rows <= limits.n_rows);
        done += n;
    }
    return n_runs;
}

SPEC(A11_more_frames_than_a_run_has_room_for_are_several_runs)
{
    static struct burin_item items[58 * 32];
    for (int i = 0; i < 58 * 32; i++)
        items[i] = (struct burin_item){ FRAME, PATCHES * FRAME };
    assert_int_equal(runs_of(items, 58 * 32, 4096), 32);
    assert_int_equal(runs_of(items, 58 * 32, 70), 58 * 32);
}

SPEC(A12_more_items_than_the_smallest_graph_has_tokens_are_refused)
{
    int n;
    struct burin_error err;
    assert_int_equal(burin_run_items(FRAME, 70, 4096, 70, &n, NULL), BURIN_OK);
    assert_int_equal(burin_run_items(FRAME, 70, 4096, 71, &n, &err), BURIN_EUSAGE);
    assert_non_null(strstr(err.message, "71 items in a run of 70 soft tokens"));
}

SPEC(an_item_above_a_limit_is_told_with_both_numbers)
{
    const struct burin_run_limits limits = burin_run_limits(140, FRAME, PATCHES);
    const struct burin_item wide = { 141, 1269 }, tall = { 140, 1261 };
    struct burin_error err;
    int n;
    assert_int_equal(burin_run_take(&limits, &wide, 1, &n, &err), BURIN_ELIMIT);
    assert_string_equal(
            err.message, "an item of 141 soft tokens is above the 140 of a run");
    assert_int_equal(burin_run_take(&limits, &tall, 1, &n, &err), BURIN_ELIMIT);
    assert_string_equal(err.message, "an item of 1261 rows is above the 1260 of a run");
    assert_int_equal(burin_run_take(&limits, &wide, 0, &n, &err), BURIN_OK);
}

/* ---- D: the chunk that another engine guessed, and ours beside it ------------------------- */

/* From free memory at the moment of the request: patches, free, total, table of positions. */
static int64_t guessed_budget(int64_t free, int64_t total)
{
    return free / 2 < total / 10 ? free / 2 : total / 10;
}

static int64_t guessed_chunk(int64_t patches, int64_t free, int64_t total, int64_t table)
{
    const int64_t budget = guessed_budget(free, total);
    const int64_t cost = patches * 4 * table * 8;
    if (patches <= 0 || budget <= 0 || cost <= 0)
        return 1;
    return budget / cost > 1 ? budget / cost : 1;
}

/* Items of so many patches that an arena of those bytes holds: a constant, and 0 where not one
 * fits, which is refused when it is planned. */
static int64_t our_chunk(int patches, int64_t bytes)
{
    const int n_soft = patches / PATCHES;
    return n_soft > 0 ? largest_run(bytes, n_soft) / n_soft : 0;
}

SPEC(D1_to_D5_the_cases_of_the_report_and_what_the_same_bytes_hold_of_ours)
{
    assert_int_equal(guessed_chunk(280, 3 * GIB, 22 * GIB, 10240), 17);
    assert_int_equal(17 * 280 * 2 * 10240 * 8, 779878400);
    assert_int_equal(guessed_chunk(280, 60 * GIB, 80 * GIB, 10240), 93);
    assert_int_equal(guessed_chunk(0, 60 * GIB, 80 * GIB, 10240), 1);
    assert_int_equal(guessed_chunk(280, 60 * GIB, 80 * GIB, 0), 1);
    assert_int_equal(guessed_chunk(280, 0, 22 * GIB, 10240), 1);

    /* 279 patches are 31 soft tokens. A gather of positions takes no bytes. */
    assert_int_equal(our_chunk(279, guessed_budget(3 * GIB, 22 * GIB)), 375);
    assert_int_equal(our_chunk(279, guessed_budget(60 * GIB, 80 * GIB)), 2004);
    assert_int_equal(our_chunk(279, 0), 0);
}

SPEC(D6_to_D9_frames_and_pictures_as_the_released_model_has_them)
{
    assert_int_equal(guessed_chunk(630, 3 * GIB, 22 * GIB, 10240), 7);
    assert_int_equal(guessed_chunk(630, 60 * GIB, 80 * GIB, 10240), 41);
    assert_int_equal(guessed_chunk(2520, 3 * GIB, 22 * GIB, 10240), 1);
    assert_int_equal(guessed_chunk(2520, 60 * GIB, 80 * GIB, 10240), 10);

    assert_int_equal(our_chunk(630, guessed_budget(3 * GIB, 22 * GIB)), 166);
    assert_int_equal(our_chunk(630, guessed_budget(60 * GIB, 80 * GIB)), 887);
    assert_int_equal(our_chunk(2520, guessed_budget(3 * GIB, 22 * GIB)), 41);
    assert_int_equal(our_chunk(2520, guessed_budget(60 * GIB, 80 * GIB)), 221);
}

SPEC(D10_a_chunk_of_one_broke_the_promise_where_ours_holds_ten)
{
    const int64_t budget = guessed_budget(3 * GIB, 22 * GIB);
    assert_int_equal(guessed_chunk(10080, 3 * GIB, 22 * GIB, 10240), 1);
    assert_true((int64_t)10080 * ONE_HOT > budget); /* 1651507200 */

    assert_int_equal(our_chunk(10080, budget), 10);
    assert_true(arena_of(10 * 1120) <= budget);
}

SPEC(D11_to_D13_without_memory_the_guess_was_one_and_ours_is_refused)
{
    assert_int_equal(guessed_chunk(280, 1, 22 * GIB, 10240), 1);
    assert_int_equal(guessed_chunk(-5, 3 * GIB, 22 * GIB, 10240), 1);
    assert_int_equal(guessed_chunk(280, 3 * GIB, 9, 10240), 1);

    assert_int_equal(our_chunk(279, guessed_budget(1, 22 * GIB)), 0);
    assert_int_equal(our_chunk(-5, guessed_budget(3 * GIB, 22 * GIB)), 0);
    assert_int_equal(our_chunk(279, guessed_budget(3 * GIB, 9)), 0);
}

/* ---- E: what a run costs --------------------------------------------------------------- */

static int64_t cost(int64_t linear, int64_t quadratic, int items, int64_t patches, bool all)
{
    const int64_t squares = patches * patches * quadratic;
    return linear * items * patches + (all ? squares * items : squares);
}

SPEC(E1_58_frames_cost_561254400_bytes)
{
    assert_int_equal(cost(PATCH_BYTES, 0, 58, 630, true), 561254400);

    assert_int_equal(arena_of(58 * FRAME), 561254400);
}

/* 12 heads of f32 scores: one at a time, or all alive. Attention here keeps none, and a size
 * that grows with a square has no place in the tables. */
SPEC(E2_scores_that_were_kept_would_add_a_square)
{
    assert_int_equal(
            cost(PATCH_BYTES, 48, 58, 630, true) - cost(PATCH_BYTES, 0, 58, 630, true),
            1104969600);
    assert_int_equal(
            cost(PATCH_BYTES, 48, 58, 630, false) - cost(PATCH_BYTES, 0, 58, 630, false),
            19051200);

    assert_int_equal(arena_of(2 * 58 * FRAME), 2 * arena_of(58 * FRAME));
}

SPEC(E3_an_arena_of_64_MiB_holds_six_frames)
{
    assert_int_equal(64 * MIB / (630 * PATCH_BYTES), 6);

    assert_int_equal(largest_run(64 * MIB, FRAME) / FRAME, 6);
}

SPEC(E4_an_arena_below_one_item_is_refused_with_the_number_that_would_do)
{
    struct burin_plan_request request = gpu_request(4 * GIB);
    assert_int_equal(largest_run(8 * MIB, FRAME), 0);
    request.encoder_arena = 8 * MIB;
    assert_non_null(
            strstr(gpu_refusal(&request, BURIN_ENOMEM),
                   "--encoder-arena 8388608 is too little for encode_image: its smallest "
                   "item, 70 soft tokens, takes 9676800 bytes"));

    request.encoder_arena = 9676800;
    const struct burin_plan plan = gpu_plan(&request);
    assert_int_equal(plan.programs[2].n_eager, 70);
    assert_int_equal(plan.programs[2].graphs.n, 1);
}

SPEC(an_encoder_s_arena_caps_its_budgets_at_whole_items)
{
    struct burin_plan_request request = gpu_request(4 * GIB);
    request.encoder_arena = 64 * MIB;
    const struct burin_plan plan = gpu_plan(&request);
    assert_int_equal(plan.programs[2].n_eager, 6 * 70);
    assert_int_equal(plan.programs[2].graphs.n, 4); /* 70, 140, 280, 420 */
    assert_int_equal(plan.programs[2].graphs.sizes[3], 420);
    assert_true(owner_bytes(&plan, "arena") <= 64 * MIB);

    request.graphs = graphs_of("encode_image=70,560");
    assert_non_null(
            strstr(gpu_refusal(&request, BURIN_ENOMEM),
                   "--graphs encode_image=...,560 takes 77414400 bytes of arena, "
                   "--encoder-arena is "
                   "67108864: up to 420 soft tokens fit"));
    request.graphs = graphs_of("encode_image=69,140");
    assert_non_null(
            strstr(gpu_refusal(&request, BURIN_EUSAGE), "its smallest item has 70 soft"));
}

SPEC(E5_59_frames_in_a_run_of_58_are_58_and_one)
{
    struct burin_item items[59];
    const struct burin_run_limits limits = burin_run_limits(4096, FRAME, PATCHES);
    int first, second;
    for (int i = 0; i < 59; i++)
        items[i] = (struct burin_item){ FRAME, PATCHES * FRAME };
    burin_run_take(&limits, items, 59, &first, NULL);
    burin_run_take(&limits, items + first, 59 - first, &second, NULL);
    assert_int_equal(first, 58);
    assert_int_equal(second, 1);
}

SPEC(E6_where_the_tokens_fit_and_the_items_or_rows_do_not_they_are_split)
{
    struct burin_item items[100];
    for (int i = 0; i < 100; i++)
        items[i] = (struct burin_item){ 40, PATCHES * 40 };
    assert_int_equal(runs_of(items, 100, 4096), 2); /* 58 items are the most */

    for (int i = 0; i < 100; i++)
        items[i] = (struct burin_item){ 40, PATCHES * 160 };
    assert_int_equal(runs_of(items, 100, 4096), 4); /* 25 of them have all the rows */
}
