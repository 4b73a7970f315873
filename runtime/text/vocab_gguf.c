#include "runtime/text/vocab_gguf.h"

#include "runtime/base/put.h"
#include "runtime/base/utf8.h"
#include "runtime/text/patterns.h"
#include "runtime/text/unicode.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* ---- tokenizer.ggml.pre ----------------------------------------------------------- */

#define LLAMA3                                                                             \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"               \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define QWEN2                                                                              \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"                    \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define QWEN35                                                                             \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}"            \
    "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* A GGUF file does not hold the steps, only a name for them, which llama.cpp gives to a
 * release's tokenizer.json. What the name means is what that tokenizer.json says. */
static const struct {
    const char *name;
    const char *pattern;
    bool digits; /* each digit apart, before the pattern */
    bool nfc;
    bool ignore_merges;
    bool adds_bos; /* where tokenizer.ggml.add_bos_token does not say */
} pre_tokenizers[] = {
    { "gpt-2", .pattern = BURIN_GPT2_PATTERN },
    { "smollm", .pattern = BURIN_GPT2_PATTERN, .digits = true },
    { "starcoder", .pattern = BURIN_GPT2_PATTERN, .digits = true },
    { "llama-bpe", .pattern = LLAMA3, .ignore_merges = true, .adds_bos = true },
    { "llama3", .pattern = LLAMA3, .ignore_merges = true, .adds_bos = true },
    { "llama-v3", .pattern = LLAMA3, .ignore_merges = true, .adds_bos = true },
    { "qwen2", .pattern = QWEN2, .nfc = true },
    { "deepseek-r1-qwen", .pattern = QWEN2, .nfc = true },
    { "qwen35", .pattern = QWEN35, .nfc = true },
};

static enum burin_status read_pre(
        struct burin_vocab *vocab,
        struct burin_span name,
        bool *adds_bos,
        struct burin_error *err)
{
    for (size_t i = 0; i < sizeof pre_tokenizers / sizeof *pre_tokenizers; i++) {
        if (!burin_span_is(name, pre_tokenizers[i].name))
            continue;
        if (pre_tokenizers[i].digits)
            vocab->splits[vocab->n_splits++] = (struct burin_split){
                .kind = BURIN_SPLIT_DIGIT,
                .keep_matches = true,
                .keep_gaps = true,
            };
        vocab->splits[vocab->n_splits++] = (struct burin_split){
            .kind = BURIN_SPLIT_PATTERN,
            .pattern = burin_span_of(pre_tokenizers[i].pattern),
            .keep_matches = true,
            .keep_gaps = true,
        };
        vocab->nfc = pre_tokenizers[i].nfc;
        vocab->ignore_merges = pre_tokenizers[i].ignore_merges;
        *adds_bos = pre_tokenizers[i].adds_bos;
        return BURIN_OK;
    }

    char known[256] = "";
    struct burin_put list = { known, sizeof known, 0 };
    for (size_t i = 0; i < sizeof pre_tokenizers / sizeof *pre_tokenizers; i++)
        burin_put(&list, "%s%s", i ? ", " : "", pre_tokenizers[i].name);
    return burin_fail(
            err, BURIN_EMISMATCH,
            "the tokenizer splits text as %s says (tokenizer.ggml.pre), which is not "
            "known; known are %s",
            burin_quote(name).text, known);
}

/* ---- Tokens and merges ------------------------------------------------------------- */

/* tokenizer.ggml.token_type */
enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5, BYTE = 6 };

static enum burin_status kind_of(
        const struct burin_vocab *vocab,
        int32_t id,
        int type,
        enum burin_token_kind *kind,
        struct burin_error *err)
{
    switch (type) {
    case BYTE:
        *kind = BURIN_TOKEN_BYTE;
        if (burin_token_byte(vocab->tokens[id].text) >= 0 &&
            vocab->spelling == BURIN_SPELLED_TEXT)
            return BURIN_OK;
        return burin_fail(
                err, BURIN_EFORMAT, "token %d is a byte, but called %s", id,
                burin_quote(vocab->tokens[id].text).text);
    case NORMAL:
        *kind = BURIN_TOKEN_NORMAL;
        return BURIN_OK;
    case UNKNOWN:
    case CONTROL:
        *kind = BURIN_TOKEN_SPECIAL;
        return BURIN_OK;
    case USER_DEFINED:
        *kind = BURIN_TOKEN_ADDED;
        return BURIN_OK;
    case UNUSED:
        *kind = BURIN_TOKEN_NONE;
        return BURIN_OK;
    default:
        return burin_fail(
                err, BURIN_EMISMATCH, "token %d is of type %d, which is not known", id,
                type);
    }
}

