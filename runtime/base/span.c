#include "runtime/base/span.h"

#include "runtime/base/utf8.h"

#include <stdint.h>
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

/* What of `span` fits into `room` bytes, to `to` unless that is NULL; returns how many. */
static size_t show(char *to, size_t room, struct burin_span span)
{
    size_t n = 0;
    char piece[BURIN_UTF8_SHOWN];
    for (size_t i = 0, used; i < span.length; i += used) {
        const size_t bytes = burin_utf8_show(span.at + i, span.length - i, piece, &used);
        if (n + bytes > room)
            break;
        if (to)
            memcpy(to + n, piece, bytes);
        n += bytes;
    }
    return n;
}

/* The last bytes, as many as `room` shows; from the begin of a character on. */
static struct burin_span ending(struct burin_span span, size_t room)
{
    size_t n = span.length < room ? span.length : room;
    struct burin_span end;
    do
        end = (struct burin_span){ span.at + span.length - n, n };
    while (n-- && (show(NULL, SIZE_MAX, end) > room || (*end.at & 0xC0) == 0x80));
    return end;
}

struct burin_shown burin_show(struct burin_span span)
{
    struct burin_shown shown;
    enum { ROOM = sizeof shown.text - 1, HALF = (ROOM - 3) / 2 };
    size_t n = 0;
    const bool is_short = span.length <= ROOM && show(NULL, SIZE_MAX, span) <= ROOM;

    if (!is_short) {
        n = show(shown.text, HALF, span);
        memcpy(shown.text + n, "...", 3);
        n += 3;
        span = ending(span, HALF);
    }
    n += show(shown.text + n, ROOM - n, span);
    shown.text[n] = '\0';
    return shown;
}
