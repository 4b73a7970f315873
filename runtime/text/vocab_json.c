#include "runtime/text/vocab.h"

#include "runtime/text/normalize.h"
#include "runtime/text/unicode.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* What we do not run is refused by its name in the file: reading over it would give other ids. */

static struct burin_span span_of(const json_t *text)
{
    return (struct burin_span){ json_string_value(text), json_string_length(text) };
}

static bool is_named(const json_t *object, const char *type)
{
    const char *value = json_string_value(json_object_get(object, "type"));
    return value && strcmp(value, type) == 0;
}

static enum burin_status refuse_part(
        const char *part, const json_t *object, struct burin_error *err)
{
    const json_t *type = json_object_get(object, "type");
    return burin_fail(
            err, BURIN_EMISMATCH, "tokenizer.json: %s %s is not supported", part,
            json_is_string(type) ? burin_quote(span_of(type)).text : "without a type");
}

static bool is_absent(const json_t *value)
{
    return !value || json_is_null(value);
}

static bool flag_of(const json_t *object, const char *key, bool otherwise)
{
    const json_t *value = json_object_get(object, key);
    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

/* ---- Vocabulary and merges ---------------------------------------------------------- */

static enum burin_status read_id(
        const json_t *value, struct burin_span name, int32_t *id, struct burin_error *err)
{
    const json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 0 || number > INT_MAX - 1)
        return burin_fail(
                err, BURIN_EFORMAT, "tokenizer.json: the id of %s is no id",
                burin_quote(name).text);
    *id = (int32_t)number;
    return BURIN_OK;
}

/* One more than the largest id. Ids far beyond the number of tokens are refused before a list
 * of that length is taken. */
static enum burin_status count_tokens(
        struct burin_vocab *vocab, json_t *texts, json_t *added, struct burin_error *err)
{
    const size_t most = 64 * 1024 + 4 * (json_object_size(texts) + json_array_size(added));
    const char *text;
    size_t i;
    json_t *value;
    int32_t id;
    enum burin_status status;

    json_object_foreach(texts, text, value)
    {
        if ((status = read_id(value, burin_span_of(text), &id, err)))
            return status;
        if (id >= vocab->n_tokens)
            vocab->n_tokens = id + 1;
    }
    json_array_foreach(added, i, value)
    {
        const struct burin_span content = span_of(json_object_get(value, "content"));
        if ((status = read_id(json_object_get(value, "id"), content, &id, err)))
            return status;
        if (id >= vocab->n_tokens)
            vocab->n_tokens = id + 1;
    }
    if ((size_t)vocab->n_tokens > most)
        return burin_fail(
                err, BURIN_ELIMIT, "tokenizer.json: the largest id is %d for %zu tokens",
                vocab->n_tokens - 1, json_object_size(texts) + json_array_size(added));
    return BURIN_OK;
}

static enum burin_status read_tokens(
        struct burin_vocab *vocab, json_t *texts, struct burin_error *err)
{
    const char *text;
    size_t length;
    json_t *value;

    vocab->tokens =
            BURIN_TAKE(&vocab->arena, (size_t)vocab->n_tokens, struct burin_vocab_token);
    if (!vocab->tokens)
        return burin_fail(err, BURIN_ENOMEM, "no memory for %d tokens", vocab->n_tokens);
    json_object_keylen_foreach(texts, text, length, value)
    {
        struct burin_vocab_token *token = &vocab->tokens[json_integer_value(value)];
        const struct burin_span span = { text, length };
        if (token->kind != BURIN_TOKEN_NONE)
            return burin_fail(
                    err, BURIN_EFORMAT, "tokenizer.json: %s and %s have one id, %d",
                    burin_quote(token->text).text, burin_quote(span).text,
                    (int)json_integer_value(value));
        *token = (struct burin_vocab_token){ span, BURIN_TOKEN_NORMAL, true };
    }
    return BURIN_OK;
}

/* [["a", "b"], ...], or the older ["a b", ...]. */
static bool read_merge(json_t *value, struct burin_vocab_merge *merge)
{
    if (json_is_array(value) && json_array_size(value) == 2) {
        merge->left = span_of(json_array_get(value, 0));
        merge->right = span_of(json_array_get(value, 1));
        return merge->left.length && merge->right.length;
    }
    const struct burin_span text = span_of(value);
    const char *space = text.length ? memchr(text.at, ' ', text.length) : NULL;
    if (!space)
        return false;
    const size_t left = (size_t)(space - text.at);
    merge->left = (struct burin_span){ text.at, left };
    merge->right = (struct burin_span){ space + 1, text.length - left - 1 };
    return left && merge->right.length &&
           !memchr(merge->right.at, ' ', merge->right.length);
}

