#include "runtime/text/vocab.h"

#include "runtime/base/json_scan.h"
#include "runtime/text/normalize.h"
#include "runtime/text/patterns.h"
#include "runtime/weights/file.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

/* What we do not run is refused by its name in the file: reading over it would give other ids. */

/* ---- Members in any order -------------------------------------------------------------- */

struct field {
    const char *name;
    struct burin_json_scan at; /* its value */
    bool is_there;             /* and not null */
};

/* Find the members of an object; those without a field are passed over. */
static enum burin_status read_fields(
        struct burin_json_scan object, struct field *fields, int n, struct burin_error *err)
{
    struct burin_span key;
    bool more;
    enum burin_status status = burin_json_enter(&object, '{', err);

    while (!status && !(status = burin_json_member(&object, &key, &more, err)) && more) {
        for (int i = 0; i < n; i++) {
            if (!burin_span_is(key, fields[i].name))
                continue;
            if (fields[i].at.begin)
                return burin_fail(
                        err, BURIN_EFORMAT, "%s: JSON byte %zu: %s a second time",
                        object.name, (size_t)(object.at - object.begin), fields[i].name);
            fields[i].is_there = burin_json_peek(&object) != 'n';
            fields[i].at = object;
        }
        status = burin_json_skip(&object, err);
    }
    return status;
}

#define READ_FIELDS(object, fields, err)                                                   \
    read_fields((object), (fields), (int)(sizeof(fields) / sizeof *(fields)), (err))

/* Its text; empty where it is absent. */
static enum burin_status text_of(
        struct field *field, struct burin_span *text, struct burin_error *err)
{
    *text = (struct burin_span){ 0 };
    return field->is_there ? burin_json_take_text(&field->at, text, err) : BURIN_OK;
}

static bool flag_of(struct field *field, bool otherwise)
{
    if (!field->is_there)
        return otherwise;
    const char first = burin_json_peek(&field->at);
    return first == 't' || (first != 'f' && otherwise);
}

static enum burin_status id_of(
        struct burin_json_scan *scan, int32_t *id, struct burin_error *err)
{
    uint64_t value;
    const enum burin_status status = burin_json_u64(scan, &value, err);
    if (status)
        return status;
    if (value >= INT_MAX)
        return burin_fail(
                err, BURIN_EFORMAT, "%s: %llu is no id", scan->name,
                (unsigned long long)value);
    *id = (int32_t)value;
    return BURIN_OK;
}

static enum burin_status refuse_part(
        const char *part, struct burin_span type, struct burin_error *err)
{
    return burin_fail(
            err, BURIN_EMISMATCH, "tokenizer.json: %s %s is not supported", part,
            burin_quote(type).text);
}

/* A zeroed list in the vocab's arena, or NULL and *status. What a file makes us take stays within
 * 4 times its bytes and 64 MiB, whatever it lists. */
static void *take_list(
        struct burin_vocab *vocab,
        size_t n,
        size_t bytes,
        const char *what,
        enum burin_status *status,
        struct burin_error *err)
{
    const size_t used = vocab->arena.obtained;
    if (used > vocab->most_bytes || n > (vocab->most_bytes - used) / bytes) {
        *status = burin_fail(
                err, BURIN_ELIMIT,
                "tokenizer.json: %zu %s take more than 4 times its size and 64 MiB", n,
                what);
        return NULL;
    }
    void *list = burin_arena_take(&vocab->arena, n, bytes, _Alignof(max_align_t));
    if (!list)
        *status = burin_fail(err, BURIN_ENOMEM, "no memory for %zu %s", n, what);
    return list;
}

/* ---- Tokens and merges ------------------------------------------------------------------ */

struct listed {
    struct burin_span text;
    int32_t id;
};

/* Make room for the ids up to `id`. Ids far beyond the number of tokens are refused before a
 * list of that length is taken. */
static enum burin_status count_id(
        struct burin_vocab *vocab, int32_t id, size_t n, struct burin_error *err)
{
    if ((size_t)id > (size_t)64 * 1024 + 4 * n)
        return burin_fail(
                err, BURIN_ELIMIT, "tokenizer.json: an id is %d, but there are %zu tokens",
                id, n);
    if (id >= vocab->n_tokens)
        vocab->n_tokens = id + 1;
    return BURIN_OK;
}

