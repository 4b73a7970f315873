#include "runtime/media/sample.h"
#include "tests/support/test.h"

#include <stdio.h>

static void assert_indices(
        struct burin_frame_sampling sampling,
        int64_t total,
        double fps,
        const char *expected)
{
    char text[512] = "";
    size_t used = 0;
    const int64_t n = burin_sample_count(sampling, total, fps);
    for (int64_t i = 0; i < n; i++)
        used += (size_t)snprintf(
                text + used, sizeof text - used, "%s%lld", i ? " " : "",
                (long long)burin_sample_index(sampling, i, n, total));
    assert_string_equal(text, expected);
}

SPEC(ten_frames_sampled_to_four)
{
    assert_indices((struct burin_frame_sampling){ .n_frames = 4 }, 10, 5, "0 2 5 7");
    assert_indices(
            (struct burin_frame_sampling){ .n_frames = 4, .spread = BURIN_SPREAD_ENDS }, 10,
            5, "0 3 6 9");
}

SPEC(a_clip_shorter_than_a_sampled_second_gives_its_first_frame)
{
    assert_indices((struct burin_frame_sampling){ .per_second = 1 }, 3, 5, "0");
    assert_indices((struct burin_frame_sampling){ .per_second = 1 }, 11, 5, "0 5");
}

SPEC(a_clip_with_too_few_frames_gives_all_of_them)
{
    assert_indices((struct burin_frame_sampling){ .n_frames = 8 }, 7, 5, "0 1 2 3 4 5 6");
    assert_int_equal(
            burin_sample_count((struct burin_frame_sampling){ .n_frames = 32 }, 31, 10),
            31);
}

SPEC(a_single_frame_is_enough)
{
    assert_indices((struct burin_frame_sampling){ .n_frames = 32 }, 1, 24, "0");
    assert_indices(
            (struct burin_frame_sampling){ .n_frames = 1, .spread = BURIN_SPREAD_ENDS }, 9,
            24, "0");
}
