/* runtime/weights/file.h -- A file of weights, read where we ask.
 *
 * Units    Bytes.
 * Memory   The caller's buffers; `path` is the caller's string and must outlive the file.
 * Threads  Any number may read one open file.
 * Why      pread, not a mapping. A file that shrinks under a mapping is a SIGBUS, which no
 *          check before the access can rule out; with pread it is a short read, hence an
 *          error. Packing touches each byte once, so a mapping saves only a copy that stays
 *          in the cache (0.01 s for 100 MB), and our resident set holds no page of the
 *          file: what is cached stays the kernel's to drop, and makes the next start fast. */
#ifndef BURIN_WEIGHTS_FILE_H
#define BURIN_WEIGHTS_FILE_H

#include "runtime/base/status.h"

#include <stdint.h>

struct burin_file {
    const char *path;
    int fd; /* plus one, so that a zeroed struct is a closed file */
    uint64_t size;
};

/* BURIN_EMISSING where there is no such file, BURIN_EUNREADABLE where it is no regular file or
 * may not be read, BURIN_EIO where the system fails. */
enum burin_status burin_file_open(
        struct burin_file *file, const char *path, struct burin_error *err);

/* Closing a zeroed or closed file does nothing. */
void burin_file_close(struct burin_file *file);

/* All `bytes` bytes from `offset`. BURIN_EIO where the file ends before, though it did not
 * when it was opened, or the system refuses. */
enum burin_status burin_file_read(
        const struct burin_file *file,
        uint64_t offset,
        void *buffer,
        size_t bytes,
        struct burin_error *err);

/* The error of a path that the system did not open or find, `error` is its errno: as
 * burin_file_open() tells it. */
enum burin_status burin_file_refused(const char *path, int error, struct burin_error *err);

/* Say that this range is read next, so that it is fetched ahead. Only advice. */
void burin_file_expect(const struct burin_file *file, uint64_t offset, uint64_t bytes);

/* Say that none of it is read again: what the kernel has cached of it may go. Only advice. */
void burin_file_forget(const struct burin_file *file);

#endif