static enum burin_status read_listed(
        struct burin_vocab *vocab,
        struct burin_json_scan *texts,
        struct listed *listed,
        size_t n,
        struct burin_error *err)
{
    enum burin_status status = burin_json_enter(texts, '{', err);
    bool more = true;

    for (size_t i = 0; !status; i++) {
        struct burin_span text;
        status = burin_json_member(texts, &text, &more, err);
        if (status || !more)
            break;
        status = id_of(texts, &listed[i].id, err);
        if (!status)
            status = count_id(vocab, listed[i].id, n, err);
        listed[i].text = text;
    }
    return status;
}

/* The token list, once its length is known: added tokens may have ids beyond. */
static enum burin_status fill_tokens(
        struct burin_vocab *vocab,
        const struct listed *listed,
        size_t n,
        struct burin_error *err)
{
    enum burin_status status = BURIN_OK;

    vocab->tokens = take_list(
            vocab, (size_t)vocab->n_tokens, sizeof *vocab->tokens, "tokens", &status, err);
    if (!vocab->tokens)
        return status;
    for (size_t i = 0; i < n; i++) {
        struct burin_vocab_token *token = &vocab->tokens[listed[i].id];
        if (token->kind != BURIN_TOKEN_NONE)
            return burin_fail(
                    err, BURIN_EFORMAT, "tokenizer.json: %s and %s have one id, %d",
                    burin_quote(token->text).text, burin_quote(listed[i].text).text,
                    listed[i].id);
        *token = (struct burin_vocab_token){ listed[i].text, BURIN_TOKEN_NORMAL, true };
    }
    for (int i = 0; i < vocab->n_added; i++) {
        const struct burin_vocab_added *added = &vocab->added[i];
        struct burin_vocab_token *token = &vocab->tokens[added->id];
        if (token->kind != BURIN_TOKEN_NONE &&
            burin_span_compare(token->text, added->content) != 0)
            return burin_fail(
                    err, BURIN_EFORMAT,
                    "tokenizer.json: added token %s has the id of %s, %d",
                    burin_quote(added->content).text, burin_quote(token->text).text,
                    added->id);
        token->text = added->content;
        token->kind = added->special ? BURIN_TOKEN_SPECIAL : BURIN_TOKEN_ADDED;
    }
    return BURIN_OK;
}

/* ["a", "b"], or the older "a b". */
static enum burin_status read_merge(
        struct burin_json_scan *scan,
        struct burin_vocab_merge *merge,
        bool *is_version,
        struct burin_error *err)
{
    static const char version[] = "#version";
    enum burin_status status;
    bool more;

    *is_version = false;
    if (burin_json_peek(scan) == '[') {
        if ((status = burin_json_enter(scan, '[', err)) ||
            (status = burin_json_element(scan, &more, err)) ||
            (status = burin_json_take_text(scan, &merge->left, err)) ||
            (status = burin_json_element(scan, &more, err)) ||
            (status = burin_json_take_text(scan, &merge->right, err)) ||
            (status = burin_json_element(scan, &more, err)))
            return status;
        return more ? burin_fail(err, BURIN_EFORMAT, "tokenizer.json: a merge of three")
                    : BURIN_OK;
    }

    struct burin_span text;
    if ((status = burin_json_take_text(scan, &text, err)))
        return status;
    /* The first line of merges.txt may have come along, as the reference knows. */
    *is_version = text.length >= sizeof version - 1 &&
                  memcmp(text.at, version, sizeof version - 1) == 0;
    const char *space = text.length ? memchr(text.at, ' ', text.length) : NULL;
    if (!space)
        return burin_fail(
                err, BURIN_EFORMAT, "tokenizer.json: merge %s is not two tokens",
                burin_quote(text).text);
    const size_t left = (size_t)(space - text.at);
    merge->left = (struct burin_span){ text.at, left };
    merge->right = (struct burin_span){ space + 1, text.length - left - 1 };
    return BURIN_OK;
}

static enum burin_status read_merges(
        struct burin_vocab *vocab, struct burin_json_scan list, struct burin_error *err)
{
    struct burin_json_scan counter = list;
    enum burin_status status = burin_json_enter(&counter, '[', err);
    size_t n = 0;
    bool more = true;

