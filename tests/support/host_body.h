/* tests/support/host_body.h -- A body for a virtual GPU (runtime/device/virtual/body.h): its memory
 * is the host's, its kernels are functions in C that a test lists. Whatever touches memory that is
 * not mapped and accessible ends the process. Include it once.
 *
 *     static const struct host_kernel kernels[] = { { "add", add, 2, { 8, 4 } }, { NULL } };
 *     host_kernels = kernels;
 *     options.body = &host_body; */
#ifndef BURIN_TEST_HOST_BODY_H
#define BURIN_TEST_HOST_BODY_H

#include "runtime/device/cuda/driver.h"
#include "runtime/device/virtual/body.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct host_kernel {
    const char *name;
    int (*run)(const uint64_t *arguments); /* a result of the driver's */
    int n_arguments;
    int bytes[BURIN_VIRTUAL_ARGUMENTS];
};

static const struct host_kernel *host_kernels; /* NULL behind the last */
static int host_memories;                      /* created and not destroyed */

static inline void *host_at(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

/* What is before and behind the aligned part stays reserved. */
static inline uint64_t host_reserve(void *self, size_t bytes, size_t align)
{
    (void)self;
    void *at =
            mmap(NULL, bytes + align, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return 0;
    return ((uint64_t)(uintptr_t)at + align - 1) / align * align;
}

static inline void host_unreserve(void *self, uint64_t address, size_t bytes)
{
    (void)self;
    munmap(host_at(address), bytes);
}

/* A file without a name, whose number is counted from 1. */
static inline uint64_t host_create(void *self, size_t bytes)
{
    (void)self;
    const int file = memfd_create("virtual GPU", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)bytes))
        return 0;
    host_memories++;
    return (uint64_t)file + 1;
}

static inline void host_destroy(void *self, uint64_t memory, size_t bytes)
{
    (void)self;
    (void)bytes;
    close((int)memory - 1);
    host_memories--;
}

static inline bool host_map(void *self, uint64_t address, size_t bytes, uint64_t memory)
{
    (void)self;
    return mmap(host_at(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, (int)memory - 1,
                0) == host_at(address);
}

static inline void host_unmap(void *self, uint64_t address, size_t bytes)
{
    (void)self;
    mmap(host_at(address), bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static inline void host_access(void *self, uint64_t address, size_t bytes, bool allowed)
{
    (void)self;
    mprotect(host_at(address), bytes, allowed ? PROT_READ | PROT_WRITE : PROT_NONE);
}

/* Any code will do: what a kernel does is said by its name. */
static inline int host_load(void *self, const void *image, void **module)
{
    (void)self;
    *module = NULL;
    return strcmp(image, "no code") == 0 ? CU_INVALID_IMAGE : CU_OK;
}

static inline void host_unload(void *self, void *module)
{
    (void)self;
    (void)module;
}

static inline int host_kernel(
        void *self, void *module, const char *name, struct burin_virtual_kernel *kernel)
{
    (void)self;
    (void)module;
    for (const struct host_kernel *k = host_kernels; k->name; k++)
        if (strcmp(k->name, name) == 0) {
            *kernel = (struct burin_virtual_kernel){ .function = (void *)(uintptr_t)k,
                                                     .n_arguments = k->n_arguments,
                                                     .argument_bytes = k->bytes };
            return CU_OK;
        }
    return CU_NOT_FOUND;
}

static inline int host_launch(void *self, const struct burin_virtual_launch *launch)
{
    (void)self;
    const struct host_kernel *kernel = launch->kernel->function;
    return kernel->run(launch->arguments);
}

static inline void host_copy_in(void *self, uint64_t to, const void *from, size_t bytes)
{
    (void)self;
    memcpy(host_at(to), from, bytes);
}

static inline void host_copy_out(void *self, void *to, uint64_t from, size_t bytes)
{
    (void)self;
    memcpy(to, host_at(from), bytes);
}

static inline void host_copy(void *self, uint64_t to, uint64_t from, size_t bytes)
{
    (void)self;
    memcpy(host_at(to), host_at(from), bytes);
}

static inline void host_fill(void *self, uint64_t to, uint32_t value, int width, size_t n)
{
    (void)self;
    for (size_t i = 0; width > 1 && i < n; i++)
        memcpy(host_at(to + i * (size_t)width), &value, (size_t)width);
    if (width == 1)
        memset(host_at(to), (int)value, n);
}

static const struct burin_virtual_body host_body = {
    .reserve = host_reserve,
    .unreserve = host_unreserve,
    .create = host_create,
    .destroy = host_destroy,
    .map = host_map,
    .unmap = host_unmap,
    .access = host_access,
    .load = host_load,
    .unload = host_unload,
    .kernel = host_kernel,
    .launch = host_launch,
    .copy_in = host_copy_in,
    .copy_out = host_copy_out,
    .copy = host_copy,
    .fill = host_fill,
};

#endif
