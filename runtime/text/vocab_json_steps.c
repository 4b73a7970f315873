/* The steps of a tokenizer.json. What we do not run is refused by its name: reading over it would
 * give other ids. */
#include "runtime/text/vocab_json.h"

#include "runtime/text/lexicon.h"
#include "runtime/text/normalize.h"
#include "runtime/text/patterns.h"

#include <string.h>

/* One step of a normalizer, pre-tokenizer, post-processor or decoder. */
typedef enum burin_status step_reader(
        struct burin_vocab *vocab,
        struct burin_span type,
        struct burin_json_scan step,
        struct burin_error *err);

/* A step, or a Sequence of them under `key`. Sequences within sequences have no steps we know,
 * and are refused as such. */
static enum burin_status read_steps(
        struct burin_vocab *vocab,
        struct burin_json_field *from,
        const char *key,
        step_reader *read,
        struct burin_error *err)
{
    struct burin_json_field fields[] = { { .name = "type" }, { .name = key } };
    struct burin_span type;
    enum burin_status status;

    if (!from->is_there)
        return BURIN_OK;
    if ((status = BURIN_JSON_FIELDS(from->at, fields, err)) ||
        (status = burin_json_text_of(&fields[0], &type, err)))
        return status;
    if (!burin_span_is(type, "Sequence"))
        return read(vocab, type, from->at, err);
    if (!fields[1].is_there)
        return burin_fail(err, BURIN_EFORMAT, "tokenizer.json: a Sequence lacks %s", key);

    struct burin_json_scan *list = &fields[1].at;
    bool more = true;
    status = burin_json_enter(list, '[', err);
    while (!status && !(status = burin_json_element(list, &more, err)) && more) {
        /* Reading decodes in place: first pass the step, then read it. */
        const struct burin_json_scan here = *list;
        struct burin_json_field step[] = { { .name = "type" } };
        if ((status = burin_json_skip(list, err)) ||
            (status = BURIN_JSON_FIELDS(here, step, err)) ||
            (status = burin_json_text_of(&step[0], &type, err)) ||
            (status = read(vocab, type, here, err)))
            return status;
    }
    return status;
}

/* What a Replace looks for and puts there; empty where it looks for a regular expression. */
static enum burin_status replaced(
        struct burin_json_scan step,
        struct burin_span *pattern,
        struct burin_span *content,
        struct burin_error *err)
{
    struct burin_json_field fields[] = { { .name = "pattern" }, { .name = "content" } };
    struct burin_json_field kinds[] = { { .name = "String" } };
    enum burin_status status;

    if ((status = BURIN_JSON_FIELDS(step, fields, err)))
        return status;
    if (!fields[0].is_there)
        return burin_fail(err, BURIN_EFORMAT, "tokenizer.json: Replace has no pattern");
    if ((status = BURIN_JSON_FIELDS(fields[0].at, kinds, err)) ||
        (status = burin_json_text_of(&kinds[0], pattern, err)))
        return status;
    return burin_json_text_of(&fields[1], content, err);
}

static const char block[] = "\xE2\x96\x81"; /* U+2581 */

static enum burin_status read_replace(
        struct burin_vocab *vocab, struct burin_json_scan step, struct burin_error *err)
{
    struct burin_span pattern = { 0 };
    struct burin_span content = { 0 };
    const enum burin_status status = replaced(step, &pattern, &content, err);
    if (status)
        return status;
    if (!burin_span_is(pattern, " ") || !burin_span_is(content, block))
        return burin_vocab_refuse("normalizer Replace of", pattern, err);
    vocab->spelling = BURIN_SPELLED_TEXT;
    return BURIN_OK;
}