    while (!status && !(status = burin_json_element(&counter, &more, err)) && more) {
        status = burin_json_skip(&counter, err);
        n++;
    }
    if (status)
        return status;
    vocab->merges = take_list(vocab, n, sizeof *vocab->merges, "merges", &status, err);
    if (!vocab->merges)
        return status;

    status = burin_json_enter(&list, '[', err);
    for (size_t i = 0; i < n && !status; i++) {
        bool is_version = false;
        status = burin_json_element(&list, &more, err);
        if (!status)
            status = read_merge(&list, &vocab->merges[vocab->n_merges], &is_version, err);
        vocab->n_merges += !(i == 0 && is_version);
    }
    return status;
}

/* ---- Added tokens ------------------------------------------------------------------------- */

enum { LONGEST_ADDED = 4096 };

static enum burin_status read_added_token(
        struct burin_vocab *vocab,
        struct burin_json_scan *scan,
        struct burin_vocab_added *added,
        struct burin_error *err)
{
    struct field fields[] = {
        { .name = "id" },         { .name = "content" },     { .name = "special" },
        { .name = "normalized" }, { .name = "single_word" }, { .name = "lstrip" },
        { .name = "rstrip" },
    };
    enum burin_status status;

    if ((status = READ_FIELDS(*scan, fields, err)) || (status = burin_json_skip(scan, err)))
        return status;
    if (!fields[0].is_there || !fields[1].is_there)
        return burin_fail(
                err, BURIN_EFORMAT, "tokenizer.json: added token %d lacks id or content",
                vocab->n_added);
    if ((status = id_of(&fields[0].at, &added->id, err)) ||
        (status = text_of(&fields[1], &added->content, err)))
        return status;
    if (added->content.length > LONGEST_ADDED)
        return burin_fail(
                err, BURIN_ELIMIT,
                "tokenizer.json: an added token has %zu bytes, the limit is %d",
                added->content.length, LONGEST_ADDED);
    added->special = flag_of(&fields[2], false);
    added->normalized = flag_of(&fields[3], !added->special);
    added->single_word = flag_of(&fields[4], false);
    added->lstrip = flag_of(&fields[5], false);
    added->rstrip = flag_of(&fields[6], false);
    return BURIN_OK;
}

static enum burin_status read_added(
        struct burin_vocab *vocab,
        struct burin_json_scan list,
        size_t n_listed,
        struct burin_error *err)
{
    struct burin_json_scan counter = list;
    enum burin_status status = burin_json_enter(&counter, '[', err);
    size_t n = 0;
    bool more = true;

    while (!status && !(status = burin_json_element(&counter, &more, err)) && more) {
        status = burin_json_skip(&counter, err);
        n++;
    }
    if (status)
        return status;
    vocab->added = take_list(vocab, n, sizeof *vocab->added, "added tokens", &status, err);
    if (!vocab->added)
        return status;

    status = burin_json_enter(&list, '[', err);
    for (size_t i = 0; i < n && !status; i++) {
        struct burin_vocab_added *added = &vocab->added[vocab->n_added];
        status = burin_json_element(&list, &more, err);
        if (!status)
            status = read_added_token(vocab, &list, added, err);
        if (!status)
            status = count_id(vocab, added->id, n_listed + n, err);
        vocab->n_added += added->content.length > 0;
    }
    return status;
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

/* ---- The model ------------------------------------------------------------------------------ */

enum { TYPE, VOCAB, MERGES, UNKNOWN, FUSE, FALLBACK, IGNORE, DROPOUT, PREFIX, SUFFIX };

static enum burin_status check_model(struct field *f, struct burin_error *err)
{
    struct burin_span type;
    struct burin_span prefix;
    struct burin_span suffix;
    enum burin_status status;