static enum burin_status read_merges(
        struct burin_vocab *vocab, json_t *merges, struct burin_error *err)
{
    const size_t n = json_array_size(merges);
    vocab->merges = BURIN_TAKE(&vocab->arena, n, struct burin_vocab_merge);
    if (!vocab->merges)
        return burin_fail(err, BURIN_ENOMEM, "no memory for %zu merges", n);

    for (size_t i = 0; i < n; i++) {
        json_t *value = json_array_get(merges, i);
        const struct burin_span text = span_of(value);
        static const char head[] = "#version";
        /* The older form may begin with the first line of merges.txt, as the reference knows. */
        if (i == 0 && text.length >= sizeof head - 1 &&
            memcmp(text.at, head, sizeof head - 1) == 0)
            continue;
        if (!read_merge(value, &vocab->merges[vocab->n_merges]))
            return burin_fail(
                    err, BURIN_EFORMAT, "tokenizer.json: merge %zu is not two tokens", i);
        vocab->n_merges++;
    }
    return BURIN_OK;
}

static enum burin_status read_unknown(
        struct burin_vocab *vocab, json_t *model, struct burin_error *err)
{
    const json_t *text = json_object_get(model, "unk_token");
    if (is_absent(text))
        return BURIN_OK;
    const json_t *id = json_is_string(text) ? json_object_get(
                                                      json_object_get(model, "vocab"),
                                                      json_string_value(text))
                                            : NULL;
    if (!id)
        return burin_fail(
                err, BURIN_EFORMAT,
                "tokenizer.json: unk_token is no token of the vocabulary");
    vocab->unknown = (int32_t)json_integer_value(id);
    vocab->fuse_unknown = flag_of(model, "fuse_unk", false);
    return BURIN_OK;
}

static enum burin_status check_model(const json_t *model, struct burin_error *err)
{
    static const char *const affixes[] = {
        "continuing_subword_prefix",
        "end_of_word_suffix",
    };
    const json_t *dropout = json_object_get(model, "dropout");

    if (!json_is_object(model))
        return burin_fail(err, BURIN_EFORMAT, "tokenizer.json: there is no model");
    if (!is_absent(json_object_get(model, "type")) && !is_named(model, "BPE"))
        return refuse_part("model", model, err);
    if (!json_is_object(json_object_get(model, "vocab")) ||
        !json_is_array(json_object_get(model, "merges")))
        return burin_fail(
                err, BURIN_EFORMAT, "tokenizer.json: the model lacks vocab or merges");
    for (int i = 0; i < 2; i++)
        if (json_string_length(json_object_get(model, affixes[i])))
            return burin_fail(
                    err, BURIN_EMISMATCH, "tokenizer.json: %s is not supported",
                    affixes[i]);
    if (flag_of(model, "byte_fallback", false))
        return burin_fail(
                err, BURIN_EMISMATCH, "tokenizer.json: byte_fallback is not supported");
    if (!is_absent(dropout) && json_number_value(dropout) != 0.0)
        return burin_fail(err, BURIN_EMISMATCH, "tokenizer.json: dropout is not supported");
    return BURIN_OK;
}

/* ---- Added tokens ------------------------------------------------------------------- */

static enum burin_status read_added(
        struct burin_vocab *vocab, json_t *list, json_t *texts, struct burin_error *err)
{
    const size_t n = json_array_size(list);
    vocab->added = BURIN_TAKE(&vocab->arena, n, struct burin_vocab_added);
    if (!vocab->added)
        return burin_fail(err, BURIN_ENOMEM, "no memory for %zu added tokens", n);

    for (size_t i = 0; i < n; i++) {
        const json_t *from = json_array_get(list, i);
        const json_t *content = json_object_get(from, "content");
        const struct burin_span text = span_of(content);
        const int32_t id = (int32_t)json_integer_value(json_object_get(from, "id"));
        if (!json_is_string(content))
            return burin_fail(
                    err, BURIN_EFORMAT, "tokenizer.json: added token %zu has no content",
                    i);
        if (text.length == 0)
            continue;

        const json_t *listed = json_object_get(texts, text.at);
        struct burin_vocab_token *token = &vocab->tokens[id];
        if ((listed && json_integer_value(listed) != id) ||
            (token->kind != BURIN_TOKEN_NONE && burin_span_compare(token->text, text) != 0))
            return burin_fail(
                    err, BURIN_EFORMAT,
                    "tokenizer.json: added token %s has id %d, but the vocabulary says "
                    "otherwise",
                    burin_quote(text).text, id);

        const bool special = flag_of(from, "special", false);
        token->text = text;
        token->kind = special ? BURIN_TOKEN_SPECIAL : BURIN_TOKEN_ADDED;
        vocab->added[vocab->n_added++] = (struct burin_vocab_added){
            .id = id,
            .content = text,
            .special = special,
            .normalized = flag_of(from, "normalized", !special),
            .single_word = flag_of(from, "single_word", false),
            .lstrip = flag_of(from, "lstrip", false),
            .rstrip = flag_of(from, "rstrip", false),
        };
    }
    return BURIN_OK;
}

