#include "runtime/base/caches.h"

#include <stdio.h>
#include <stdlib.h>

bool burin_cache_path(const char *rest, char *path, size_t capacity)
{
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    const bool given = cache && *cache;
    if (!given && (!home || !*home))
        return false;
    const int n = snprintf(
            path, capacity, "%s%s/%s", given ? cache : home, given ? "" : "/.cache", rest);
    return n > 0 && (size_t)n < capacity;
}
