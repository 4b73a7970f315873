/* Products under --fast-gemm: which ones are cuBLASLt's, and that these are right. Over
 * libburin-gpu.so, which stands for cuBLASLt, too ($BURIN_CUBLASLT); "unpacked" is a copy here. */
#include "runtime/device/cuda/cuda.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/cuda/open.h"
#include "tests/support/test.h"

#include <string.h>

enum { N_OUT = 24, K = 40, MOST_ROWS = 200, STRIDE = 32, MANY = 128, ROOM = 64 * 1024 };

static struct burin_driver driver;
static struct burin_nvrtc nvrtc;
static struct burin_cublaslt cublaslt;
static struct burin_cuda cuda;
static struct burin_queue queue;
static uint64_t w, x, y, scratch;

static const struct burin_kernel kernels[] = {
    { .name = "unpack",
      .text = "extern \"C\" __global__ __launch_bounds__(32) void unpack(\n"
              "        unsigned short *rows, const unsigned short *w, int n)\n"
              "{\n"
              "    for (int i = (int)threadIdx.x; i < n * 40; i += 32)\n"
              "        rows[i] = w[i];\n"
              "}\n",
      .threads = 32,
      .fast_gemm = true },
};
static const struct burin_cuda_code code = { .prelude = "",
                                             .n_kernels = 1,
                                             .kernels = kernels };

static struct burin_product product; /* what is asked for */
static bool done;

static void multiply(const struct burin_stream *stream, const struct burin_call *call)
{
    (void)call;
    done = burin_fast_product(stream, &product);
}

static burin_enqueue *const enqueue[] = { multiply };
static const struct burin_program program = { .name = "product", .enqueue = enqueue };
static const struct burin_call fast = { .params.value[BURIN_FAST_GEMM] = 1 };

/* ---- Numbers --------------------------------------------------------------------------- */

/* Small whole numbers: their sums are exact, in bf16 too where they stay below 256. */
static int number(int i)
{
    return (i * 7 + i / 5) % 5 - 2;
}

static uint16_t bf16(int i)
{
    const float value = (float)i;
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return (uint16_t)(bits >> 16);
}

static int expected(int row, int out)
{
    int sum = 0;
    for (int i = 0; i < K; i++)
        sum += number(row * K + i) * number(out * K + i + 3);
    return sum;
}

static void start(void)
{
    struct burin_compiling how = { .nvrtc = &nvrtc, .n_threads = 1 };
    struct burin_compile_counts counts;
    struct burin_error err;
    static uint16_t rows[MOST_ROWS * K], weights[N_OUT * K];
    if (cuda.multiplier)
        return;
    if (burin_driver_open(&driver, &err) || burin_cuda_open(&cuda, &driver, 0, &err) ||
        burin_cuda_context(&cuda, &err) || burin_cuda_fast_gemm(&cuda, &cublaslt, &err) ||
        burin_cuda_load(&cuda, &code, &how, &counts, &err) ||
        burin_queue_open(&queue, &cuda.device, &err) ||
        burin_device_obtain(&cuda.device, cuda.device.granule, &w, &err) ||
        burin_device_obtain(&cuda.device, cuda.device.granule, &x, &err) ||
        burin_device_obtain(&cuda.device, cuda.device.granule, &y, &err) ||
        burin_device_obtain(&cuda.device, cuda.device.granule, &scratch, &err))
        fail_msg("%s", err.message);
    for (int i = 0; i < MOST_ROWS * K; i++)
        rows[i] = bf16(number(i));
    for (int i = 0; i < N_OUT * K; i++)
        weights[i] = bf16(number(i + 3));
    assert_int_equal(burin_queue_copy_in(&queue, x, rows, sizeof rows, NULL), BURIN_OK);
    assert_int_equal(
            burin_queue_copy_in(&queue, w, weights, sizeof weights, NULL), BURIN_OK);
    assert_int_equal(burin_queue_finish(&queue, NULL), BURIN_OK);
}

static const void *at(uint64_t address)
{
    return (const void *)(uintptr_t)address;
}

