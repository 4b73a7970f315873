/* The device layer on a driver of which each call fails once. */
#include "runtime/device/cuda/cuda.h"
#include "runtime/device/cuda/errors.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/cuda/upload.h"
#include "runtime/device/ledger.h"
#include "tests/support/every_fault.h"

#include <string.h>

static const size_t GRANULE = 2 * 1024 * 1024;

/* Two kernels, and a program that launches each twice. */
static const struct burin_kernel kernels[] = {
    { .name = "first", .text = "", .threads = 128 },
    { .name = "second", .text = "", .threads = 64, .shared_bytes = 64 * 1024 },
};
static const struct burin_cubin no_cubins[] = { { .arch = NULL } };
static const struct burin_cuda_code code = {
    .prelude = "", .n_kernels = 2, .kernels = kernels, .cubins = no_cubins
};

static void launch_each_twice(
        const struct burin_stream *stream, const struct burin_call *call)
{
    (void)call;
    const struct burin_blocks blocks = { 3, 2, 1 };
    for (int i = 0; i < 4; i++)
        burin_launch(
                stream, i % 2, blocks, kernels[i % 2].threads, kernels[i % 2].shared_bytes,
                NULL);
}
static burin_enqueue *const enqueue[] = { launch_each_twice };
static const struct burin_program program = { .name = "step", .enqueue = enqueue };

static bool plain; /* a platform without addresses that have no memory */

static struct burin_virtual_options one_card(void)
{
    const struct burin_card card = { .name = "small",
                                     .total_bytes = 256 * (int64_t)GRANULE,
                                     .available_bytes = 256 * (int64_t)GRANULE,
                                     .sm = 90,
                                     .n_processors = 1 };
    struct burin_virtual_options options = burin_virtual_default(&card);
    options.context_bytes = 3 * GRANULE;
    options.no_vmm = plain;
    return options;
}

static enum burin_status send_and_fetch(
        struct burin_cuda *cuda,
        struct burin_queue *queue,
        uint64_t address,
        struct burin_error *err)
{
    struct burin_upload upload = { 0 };
    struct burin_event event = { 0 };
    void *buffer = NULL;
    char back[64];
    enum burin_status status = burin_upload_open(&upload, cuda, queue, 4096, err);
    for (int i = 0; i < 3 && !status; i++) {
        status = burin_upload_buffer(&upload, &buffer, err);
        if (!status)
            status = burin_upload_send(&upload, address, 4096, err);
    }
    if (!status)
        status = burin_upload_finish(&upload, err);
    burin_upload_close(&upload);
    if (!status)
        status = burin_queue_copy(queue, address + 4096, address, 100, err);
    if (!status)
        status = burin_queue_fill(queue, address, 7, 100, err);
    if (!status)
        status = burin_queue_copy_out(queue, back, address, sizeof back, err);
    if (!status)
        status = burin_event_record(&event, queue, err);
    if (!status)
        status = burin_event_wait(&event, err);
    burin_event_close(&event);
    return status;
}

static enum burin_status run_and_replay(struct burin_queue *queue, struct burin_error *err)
{
    const struct burin_call call = { 0 };
    struct burin_graph graphs[2] = { 0 };
    enum burin_status status = burin_queue_run(queue, &program, 0, &call, err);
    for (int i = 0; i < 2 && !status; i++)
        status = burin_queue_capture(queue, &program, 0, &call, &graphs[i], err);
    for (int i = 0; i < 3 && !status; i++)
        status = burin_graph_launch(&graphs[i % 2], queue, err);
    if (!status)
        status = burin_queue_finish(queue, err);
    for (int i = 0; i < 2; i++)
        burin_graph_close(&graphs[i]);
    return status;
}

/* Memory, and where there are addresses without it, some of these first. */
static enum burin_status take(
        struct burin_ledger *ledger, uint64_t *address, struct burin_error *err)
{
    uint64_t pages = 0;
    enum burin_status status =
            burin_ledger_take(ledger, "weights", GRANULE + 1, address, err);
    if (!status)
        status = burin_ledger_take(ledger, "arena", 1, address, err);
    if (status || plain)
        return status;
    status = burin_ledger_reserve(ledger, "kv", 9 * GRANULE, &pages, err);
    for (int i = 0; i < 2 && !status; i++)
        status = burin_ledger_back(ledger, "kv", pages, GRANULE, err);
    return status;
}

