/* tests/runtime/engine/fake_gpu.h -- The fake model with eyes, on a GPU that is not there: its
 * kernels are the same lines of C, and read what the device's memory holds.
 *
 * Arguments are a call's values: those of the moment when a kernel was put on the stream, or
 * captured. Include it once, in a test that includes virtual_libraries.h, too. */
#ifndef BURIN_TEST_FAKE_GPU_H
#define BURIN_TEST_FAKE_GPU_H

#include "runtime/device/cuda/launch.h"
#include "tests/runtime/engine/fake_vision.h"
#include "tests/support/host_body.h"

enum { FAKE_BEGIN, FAKE_STEP, FAKE_ENCODE, FAKE_KERNELS };
enum { FAKE_VALUES = 2 + SOFT_ROWS + 1 + BURIN_N_EXTENTS + BURIN_N_PARAMS };

static void fake_enqueue(
        const struct burin_stream *stream, const struct burin_call *call, int n, int kernel)
{
    uint64_t values[FAKE_VALUES];
    void *arguments[FAKE_VALUES];
    const struct burin_blocks blocks = { 1, 1, 1 };
    int at = 0;
    values[at++] = (uint64_t)(uintptr_t)call->arena;
    values[at++] = (uint64_t)(uintptr_t)call->states[0];
    for (int i = 0; i < SOFT_ROWS + 1; i++)
        values[at++] = i < n ? (uint64_t)(uintptr_t)call->inputs[i] : 0;
    for (int i = 0; i < BURIN_N_EXTENTS; i++)
        values[at++] = (uint64_t)call->n[i];
    for (int i = 0; i < BURIN_N_PARAMS; i++)
        values[at++] = (uint64_t)call->params.value[i];
    for (int i = 0; i < FAKE_VALUES; i++)
        arguments[i] = &values[i];
    burin_launch(stream, kernel, blocks, 32, 0, arguments);
}

static void fake_enqueue_step(
        const struct burin_stream *stream, const struct burin_call *call)
{
    fake_enqueue(stream, call, SOFT_ROWS + 1, FAKE_BEGIN);
    fake_enqueue(stream, call, SOFT_ROWS + 1, FAKE_STEP);
}

static void fake_enqueue_encode(
        const struct burin_stream *stream, const struct burin_call *call)
{
    fake_enqueue(stream, call, 3, FAKE_ENCODE);
}

static int fake_run_on_gpu(const uint64_t *values, burin_run *run)
{
    static const struct burin_team alone = { .n_threads = 1 };
    const void *inputs[SOFT_ROWS + 1];
    uint8_t *states[2] = { host_at(values[1]), NULL };
    struct burin_call call = { .arena = host_at(values[0]),
                               .inputs = inputs,
                               .states = states };
    const uint64_t *at = values + 2;
    for (int i = 0; i < SOFT_ROWS + 1; i++)
        inputs[i] = host_at(*at++);
    for (int i = 0; i < BURIN_N_EXTENTS; i++)
        call.n[i] = (int)*at++;
    for (int i = 0; i < BURIN_N_PARAMS; i++)
        call.params.value[i] = (int64_t)*at++;
    run(&alone, &call);
    return CU_OK;
}

static int fake_begin_on_gpu(const uint64_t *values)
{
    (void)values;
    return CU_OK;
}

static int fake_step_on_gpu(const uint64_t *values)
{
    return fake_run_on_gpu(values, fake_step);
}

static int fake_encode_on_gpu(const uint64_t *values)
{
    return fake_run_on_gpu(values, fake_encode);
}

#define EIGHT 8, 8, 8, 8, 8, 8, 8, 8
static const struct host_kernel fake_host_kernels[] = {
    { "fake_begin", fake_begin_on_gpu, FAKE_VALUES, { EIGHT, EIGHT, EIGHT } },
    { "fake_step", fake_step_on_gpu, FAKE_VALUES, { EIGHT, EIGHT, EIGHT } },
    { "fake_encode", fake_encode_on_gpu, FAKE_VALUES, { EIGHT, EIGHT, EIGHT } },
    { NULL, NULL, 0, { 0 } },
};
_Static_assert(FAKE_VALUES <= 24, "each has 8 bytes");

static const struct burin_kernel fake_kernels[FAKE_KERNELS] = {
    { .name = "fake_begin", .text = "", .threads = 32 },
    { .name = "fake_step", .text = "", .threads = 32 },
    { .name = "fake_encode", .text = "", .threads = 32 },
};
static const struct burin_cubin fake_cubins[] = { { .arch = NULL } };
static const struct burin_cuda_code fake_code = {
    .prelude = "",
    .n_kernels = FAKE_KERNELS,
    .kernels = fake_kernels,
    .cubins = fake_cubins,
};

static burin_enqueue *const fake_enqueue_steps[] = { fake_enqueue_step };
static burin_enqueue *const fake_enqueue_encodes[] = { fake_enqueue_encode };
static const struct burin_program fake_gpu_programs[] =
        FAKE_SEEING_PROGRAMS(enqueue, fake_enqueue_steps, fake_enqueue_encodes);
static const struct burin_family fake_gpu_families[] = {
    { .name = "sm80",
      .sm = 80,
      .n_kv = 1,
      .kv = fake_kv,
      .n_programs = 2,
      .programs = fake_gpu_programs,
      .cuda = &fake_code },
    { .name = "portable",
      .n_kv = 1,
      .kv = fake_kv,
      .n_programs = 2,
      .programs = fake_seeing_programs },
};
static const struct burin_model fake_gpu_model = {
    .name = "fake",
    .architecture = "fake",
    .variant = "fake",
    .recipe = "none",
    .n_vocab = FAKE_VOCAB,
    .n_ctx = FAKE_CONTEXT,
    .n_families = 2,
    .families = fake_gpu_families,
};

#endif
