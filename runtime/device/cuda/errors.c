#include "runtime/device/cuda/errors.h"

#include <stdarg.h>
#include <stdio.h>

enum burin_status burin_cuda_check_at(
        const struct burin_driver *driver,
        struct burin_error *err,
        const char *file,
        int line,
        int result,
        const char *call,
        const char *format,
        ...)
{
    if (!result)
        return BURIN_OK;

    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);

    const char *name = NULL;
    const char *text = NULL;
    if (driver->cuGetErrorName(result, &name) || !name)
        name = "a result that the driver has no name for";
    if (driver->cuGetErrorString(result, &text) || !text)
        text = "no description";
    const enum burin_status status = burin_fail_at(
            err, result == CU_OUT_OF_MEMORY ? BURIN_ENOMEM : BURIN_EIO, file, line,
            "%s, %s: %s (%d, %s)", call, what, name, result, text);
    if (err)
        err->on_device = status == BURIN_ENOMEM;
    return status;
}
