#include "runtime/base/json_scan.h"

#include "runtime/base/utf8.h"

#include <string.h>

/* What stands at `scan->at`, for a message. */
static struct burin_quoted found(const struct burin_json_scan *scan)
{
    const size_t left = (size_t)(scan->end - scan->at);
    if (!left)
        return (struct burin_quoted){ "the end" };
    return burin_quote((struct burin_span){ scan->at, left < 12 ? left : 12 });
}

#define wrong(scan, err, wanted)                                                           \
    burin_fail(                                                                            \
            (err), BURIN_EFORMAT, "%s: JSON byte %zu: %s, where %s is wanted",             \
            (scan)->name, (size_t)((scan)->at - (scan)->begin), found(scan).text,          \
            (wanted))

enum burin_status burin_json_scan_begin(
        struct burin_json_scan *scan,
        const char *name,
        char *bytes,
        size_t length,
        struct burin_error *err)
{
    *scan = (struct burin_json_scan){
        .name = name, .begin = bytes, .at = bytes, .end = bytes + length
    };
    while (scan->at < scan->end) {
        size_t used;
        if (burin_utf8_look(scan->at, (size_t)(scan->end - scan->at), &used) !=
            BURIN_UTF8_WHOLE)
            return wrong(scan, err, "UTF-8");
        scan->at += used;
    }
    scan->at = bytes;
    return BURIN_OK;
}

char burin_json_peek(struct burin_json_scan *scan)
{
    while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\t' ||
                                    *scan->at == '\n' || *scan->at == '\r'))
        scan->at++;
    if (scan->at == scan->end)
        return '\0';
    return *scan->at;
}

enum burin_status burin_json_enter(
        struct burin_json_scan *scan, char bracket, struct burin_error *err)
{
    if (burin_json_peek(scan) != bracket)
        return wrong(scan, err, bracket == '{' ? "an object" : "an array");
    if (scan->depth == BURIN_JSON_NESTING)
        return wrong(scan, err, "a value that is not nested so deeply");
    scan->at++;
    scan->depth++;
    scan->fresh = true;
    return BURIN_OK;
}