static void ask(int n_rows, enum burin_dtype y_dtype, bool adds)
{
    start();
    product = (struct burin_product){ .unpack = 0,
                                      .unpack_blocks = { 1, 1, 1 },
                                      .unpack_threads = 32,
                                      .y = at(y),
                                      .y_stride = STRIDE,
                                      .x = at(x),
                                      .weight = at(w),
                                      .n_out = N_OUT,
                                      .k = K,
                                      .n_rows = n_rows,
                                      .y_dtype = y_dtype,
                                      .adds = adds,
                                      .scratch = at(scratch),
                                      .scratch_bytes = ROOM };
}

static bool run(const struct burin_call *call)
{
    struct burin_error err;
    done = false;
    if (burin_queue_run(&queue, &program, 0, call, &err) ||
        burin_queue_finish(&queue, &err))
        fail_msg("%s", err.message);
    return done;
}

/* What lies there: `times` the product, ones behind it. */
static void expect(int times)
{
    static uint8_t found[MOST_ROWS * STRIDE * 4];
    const size_t width = product.y_dtype == BURIN_F32 ? 4 : 2;
    assert_int_equal(
            burin_queue_copy_out(
                    &queue, found, y, (size_t)product.n_rows * STRIDE * width, NULL),
            BURIN_OK);
    assert_int_equal(burin_queue_finish(&queue, NULL), BURIN_OK);
    for (int row = 0; row < product.n_rows; row++)
        for (int out = 0; out < STRIDE; out++) {
            const int number = out < N_OUT ? times * expected(row, out) : 0;
            const float whole = (float)number;
            const uint16_t narrow = bf16(number);
            const void *right = width == 4 ? (const void *)&whole : &narrow;
            if (memcmp(found + (size_t)(row * STRIDE + out) * width, right, width) != 0)
                fail_msg("row %d, output %d is not %d", row, out, number);
        }
}

static void clear(void)
{
    assert_int_equal(burin_queue_fill(&queue, y, 0, cuda.device.granule, NULL), BURIN_OK);
}

/* ---- What it promises ------------------------------------------------------------------ */

SPEC(a_product_of_many_rows_is_cublaslts_for_more_rows_and_for_fewer)
{
    static const int rows[] = { 160, MANY, MOST_ROWS, 160 };
    static const enum burin_dtype dtypes[] = { BURIN_BF16, BURIN_F32 };
    for (int i = 0; i < 8; i++) {
        ask(rows[i % 4], dtypes[i / 4], false);
        clear();
        assert_true(run(&fast));
        expect(1);
    }
}

SPEC(it_may_add_to_what_lies_there)
{
    ask(MANY, BURIN_F32, false);
    clear();
    assert_true(run(&fast));
    product.adds = true;
    assert_true(run(&fast));
    expect(2);
}

SPEC(it_begins_within_scratch_where_it_must)
{
    ask(MANY, BURIN_BF16, false);
    clear();
    product.scratch = at(scratch + 64);
    assert_true(run(&fast));
    expect(1);
}

SPEC(few_rows_keep_our_kernels)
{
    ask(MANY - 1, BURIN_BF16, false);
    assert_false(run(&fast));
}

SPEC(without_the_option_there_is_no_scratch_and_nothing_is_cublaslts)
{
    ask(MANY, BURIN_BF16, false);
    assert_false(run(&(struct burin_call){ 0 }));
    product.scratch = NULL;
    product.scratch_bytes = 0;
    assert_false(run(&fast));
    product.scratch = at(scratch); /* the matrix fits, and nothing else */
    product.scratch_bytes = N_OUT * K * 2;
    assert_false(run(&fast));
}

SPEC(rows_that_cannot_be_read_in_whole_words_keep_our_kernels)
{
    ask(MANY, BURIN_BF16, false);
    product.x = at(x + 8);
    assert_false(run(&fast));
    ask(MANY, BURIN_BF16, false);
    product.y = at(y + 4);
    assert_false(run(&fast));
    ask(MANY, BURIN_BF16, false);
    product.y_stride = N_OUT + 1;
    assert_false(run(&fast));
}

SPEC(graphs_have_our_kernels)
{
    struct burin_graph graph;
    ask(MANY, BURIN_BF16, false);
    done = true;
    burin_queue_capture(&queue, &program, 0, &fast, &graph, NULL);
    assert_false(done);
    burin_graph_close(&graph);
}

SPEC(what_is_opened_is_closed)
{
    start();
    burin_queue_close(&queue);
    burin_cuda_close(&cuda);
    burin_driver_close(&driver);
}
