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
    return burin_fail(err, BURIN_EUSAGE, "%s: %s", whose, said);
}

/* A stream's bytes: each time the buffer is full they move to one of twice the size. */
static enum burin_status read_all(
        struct burin_arena *arena,
        FILE *in,
        const char *path,
        struct burin_span *text,
        struct burin_error *err)
{
    char *bytes = NULL;
    size_t length = 0, capacity = 0;
    do {
        if (length + 1 >= capacity) {
            const size_t larger = capacity ? 2 * capacity : FIRST_READ;
            if (larger > MOST)
                return burin_fail(
                        err, BURIN_ELIMIT, "%s is larger than %d MiB", path, MOST >> 20);
            char *moved = burin_arena_take(arena, larger, 1, 1);
            if (!moved)
                return burin_fail(
                        err, BURIN_ENOMEM, "%s: no memory for %zu bytes", path, larger);
            if (length)
                memcpy(moved, bytes, length);
            bytes = moved;
            capacity = larger;
        }
        length += fread(bytes + length, 1, capacity - 1 - length, in);
        if (ferror(in))
            return burin_fail(err, BURIN_EIO, "%s: %s", path, strerror(errno));
    } while (!feof(in));
    bytes[length] = '\0';
    *text = (struct burin_span){ bytes, length };
    return BURIN_OK;
}

enum burin_status burin_app_read(
        struct burin_app *app,
        const char *path,
        struct burin_span *text,
        struct burin_error *err)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    FILE *in = is_stdin ? stdin : fopen(path, "rb");
    if (!in)
        return burin_fail(err, BURIN_EUSAGE, "%s: %s", path, strerror(errno));
    enum burin_status status =
            read_all(&app->arena, in, is_stdin ? "stdin" : path, text, err);
    if (!is_stdin)
        fclose(in);
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

enum burin_status burin_app_prompt(
        struct burin_app *app,
        struct burin_span *text,
        bool *given,
        struct burin_error *err)
{
    const struct burin_settings *settings = &app->settings;
    const int sources = (settings->n_words > 0) + (settings->prompt != NULL) +
                        (settings->prompt_file != NULL);
    if (sources > 1)
        return burin_fail(
                err, BURIN_EUSAGE, "give the text once: as words, with -p, or with -f");

    *given = true;
    if (settings->n_words)
        return join_words(app, text, err);
    if (settings->prompt) {
        *text = burin_span_of(settings->prompt);
        return BURIN_OK;
    }
    const char *path = settings->prompt_file;
    if (!path && (settings->chat || isatty(STDIN_FILENO))) {
        *given = false;
        return BURIN_OK;
    }
    enum burin_status status = burin_app_read(app, path ? path : "-", text, err);
    if (!status && text->length && text->at[text->length - 1] == '\n')
        text->length--;
    return status;
}
