/* runtime/media/call.h -- One call of burin-media: a process, its pipe, and what it wrote.
 *
 * Memory   A call holds a file descriptor and a process until burin_media_call_end().
 * Threads  One at a time on a call.
 * Errors   As media.h has them, with the file's path before them. */
#ifndef BURIN_MEDIA_CALL_H
#define BURIN_MEDIA_CALL_H

#include "runtime/base/span.h"
#include "runtime/base/status.h"
#include "runtime/media/media.h"
#include "runtime/media/wire.h"

#include <sys/types.h>

struct burin_media_call {
    const struct burin_media *media;
    struct burin_shown path; /* of the foreign file, for messages */
    int seconds;             /* that all of it may take */
    double deadline_ms;
    pid_t process; /* 0: none */
    int pipe;      /* -1: none */
};

/* Let the helper obey `command` on the file at `path`; "" is no file. */
enum burin_status burin_media_call_begin(
        struct burin_media_call *call,
        const struct burin_media *media,
        const char *command,
        const char *path,
        const char *list,
        int seconds,
        struct burin_error *err);

/* The next header, of this kind; a refusal becomes an error. Sizes are within the limits. */
enum burin_status burin_media_call_header(
        struct burin_media_call *call,
        enum burin_wire_kind kind,
        struct burin_wire *header,
        struct burin_error *err);

/* The next `length` bytes. */
enum burin_status burin_media_call_bytes(
        struct burin_media_call *call, void *bytes, size_t length, struct burin_error *err);

/* End the helper, if it still runs. Ending a zeroed call or one that failed to begin does
 * nothing. */
void burin_media_call_end(struct burin_media_call *call);

#endif
