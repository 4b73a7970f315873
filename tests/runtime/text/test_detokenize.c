/* runtime/text/detokenize.h: ids to text, never half a character. */
#include "tests/runtime/text/tokenizers.h"

/* A vocabulary of the 256 bytes, of which each is a token, and one special token, 256. */
static struct burin_tokenizer *byte_tokenizer(void)
{
    static struct burin_vocab_token tokens[257];
    static char spelled[256][3];
    static struct burin_vocab_added added = { 256, { "<end>", 5 }, .special = true };
    struct burin_vocab vocab = {
        .n_tokens = 257,
        .tokens = tokens,
        .n_added = 1,
        .added = &added,
        .unknown = -1,
        .eos = -1,
    };
    int n = 0;
    for (int byte = 0; byte < 256; byte++) {
        const bool prints =
                (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
        const int c = prints ? byte : 0x100 + n++;
        size_t length = 1;
        if (c < 0x80) {
            spelled[byte][0] = (char)c;
        } else {
            spelled[byte][0] = (char)(0xC0 | c >> 6);
            spelled[byte][1] = (char)(0x80 | (c & 0x3F));
            length = 2;
        }
        tokens[byte] = (struct burin_vocab_token){ { spelled[byte], length },
                                                   BURIN_TOKEN_NORMAL,
                                                   true };
    }
    tokens[256] = (struct burin_vocab_token){ { "<end>", 5 }, BURIN_TOKEN_SPECIAL, false };
    return open_vocab(&vocab);
}

static void push_bytes(
        struct burin_tokenizer *tokenizer,
        const char *bytes,
        size_t n,
        char *text,
        size_t *length)
{
    struct burin_decoder decoder = { .tokenizer = tokenizer };
    *length = 0;
    for (size_t i = 0; i < n; i++)
        *length += burin_decoder_push(&decoder, (uint8_t)bytes[i], text + *length);
    *length += burin_decoder_flush(&decoder, text + *length);
}

static void assert_becomes(
        struct burin_tokenizer *tokenizer, const char *bytes, size_t n, const char *wanted)
{
    char text[256];
    size_t length;
    push_bytes(tokenizer, bytes, n, text, &length);
    if (length != strlen(wanted) || memcmp(text, wanted, length) != 0)
        fail_msg(
                "%s becomes %s", burin_quote((struct burin_span){ bytes, n }).text,
                burin_quote((struct burin_span){ text, length }).text);
}

SPEC(nothing_is_written_before_a_character_is_whole)
{
    struct burin_tokenizer *t = byte_tokenizer();
    struct burin_decoder decoder = { .tokenizer = t };
    char text[64];

    assert_int_equal(burin_decoder_push(&decoder, 0xF0, text), 0);
    assert_int_equal(burin_decoder_push(&decoder, 0x9F, text), 0);
    assert_int_equal(burin_decoder_push(&decoder, 0xA6, text), 0);
    assert_int_equal(burin_decoder_push(&decoder, 0x99, text), 4);
    assert_memory_equal(text, "\xF0\x9F\xA6\x99", 4);
    assert_int_equal(burin_decoder_flush(&decoder, text), 0);
    close_tokenizer(t);
}

/* One for each maximal subpart, as String::from_utf8_lossy. */
SPEC(what_is_no_utf8_becomes_replacement_characters)
{
    struct burin_tokenizer *t = byte_tokenizer();
#define R "\xEF\xBF\xBD"
    assert_becomes(
            t,
            "a\x80"
            "b",
            3, "a" R "b");
    assert_becomes(t, "\x80\x80", 2, R R);
    assert_becomes(t, "\xF0\x9F\xA6", 3, R);
    assert_becomes(
            t,
            "\xF0\x9F\xA6"
            "a",
            4, R "a");
    assert_becomes(t, "\xF0\x9F\xF0\x9F\xA6\x99", 6, R "\xF0\x9F\xA6\x99");
    assert_becomes(
            t,
            "\xE1\x80\xE2\xF0\x91\x92\xF1\xBF"
            "A",
            9, R R R R "A");
    assert_becomes(t, "\xED\xA0\x80", 3, R R R);
    assert_becomes(t, "\xC0\xAF\xE0\x80\xBF", 5, R R R R R);
    assert_becomes(
            t,
            "\xF4\x91\x92\x93\xFF"
            "A\x80\xBF"
            "B",
            9, R R R R R "A" R R "B");
    close_tokenizer(t);
}

/* However random bytes fall into tokens, the text is that of all the bytes at once. */
SPEC(pushed_one_by_one_or_at_once_the_text_is_the_same)
{
    struct burin_tokenizer *t = byte_tokenizer();
    const struct burin_tokenizer *small = small_tokenizer();
    const size_t room = burin_decoder_room(small);
    uint32_t random = 7;

    for (int round = 0; round < 2000; round++) {
        struct burin_arena arena = { 0 };
        struct burin_span whole;
        struct burin_decoder decoder = { .tokenizer = small, .keep_specials = true };
        int32_t ids[40];
        char bytes[2048];
        char text[8192];
        char wanted[8192];
        size_t n_bytes = 0;
        size_t length = 0;
        size_t n_wanted;

        for (int i = 0; i < 40; i++) {
            random = random * 1664525u + 1013904223u;
            ids[i] = (int32_t)((random >> 8) % (i % 3 ? 260 : 2009));
            const struct burin_span token = burin_token_bytes(small, ids[i]);
            memcpy(bytes + n_bytes, token.at, token.length);
            n_bytes += token.length;
            const size_t written = burin_decoder_push(&decoder, ids[i], text + length);
            assert_true(written <= room);
            length += written;
        }
        length += burin_decoder_flush(&decoder, text + length);
        push_bytes(t, bytes, n_bytes, wanted, &n_wanted);
        ASSERT_OK(burin_decode(small, ids, 40, true, &arena, &whole, &err));

        assert_int_equal(length, n_wanted);
        assert_memory_equal(text, wanted, length);
        assert_int_equal(whole.length, length);
        assert_memory_equal(whole.at, text, length);
        burin_arena_close(&arena);
    }
    close_tokenizer(t);
}

SPEC(special_tokens_are_written_when_asked_for_and_do_not_end_a_character)
{
    struct burin_tokenizer *t = byte_tokenizer();
    struct burin_arena arena = { 0 };
    struct burin_span text;
    const int32_t ids[] = { 'a', 256, 0xC3, 256, 0xA9 };

    ASSERT_OK(burin_decode(t, ids, 5, false, &arena, &text, &err));
    assert_string_equal(text.at, "a\xC3\xA9");
    ASSERT_OK(burin_decode(t, ids, 5, true, &arena, &text, &err));
    assert_string_equal(text.at, "a<end>" R "<end>" R);
    burin_arena_close(&arena);
    close_tokenizer(t);
}

SPEC(a_decoder_that_was_flushed_begins_anew)
{
    struct burin_tokenizer *t = byte_tokenizer();
    struct burin_decoder decoder = { .tokenizer = t };
    char text[64];
    burin_decoder_push(&decoder, 0xE2, text);

    assert_int_equal(burin_decoder_flush(&decoder, text), 3);
    assert_int_equal(burin_decoder_flush(&decoder, text), 0);
    assert_int_equal(burin_decoder_push(&decoder, 'x', text), 1);
    close_tokenizer(t);
    close_tokenizer(small_tokenizer());
}
