#include "runtime/app/app.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_READ = 64 * 1024, MOST = 1 << 30 };

enum burin_status burin_app_blame_text(
        enum burin_status status, const char *whose, struct burin_error *err)
{
    if (status != BURIN_EFORMAT)
        return status;
    static char said[BURIN_ERROR_TEXT];
    snprintf(said, sizeof said, "%s", err->message);
    return burin_fail(
            err, BURIN_EUSAGE, "%s: %s", burin_show(burin_span_of(whose)).text, said);
}

/* What is read of a file or pipe, for messages too. */
struct input {
    FILE *in;
    const char *path; /* "stdin" for it */
    char *bytes;
    size_t length;
    size_t capacity;
    bool at_end;
};

static enum burin_status open_input(
        struct input *input, const char *path, struct burin_error *err)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    *input = (struct input){ .in = is_stdin ? stdin : fopen(path, "rb"),
                             .path = is_stdin ? "stdin" : path };
    if (!input->in)
        return burin_fail(
                err, BURIN_EUSAGE, "%s: %s", burin_show(burin_span_of(path)).text,
                strerror(errno));
    return BURIN_OK;
}

static void close_input(struct input *input)
{
    if (input->in != stdin)
        fclose(input->in);
}

/* Read on until the end or until there are more than `most` bytes. Each time the buffer is full
 * it moves to one of twice the size. */
static enum burin_status read_on(
        struct input *input,
        struct burin_arena *arena,
        size_t most,
        struct burin_error *err)
{
    const char *path = input->path;
    while (!input->at_end && input->length <= most) {
        if (input->length + 1 >= input->capacity) {
            size_t larger = input->capacity ? 2 * input->capacity : FIRST_READ;
            if (larger > most + 2) /* one byte too many shows that there are, then a NUL */
                larger = most + 2;
            char *moved = burin_arena_take(arena, larger, 1, 1);
            if (!moved)
                return burin_fail(
                        err, BURIN_ENOMEM, "%s: no memory for %zu bytes",
                        burin_show(burin_span_of(path)).text, larger);
            if (input->length)
                memcpy(moved, input->bytes, input->length);
            input->bytes = moved;
            input->capacity = larger;
        }
        input->length +=
                fread(input->bytes + input->length, 1, input->capacity - 1 - input->length,
                      input->in);
        if (ferror(input->in))
            return burin_fail(
                    err, errno == EISDIR ? BURIN_EUSAGE : BURIN_EIO, "%s: %s",
                    burin_show(burin_span_of(path)).text, strerror(errno));
        input->at_end = feof(input->in);
    }
    input->bytes[input->length] = '\0';
    return BURIN_OK;
}

enum burin_status burin_app_read(
        struct burin_app *app,
        const char *path,
        struct burin_span *text,
        struct burin_error *err)
{
    struct input input;
    enum burin_status status = open_input(&input, path, err);
    if (status)
        return status;
    status = read_on(&input, &app->arena, MOST, err);
    if (!status && input.length > MOST)
        status = burin_fail(
                err, BURIN_ELIMIT, "%s is larger than %d MiB",
                burin_show(burin_span_of(input.path)).text, MOST >> 20);
    *text = (struct burin_span){ input.bytes, input.length };
    close_input(&input);
    return status;
}

static enum burin_status join_words(
        struct burin_app *app, struct burin_span *text, struct burin_error *err)
{
    const struct burin_settings *settings = &app->settings;
    size_t length = 0;
    for (int i = 0; i < settings->n_words; i++)
        length += strlen(settings->words[i]) + 1;
    char *joined = burin_arena_take(&app->arena, length, 1, 1);
    if (!joined)
        return burin_fail(err, BURIN_ENOMEM, "no memory for a prompt of %zu bytes", length);
    char *at = joined;
    for (int i = 0; i < settings->n_words; i++) {
        const size_t word = strlen(settings->words[i]);
        memcpy(at, settings->words[i], word);
        at[word] = ' ';
        at += word + 1;
    }
    *text = (struct burin_span){ joined, length - 1 };
    return BURIN_OK;
}

/* Text from the command line itself, or where it lies: *path, NULL where there is none. */
static enum burin_status find_text(
        struct burin_app *app,
        struct burin_span *text,
        const char **path,
        struct burin_error *err)
{
    const struct burin_settings *settings = &app->settings;
    const int sources = (settings->n_words > 0) + (settings->prompt != NULL) +
                        (settings->prompt_file != NULL);
    *text = (struct burin_span){ NULL, 0 };
    *path = settings->prompt_file;
    if (sources > 1)
        return burin_fail(
                err, BURIN_EUSAGE, "give the text once: as words, with -p, or with -f");
    if (settings->n_words)
        return join_words(app, text, err);
    if (settings->prompt)
        *text = burin_span_of(settings->prompt);
    else if (!*path && !settings->chat && !isatty(STDIN_FILENO))
        *path = "-";
    return BURIN_OK;
}

enum burin_status burin_app_text(
        struct burin_app *app,
        struct burin_span *text,
        bool *given,
        struct burin_error *err)
{
    const char *path;
    const enum burin_status status = find_text(app, text, &path, err);
    *given = text->at || path;
    return status || !path ? status : burin_app_read(app, path, text, err);
}

/* The bytes of the longest token that the weights' tokenizer knows. */
static enum burin_status find_longest(
        struct burin_app *app, size_t *longest, struct burin_error *err)
{
    const struct burin_arena_mark mark = burin_arena_mark(&app->arena);
    struct burin_found found;
    enum burin_status status = burin_app_find(app, &found, err);
    if (status)
        return status;
    if (found.tokenizer)
        *longest = burin_tokenizer_facts(found.tokenizer).longest;
    else
        status = burin_app_no_tokenizer(found.checkpoint.path, err);
    burin_found_close(&found);
    burin_arena_rewind(&app->arena, mark);
    return status;
}

/* No prompt has more bytes than a context full of the longest token; a short one is let pass
 * without asking the weights which that is. */
static enum burin_status read_prompt(
        struct burin_app *app, struct input *input, struct burin_error *err)
{
    const size_t n_ctx = (size_t)burin_app_context(app);
    size_t longest = 0;
    enum burin_status status = read_on(input, &app->arena, FIRST_READ / 2, err);
    if (status || input->at_end)
        return status;
    status = find_longest(app, &longest, err);
    if (!status)
        status = read_on(input, &app->arena, n_ctx * longest, err);
    if (status || input->length <= n_ctx * longest)
        return status;
    return burin_fail(
            err, BURIN_ELIMIT,
            "%s has more than %zu bytes, which is %zu tokens of %zu: what the context and "
            "the longest token allow",
            burin_show(burin_span_of(input->path)).text, n_ctx * longest, n_ctx, longest);
}

enum burin_status burin_app_prompt(
        struct burin_app *app,
        struct burin_span *text,
        bool *given,
        struct burin_error *err)
{
    const char *path;
    enum burin_status status = find_text(app, text, &path, err);
    *given = text->at || path;
    if (status || !path)
        return status;

    struct input input;
    status = open_input(&input, path, err);
    if (status)
        return status;
    status = read_prompt(app, &input, err);
    close_input(&input);
    if (!status && input.length && input.bytes[input.length - 1] == '\n')
        input.length--;
    *text = (struct burin_span){ input.bytes, input.length };
    return status;
}
