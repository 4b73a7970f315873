/* runtime/device/cuda/multiply.c -- Plain dense products by cuBLASLt, under --fast-gemm.
 *
 * Our weights lie in tiles that it can't read. A kernel unpacks the matrix into scratch, and with
 * many rows that is a small part of the work: it is read and written once, for at least 128 rows
 * that are multiplied with it.
 *
 * Of each kind of product (sizes, not rows) one algorithm is asked for, when it is met first: at
 * the warm-up, with the most rows that there will be. Later it is only asked whether that algorithm
 * does for fewer. Nothing is obtained while serving then, and kernels that cuBLASLt loads when it
 * needs them are there before KV pages get what is left. */
#include "runtime/device/cuda/errors.h"
#include "runtime/device/cuda/open.h"
#include "runtime/device/cuda/parts.h"

enum {
    MANY = 128,  /* rows; fewer keep our kernels */
    KINDS = 64,  /* of products; a model has as many as its matrices have shapes */
    BEGINS = 16, /* addresses of rows are multiples of so many bytes */
    ALIGN = 256, /* and those within scratch of so many */
};

/* Column by column, as cuBLASLt has it, our rows are columns: y' = w x', where w' is what lies
 * in memory. */
struct kind {
    int n_out, k, y_stride;
    enum burin_dtype y_dtype;
    bool adds;

    int n_rows;  /* what the layouts of x and y say */
    bool suits;  /* the algorithm, for so many */
    bool usable; /* there is one */
    struct burin_cublaslt_product *product;
    struct burin_cublaslt_layout *w, *x, *y;
    struct burin_cublaslt_algorithm algorithm;
};

struct burin_multiplier {
    struct burin_cublaslt library;
    struct burin_cublaslt_handle *handle;
    int n_kinds;
    struct kind kinds[KINDS];
};

/* ---- Opening and closing --------------------------------------------------------------- */

enum burin_status burin_cuda_fast_gemm(
        struct burin_cuda *cuda, struct burin_cublaslt *library, struct burin_error *err)
{
    const struct burin_driver *driver = cuda->driver;
    int version = 0;
    if (!driver->library) /* a virtual GPU: NVIDIA's library would look for a real one */
        return BURIN_OK;
    struct burin_multiplier *m = BURIN_TAKE(&cuda->arena, 1, struct burin_multiplier);
    if (!m)
        return burin_fail(err, BURIN_ENOMEM, "no host memory for kinds of products");
    if (driver->cuDriverGetVersion(&version))
        version = 0;
    const enum burin_status status =
            library->library ? BURIN_OK : burin_cublaslt_open(library, version, err);
    if (status)
        return status;
    m->library = *library;
    *library = (struct burin_cublaslt){ 0 };
    const int result = m->library.cublasLtCreate(&m->handle);
    if (result) {
        m->handle = NULL;
        const enum burin_status failed = burin_fail(
                err, result == CUBLASLT_ALLOC ? BURIN_ENOMEM : BURIN_EIO,
                "cublasLtCreate, of %s, for --fast-gemm: %s (%d)", m->library.found,
                m->library.cublasLtGetStatusName(result), result);
        burin_multiplier_close(m);
        return failed;
    }
    cuda->multiplier = m;
    return BURIN_OK;
}

static void close_kind(const struct burin_cublaslt *library, struct kind *kind)
{
    if (kind->product)
        library->cublasLtMatmulDescDestroy(kind->product);
    struct burin_cublaslt_layout *layouts[] = { kind->w, kind->x, kind->y };
    for (int i = 0; i < 3; i++)
        if (layouts[i])
            library->cublasLtMatrixLayoutDestroy(layouts[i]);
    kind->product = NULL;
    kind->w = kind->x = kind->y = NULL;
}

void burin_multiplier_close(struct burin_multiplier *m)
{
    if (!m)
        return;
    for (int i = 0; i < m->n_kinds; i++)
        close_kind(&m->library, &m->kinds[i]);
    if (m->handle)
        m->library.cublasLtDestroy(m->handle);
    burin_cublaslt_close(&m->library);
    m->n_kinds = 0;
    m->handle = NULL;
}

/* ---- Kinds of products ----------------------------------------------------------------- */

