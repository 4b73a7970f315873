#include "runtime/base/replace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

/* Those above a file; whoever cannot make them will see it when the file is opened. */
static void make_folders(char *path)
{
    for (char *at = path + 1; *at; at++)
        if (*at == '/') {
            *at = '\0';
            mkdir(path, 0777);
            *at = '/';
        }
}

/* A new file beside `path`, whose name goes into `other`. */
static int open_beside(const char *path, char *other, size_t capacity)
{
    const int length = snprintf(other, capacity, "%s.XXXXXX", path);
    if (length < 0 || (size_t)length >= capacity)
        return -1;
    const int file = mkstemp(other);
    if (file >= 0 || errno != ENOENT)
        return file;
    make_folders(other);
    memset(other + length - 6, 'X', 6);
    return mkstemp(other);
}

bool burin_replace_file(const char *path, const struct burin_span *parts, int n)
{
    char other[4096];
    const int file = open_beside(path, other, sizeof other);
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
