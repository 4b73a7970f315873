#include "runtime/base/span.h"

#include <string.h>

struct burin_span burin_span_of(const char *text)
{
    return (struct burin_span){ text, text ? strlen(text) : 0 };
}

bool burin_span_is(struct burin_span span, const char *text)
{
    const size_t length = strlen(text);
    return span.length == length && (length == 0 || memcmp(span.at, text, length) == 0);
}

bool burin_span_ends(struct burin_span span, const char *suffix)
{
    const size_t length = strlen(suffix);
    return span.length >= length &&
           (length == 0 || memcmp(span.at + span.length - length, suffix, length) == 0);
}

int burin_span_compare(struct burin_span a, struct burin_span b)
{
    const size_t common = a.length < b.length ? a.length : b.length;
    const int order = common ? memcmp(a.at, b.at, common) : 0;
    if (order)
        return order;
    return (a.length > b.length) - (a.length < b.length);
}

struct burin_quoted burin_quote(struct burin_span span)
{
    static const char hex[] = "0123456789abcdef";
    enum { LONGEST_PIECE = 4, ENDING = 5 /* ..." and NUL */ };
    struct burin_quoted quoted;
    size_t used = 0;

    quoted.text[used++] = '"';
    for (size_t i = 0; i < span.length; i++) {
        const unsigned char c = (unsigned char)span.at[i];
        if (used + LONGEST_PIECE + ENDING > sizeof quoted.text) {
            memcpy(quoted.text + used, "...", 3);
            used += 3;
            break;
        }
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
            quoted.text[used++] = (char)c;
        } else {
            quoted.text[used++] = '\\';
            quoted.text[used++] = 'x';
            quoted.text[used++] = hex[c >> 4];
            quoted.text[used++] = hex[c & 15];
        }
    }
    quoted.text[used++] = '"';
    quoted.text[used] = '\0';
    return quoted;
}
