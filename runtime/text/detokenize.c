#include "runtime/text/detokenize.h"

#include "runtime/base/utf8.h"

#include <string.h>

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */
enum { REPLACEMENT = 3, MOST_HELD = 3 };

size_t burin_decoder_room(const struct burin_tokenizer *tokenizer)
{
    /* A broken byte becomes three bytes. */
    return REPLACEMENT * (burin_tokenizer_facts(tokenizer).longest + MOST_HELD);
}

/* Write what stands for `n` bytes that are no character. */
static size_t replace(const struct burin_decoder *decoder, size_t n, char *text)
{
    const size_t times = decoder->holds_byte_tokens ? n : 1;
    for (size_t i = 0; i < times; i++)
        memcpy(text + i * REPLACEMENT, replacement, REPLACEMENT);
    return times * REPLACEMENT;
}

/* Write the characters that `bytes` completes; what begins one is held. */
static size_t write_whole(
        struct burin_decoder *decoder, const char *bytes, size_t n, char *text)
{
    size_t written = 0;

    while (n > 0) {
        size_t used;
        const enum burin_utf8_state state = burin_utf8_look(bytes, n, &used);
        if (state == BURIN_UTF8_PARTIAL) {
            memmove(decoder->held, bytes, n);
            decoder->n_held = (int)n;
            return written;
        }
        if (state == BURIN_UTF8_WHOLE) {
            memcpy(text + written, bytes, used);
            written += used;
        } else {
            written += replace(decoder, used, text + written);
        }
        bytes += used;
        n -= used;
    }
    return written;
}

size_t burin_decoder_push(struct burin_decoder *decoder, int32_t id, char *text)
{
    struct burin_span bytes = burin_token_bytes(decoder->tokenizer, id);
    const enum burin_token_kind kind = burin_token_kind(decoder->tokenizer, id);
    size_t written = 0;

    if (kind == BURIN_TOKEN_NONE ||
        (kind == BURIN_TOKEN_SPECIAL && !decoder->keep_specials))
        return 0;
    if (decoder->holds_byte_tokens && kind != BURIN_TOKEN_BYTE)
        written = burin_decoder_flush(decoder, text);
    decoder->holds_byte_tokens = kind == BURIN_TOKEN_BYTE;
    /* At most 3 bytes are held: byte by byte until they are a character or none. */
    while (decoder->n_held > 0 && bytes.length > 0) {
        char joined[MOST_HELD + 1];
        const int n_held = decoder->n_held;
        memcpy(joined, decoder->held, (size_t)n_held);
        joined[n_held] = *bytes.at++;
        bytes.length--;
        decoder->n_held = 0;
        written += write_whole(decoder, joined, (size_t)n_held + 1, text + written);
    }
    return written + write_whole(decoder, bytes.at, bytes.length, text + written);
}

size_t burin_decoder_flush(struct burin_decoder *decoder, char *text)
{
    if (decoder->n_held == 0)
        return 0;
    const size_t n_held = (size_t)decoder->n_held;
    decoder->n_held = 0;
    return replace(decoder, n_held, text);
}

enum burin_status burin_decode(
        const struct burin_tokenizer *tokenizer,
        const int32_t *ids,
        size_t n_ids,
        bool keep_specials,
        struct burin_arena *arena,
        struct burin_span *text,
        struct burin_error *err)
{
    struct burin_decoder decoder = { .tokenizer = tokenizer,
                                     .keep_specials = keep_specials };
    size_t room = REPLACEMENT * MOST_HELD + 1;
    for (size_t i = 0; i < n_ids; i++)
        room += REPLACEMENT * burin_token_bytes(tokenizer, ids[i]).length;

    char *bytes = burin_arena_take(arena, room, 1, 1);
    if (!bytes)
        return burin_fail(err, BURIN_ENOMEM, "no memory to decode %zu tokens", n_ids);
    size_t length = 0;
    for (size_t i = 0; i < n_ids; i++)
        length += burin_decoder_push(&decoder, ids[i], bytes + length);
    length += burin_decoder_flush(&decoder, bytes + length);
    *text = (struct burin_span){ bytes, length };
    return BURIN_OK;
}
