/* runtime/weights/gguf.h -- A GGUF file (version 2 or 3): its metadata and its tensors.
 *
 * The whole header is read and checked when the file is opened: each count and length against
 * the bytes left before anything is taken for it, so a small file cannot ask for much. Names,
 * texts and arrays are views into that one copy of the header.
 *
 * Memory   At most 4 times the header: its bytes and a list of the entries; a header has
 *          256 MiB, 65,536 keys and 131,072 tensors at most. All of it goes back in
 *          burin_gguf_close(), and all views with it.
 * Threads  One opens and closes; any number may look things up.
 * Errors   BURIN_EMISSING no such file or key, BURIN_EFORMAT bytes that break the format (or a
 *          key of another type), BURIN_EIO the system refused or the file has shrunk,
 *          BURIN_ENOMEM.
 * Source   https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
 *
 * A key that may be absent:
 *     uint64_t eos = 2;
 *     status = burin_gguf_uint(&gguf, "tokenizer.ggml.eos_token_id", &eos, err);
 *     if (status && status != BURIN_EMISSING)
 *         return status; */
#ifndef BURIN_WEIGHTS_GGUF_H
#define BURIN_WEIGHTS_GGUF_H

#include "runtime/base/arena.h"
#include "runtime/base/span.h"
#include "runtime/base/status.h"
#include "runtime/weights/file.h"
#include "runtime/weights/tensor.h"

#include <stdbool.h>
#include <stdint.h>

enum burin_gguf_type {
    BURIN_GGUF_U8,
    BURIN_GGUF_I8,
    BURIN_GGUF_U16,
    BURIN_GGUF_I16,
    BURIN_GGUF_U32,
    BURIN_GGUF_I32,
    BURIN_GGUF_F32,
    BURIN_GGUF_BOOL,
    BURIN_GGUF_TEXT,
    BURIN_GGUF_ARRAY,
    BURIN_GGUF_U64,
    BURIN_GGUF_I64,
    BURIN_GGUF_F64,
    BURIN_GGUF_N_TYPES
};

struct burin_gguf_entry; /* private: one key */

struct burin_gguf {
    struct burin_file file;
    uint32_t version;
    size_t n_keys;
    size_t n_tensors;
    struct burin_tensor **tensors; /* sorted by name */
    uint64_t header_bytes; /* up to where the tensors' data begins, without padding */

    struct burin_gguf_entry **keys; /* private: sorted by key */
    uint8_t *header;                /* private: the copy of the header */
    size_t mapped;                  /* private: bytes taken for it */
    struct burin_arena arena;       /* private: the lists */
};

/* `path` must outlive the gguf. On failure nothing is held. */
enum burin_status burin_gguf_open(
        struct burin_gguf *gguf, const char *path, struct burin_error *err);

/* Closing a zeroed or closed gguf does nothing. */
void burin_gguf_close(struct burin_gguf *gguf);

const struct burin_tensor *burin_gguf_find(
        const struct burin_gguf *gguf, struct burin_span name);

/* ---- Metadata. Each fills *value, or leaves it as it was and fails. -------------- */

/* The name and the type of key `i` < n_keys, in the order of names. */
struct burin_span burin_gguf_key(
        const struct burin_gguf *gguf, size_t i, enum burin_gguf_type *type);

enum burin_status burin_gguf_text(
        const struct burin_gguf *gguf,
        const char *key,
        struct burin_span *value,
        struct burin_error *err);

/* Any integer type; a negative number is BURIN_EFORMAT. */
enum burin_status burin_gguf_uint(
        const struct burin_gguf *gguf,
        const char *key,
        uint64_t *value,
        struct burin_error *err);

/* A bool: one byte, any value but 0 is true, as in the reference. */
enum burin_status burin_gguf_bool(
        const struct burin_gguf *gguf,
        const char *key,
        bool *value,
        struct burin_error *err);

/* Any number or bool; every value but 64-bit integers beyond 2^53 is exact. */
enum burin_status burin_gguf_number(
        const struct burin_gguf *gguf,
        const char *key,
        double *value,
        struct burin_error *err);

/* An array as it lies in the header: elements are adjacent and not aligned. Texts are walked
 * from the begin: copy the struct to keep a second place. */
struct burin_gguf_array {
    enum burin_gguf_type type; /* of the elements; never BURIN_GGUF_ARRAY */
    uint64_t count;
    const uint8_t *begin;
    const uint8_t *at; /* the next text */
};

enum burin_status burin_gguf_array(
        const struct burin_gguf *gguf,
        const char *key,
        struct burin_gguf_array *value,
        struct burin_error *err);

/* As above, and BURIN_EFORMAT unless its elements are texts. */
enum burin_status burin_gguf_texts(
        const struct burin_gguf *gguf,
        const char *key,
        struct burin_gguf_array *value,
        struct burin_error *err);

/* As above, and BURIN_EFORMAT unless its elements are numbers or bools. */
enum burin_status burin_gguf_numbers(
        const struct burin_gguf *gguf,
        const char *key,
        struct burin_gguf_array *value,
        struct burin_error *err);

/* The next text of an array of texts. The caller calls it `count` times at most. */
struct burin_span burin_gguf_next_text(struct burin_gguf_array *array);

/* Element `i` < count of an array of numbers or bools; every type but 64-bit integers beyond
 * 2^53 is exact in a double. */
double burin_gguf_element(const struct burin_gguf_array *array, uint64_t i);

#endif
