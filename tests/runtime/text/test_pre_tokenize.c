/* runtime/text/pre_tokenize.h: how texts fall into pieces, and which patterns are refused. */
#include "runtime/text/pre_tokenize.h"

#include "runtime/text/patterns.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct burin_error err;

static struct burin_split pattern(const char *text)
{
    return (struct burin_split){ BURIN_SPLIT_PATTERN, burin_span_of(text), true, true };
}

/* The pieces of a text, each in brackets. */
static const char *pieces(
        const struct burin_split *splits, int n, const char *text, const char *subject)
{
    static char shown[1024];
    static char region[256 * 1024] __attribute__((aligned(16)));
    static struct burin_splits codes;
    struct burin_arena arena = { 0 };
    struct burin_walk walk;
    size_t used = 0;

    assert_true(burin_splits_bytes(splits, n) <= sizeof region);
    if (burin_splits_open(&codes, splits, n, region, &err))
        fail_msg("%s", err.message);
    assert_int_equal(burin_walk_open(&walk, &codes, &arena, &err), BURIN_OK);
    burin_walk_text(&walk, text, subject, strlen(text));
    shown[0] = '\0';
    for (;;) {
        struct burin_span piece;
        if (burin_walk_next(&walk, &piece, &err))
            fail_msg("%s", err.message);
        if (!piece.at)
            break;
        used += (size_t)snprintf(
                shown + used, sizeof shown - used, "[%.*s]", (int)piece.length, piece.at);
        assert_true(used < sizeof shown);
    }
    burin_arena_close(&arena);
    burin_splits_close(&codes);
    return shown;
}

static const char *by(struct burin_split split, const char *text)
{
    return pieces(&split, 1, text, text);
}

SPEC(gpt2s_pattern_leaves_one_space_to_the_word_behind_it)
{
    const struct burin_split gpt2 = pattern(BURIN_GPT2_PATTERN);
    assert_string_equal(
            by(gpt2, "don't a  b\n\n c \n"), "[don]['t][ a][ ][ b][\n\n][ c][ \n]");
    assert_string_equal(by(gpt2, "DON'T x12!?"), "[DON]['][T][ x][12][!?]");
    assert_string_equal(by(gpt2, "a\n\n b"), "[a][\n\n][ b]");
    assert_string_equal(by(gpt2, "a \n b"), "[a][ \n][ b]");
    assert_string_equal(by(gpt2, "   "), "[   ]");
    assert_string_equal(by(gpt2, ""), "");
}

SPEC(a_split_sees_its_piece_and_nothing_around_it)
{
    const struct burin_split steps[] = {
        { BURIN_SPLIT_DIGIT, { 0 }, true, true },
        pattern(BURIN_GPT2_PATTERN),
    };
    assert_string_equal(pieces(steps, 2, "a 12", "a 12"), "[a][ ][1][2]");
    assert_string_equal(pieces(steps, 2, "  1  ", "  1  "), "[  ][1][  ]");
}

SPEC(digits_are_all_that_is_numeric_in_unicode)
{
    const struct burin_split digit = { BURIN_SPLIT_DIGIT, { 0 }, true, true };
    const struct burin_split digits = { BURIN_SPLIT_DIGITS, { 0 }, true, true };
    assert_string_equal(by(digit, "x10²½Ⅷ３"), "[x][1][0][²][½][Ⅷ][３]");
    assert_string_equal(by(digits, "x10²½y3"), "[x][10²½][y][3]");
}

SPEC(matches_or_gaps_are_dropped_when_a_step_says_so)
{
    struct burin_split split = pattern("\\s+");
    split.keep_matches = false;
    assert_string_equal(by(split, " a b  c "), "[a][b][c]");
    split.keep_matches = true;
    split.keep_gaps = false;
    assert_string_equal(by(split, " a b  c "), "[ ][ ][  ][ ]");
}

SPEC(an_empty_match_splits_unless_it_follows_a_match_at_once)
{
    assert_string_equal(by(pattern("\\s*"), "ab  c"), "[a][b][  ][c]");
    assert_string_equal(by(pattern("(?=b)"), "abba"), "[a][b][ba]");
    assert_string_equal(by(pattern("x*"), "日本"), "[日][本]");
}

SPEC(without_steps_a_text_is_one_piece)
{
    assert_string_equal(pieces(NULL, 0, "a b 1", "a b 1"), "[a b 1]");
    assert_string_equal(pieces(NULL, 0, "", ""), "");
}

