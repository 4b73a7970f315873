#include "runtime/app/app.h"
#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/base/utf8.h"

#include <stdio.h>

static const char *const kinds[] = {
    [BURIN_TOKEN_NONE] = "none",
    [BURIN_TOKEN_NORMAL] = "normal",
    [BURIN_TOKEN_ADDED] = "added",
    [BURIN_TOKEN_SPECIAL] = "special",
};

static void write_json(
        const struct burin_tokenizer *tokenizer,
        struct burin_span text,
        const int32_t *ids,
        size_t n_ids,
        double encode_ms)
{
    struct burin_json json;
    burin_json_begin(&json, stdout);
    burin_json_open(&json, NULL, '{');
    burin_json_integer(&json, "text_bytes", (int64_t)text.length);
    burin_json_integer(&json, "n_tokens", (int64_t)n_ids);
    burin_json_real(&json, "encode_ms", encode_ms); /* without loading */
    burin_json_open(&json, "tokens", '[');
    for (size_t i = 0; i < n_ids; i++) {
        const struct burin_span piece = burin_token_bytes(tokenizer, ids[i]);
        burin_json_open(&json, NULL, '{');
        burin_json_integer(&json, "id", ids[i]);
        burin_json_text(&json, "piece", piece.at ? piece.at : "", piece.length);
        burin_json_text(
                &json, "kind", kinds[burin_token_kind(tokenizer, ids[i])], SIZE_MAX);
        burin_json_close(&json);
    }
    burin_json_close(&json);
    burin_json_close(&json);
}

/* A piece between quotes, on one line: controls and halves of characters as \xNN. */
static void write_piece(struct burin_span piece)
{
    putchar('\'');
    for (size_t i = 0, used; i < piece.length; i += used) {
        char shown[BURIN_UTF8_SHOWN];
        const char byte = piece.at[i];
        used = 1;
        if (byte == '\n')
            fputs("\\n", stdout);
        else if (byte == '\t')
            fputs("\\t", stdout);
        else if (byte == '\\' || byte == '\'')
            printf("\\%c", byte);
        else
            fwrite(shown, 1, burin_utf8_show(piece.at + i, piece.length - i, shown, &used),
                   stdout);
    }
    fputs("'\n", stdout);
}

static void write_lines(
        const struct burin_tokenizer *tokenizer,
        const int32_t *ids,
        size_t n_ids,
        bool ids_only)
{
    for (size_t i = 0; i < n_ids; i++) {
        if (ids_only) {
            printf("%s%d", i ? " " : "", ids[i]);
            continue;
        }
        printf("%7d  ", ids[i]);
        write_piece(burin_token_bytes(tokenizer, ids[i]));
    }
    if (ids_only)
        putchar('\n');
}

enum burin_status burin_app_tokenize(struct burin_app *app, struct burin_error *err)
{
    struct burin_span text = { 0 };
    bool given = false;
    enum burin_status status = burin_app_text(app, &text, &given, err);
    if (!status && !given)
        status = burin_fail(
                err, BURIN_EUSAGE, "give a text: as words, with -p or -f, or piped");
    if (status)
        return status;

    struct burin_found found;
    status = burin_app_find(app, &found, err);
    if (status)
        return status;
    if (!found.tokenizer) {
        status = burin_app_no_tokenizer(found.checkpoint.path, err);
        goto out;
    }
    int32_t *ids = NULL;
    size_t n_ids = 0;
    const enum burin_specials specials =
            app->settings.parse_special ? BURIN_SPECIALS : BURIN_PLAIN;
    const double began_ms = burin_now_ms();
    status = burin_encode(found.tokenizer, text, specials, &app->arena, &ids, &n_ids, err);
    const double encode_ms = burin_now_ms() - began_ms;
    status = burin_app_blame_text(status, "the text", err);
    if (status)
        goto out;
    if (app->settings.json)
        write_json(found.tokenizer, text, ids, n_ids, encode_ms);
    else
        write_lines(found.tokenizer, ids, n_ids, app->settings.ids_only);
out:
    burin_found_close(&found);
    return status;
}
