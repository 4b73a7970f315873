/* runtime/base/status.h -- What a function that can fail returns, and the message it leaves.
 *
 * Use      A function that can fail returns enum burin_status and takes
 *          `struct burin_error *err` last. Where something is wrong it returns
 *          burin_fail(err, ...): the message says what was found and what was needed.
 *          Callers hand the status up untouched.
 * Memory   struct burin_error is the caller's, holds its text itself, and may be NULL.
 * Threads  Each thread brings its own struct burin_error. */
#ifndef BURIN_BASE_STATUS_H
#define BURIN_BASE_STATUS_H

#include <stdbool.h>
#include <stddef.h>

enum burin_status {
    BURIN_OK = 0,
    BURIN_EUSAGE,      /* an option or a call that makes no sense */
    BURIN_ENOMEM,      /* does not fit: who asked, for how much, what is left */
    BURIN_EMISSING,    /* a file or tensor that is not there */
    BURIN_EUNREADABLE, /* something is there, but no file, or none that we may read */
    BURIN_EFORMAT,     /* bytes from a file or a user that break their format */
    BURIN_EMISMATCH,   /* well-formed, but not the described model */
    BURIN_EIO,         /* the operating system refused */
    BURIN_ELIMIT,   /* a request beyond a stated limit: both numbers are in the message */
    BURIN_ENUMERIC, /* logits that are not finite */
    BURIN_ESTOPPED, /* the user interrupted */
};

enum { BURIN_ERROR_TEXT = 4096 }; /* long enough to list every mismatch of a checkpoint */

struct burin_error {
    enum burin_status status;
    const char *file; /* where in our source the message was made */
    int line;
    bool on_device; /* BURIN_ENOMEM: what lacks is a device's memory; it may become free */
    char message[BURIN_ERROR_TEXT]; /* cut with "..." where longer; safe to show at a
                                       terminal (burin_utf8_show), its newlines kept */
};

/* Fill `err` (if any) once and return `status`. */
#define burin_fail(err, status, ...)                                                       \
    burin_fail_at((err), (status), __FILE__, __LINE__, __VA_ARGS__)

enum burin_status burin_fail_at(
        struct burin_error *err,
        enum burin_status status,
        const char *file,
        int line,
        const char *format,
        ...) __attribute__((format(printf, 5, 6)));

/* The exit code of a command that ended so: 0 done, 1 failed, 2 usage, 3 does not fit,
 * 4 something needed is missing or wrong (weights, a driver, NVRTC), 130 interrupted. */
int burin_exit_code(enum burin_status status);

#endif