/* The reference looks for the normalized content of these. */
static enum burin_status check_added(struct burin_vocab *vocab, struct burin_error *err)
{
    for (int i = 0; vocab->nfc && i < vocab->n_added; i++) {
        struct burin_span composed;
        const struct burin_span content = vocab->added[i].content;
        if (!vocab->added[i].normalized)
            continue;
        const enum burin_status status = burin_nfc(content, &vocab->arena, &composed, err);
        if (status)
            return status;
        if (burin_span_compare(composed, content) != 0)
            return burin_fail(
                    err, BURIN_EMISMATCH,
                    "tokenizer.json: added token %s is not normalized, which is not "
                    "supported",
                    burin_quote(content).text);
    }
    return BURIN_OK;
}

/* ---- Normalizer and pre-tokenizer ----------------------------------------------------- */

/* A Sequence of steps, or one step: both as `step(vocab, one)`. Sequences in sequences are
 * unrolled by the reference too, but no file has them. */
typedef enum burin_status step_reader(
        struct burin_vocab *vocab, const json_t *step, struct burin_error *err);

static enum burin_status for_each_step(
        struct burin_vocab *vocab,
        const json_t *steps,
        const char *key,
        step_reader *read,
        struct burin_error *err)
{
    if (is_absent(steps))
        return BURIN_OK;
    if (!is_named(steps, "Sequence"))
        return read(vocab, steps, err);

    const json_t *list = json_object_get(steps, key);
    const size_t n = json_array_size(list);
    enum burin_status status = BURIN_OK;
    if (!json_is_array(list))
        return burin_fail(err, BURIN_EFORMAT, "tokenizer.json: a Sequence lacks %s", key);
    for (size_t i = 0; i < n && !status; i++)
        status = read(vocab, json_array_get(list, i), err);
    return status;
}

static enum burin_status read_normalizer(
        struct burin_vocab *vocab, const json_t *step, struct burin_error *err)
{
    if (!is_named(step, "NFC"))
        return refuse_part("normalizer", step, err);
    vocab->nfc = true;
    return BURIN_OK;
}

static enum burin_status add_split(
        struct burin_vocab *vocab, struct burin_split split, struct burin_error *err)
{
    if (vocab->n_splits == BURIN_MAX_SPLITS)
        return burin_fail(
                err, BURIN_ELIMIT, "tokenizer.json: more than %d steps split the text",
                BURIN_MAX_SPLITS);
    vocab->splits[vocab->n_splits++] = split;
    return BURIN_OK;
}

/* A plain string as a pattern that matches it. */
static enum burin_status quote_pattern(
        struct burin_vocab *vocab,
        struct burin_span text,
        struct burin_span *pattern,
        struct burin_error *err)
{
    char *quoted = burin_arena_take(&vocab->arena, text.length, 2, 1);
    size_t length = 0;
    if (!quoted)
        return burin_fail(err, BURIN_ENOMEM, "no memory for a pattern");
    for (size_t i = 0; i < text.length; i++) {
        if (strchr("\\[](){}.*+?^$|-&", text.at[i]))
            quoted[length++] = '\\';
        quoted[length++] = text.at[i];
    }
    *pattern = (struct burin_span){ quoted, length };
    return BURIN_OK;
}

static enum burin_status read_split(
        struct burin_vocab *vocab, const json_t *step, struct burin_error *err)
{
    const json_t *pattern = json_object_get(step, "pattern");
    const json_t *behavior = json_object_get(step, "behavior");
    const json_t *regex = json_object_get(pattern, "Regex");
    const json_t *text = json_object_get(pattern, "String");
    const bool invert = flag_of(step, "invert", false);
    const bool removed = burin_span_is(span_of(behavior), "Removed");
    struct burin_split split = {
        .kind = BURIN_SPLIT_PATTERN,
        .keep_matches = !removed || invert,
        .keep_gaps = !removed || !invert,
    };