/* The first of what the library finds for n_rows, with so much to work in. */
static bool ask(const struct burin_multiplier *m, struct kind *kind, size_t workspace_bytes)
{
    const struct burin_cublaslt *library = &m->library;
    const uint32_t aligned_w = ALIGN, aligned = BEGINS;
    struct burin_cublaslt_wish *wish = NULL;
    struct burin_cublaslt_found found = { .state = CUBLASLT_UNSUPPORTED };
    int n_found = 0;
    if (library->cublasLtMatmulPreferenceCreate(&wish))
        return false;
    const struct {
        int attribute;
        const void *value;
        size_t bytes;
    } wishes[] = {
        { CUBLASLT_WISH_WORKSPACE, &workspace_bytes, sizeof workspace_bytes },
        { CUBLASLT_WISH_ALIGNED_A, &aligned_w, sizeof aligned_w },
        { CUBLASLT_WISH_ALIGNED_B, &aligned, sizeof aligned },
        { CUBLASLT_WISH_ALIGNED_C, &aligned, sizeof aligned },
        { CUBLASLT_WISH_ALIGNED_D, &aligned, sizeof aligned },
    };
    int result = CUBLASLT_OK;
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes && !result; i++)
        result = library->cublasLtMatmulPreferenceSetAttribute(
                wish, wishes[i].attribute, wishes[i].value, wishes[i].bytes);
    if (!result)
        result = library->cublasLtMatmulAlgoGetHeuristic(
                m->handle, kind->product, kind->w, kind->x, kind->y, kind->y, wish, 1,
                &found, &n_found);
    library->cublasLtMatmulPreferenceDestroy(wish);
    kind->algorithm = found.algorithm;
    return !result && n_found > 0 && !found.state &&
           found.workspace_bytes <= workspace_bytes;
}

static bool describe(const struct burin_multiplier *m, struct kind *kind)
{
    const struct burin_cublaslt *library = &m->library;
    const uint64_t n_out = (uint64_t)kind->n_out, k = (uint64_t)kind->k;
    const uint64_t n_rows = (uint64_t)kind->n_rows;
    const int y_type = kind->y_dtype == BURIN_F32 ? CUBLASLT_F32 : CUBLASLT_BF16;
    const int transposed = CUBLASLT_TRANSPOSED;
    return !library->cublasLtMatmulDescCreate(
                   &kind->product, CUBLASLT_SUMS_F32, CUBLASLT_F32) &&
           !library->cublasLtMatmulDescSetAttribute(
                   kind->product, CUBLASLT_PRODUCT_TRANSPOSES_A, &transposed,
                   sizeof transposed) &&
           !library->cublasLtMatrixLayoutCreate(
                   &kind->w, CUBLASLT_BF16, k, n_out, kind->k) &&
           !library->cublasLtMatrixLayoutCreate(
                   &kind->x, CUBLASLT_BF16, k, n_rows, kind->k) &&
           !library->cublasLtMatrixLayoutCreate(
                   &kind->y, y_type, n_out, n_rows, kind->y_stride);
}

/* The kind of a product, asked for where it is met first; NULL where there are too many. */
static struct kind *kind_of(
        struct burin_multiplier *m,
        const struct burin_product *product,
        size_t workspace_bytes)
{
    for (int i = 0; i < m->n_kinds; i++) {
        struct kind *kind = &m->kinds[i];
        if (kind->n_out == product->n_out && kind->k == product->k &&
            kind->y_stride == product->y_stride && kind->y_dtype == product->y_dtype &&
            kind->adds == product->adds)
            return kind;
    }
    if (m->n_kinds == KINDS)
        return NULL;
    struct kind *kind = &m->kinds[m->n_kinds++];
    *kind = (struct kind){ .n_out = product->n_out,
                           .k = product->k,
                           .y_stride = product->y_stride,
                           .y_dtype = product->y_dtype,
                           .adds = product->adds,
                           .n_rows = product->n_rows };
    kind->usable = describe(m, kind) && ask(m, kind, workspace_bytes);
    kind->suits = kind->usable;
    return kind;
}