static enum burin_status read_normalizer(
        struct burin_vocab *vocab,
        struct burin_span type,
        struct burin_json_scan step,
        struct burin_error *err)
{
    if (burin_span_is(type, "Replace"))
        return read_replace(vocab, step, err);
    if (!burin_span_is(type, "NFC"))
        return burin_vocab_refuse("normalizer", type, err);
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

/* A plain text as a pattern that matches it. */
static enum burin_status quote_pattern(
        struct burin_vocab *vocab, struct burin_span *pattern, struct burin_error *err)
{
    const struct burin_span text = *pattern;
    char *quoted = burin_arena_take(&vocab->arena, text.length, 2, 1);
    size_t length = 0;
    if (!quoted)
        return burin_fail(err, BURIN_ENOMEM, "no memory for a pattern");
    for (size_t i = 0; i < text.length; i++) {
        if (text.at[i] && strchr("\\[](){}.*+?^$|-&", text.at[i]))
            quoted[length++] = '\\';
        quoted[length++] = text.at[i];
    }
    *pattern = (struct burin_span){ quoted, length };
    return BURIN_OK;
}

static enum burin_status read_split(
        struct burin_vocab *vocab, struct burin_json_scan step, struct burin_error *err)
{
    struct burin_json_field fields[] = { { .name = "pattern" },
                                         { .name = "behavior" },
                                         { .name = "invert" } };
    struct burin_json_field kinds[] = { { .name = "Regex" }, { .name = "String" } };
    struct burin_span behavior;
    struct burin_span split_at;
    enum burin_status status;

    if ((status = BURIN_JSON_FIELDS(step, fields, err)) ||
        (status = burin_json_text_of(&fields[1], &behavior, err)))
        return status;
    if (!fields[0].is_there)
        return burin_fail(err, BURIN_EFORMAT, "tokenizer.json: Split has no pattern");
    if ((status = BURIN_JSON_FIELDS(fields[0].at, kinds, err)))
        return status;

    const bool invert = burin_json_flag_of(&fields[2], false);
    /* Gemma's splits at spaces, but there are none: the normalizer has replaced them. */
    if (vocab->spelling == BURIN_SPELLED_TEXT) {
        if ((status = burin_json_text_of(&kinds[1], &split_at, err)))
            return status;
        if (burin_span_is(split_at, " ") && !invert)
            return BURIN_OK;
        return burin_vocab_refuse("Split of", split_at, err);
    }
    const bool removed = burin_span_is(behavior, "Removed");
    struct burin_split split = {
        .kind = BURIN_SPLIT_PATTERN,
        .keep_matches = !removed || invert,
        .keep_gaps = !removed || !invert,
    };
    if (!removed && !burin_span_is(behavior, "Isolated"))
        return burin_vocab_refuse("Split with behavior", behavior, err);
    if ((status = burin_json_text_of(&kinds[0], &split.pattern, err)))
        return status;
    if (!kinds[0].is_there &&
        ((status = burin_json_text_of(&kinds[1], &split.pattern, err)) ||
         (status = quote_pattern(vocab, &split.pattern, err))))
        return status;
    if (split.pattern.length == 0)
        return burin_fail(err, BURIN_EFORMAT, "tokenizer.json: Split has no pattern");
    return add_split(vocab, split, err);
}

static enum burin_status read_byte_level(
        struct burin_vocab *vocab, struct burin_json_scan step, struct burin_error *err)
{
    struct burin_json_field fields[] = { { .name = "add_prefix_space" },
                                         { .name = "use_regex" } };
    const enum burin_status status = BURIN_JSON_FIELDS(step, fields, err);
    if (status)
        return status;
    if (burin_json_flag_of(&fields[0], true))
        return burin_vocab_refuse("ByteLevel with", burin_span_of("add_prefix_space"), err);
    vocab->spelling = BURIN_SPELLED_BYTES;
    if (!burin_json_flag_of(&fields[1], true))
        return BURIN_OK;
    return add_split(
            vocab,
            (struct burin_split){
                    .kind = BURIN_SPLIT_PATTERN,
                    .pattern = burin_span_of(BURIN_GPT2_PATTERN),
                    .keep_matches = true,
                    .keep_gaps = true,
            },
            err);
}

static enum burin_status read_pre_tokenizer(
        struct burin_vocab *vocab,
        struct burin_span type,
        struct burin_json_scan step,
        struct burin_error *err)
{
    /* Later steps would see the text as it is spelled. */
    if (vocab->spelling == BURIN_SPELLED_BYTES)
        return burin_vocab_refuse("pre_tokenizer behind ByteLevel,", type, err);
    if (burin_span_is(type, "Split"))
        return read_split(vocab, step, err);
    if (vocab->spelling == BURIN_SPELLED_TEXT)
        return burin_vocab_refuse("pre_tokenizer behind Replace,", type, err);
    if (burin_span_is(type, "ByteLevel"))
        return read_byte_level(vocab, step, err);
    if (!burin_span_is(type, "Digits"))
        return burin_vocab_refuse("pre_tokenizer", type, err);

