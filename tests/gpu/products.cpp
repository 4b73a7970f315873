/* tests/gpu/products.cpp -- cuBLASLt for a virtual GPU that executes: the functions that
 * runtime/device/cuda/multiply.c calls, over a kernel that multiplies, compiled as all kernels are
 * and put on the stream as they are.
 *
 * Refused  All but what --fast-gemm asks for: bf16 times bf16, the first matrix transposed, sums in
 *          f32; addresses or strides that the real one could not read 16 bytes at a time.
 *
 *   BURIN_GPU_PRODUCTS   1: how many there were is told at the end */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored                                                             \
        "-Wshadow" /* in C a function may be called as its struct is */
extern "C" {
#include "runtime/device/cuda/cublaslt.h"
#include "runtime/device/cuda/nvrtc.h"

#define DECLARE(name, arguments) int name arguments;
BURIN_DRIVER_CALLS(DECLARE)
#undef DECLARE
#define DECLARE(name, result, arguments) result name arguments;
BURIN_NVRTC_CALLS(DECLARE)
BURIN_CUBLASLT_CALLS(DECLARE)
#undef DECLARE
}
#pragma GCC diagnostic pop

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>

/* What the real one works in may be overwritten everywhere; it's enough to be there. */
static const char text[] = R"(
extern "C" __global__ __launch_bounds__(64) void cublaslt(
        void *y, const unsigned short *w, const unsigned short *x, unsigned char *workspace,
        unsigned long long workspace_bytes, int n_out, int k, int w_stride, int x_stride,
        int y_stride, int wide, int adds)
{
    const int row = (int)blockIdx.x;
    const auto widen = [](unsigned short bits) { return __uint_as_float((unsigned)bits << 16); };
    if (row == 0 && threadIdx.x == 0 && workspace_bytes > 0)
        workspace[0] = workspace[workspace_bytes - 1] = 0xff;
    for (int out = (int)threadIdx.x; out < n_out; out += 64) {
        const size_t at = (size_t)row * y_stride + out;
        unsigned short *narrow = (unsigned short *)y + at;
        float *whole = (float *)y + at;
        float sum = 0.0f;
        for (int i = 0; i < k; i++)
            sum += widen(w[(size_t)out * w_stride + i]) * widen(x[(size_t)row * x_stride + i]);
        if (adds)
            sum += wide ? *whole : widen(*narrow);
        const unsigned bits = __float_as_uint(sum);
        if (wide)
            *whole = sum;
        else
            *narrow = (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
}
)";

static int n_products;

__attribute__((destructor)) static void tell_products(void)
{
    const char *tell = getenv("BURIN_GPU_PRODUCTS");
    if (tell && !strcmp(tell, "1"))
        fprintf(stderr, "burin-gpu: %d products of cuBLASLt's\n", n_products);
}

struct burin_cublaslt_handle {
    struct burin_cu_module *module;
    struct burin_cu_function *function;
};

struct burin_cublaslt_product {
    int transposes_a;
};

struct burin_cublaslt_layout {
    int type;
    uint64_t rows, columns;
    int64_t stride;
};

struct burin_cublaslt_wish {
    size_t workspace_bytes;
};

static int compile(struct burin_cublaslt_handle *handle)
{
    struct burin_nvrtc_program *program = nullptr;
    size_t bytes = 0;
    std::string code;
    int result = nvrtcCreateProgram(&program, text, "cublaslt", 0, nullptr, nullptr);
    if (!result)
        result = nvrtcCompileProgram(program, 0, nullptr);
    if (!result)
        result = nvrtcGetCUBINSize(program, &bytes);
    code.resize(bytes);
    if (!result)
        result = nvrtcGetCUBIN(program, code.data());
    if (program)
        nvrtcDestroyProgram(&program);
    if (!result)
        result = cuModuleLoadData(&handle->module, code.data());
    return result ? result
                  : cuModuleGetFunction(&handle->function, handle->module, "cublaslt");
}

static bool is_whole(const struct burin_cublaslt_layout *layout)
{
    return layout->stride * (layout->type == CUBLASLT_F32 ? 4 : 2) % 16 == 0;
}

/* Of w (k, n_out) transposed, x (k, n_rows) and y (n_out, n_rows). */
static bool is_known(
        const struct burin_cublaslt_product *product,
        const struct burin_cublaslt_layout *w,
        const struct burin_cublaslt_layout *x,
        const struct burin_cublaslt_layout *y)
{
    return product->transposes_a == CUBLASLT_TRANSPOSED && w->type == CUBLASLT_BF16 &&
           x->type == CUBLASLT_BF16 && w->rows == x->rows && w->columns == y->rows &&
           x->columns == y->columns && is_whole(w) && is_whole(x) && is_whole(y);
}

extern "C" {

size_t cublasLtGetVersion(void)
{
    return 130001;
}

const char *cublasLtGetStatusName(int result)
{
    return result == CUBLASLT_OK            ? "CUBLAS_STATUS_SUCCESS"
           : result == CUBLASLT_UNSUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                            : "CUBLAS_STATUS_INVALID_VALUE";
}

int cublasLtCreate(struct burin_cublaslt_handle **handle)
{
    *handle = new struct burin_cublaslt_handle();
    return compile(*handle) ? (int)CUBLASLT_INVALID : (int)CUBLASLT_OK;
}

int cublasLtDestroy(struct burin_cublaslt_handle *handle)
{
    cuModuleUnload(handle->module);
    delete handle;
    return CUBLASLT_OK;
}

int cublasLtMatmulDescCreate(struct burin_cublaslt_product **product, int sums, int scales)
{
    if (sums != CUBLASLT_SUMS_F32 || scales != CUBLASLT_F32)
        return CUBLASLT_UNSUPPORTED;
    *product = new struct burin_cublaslt_product();
    return CUBLASLT_OK;
}

int cublasLtMatmulDescDestroy(struct burin_cublaslt_product *product)
{
    delete product;
    return CUBLASLT_OK;
}

int cublasLtMatmulDescSetAttribute(
        struct burin_cublaslt_product *product,
        int attribute,
        const void *value,
        size_t bytes)
{
    if (attribute != CUBLASLT_PRODUCT_TRANSPOSES_A || bytes != sizeof(int))
        return CUBLASLT_INVALID;
    memcpy(&product->transposes_a, value, bytes);
    return CUBLASLT_OK;
}

int cublasLtMatrixLayoutCreate(
        struct burin_cublaslt_layout **layout,
        int type,
        uint64_t rows,
        uint64_t columns,
        int64_t stride)
{
    *layout = new burin_cublaslt_layout{ type, rows, columns, stride };
    return CUBLASLT_OK;
}

int cublasLtMatrixLayoutDestroy(struct burin_cublaslt_layout *layout)
{
    delete layout;
    return CUBLASLT_OK;
}

int cublasLtMatrixLayoutSetAttribute(
        struct burin_cublaslt_layout *layout,
        int attribute,
        const void *value,
        size_t bytes)
{
    if (attribute != CUBLASLT_LAYOUT_COLUMNS || bytes != sizeof(uint64_t))
        return CUBLASLT_INVALID;
    memcpy(&layout->columns, value, bytes);
    return CUBLASLT_OK;
}

int cublasLtMatmulPreferenceCreate(struct burin_cublaslt_wish **wish)
{
    *wish = new struct burin_cublaslt_wish();
    return CUBLASLT_OK;
}

int cublasLtMatmulPreferenceDestroy(struct burin_cublaslt_wish *wish)
{
    delete wish;
    return CUBLASLT_OK;
}

int cublasLtMatmulPreferenceSetAttribute(
        struct burin_cublaslt_wish *wish, int attribute, const void *value, size_t bytes)
{
    if (attribute == CUBLASLT_WISH_WORKSPACE && bytes == sizeof(size_t))
        memcpy(&wish->workspace_bytes, value, bytes);
    return CUBLASLT_OK;
}

int cublasLtMatmulAlgoCheck(
        struct burin_cublaslt_handle *,
        struct burin_cublaslt_product *product,
        struct burin_cublaslt_layout *a,
        struct burin_cublaslt_layout *b,
        struct burin_cublaslt_layout *,
        struct burin_cublaslt_layout *d,
        const struct burin_cublaslt_algorithm *,
        struct burin_cublaslt_found *found)
{
    *found = burin_cublaslt_found();
    found->state = is_known(product, a, b, d) ? CUBLASLT_OK : CUBLASLT_UNSUPPORTED;
    found->workspace_bytes = 4096;
    return found->state;
}

int cublasLtMatmulAlgoGetHeuristic(
        struct burin_cublaslt_handle *handle,
        struct burin_cublaslt_product *product,
        struct burin_cublaslt_layout *a,
        struct burin_cublaslt_layout *b,
        struct burin_cublaslt_layout *c,
        struct burin_cublaslt_layout *d,
        struct burin_cublaslt_wish *wish,
        int,
        struct burin_cublaslt_found *found,
        int *n_found)
{
    const int result = cublasLtMatmulAlgoCheck(handle, product, a, b, c, d, nullptr, found);
    *n_found = !result && found->workspace_bytes <= wish->workspace_bytes;
    return *n_found ? (int)CUBLASLT_OK : (int)CUBLASLT_UNSUPPORTED;
}

int cublasLtMatmul(
        struct burin_cublaslt_handle *handle,
        struct burin_cublaslt_product *product,
        const void *alpha,
        const void *a,
        struct burin_cublaslt_layout *a_layout,
        const void *b,
        struct burin_cublaslt_layout *b_layout,
        const void *beta,
        const void *c,
        struct burin_cublaslt_layout *,
        void *d,
        struct burin_cublaslt_layout *d_layout,
        const struct burin_cublaslt_algorithm *,
        void *workspace,
        size_t workspace_bytes,
        struct burin_cu_stream *stream)
{
    const auto begins = [](const void *p, uintptr_t at) { return (uintptr_t)p % at == 0; };
    if (!is_known(product, a_layout, b_layout, d_layout) || *(const float *)alpha != 1 ||
        !begins(a, 256) || !begins(b, 16) || !begins(d, 16) || !begins(workspace, 256) ||
        c != d)
        return CUBLASLT_INVALID;
    n_products++;
    int n_out = (int)a_layout->columns, k = (int)a_layout->rows;
    int w_stride = (int)a_layout->stride, x_stride = (int)b_layout->stride;
    int y_stride = (int)d_layout->stride;
    int wide = d_layout->type == CUBLASLT_F32, adds = *(const float *)beta != 0;
    unsigned long long bytes = workspace_bytes;
    void *args[] = { &d, &a,        &b,        &workspace, &bytes, &n_out,
                     &k, &w_stride, &x_stride, &y_stride,  &wide,  &adds };
    return cuLaunchKernel(
                   handle->function, (unsigned)d_layout->columns, 1, 1, 64, 1, 1, 0, stream,
                   args, nullptr)
                   ? (int)CUBLASLT_INVALID
                   : (int)CUBLASLT_OK;
}
}
