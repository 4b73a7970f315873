#include "runtime/plan/size.h"
#include "tests/runtime/plan/tiny_model.h"
#include "tests/support/test.h"

static const struct burin_program *const step = &tiny_programs[0];

static struct burin_params params_of(int threads, int max_pages)
{
    struct burin_params params = { { 0 } };
    params.value[BURIN_THREADS] = threads;
    params.value[BURIN_MAX_PAGES] = max_pages;
    return params;
}

SPEC(a_size_is_the_sum_of_its_terms_and_a_zero_factor_ends_it)
{
    const struct burin_size size = {
        .terms = { { .factor = 7 },
                   { .factor = 3, .power = { [BURIN_THREADS] = 2, [BURIN_MAX_PAGES] = 1 } },
                   { .factor = 0 },
                   { .factor = 1000 } },
    };
    const struct burin_params params = params_of(5, 11);

    assert_int_equal(burin_size_at(&size, &params), 7 + 3 * 25 * 11);
}

SPEC(an_arena_is_what_is_carried_and_the_larger_phase)
{
    const struct burin_params params = params_of(3, 1);
    int n[BURIN_N_EXTENTS] = { [BURIN_TOKENS] = 10, [BURIN_OUTPUTS] = 1 };

    assert_int_equal(burin_arena_bytes(step, &params, n), 1920 + 3 * 256 + 4480);

    n[BURIN_OUTPUTS] = 10;
    assert_int_equal(burin_arena_bytes(step, &params, n), 1920 + 40960);
}

SPEC(an_output_lies_behind_what_is_carried)
{
    const struct burin_params params = params_of(3, 1);
    const int n[BURIN_N_EXTENTS] = { [BURIN_TOKENS] = 10, [BURIN_OUTPUTS] = 7 };

    assert_int_equal(burin_output_offset(step, 0, &params, n), 1920 + 7 * 64);
}

SPEC(inputs_lie_one_behind_another_at_multiples_of_64)
{
    const struct burin_params params = params_of(1, 13);
    const int n[BURIN_N_EXTENTS] = {
        [BURIN_TOKENS] = 10, [BURIN_SEQUENCES] = 2, [BURIN_OUTPUTS] = 3
    };

    assert_int_equal(burin_input_bytes(&tiny_inputs[1], &params, n), 4 * 2 * 13);
    assert_int_equal(burin_input_offset(step, 1, &params, n), 64);
    assert_int_equal(burin_input_offset(step, 2, &params, n), 64 + 128);
    assert_int_equal(burin_inputs_bytes(step, &params, n), 64 + 128 + 64);
}

SPEC(what_does_not_fit_an_int64_stays_at_the_largest)
{
    const struct burin_size huge = { .terms = { { .factor = INT64_MAX / 2,
                                                  .power = { [BURIN_THREADS] = 3 } } } };
    const struct burin_linear linear = { .fixed = huge, .slope = huge };
    const struct burin_params params = params_of(5, 1);

    assert_int_equal(burin_size_at(&huge, &params), INT64_MAX);
    assert_int_equal(burin_linear_at(&linear, &params, 9), INT64_MAX);
    assert_int_equal(burin_linear_at(&linear, &params, 0), INT64_MAX);
}
