/* runtime/device/cuda/errors.h -- The one place where a result of the driver becomes a
 * status and a message.
 *
 *     return burin_cuda_check(
 *             driver, err, driver->cuMemCreate(&handle, bytes, &memory, 0), "cuMemCreate",
 *             "%s for %s", burin_human_bytes(bytes).text, owner);
 *
 *     cuMemCreate, 16.9 GiB for weights: CUDA_ERROR_OUT_OF_MEMORY (2, out of memory)
 *
 * Errors   BURIN_ENOMEM where the device's memory is short, BURIN_EIO for the rest: what
 *          the driver refuses is no choice of ours. */
#ifndef BURIN_DEVICE_CUDA_ERRORS_H
#define BURIN_DEVICE_CUDA_ERRORS_H

#include "runtime/base/status.h"
#include "runtime/device/cuda/driver.h"

/* BURIN_OK for a `result` of 0. The text behind `call` says what it was for. */
#define burin_cuda_check(driver, err, result, call, ...)                                   \
    burin_cuda_check_at(driver, err, __FILE__, __LINE__, result, call, __VA_ARGS__)

enum burin_status burin_cuda_check_at(
        const struct burin_driver *driver,
        struct burin_error *err,
        const char *file,
        int line,
        int result,
        const char *call,
        const char *format,
        ...) __attribute__((format(printf, 7, 8)));

#endif
