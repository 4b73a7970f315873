/* runtime/device/cuda/cublaslt.h -- NVIDIA's matrix products as a table of functions, like
 * driver.h: what multiply.c calls of them, for --fast-gemm.
 *
 * Errors   0, or a number that cublasLtGetStatusName() names.
 * Memory   Descriptions are the library's, on the host, until they are destroyed. It works on
 *          the context that is current to the thread.
 * Threads  A handle is safe from any thread; a description has one at a time. */
#ifndef BURIN_DEVICE_CUDA_CUBLASLT_H
#define BURIN_DEVICE_CUDA_CUBLASLT_H

#include "runtime/device/cuda/driver.h"

#include <stddef.h>
#include <stdint.h>

struct burin_cublaslt_handle; /* all of them the library's own */
struct burin_cublaslt_product;
struct burin_cublaslt_layout; /* of a matrix, column by column */
struct burin_cublaslt_wish;

/* One of its kernels, and how it is launched: a value that may be copied. */
struct burin_cublaslt_algorithm {
    uint64_t data[8];
};

struct burin_cublaslt_found {
    struct burin_cublaslt_algorithm algorithm;
    size_t workspace_bytes;
    int state; /* 0, or why it is none */
    float waves;
    int reserved[4];
};

enum {
    CUBLASLT_OK = 0,
    CUBLASLT_ALLOC = 3,
    CUBLASLT_INVALID = 7,
    CUBLASLT_UNSUPPORTED = 15
};
enum { CUBLASLT_F32 = 0, CUBLASLT_BF16 = 14 }; /* types of elements */
enum { CUBLASLT_SUMS_F32 = 68, CUBLASLT_TRANSPOSED = 1 };

/* Attributes of products, layouts and wishes. */
enum {
    CUBLASLT_PRODUCT_TRANSPOSES_A = 3, /* int */
    CUBLASLT_LAYOUT_COLUMNS = 3,       /* uint64_t */
    CUBLASLT_WISH_WORKSPACE = 1,       /* size_t, at most */
    CUBLASLT_WISH_ALIGNED_A = 5,       /* uint32_t, addresses are multiples of it */
    CUBLASLT_WISH_ALIGNED_B = 6,
    CUBLASLT_WISH_ALIGNED_C = 7,
    CUBLASLT_WISH_ALIGNED_D = 8,
};

/* clang-format off */
#define BURIN_CUBLASLT_CALLS(X)                                                            \
    X(cublasLtGetVersion, size_t, (void)) /* 130001: 13.0.1 */                             \
    X(cublasLtGetStatusName, const char *, (int result))                                   \
    X(cublasLtCreate, int, (struct burin_cublaslt_handle **handle))                        \
    X(cublasLtDestroy, int, (struct burin_cublaslt_handle *handle))                        \
    X(cublasLtMatmulDescCreate, int,                                                       \
      (struct burin_cublaslt_product **product, int sums, int scales))                     \
    X(cublasLtMatmulDescDestroy, int, (struct burin_cublaslt_product *product))            \
    X(cublasLtMatmulDescSetAttribute, int,                                                 \
      (struct burin_cublaslt_product *product, int attribute, const void *value,           \
       size_t bytes))                                                                      \
    X(cublasLtMatrixLayoutCreate, int,                                                     \
      (struct burin_cublaslt_layout **layout, int type, uint64_t rows, uint64_t columns,   \
       int64_t stride))                                                                    \
    X(cublasLtMatrixLayoutDestroy, int, (struct burin_cublaslt_layout *layout))            \
    X(cublasLtMatrixLayoutSetAttribute, int,                                               \
      (struct burin_cublaslt_layout *layout, int attribute, const void *value,             \
       size_t bytes))                                                                      \
    X(cublasLtMatmulPreferenceCreate, int, (struct burin_cublaslt_wish **wish))            \
    X(cublasLtMatmulPreferenceDestroy, int, (struct burin_cublaslt_wish *wish))            \
    X(cublasLtMatmulPreferenceSetAttribute, int,                                           \
      (struct burin_cublaslt_wish *wish, int attribute, const void *value, size_t bytes))  \
    X(cublasLtMatmulAlgoGetHeuristic, int,                                                 \
      (struct burin_cublaslt_handle *handle, struct burin_cublaslt_product *product,       \
       struct burin_cublaslt_layout *a, struct burin_cublaslt_layout *b,                   \
       struct burin_cublaslt_layout *c, struct burin_cublaslt_layout *d,                   \
       struct burin_cublaslt_wish *wish, int n_wanted, struct burin_cublaslt_found *found, \
       int *n_found))                                                                      \
    X(cublasLtMatmulAlgoCheck, int,                                                        \
      (struct burin_cublaslt_handle *handle, struct burin_cublaslt_product *product,       \
       struct burin_cublaslt_layout *a, struct burin_cublaslt_layout *b,                   \
       struct burin_cublaslt_layout *c, struct burin_cublaslt_layout *d,                   \
       const struct burin_cublaslt_algorithm *algorithm,                                   \
       struct burin_cublaslt_found *found))                                                \
    X(cublasLtMatmul, int,                                                                 \
      (struct burin_cublaslt_handle *handle, struct burin_cublaslt_product *product,       \
       const void *alpha, const void *a, struct burin_cublaslt_layout *a_layout,           \
       const void *b, struct burin_cublaslt_layout *b_layout, const void *beta,            \
       const void *c, struct burin_cublaslt_layout *c_layout, void *d,                     \
       struct burin_cublaslt_layout *d_layout,                                             \
       const struct burin_cublaslt_algorithm *algorithm, void *workspace,                  \
       size_t workspace_bytes, struct burin_cu_stream *stream))
/* clang-format on */

struct burin_cublaslt {
#define BURIN_CALL(name, result, arguments) result(*name) arguments;
    BURIN_CUBLASLT_CALLS(BURIN_CALL)
#undef BURIN_CALL
    void *library; /* of dlopen */
    char found[256];
};

#endif