    if (!removed && !burin_span_is(span_of(behavior), "Isolated"))
        return burin_fail(
                err, BURIN_EMISMATCH, "tokenizer.json: Split behaves as %s, not supported",
                json_is_string(behavior) ? burin_quote(span_of(behavior)).text : "nothing");
    if (json_string_length(regex)) {
        split.pattern = span_of(regex);
    } else if (json_string_length(text)) {
        const enum burin_status status =
                quote_pattern(vocab, span_of(text), &split.pattern, err);
        if (status)
            return status;
    } else {
        return burin_fail(err, BURIN_EFORMAT, "tokenizer.json: Split has no pattern");
    }
    return add_split(vocab, split, err);
}

/* How a text is spelled decides what later steps see, so ByteLevel must be the last. */
static enum burin_status read_pre_tokenizer(
        struct burin_vocab *vocab, const json_t *step, struct burin_error *err)
{
    static const char gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+"
                               "| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

    if (vocab->is_byte_level)
        return burin_fail(
                err, BURIN_EMISMATCH,
                "tokenizer.json: a pre_tokenizer behind ByteLevel is "
                "not supported");
    if (is_named(step, "Split"))
        return read_split(vocab, step, err);
    if (is_named(step, "Digits")) {
        const bool individual = flag_of(step, "individual_digits", false);
        return add_split(
                vocab,
                (struct burin_split){
                        .kind = individual ? BURIN_SPLIT_DIGIT : BURIN_SPLIT_DIGITS,
                        .keep_matches = true,
                        .keep_gaps = true,
                },
                err);
    }
    if (!is_named(step, "ByteLevel"))
        return refuse_part("pre_tokenizer", step, err);
    if (flag_of(step, "add_prefix_space", true))
        return burin_fail(
                err, BURIN_EMISMATCH,
                "tokenizer.json: ByteLevel with add_prefix_space is not supported");
    vocab->is_byte_level = true;
    if (!flag_of(step, "use_regex", true))
        return BURIN_OK;
    return add_split(
            vocab,
            (struct burin_split){
                    .kind = BURIN_SPLIT_PATTERN,
                    .pattern = { gpt2, sizeof gpt2 - 1 },
                    .keep_matches = true,
                    .keep_gaps = true,
            },
            err);
}

/* ---- Post-processor and decoder --------------------------------------------------------- */

static enum burin_status read_prefix(
        struct burin_vocab *vocab,
        const json_t *processor,
        const json_t *special,
        struct burin_error *err)
{
    const char *name = json_string_value(json_object_get(special, "id"));
    const json_t *tokens = json_object_get(processor, "special_tokens");
    const json_t *ids = json_object_get(json_object_get(tokens, name ? name : ""), "ids");

    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *id = json_array_get(ids, i);
        if (vocab->n_prefix == BURIN_MAX_PREFIX || !json_is_integer(id) ||
            json_integer_value(id) < 0 || json_integer_value(id) >= vocab->n_tokens)
            break;
        vocab->prefix[vocab->n_prefix++] = (int32_t)json_integer_value(id);
    }
    if (json_array_size(ids) == 0 || vocab->n_prefix == 0)
        return burin_fail(
                err, BURIN_EFORMAT, "tokenizer.json: post_processor begins with no token");
    return BURIN_OK;
}

static enum burin_status read_post_processor(
        struct burin_vocab *vocab, const json_t *step, struct burin_error *err)
{
    if (is_named(step, "ByteLevel"))
        return BURIN_OK;
    if (!is_named(step, "TemplateProcessing"))
        return refuse_part("post_processor", step, err);

    const json_t *parts = json_object_get(step, "single");
    bool has_text = false;
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *special = json_object_get(json_array_get(parts, i), "SpecialToken");
        if (!special) {
            has_text = true;
        } else if (has_text) {
            return burin_fail(
                    err, BURIN_EMISMATCH,
                    "tokenizer.json: a post_processor that adds tokens behind the text is "
                    "not "
                    "supported");
        } else {
            const enum burin_status status = read_prefix(vocab, step, special, err);
            if (status)
                return status;
        }
    }
    return BURIN_OK;
}

static enum burin_status read_decoder(
        struct burin_vocab *vocab, const json_t *step, struct burin_error *err)
{
    (void)vocab;
    return is_named(step, "ByteLevel") ? BURIN_OK : refuse_part("decoder", step, err);
}

/* ---- All of it ---------------------------------------------------------------------- */

