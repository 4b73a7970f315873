/* A GPU that is not there and runs kernels all the same: our device layer over libburin-gpu.so,
 * which $BURIN_CUDA_DRIVER and $BURIN_NVRTC name. */
#include "runtime/device/cuda/cuda.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/cuda/open.h"
#include "tests/support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 64, ROWS = 3 };

static struct burin_driver driver;
static struct burin_nvrtc nvrtc;
static struct burin_cuda cuda;
static struct burin_queue queue;
static uint64_t x, y; /* (ROWS, N) and (ROWS) floats */

/* ---- A kernel ------------------------------------------------------------------------- */

static struct burin_kernel kernels[] = {
    { "sums",
      "extern \"C\" __global__ __launch_bounds__(64) void sums(\n"
      "        float *__restrict__ y, const float *__restrict__ x, int add)\n"
      "{\n"
      "    const float sum = block_sum<64>(x[blockIdx.x * 64 + threadIdx.x]);\n"
      "    if (threadIdx.x == 0)\n"
      "        y[blockIdx.x] = sum + (float)add;\n"
      "}\n",
      N, 0, false },
};
static struct burin_cuda_code code = { "", 1, kernels, NULL };

static void sums(const struct burin_stream *stream, const struct burin_call *call)
{
    int add = call->n[BURIN_TOKENS];
    void *args[] = { &y, &x, &add };
    burin_launch(stream, 0, (struct burin_blocks){ ROWS, 1, 1 }, N, 0, args);
}

static burin_enqueue *const enqueue[] = { sums };
static const struct burin_program program = { .name = "sums", .enqueue = enqueue };

static const char *prelude(void)
{
    static char text[65536];
    FILE *file = fopen("templates/cuda/prelude.cu", "rb");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

/* ---- The device, from nothing to a queue ------------------------------------------------ */

static void start(void)
{
    struct burin_compiling how = { .nvrtc = &nvrtc, .n_threads = 1 };
    struct burin_compile_counts counts;
    struct burin_error err;
    size_t local;
    code.prelude = prelude();
    if (burin_driver_open(&driver, &err) || burin_cuda_open(&cuda, &driver, 0, &err) ||
        burin_cuda_context(&cuda, &err) ||
        burin_cuda_load(&cuda, &code, &how, &counts, &err) ||
        burin_cuda_local(&cuda, &local, &err) ||
        burin_queue_open(&queue, &cuda.device, &err) ||
        burin_device_obtain(&cuda.device, cuda.device.granule, &x, &err) ||
        burin_device_obtain(&cuda.device, cuda.device.granule, &y, &err))
        fail_msg("%s", err.message);
}

static void put_rows(float first)
{
    float rows[ROWS * N];
    for (int i = 0; i < ROWS * N; i++)
        rows[i] = i % N == 0 ? first * (float)(i / N) : 0.5f;
    assert_int_equal(burin_queue_copy_in(&queue, x, rows, sizeof rows, NULL), BURIN_OK);
    assert_int_equal(burin_queue_finish(&queue, NULL), BURIN_OK);
}

static void expect_sums(float first, int add)
{
    float found[ROWS];
    assert_int_equal(burin_queue_copy_out(&queue, found, y, sizeof found, NULL), BURIN_OK);
    assert_int_equal(burin_queue_finish(&queue, NULL), BURIN_OK);
    for (int row = 0; row < ROWS; row++)
        assert_float_equal(found[row], first * (float)row + 31.5f + (float)add, 0.0f);
}

/* ---- What it promises --------------------------------------------------------------------- */

static void run_eagerly(void)
{
    start();
    const struct burin_call call = { .n = { [BURIN_TOKENS] = 5 } };
    put_rows(3.0f);
    assert_int_equal(burin_queue_run(&queue, &program, 0, &call, NULL), BURIN_OK);
    expect_sums(3.0f, 5);
}

static void replay(void)
{
    start();
    struct burin_graph graph;
    const struct burin_call call = { .n = { [BURIN_TOKENS] = 7 } };
    assert_int_equal(
            burin_queue_capture(&queue, &program, 0, &call, &graph, NULL), BURIN_OK);
    for (int i = 1; i < 4; i++) {
        put_rows((float)i);
        assert_int_equal(burin_graph_launch(&graph, &queue, NULL), BURIN_OK);
        expect_sums((float)i, 7);
    }
    burin_graph_close(&graph);
}

static void touch(void)
{
    start();
    *(volatile float *)(uintptr_t)x = 1.0f;
}

static void run_beyond_its_memory(void)
{
    start();
    const struct burin_call call = { 0 };
    y = 4096; /* nobody's */
    burin_queue_run(&queue, &program, 0, &call, NULL);
    burin_queue_finish(&queue, NULL);
}

/* How a process of its own ends: the library reads its settings once. `said` is what it wrote to
 * stderr. */
static int in_process(
        void (*run)(void), const char *name, const char *value, char said[1024])
{
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        dup2(pipes[1], STDERR_FILENO);
        close(pipes[0]);
        setenv(name, value, 1);
        run();
        _exit(0);
    }
    close(pipes[1]);
    size_t used = 0;
    for (ssize_t n; (n = read(pipes[0], said + used, 1023 - used)) > 0;)
        used += (size_t)n;
    said[used] = 0;
    close(pipes[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void is_well(void (*run)(void), const char *name, const char *value)
{
    char said[1024];
    if (in_process(run, name, value, said) != 0)
        fail_msg("%s=%s: %s", name, value, said);
}

SPEC(kernels_run_in_every_order)
{
    static const char *const orders[] = { "in_order", "reverse", "random" };
    for (int i = 0; i < 3; i++)
        is_well(run_eagerly, "BURIN_GPU_ORDER", orders[i]);
}

SPEC(a_graph_replays_what_was_captured_on_what_lies_there_then)
{
    static const char *const orders[] = { "late", "early", "random" };
    for (int i = 0; i < 3; i++)
        is_well(replay, "BURIN_GPU_STREAMS", orders[i]);
}

SPEC(all_of_it_runs_while_the_device_is_guarded)
{
    is_well(run_eagerly, "BURIN_GPU_GUARD", "1");
    is_well(replay, "BURIN_GPU_GUARD", "1");
}

SPEC(a_host_that_touches_the_device_dies_where_it_is_guarded)
{
    char said[1024];

    const int status = in_process(touch, "BURIN_GPU_GUARD", "1", said);

    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
}

SPEC(a_kernel_that_touches_what_is_not_there_is_named)
{
    char said[1024];

    const int status =
            in_process(run_beyond_its_memory, "BURIN_GPU_ORDER", "in_order", said);

    assert_true(WIFSIGNALED(status));
    assert_non_null(strstr(said, "sums, block (0, 0, 0), thread (0, 0, 0)"));
}
