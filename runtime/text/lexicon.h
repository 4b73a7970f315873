/* runtime/text/lexicon.h -- Which bytes a token stands for, and which token stands for bytes.
 *
 * Memory   A region of the caller's, burin_lexicon_bytes() long.
 * Threads  Read-only once filled. */
#ifndef BURIN_TEXT_LEXICON_H
#define BURIN_TEXT_LEXICON_H

#include "runtime/base/span.h"
#include "runtime/text/vocab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct burin_lexicon {
    int32_t n_tokens;
    uint32_t *begins; /* n_tokens + 1: where a token's bytes begin in `bytes` */
    char *bytes;
    uint8_t *kinds; /* enum burin_token_kind */
    enum burin_spelling spelling;
    bool *is_whole; /* a piece with these bytes is this token, whatever the merges make */
    uint32_t mask;
    int32_t *slots; /* by a hash of the bytes: an id, or -1 */
    size_t longest;
    size_t n_bytes;
};

/* The bytes behind a token's text, written to `bytes` unless that is NULL; returns how many. A
 * text that the spelling cannot make (a character beyond the alphabet, a plain space where
 * U+2581 stands for it) stands for itself, and is not made by merging. */
size_t burin_spelled_bytes(
        enum burin_spelling spelling,
        struct burin_span text,
        char *bytes,
        bool *is_spelled);

/* The same for text to be encoded in place of tokens: U+2581 is a space. Returns the length. */
size_t burin_put_spaces(char *text, size_t length);

enum { BURIN_LONGEST_TOKEN = 16 * 1024 };

/* What a lexicon of this vocabulary takes; a multiple of 64. BURIN_ELIMIT where a token has more
 * than 16 KiB or all of them more than 1 GiB. */
enum burin_status burin_lexicon_bytes(
        const struct burin_vocab *vocab, size_t *bytes, struct burin_error *err);

/* Fill `region`, aligned to 64; is_whole is left to the caller. BURIN_EFORMAT where two normal
 * tokens are the same. */
enum burin_status burin_lexicon_fill(
        struct burin_lexicon *lexicon,
        const struct burin_vocab *vocab,
        void *region,
        struct burin_error *err);

static inline struct burin_span burin_lexicon_token(
        const struct burin_lexicon *lexicon, int32_t id)
{
    const uint32_t begin = lexicon->begins[id];
    return (struct burin_span){ lexicon->bytes + begin, lexicon->begins[id + 1] - begin };
}

/* The token with these bytes, made of `head` and, behind it, `tail`; -1 where there is none.
 * Tokens that stand for themselves are not found. */
int32_t burin_lexicon_find(
        const struct burin_lexicon *lexicon,
        struct burin_span head,
        struct burin_span tail);

/* The same for a piece of text, and only where is_whole. */
int32_t burin_lexicon_whole(const struct burin_lexicon *lexicon, struct burin_span piece);

#endif
