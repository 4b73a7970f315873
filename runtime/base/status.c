#include "runtime/base/status.h"

#include "runtime/base/utf8.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* A message as a terminal may have it, whatever foreign text went into it; its lines are ours. */
static void copy_shown(char *to, size_t size, const char *from, bool is_whole)
{
    const size_t room = size - sizeof "...";
    const size_t length = strlen(from);
    size_t n = 0;
    for (size_t i = 0, used; i < length; i += used) {
        char piece[BURIN_UTF8_SHOWN] = { '\n' };
        size_t bytes = used = 1;
        if (from[i] != '\n')
            bytes = burin_utf8_show(from + i, length - i, piece, &used);
        if (n + bytes > room) {
            is_whole = false;
            break;
        }
        memcpy(to + n, piece, bytes);
        n += bytes;
    }
    memcpy(to + n, is_whole ? "" : "...", is_whole ? 1 : 4);
}

enum burin_status burin_fail_at(
        struct burin_error *err,
        enum burin_status status,
        const char *file,
        int line,
        const char *format,
        ...)
{
    if (!err)
        return status;

    char text[BURIN_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    copy_shown(err->message, sizeof err->message, text, length < (int)sizeof text);

    err->status = status;
    err->file = file;
    err->line = line;
    err->on_device = false;
    return status;
}

int burin_exit_code(enum burin_status status)
{
    switch (status) {
    case BURIN_OK:
        return 0;
    case BURIN_EUSAGE:
        return 2;
    case BURIN_ENOMEM:
        return 3;
    case BURIN_EMISSING:
    case BURIN_EUNREADABLE:
    case BURIN_EFORMAT:
    case BURIN_EMISMATCH:
        return 4;
    case BURIN_ESTOPPED:
        return 130;
    case BURIN_EIO:
    case BURIN_ELIMIT:
    case BURIN_ENUMERIC:
        return 1;
    }
    return 1;
}
