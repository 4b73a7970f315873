/* runtime/text/tokenizer.h -- Text to token ids: BPE over bytes, or over characters with bytes
 * to fall back to (SentencePiece), with the ids of the reference implementation (Hugging Face
 * tokenizers).
 *
 *     struct burin_vocab vocab = { 0 };
 *     status = burin_vocab_from_gguf(&vocab, &gguf, err);          // or ..._from_json_file()
 *     status = burin_tokenizer_plan(&vocab, &bytes, err);
 *     memory = ... bytes, aligned to 64, for as long as the tokenizer is used ...
 *     status = burin_tokenizer_open(&tokenizer, &vocab, memory, bytes, err);
 *     burin_vocab_close(&vocab);
 *     status = burin_encode(tokenizer, text, BURIN_PLAIN, &arena, &ids, &n_ids, err);
 *
 * Text     UTF-8, with NULs if it likes. Other bytes are refused with their place: a token
 *          stands for bytes, but pieces are found by characters, and the reference sees only
 *          valid text.
 * Memory   All of a tokenizer lies in the `bytes` that its plan says; only the machine code of
 *          its patterns (at most 64 KiB each) is PCRE2's own. Encoding works in the caller's
 *          arena: 5 to 40 bytes a byte of text, the most for one word of a megabyte, and 25
 *          more where it is normalized.
 * Time     O(n log n) for every text.
 * Threads  Read-only once open: any number may encode at once, each with its own arena. */
#ifndef BURIN_TEXT_TOKENIZER_H
#define BURIN_TEXT_TOKENIZER_H

#include "runtime/base/arena.h"
#include "runtime/base/span.h"
#include "runtime/base/status.h"
#include "runtime/text/vocab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct burin_tokenizer;

/* The bytes that a tokenizer of this vocabulary takes; never more than
 * burin_plan_tokenizer_bytes() assumes from the number of tokens. */
enum burin_status burin_tokenizer_plan(
        const struct burin_vocab *vocab, size_t *bytes, struct burin_error *err);

/* `memory` is `bytes` long, as planned, and aligned to 64. The vocab may be closed after.
 * BURIN_EFORMAT names a merge or a pattern that makes no sense. */
enum burin_status burin_tokenizer_open(
        struct burin_tokenizer **tokenizer,
        const struct burin_vocab *vocab,
        void *memory,
        size_t bytes,
        struct burin_error *err);

/* Gives PCRE2's machine code back; `memory` is the caller's. NULL is allowed. */
void burin_tokenizer_close(struct burin_tokenizer *tokenizer);

/* Whether "<|im_end|>" in a text is ten characters or a control token. */
enum burin_specials {
    BURIN_PLAIN,    /* text is text: for everything that a user typed */
    BURIN_SPECIALS, /* names of special tokens become them: for our own texts */
};

/* The ids of a text, without the tokenizer's prefix. They lie in `arena`, which holds nothing
 * else of this call afterwards. BURIN_EFORMAT names the first byte that is not UTF-8,
 * BURIN_ELIMIT where a pattern of the file gives up on this text. */
enum burin_status burin_encode(
        const struct burin_tokenizer *tokenizer,
        struct burin_span text,
        enum burin_specials specials,
        struct burin_arena *arena,
        int32_t **ids,
        size_t *n_ids,
        struct burin_error *err);

/* The id of an added token by its name, "<|im_end|>"; -1 where there is none. */
int32_t burin_token_named(const struct burin_tokenizer *tokenizer, struct burin_span name);

/* The bytes that a token stands for; empty for an id that no token has. They may end within a
 * character: to print, use detokenize.h. */
struct burin_span burin_token_bytes(const struct burin_tokenizer *tokenizer, int32_t id);
enum burin_token_kind burin_token_kind(const struct burin_tokenizer *tokenizer, int32_t id);

/* How an added token treats the white space beside it. */
void burin_token_strips(
        const struct burin_tokenizer *tokenizer, int32_t id, bool *left, bool *right);

struct burin_tokenizer_facts {
    int32_t n_tokens; /* one more than the largest id */
    size_t n_merges;
    int n_added;
    size_t longest; /* bytes of the longest token */
    int n_prefix;   /* ids that begin every text: bos */
    const int32_t *prefix;
    int32_t eos;   /* -1 where the file does not say */
    uint64_t hash; /* of tokens, merges and splits: the same tokenizer, the same hash */
};
struct burin_tokenizer_facts burin_tokenizer_facts(const struct burin_tokenizer *tokenizer);

#endif
