/* What Oniguruma and PCRE2 read alike. Patterns of tokenizers use little; all else is refused
 * by name rather than found out by wrong ids. */
#include "runtime/text/pre_tokenize.h"

#include <string.h>

struct scan {
    struct burin_span pattern;
    size_t at;
    int n_groups;
    bool caseless[64]; /* by the depth of groups */
};

static char look(const struct scan *s, size_t ahead)
{
    if (s->at + ahead >= s->pattern.length)
        return '\0';
    return s->pattern.at[s->at + ahead];
}

static enum burin_status refuse(
        const struct scan *s, size_t length, const char *why, struct burin_error *err)
{
    const size_t left = s->pattern.length - s->at;
    const struct burin_span what = { s->pattern.at + s->at, length < left ? length : left };
    return burin_fail(
            err, BURIN_EMISMATCH, "the tokenizer's pattern has %s at byte %zu: %s",
            burin_quote(what).text, s->at, why);
}

/* General categories, and the one script that stand-ins keep. */
static bool is_property(struct burin_span name)
{
    static const char known[] =
            " L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po"
            " S Sm Sc Sk So Z Zs Zl Zp C Cc Cf Han ";
    char word[8] = " ";

    if (name.length && name.at[0] == '^') {
        name.at++;
        name.length--;
    }
    if (name.length == 0 || name.length > sizeof word - 3)
        return false;
    memcpy(word + 1, name.at, name.length);
    word[name.length + 1] = ' ';
    return !memchr(name.at, ' ', name.length) && strstr(known, word);
}

static enum burin_status scan_escape(struct scan *s, struct burin_error *err)
{
    const char c = look(s, 1);
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool is_digit = c >= '0' && c <= '9';

    if (c == 'p' || c == 'P') {
        const char *begin = s->pattern.at + s->at;
        const char *close = memchr(begin, '}', s->pattern.length - s->at);
        if (look(s, 2) != '{' || !close)
            return refuse(s, 3, "a property in braces is meant", err);
        const struct burin_span name = { begin + 3, (size_t)(close - begin) - 3 };
        if (!is_property(name))
            return refuse(s, name.length + 4, "this property is not supported", err);
        s->at += name.length + 4;
        return BURIN_OK;
    }
    if (is_digit || (is_letter && !strchr("rntsSdD", c)) || c == 0 || (c & 0x80))
        return refuse(s, 2, "this escape is not supported", err);
    s->at += 2;
    return BURIN_OK;
}

static enum burin_status scan_class(struct scan *s, struct burin_error *err)
{
    s->at += look(s, 1) == '^' ? 2 : 1;
    if (look(s, 0) == ']')
        return refuse(s, 1, "a class that begins with ] is not supported", err);
    while (look(s, 0) != ']') {
        if (s->at >= s->pattern.length)
            return burin_fail(
                    err, BURIN_EFORMAT, "the tokenizer's pattern lacks a ] at its end");
        if (look(s, 0) == '[')
            return refuse(s, 2, "a class within a class is not supported", err);
        if (look(s, 0) == '&' && look(s, 1) == '&')
            return refuse(s, 2, "an intersection of classes is not supported", err);
        if (look(s, 0) == '\\') {
            const enum burin_status status = scan_escape(s, err);
            if (status)
                return status;
        } else {
            s->at++;
        }
    }
    s->at++;
    return BURIN_OK;
}

static enum burin_status scan_group(struct scan *s, struct burin_error *err)
{
    static const char *const heads[] = {
        "(?i:", "(?<=", "(?<!", "(?:", "(?=", "(?!", "(?>"
    };
    const int depth = ++s->n_groups;

    if (depth >= (int)(sizeof s->caseless / sizeof *s->caseless))
        return refuse(s, 1, "groups are nested too deeply", err);
    s->caseless[depth] = s->caseless[depth - 1];
    if (look(s, 1) != '?' && look(s, 1) != '*') {
        s->at++;
        return BURIN_OK;
    }
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        const size_t length = strlen(heads[i]);
        if (s->pattern.length - s->at >= length &&
            memcmp(s->pattern.at + s->at, heads[i], length) == 0) {
            s->caseless[depth] = s->caseless[depth] || i == 0;
            s->at += length;
            return BURIN_OK;
        }
    }
    return refuse(s, 4, "this kind of group is not supported", err);
}

/* {3}, {1,3} or {2,}; one with a + behind is possessive in PCRE2 alone. */
static enum burin_status scan_count(struct scan *s, struct burin_error *err)
{
    size_t n = 1;
    size_t n_digits = 0;

    while (look(s, n) >= '0' && look(s, n) <= '9') {
        n++;
        n_digits++;
    }
    if (look(s, n) == ',')
        n++;
    while (look(s, n) >= '0' && look(s, n) <= '9')
        n++;
    if (n_digits == 0 || look(s, n) != '}')
        return refuse(s, n + 1, "a brace that does not count is not supported", err);
    if (look(s, n + 1) == '+')
        return refuse(s, n + 2, "this means two things", err);
    s->at += n + 1;
    return BURIN_OK;
}

/* Oniguruma folds "ss" and "st" to single letters, and more beyond ASCII. */
static enum burin_status scan_caseless(struct scan *s, struct burin_error *err)
{
    static const char pairs[] = "ss st ff fi fl";
    const char pair[3] = { (char)(look(s, 0) | 0x20), (char)(look(s, 1) | 0x20), 0 };

    if (look(s, 0) & 0x80)
        return refuse(s, 4, "(?i:) is supported for ASCII alone", err);
    if (pair[1] != ' ' && strstr(pairs, pair))
        return refuse(s, 2, "(?i:) is not supported for these two letters", err);
    s->at++;
    return BURIN_OK;
}

enum burin_status burin_pattern_check(struct burin_span pattern, struct burin_error *err)
{
    struct scan s = { .pattern = pattern };
    enum burin_status status = BURIN_OK;

    while (!status && s.at < pattern.length) {
        switch (look(&s, 0)) {
        case 0:
            status = refuse(&s, 1, "a NUL is not supported", err);
            break;
        case '\\':
            status = scan_escape(&s, err);
            break;
        case '[':
            status = scan_class(&s, err);
            break;
        case '(':
            status = scan_group(&s, err);
            break;
        case ')':
            s.n_groups -= s.n_groups > 0;
            s.at++;
            break;
        case '{':
            status = scan_count(&s, err);
            break;
        case '^':
        case '$':
            status = refuse(&s, 1, "anchors are not supported", err);
            break;
        default:
            if (s.caseless[s.n_groups])
                status = scan_caseless(&s, err);
            else
                s.at++;
        }
    }
    return status;
}