    struct burin_json_field fields[] = { { .name = "individual_digits" } };
    const enum burin_status status = BURIN_JSON_FIELDS(step, fields, err);
    if (status)
        return status;
    return add_split(
            vocab,
            (struct burin_split){
                    .kind = burin_json_flag_of(&fields[0], false) ? BURIN_SPLIT_DIGIT
                                                                  : BURIN_SPLIT_DIGITS,
                    .keep_matches = true,
                    .keep_gaps = true,
            },
            err);
}

/* The ids that a template puts before a text: `tokens` is { name: { "ids": [...] } }. */
static enum burin_status read_prefix(
        struct burin_vocab *vocab,
        struct burin_json_scan special,
        struct burin_json_scan tokens,
        struct burin_error *err)
{
    struct burin_json_field fields[] = { { .name = "id" } };
    struct burin_span name;
    enum burin_status status;
    bool more = true;
    char text[256];

    if ((status = BURIN_JSON_FIELDS(special, fields, err)) ||
        (status = burin_json_text_of(&fields[0], &name, err)))
        return status;
    if (name.length == 0 || name.length >= sizeof text)
        return burin_fail(
                err, BURIN_EFORMAT,
                "tokenizer.json: post_processor adds a token without name");
    memcpy(text, name.at, name.length);
    text[name.length] = '\0';

    struct burin_json_field token[] = { { .name = text } };
    struct burin_json_field ids[] = { { .name = "ids" } };
    if ((status = BURIN_JSON_FIELDS(tokens, token, err)))
        return status;
    if (token[0].is_there && (status = BURIN_JSON_FIELDS(token[0].at, ids, err)))
        return status;
    if (!ids[0].is_there)
        return burin_fail(
                err, BURIN_EFORMAT,
                "tokenizer.json: post_processor does not say what %s is",
                burin_quote(name).text);

    status = burin_json_enter(&ids[0].at, '[', err);
    while (!status && !(status = burin_json_element(&ids[0].at, &more, err)) && more) {
        int32_t id = 0;
        if ((status = burin_json_id(&ids[0].at, &id, err)))
            return status;
        if (id >= vocab->n_tokens || vocab->n_prefix == BURIN_MAX_PREFIX)
            return burin_fail(
                    err, BURIN_EFORMAT, "tokenizer.json: post_processor adds id %d", id);
        vocab->prefix[vocab->n_prefix++] = id;
    }
    return status;
}

static enum burin_status read_post_processor(
        struct burin_vocab *vocab,
        struct burin_span type,
        struct burin_json_scan step,
        struct burin_error *err)
{
    struct burin_json_field fields[] = { { .name = "single" },
                                         { .name = "special_tokens" } };
    enum burin_status status;
    bool has_text = false;
    bool more = true;

    if (burin_span_is(type, "ByteLevel"))
        return BURIN_OK; /* offsets alone */
    if (!burin_span_is(type, "TemplateProcessing"))
        return burin_vocab_refuse("post_processor", type, err);
    if ((status = BURIN_JSON_FIELDS(step, fields, err)))
        return status;
    if (!fields[0].is_there || !fields[1].is_there)
        return burin_fail(
                err, BURIN_EFORMAT,
                "tokenizer.json: post_processor lacks single or special_tokens");

    struct burin_json_scan *parts = &fields[0].at;
    status = burin_json_enter(parts, '[', err);
    while (!status && !(status = burin_json_element(parts, &more, err)) && more) {
        struct burin_json_field part[] = { { .name = "SpecialToken" } };
        if ((status = BURIN_JSON_FIELDS(*parts, part, err)) ||
            (status = burin_json_skip(parts, err)))
            return status;
        if (part[0].is_there && has_text)
            return burin_vocab_refuse(
                    "post_processor with", burin_span_of("tokens behind the text"), err);
        has_text = !part[0].is_there;
        if (part[0].is_there)
            status = read_prefix(vocab, part[0].at, fields[1].at, err);
    }
    return status;
}

static enum burin_status read_decoder(
        struct burin_vocab *vocab,
        struct burin_span type,
        struct burin_json_scan step,
        struct burin_error *err)
{
    struct burin_span pattern = { 0 };
    struct burin_span content = { 0 };
    enum burin_status status;

