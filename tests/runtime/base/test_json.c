#include "runtime/base/json.h"
#include "tests/support/test.h"

#include <math.h>
#include <string.h>

static char text[1024];

static const char *quoted(const char *bytes, size_t length)
{
    struct burin_json json;
    FILE *out = fmemopen(text, sizeof text, "w");
    burin_json_begin(&json, out);
    burin_json_text(&json, NULL, bytes, length);
    fclose(out);
    return text;
}

SPEC(text_is_escaped_and_utf_8_is_kept)
{
    assert_string_equal(
            quoted("a\"\\\n\t\x01\x7F", SIZE_MAX), "\"a\\\"\\\\\\n\\t\\u0001\\u007f\"");
    assert_string_equal(
            quoted("h\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80", SIZE_MAX),
            "\"h\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\"");
    assert_string_equal(quoted("a\0b", 3), "\"a\\u0000b\"");
}

SPEC(bytes_that_are_not_utf_8_become_the_replacement_character)
{
    static const char *const wrong[] = {
        "\x80",         "\xC3",         "\xC0\xAF",         "\xE2\x82",
        "\xED\xA0\x80", "\xE0\x80\x80", "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        quoted(wrong[i], SIZE_MAX);
        assert_non_null(strstr(text, "\\ufffd"));
        for (const char *c = text; *c; c++)
            assert_true((unsigned char)*c < 0x80);
    }
}

SPEC(members_are_separated_and_every_bracket_is_closed)
{
    struct burin_json json;
    FILE *out = fmemopen(text, sizeof text, "w");
    burin_json_begin(&json, out);
    burin_json_open(&json, NULL, '{');
    burin_json_integer(&json, "n", -7);
    burin_json_open(&json, "rows", '[');
    burin_json_open(&json, NULL, '{');
    burin_json_bool(&json, "yes", true);
    burin_json_real(&json, "x", 0.5);
    burin_json_close(&json);
    burin_json_integer(&json, NULL, 2);
    burin_json_close(&json);
    burin_json_open(&json, "none", '[');
    burin_json_close(&json);
    burin_json_close(&json);
    fclose(out);

    assert_string_equal(
            text, "{\n  \"n\": -7,\n  \"rows\": [\n    {\"yes\": true, \"x\": 0.5},\n    "
                  "2\n  ],\n"
                  "  \"none\": []\n}\n");
}

SPEC(what_json_cannot_say_is_null)
{
    struct burin_json json;
    FILE *out = fmemopen(text, sizeof text, "w");
    burin_json_begin(&json, out);
    burin_json_open(&json, NULL, '[');
    burin_json_real(&json, NULL, NAN);
    burin_json_real(&json, NULL, -INFINITY);
    burin_json_text(&json, NULL, NULL, 0);
    burin_json_close(&json);
    fclose(out);

    assert_string_equal(text, "[\n  null,\n  null,\n  null\n]\n");
}
