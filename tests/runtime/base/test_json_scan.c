/* runtime/base/json_scan.h: strict JSON, read where it lies. */
#include "runtime/base/json_scan.h"

#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static char text[1 << 16];
static struct burin_json_scan scan;
static struct burin_error err;

static enum burin_status begin(const char *json)
{
    snprintf(text, sizeof text, "%s", json);
    return burin_json_scan_begin(&scan, "x.json", text, strlen(text), &err);
}

/* All of it is one value. */
static enum burin_status check(const char *json)
{
    enum burin_status status = begin(json);
    if (!status)
        status = burin_json_skip(&scan, &err);
    if (!status)
        status = burin_json_end(&scan, &err);
    return status;
}

SPEC(valid_texts_pass)
{
    static const char *const rows[] = {
        "{}",
        "[]",
        " [ ] ",
        "0",
        "-0",
        "-1.5e+10",
        "1E5",
        "true",
        "false",
        "null",
        "\"\"",
        "\"\\u0000\\ud83d\\ude00\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        "[1,[2,{\"a\":[]}],3]",
        "\t\r\n {\"a\" : 1 , \"a\" : 2 } \n",
        "\"h\xc3\xa9 \xf0\x9f\x98\x80 \xed\x9f\xbf\"",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (check(rows[i]) != BURIN_OK)
            fail_msg("%s: %s", rows[i], err.message);
}

SPEC(anything_else_is_refused)
{
    static const char *const rows[] = {
        "",
        " ",
        "{",
        "}",
        "[",
        "]",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{a:1}",
        "{'a':1}",
        "{1:2}",
        "01",
        "-",
        "+1",
        "1.",
        ".5",
        "1e",
        "1e+",
        "0x10",
        "NaN",
        "Infinity",
        "tru",
        "nul",
        "True",
        "\"",
        "\"a",
        "\"\\\"",
        "\"\\x41\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\ud83d\"",
        "\"\\ud83d\\u0041\"",
        "\"\\ude00\"",
        "\"\n\"",
        "\"\x01\"",
        "[1]x",
        "{} {}",
        "[1]//",
        "\xef\xbb\xbf{}",
        "\"\xc3\"",
        "\"\x80\"",
        "\"\xc0\xaf\"",
        "\"\xed\xa0\x80\"",
        "\"\xf4\x90\x80\x80\"",
        "\"\xe0\x80\xaf\"",
        "\"\xff\"",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (check(rows[i]) != BURIN_EFORMAT)
            fail_msg("%s passed", rows[i]);
}

SPEC(nesting_has_a_limit)
{
    char deep[200] = { 0 };
    memset(deep, '[', BURIN_JSON_NESTING);
    memset(deep + BURIN_JSON_NESTING, ']', BURIN_JSON_NESTING);
    assert_int_equal(check(deep), BURIN_OK);
    memset(deep, '[', sizeof deep - 1);
    assert_int_equal(check(deep), BURIN_EFORMAT);
    assert_non_null(strstr(err.message, "JSON byte 64"));
}

SPEC(members_come_in_order_with_escapes_decoded)
{
    struct burin_span key;
    struct burin_span value;
    uint64_t number;
    bool more;
    assert_int_equal(
            begin("{\"a\\u00e9\\n\":\"\\ud83d\\ude00!\",\"n\":[7,18446744073709551615],"
                  "\"\":{}}"),
            0);
    size_t n_members = 0;
    assert_int_equal(burin_json_count(&scan, &n_members, &err), BURIN_OK);
    assert_int_equal(n_members, 3);

    assert_int_equal(burin_json_enter(&scan, '{', &err), BURIN_OK);
    assert_int_equal(burin_json_member(&scan, &key, &more, &err), BURIN_OK);
    assert_true(burin_span_is(key, "a\xc3\xa9\n"));
    assert_int_equal(burin_json_take_text(&scan, &value, &err), BURIN_OK);
    assert_true(burin_span_is(value, "\xf0\x9f\x98\x80!"));
    assert_int_equal(burin_json_member(&scan, &key, &more, &err), BURIN_OK);
    assert_int_equal(burin_json_enter(&scan, '[', &err), BURIN_OK);
    assert_int_equal(burin_json_element(&scan, &more, &err), BURIN_OK);
    assert_int_equal(burin_json_u64(&scan, &number, &err), BURIN_OK);
    assert_int_equal(number, 7);
    assert_int_equal(burin_json_element(&scan, &more, &err), BURIN_OK);
    assert_int_equal(burin_json_u64(&scan, &number, &err), BURIN_OK);
    assert_true(number == UINT64_MAX);
    assert_int_equal(burin_json_element(&scan, &more, &err), BURIN_OK);
    assert_false(more);
    assert_int_equal(burin_json_member(&scan, &key, &more, &err), BURIN_OK);
    assert_true(more);
    assert_int_equal(key.length, 0);
    assert_int_equal(burin_json_skip(&scan, &err), BURIN_OK);
    assert_int_equal(burin_json_member(&scan, &key, &more, &err), BURIN_OK);
    assert_false(more);
    assert_int_equal(burin_json_end(&scan, &err), BURIN_OK);
}

SPEC(a_whole_number_is_nothing_else)
{
    static const char *const rows[] = {
        "-1",
        "-0",
        "1.0",
        "1e3",
        "18446744073709551616",
        "99999999999999999999999",
        "007",
        "\"1\"",
        "null",
        "[1]",
        "",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t number = 42;
        assert_int_equal(begin(rows[i]), BURIN_OK);
        assert_int_equal(burin_json_u64(&scan, &number, &err), BURIN_EFORMAT);
        assert_int_equal(number, 42);
    }
}

SPEC(a_nul_behind_the_value_is_not_its_end)
{
    memcpy(text, "{}\0x", 4);
    assert_int_equal(burin_json_scan_begin(&scan, "x.json", text, 4, &err), BURIN_OK);
    assert_int_equal(burin_json_skip(&scan, &err), BURIN_OK);
    assert_int_equal(burin_json_end(&scan, &err), BURIN_EFORMAT);
}

SPEC(a_message_names_the_source_the_byte_and_what_is_there)
{
    assert_int_equal(check("{\"a\": nope}"), BURIN_EFORMAT);
    assert_string_equal(
            err.message, "x.json: JSON byte 6: \"nope}\", where null is wanted");
    assert_int_equal(check("[1"), BURIN_EFORMAT);
    assert_string_equal(
            err.message, "x.json: JSON byte 2: the end, where ',' or ']' is wanted");
}