static enum burin_status use(struct burin_cuda *cuda, struct burin_error *err)
{
    struct burin_ledger ledger = { 0 };
    struct burin_queue queue = { 0 };
    uint64_t address = 0;
    enum burin_status status = burin_ledger_open(&ledger, &cuda->device, SIZE_MAX, err);
    if (!status)
        status = take(&ledger, &address, err);
    if (!status)
        status = burin_queue_open(&queue, &cuda->device, err);
    if (!status)
        status = send_and_fetch(cuda, &queue, address, err);
    if (!status)
        status = run_and_replay(&queue, err);
    burin_queue_close(&queue);
    burin_ledger_close(&ledger);
    return status;
}

/* All that cuda.h offers, in its order. */
static enum burin_status work(struct burin_error *err)
{
    struct burin_driver driver;
    struct burin_nvrtc nvrtc;
    struct burin_cuda cuda = { 0 };
    struct burin_compile_counts counts;
    struct burin_compiling compiling = { .nvrtc = &nvrtc, .n_threads = 1 };
    size_t stacks;
    burin_virtual_tables(&driver, &nvrtc, NULL);
    enum burin_status status =
            burin_cuda_check(&driver, err, driver.cuInit(0), "cuInit", "a driver");
    if (!status)
        status = burin_cuda_open(&cuda, &driver, 0, err);
    if (!status)
        status = burin_cuda_context(&cuda, err);
    if (!status)
        status = burin_cuda_load(&cuda, &code, &compiling, &counts, err);
    if (!status)
        status = burin_cuda_local(&cuda, &stacks, err);
    if (!status)
        status = use(&cuda, err);
    burin_cuda_close(&cuda);
    return status;
}

static const struct fault_survived survived[] = {
    { "cuStreamDestroy_v2", "it is gone", NULL },
    { "cuEventDestroy_v2", "it is gone", NULL },
    { "cuGraphDestroy", "it is gone", NULL },
    { "cuGraphExecDestroy", "it is gone", NULL },
    { "cuMemFree_v2", "it is gone", NULL },
    { "cuMemFreeHost", "it is gone", NULL },
    { "cuMemUnmap", "it is gone", NULL },
    { "cuMemAddressFree", "it is gone", NULL },
    { "cuModuleUnload", "it is gone", NULL },
    { "cuDevicePrimaryCtxRelease_v2", "it is gone", NULL },
    { "cuCtxSetCurrent", "the last one lets go of a context that goes anyway", NULL },
    { "nvrtcDestroyProgram", "it is gone", NULL },
    { "nvrtcGetProgramLogSize", "a message does without the log", NULL },
    { "nvrtcGetProgramLog", "a message does without the log", NULL },
    { NULL, NULL, NULL },
};

SPEC(every_call_may_fail_once_and_nothing_is_left)
{
    plain = false;
    const struct burin_virtual_options options = one_card();
    fail_every_call(&(struct fault_plan){ &options, work, survived, NULL });
}

SPEC(likewise_where_addresses_come_with_their_memory)
{
    plain = true;
    const struct burin_virtual_options options = one_card();
    fail_every_call(&(struct fault_plan){ &options, work, survived, NULL });
}

/* A kernel's fault shows later: where somebody waits. */
SPEC(every_kind_of_work_may_fail_behind_its_call)
{
    static const char *const calls[] = { "cuLaunchKernel",       "cuGraphLaunch",
                                         "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
                                         "cuMemcpyDtoDAsync_v2", "cuMemsetD8Async" };
    plain = false;
    const struct burin_virtual_options options = one_card();
    const struct fault_plan plan = { &options, work, survived, NULL };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const struct fault_case at = { calls[i], 1, CU_LAUNCH_FAILED, BURIN_FAULT_LATER };
        fail_one_call(&plan, &at);
    }
}
