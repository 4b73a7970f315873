#include "runtime/app/options.h"

#include "runtime/base/units.h"
#include "runtime/device/machine.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void *burin_option_field(struct burin_settings *settings, const struct burin_option *option)
{
    return (char *)settings + option->field;
}

static enum burin_status read_number(
        const struct burin_source *from,
        const char *text,
        bool whole,
        double *number,
        struct burin_error *err)
{
    const struct burin_option *option = from->option;
    char *end;
    *number = strtod(text, &end);
    const bool plain = text[strspn(text, "+-.0123456789eE")] == '\0'; /* no hex, inf, nan */
    if (end == text || *end || !plain || (whole && *number != trunc(*number)))
        return burin_fail(
                err, BURIN_EUSAGE, "%s takes a %snumber, not '%.60s'", from->name,
                whole ? "whole " : "", text);
    if (option->kind == SEED ? *number < option->least || *number >= 0x1p53
                             : *number < option->least || *number > option->most) {
        if (option->most >= 1 << 20 || option->kind == SEED)
            return burin_fail(
                    err, BURIN_EUSAGE, "%s is at least %.10g%s, not %.60s", from->name,
                    option->least, *number > 0 ? " and not that large" : "", text);
        return burin_fail(
                err, BURIN_EUSAGE, "%s goes from %.10g to %.10g, not %.60s", from->name,
                option->least, option->most, text);
    }
    return BURIN_OK;
}

static enum burin_status read_seconds(
        const struct burin_source *from,
        const char *text,
        double *number,
        struct burin_error *err)
{
    char digits[64];
    const size_t n = strlen(text);
    if (n < 2 || n > sizeof digits || text[n - 1] != 's')
        return read_number(from, text, true, number, err);
    snprintf(digits, sizeof digits, "%.*s", (int)n - 1, text);
    return read_number(from, digits, true, number, err);
}

static enum burin_status too_many(const struct burin_source *from, struct burin_error *err)
{
    return burin_fail(
            err, BURIN_EUSAGE, "%s may be given %d times", from->name, BURIN_MAX_LIST);
}

static enum burin_status read_share(
        double *share,
        const struct burin_source *from,
        const char *text,
        struct burin_error *err)
{
    const enum burin_status status = read_number(from, text, false, share, err);
    if (!status && !((float)*share > 0))
        return burin_fail(
                err, BURIN_EUSAGE, "%s is above 0 and at most 1, not %.60s", from->name,
                text);
    return status;
}

static enum burin_status read_numbers(
        struct burin_numbers *list,
        const struct burin_source *from,
        const char *text,
        struct burin_error *err)
{
    list->n = 0;
    while (true) {
        char word[32];
        const size_t length = strcspn(text, ",");
        snprintf(word, sizeof word, "%.*s", (int)length, text);
        double number;
        enum burin_status status = read_number(from, word, true, &number, err);
        if (status)
            return status;
        if (list->n == BURIN_MAX_LIST)
            return burin_fail(
                    err, BURIN_EUSAGE, "%s takes at most %d numbers", from->name,
                    BURIN_MAX_LIST);
        list->values[list->n++] = (int)number;
        if (!text[length])
            return BURIN_OK;
        text += length + 1;
    }
}

static enum burin_status read_choice(
        int *index,
        const struct burin_source *from,
        const char *text,
        struct burin_error *err)
{
    const char *rest = from->option->choices;
    for (int i = 0; *rest; i++) {
        const size_t length = strcspn(rest, "|");
        if (strlen(text) == length && strncmp(text, rest, length) == 0) {
            *index = i;
            return BURIN_OK;
        }
        rest += length + (rest[length] != '\0');
    }
    return burin_fail(
            err, BURIN_EUSAGE, "%s is one of %s, not '%.60s'", from->name,
            from->option->choices, text);
}

static enum burin_status read_flag(
        bool *flag,
        const struct burin_source *from,
        const char *text,
        struct burin_error *err)
{
    static const char *const words[] = {
        "0", "1", "false", "true", "off", "on", "no", "yes"
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text, words[i]) == 0) {
            *flag = i % 2 == 1;
            return BURIN_OK;
        }
    return burin_fail(err, BURIN_EUSAGE, "%s is 0 or 1, not '%.60s'", from->name, text);
}

enum burin_status burin_option_set(
        struct burin_settings *settings,
        const struct burin_source *from,
        const char *text,
        struct burin_error *err)
{
    const struct burin_option *option = from->option;
    void *field = burin_option_field(settings, option);
    enum burin_status status = BURIN_OK;
    double number = 0;
    int device;
    switch (option->kind) {
    case FLAG:
        return read_flag(field, from, text, err);
    case TEXT:
        *(const char **)field = text;
        return BURIN_OK;
    case DEVICE:
        *(const char **)field = text;
        return burin_machine_device(from->name, text, &device, err);
    case TEXTS: {
        struct burin_texts *texts = field;
        if (texts->n == BURIN_MAX_LIST)
            return too_many(from, err);
        texts->values[texts->n++] = text;
        return BURIN_OK;
    }
    case PICTURES:
    case VIDEOS: {
        struct burin_attachments *list = field;
        if (list->n == BURIN_MAX_LIST)
            return too_many(from, err);
        list->at[list->n++] = (struct burin_attachment){ option->kind == VIDEOS, text };
        return BURIN_OK;
    }
    case INTEGER:
        status = read_number(from, text, true, &number, err);
        if (!status)
            *(int *)field = (int)number;
        return status;
    case SECONDS:
        status = read_seconds(from, text, &number, err);
        if (!status)
            *(int *)field = (int)number;
        return status;
    case CONTEXT:
        status = read_number(from, text, true, &number, err);
        if (!status)
            *(int *)field = number > 0 ? (int)number : -1;
        return status;
    case INTEGERS:
        return read_numbers(field, from, text, err);
    case SEED:
        status = read_number(from, text, true, &number, err);
        if (!status)
            *(int64_t *)field = (int64_t)number;
        return status;
    case GIVEN_BYTES: {
        struct burin_given *given = field;
        struct burin_error why = { 0 };
        status = burin_parse_bytes(text, strlen(text), &given->bytes, &why);
        if (!status && (double)given->bytes < option->least)
            return burin_fail(err, BURIN_EUSAGE, "%s cannot be %.60s", from->name, text);
        given->given = !status;
        return status ? burin_fail(err, BURIN_EUSAGE, "%s: %s", from->name, why.message)
                      : BURIN_OK;
    }
    case GIVEN_INTEGER: {
        struct burin_given *given = field;
        status = read_number(from, text, true, &number, err);
        given->bytes = (int64_t)number;
        given->given = !status;
        return status;
    }
    case GIVEN_REAL: {
        struct burin_given *given = field;
        status = read_number(from, text, false, &given->number, err);
        given->given = !status;
        return status;
    }
    case GIVEN_SHARE: {
        struct burin_given *given = field;
        status = read_share(&given->number, from, text, err);
        given->given = !status;
        return status;
    }
    case CHOICE:
        return read_choice(field, from, text, err);
    case NOTED:
        if (settings->notes.n < BURIN_MAX_LIST)
            settings->notes.values[settings->notes.n++] = option->help;
        return BURIN_OK;
    }
    return BURIN_OK;
}