    if (vocab->spelling == BURIN_SPELLED_BYTES)
        return burin_span_is(type, "ByteLevel") ? BURIN_OK
                                                : burin_vocab_refuse("decoder", type, err);
    if (burin_span_is(type, "ByteFallback") || burin_span_is(type, "Fuse"))
        return BURIN_OK;
    if (!burin_span_is(type, "Replace"))
        return burin_vocab_refuse("decoder", type, err);
    if ((status = replaced(step, &pattern, &content, err)))
        return status;
    if (!burin_span_is(pattern, block) || !burin_span_is(content, " "))
        return burin_vocab_refuse("decoder Replace of", pattern, err);
    return BURIN_OK;
}

/* Their contents are looked for where U+2581 is a space. */
static enum burin_status put_spaces(struct burin_vocab *vocab, struct burin_error *err)
{
    for (int i = 0; i < vocab->n_added; i++) {
        struct burin_span *content = &vocab->added[i].content;
        if (!vocab->added[i].normalized || !memmem(content->at, content->length, block, 3))
            continue;
        char *copy = burin_arena_text(&vocab->arena, content->at, content->length);
        if (!copy)
            return burin_fail(err, BURIN_ENOMEM, "no memory for an added token");
        *content = (struct burin_span){ copy, burin_put_spaces(copy, content->length) };
    }
    return BURIN_OK;
}

/* The reference looks for the normalized content of these. */
static enum burin_status check_added(struct burin_vocab *vocab, struct burin_error *err)
{
    for (int i = 0; vocab->nfc && i < vocab->n_added; i++) {
        const struct burin_arena_mark mark = burin_arena_mark(&vocab->arena);
        const struct burin_span content = vocab->added[i].content;
        struct burin_span composed;
        if (!vocab->added[i].normalized)
            continue;
        const enum burin_status status = burin_nfc(content, &vocab->arena, &composed, err);
        if (status)
            return status;
        const bool is_same = burin_span_compare(composed, content) == 0;
        burin_arena_rewind(&vocab->arena, mark);
        if (!is_same)
            return burin_fail(
                    err, BURIN_EMISMATCH,
                    "tokenizer.json: added token %s is not normalized, which is not "
                    "supported",
                    burin_quote(content).text);
    }
    return BURIN_OK;
}

enum burin_status burin_vocab_read_steps(
        struct burin_vocab *vocab,
        struct burin_json_field fields[BURIN_N_STEPS],
        struct burin_error *err)
{
    enum burin_status status;

    if ((status = read_steps(
                 vocab, &fields[BURIN_NORMALIZER], "normalizers", read_normalizer, err)) ||
        (status = check_added(vocab, err)) ||
        (status = read_steps(
                 vocab, &fields[BURIN_PRE_TOKENIZER], "pretokenizers", read_pre_tokenizer,
                 err)))
        return status;
    if (vocab->spelling == BURIN_SPELLED_NOT_SAID)
        return burin_fail(
                err, BURIN_EMISMATCH,
                "tokenizer.json: no ByteLevel pre_tokenizer, and no normalizer that "
                "replaces spaces with U+2581: other BPE is not supported");
    if ((status = read_steps(
                 vocab, &fields[BURIN_POST_PROCESSOR], "processors", read_post_processor,
                 err)) ||
        (status = read_steps(vocab, &fields[BURIN_DECODER], "decoders", read_decoder, err)))
        return status;
    if (!fields[BURIN_DECODER].is_there)
        return burin_vocab_refuse("decoder", burin_span_of("null"), err);
    if (vocab->spelling == BURIN_SPELLED_BYTES)
        return vocab->byte_fallback
                       ? burin_vocab_refuse(
                                 "ByteLevel with", burin_span_of("byte_fallback"), err)
                       : BURIN_OK;
    return put_spaces(vocab, err);
}
