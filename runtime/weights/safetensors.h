/* runtime/weights/safetensors.h -- A safetensors file, and the index of a sharded checkpoint.
 *
 * Refused, with the reason: what the reference reader refuses, and a name that occurs twice
 * (the specification disallows it, the reference takes the last). Tensors tile the data: no
 * hole, no overlap, no byte left.
 *
 * Memory   Taken from `arena`, at most 4 times the header: a copy of the header, that names
 *          are views into, and the tensors.
 * Threads  One at a time on an arena.
 * Errors   BURIN_EMISSING, BURIN_EFORMAT, BURIN_EIO, BURIN_ENOMEM.
 * Source   https://github.com/huggingface/safetensors */
#ifndef BURIN_WEIGHTS_SAFETENSORS_H
#define BURIN_WEIGHTS_SAFETENSORS_H

#include "runtime/base/arena.h"
#include "runtime/base/status.h"
#include "runtime/weights/file.h"
#include "runtime/weights/tensor.h"

struct burin_safetensors {
    size_t n_tensors;
    struct burin_tensor **tensors; /* sorted by name */
};

/* Read the header of an open file. Each tensor's `file` becomes file_index. */
enum burin_status burin_safetensors_read(
        struct burin_safetensors *safetensors,
        const struct burin_file *file,
        int file_index,
        struct burin_arena *arena,
        struct burin_error *err);

/* model.safetensors.index.json: which tensor is in which shard. */
enum { BURIN_MAX_SHARDS = 512 }; /* each is an open file */
struct burin_shard_map {
    size_t n_tensors;
    struct burin_shard_entry {
        struct burin_span name;
        int shard;
    } * entries; /* in the order of the file */
    int n_shards;
    const char **shards; /* file names, without folder, in the order of the file */
};

enum burin_status burin_shard_map_read(
        struct burin_shard_map *map,
        const struct burin_file *file,
        struct burin_arena *arena,
        struct burin_error *err);

#endif
