#include "runtime/plan/fit.h"
#include "tests/support/test.h"

#include <string.h>

static const int64_t KIB = 1024, MIB = 1024 * 1024, GIB = 1024 * 1024 * 1024;

static int64_t gib(double n)
{
    return (int64_t)(n * (double)GIB);
}

static int64_t pages(const struct burin_fit *fit)
{
    int64_t n = -1;
    assert_int_equal(burin_fit_pages(fit, &n, NULL), BURIN_OK);
    return n;
}

/* ---- V: segments and granules ------------------------------------------------------- */

SPEC(V1_each_segment_rounds_up_by_itself)
{
    struct burin_fit fit = {
        .limit = 10 * GIB, .n_segments = 64, .page_bytes = 32 * KIB, .granule = 2 * MIB
    };
    assert_int_equal(pages(&fit), 5120);

    fit.limit -= 1;
    assert_int_equal(pages(&fit), 5056);
    assert_int_equal(fit.limit - 5056 * 64 * 32 * KIB, 134217727);

    fit.n_segments = 1;
    fit.page_bytes = 2 * MIB;
    assert_int_equal(pages(&fit), 5119);
}

SPEC(V2_the_granule_is_what_the_device_says)
{
    struct burin_fit fit = {
        .limit = 10 * GIB - 1, .n_segments = 64, .page_bytes = 32 * KIB, .granule = 4 * MIB
    };
    assert_int_equal(pages(&fit), 4992); /* 39 granules of 4 MiB a segment */

    fit.granule = 1;
    assert_int_equal(pages(&fit), 5119);
}

SPEC(V3_less_than_a_granule_a_segment_is_refused)
{
    struct burin_fit fit = {
        .limit = 128 * MIB - 1, .n_segments = 64, .page_bytes = 32 * KIB, .granule = 2 * MIB
    };
    struct burin_error err;
    int64_t n;

    assert_int_equal(burin_fit_pages(&fit, &n, &err), BURIN_ENOMEM);

    assert_int_equal(n, 0);
    assert_non_null(strstr(err.message, "room for 134217727 bytes, below one granule"));
    fit.fixed = fit.limit + 1;
    assert_int_equal(burin_fit_pages(&fit, &n, &err), BURIN_ENOMEM);
}

SPEC(the_pages_that_fit_lack_nothing_and_one_more_does)
{
    for (int64_t limit = 3 * MIB; limit < 20 * MIB; limit += 77777) {
        const struct burin_fit fit = { .limit = limit,
                                       .fixed = 1000,
                                       .graphs = 300,
                                       .state = 70,
                                       .n_segments = 3,
                                       .page_bytes = 5000,
                                       .granule = 65536 };
        const int64_t n = pages(&fit);
        assert_int_equal(burin_fit_short(&fit, n), 0);
        assert_true(burin_fit_short(&fit, n + 1) > 0);
    }
}

/* ---- B: a 24 GB laptop, KV before and behind the graphs ------------------------------- */

/* Qwen3.8-27B in NVFP4 with NVFP4 KV on 23.46 GiB: what the report of the failure says. */
enum { TOKEN_BYTES = 18432, PAGE = 64, STATE_BYTES = 153944064 };

static struct burin_fit laptop(double share, double graphs)
{
    return (struct burin_fit){ .limit = (int64_t)((double)gib(23.46) * share),
                               .fixed = gib(19.57),
                               .graphs = gib(graphs),
                               .n_segments = 1,
                               .page_bytes = (int64_t)TOKEN_BYTES * PAGE,
                               .granule = 1 };
}

static struct burin_fit laptop_of_ours(double graphs)
{
    struct burin_fit fit = laptop(0.98, graphs);
    fit.state = STATE_BYTES;
    return fit;
}

static void assert_about(double value, double expected, double within)
{
    if (value < expected - within || value > expected + within)
        fail_msg("%f is not %f +- %f", value, expected, within);
}

SPEC(B1_the_limit_is_a_share_of_the_total)
{
    assert_about((double)laptop(0.98, 0).limit / (double)GIB, 22.9908, 0.0001);
    assert_about((double)laptop(0.97, 0).limit / (double)GIB, 22.7562, 0.0001);
}

