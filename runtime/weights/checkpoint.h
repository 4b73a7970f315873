/* runtime/weights/checkpoint.h -- The weights of a model on disk, in either container.
 *
 * A path is a GGUF file, a safetensors file, a model.safetensors.index.json, or a folder that
 * holds one of these: the index first, then model.safetensors, then the only GGUF file. Which
 * container a file is shows in its first bytes, not in its name.
 *
 * Memory   The checkpoint owns its tensors, names and a copy of the path; at most 4 times the
 *          headers. No tensor's data is held: burin_checkpoint_read() fills the caller's buffer.
 * Threads  One opens and closes; any number may find and read.
 * Errors   BURIN_EMISSING nothing there, BURIN_EUNREADABLE no file or not ours to read,
 *          BURIN_EFORMAT broken bytes, with the reason, BURIN_EIO the system failed or the file
 *          has shrunk since, BURIN_ENOMEM. */
#ifndef BURIN_WEIGHTS_CHECKPOINT_H
#define BURIN_WEIGHTS_CHECKPOINT_H

#include "runtime/base/arena.h"
#include "runtime/base/status.h"
#include "runtime/model.h"
#include "runtime/weights/file.h"
#include "runtime/weights/gguf.h"
#include "runtime/weights/tensor.h"

#include <stdbool.h>

struct burin_checkpoint {
    enum burin_container container;
    const char *path;   /* of the file that was opened: the index where sharded */
    const char *folder; /* that holds it, "." at least: tokenizer.json, config.json */
    /* GGUF: rows of q and k lie in pairs (burin_weight.gguf_rope_heads). It is the file's
     * architecture that says so, not the model's name. */
    bool rope_in_pairs;
    struct burin_gguf gguf; /* zeroed unless container is BURIN_GGUF: its metadata */
    int n_files;
    struct burin_file *files;
    size_t n_tensors;
    struct burin_tensor **tensors; /* sorted by name */
    struct burin_arena arena;      /* private */
};

/* On failure nothing is held. */
enum burin_status burin_checkpoint_open(
        struct burin_checkpoint *checkpoint, const char *path, struct burin_error *err);

/* Closing a zeroed or closed checkpoint does nothing. */
void burin_checkpoint_close(struct burin_checkpoint *checkpoint);

/* NULL where there is none of this name. */
const struct burin_tensor *burin_checkpoint_find(
        const struct burin_checkpoint *checkpoint, const char *name);

/* `bytes` bytes of a tensor from its byte `offset`; offset + bytes <= tensor->bytes. */
enum burin_status burin_checkpoint_read(
        const struct burin_checkpoint *checkpoint,
        const struct burin_tensor *tensor,
        uint64_t offset,
        void *buffer,
        size_t bytes,
        struct burin_error *err);

#endif
