/* runtime/text/detokenize.h -- Token ids to text, one token after another, never half a
 * character.
 *
 * Bytes that do not end a character yet are held back; bytes that are no UTF-8 become U+FFFD,
 * one for each maximal subpart (Unicode 3.9, as the reference does). What all pushes and the
 * flush write is what burin_decode() gives for all ids at once.
 *
 * Tokens of one byte (BURIN_TOKEN_BYTE) become U+FFFD one by one, as in the reference. It gives
 * up a whole run of them for one that is broken; here those that make characters stay, for
 * they were written before the broken one came.
 *
 * Memory   The decoder is a small struct of the caller's; nothing is allocated.
 * Threads  One decoder, one thread. */
#ifndef BURIN_TEXT_DETOKENIZE_H
#define BURIN_TEXT_DETOKENIZE_H

#include "runtime/base/arena.h"
#include "runtime/base/span.h"
#include "runtime/base/status.h"
#include "runtime/text/tokenizer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct burin_decoder {
    const struct burin_tokenizer *tokenizer;
    bool keep_specials; /* write the names of special tokens */

    uint8_t held[4]; /* private: the begin of a character */
    int n_held;
    bool holds_byte_tokens; /* private: they came as tokens of one byte */
};

/* The most bytes that one push or the flush can write. */
size_t burin_decoder_room(const struct burin_tokenizer *tokenizer);

/* Write what `id` makes certain; returns the number of bytes. An id that no token has writes
 * nothing. */
size_t burin_decoder_push(struct burin_decoder *decoder, int32_t id, char *text);

/* The text has ended: U+FFFD for what is held back, if anything. */
size_t burin_decoder_flush(struct burin_decoder *decoder, char *text);

/* All at once, into the arena, with a NUL behind it. */
enum burin_status burin_decode(
        const struct burin_tokenizer *tokenizer,
        const int32_t *ids,
        size_t n_ids,
        bool keep_specials,
        struct burin_arena *arena,
        struct burin_span *text,
        struct burin_error *err);

#endif
