#include "runtime/text/vocab_json.h"

#include "runtime/weights/file.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

/* ---- Members in any order -------------------------------------------------------------- */

enum burin_status burin_json_fields(
        struct burin_json_scan object,
        struct burin_json_field *fields,
        int n,
        struct burin_error *err)
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

enum burin_status burin_json_text_of(
        struct burin_json_field *field, struct burin_span *text, struct burin_error *err)
{
    *text = (struct burin_span){ 0 };
    return field->is_there ? burin_json_take_text(&field->at, text, err) : BURIN_OK;
}

bool burin_json_flag_of(struct burin_json_field *field, bool otherwise)
{
    if (!field->is_there)
        return otherwise;
    const char first = burin_json_peek(&field->at);
    return first == 't' || (first != 'f' && otherwise);
}

enum burin_status burin_json_id(
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

enum burin_status burin_vocab_refuse(
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
        status = burin_json_id(texts, &listed[i].id, err);
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
        const bool is_byte = vocab->byte_fallback && burin_token_byte(listed[i].text) >= 0;
        *token = (struct burin_vocab_token){
            listed[i].text, is_byte ? BURIN_TOKEN_BYTE : BURIN_TOKEN_NORMAL, true
        };
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
    struct burin_json_field fields[] = {
        { .name = "id" },         { .name = "content" },     { .name = "special" },
        { .name = "normalized" }, { .name = "single_word" }, { .name = "lstrip" },
        { .name = "rstrip" },
    };
    enum burin_status status;

    if ((status = BURIN_JSON_FIELDS(*scan, fields, err)) ||
        (status = burin_json_skip(scan, err)))
        return status;
    if (!fields[0].is_there || !fields[1].is_there)
        return burin_fail(
                err, BURIN_EFORMAT, "tokenizer.json: added token %d lacks id or content",
                vocab->n_added);
    if ((status = burin_json_id(&fields[0].at, &added->id, err)) ||
        (status = burin_json_text_of(&fields[1], &added->content, err)))
        return status;
    if (added->content.length > LONGEST_ADDED)
        return burin_fail(
                err, BURIN_ELIMIT,
                "tokenizer.json: an added token has %zu bytes, the limit is %d",
                added->content.length, LONGEST_ADDED);
    added->special = burin_json_flag_of(&fields[2], false);
    added->normalized = burin_json_flag_of(&fields[3], !added->special);
    added->single_word = burin_json_flag_of(&fields[4], false);
    added->lstrip = burin_json_flag_of(&fields[5], false);
    added->rstrip = burin_json_flag_of(&fields[6], false);
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

/* ---- The model ------------------------------------------------------------------------------ */

enum { TYPE, VOCAB, MERGES, UNKNOWN, FUSE, FALLBACK, IGNORE, DROPOUT, PREFIX, SUFFIX };

static enum burin_status check_model(struct burin_json_field *f, struct burin_error *err)
{
    struct burin_span type;
    struct burin_span prefix;
    struct burin_span suffix;
    enum burin_status status;

    if ((status = burin_json_text_of(&f[TYPE], &type, err)) ||
        (status = burin_json_text_of(&f[PREFIX], &prefix, err)) ||
        (status = burin_json_text_of(&f[SUFFIX], &suffix, err)))
        return status;
    if (type.length && !burin_span_is(type, "BPE"))
        return burin_vocab_refuse("model", type, err);
    if (!f[VOCAB].is_there || !f[MERGES].is_there)
        return burin_fail(
                err, BURIN_EFORMAT, "tokenizer.json: the model lacks vocab or merges");
    if (f[DROPOUT].is_there)
        return burin_vocab_refuse("model with", burin_span_of("dropout"), err);
    if (prefix.length)
        return burin_vocab_refuse(
                "model with", burin_span_of("continuing_subword_prefix"), err);
    if (suffix.length)
        return burin_vocab_refuse("model with", burin_span_of("end_of_word_suffix"), err);
    return BURIN_OK;
}

static enum burin_status read_unknown(
        struct burin_vocab *vocab,
        struct burin_json_field *f,
        const struct listed *listed,
        size_t n,
        struct burin_error *err)
{
    struct burin_span text;
    const enum burin_status status = burin_json_text_of(&f[UNKNOWN], &text, err);
    if (status || !f[UNKNOWN].is_there)
        return status;

    for (size_t i = 0; i < n; i++)
        if (burin_span_compare(listed[i].text, text) == 0)
            vocab->unknown = listed[i].id;
    vocab->fuse_unknown = burin_json_flag_of(&f[FUSE], false);
    if (vocab->unknown < 0)
        return burin_fail(
                err, BURIN_EFORMAT, "tokenizer.json: unk_token %s is no token",
                burin_quote(text).text);
    return BURIN_OK;
}

static enum burin_status read_model(
        struct burin_vocab *vocab,
        struct burin_json_field *model,
        struct burin_json_field *added,
        struct burin_error *err)
{
    struct burin_json_field f[] = {
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
    if ((status = BURIN_JSON_FIELDS(model->at, f, err)) || (status = check_model(f, err)) ||
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
    vocab->ignore_merges = burin_json_flag_of(&f[IGNORE], false);
    vocab->byte_fallback = burin_json_flag_of(&f[FALLBACK], false);
    return fill_tokens(vocab, listed, n, err);
}

/* ---- All of it ---------------------------------------------------------------------------------- */

/* `bytes` is in the vocab's arena; texts are decoded in place. */
static enum burin_status read_all(
        struct burin_vocab *vocab, char *bytes, size_t length, struct burin_error *err)
{
    enum { MODEL = BURIN_N_STEPS, ADDED };
    struct burin_json_field f[] = {
        [BURIN_NORMALIZER] = { .name = "normalizer" },
        [BURIN_PRE_TOKENIZER] = { .name = "pre_tokenizer" },
        [BURIN_POST_PROCESSOR] = { .name = "post_processor" },
        [BURIN_DECODER] = { .name = "decoder" },
        [MODEL] = { .name = "model" },
        [ADDED] = { .name = "added_tokens" },
    };
    struct burin_json_scan scan;
    struct burin_json_scan end;
    enum burin_status status;

    vocab->most_bytes = 4 * length + (size_t)64 * 1024 * 1024;
    if ((status = burin_json_scan_begin(&scan, "tokenizer.json", bytes, length, err)))
        return status;
    end = scan;
    if ((status = burin_json_skip(&end, err)) || (status = burin_json_end(&end, err)) ||
        (status = BURIN_JSON_FIELDS(scan, f, err)) ||
        (status = read_model(vocab, &f[MODEL], &f[ADDED], err)))
        return status;
    return burin_vocab_read_steps(vocab, f, err);
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
