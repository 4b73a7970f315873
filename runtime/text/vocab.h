/* runtime/text/vocab.h -- A BPE vocabulary as its file states it: what a GGUF file and a
 * tokenizer.json have in common. A tokenizer is made from it (tokenizer.h), and then it is
 * closed.
 *
 * Texts    Tokens and merges are as the vocabulary spells them (enum burin_spelling); contents
 *          of added tokens are plain text. All of them are views into the source.
 * Memory   The lists come from vocab.arena. A gguf or checkpoint must outlive the vocab; the text of a
 *          tokenizer.json is copied. At most 4 times the source and 64 MiB.
 * Threads  One thread at a time.
 * Errors   BURIN_EFORMAT bytes that break the format, BURIN_EMISMATCH a well-formed tokenizer
 *          of a kind that we do not run (its name is in the message: nothing is guessed),
 *          BURIN_EMISSING a file or a key, BURIN_ELIMIT, BURIN_ENOMEM. */
#ifndef BURIN_TEXT_VOCAB_H
#define BURIN_TEXT_VOCAB_H

#include "runtime/base/arena.h"
#include "runtime/base/span.h"
#include "runtime/base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct burin_checkpoint;
struct burin_gguf;

/* How tokens stand for text. */
enum burin_spelling {
    BURIN_SPELLED_NOT_SAID,
    BURIN_SPELLED_BYTES, /* a character for each byte, in an alphabet of 256 (GPT-2) */
    BURIN_SPELLED_TEXT,  /* the text itself, with U+2581 for a space (SentencePiece) */
};

enum burin_token_kind {
    BURIN_TOKEN_NONE,    /* no token has this id */
    BURIN_TOKEN_NORMAL,  /* made by merging */
    BURIN_TOKEN_BYTE,    /* <0xE2>: one byte of a character that no token begins from */
    BURIN_TOKEN_ADDED,   /* cut from the text before anything else */
    BURIN_TOKEN_SPECIAL, /* an added token with a meaning of its own: <|im_end|> */
};

struct burin_vocab_token {
    struct burin_span text;
    enum burin_token_kind kind;
    bool in_model; /* merges may make it */
};

struct burin_vocab_merge {
    struct burin_span left;
    struct burin_span right;
};

/* The flags are those of tokenizer.json. */
struct burin_vocab_added {
    int32_t id;
    struct burin_span content;
    bool special;
    bool normalized;  /* looked for after normalizing */
    bool single_word; /* not beside a letter, a digit or an underscore */
    bool lstrip;      /* takes the white space before it */
    bool rstrip;      /* and after it */
};

/* How a text falls into pieces before merging: each step splits the pieces of the last. */
enum burin_split_kind {
    BURIN_SPLIT_PATTERN, /* at matches of a regular expression in Oniguruma's syntax */
    BURIN_SPLIT_DIGIT,   /* each numeric character is a piece */
    BURIN_SPLIT_DIGITS,  /* each run of them */
};

struct burin_split {
    enum burin_split_kind kind;
    struct burin_span pattern;
    bool keep_matches; /* as pieces */
    bool keep_gaps;    /* what lies between them */
};

enum { BURIN_MAX_SPLITS = 8, BURIN_MAX_PREFIX = 4 };

struct burin_vocab {
    int32_t n_tokens; /* one more than the largest id */
    struct burin_vocab_token *tokens;
    size_t n_merges;
    struct burin_vocab_merge *merges; /* the most urgent first */
    int n_added;
    struct burin_vocab_added *added;
    int n_splits;
    struct burin_split splits[BURIN_MAX_SPLITS];
    enum burin_spelling spelling;
    bool byte_fallback; /* a character that is no token falls into its bytes' */
    bool nfc;           /* normalize to NFC first */
    bool ignore_merges; /* a piece that is a token is that token, whatever the merges */
    int32_t unknown;    /* stands for what has no token; -1: it vanishes before merging */
    bool fuse_unknown;  /* one for a run of them */
    int n_prefix;       /* ids that begin every text, as the model was trained */
    int32_t prefix[BURIN_MAX_PREFIX];
    int32_t eos; /* -1 where the source does not say */

    struct burin_arena arena; /* private */
    size_t most_bytes;        /* private: of the arena */
};

/* The byte that the text <0xE2> means; -1 for any other. */
int burin_token_byte(struct burin_span text);

/* From the keys tokenizer.ggml.*. */
enum burin_status burin_vocab_from_gguf(
        struct burin_vocab *vocab, const struct burin_gguf *gguf, struct burin_error *err);

/* From the file tokenizer.json, or from its text. */
enum burin_status burin_vocab_from_json_file(
        struct burin_vocab *vocab, const char *path, struct burin_error *err);
enum burin_status burin_vocab_from_json(
        struct burin_vocab *vocab, struct burin_span text, struct burin_error *err);

/* The one that weights bring: a GGUF file in its keys, others in a tokenizer.json beside them.
 * Without that file *found is false, and nothing has failed. */
enum burin_status burin_vocab_from_checkpoint(
        struct burin_vocab *vocab,
        const struct burin_checkpoint *checkpoint,
        bool *found,
        struct burin_error *err);

/* Closing a zeroed or closed vocab does nothing. */
void burin_vocab_close(struct burin_vocab *vocab);

#endif