SPEC(B2_what_the_other_engine_gave_to_KV_is_the_room_under_its_estimate)
{
    const struct burin_fit high = laptop(0.98, 0.46), low = laptop(0.97, 0.46);
    assert_about((double)burin_fit_room(&high) / (double)GIB, 2.9608, 0.0001);
    assert_about((double)burin_fit_room(&low) / (double)GIB, 2.7262, 0.0001);
}

SPEC(B3_its_tokens_cost_21151_to_21155_bytes_and_ours_18432)
{
    assert_in_range((int64_t)(2.97 * (double)GIB / 150745), 21119, 21191);
    assert_in_range((int64_t)(2.73 * (double)GIB / 138588), 21119, 21191);
    assert_int_equal(16 * 2 * 4 * (256 / 2 + 256 / 16), TOKEN_BYTES);
}

/* Capture then takes more than was estimated, when nothing is left to take it from. */
SPEC(B4_KV_first_is_short_by_15_to_128_MiB_when_the_graphs_are_captured)
{
    const struct burin_fit estimate = laptop(0.98, 0.46);
    const int64_t kv = pages(&estimate);
    const struct burin_fit least = laptop(0.98, 0.4748), most = laptop(0.98, 0.585);

    assert_in_range(burin_fit_short(&least, kv), 14 * MIB, 16 * MIB);
    assert_in_range(burin_fit_short(&most, kv), 126 * MIB, 128 * MIB);
}

SPEC(B5_KV_last_cannot_fail_and_holds_156845_to_163266_tokens)
{
    const struct burin_fit least = laptop_of_ours(0.4748), most = laptop_of_ours(0.585);

    assert_in_range(pages(&least) * PAGE, 163264 - PAGE, 163266);
    assert_in_range(pages(&most) * PAGE, 156845 - PAGE, 156845);
}

SPEC(B6_graphs_of_600_MiB_leave_more_than_the_124000_tokens_asked_for)
{
    const struct burin_fit fit = laptop_of_ours(0.60);
    const int64_t asked = (124000 + PAGE - 1) / PAGE;

    assert_int_equal(burin_fit_short(&fit, asked), 0);
    assert_in_range(pages(&fit) * PAGE, 155971 - PAGE, 155971);

    const struct burin_fit theirs = laptop(0.98, 0.60);
    assert_about((double)burin_fit_room(&theirs) / (double)GIB, 2.8208, 0.0001);
    assert_about((double)burin_fit_room(&theirs) / 21155, 143172, 100);
}

SPEC(B7_graphs_of_a_GiB_still_leave_124000_tokens_of_ours_and_graphs_of_1_15_do_not)
{
    const int64_t asked = (124000 + PAGE - 1) / PAGE;
    const struct burin_fit one = laptop_of_ours(1.0);
    assert_in_range(pages(&one) * PAGE, 132669 - PAGE, 132669);
    assert_int_equal(burin_fit_short(&one, asked), 0);

    const struct burin_fit more = laptop_of_ours(1.15);
    assert_true(burin_fit_short(&more, asked) > 0);

    const struct burin_fit theirs = laptop(0.98, 1.0);
    assert_true((double)burin_fit_room(&theirs) / 21155 < 124000);
    assert_about((double)burin_fit_room(&theirs) / 21155, 122870, 100);
}

/* ---- C ------------------------------------------------------------------------------- */

SPEC(C4_graphs_taken_for_nothing_are_given_to_KV_once_too_often)
{
    struct burin_fit fit = { .limit = gib(160.52),
                             .fixed = gib(100),
                             .graphs = 15 * GIB,
                             .n_segments = 1,
                             .page_bytes = MIB,
                             .granule = 2 * MIB };
    const int64_t right = pages(&fit);
    fit.graphs = 0;

    assert_int_equal((pages(&fit) - right) * fit.page_bytes, 15 * GIB);
}

SPEC(C6_devices_that_must_agree_take_the_least_number_of_pages_and_say_whose_it_is)
{
    int binding;
    assert_int_equal(
            burin_fit_agree((const int64_t[]){ 900, 850, 1000, 850 }, 4, &binding), 850);
    assert_int_equal(binding, 1);
}
