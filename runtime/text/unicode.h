/* runtime/text/unicode.h -- Valid text, and the character classes of the reference implementation.
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
