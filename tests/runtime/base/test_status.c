/* runtime/base/status.h: a message, whatever went into it. */
#include "runtime/base/status.h"

#include "tests/support/test.h"

#include <string.h>

static struct burin_error err;

SPEC(foreign_bytes_reach_a_message_as_text_that_no_terminal_obeys)
{
    burin_fail(
            &err, BURIN_EFORMAT, "%s:\n  is odd",
            "a\033[31mb\r\xff\xc2\x9b\xe2\x80\xae\x7f");

    assert_string_equal(
            err.message, "a\\x1b[31mb\\x0d\\xff\\xc2\\x9b\\xe2\\x80\\xae\\x7f:\n  is odd");
}

SPEC(letters_of_any_script_stay_as_they_are_and_once_is_as_good_as_twice)
{
    const char *text = "żółw/模型/модель 🦙 \\x1b";
    burin_fail(&err, BURIN_EIO, "%s", text);
    assert_string_equal(err.message, text);

    burin_fail(&err, BURIN_EIO, "%s", err.message);

    assert_string_equal(err.message, text);
}

SPEC(a_message_that_is_too_long_ends_with_dots_behind_a_whole_character)
{
    static char text[2 * BURIN_ERROR_TEXT];
    const char *const pieces[] = { "x", "\033", "ż", "模" };
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        const size_t size = strlen(pieces[i]);
        for (size_t at = 0; at + size < sizeof text; at += size)
            memcpy(text + at, pieces[i], size);
        text[sizeof text - 1] = 0;

        burin_fail(&err, BURIN_EIO, "%s", text);

        const size_t length = strlen(err.message);
        assert_in_range(length, BURIN_ERROR_TEXT - 10, BURIN_ERROR_TEXT - 1);
        assert_string_equal(err.message + length - 3, "...");
        assert_null(strchr(err.message, '\033'));
    }
}
