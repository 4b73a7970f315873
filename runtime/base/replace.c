#include "runtime/base/replace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool write_all(int file, struct burin_span part)
{
    for (size_t done = 0; done < part.length;) {
        const ssize_t put = write(file, part.at + done, part.length - done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        done += (size_t)put;
    }
    return true;
}

bool burin_replace_file(const char *path, const struct burin_span *parts, int n)
{
    char other[4096];
    const int length = snprintf(other, sizeof other, "%s.XXXXXX", path);
    if (length < 0 || (size_t)length >= sizeof other)
        return false;
    const int file = mkstemp(other);
    if (file < 0)
        return false;
    bool written = true;
    for (int i = 0; i < n && written; i++)
        written = write_all(file, parts[i]);
    if (!close(file) && written && !rename(other, path))
        return true;
    unlink(other);
    return false;
}
