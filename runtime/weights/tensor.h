/* runtime/weights/tensor.h -- What a checkpoint says of one tensor, whatever the container.
 *
 * Units    Bytes and elements. Dimensions are outermost first: a matrix (n_rows, n_cols) is
 *          dims[0] = n_rows, dims[1] = n_cols, and a row's elements are adjacent in the file.
 * Memory   Owned by the container it was read from, as the name's bytes are.
 * Threads  Read-only, free to share. */
#ifndef BURIN_WEIGHTS_TENSOR_H
#define BURIN_WEIGHTS_TENSOR_H

#include "runtime/base/span.h"
#include "runtime/model.h"

#include <stdint.h>

/* An element type as files hold it: `block` elements take `bytes` bytes. */
struct burin_encoding {
    const char *name; /* "q4_1", "bf16", "q6_k", "f8_e4m3" */
    int format;       /* enum burin_format, or BURIN_NO_FORMAT */
    uint16_t block;
    uint16_t bytes;
};
enum {
    BURIN_NO_FORMAT = -1
}; /* a type with a name and a size, that we do not compute with */

enum { BURIN_MAX_DIMS = 5 };
struct burin_tensor {
    struct burin_span name;
    const struct burin_encoding *type;
    int n_dims; /* 0: one element */
    int file;   /* which file of the checkpoint */
    uint64_t dims[BURIN_MAX_DIMS];
    uint64_t offset; /* from the begin of that file */
    uint64_t bytes;  /* offset + bytes is within the file as it was opened */
    /* Where a file holds a stack of experts one by one, bind.h makes one tensor of them: equal
     * parts in the order of its rows, each a tensor of the file. NULL for all others. */
    const struct burin_tensor *const *pieces;
};

/* "q4_1" for BURIN_FORMAT_Q4_1, in the words of the recipes. */
const char *burin_format_name(enum burin_format format);

/* Bytes of a row of `n_cols` elements; 0 where n_cols is no whole number of blocks. */
uint64_t burin_format_row_bytes(enum burin_format format, int64_t n_cols);

/* Sorts in place and allocates nothing, so that a file with a million names costs no more than
 * its list. Heapsort: never quadratic, whatever the names. */
void burin_sort(void **items, size_t n, int (*compare)(const void *a, const void *b));

/* The orders that containers need: by name, and by place in the file. */
int burin_tensor_by_name(const void *a, const void *b);
int burin_tensor_by_offset(const void *a, const void *b);

/* Binary search in tensors sorted by name; NULL where there is none. */
struct burin_tensor *burin_tensor_find(
        struct burin_tensor *const *sorted, size_t n, struct burin_span name);

#endif