    if ((status = text_of(&f[TYPE], &type, err)) ||
        (status = text_of(&f[PREFIX], &prefix, err)) ||
        (status = text_of(&f[SUFFIX], &suffix, err)))
        return status;
    if (type.length && !burin_span_is(type, "BPE"))
        return refuse_part("model", type, err);
    if (!f[VOCAB].is_there || !f[MERGES].is_there)
        return burin_fail(
                err, BURIN_EFORMAT, "tokenizer.json: the model lacks vocab or merges");
    if (flag_of(&f[FALLBACK], false))
        return refuse_part("model with", burin_span_of("byte_fallback"), err);
    if (f[DROPOUT].is_there)
        return refuse_part("model with", burin_span_of("dropout"), err);
    if (prefix.length)
        return refuse_part("model with", burin_span_of("continuing_subword_prefix"), err);
    if (suffix.length)
        return refuse_part("model with", burin_span_of("end_of_word_suffix"), err);
    return BURIN_OK;
}

static enum burin_status read_unknown(
        struct burin_vocab *vocab,
        struct field *f,
        const struct listed *listed,
        size_t n,
        struct burin_error *err)
{
    struct burin_span text;
    const enum burin_status status = text_of(&f[UNKNOWN], &text, err);
    if (status || !f[UNKNOWN].is_there)
        return status;

    for (size_t i = 0; i < n; i++)
        if (burin_span_compare(listed[i].text, text) == 0)
            vocab->unknown = listed[i].id;
    vocab->fuse_unknown = flag_of(&f[FUSE], false);
    if (vocab->unknown < 0)
        return burin_fail(
                err, BURIN_EFORMAT, "tokenizer.json: unk_token %s is no token",
                burin_quote(text).text);
    return BURIN_OK;
}

static enum burin_status read_model(
        struct burin_vocab *vocab,
        struct field *model,
        struct field *added,
        struct burin_error *err)
{
    struct field f[] = {
        [TYPE] = { .name = "type" },
        [VOCAB] = { .name = "vocab" },
        [MERGES] = { .name = "merges" },
        [UNKNOWN] = { .name = "unk_token" },
        [FUSE] = { .name = "fuse_unk" },
        [FALLBACK] = { .name = "byte_fallback" },
        [IGNORE] = { .name = "ignore_merges" },
        [DROPOUT] = { .name = "dropout" },
        [PREFIX] = { .name = "continuing_subword_prefix" },
        [SUFFIX] = { .name = "end_of_word_suffix" },
    };
    struct listed *listed;
    size_t n;
    enum burin_status status;

    if (!model->is_there)
        return burin_fail(err, BURIN_EFORMAT, "tokenizer.json: there is no model");
    if ((status = READ_FIELDS(model->at, f, err)) || (status = check_model(f, err)) ||
        (status = burin_json_count(&f[VOCAB].at, &n, err)))
        return status;
    listed = take_list(vocab, n, sizeof *listed, "tokens", &status, err);
    if (!listed)
        return status;
    if ((status = read_listed(vocab, &f[VOCAB].at, listed, n, err)) ||
        (status = read_merges(vocab, f[MERGES].at, err)) ||
        (status = read_unknown(vocab, f, listed, n, err)))
        return status;
    if (added->is_there && (status = read_added(vocab, added->at, n, err)))
        return status;
    vocab->ignore_merges = flag_of(&f[IGNORE], false);
    return fill_tokens(vocab, listed, n, err);
}

/* ---- Steps ------------------------------------------------------------------------------------ */

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
        struct field *from,
        const char *key,
        step_reader *read,
        struct burin_error *err)
{
    struct field fields[] = { { .name = "type" }, { .name = key } };
    struct burin_span type;
    enum burin_status status;

    if (!from->is_there)
        return BURIN_OK;
    if ((status = READ_FIELDS(from->at, fields, err)) ||
        (status = text_of(&fields[0], &type, err)))
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
        struct field step[] = { { .name = "type" } };
        if ((status = burin_json_skip(list, err)) ||
            (status = READ_FIELDS(here, step, err)) ||
            (status = text_of(&step[0], &type, err)) ||
            (status = read(vocab, type, here, err)))
            return status;
    }
    return status;
}

static enum burin_status read_normalizer(
        struct burin_vocab *vocab,
        struct burin_span type,
        struct burin_json_scan step,
        struct burin_error *err)
{
    (void)step;
    if (!burin_span_is(type, "NFC"))
        return refuse_part("normalizer", type, err);
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
    struct field fields[] = { { .name = "pattern" },
                              { .name = "behavior" },
                              { .name = "invert" } };
    struct field kinds[] = { { .name = "Regex" }, { .name = "String" } };
    struct burin_span behavior;
    enum burin_status status;

    if ((status = READ_FIELDS(step, fields, err)) ||
        (status = text_of(&fields[1], &behavior, err)))
        return status;
    if (!fields[0].is_there)
        return burin_fail(err, BURIN_EFORMAT, "tokenizer.json: Split has no pattern");
    if ((status = READ_FIELDS(fields[0].at, kinds, err)))
        return status;