static bool set_rows(
        const struct burin_multiplier *m, struct burin_cublaslt_layout *layout, int n_rows)
{
    const uint64_t n = (uint64_t)n_rows;
    return !m->library.cublasLtMatrixLayoutSetAttribute(
            layout, CUBLASLT_LAYOUT_COLUMNS, &n, sizeof n);
}

/* Whether the algorithm does for so many rows; the layouts say as many from here on. */
static bool suits(
        const struct burin_multiplier *m,
        struct kind *kind,
        int n_rows,
        size_t workspace_bytes)
{
    struct burin_cublaslt_found found = { .state = CUBLASLT_UNSUPPORTED };
    if (!kind->usable || n_rows == kind->n_rows)
        return kind->suits;
    kind->suits = set_rows(m, kind->x, n_rows) && set_rows(m, kind->y, n_rows) &&
                  !m->library.cublasLtMatmulAlgoCheck(
                          m->handle, kind->product, kind->w, kind->x, kind->y, kind->y,
                          &kind->algorithm, &found) &&
                  !found.state && found.workspace_bytes <= workspace_bytes;
    kind->n_rows = n_rows;
    return kind->suits;
}

/* ---- A product ------------------------------------------------------------------------- */

static void fail(
        const struct burin_stream *stream,
        const struct burin_multiplier *m,
        const struct burin_product *product,
        int result)
{
    stream->failure->status = burin_fail(
            &stream->failure->error, result == CUBLASLT_ALLOC ? BURIN_ENOMEM : BURIN_EIO,
            "cublasLtMatmul, %d rows of %d times %d outputs: %s (%d); without --fast-gemm "
            "our own kernels multiply",
            product->n_rows, product->k, product->n_out,
            m->library.cublasLtGetStatusName(result), result);
}

/* Where BURIN_CUDA_SYNC=1 asks for it, as for kernels. */
static void wait_for(const struct burin_stream *stream, const struct burin_product *product)
{
    const struct burin_driver *driver = stream->cuda->driver;
    if (stream->cuda->one_by_one && !stream->failure->status)
        stream->failure->status = burin_cuda_check(
                driver, &stream->failure->error,
                driver->cuStreamSynchronize(stream->handle), "cuStreamSynchronize",
                "waiting for cuBLASLt, %d rows of %d times %d outputs", product->n_rows,
                product->k, product->n_out);
}

bool burin_fast_product(
        const struct burin_stream *stream, const struct burin_product *product)
{
    static const float one = 1, zero = 0;
    struct burin_multiplier *m = stream->multiplier;
    const uintptr_t y = (uintptr_t)product->y, x = (uintptr_t)product->x;
    const size_t y_bytes = product->y_dtype == BURIN_F32 ? 4 : 2;
    if (!m || product->n_rows < MANY || stream->failure->status || (x | y) % BEGINS ||
        (size_t)product->y_stride * y_bytes % BEGINS || product->n_out % 8 ||
        product->k % 8)
        return false;

    const uintptr_t begin = (uintptr_t)product->scratch;
    const uintptr_t unpacked = (begin + ALIGN - 1) / ALIGN * ALIGN;
    const size_t bytes = (size_t)product->n_out * (size_t)product->k * 2;
    const uintptr_t workspace = (unpacked + bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (workspace > begin + (size_t)product->scratch_bytes)
        return false;
    const size_t left = begin + (size_t)product->scratch_bytes - workspace;
    struct kind *kind = kind_of(m, product, left);
    if (!kind || !suits(m, kind, product->n_rows, left))
        return false;

    const void *matrix = (const void *)unpacked;
    const void *weight = product->weight;
    int n_out = product->n_out;
    void *args[] = { &matrix, &weight, &n_out };
    burin_launch(
            stream, product->unpack, product->unpack_blocks, product->unpack_threads, 0,
            args);
    if (stream->failure->status)
        return true;
    const int result = m->library.cublasLtMatmul(
            m->handle, kind->product, &one, matrix, kind->w, product->x, kind->x,
            product->adds ? &one : &zero, product->y, kind->y, (void *)y, kind->y,
            &kind->algorithm, (void *)workspace, left, stream->handle);
    if (result)
        fail(stream, m, product, result);
    wait_for(stream, product);
    return true;
}
