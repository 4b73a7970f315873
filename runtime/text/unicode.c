#include "runtime/text/unicode.h"

#include <assert.h>
#include <string.h>
#include <utf8proc.h>

/* ---- UTF-8 ----------------------------------------------------------------------- */

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

/* ---- Stand-ins ------------------------------------------------------------------- */

/* 0 where the character stands for itself. */
static uint32_t stand_in(uint32_t c)
{
    /* Most text lies in these three gaps between the rows. */
    if (c < 0x897 || (c > 0x31EF && c < 0xA7CB) || (c > 0xA7DC && c < 0x105C0))
        return 0;

    int low = 0;
    int high = burin_n_stand_ins;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (c > burin_stand_ins[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < burin_n_stand_ins && c >= burin_stand_ins[low].first)
        return burin_stand_ins[low].stand_in;
    return 0;
}

void burin_put_stand_ins(char *text, size_t length)
{
    const char *const end = text + length;

    while (text < end) {
        const char *next = text;
        const uint32_t other = stand_in(burin_utf8_next(&next));
        if (other)
            burin_utf8_put(text, other);
        text += next - text;
    }
}

size_t burin_utf8_valid(struct burin_span text, bool *has_stand_ins)
{
    bool found = false;
    size_t i = 0;

    while (i < text.length) {
        uint64_t eight;
        if (text.length - i >= sizeof eight) {
            memcpy(&eight, text.at + i, sizeof eight);
            if (!(eight & UINT64_C(0x8080808080808080))) {
                i += sizeof eight;
                continue;
            }
        }
        size_t used;
        if (burin_utf8_look(text.at + i, text.length - i, &used) != BURIN_UTF8_WHOLE)
            break;
        if (used >= 3 && !found) {
            const char *at = text.at + i;
            found = stand_in(burin_utf8_next(&at)) != 0;
        }
        i += used;
    }
    if (has_stand_ins)
        *has_stand_ins = found;
    return i;
}

/* ---- Classes --------------------------------------------------------------------- */

bool burin_is_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

bool burin_is_strippable(uint32_t c)
{
    return burin_is_space(c) || (c >= 0x1C && c <= 0x1F);
}

bool burin_is_word(uint32_t c)
{
    const uint32_t older = stand_in(c);
    switch (utf8proc_category((utf8proc_int32_t)(older ? older : c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
        return true;
    default: /* joiners, and letters in circles and squares */
        return c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) ||
               (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
               (c >= 0x1F170 && c <= 0x1F189);
    }
}

bool burin_is_numeric(uint32_t c)
{
    if (c < 0x80)
        return c >= '0' && c <= '9';

    int low = 0;
    int high = burin_n_numeric;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (c > burin_numeric[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < burin_n_numeric && c >= burin_numeric[low].first;
}
