/* runtime/base/caches.h -- Where a user's caches are: $XDG_CACHE_HOME, else ~/.cache (XDG Base
 * Directory Specification).
 *
 * Threads  Any number, while none changes the environment. */
#ifndef BURIN_BASE_CACHES_H
#define BURIN_BASE_CACHES_H

#include <stdbool.h>
#include <stddef.h>

/* The path of `rest` there, "burin/kernels", into `path`. False where the environment names neither
 * a cache nor a home, or the path is longer than `capacity`. */
bool burin_cache_path(const char *rest, char *path, size_t capacity);

#endif
