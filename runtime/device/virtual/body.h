/* runtime/device/virtual/body.h -- What a virtual GPU that executes needs besides counting:
 * memory that can be touched, and kernels that run.
 *
 * Calls     All under the lock of the virtual driver, so one at a time; none may call the
 *           driver. `self` is handed to each.
 * Order     Work on a stream is kept as it was put there, arguments copied, and done in that
 *           order when its time has come (enum burin_virtual_order). Graphs keep a copy.
 * Memory    A body gives back what it is asked to; burin_virtual_close() asks for the rest.
 * Errors    Results are the driver's numbers, 0 for success. */
#ifndef BURIN_DEVICE_VIRTUAL_BODY_H
#define BURIN_DEVICE_VIRTUAL_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A kernel of a module. Zero where nothing is to be said. */
struct burin_virtual_kernel {
    void *function;            /* the body's own */
    int n_arguments;           /* at most BURIN_VIRTUAL_ARGUMENTS */
    const int *argument_bytes; /* of each, at most 8; it lives as long as the module */
    int local_bytes;
    int static_shared_bytes;
    int registers;
    int max_threads; /* of a block; 0: 1024 */
};
enum { BURIN_VIRTUAL_ARGUMENTS = 32 };

struct burin_virtual_launch {
    const struct burin_virtual_kernel *kernel;
    unsigned blocks[3];
    unsigned threads[3];
    unsigned shared_bytes;
    uint64_t arguments[BURIN_VIRTUAL_ARGUMENTS]; /* the value of each, in its first bytes */
};

struct burin_virtual_body {
    void *self;

    /* Addresses for `bytes` that begin on a multiple of `align`; 0 where there are none. To
     * touch them is an error until memory is mapped there and may be accessed. */
    uint64_t (*reserve)(void *self, size_t bytes, size_t align);
    void (*unreserve)(void *self, uint64_t address, size_t bytes);

    /* Memory without an address; 0 where the host has none. */
    uint64_t (*create)(void *self, size_t bytes);
    void (*destroy)(void *self, uint64_t memory, size_t bytes);

    /* All of it, at reserved addresses; it may be mapped at several. */
    bool (*map)(void *self, uint64_t address, size_t bytes, uint64_t memory);
    void (*unmap)(void *self, uint64_t address, size_t bytes);
    void (*access)(void *self, uint64_t address, size_t bytes, bool allowed);

    int (*load)(void *self, const void *image, void **module);
    void (*unload)(void *self, void *module);
    int (*kernel)(
            void *self,
            void *module,
            const char *name,
            struct burin_virtual_kernel *kernel);

    /* The work itself. Addresses of copies and fills were found accessible; a launch that
     * touches others answers 700, one that traps 719. A fill writes the first `width` bytes of
     * `value`, 1 or 4, n times. */
    int (*launch)(void *self, const struct burin_virtual_launch *launch);
    void (*copy_in)(void *self, uint64_t to, const void *from, size_t bytes);
    void (*copy_out)(void *self, void *to, uint64_t from, size_t bytes);
    void (*copy)(void *self, uint64_t to, uint64_t from, size_t bytes);
    void (*fill)(void *self, uint64_t to, uint32_t value, int width, size_t n);
};

#endif
