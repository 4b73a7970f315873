#include "runtime/text/unicode.h"

#include "runtime/base/utf8.h"

#include <string.h>
#include <utf8proc.h>

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
