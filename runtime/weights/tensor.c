#include "runtime/weights/tensor.h"

/* The formats that we compute with. Their blocks run along a row. */
static const struct {
    const char *name;
    uint16_t block;
    uint16_t bytes;
} formats[BURIN_N_FORMATS] = {
    [BURIN_FORMAT_F32] = { "f32", 1, 4 },
    [BURIN_FORMAT_F16] = { "f16", 1, 2 },
    [BURIN_FORMAT_BF16] = { "bf16", 1, 2 },
    [BURIN_FORMAT_Q4_0] = { "q4_0", 32, 18 },
    [BURIN_FORMAT_Q4_1] = { "q4_1", 32, 20 },
    [BURIN_FORMAT_Q8_0] = { "q8_0", 32, 34 },
    /* Without their scales, which are tensors of their own. */
    [BURIN_FORMAT_FP8] = { "fp8", 1, 1 },
    [BURIN_FORMAT_FP8_BLOCK] = { "fp8_block", 1, 1 },
    [BURIN_FORMAT_NVFP4] = { "nvfp4", 16, 8 },
    [BURIN_FORMAT_INT4_G32] = { "int4_g32", 32, 16 },
    [BURIN_FORMAT_INT4_G128] = { "int4_g128", 128, 64 },
};

const char *burin_format_name(enum burin_format format)
{
    return formats[format].name;
}

uint64_t burin_format_row_bytes(enum burin_format format, int64_t n_cols)
{
    if (n_cols < 0 || n_cols % formats[format].block)
        return 0;
    return (uint64_t)n_cols / formats[format].block * formats[format].bytes;
}

/* Let items[root] sink below its greater children. */
static void sift(
        void **items, size_t root, size_t n, int (*compare)(const void *a, const void *b))
{
    void *const sinking = items[root];
    for (;;) {
        size_t child = 2 * root + 1;
        if (child >= n)
            break;
        if (child + 1 < n && compare(items[child], items[child + 1]) < 0)
            child++;
        if (compare(sinking, items[child]) >= 0)
            break;
        items[root] = items[child];
        root = child;
    }
    items[root] = sinking;
}

void burin_sort(void **items, size_t n, int (*compare)(const void *a, const void *b))
{
    for (size_t root = n / 2; root-- > 0;)
        sift(items, root, n, compare);
    while (n > 1) {
        n--;
        void *const greatest = items[0];
        items[0] = items[n];
        items[n] = greatest;
        sift(items, 0, n, compare);
    }
}

int burin_tensor_by_name(const void *a, const void *b)
{
    const struct burin_tensor *left = a;
    const struct burin_tensor *right = b;
    return burin_span_compare(left->name, right->name);
}

int burin_tensor_by_offset(const void *a, const void *b)
{
    const struct burin_tensor *left = a;
    const struct burin_tensor *right = b;
    if (left->offset != right->offset)
        return left->offset < right->offset ? -1 : 1;
    return (left->bytes > right->bytes) - (left->bytes < right->bytes);
}

struct burin_tensor *burin_tensor_find(
        struct burin_tensor *const *sorted, size_t n, struct burin_span name)
{
    size_t begin = 0;
    size_t end = n;
    while (begin < end) {
        const size_t middle = begin + (end - begin) / 2;
        const int order = burin_span_compare(sorted[middle]->name, name);
        if (order == 0)
            return sorted[middle];
        if (order < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    return NULL;
}
