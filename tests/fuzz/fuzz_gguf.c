/* tests/fuzz/fuzz_gguf.c -- A GGUF header of any bytes is read or refused. */
#include "runtime/weights/checkpoint.h"
#include "runtime/weights/gguf.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static uint64_t sum; /* so that what is read is used */

static void read_key(const struct burin_gguf *gguf, size_t i)
{
    enum burin_gguf_type type;
    const struct burin_span key = burin_gguf_key(gguf, i, &type);
    char name[64] = { 0 };
    if (key.length >= sizeof name || memchr(key.at, '\0', key.length))
        return;
    memcpy(name, key.at, key.length);

    uint64_t integer;
    bool truth;
    struct burin_span text;
    struct burin_gguf_array array;
    (void)burin_gguf_uint(gguf, name, &integer, NULL);
    (void)burin_gguf_bool(gguf, name, &truth, NULL);
    if (!burin_gguf_text(gguf, name, &text, NULL))
        for (size_t at = 0; at < text.length; at++)
            sum += (unsigned char)text.at[at];
    if (!burin_gguf_numbers(gguf, name, &array, NULL))
        for (uint64_t at = 0; at < array.count; at++)
            sum += burin_gguf_element(&array, at) > 0;
    if (!burin_gguf_texts(gguf, name, &array, NULL))
        for (uint64_t at = 0; at < array.count; at++) {
            text = burin_gguf_next_text(&array);
            sum += text.length ? (unsigned char)text.at[text.length - 1] : 0;
        }
}

static void read_tensor(const struct burin_gguf *gguf, const struct burin_tensor *tensor)
{
    char byte;
    PROMISE(burin_gguf_find(gguf, tensor->name) == tensor);
    PROMISE(tensor->bytes > 0);
    PROMISE(burin_file_read(&gguf->file, tensor->offset, &byte, 1, NULL) == BURIN_OK);
    PROMISE(burin_file_read(
                    &gguf->file, tensor->offset + tensor->bytes - 1, &byte, 1, NULL) ==
            BURIN_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const char *path = fuzz_file(bytes, n);
    struct burin_error err = { 0 };
    struct burin_gguf gguf;
    const enum burin_status status = burin_gguf_open(&gguf, path, &err);
    PROMISE(status == err.status);
    PROMISE(status == BURIN_OK || status == BURIN_EFORMAT);
    if (status)
        return 0;
    PROMISE(gguf.arena.obtained + gguf.mapped <= 4 * n + 256 * 1024);
    for (size_t i = 0; i < gguf.n_keys; i++)
        read_key(&gguf, i);
    for (size_t i = 0; i < gguf.n_tensors; i++)
        read_tensor(&gguf, gguf.tensors[i]);
    burin_gguf_close(&gguf);
    return 0;
}
