#include "runtime/weights/hyperparameters.h"

#include "runtime/base/json_scan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_SIZE = 200, MAX_CONFIG = 1 << 20, MAX_DEPTH = 4 };

/* What a file says under one key. A text is a view; null is the text "null". */
struct said {
    enum { NUMBER, TEXT, NEITHER } kind;
    double number;
    struct burin_span text;
    bool null;
};

/* ---- One value against one row --------------------------------------------------- */

/* The next of the words, or an empty one; *words is behind it then. */
static struct burin_span next_word(const char **words)
{
    const char *begin = *words + strspn(*words, " ");
    const struct burin_span word = { begin, strcspn(begin, " ") };
    *words = begin + word.length;
    return word;
}

static bool has_word(const char *words, struct burin_span wanted)
{
    for (;;) {
        const struct burin_span word = next_word(&words);
        if (word.length == 0)
            return false;
        if (burin_span_compare(word, wanted) == 0)
            return true;
    }
}

static bool agrees(const struct burin_hyperparameter *row, const struct said *said)
{
    if (row->text)
        return said->kind == TEXT && has_word(row->text, said->text);
    if (said->null)
        return true; /* not told */
    return said->kind == NUMBER &&
           fabs(said->number - row->number) <= 1e-6 * fabs(row->number);
}

static void show(const struct said *said, char *text, size_t size)
{
    if (said->kind == NUMBER)
        snprintf(text, size, "%.7g", said->number); /* as many digits as a float has */
    else if (said->kind == TEXT)
        snprintf(text, size, "%s", said->null ? "null" : burin_quote(said->text).text);
    else
        snprintf(text, size, "no number");
}

static void judge(
        const struct burin_hyperparameter *row,
        const char *key,
        const struct said *said,
        struct burin_self_report *report)
{
    if (agrees(row, said))
        return;
    const size_t last = report->n - 1; /* a list's values stand behind one another */
    if (report->n && last < BURIN_MAX_DISAGREEMENTS && report->rows[last].wanted == row &&
        strcmp(report->rows[last].key, key) == 0)
        return;
    if (report->n++ >= BURIN_MAX_DISAGREEMENTS)
        return;
    struct burin_disagreement *found = &report->rows[report->n - 1];
    found->wanted = row;
    snprintf(found->key, sizeof found->key, "%s", key);
    show(said, found->found, sizeof found->found);
}

/* ---- GGUF ------------------------------------------------------------------------ */

static void judge_gguf_key(
        const struct burin_hyperparameter *row,
        const struct burin_gguf *gguf,
        const char *key,
        struct burin_self_report *report)
{
    struct said said = { .kind = TEXT };
    struct burin_gguf_array list;
    enum burin_status status = burin_gguf_text(gguf, key, &said.text, NULL);
    if (status == BURIN_EMISSING)
        return;
    if (status) {
        said.kind = NUMBER;
        status = burin_gguf_number(gguf, key, &said.number, NULL);
    }
    if (!status) {
        judge(row, key, &said, report);
        return;
    }

    if (row->text || burin_gguf_numbers(gguf, key, &list, NULL)) {
        said.kind = NEITHER;
        judge(row, key, &said, report);
        return;
    }
    for (uint64_t i = 0; i < list.count; i++) {
        said.number = burin_gguf_element(&list, i);
        if (said.number != 0) /* where a layer has none: no attention, no window */
            judge(row, key, &said, report);
    }
}

/* The largest element of a tensor of factors, where there is one of this name. */
static enum burin_status judge_gguf_tensor(
        const struct burin_hyperparameter *row,
        const struct burin_checkpoint *checkpoint,
        const char *key,
        struct burin_self_report *report,
        struct burin_error *err)
{
    enum { MAX_FACTORS = 1024 };
    float factors[MAX_FACTORS];
    const struct burin_tensor *tensor = burin_checkpoint_find(checkpoint, key);
    if (!tensor || tensor->type->format != BURIN_FORMAT_F32 || tensor->bytes == 0 ||
        tensor->bytes > sizeof factors)
        return BURIN_OK;
    const enum burin_status status =
            burin_checkpoint_read(checkpoint, tensor, 0, factors, tensor->bytes, err);
    if (status)
        return status;
    struct said said = { .kind = NUMBER, .number = factors[0] };
    for (size_t i = 1; i < tensor->bytes / sizeof factors[0]; i++)
        said.number = fmax(said.number, factors[i]);
    judge(row, key, &said, report);
    return BURIN_OK;
}

static enum burin_status compare_gguf(
        const struct burin_model *model,
        const struct burin_checkpoint *checkpoint,
        struct burin_self_report *report,
        struct burin_error *err)
{
    const struct burin_gguf *gguf = &checkpoint->gguf;
    struct burin_span architecture = burin_span_of("llama"); /* as checkpoint.c takes it */
    (void)burin_gguf_text(gguf, "general.architecture", &architecture, NULL);

    for (int i = 0; i < model->n_hyperparameters; i++) {
        const struct burin_hyperparameter *row = &model->hyperparameters[i];
        const char *words = row->keys;
        if (row->container != BURIN_GGUF || architecture.length > KEY_SIZE / 2)
            continue;
        for (struct burin_span word = next_word(&words); word.length > 0;
             word = next_word(&words)) {
            char key[KEY_SIZE];
            const int before = *word.at == '.' ? (int)architecture.length : 0;
            snprintf(
                    key, sizeof key, "%.*s%.*s", before, architecture.at, (int)word.length,
                    word.at);
            judge_gguf_key(row, gguf, key, report);
            const enum burin_status status =
                    judge_gguf_tensor(row, checkpoint, key, report, err);
            if (status)
                return status;
        }
    }
    return BURIN_OK;
}

