#include "runtime/app/stop.h"
#include "tests/support/test.h"

#include <string.h>

static char buffer[256];
static char written[256];

/* All of `text`, pushed `step` bytes at a time, as it would be written. */
static bool met_in(const struct burin_texts *texts, const char *text, size_t step)
{
    struct burin_stop stop = { .texts = texts, .buffer = buffer };
    const size_t n = strlen(text);
    size_t length = 0;
    for (size_t i = 0; i < n; i += step) {
        const size_t push = n - i < step ? n - i : step;
        const struct burin_span span = burin_stop_push(&stop, text + i, push);
        memcpy(written + length, span.at, span.length);
        length += span.length;
    }
    const struct burin_span rest = burin_stop_flush(&stop);
    memcpy(written + length, rest.at, rest.length);
    written[length + rest.length] = '\0';
    return stop.met;
}

SPEC(text_ends_before_the_first_stop_however_it_is_cut)
{
    const struct burin_texts texts = { 3, { "###", "\nUser:", "User: x" } };
    for (size_t step = 1; step < 30; step++) {
        assert_true(met_in(&texts, "one ##two\nUser: x###", step));
        assert_string_equal(written, "one ##two");
    }
}

SPEC(what_only_begins_like_a_stop_is_written_in_the_end)
{
    const struct burin_texts texts = { 1, { "aab" } };
    for (size_t step = 1; step < 8; step++) {
        assert_false(met_in(&texts, "aaaaa", step));
        assert_string_equal(written, "aaaaa");
        assert_true(met_in(&texts, "aaaab!", step));
        assert_string_equal(written, "aa");
    }
}

SPEC(without_stops_everything_is_written_at_once)
{
    const struct burin_texts none = { 0, { NULL } };
    struct burin_stop stop = { .texts = &none, .buffer = buffer };

    assert_int_equal(burin_stop_push(&stop, "abc", 3).length, 3);
}

SPEC(the_buffer_that_is_asked_for_is_enough)
{
    const struct burin_texts texts = { 2, { "abcdefgh", "x" } };
    assert_int_equal(burin_stop_room(&texts, 5), 8 + 5);
}