SPEC(patterns_look_at_stand_ins_and_pieces_are_of_the_text)
{
    const struct burin_split letters = pattern("\\p{L}+");
    assert_string_equal(pieces(&letters, 1, "ab12", "1cd2"), "[a][b1][2]");
}

SPEC(a_megabyte_of_spaces_does_not_exhaust_anything)
{
    const struct burin_split llama3 = pattern(
            "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+"
            "|\\s+(?!\\S)|\\s+");
    static char region[256 * 1024] __attribute__((aligned(16)));
    enum { N = 1000000 };
    struct burin_splits codes;
    struct burin_arena arena = { 0 };
    struct burin_walk walk;
    struct burin_span piece;
    char *text = malloc(N + 1);
    memset(text, ' ', N);
    text[N] = 'x';

    for (int interpreted = 0; interpreted < 2; interpreted++) {
        assert_int_equal(burin_splits_open(&codes, &llama3, 1, region, &err), BURIN_OK);
        codes.codes[0].has_jit = codes.codes[0].has_jit && !interpreted;
        assert_int_equal(burin_walk_open(&walk, &codes, &arena, &err), BURIN_OK);
        burin_walk_text(&walk, text, text, N + 1);

        assert_int_equal(burin_walk_next(&walk, &piece, &err), BURIN_OK);
        assert_int_equal(piece.length, N - 1);
        assert_int_equal(burin_walk_next(&walk, &piece, &err), BURIN_OK);
        assert_int_equal(piece.length, 2);
        burin_splits_close(&codes);
    }
    assert_true(arena.obtained < 256 * 1024);
    burin_arena_close(&arena);
    free(text);
}

SPEC(a_pattern_that_runs_away_is_stopped)
{
    const struct burin_split split = pattern("(?:a+)+(?:a+)+(?:a+)+b(?=c)|zzzb");
    static char region[256 * 1024] __attribute__((aligned(16)));
    char text[4002];
    struct burin_splits codes;
    struct burin_arena arena = { 0 };
    struct burin_walk walk;
    struct burin_span piece;
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = 'b';

    assert_int_equal(burin_splits_open(&codes, &split, 1, region, &err), BURIN_OK);
    assert_int_equal(burin_walk_open(&walk, &codes, &arena, &err), BURIN_OK);
    burin_walk_text(&walk, text, text, sizeof text);

    assert_int_equal(burin_walk_next(&walk, &piece, &err), BURIN_ELIMIT);
    assert_non_null(strstr(err.message, "the tokenizer's pattern gives up at byte 0"));
    burin_splits_close(&codes);
    burin_arena_close(&arena);
}

SPEC(what_oniguruma_reads_otherwise_is_refused_by_name)
{
    static const char *const refused[] = {
        "\\w+",          "\\bx",       "\\h",      "\\R",        "\\X",
        "\\K",           "\\1",        "\\x{41}",  "\\u3040",    "\\A",
        "\\z",           "\\v",        "^a",       "a$",         "[[:alpha:]]",
        "[a&&b]",        "[a[b]]",     "[]a]",     "\\p{Greek}", "\\pL",
        "\\p{L",         "\\P{Latin}", "(?i)a",    "(?<n>a)",    "(?#x)",
        "(?m:a)",        "(*FAIL)",    "a{,3}",    "a{x",        "a{2}+",
        "(?i:\xC3\xA9)", "(?i:ss)",    "(?i:aST)", "\\",         "[a\\",
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        err = (struct burin_error){ 0 };
        if (!burin_pattern_check(burin_span_of(refused[i]), &err))
            fail_msg("%s is let through", refused[i]);
        assert_non_null(strstr(err.message, "pattern"));
    }
}

SPEC(patterns_of_the_known_tokenizers_are_let_through)
{
    static const char *const known[] = {
        BURIN_GPT2_PATTERN,
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}",
        "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{M}]+",
        "[!\"#$%&'()*+,\\-./"
        ":;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?",
        "[\xE4\xB8\x80-\xE9\xBE\xA5]+",
        "(?>a|b)++(?<=x)(?<!y)(?!z){0,2}\\p{^L}\\P{Han}.",
        "(?i:[sdmt]|ll|ve|re)",
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (burin_pattern_check(burin_span_of(known[i]), &err))
            fail_msg("%s: %s", known[i], err.message);
}

SPEC(a_broken_pattern_is_refused_with_its_place)
{
    static char region[256 * 1024] __attribute__((aligned(16)));
    struct burin_splits codes;
    const struct burin_split split = pattern("a(b");
    assert_int_equal(burin_splits_open(&codes, &split, 1, region, &err), BURIN_EFORMAT);
    assert_non_null(strstr(err.message, "is wrong at byte 3"));
}