/* Gemma 4's converter calls some control tokens the authors' own, so that they are shown: it
 * is what the chat format makes of them that counts, and no user may type them. */
static bool is_marker(struct burin_span text)
{
    return text.length > 3 && text.at[0] == '<' && text.at[text.length - 1] == '>' &&
           (text.at[1] == '|' || text.at[text.length - 2] == '|');
}

/* What the authors defined has plain spaces in the file, where the model has U+2581. */
static enum burin_status mend_own(
        struct burin_vocab *vocab, struct burin_vocab_token *token, struct burin_error *err)
{
    const struct burin_span text = token->text;
    size_t n = 0;

    if (token->kind != BURIN_TOKEN_ADDED)
        return BURIN_OK;
    if (is_marker(text)) {
        token->kind = BURIN_TOKEN_SPECIAL;
        return BURIN_OK;
    }
    if (!text.length || !memchr(text.at, ' ', text.length))
        return BURIN_OK;
    char *mended = burin_arena_take(&vocab->arena, text.length, 3, 1);
    if (!mended)
        return burin_fail(err, BURIN_ENOMEM, "no memory for a token");
    for (size_t i = 0; i < text.length; i++) {
        if (text.at[i] != ' ') {
            mended[n++] = text.at[i];
            continue;
        }
        n += burin_utf8_put(mended + n, 0x2581);
    }
    token->text = (struct burin_span){ mended, n };
    return BURIN_OK;
}

static enum burin_status read_tokens(
        struct burin_vocab *vocab, const struct burin_gguf *gguf, struct burin_error *err)
{
    struct burin_gguf_array texts;
    struct burin_gguf_array types;
    enum burin_status status = burin_gguf_texts(gguf, "tokenizer.ggml.tokens", &texts, err);
    if (status)
        return status;
    status = burin_gguf_numbers(gguf, "tokenizer.ggml.token_type", &types, err);
    if (status)
        return status;
    if (texts.count == 0 || texts.count > INT_MAX || types.count != texts.count)
        return burin_fail(
                err, BURIN_EFORMAT, "the file has %llu tokens and %llu token types",
                (unsigned long long)texts.count, (unsigned long long)types.count);

    vocab->n_tokens = (int32_t)texts.count;
    vocab->tokens =
            BURIN_TAKE(&vocab->arena, (size_t)vocab->n_tokens, struct burin_vocab_token);
    if (!vocab->tokens)
        return burin_fail(err, BURIN_ENOMEM, "no memory for %d tokens", vocab->n_tokens);
    for (int32_t id = 0; id < vocab->n_tokens; id++) {
        struct burin_vocab_token *token = &vocab->tokens[id];
        const double type = burin_gguf_element(&types, (uint64_t)id);

        token->text = burin_gguf_next_text(&texts);
        if (burin_utf8_valid(token->text, NULL) != token->text.length)
            return burin_fail(
                    err, BURIN_EFORMAT, "token %d is not UTF-8: %s", id,
                    burin_quote(token->text).text);
        status = kind_of(
                vocab, id, type >= 0 && type < 100 ? (int)type : -1, &token->kind, err);
        if (!status && vocab->spelling == BURIN_SPELLED_TEXT)
            status = mend_own(vocab, token, err);
        if (status)
            return status;
        token->in_model = token->kind != BURIN_TOKEN_NONE;
        vocab->n_added +=
                token->kind == BURIN_TOKEN_ADDED || token->kind == BURIN_TOKEN_SPECIAL;
    }
    return BURIN_OK;
}