static enum burin_status read_all(
        struct burin_vocab *vocab, const json_t *root, struct burin_error *err)
{
    json_t *model = json_object_get(root, "model");
    json_t *texts = json_object_get(model, "vocab");
    json_t *added = json_object_get(root, "added_tokens");
    enum burin_status status;

    if ((status = check_model(model, err)) ||
        (status = count_tokens(vocab, texts, added, err)) ||
        (status = read_tokens(vocab, texts, err)) ||
        (status = read_merges(vocab, json_object_get(model, "merges"), err)) ||
        (status = read_unknown(vocab, model, err)) ||
        (status = read_added(vocab, added, texts, err)) ||
        (status = for_each_step(
                 vocab, json_object_get(root, "normalizer"), "normalizers", read_normalizer,
                 err)) ||
        (status = check_added(vocab, err)) ||
        (status = for_each_step(
                 vocab, json_object_get(root, "pre_tokenizer"), "pretokenizers",
                 read_pre_tokenizer, err)) ||
        (status = for_each_step(
                 vocab, json_object_get(root, "post_processor"), "processors",
                 read_post_processor, err)) ||
        (status = for_each_step(
                 vocab, json_object_get(root, "decoder"), "decoders", read_decoder, err)))
        return status;
    if (!vocab->is_byte_level)
        return burin_fail(
                err, BURIN_EMISMATCH,
                "tokenizer.json: no ByteLevel pre_tokenizer; only byte-level BPE is "
                "supported");
    vocab->ignore_merges = flag_of(model, "ignore_merges", false);
    return BURIN_OK;
}

/* What jansson will take for this text at most: a bound, before it takes it. */
static enum burin_status check_memory(struct burin_span text, struct burin_error *err)
{
    enum { ARRAY_BYTES = 144, OBJECT_BYTES = 320, ITEM_BYTES = 144 };
    const size_t limit = 4 * text.length + 64 * 1024 * 1024;
    bool in_string = false;
    size_t bytes = text.length;

    for (size_t i = 0; i < text.length; i++) {
        const char c = text.at[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
            bytes += 64;
        } else if (c == '[' || c == '{') {
            bytes += c == '[' ? ARRAY_BYTES : OBJECT_BYTES;
        } else if (c == ':') {
            bytes += ITEM_BYTES;
        } else if (c == ',') {
            bytes += 16;
        }
    }
    if (bytes > limit)
        return burin_fail(
                err, BURIN_ELIMIT,
                "tokenizer.json: its %zu bytes would take up to %zu bytes to read, the "
                "limit "
                "is %zu",
                text.length, bytes, limit);
    return BURIN_OK;
}

enum burin_status burin_vocab_from_json(
        struct burin_vocab *vocab, struct burin_span text, struct burin_error *err)
{
    *vocab = (struct burin_vocab){ .unknown = -1, .eos = -1 };
    enum burin_status status = check_memory(text, err);
    if (status)
        return status;

    json_error_t why;
    vocab->document = json_loadb(text.at, text.length, JSON_REJECT_DUPLICATES, &why);
    if (!vocab->document)
        return burin_fail(
                err, BURIN_EFORMAT, "tokenizer.json: line %d: %s", why.line,
                burin_quote(burin_span_of(why.text)).text);
    status = read_all(vocab, vocab->document, err);
    if (status)
        burin_vocab_close(vocab);
    return status;
}

enum burin_status burin_vocab_from_json_file(
        struct burin_vocab *vocab, const char *path, struct burin_error *err)
{
    struct burin_arena arena = { 0 };
    enum burin_status status = BURIN_OK;
    char *text = NULL;
    long size = 0;

    *vocab = (struct burin_vocab){ 0 };
    FILE *file = fopen(path, "rb");
    if (!file)
        return burin_fail(err, BURIN_EMISSING, "%s cannot be opened", path);
    if (fseek(file, 0, SEEK_END) == 0)
        size = ftell(file);
    rewind(file);
    if (size > 0 && size < INT_MAX / 4)
        text = burin_arena_take(&arena, (size_t)size, 1, 1);
    if (!text)
        status = burin_fail(
                err, BURIN_ELIMIT, "%s has %ld bytes; a tokenizer.json is meant", path,
                size);
    else if (fread(text, 1, (size_t)size, file) != (size_t)size)
        status = burin_fail(err, BURIN_EIO, "%s cannot be read", path);
    else
        status = burin_vocab_from_json(
                vocab, (struct burin_span){ text, (size_t)size }, err);
    fclose(file);
    burin_arena_close(&arena);
    return status;
}
