/* tests/fuzz/fuzz_safetensors.c -- A safetensors header, or an index of shards, of any bytes is
 * read or refused. Bytes that begin with '{' are an index. */
#include "runtime/weights/safetensors.h"
#include "tests/fuzz/fuzz.h"

static void read_index(const struct burin_file *file, struct burin_arena *arena)
{
    struct burin_shard_map map;
    struct burin_error err = { 0 };
    const enum burin_status status = burin_shard_map_read(&map, file, arena, &err);
    PROMISE(status == BURIN_OK || status == BURIN_EFORMAT);
    for (size_t i = 0; !status && i < map.n_tensors; i++)
        PROMISE(map.entries[i].shard < map.n_shards);
}

static void read_header(const struct burin_file *file, struct burin_arena *arena)
{
    struct burin_safetensors safetensors;
    struct burin_error err = { 0 };
    const enum burin_status status =
            burin_safetensors_read(&safetensors, file, 0, arena, &err);
    PROMISE(status == BURIN_OK || status == BURIN_EFORMAT);
    for (size_t i = 0; !status && i < safetensors.n_tensors; i++) {
        const struct burin_tensor *tensor = safetensors.tensors[i];
        PROMISE(burin_tensor_find(
                        safetensors.tensors, safetensors.n_tensors, tensor->name) ==
                tensor);
        PROMISE(tensor->offset + tensor->bytes <= file->size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const char *path = fuzz_file(bytes, n);
    struct burin_arena arena = { 0 };
    struct burin_file file;
    PROMISE(burin_file_open(&file, path, NULL) == BURIN_OK);
    if (n && bytes[0] == '{')
        read_index(&file, &arena);
    else
        read_header(&file, &arena);
    PROMISE(arena.obtained <= 4 * n + 256 * 1024);
    burin_arena_close(&arena);
    burin_file_close(&file);
    return 0;
}
