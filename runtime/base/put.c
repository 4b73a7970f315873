#include "runtime/base/put.h"

#include <stdarg.h>
#include <stdio.h>

void burin_put(struct burin_put *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const size_t left = text->size - text->used;
    const int length = vsnprintf(text->bytes + text->used, left, format, args);
    va_end(args);
    if (length > 0 && (size_t)length < left)
        text->used += (size_t)length;
    text->bytes[text->used] = '\0';
}