/* ---- config.json ----------------------------------------------------------------- */

struct walk {
    const struct burin_model *model;
    struct burin_json_scan scan;
    struct burin_self_report *report;
};

static double number_of(struct burin_span text)
{
    char copy[64];
    if (text.length >= sizeof copy)
        return NAN;
    memcpy(copy, text.at, text.length);
    copy[text.length] = '\0';
    return strtod(copy, NULL);
}

/* A value that is no object and no list. */
static enum burin_status take(
        struct burin_json_scan *scan, struct said *said, struct burin_error *err)
{
    *said = (struct said){ .kind = NEITHER };
    const char first = burin_json_peek(scan);
    if (first == '"') {
        said->kind = TEXT;
        return burin_json_take_text(scan, &said->text, err);
    }
    const char *begin = scan->at;
    const enum burin_status status = burin_json_skip(scan, err);
    if (status || first == '{' || first == '[')
        return status;
    if (first == 'n') {
        *said = (struct said){ .kind = TEXT, .text = burin_span_of("null"), .null = true };
        return BURIN_OK;
    }
    said->kind = NUMBER;
    if (first == 't' || first == 'f')
        said->number = first == 't';
    else
        said->number = number_of((struct burin_span){ begin, (size_t)(scan->at - begin) });
    return BURIN_OK;
}

static void judge_path(struct walk *w, const char *path, const struct said *said)
{
    for (int i = 0; i < w->model->n_hyperparameters; i++) {
        const struct burin_hyperparameter *row = &w->model->hyperparameters[i];
        if (row->container == BURIN_SAFETENSORS && has_word(row->keys, burin_span_of(path)))
            judge(row, path, said, w->report);
    }
}

static enum burin_status walk_list(
        struct walk *w, const char *path, struct burin_error *err)
{
    bool more;
    enum burin_status status = burin_json_enter(&w->scan, '[', err);
    while (!status && !(status = burin_json_element(&w->scan, &more, err)) && more) {
        struct said said;
        status = take(&w->scan, &said, err);
        if (!status)
            judge_path(w, path, &said);
    }
    return status;
}

static enum burin_status walk_object(
        struct walk *w, const char *prefix, int depth, struct burin_error *err);

static enum burin_status walk_value(
        struct walk *w, const char *path, int depth, struct burin_error *err)
{
    const char first = burin_json_peek(&w->scan);
    if (first == '{' && depth < MAX_DEPTH)
        return walk_object(w, strcmp(path, "text_config") ? path : "", depth + 1, err);
    if (first == '[')
        return walk_list(w, path, err);
    struct said said;
    const enum burin_status status = take(&w->scan, &said, err);
    if (status || first == '{')
        return status;
    if (depth == 1 && said.kind == TEXT && strcmp(path, "model_type") == 0 &&
        said.text.length < sizeof w->report->model_type)
        memcpy(w->report->model_type, said.text.at, said.text.length);
    judge_path(w, path, &said);
    return BURIN_OK;
}

static enum burin_status walk_object(
        struct walk *w, const char *prefix, int depth, struct burin_error *err)
{
    bool more;
    struct burin_span key;
    enum burin_status status = burin_json_enter(&w->scan, '{', err);
    while (!status && !(status = burin_json_member(&w->scan, &key, &more, err)) && more) {
        char path[KEY_SIZE];
        const int length = snprintf(
                path, sizeof path, "%s%s%.*s", prefix, *prefix ? "." : "",
                key.length < KEY_SIZE ? (int)key.length : KEY_SIZE, key.at);
        if (length < 0 || (size_t)length >= sizeof path)
            status = burin_json_skip(&w->scan, err);
        else
            status = walk_value(w, path, depth, err);
    }
    return status;
}

static enum burin_status walk_config(
        struct walk *w,
        struct burin_checkpoint *checkpoint,
        const struct burin_file *file,
        struct burin_error *err)
{
    if (file->size > MAX_CONFIG)
        return burin_fail(err, BURIN_EFORMAT, "%s: longer than 1 MiB", file->path);
    const size_t size = (size_t)file->size;
    char *text = burin_arena_take(&checkpoint->arena, size + 1, 1, 1);
    if (!text)
        return burin_fail(err, BURIN_ENOMEM, "%s: no room to read it", file->path);
    enum burin_status status = burin_file_read(file, 0, text, size, err);
    if (!status)
        status = burin_json_scan_begin(&w->scan, file->path, text, size, err);
    if (!status)
        status = walk_object(w, "", 1, err);
    return status ? status : burin_json_end(&w->scan, err);
}

static enum burin_status compare_config(
        const struct burin_model *model,
        struct burin_checkpoint *checkpoint,
        struct burin_self_report *report,
        struct burin_error *err)
{
    const int length = snprintf(
            report->config, sizeof report->config, "%s/config.json", checkpoint->folder);
    struct burin_file file;
    if (length < 0 || (size_t)length >= sizeof report->config ||
        burin_file_open(&file, report->config, NULL)) {
        *report->config = '\0';
        return BURIN_OK;
    }
    struct walk w = { .model = model, .report = report };
    const struct burin_arena_mark mark = burin_arena_mark(&checkpoint->arena);
    const enum burin_status status = walk_config(&w, checkpoint, &file, err);
    burin_arena_rewind(&checkpoint->arena, mark);
    burin_file_close(&file);
    return status;
}

enum burin_status burin_hyperparameters_compare(
        const struct burin_model *model,
        struct burin_checkpoint *checkpoint,
        struct burin_self_report *report,
        struct burin_error *err)
{
    *report = (struct burin_self_report){ 0 };
    if (checkpoint->container == BURIN_SAFETENSORS)
        return compare_config(model, checkpoint, report, err);
    return compare_gguf(model, checkpoint, report, err);
}
