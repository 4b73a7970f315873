#include "runtime/base/json.h"

#include "runtime/base/utf8.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void burin_json_begin(struct burin_json *json, FILE *out)
{
    *json = (struct burin_json){ .out = out };
}

static void quoted(FILE *out, const char *text, size_t length)
{
    if (length == SIZE_MAX)
        length = strlen(text);
    fputc('"', out);
    for (size_t i = 0, step = 0; i < length; i += step) {
        const unsigned char byte = (unsigned char)text[i];
        if (burin_utf8_look(text + i, length - i, &step) != BURIN_UTF8_WHOLE)
            fputs("\\ufffd", out);
        else if (byte == '"' || byte == '\\')
            fprintf(out, "\\%c", byte);
        else if (byte == '\n')
            fputs("\\n", out);
        else if (byte == '\t')
            fputs("\\t", out);
        else if (byte < 0x20 || byte == 0x7F)
            fprintf(out, "\\u%04x", byte);
        else
            fwrite(text + i, 1, step, out);
    }
    fputc('"', out);
}

static void new_line(struct burin_json *json)
{
    fprintf(json->out, "\n%*s", 2 * json->depth, "");
}

/* What stands before a value: a comma, a line's beginning, the key. */
static void lead_in(struct burin_json *json, const char *key)
{
    if (json->depth) {
        bool *filled = &json->filled[json->depth - 1];
        const bool own_line =
                json->depth == 1 || (json->depth == 2 && json->closers[1] == ']' && !key);
        if (*filled)
            fputs(own_line ? "," : ", ", json->out);
        if (own_line)
            new_line(json);
        *filled = true;
    }
    if (key) {
        quoted(json->out, key, SIZE_MAX);
        fputs(": ", json->out);
    }
}

void burin_json_open(struct burin_json *json, const char *key, char bracket)
{
    assert(json->depth < BURIN_JSON_DEPTH);
    lead_in(json, key);
    fputc(bracket, json->out);
    json->closers[json->depth] = bracket == '{' ? '}' : ']';
    json->filled[json->depth] = false;
    json->depth++;
}

void burin_json_close(struct burin_json *json)
{
    assert(json->depth);
    json->depth--;
    const bool own_line = json->depth == 0 || (json->depth == 1 && json->closers[1] == ']');
    if (own_line && json->filled[json->depth])
        new_line(json);
    fputc(json->closers[json->depth], json->out);
    if (json->depth == 0)
        fputc('\n', json->out);
}

void burin_json_text(
        struct burin_json *json, const char *key, const char *text, size_t length)
{
    if (!text) {
        burin_json_null(json, key);
        return;
    }
    lead_in(json, key);
    quoted(json->out, text, length);
}

void burin_json_integer(struct burin_json *json, const char *key, int64_t value)
{
    lead_in(json, key);
    fprintf(json->out, "%lld", (long long)value);
}

void burin_json_real(struct burin_json *json, const char *key, double value)
{
    if (!isfinite(value)) {
        burin_json_null(json, key);
        return;
    }
    lead_in(json, key);
    fprintf(json->out, "%.9g", value);
}

void burin_json_bool(struct burin_json *json, const char *key, bool value)
{
    lead_in(json, key);
    fputs(value ? "true" : "false", json->out);
}

void burin_json_null(struct burin_json *json, const char *key)
{
    lead_in(json, key);
    fputs("null", json->out);
}
