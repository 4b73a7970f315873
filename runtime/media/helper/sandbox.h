/* runtime/media/helper/sandbox.h -- The helper gives away what it could do, before it looks at
 * a foreign byte.
 *
 * Limits      Address space, processor time, no new file, no growing one, no process.
 * Privileges  None is gained any more; the process can't be traced or dumped, and dies with
 *             its parent.
 * Landlock    No path can be opened (Linux 5.13).
 * Seccomp     System calls by allow-list. A few that a library makes in good faith (open,
 *             stat, threads) fail with EPERM; any other ends the process with SIGSYS. Memory
 *             can't be made executable. */
#ifndef BURIN_MEDIA_SANDBOX_H
#define BURIN_MEDIA_SANDBOX_H

#include "runtime/base/status.h"

#include <stddef.h>

struct burin_sandbox {
    size_t memory; /* bytes of address space; held to by builds without sanitizers */
    int seconds;   /* of processor time */
};

/* Bits of enum burin_media_layer: what holds from here on. BURIN_EIO where seccomp doesn't:
 * then nothing foreign may be read. */
enum burin_status burin_sandbox_enter(
        const struct burin_sandbox *sandbox, unsigned *layers, struct burin_error *err);

/* Do what is forbidden, for tests: "open", "socket", "exec", ... Returns 0 where it was
 * refused with an error, 1 where it went through, -1 where nothing has that name. */
int burin_sandbox_try(const char *what);

#endif