/* Stand before the next item of what was entered, or leave it. */
static enum burin_status next(
        struct burin_json_scan *scan, char closer, bool *more, struct burin_error *err)
{
    const bool first = scan->fresh;
    scan->fresh = false;
    *more = false;
    if (burin_json_peek(scan) == closer) {
        scan->at++;
        scan->depth--;
        return BURIN_OK;
    }
    if (!first) {
        if (burin_json_peek(scan) != ',')
            return wrong(scan, err, closer == '}' ? "',' or '}'" : "',' or ']'");
        scan->at++;
    }
    *more = true;
    return BURIN_OK;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The four digits behind "\u" at scan->at; -1 where they are not there. */
static long unicode_escape(const struct burin_json_scan *scan)
{
    if (scan->end - scan->at < 6 || scan->at[0] != '\\' || scan->at[1] != 'u')
        return -1;
    long unit = 0;
    for (int i = 2; i < 6; i++) {
        const int digit = hex_value(scan->at[i]);
        if (digit < 0)
            return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

/* Pass the escape at scan->at. Its bytes go to `to` and their number to *length; they are
 * never more than the escape has. */
static enum burin_status escape(
        struct burin_json_scan *scan, char *to, size_t *length, struct burin_error *err)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    const char *letter =
            scan->end - scan->at >= 2 && scan->at[1] ? strchr(letters, scan->at[1]) : NULL;
    if (letter) {
        to[0] = meanings[letter - letters];
        *length = 1;
        scan->at += 2;
        return BURIN_OK;
    }

    long c = unicode_escape(scan);
    if (c < 0 || (c >= 0xdc00 && c <= 0xdfff))
        return wrong(scan, err, "an escape");
    scan->at += 6;
    if (c >= 0xd800 && c <= 0xdbff) {
        const long low = unicode_escape(scan);
        if (low < 0xdc00 || low > 0xdfff)
            return wrong(scan, err, "the second half of a surrogate pair");
        scan->at += 6;
        c = 0x10000 + (c - 0xd800) * 0x400 + (low - 0xdc00);
    }
    *length = burin_utf8_put(to, (uint32_t)c);
    return BURIN_OK;
}

/* Pass a text. With `decode` its escapes are replaced in place, and *text is what it says. */
static enum burin_status take_text(
        struct burin_json_scan *scan,
        bool decode,
        struct burin_span *text,
        struct burin_error *err)
{
    if (burin_json_peek(scan) != '"')
        return wrong(scan, err, "a text");
    scan->at++;

    char *const begin = scan->at;
    char *to = begin;
    while (scan->at < scan->end && *scan->at != '"') {
        if ((unsigned char)*scan->at < 0x20)
            return wrong(scan, err, "a text without control characters");
        if (*scan->at != '\\') {
            if (decode && to != scan->at)
                *to = *scan->at;
            to++;
            scan->at++;
            continue;
        }
        char bytes[4];
        size_t length = 0;
        const enum burin_status status = escape(scan, bytes, &length, err);
        if (status)
            return status;
        if (decode)
            memcpy(to, bytes, length);
        to += length;
    }
    if (scan->at == scan->end)
        return wrong(scan, err, "'\"'");
    scan->at++;
    *text = (struct burin_span){ begin, (size_t)(to - begin) };
    return BURIN_OK;
}

static enum burin_status take_member(
        struct burin_json_scan *scan,
        bool decode,
        struct burin_span *key,
        bool *more,
        struct burin_error *err)
{
    enum burin_status status = next(scan, '}', more, err);
    if (status || !*more)
        return status;
    status = take_text(scan, decode, key, err);
    if (status)
        return status;
    if (burin_json_peek(scan) != ':')
        return wrong(scan, err, "':'");
    scan->at++;
    return BURIN_OK;
}

enum burin_status burin_json_member(
        struct burin_json_scan *scan,
        struct burin_span *key,
        bool *more,
        struct burin_error *err)
{
    return take_member(scan, true, key, more, err);
}

enum burin_status burin_json_element(
        struct burin_json_scan *scan, bool *more, struct burin_error *err)
{
    return next(scan, ']', more, err);
}

enum burin_status burin_json_take_text(
        struct burin_json_scan *scan, struct burin_span *text, struct burin_error *err)
{
    return take_text(scan, true, text, err);
}

static bool at_digit(const struct burin_json_scan *scan)
{
    return scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9';
}

static bool pass(struct burin_json_scan *scan, const char *one_of)
{
    if (scan->at == scan->end || !*scan->at || !strchr(one_of, *scan->at))
        return false;
    scan->at++;
    return true;
}

/* At least one digit. */
static bool pass_digits(struct burin_json_scan *scan)
{
    if (!at_digit(scan))
        return false;
    while (at_digit(scan))
        scan->at++;
    return true;
}

static enum burin_status skip_number(struct burin_json_scan *scan, struct burin_error *err)
{
    pass(scan, "-");
    if (!pass(scan, "0") && !pass_digits(scan))
        return wrong(scan, err, "a digit");
    if (pass(scan, ".") && !pass_digits(scan))
        return wrong(scan, err, "a digit");
    if (pass(scan, "eE")) {
        pass(scan, "+-");
        if (!pass_digits(scan))
            return wrong(scan, err, "a digit");
    }
    return BURIN_OK;
}

enum burin_status burin_json_u64(
        struct burin_json_scan *scan, uint64_t *value, struct burin_error *err)
{
    static const char wanted[] = "a whole number from 0 to 2^64 - 1";
    burin_json_peek(scan);
    char *const begin = scan->at;

    uint64_t number = 0;
    bool fits = at_digit(scan);
    while (fits && at_digit(scan)) {
        const uint64_t digit = (uint64_t)(*scan->at - '0');
        fits = !__builtin_mul_overflow(number, 10u, &number) &&
               !__builtin_add_overflow(number, digit, &number);
        scan->at++;
    }
    const bool whole = scan->at == scan->end || !strchr(".eE", *scan->at) || !*scan->at;
    const bool plain = *begin != '0' || scan->at == begin + 1;
    if (!fits || !whole || !plain) {
        scan->at = begin;
        return wrong(scan, err, wanted);
    }
    *value = number;
    return BURIN_OK;
}

static enum burin_status skip_word(
        struct burin_json_scan *scan, const char *word, struct burin_error *err)
{
    const size_t length = strlen(word);
    if ((size_t)(scan->end - scan->at) < length || memcmp(scan->at, word, length) != 0)
        return wrong(scan, err, word);
    scan->at += length;
    return BURIN_OK;
}

/* Recursion ends at BURIN_JSON_NESTING. */
enum burin_status burin_json_skip(struct burin_json_scan *scan, struct burin_error *err)
{
    struct burin_span ignored;
    enum burin_status status;
    bool more;
    const char first = burin_json_peek(scan);
    switch (first) {
    case '"':
        return take_text(scan, false, &ignored, err);
    case '{':
    case '[':
        status = burin_json_enter(scan, first, err);
        while (!status) {
            status = first == '{' ? take_member(scan, false, &ignored, &more, err)
                                  : burin_json_element(scan, &more, err);
            if (status || !more)
                break;
            status = burin_json_skip(scan, err);
        }
        return status;
    case 't':
        return skip_word(scan, "true", err);
    case 'f':
        return skip_word(scan, "false", err);
    case 'n':
        return skip_word(scan, "null", err);
    default:
        if (first == '-' || at_digit(scan))
            return skip_number(scan, err);
        return wrong(scan, err, "a value");
    }
}

enum burin_status burin_json_count(
        const struct burin_json_scan *scan, size_t *n_members, struct burin_error *err)
{
    struct burin_json_scan ahead = *scan;
    struct burin_span key;
    bool more = true;
    *n_members = 0;

    enum burin_status status = burin_json_enter(&ahead, '{', err);
    while (!status) {
        status = take_member(&ahead, false, &key, &more, err);
        if (status || !more)
            break;
        status = burin_json_skip(&ahead, err);
        ++*n_members;
    }
    return status;
}

enum burin_status burin_json_end(struct burin_json_scan *scan, struct burin_error *err)
{
    if (burin_json_peek(scan))
        return wrong(scan, err, "the end");
    if (scan->at != scan->end) /* a NUL */
        return wrong(scan, err, "the end");
    return BURIN_OK;
}
