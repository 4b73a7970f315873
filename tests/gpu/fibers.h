/* tests/gpu/fibers.h -- Runs a kernel that was compiled behind host.h: one block after another,
 * each of its threads a fiber of this thread.
 *
 * Units    Bytes; threads and blocks as CUDA counts them.
 * Memory   Stacks are kept for the next launch. Static shared memory is the kernel file's own
 *          .bss; dynamic shared memory ends at a page that nobody may touch.
 * Errors   What a GPU would not forgive (below) is written to `message`, the first one of a
 *          launch; the launch goes on where it can. A kernel that touches a page that is not
 *          there gets the signal; fiber_whereabouts() says which thread it was.
 * Threads  Any: a lock makes launches follow one another.
 * Finds    __syncthreads() in divergent branches or with threads that have ended; warp
 *          collectives of different kind, mask or line, with lanes that are not there;
 *          threads that end with copies nobody waited for; copies that are misaligned or not
 *          from global to shared memory; writes behind dynamic shared memory. */
#pragma once

#include "tests/gpu/host.h"

enum fiber_order { /* which thread that can go on does */
                   FIBER_IN_ORDER,
                   FIBER_REVERSE, /* also of blocks */
                   FIBER_RANDOM,
};

enum fiber_copies {              /* when copy_async_16() happens */
                    FIBER_LATE,  /* when it is waited for */
                    FIBER_EARLY, /* at once */
                    FIBER_ANY_TIME,
};

struct fiber_launch {
    const struct fiber_kernel *kernel;
    void **args; /* addresses of its arguments; read while it runs */
    unsigned grid[3], block[3];
    size_t shared_bytes; /* dynamic */
    enum fiber_order order;
    enum fiber_copies copies;
    unsigned long long seed; /* of all that is random */
};

/* Run it to its end: the number of errors, of which `message` (may be NULL) tells the first. */
extern "C" int fiber_run(
        const struct fiber_launch *launch, char *message, size_t message_bytes);

/* Which thread of which kernel runs now, as text; "" where none does. For signal handlers. */
extern "C" void fiber_whereabouts(char *text, size_t text_bytes);
