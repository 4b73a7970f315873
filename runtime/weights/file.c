#include "runtime/weights/file.h"

#include "runtime/base/span.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum burin_status burin_file_refused(const char *path, int error, struct burin_error *err)
{
    enum burin_status status = BURIN_EUNREADABLE;
    if (error == ENOENT || error == ENOTDIR)
        status = BURIN_EMISSING;
    else if (error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO)
        status = BURIN_EIO;
    return burin_fail(
            err, status, "%s: %s", burin_show(burin_span_of(path)).text, strerror(error));
}

enum burin_status burin_file_open(
        struct burin_file *file, const char *path, struct burin_error *err)
{
    *file = (struct burin_file){ 0 };

    /* O_NONBLOCK: opening a pipe by mistake must not wait for its writer. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return burin_file_refused(path, errno, err);

    struct stat info;
    if (fstat(fd, &info) != 0) {
        const int error = errno;
        close(fd);
        return burin_file_refused(path, error, err);
    }
    if (!S_ISREG(info.st_mode)) {
        close(fd);
        return burin_fail(
                err, BURIN_EUNREADABLE, "%s is %s, not a file",
                burin_show(burin_span_of(path)).text,
                S_ISDIR(info.st_mode) ? "a folder" : "a device or a pipe");
    }
    file->path = path;
    file->fd = fd + 1;
    file->size = (uint64_t)info.st_size;
    return BURIN_OK;
}

void burin_file_close(struct burin_file *file)
{
    if (file->fd)
        close(file->fd - 1);
    *file = (struct burin_file){ 0 };
}

enum burin_status burin_file_read(
        const struct burin_file *file,
        uint64_t offset,
        void *buffer,
        size_t bytes,
        struct burin_error *err)
{
    size_t done = 0;
    while (done < bytes) {
        const ssize_t got =
                pread(file->fd - 1, (unsigned char *)buffer + done, bytes - done,
                      (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return burin_fail(err, BURIN_EIO, "%s: %s", file->path, strerror(errno));
        if (got == 0)
            return burin_fail(
                    err, BURIN_EIO,
                    "%s ends at byte %llu; it had %llu when it was opened: it was changed "
                    "meanwhile",
                    file->path, (unsigned long long)(offset + done),
                    (unsigned long long)file->size);
        done += (size_t)got;
    }
    return BURIN_OK;
}

void burin_file_expect(const struct burin_file *file, uint64_t offset, uint64_t bytes)
{
    (void)posix_fadvise(file->fd - 1, (off_t)offset, (off_t)bytes, POSIX_FADV_WILLNEED);
}

void burin_file_forget(const struct burin_file *file)
{
    (void)posix_fadvise(file->fd - 1, 0, 0, POSIX_FADV_DONTNEED);
}