static enum burin_status list_added(struct burin_vocab *vocab, struct burin_error *err)
{
    vocab->added =
            BURIN_TAKE(&vocab->arena, (size_t)vocab->n_added, struct burin_vocab_added);
    if (!vocab->added)
        return burin_fail(
                err, BURIN_ENOMEM, "no memory for %d added tokens", vocab->n_added);

    int n = 0;
    for (int32_t id = 0; id < vocab->n_tokens; id++) {
        const struct burin_vocab_token *token = &vocab->tokens[id];
        if (token->kind == BURIN_TOKEN_ADDED || token->kind == BURIN_TOKEN_SPECIAL)
            vocab->added[n++] = (struct burin_vocab_added){
                .id = id,
                .content = token->text,
                .special = token->kind == BURIN_TOKEN_SPECIAL,
            };
    }
    return BURIN_OK;
}

static enum burin_status read_merges(
        struct burin_vocab *vocab, const struct burin_gguf *gguf, struct burin_error *err)
{
    struct burin_gguf_array texts;
    const enum burin_status status =
            burin_gguf_texts(gguf, "tokenizer.ggml.merges", &texts, err);
    if (status)
        return status;
    if (texts.count > INT_MAX)
        return burin_fail(
                err, BURIN_ELIMIT, "the file has %llu merges",
                (unsigned long long)texts.count);

    vocab->n_merges = (size_t)texts.count;
    vocab->merges = BURIN_TAKE(&vocab->arena, vocab->n_merges, struct burin_vocab_merge);
    if (!vocab->merges)
        return burin_fail(err, BURIN_ENOMEM, "no memory for %zu merges", vocab->n_merges);
    for (size_t i = 0; i < vocab->n_merges; i++) {
        const struct burin_span text = burin_gguf_next_text(&texts);
        const char *space = text.length ? memchr(text.at, ' ', text.length) : NULL;
        if (!space || burin_utf8_valid(text, NULL) != text.length ||
            memchr(space + 1, ' ', text.length - 1 - (size_t)(space - text.at)))
            return burin_fail(
                    err, BURIN_EFORMAT, "merge %zu is not two tokens and a space: %s", i,
                    burin_quote(text).text);
        const size_t left = (size_t)(space - text.at);
        vocab->merges[i] = (struct burin_vocab_merge){
            { text.at, left },
            { space + 1, text.length - left - 1 },
        };
    }
    return BURIN_OK;
}

/* The merges that a SentencePiece vocabulary lists, or those that its scores stand for. */
static enum burin_status read_scores(
        struct burin_vocab *vocab, const struct burin_gguf *gguf, struct burin_error *err)
{
    struct burin_gguf_array scores;
    const enum burin_status status =
            burin_gguf_numbers(gguf, "tokenizer.ggml.scores", &scores, err);
    if (status)
        return status;
    if (scores.count != (uint64_t)vocab->n_tokens)
        return burin_fail(
                err, BURIN_EFORMAT, "the file has %d tokens and %llu scores",
                vocab->n_tokens, (unsigned long long)scores.count);
    for (int32_t id = 0; id < vocab->n_tokens; id++)
        if (isnan(burin_gguf_element(&scores, (uint64_t)id)))
            return burin_fail(err, BURIN_EFORMAT, "the score of token %d is NaN", id);
    return burin_vocab_merges_by_score(vocab, &scores, err);
}

/* ---- Single values ----------------------------------------------------------------- */

static enum burin_status read_flag(
        const struct burin_gguf *gguf,
        const char *key,
        bool *value,
        struct burin_error *err)
{
    const enum burin_status status = burin_gguf_bool(gguf, key, value, err);
    return status == BURIN_EMISSING ? BURIN_OK : status;
}

/* -1 where the key is absent. */
static enum burin_status read_id(
        const struct burin_vocab *vocab,
        const struct burin_gguf *gguf,
        const char *key,
        int32_t *id,
        struct burin_error *err)
{
    uint64_t value;
    const enum burin_status status = burin_gguf_uint(gguf, key, &value, err);
    *id = -1;
    if (status)
        return status == BURIN_EMISSING ? BURIN_OK : status;
    if (value >= (uint64_t)vocab->n_tokens)
        return burin_fail(
                err, BURIN_EFORMAT, "%s is %llu, but there are %d tokens", key,
                (unsigned long long)value, vocab->n_tokens);
    *id = (int32_t)value;
    return BURIN_OK;
}

