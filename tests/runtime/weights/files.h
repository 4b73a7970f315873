/* tests/runtime/weights/files.h -- Small files made by hand, in a folder that goes away. */
#ifndef BURIN_TEST_FILES_H
#define BURIN_TEST_FILES_H

#include "tests/support/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNUSED __attribute__((unused))

/* ---- A folder -------------------------------------------------------------------- */

static char test_folder[64];

UNUSED static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", test_folder);
    if (*test_folder && system(command) != 0)
        perror(test_folder);
}

/* "FOLDER/name", good until the fourth call from here. */
UNUSED static const char *in_folder(const char *name)
{
    static char paths[4][512];
    static int next;
    if (!*test_folder) {
        strcpy(test_folder, "/tmp/burin-test-XXXXXX");
        assert_non_null(mkdtemp(test_folder));
        atexit(remove_folder);
    }
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", test_folder, name);
    return path;
}

UNUSED static const char *make_folder(const char *name)
{
    const char *path = in_folder(name);
    char command[600];
    snprintf(command, sizeof command, "mkdir -p '%s'", path);
    assert_int_equal(system(command), 0);
    return path;
}

/* ---- Bytes ----------------------------------------------------------------------- */

struct bytes {
    unsigned char at[1 << 16];
    size_t used;
};

UNUSED static void add(struct bytes *b, const void *from, size_t n)
{
    assert_true(b->used + n <= sizeof b->at);
    memcpy(b->at + b->used, from, n);
    b->used += n;
}

UNUSED static void add_u32(struct bytes *b, uint32_t value)
{
    add(b, &value, sizeof value);
}

UNUSED static void add_u64(struct bytes *b, uint64_t value)
{
    add(b, &value, sizeof value);
}

UNUSED static void add_text(struct bytes *b, const char *text) /* as GGUF does */
{
    add_u64(b, strlen(text));
    add(b, text, strlen(text));
}

UNUSED static void add_zeros(struct bytes *b, size_t n)
{
    assert_true(b->used + n <= sizeof b->at);
    memset(b->at + b->used, 0, n);
    b->used += n;
}

UNUSED static const char *write_file(const char *name, const void *bytes, size_t n)
{
    const char *path = in_folder(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
    return path;
}

/* ---- GGUF ------------------------------------------------------------------------ */

UNUSED static void gguf_begin(struct bytes *b, uint64_t n_tensors, uint64_t n_keys)
{
    b->used = 0;
    add(b, "GGUF", 4);
    add_u32(b, 3);
    add_u64(b, n_tensors);
    add_u64(b, n_keys);
}

/* dims innermost first, as in the file */
UNUSED static void gguf_tensor(
        struct bytes *b,
        const char *name,
        uint32_t n_dims,
        const uint64_t *dims,
        uint32_t type,
        uint64_t offset)
{
    add_text(b, name);
    add_u32(b, n_dims);
    for (uint32_t i = 0; i < n_dims; i++)
        add_u64(b, dims[i]);
    add_u32(b, type);
    add_u64(b, offset);
}

UNUSED static void pad_to(struct bytes *b, size_t align)
{
    add_zeros(b, (align - b->used % align) % align);
}

/* ---- safetensors ----------------------------------------------------------------- */

UNUSED static void safetensors_of(struct bytes *b, const char *header, size_t n_data)
{
    b->used = 0;
    add_u64(b, strlen(header));
    add(b, header, strlen(header));
    for (size_t i = 0; i < n_data; i++) {
        const unsigned char byte = (unsigned char)(i * 37 + 11);
        add(b, &byte, 1);
    }
}

#endif
