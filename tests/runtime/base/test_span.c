/* runtime/base/span.h and put.h: text with a length, and text made in pieces. */
#include "runtime/base/put.h"
#include "runtime/base/span.h"
#include "tests/support/test.h"

#include <string.h>

static struct burin_span of(const char *text)
{
    return burin_span_of(text);
}

SPEC(spans_compare_as_texts_do)
{
    assert_true(burin_span_is(of("abc"), "abc"));
    assert_false(burin_span_is(of("ab"), "abc"));
    assert_true(burin_span_is(of(NULL), ""));
    assert_true(burin_span_ends(of("x.gguf"), ".gguf"));
    assert_false(burin_span_ends(of("guf"), ".gguf"));
    assert_true(burin_span_compare(of("ab"), of("abc")) < 0);
    assert_true(burin_span_compare(of("b"), of("abc")) > 0);
    assert_true(burin_span_compare(of(""), of("")) == 0);
    assert_true(burin_span_compare((struct burin_span){ "a\0b", 3 }, of("a")) > 0);
}

SPEC(quoted_text_is_printable_and_of_bounded_length)
{
    assert_string_equal(burin_quote(of("blk.0")).text, "\"blk.0\"");
    assert_string_equal(
            burin_quote((struct burin_span){ "a\0\"\\\x1b\xff", 6 }).text,
            "\"a\\x00\\x22\\x5c\\x1b\\xff\"");
    char longer[1000];
    for (size_t length = 0; length < sizeof longer; length++) {
        memset(longer, length % 2 ? 'x' : '\n', length);
        const struct burin_quoted quoted =
                burin_quote((struct burin_span){ longer, length });
        assert_true(memchr(quoted.text, '\0', sizeof quoted.text) != NULL);
        assert_int_equal(quoted.text[strlen(quoted.text) - 1], '"');
    }
}

SPEC(what_is_shown_has_its_begin_and_its_end)
{
    assert_string_equal(burin_show(of("models/żółw.gguf")).text, "models/żółw.gguf");
    assert_string_equal(burin_show(of("a\nb\033[2J\xc5")).text, "a\\x0ab\\x1b[2J\\xc5");
    assert_string_equal(burin_show(of("")).text, "");

    static char path[100000];
    const char *const fills[] = { "x", "\033", "ż", "\xc5" };
    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++)
        for (size_t length = 230; length < sizeof path; length = length * 5 / 4) {
            const size_t size = strlen(fills[i]);
            for (size_t at = 0; at < sizeof path; at += size)
                memcpy(path + at, fills[i], at + size <= sizeof path ? size : 1);
            memcpy(path, "begin/", 6);
            memcpy(path + length - 5, "/end", 5);

            const struct burin_shown shown = burin_show(of(path));

            assert_memory_equal(shown.text, "begin/", 6);
            assert_string_equal(shown.text + strlen(shown.text) - 4, "/end");
            assert_true(strlen(shown.text) > 200 && strlen(shown.text) < sizeof shown.text);
        }
}

SPEC(a_piece_that_does_not_fit_is_left_out_as_a_whole)
{
    char bytes[8];
    struct burin_put text = { bytes, sizeof bytes, 0 };
    burin_put(&text, "%d-", 12);
    burin_put(&text, "%s", "toolong");
    burin_put(&text, "abcd");
    assert_string_equal(bytes, "12-abcd");
    assert_int_equal(text.used, 7);
    burin_put(&text, "x");
    assert_string_equal(bytes, "12-abcd");
}