static enum burin_status read_ends(
        struct burin_vocab *vocab,
        const struct burin_gguf *gguf,
        bool add_bos,
        struct burin_error *err)
{
    bool add_eos = false;
    /* Without the key SentencePiece puts one, as llama.cpp does. */
    bool add_space = vocab->spelling == BURIN_SPELLED_TEXT;
    int32_t bos;
    enum burin_status status;

    if ((status = read_flag(gguf, "tokenizer.ggml.add_bos_token", &add_bos, err)) ||
        (status = read_flag(gguf, "tokenizer.ggml.add_eos_token", &add_eos, err)) ||
        (status = read_flag(gguf, "tokenizer.ggml.add_space_prefix", &add_space, err)) ||
        (status = read_id(vocab, gguf, "tokenizer.ggml.bos_token_id", &bos, err)) ||
        (status = read_id(vocab, gguf, "tokenizer.ggml.eos_token_id", &vocab->eos, err)))
        return status;
    if (add_eos || add_space)
        return burin_fail(
                err, BURIN_EMISMATCH,
                "the tokenizer adds %s to each text, which is not known",
                add_eos ? "an end token (tokenizer.ggml.add_eos_token)"
                        : "a space (tokenizer.ggml.add_space_prefix)");
    if (add_bos && bos < 0)
        return burin_fail(
                err, BURIN_EFORMAT,
                "tokenizer.ggml.add_bos_token is set without tokenizer.ggml.bos_token_id");
    if (add_bos)
        vocab->prefix[vocab->n_prefix++] = bos;
    return BURIN_OK;
}

static enum burin_status read_pieces(
        struct burin_vocab *vocab, const struct burin_gguf *gguf, struct burin_error *err)
{
    struct burin_gguf_array merges;
    enum burin_status status;

    vocab->spelling = BURIN_SPELLED_TEXT;
    vocab->byte_fallback = true;
    vocab->fuse_unknown = true;
    if ((status = read_tokens(vocab, gguf, err)) || (status = list_added(vocab, err)) ||
        (status = read_id(
                 vocab, gguf, "tokenizer.ggml.unknown_token_id", &vocab->unknown, err)))
        return status;
    status = burin_gguf_texts(gguf, "tokenizer.ggml.merges", &merges, err);
    status = status == BURIN_EMISSING ? read_scores(vocab, gguf, err)
                                      : read_merges(vocab, gguf, err);
    return status ? status : read_ends(vocab, gguf, true, err);
}

static enum burin_status read_all(
        struct burin_vocab *vocab, const struct burin_gguf *gguf, struct burin_error *err)
{
    struct burin_span model;
    struct burin_span pre;
    bool adds_bos = false;
    enum burin_status status;

    if ((status = burin_gguf_text(gguf, "tokenizer.ggml.model", &model, err)))
        return status;
    if (burin_span_is(model, "llama") || burin_span_is(model, "gemma4"))
        return read_pieces(vocab, gguf, err);
    if (!burin_span_is(model, "gpt2"))
        return burin_fail(
                err, BURIN_EMISMATCH,
                "the tokenizer is %s (tokenizer.ggml.model), which is not known; known are "
                "gpt2, gemma4, llama",
                burin_quote(model).text);
    if ((status = burin_gguf_text(gguf, "tokenizer.ggml.pre", &pre, err)) ||
        (status = read_pre(vocab, pre, &adds_bos, err)) ||
        (status = read_tokens(vocab, gguf, err)) || (status = list_added(vocab, err)) ||
        (status = read_merges(vocab, gguf, err)))
        return status;
    return read_ends(vocab, gguf, adds_bos, err);
}

enum burin_status burin_vocab_from_gguf(
        struct burin_vocab *vocab, const struct burin_gguf *gguf, struct burin_error *err)
{
    *vocab = (struct burin_vocab){ .spelling = BURIN_SPELLED_BYTES,
                                   .unknown = -1,
                                   .eos = -1 };
    const enum burin_status status = read_all(vocab, gguf, err);
    if (status)
        burin_vocab_close(vocab);
    return status;
}
