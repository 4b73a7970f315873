/* tests/fuzz/fuzz.h -- What every fuzzer here offers: one function over foreign bytes.
 *
 * With standalone.c it runs in ctest: the committed corpus, then some seconds of mutations that
 * are the same each time. With clang it explores by coverage, as long as one likes:
 *
 *     clang -g -O1 -I. -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined \
 *         tests/fuzz/fuzz_gguf.c runtime/weights/?*.c runtime/base/?*.c -o /tmp/fuzz-gguf
 *     /tmp/fuzz-gguf -max_len=4096 /tmp/found tests/fuzz/corpus/gguf
 *
 * A crash it finds is mended, and its input joins the corpus. */
#ifndef BURIN_FUZZ_H
#define BURIN_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Returns 0. Whatever the bytes are, it neither crashes nor takes more than it should. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* A promise that does not depend on the input. */
#define PROMISE(condition)                                                                 \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition);        \
            abort();                                                                       \
        }                                                                                  \
    } while (0)

/* The bytes as a file that has a path. It is gone with the next call. */
static inline const char *fuzz_file(const uint8_t *bytes, size_t n)
{
    static int fd = -1;
    static char path[32];
    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        PROMISE(fd >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    PROMISE(ftruncate(fd, 0) == 0);
    PROMISE(pwrite(fd, bytes, n, 0) == (ssize_t)n);
    return path;
}

#endif
