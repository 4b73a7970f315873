/* runtime/text/unicode.h and normalize.h. */
#include "runtime/base/utf8.h"
#include "runtime/text/normalize.h"
#include "runtime/text/unicode.h"

#include "tests/support/test.h"

#include <string.h>

static bool is_character(uint32_t c)
{
    return c < 0xD800 || (c > 0xDFFF && c < 0x110000);
}

SPEC(every_character_is_read_as_it_was_written)
{
    for (uint32_t c = 0; c < 0x110000; c++) {
        char bytes[4];
        size_t used;
        if (!is_character(c))
            continue;
        const size_t n = burin_utf8_put(bytes, c);
        const char *at = bytes;

        assert_int_equal(burin_utf8_look(bytes, n, &used), BURIN_UTF8_WHOLE);
        assert_int_equal(used, n);
        assert_int_equal(burin_utf8_next(&at), c);
        assert_ptr_equal(at, bytes + n);
        assert_int_equal(burin_utf8_last(bytes + n), c);
        for (size_t less = 1; less < n; less++)
            assert_int_equal(burin_utf8_look(bytes, less, &used), BURIN_UTF8_PARTIAL);
    }
}

SPEC(two_bytes_are_utf8_just_when_they_are_one_or_two_characters)
{
    for (int first = 0; first < 256; first++) {
        for (int second = 0; second < 256; second++) {
            const char bytes[2] = { (char)first, (char)second };
            const bool two_ascii = first < 0x80 && second < 0x80;
            const bool one =
                    first >= 0xC2 && first <= 0xDF && second >= 0x80 && second <= 0xBF;
            const size_t valid = burin_utf8_valid((struct burin_span){ bytes, 2 }, NULL);
            assert_int_equal(valid, two_ascii || one ? 2 : first < 0x80 ? 1 : 0);
        }
    }
}

SPEC(surrogates_overlong_forms_and_what_lies_beyond_are_broken_at_their_second_byte)
{
    static const char *const broken[] = { "\xED\xA0\x80", "\xED\xBF\xBF", "\xE0\x9F\xBF",
                                          "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80" };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        size_t used;
        assert_int_equal(
                burin_utf8_look(broken[i], strlen(broken[i]), &used), BURIN_UTF8_BROKEN);
        assert_int_equal(used, 1); /* the maximal subpart: Unicode 15, table 3-8 */
    }
}

SPEC(a_stand_in_has_as_many_bytes_as_what_it_stands_for_and_none_of_its_own)
{
    for (int i = 0; i < burin_n_stand_ins; i++) {
        const struct burin_stand_in *row = &burin_stand_ins[i];
        char bytes[4];
        char text[4];
        assert_true(row->first <= row->last);
        assert_true(i == 0 || row[-1].last < row->first);
        for (uint32_t c = row->first; c <= row->last; c++) {
            const size_t n = burin_utf8_put(text, c);
            bool has_stand_ins = false;
            assert_int_equal(burin_utf8_put(bytes, row->stand_in), n);
            burin_utf8_valid((struct burin_span){ text, n }, &has_stand_ins);
            assert_true(has_stand_ins);
            burin_put_stand_ins(text, n);
            assert_memory_equal(text, bytes, n);
            burin_utf8_valid((struct burin_span){ text, n }, &has_stand_ins);
            assert_false(has_stand_ins);
        }
    }
}

SPEC(classes_have_as_many_characters_as_the_reference_counts)
{
    int n_spaces = 0;
    int n_numeric = 0;
    int n_strippable = 0;
    for (uint32_t c = 0; c < 0x110000; c++) {
        n_spaces += burin_is_space(c);
        n_numeric += burin_is_numeric(c);
        n_strippable += burin_is_strippable(c);
    }
    assert_int_equal(n_spaces, 25);
    assert_int_equal(n_numeric, 1924);  /* char::is_numeric of Rust */
    assert_int_equal(n_strippable, 29); /* str.isspace of Python */
    assert_true(burin_is_word('_') && burin_is_word('a') && burin_is_word(0x0301));
    assert_false(burin_is_word('-') || burin_is_word(' ') || burin_is_word(0xB2));
}

static void assert_nfc(const char *text, const char *wanted)
{
    struct burin_arena arena = { 0 };
    struct burin_span composed;
    struct burin_error err = { 0 };
    assert_int_equal(burin_nfc(burin_span_of(text), &arena, &composed, &err), BURIN_OK);
    assert_int_equal(composed.length, strlen(wanted));
    assert_memory_equal(composed.at, wanted, composed.length);
    burin_arena_close(&arena);
}

SPEC(texts_are_composed)
{
    assert_nfc("", "");
    assert_nfc("plain", "plain");
    assert_nfc("e\xCC\x81", "\xC3\xA9");
    assert_nfc("a\xCC\x87\xCC\xA3", "\xE1\xBA\xA1\xCC\x87"); /* marks are ordered */
    assert_nfc("\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB", "\xED\x95\x9C"); /* Hangul */
    assert_nfc("\xE2\x84\xAB", "\xC3\x85");                 /* the Angstrom sign */
    assert_nfc("\xE0\xA5\x98", "\xE0\xA4\x95\xE0\xA4\xBC"); /* is not composed again */
    assert_nfc("\xEF\xAC\x81", "\xEF\xAC\x81");             /* a ligature stays */
}

SPEC(a_text_without_marks_is_its_own_composition_and_takes_no_memory)
{
    struct burin_arena arena = { 0 };
    struct burin_span composed;
    const struct burin_span text = burin_span_of("na\xC3\xAFve caf\xC3\xA9");

    assert_int_equal(burin_nfc(text, &arena, &composed, NULL), BURIN_OK);

    assert_ptr_equal(composed.at, text.at);
    assert_int_equal(arena.obtained, 0);
}
