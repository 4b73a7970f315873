#include "runtime/base/json.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void burin_json_begin(struct burin_json *json, FILE *out)
{
    *json = (struct burin_json){ .out = out };
}

/* Bytes of the UTF-8 code point at text, 0 where there is none. */
static size_t code_point_length(const unsigned char *text, size_t left)
{
    const unsigned char lead = text[0];
    size_t length;
    unsigned char least = 0x80, most = 0xBF; /* of the second byte */
    if (lead < 0x80)
        return 1;
    if (lead >= 0xC2 && lead <= 0xDF) {
        length = 2;
    } else if ((lead & 0xF0) == 0xE0) {
        length = 3;
        least = lead == 0xE0 ? 0xA0 : least; /* shorter forms exist below */
        most = lead == 0xED ? 0x9F : most;   /* surrogates above */
    } else if (lead >= 0xF0 && lead <= 0xF4) {
        length = 4;
        least = lead == 0xF0 ? 0x90 : least;
        most = lead == 0xF4 ? 0x8F : most;
    } else {
        return 0;
    }
    if (left < length || text[1] < least || text[1] > most)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    return length;
}

static void quoted(FILE *out, const char *text, size_t length)
{
    if (length == SIZE_MAX)
        length = strlen(text);
    const unsigned char *bytes = (const unsigned char *)text;
    fputc('"', out);
    for (size_t i = 0; i < length;) {
        const size_t step = code_point_length(bytes + i, length - i);
        const unsigned char byte = bytes[i];
        if (step == 0)
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
            fwrite(bytes + i, 1, step, out);
        i += step ? step : 1;
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
