#include "runtime/base/utf8.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

/* The second byte tells overlong forms, surrogates and what lies beyond U+10FFFF. */
static bool second_fits(uint8_t first, uint8_t second)
{
    switch (first) {
    case 0xE0:
        return second >= 0xA0 && second <= 0xBF;
    case 0xED:
        return second >= 0x80 && second <= 0x9F;
    case 0xF0:
        return second >= 0x90 && second <= 0xBF;
    case 0xF4:
        return second >= 0x80 && second <= 0x8F;
    default:
        return second >= 0x80 && second <= 0xBF;
    }
}

static size_t length_by_first(uint8_t first)
{
    if (first < 0x80)
        return 1;
    if (first >= 0xC2 && first <= 0xDF)
        return 2;
    if (first >= 0xE0 && first <= 0xEF)
        return 3;
    if (first >= 0xF0 && first <= 0xF4)
        return 4;
    return 0;
}

enum burin_utf8_state burin_utf8_look(const char *bytes, size_t n, size_t *used)
{
    const uint8_t first = (uint8_t)bytes[0];
    const size_t length = length_by_first(first);

    *used = 1;
    if (length == 0)
        return BURIN_UTF8_BROKEN;
    while (*used < length) {
        if (*used == n)
            return BURIN_UTF8_PARTIAL;
        const uint8_t next = (uint8_t)bytes[*used];
        const bool fits = *used == 1 ? second_fits(first, next) : (next & 0xC0) == 0x80;
        if (!fits)
            return BURIN_UTF8_BROKEN;
        ++*used;
    }
    return BURIN_UTF8_WHOLE;
}

uint32_t burin_utf8_next(const char **at)
{
    const uint8_t *s = (const uint8_t *)*at;
    const size_t length = length_by_first(s[0]);

    assert(length > 0);
    *at += length;
    switch (length) {
    case 1:
        return s[0];
    case 2:
        return (s[0] & 0x1Fu) << 6 | (s[1] & 0x3Fu);
    case 3:
        return (s[0] & 0x0Fu) << 12 | (s[1] & 0x3Fu) << 6 | (s[2] & 0x3Fu);
    default:
        return (s[0] & 0x07u) << 18 | (s[1] & 0x3Fu) << 12 | (s[2] & 0x3Fu) << 6 |
               (s[3] & 0x3Fu);
    }
}

uint32_t burin_utf8_last(const char *at)
{
    do
        at--;
    while (((uint8_t)*at & 0xC0) == 0x80);
    return burin_utf8_next(&at);
}

size_t burin_utf8_put(char *bytes, uint32_t c)
{
    if (c < 0x80) {
        bytes[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        bytes[0] = (char)(0xC0 | c >> 6);
        bytes[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        bytes[0] = (char)(0xE0 | c >> 12);
        bytes[1] = (char)(0x80 | (c >> 6 & 0x3F));
        bytes[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    bytes[0] = (char)(0xF0 | c >> 18);
    bytes[1] = (char)(0x80 | (c >> 12 & 0x3F));
    bytes[2] = (char)(0x80 | (c >> 6 & 0x3F));
    bytes[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

static bool is_obeyed(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x200E || c == 0x200F ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

size_t burin_utf8_show(const char *bytes, size_t n, char *shown, size_t *used)
{
    static const char hex[] = "0123456789abcdef";
    const char *at = bytes;
    if (burin_utf8_look(bytes, n, used) == BURIN_UTF8_WHOLE &&
        !is_obeyed(burin_utf8_next(&at))) {
        memcpy(shown, bytes, *used);
        return *used;
    }
    *used = 1;
    const uint8_t byte = (uint8_t)bytes[0];
    memcpy(shown, (const char[]){ '\\', 'x', hex[byte >> 4], hex[byte & 15] }, 4);
    return 4;
}
