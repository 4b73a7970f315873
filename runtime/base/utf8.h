/* runtime/base/utf8.h -- Characters in UTF-8: Unicode 15, table 3-7, no surrogates and nothing
 * overlong.
 *
 * Threads  Pure functions. */
#ifndef BURIN_BASE_UTF8_H
#define BURIN_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

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

/* What comes first in `n` bytes of foreign text, as a terminal may have it: a character as it
 * is, \xNN for a byte that is none or that begins one which a terminal obeys (controls, marks
 * that turn the direction of text). Writes up to 4 bytes and returns how many. */
enum { BURIN_UTF8_SHOWN = 4 };
size_t burin_utf8_show(const char *bytes, size_t n, char *shown, size_t *used);

#endif
