#include "runtime/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

    va_list args;
    va_start(args, format);
    const int length = vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    if (length >= (int)sizeof err->message)
        memcpy(err->message + sizeof err->message - 4, "...", 4);

    err->status = status;
    err->file = file;
    err->line = line;
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
