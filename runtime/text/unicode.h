/* runtime/text/unicode.h -- UTF-8, and the character classes of the reference implementation.
 *
 * Threads  Pure functions over constant tables.
 * Why      The libraries of a machine know one version of Unicode each, the reference
 *          (Hugging Face tokenizers) knows another; ids must not depend on which. */
#ifndef BURIN_TEXT_UNICODE_H
#define BURIN_TEXT_UNICODE_H

#include "runtime/base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many bytes from the begin are well-formed UTF-8 (no surrogates, nothing overlong);
 * `*has_stand_ins` tells whether any of its characters has one, and may be NULL. */
size_t burin_utf8_valid(struct burin_span text, bool *has_stand_ins);

/* What a decoder knows of up to `n` bytes that begin a character. */
enum burin_utf8_state {
    BURIN_UTF8_WHOLE,   /* the first *used bytes are a character */
    BURIN_UTF8_PARTIAL, /* all n bytes begin a character; *used is n */
    BURIN_UTF8_BROKEN,  /* the first *used bytes are a maximal subpart of nothing */
};
enum burin_utf8_state burin_utf8_look(const char *bytes, size_t n, size_t *used);

/* The character at `*at` of well-formed text; moves `*at` behind it. */
uint32_t burin_utf8_next(const char **at);

/* The character that ends just before `at`; moves nothing. */
uint32_t burin_utf8_last(const char *at);

/* Writes 1 to 4 bytes and returns how many. */
size_t burin_utf8_put(char *bytes, uint32_t character);

/* White_Space: what \s means in the reference. */
bool burin_is_space(uint32_t character);

/* What Python's str.strip() takes away: white space and four control characters. */
bool burin_is_strippable(uint32_t character);

/* What \w means to added tokens that stand alone: letters, marks, digits, connectors. */
bool burin_is_word(uint32_t character);

/* Nd, Nl or No. */
bool burin_is_numeric(uint32_t character);

/* Characters that the pattern library may not know as the reference does, each with an older
 * one of the same class and as many bytes. Patterns look at the stand-ins, and what they find
 * holds for the text. */
void burin_put_stand_ins(char *text, size_t length);

struct burin_range {
    uint32_t first;
    uint32_t last;
};
struct burin_stand_in {
    uint32_t first;
    uint32_t last;
    uint32_t stand_in;
};
extern const struct burin_range burin_numeric[]; /* sorted */
extern const int burin_n_numeric;
extern const struct burin_stand_in burin_stand_ins[]; /* sorted */
extern const int burin_n_stand_ins;

#endif