    const bool invert = flag_of(&fields[2], false);
    const bool removed = burin_span_is(behavior, "Removed");
    struct burin_split split = {
        .kind = BURIN_SPLIT_PATTERN,
        .keep_matches = !removed || invert,
        .keep_gaps = !removed || !invert,
    };
    if (!removed && !burin_span_is(behavior, "Isolated"))
        return refuse_part("Split with behavior", behavior, err);
    if ((status = text_of(&kinds[0], &split.pattern, err)))
        return status;
    if (!kinds[0].is_there && ((status = text_of(&kinds[1], &split.pattern, err)) ||
                               (status = quote_pattern(vocab, &split.pattern, err))))
        return status;
    if (split.pattern.length == 0)
        return burin_fail(err, BURIN_EFORMAT, "tokenizer.json: Split has no pattern");
    return add_split(vocab, split, err);
}

static enum burin_status read_byte_level(
        struct burin_vocab *vocab, struct burin_json_scan step, struct burin_error *err)
{
    struct field fields[] = { { .name = "add_prefix_space" }, { .name = "use_regex" } };
    const enum burin_status status = READ_FIELDS(step, fields, err);
    if (status)
        return status;
    if (flag_of(&fields[0], true))
        return refuse_part("ByteLevel with", burin_span_of("add_prefix_space"), err);
    vocab->is_byte_level = true;
    if (!flag_of(&fields[1], true))
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
    if (vocab->is_byte_level)
        return refuse_part("pre_tokenizer behind ByteLevel,", type, err);
    if (burin_span_is(type, "Split"))
        return read_split(vocab, step, err);
    if (burin_span_is(type, "ByteLevel"))
        return read_byte_level(vocab, step, err);
    if (!burin_span_is(type, "Digits"))
        return refuse_part("pre_tokenizer", type, err);

