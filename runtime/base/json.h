/* runtime/base/json.h -- Writing JSON, value by value, to a stream.
 *
 *     struct burin_json json;
 *     burin_json_begin(&json, stdout);
 *     burin_json_open(&json, NULL, '{');
 *     burin_json_text(&json, "model", "llama", SIZE_MAX);
 *     burin_json_open(&json, "owners", '[');
 *     ...
 *     burin_json_close(&json);
 *     burin_json_close(&json);
 *
 * Text     Bytes that are not UTF-8 become U+FFFD, so what is written always parses. Reals
 *          that are not finite become null.
 * Layout   A line for each member of the outermost value, and for each element of an array
 *          in it.
 * Errors   The stream's own: see ferror(). */
#ifndef BURIN_BASE_JSON_H
#define BURIN_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { BURIN_JSON_DEPTH = 16 };

struct burin_json {
    FILE *out;
    int depth;
    char closers[BURIN_JSON_DEPTH];
    bool filled[BURIN_JSON_DEPTH]; /* this value has a member already */
};

void burin_json_begin(struct burin_json *json, FILE *out);

/* `key` is NULL within an array and for the outermost value. `bracket` is '{' or '['. */
void burin_json_open(struct burin_json *json, const char *key, char bracket);
void burin_json_close(struct burin_json *json);

/* `length` bytes, or SIZE_MAX for text that ends with a NUL; a NULL text is null. */
void burin_json_text(
        struct burin_json *json, const char *key, const char *text, size_t length);
void burin_json_integer(struct burin_json *json, const char *key, int64_t value);
void burin_json_real(struct burin_json *json, const char *key, double value);
void burin_json_bool(struct burin_json *json, const char *key, bool value);
void burin_json_null(struct burin_json *json, const char *key);

#endif