    struct field fields[] = { { .name = "individual_digits" } };
    const enum burin_status status = READ_FIELDS(step, fields, err);
    if (status)
        return status;
    return add_split(
            vocab,
            (struct burin_split){
                    .kind = flag_of(&fields[0], false) ? BURIN_SPLIT_DIGIT
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
    struct field fields[] = { { .name = "id" } };
    struct burin_span name;
    enum burin_status status;
    bool more = true;
    char text[256];

    if ((status = READ_FIELDS(special, fields, err)) ||
        (status = text_of(&fields[0], &name, err)))
        return status;
    if (name.length == 0 || name.length >= sizeof text)
        return burin_fail(
                err, BURIN_EFORMAT,
                "tokenizer.json: post_processor adds a token without name");
    memcpy(text, name.at, name.length);
    text[name.length] = '\0';

    struct field token[] = { { .name = text } };
    struct field ids[] = { { .name = "ids" } };
    if ((status = READ_FIELDS(tokens, token, err)))
        return status;
    if (token[0].is_there && (status = READ_FIELDS(token[0].at, ids, err)))
        return status;
    if (!ids[0].is_there)
        return burin_fail(
                err, BURIN_EFORMAT,
                "tokenizer.json: post_processor does not say what %s is",
                burin_quote(name).text);

    status = burin_json_enter(&ids[0].at, '[', err);
    while (!status && !(status = burin_json_element(&ids[0].at, &more, err)) && more) {
        int32_t id = 0;
        if ((status = id_of(&ids[0].at, &id, err)))
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
    struct field fields[] = { { .name = "single" }, { .name = "special_tokens" } };
    enum burin_status status;
    bool has_text = false;
    bool more = true;

    if (burin_span_is(type, "ByteLevel"))
        return BURIN_OK; /* offsets alone */
    if (!burin_span_is(type, "TemplateProcessing"))
        return refuse_part("post_processor", type, err);
    if ((status = READ_FIELDS(step, fields, err)))
        return status;
    if (!fields[0].is_there || !fields[1].is_there)
        return burin_fail(
                err, BURIN_EFORMAT,
                "tokenizer.json: post_processor lacks single or special_tokens");

    struct burin_json_scan *parts = &fields[0].at;
    status = burin_json_enter(parts, '[', err);
    while (!status && !(status = burin_json_element(parts, &more, err)) && more) {
        struct field part[] = { { .name = "SpecialToken" } };
        if ((status = READ_FIELDS(*parts, part, err)) ||
            (status = burin_json_skip(parts, err)))
            return status;
        if (part[0].is_there && has_text)
            return refuse_part(
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
    (void)vocab;
    (void)step;
    return burin_span_is(type, "ByteLevel") ? BURIN_OK : refuse_part("decoder", type, err);
}

/* ---- All of it ---------------------------------------------------------------------------------- */

enum { MODEL, ADDED, NORMALIZER, PRE_TOKENIZER, POST_PROCESSOR, DECODER };

/* `bytes` is in the vocab's arena; texts are decoded in place. */
static enum burin_status read_all(
        struct burin_vocab *vocab, char *bytes, size_t length, struct burin_error *err)
{
    struct field f[] = {
        [MODEL] = { .name = "model" },
        [ADDED] = { .name = "added_tokens" },
        [NORMALIZER] = { .name = "normalizer" },
        [PRE_TOKENIZER] = { .name = "pre_tokenizer" },
        [POST_PROCESSOR] = { .name = "post_processor" },
        [DECODER] = { .name = "decoder" },
    };
    struct burin_json_scan scan;
    struct burin_json_scan end;
    enum burin_status status;

    vocab->most_bytes = 4 * length + (size_t)64 * 1024 * 1024;
    if ((status = burin_json_scan_begin(&scan, "tokenizer.json", bytes, length, err)))
        return status;
    end = scan;
    if ((status = burin_json_skip(&end, err)) || (status = burin_json_end(&end, err)) ||
        (status = READ_FIELDS(scan, f, err)) ||
        (status = read_model(vocab, &f[MODEL], &f[ADDED], err)) ||
        (status = read_steps(vocab, &f[NORMALIZER], "normalizers", read_normalizer, err)) ||
        (status = check_added(vocab, err)) ||
        (status = read_steps(
                 vocab, &f[PRE_TOKENIZER], "pretokenizers", read_pre_tokenizer, err)) ||
        (status = read_steps(
                 vocab, &f[POST_PROCESSOR], "processors", read_post_processor, err)) ||
        (status = read_steps(vocab, &f[DECODER], "decoders", read_decoder, err)))
        return status;
    if (!f[DECODER].is_there)
        return refuse_part("decoder", burin_span_of("null"), err);
    if (!vocab->is_byte_level)
        return burin_fail(
                err, BURIN_EMISMATCH,
                "tokenizer.json: no ByteLevel pre_tokenizer; only byte-level BPE is "
                "supported");
    return BURIN_OK;
}

enum burin_status burin_vocab_from_json(
        struct burin_vocab *vocab, struct burin_span text, struct burin_error *err)
{
    *vocab = (struct burin_vocab){ .unknown = -1, .eos = -1 };
    char *bytes = burin_arena_text(&vocab->arena, text.at, text.length);
    const enum burin_status status =
            bytes ? read_all(vocab, bytes, text.length, err)
                  : burin_fail(err, BURIN_ENOMEM, "no memory for %zu bytes", text.length);
    if (status)
        burin_vocab_close(vocab);
    return status;
}

enum burin_status burin_vocab_from_json_file(
        struct burin_vocab *vocab, const char *path, struct burin_error *err)
{
    enum { MOST_BYTES = 256 * 1024 * 1024 };
    struct burin_file file = { 0 };
    char *bytes = NULL;

    *vocab = (struct burin_vocab){ .unknown = -1, .eos = -1 };
    enum burin_status status = burin_file_open(&file, path, err);
    if (!status && file.size > MOST_BYTES)
        status = burin_fail(
                err, BURIN_ELIMIT, "%s has %llu bytes, the limit is %d", path,
                (unsigned long long)file.size, MOST_BYTES);
    if (!status) {
        bytes = burin_arena_take(&vocab->arena, (size_t)file.size, 1, 1);
        if (!bytes)
            status = burin_fail(err, BURIN_ENOMEM, "no memory to read %s", path);
    }
    if (!status)
        status = burin_file_read(&file, 0, bytes, (size_t)file.size, err);
    if (!status)
        status = read_all(vocab, bytes, (size_t)file.size, err);
    burin_file_close(&file);
    if (status)
        burin_vocab_close(vocab);
    return status;
}
