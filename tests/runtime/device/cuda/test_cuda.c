/* An NVIDIA GPU as a device, over a virtual one that counts (runtime/device/virtual). */
#include "runtime/device/cuda/cuda.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/cuda/upload.h"
#include "runtime/device/virtual/virtual.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

enum { MIB = 1024 * 1024 };

static struct burin_virtual *machine;
static struct burin_driver driver;
static struct burin_nvrtc nvrtc;
static struct burin_cuda cuda;
static struct burin_error err;

/* ---- A model of two kernels ---------------------------------------------------------- */

static const struct burin_kernel kernels[] = {
    { "first", "extern \"C\" __global__ void first(float *y, int n) {}", 128, 0, false },
    { "second", "extern \"C\" __global__ void second(float *y) {}", 64, 65536, false },
};
static const struct burin_cuda_code code = { "", 2, kernels, NULL };

static int n_first = 3; /* blocks */

static void step(const struct burin_stream *stream, const struct burin_call *call)
{
    uint64_t y = (uintptr_t)call->arena;
    int n = call->n[BURIN_TOKENS];
    void *args[] = { &y, &n };
    burin_launch(stream, 0, (struct burin_blocks){ n_first, 1, 1 }, 128, 0, args);
    burin_launch(stream, 1, (struct burin_blocks){ 2, n, 1 }, 64, 65536, args);
}

static burin_enqueue *const enqueue[] = { step };
static const struct burin_program program = { .name = "step", .enqueue = enqueue };

/* ---- A machine ----------------------------------------------------------------------- */

static struct burin_virtual_options options(void)
{
    const struct burin_card card = {
        .name = "NVIDIA GeForce RTX 4090",
        .total_bytes = (int64_t)4096 * MIB,
        .available_bytes = (int64_t)4000 * MIB,
        .sm = 89,
        .n_processors = 128,
    };
    return burin_virtual_default(&card);
}

static void with(struct burin_virtual_options wanted)
{
    memset(&err, 0, sizeof err);
    n_first = 3;
    assert_int_equal(burin_virtual_open(&machine, &wanted, NULL), BURIN_OK);
    burin_virtual_tables(&driver, &nvrtc, NULL);
    assert_int_equal(driver.cuInit(0), 0);
}

static void started(struct burin_virtual_options wanted)
{
    with(wanted);
    assert_int_equal(burin_cuda_open(&cuda, &driver, 0, NULL), BURIN_OK);
    assert_int_equal(burin_cuda_context(&cuda, NULL), BURIN_OK);
}

static enum burin_status load(void)
{
    struct burin_compiling how = { .nvrtc = &nvrtc, .n_threads = 2 };
    struct burin_compile_counts counts;
    return burin_cuda_load(&cuda, &code, &how, &counts, &err);
}

static void with_kernels(struct burin_virtual_options wanted)
{
    started(wanted);
    assert_int_equal(load(), BURIN_OK);
}

/* Close, and see that nothing of ours is left. */
static void ended(void)
{
    char held[256];
    burin_cuda_close(&cuda);
    burin_virtual_held_text(machine, held, sizeof held);
    assert_string_equal(held, "");
    assert_int_equal(burin_virtual_memory(machine, 0).ours[0], 0);
    burin_virtual_close(machine);
}

static struct burin_queue new_queue(void)
{
    struct burin_queue queue;
    assert_int_equal(burin_queue_open(&queue, &cuda.device, NULL), BURIN_OK);
    return queue;
}

static void says(const char *words)
{
    if (!strstr(err.message, words))
        fail_msg("\"%s\" does not say \"%s\"", err.message, words);
}

/* ---- Finding ------------------------------------------------------------------------- */

SPEC(a_device_is_known_before_anything_is_taken_of_it)
{
    with(options());
    struct burin_cuda_found found;

    assert_int_equal(burin_cuda_find(&driver, 0, &found, NULL), BURIN_OK);

    assert_string_equal(found.name, "virtual NVIDIA GeForce RTX 4090");
    assert_int_equal(found.sm, 89);
    assert_int_equal(found.total, (size_t)4096 * MIB);
    assert_int_equal(found.n_multiprocessors, 128);
    assert_true(found.has_vmm);
    assert_int_equal(strlen(found.uuid), 40);
    assert_memory_equal(found.uuid, "GPU-", 4);
    assert_int_equal(found.uuid[12], '-');
    assert_int_equal(burin_virtual_memory(machine, 0).ours[0], 0);
    burin_virtual_close(machine);
}

SPEC(a_device_that_is_not_there_is_told_with_how_many_there_are)
{
    with(options());
    struct burin_cuda_found found;

    assert_int_equal(burin_cuda_find(&driver, 1, &found, &err), BURIN_EUSAGE);

    says("there is no CUDA device 1: this machine has 1");
    burin_virtual_close(machine);
}

SPEC(a_context_without_room_names_the_device)
{
    struct burin_virtual_options small = options();
    small.context_bytes = (size_t)5000 * MIB;
    with(small);
    assert_int_equal(burin_cuda_open(&cuda, &driver, 0, NULL), BURIN_OK);

    assert_int_equal(burin_cuda_context(&cuda, &err), BURIN_ENOMEM);

    says("cuDevicePrimaryCtxRetain, the context of device 0, virtual NVIDIA GeForce RTX "
         "4090: "
         "CUDA_ERROR_OUT_OF_MEMORY");
    ended();
}

/* ---- Memory -------------------------------------------------------------------------- */

SPEC(memory_comes_in_granules_and_all_of_it_goes_back)
{
    started(options());
    const size_t before = burin_virtual_memory(machine, 0).ours[0];
    uint64_t address = 0;
    assert_int_equal(cuda.device.granule, 2 * MIB);

    assert_int_equal(burin_device_obtain(&cuda.device, 6 * MIB, &address, NULL), BURIN_OK);

    assert_int_equal(address % (2 * MIB), 0);
    assert_int_equal(burin_virtual_memory(machine, 0).ours[0] - before, 6 * MIB);
    burin_device_release(&cuda.device, address, 6 * MIB);
    assert_int_equal(burin_virtual_memory(machine, 0).ours[0], before);
    ended();
}

SPEC(the_granule_is_what_the_driver_says)
{
    struct burin_virtual_options coarse = options();
    coarse.granule = 4 * MIB;
    started(coarse);

    assert_int_equal(cuda.device.granule, 4 * MIB);
    ended();
}

SPEC(memory_that_is_short_is_told_with_its_owner)
{
    started(options());
    uint64_t address = 7;
    cuda.device.owner = "weights";

    assert_int_equal(
            burin_device_obtain(&cuda.device, (size_t)5000 * MIB, &address, &err),
            BURIN_ENOMEM);

    says("cuMemCreate, 4.88 GiB for weights: CUDA_ERROR_OUT_OF_MEMORY");
    assert_int_equal(address, 7);
    ended();
}

SPEC(addresses_take_no_memory_and_get_it_later_in_any_parts)
{
    started(options());
    const size_t before = burin_virtual_memory(machine, 0).ours[0];
    const size_t bytes = (size_t)64 * MIB;
    uint64_t address = 0;
    assert_true(burin_device_can_reserve(&cuda.device));

    assert_int_equal(burin_device_reserve(&cuda.device, bytes, &address, NULL), BURIN_OK);
    assert_int_equal(burin_virtual_memory(machine, 0).ours[0], before);

    assert_int_equal(burin_device_back(&cuda.device, address, 2 * MIB, NULL), BURIN_OK);
    assert_int_equal(
            burin_device_back(&cuda.device, address + 8 * MIB, 16 * MIB, NULL), BURIN_OK);
    assert_int_equal(
            burin_device_back(&cuda.device, address + 2 * MIB, 6 * MIB, NULL), BURIN_OK);
    assert_int_equal(burin_virtual_memory(machine, 0).ours[0] - before, 24 * MIB);

    burin_device_unreserve(&cuda.device, address, bytes);
    assert_int_equal(burin_virtual_memory(machine, 0).ours[0], before);
    ended();
}

SPEC(a_part_that_gets_no_memory_leaves_those_that_have)
{
    started(options());
    const size_t bytes = (size_t)8192 * MIB;
    uint64_t address = 0;
    assert_int_equal(burin_device_reserve(&cuda.device, bytes, &address, NULL), BURIN_OK);
    assert_int_equal(burin_device_back(&cuda.device, address, 2 * MIB, NULL), BURIN_OK);
    const size_t before = burin_virtual_memory(machine, 0).ours[0];

    assert_int_equal(
            burin_device_back(&cuda.device, address + 2 * MIB, (size_t)4096 * MIB, NULL),
            BURIN_ENOMEM);

    assert_int_equal(burin_virtual_memory(machine, 0).ours[0], before);
    burin_device_unreserve(&cuda.device, address, bytes);
    ended();
}

SPEC(each_step_of_obtaining_may_fail_and_leaves_nothing)
{
    const char *const calls[] = {
        "cuMemAddressReserve", "cuMemCreate",     "cuMemMap",           "cuMemRelease",
        "cuMemSetAccess",      "cuMemsetD8Async", "cuStreamSynchronize"
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        started(options());
        uint64_t address = 7;
        const size_t before = burin_virtual_memory(machine, 0).ours[0];
        burin_virtual_fail(machine, calls[i], 1, 999, BURIN_FAULT_ONCE);

        assert_int_equal(
                burin_device_obtain(&cuda.device, 2 * MIB, &address, &err), BURIN_EIO);

        says(calls[i]);
        says("CUDA_ERROR_UNKNOWN");
        assert_int_equal(address, 7);
        assert_int_equal(burin_virtual_memory(machine, 0).ours[0], before);
        ended();
    }
}

SPEC(a_platform_without_address_reservation_has_plain_memory)
{
    struct burin_virtual_options plain = options();
    plain.no_vmm = true;
    started(plain);
    uint64_t address = 0;

    assert_false(burin_device_can_reserve(&cuda.device));
    assert_int_equal(burin_device_obtain(&cuda.device, 4 * MIB, &address, NULL), BURIN_OK);
    burin_device_release(&cuda.device, address, 4 * MIB);

    assert_int_equal(burin_virtual_n_calls(machine, "cuMemAlloc_v2"), 1);
    assert_int_equal(burin_virtual_n_calls(machine, "cuMemCreate"), 0);
    ended();
}

SPEC(plain_memory_can_be_asked_for_where_there_is_more)
{
    with(options());
    assert_int_equal(burin_cuda_open(&cuda, &driver, 0, NULL), BURIN_OK);
    cuda.found.has_vmm = false;

    assert_int_equal(burin_cuda_context(&cuda, NULL), BURIN_OK);

    assert_false(burin_device_can_reserve(&cuda.device));
    ended();
}

/* ---- Kernels ------------------------------------------------------------------------- */

SPEC(loading_takes_every_kernel_and_sets_its_shared_memory)
{
    started(options());
    struct burin_compiling how = { .nvrtc = &nvrtc, .n_threads = 2 };
    struct burin_compile_counts counts;

    assert_int_equal(burin_cuda_load(&cuda, &code, &how, &counts, NULL), BURIN_OK);

    assert_int_equal(counts.n_compiled, 2);
    assert_int_equal(burin_virtual_n_calls(machine, "cuModuleLoadData"), 2);
    assert_int_equal(burin_virtual_n_calls(machine, "cuFuncSetAttribute"), 1);
    assert_int_equal(cuda.local_bytes, 0);
    ended();
}

SPEC(stacks_are_set_once_to_what_the_kernels_need)
{
    started(options());
    burin_virtual_set_local(machine, "second", 96);
    assert_int_equal(load(), BURIN_OK);
    size_t bytes = 0;

    assert_int_equal(burin_cuda_local(&cuda, &bytes, NULL), BURIN_OK);

    assert_int_equal(cuda.local_bytes, 96);
    assert_int_equal(
            bytes, (size_t)96 * 128 * (size_t)cuda.found.threads_per_multiprocessor);
    ended();
}

SPEC(a_kernel_that_needs_more_shared_memory_than_a_block_has_is_refused)
{
    started(options());
    cuda.found.max_shared_bytes = 65535;

    assert_int_equal(load(), BURIN_ELIMIT);

    says("kernel second needs 65536 bytes of shared memory");
    ended();
}

static const uint8_t image[] = "of another build";
static const struct burin_cubin cubins[] = {
    { "sm_89", 0, image, sizeof image },
    { "sm_89", 1, image, sizeof image },
    { .arch = NULL },
};
static const struct burin_cuda_code embedded = { "", 2, kernels, cubins };

SPEC(code_that_the_driver_refuses_is_compiled_anew)
{
    started(options());
    struct burin_compiling how = { .nvrtc = &nvrtc, .n_threads = 1 };
    struct burin_compile_counts counts;
    burin_virtual_fail(machine, "cuModuleLoadData", 1, CU_INVALID_IMAGE, BURIN_FAULT_ONCE);

    assert_int_equal(burin_cuda_load(&cuda, &embedded, &how, &counts, &err), BURIN_OK);

    assert_string_equal(err.message, "");
    assert_int_equal(counts.n_compiled, 1);
    assert_int_equal(counts.n_embedded, 1);
    ended();
}

SPEC(code_that_the_driver_refuses_is_the_error_where_there_is_no_nvrtc)
{
    started(options());
    struct burin_nvrtc none = { 0 };
    struct burin_compiling how = { .nvrtc = &none };
    struct burin_compile_counts counts;
    setenv("BURIN_NVRTC", "/nowhere/libnvrtc.so", 1);
    burin_virtual_fail(machine, "cuModuleLoadData", 1, CU_INVALID_IMAGE, BURIN_FAULT_ONCE);

    assert_int_equal(burin_cuda_load(&cuda, &embedded, &how, &counts, &err), BURIN_EIO);

    says("cuModuleLoadData, kernel first, 17 bytes that were embedded in the binary: "
         "CUDA_ERROR_INVALID_IMAGE");
    ended();
}

SPEC(each_call_of_loading_may_fail_and_leaves_nothing)
{
    const char *const calls[] = { "cuModuleLoadData", "cuModuleGetFunction",
                                  "cuFuncGetAttribute", "cuFuncSetAttribute" };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        started(options());
        burin_virtual_fail(machine, calls[i], 1, CU_OUT_OF_MEMORY, BURIN_FAULT_ONCE);

        assert_int_equal(load(), BURIN_ENOMEM);

        says(calls[i]);
        says(i == 3 ? "second" : "first");
        ended();
    }
}

/* ---- Running ------------------------------------------------------------------------- */

SPEC(a_run_puts_each_kernel_on_the_stream)
{
    with_kernels(options());
    struct burin_queue queue = new_queue();
    const struct burin_call call = { .n = { [BURIN_TOKENS] = 5 } };

    assert_int_equal(burin_queue_run(&queue, &program, 0, &call, NULL), BURIN_OK);
    assert_int_equal(burin_queue_finish(&queue, NULL), BURIN_OK);

    assert_int_equal(burin_virtual_counts(machine).launches, 2);
    burin_queue_close(&queue);
    ended();
}

SPEC(a_kernel_without_blocks_is_left_out)
{
    with_kernels(options());
    struct burin_queue queue = new_queue();
    const struct burin_call call = { .n = { [BURIN_TOKENS] = 0 } };

    assert_int_equal(burin_queue_run(&queue, &program, 0, &call, NULL), BURIN_OK);

    assert_int_equal(burin_virtual_counts(machine).launches, 1);
    burin_queue_close(&queue);
    ended();
}

SPEC(the_first_launch_that_fails_is_told_and_those_behind_it_are_left_out)
{
    with_kernels(options());
    struct burin_queue queue = new_queue();
    const struct burin_call call = { .n = { [BURIN_TOKENS] = 5 } };
    burin_virtual_fail(
            machine, "cuLaunchKernel", 1, CU_LAUNCH_OUT_OF_RESOURCES, BURIN_FAULT_ONCE);

    assert_int_equal(burin_queue_run(&queue, &program, 0, &call, &err), BURIN_EIO);

    says("cuLaunchKernel, first on 3 x 1 x 1 blocks of 128 threads");
    assert_int_equal(burin_virtual_n_calls(machine, "cuLaunchKernel"), 1);
    assert_int_equal(burin_queue_run(&queue, &program, 0, &call, NULL), BURIN_OK);
    burin_queue_close(&queue);
    ended();
}

SPEC(a_fault_of_a_kernel_shows_when_the_queue_is_finished)
{
    with_kernels(options());
    struct burin_queue queue = new_queue();
    const struct burin_call call = { .n = { [BURIN_TOKENS] = 5 } };
    burin_virtual_fail(machine, "cuLaunchKernel", 2, CU_ILLEGAL_ADDRESS, BURIN_FAULT_LATER);

    assert_int_equal(burin_queue_run(&queue, &program, 0, &call, NULL), BURIN_OK);
    assert_int_equal(burin_queue_finish(&queue, &err), BURIN_EIO);

    says("CUDA_ERROR_ILLEGAL_ADDRESS");
    burin_queue_close(&queue);
    burin_cuda_close(&cuda);
    burin_virtual_close(machine);
}

SPEC(a_variable_lets_each_kernel_be_waited_for_so_that_the_faulty_one_is_named)
{
    setenv("BURIN_CUDA_SYNC", "1", 1);
    with_kernels(options());
    unsetenv("BURIN_CUDA_SYNC");
    struct burin_queue queue = new_queue();
    const struct burin_call call = { .n = { [BURIN_TOKENS] = 5 } };
    burin_virtual_fail(machine, "cuLaunchKernel", 2, CU_ILLEGAL_ADDRESS, BURIN_FAULT_LATER);

    assert_int_equal(burin_queue_run(&queue, &program, 0, &call, &err), BURIN_EIO);

    says("waiting for second on 2 x 5 x 1 blocks: CUDA_ERROR_ILLEGAL_ADDRESS");
    burin_queue_close(&queue);
    burin_cuda_close(&cuda);
    burin_virtual_close(machine);
}

/* ---- Graphs -------------------------------------------------------------------------- */

SPEC(a_graph_is_recorded_without_running_and_launched_again_and_again)
{
    with_kernels(options());
    struct burin_queue queue = new_queue();
    const struct burin_call call = { .n = { [BURIN_TOKENS] = 5 } };
    struct burin_graph graph;

    assert_int_equal(
            burin_queue_capture(&queue, &program, 0, &call, &graph, NULL), BURIN_OK);
    assert_int_equal(burin_virtual_counts(machine).kernels, 0);
    assert_int_equal(graph.kernel_nodes, 2);
    assert_int_equal(graph.copy_nodes, 0);

    for (int i = 0; i < 3; i++)
        assert_int_equal(burin_graph_launch(&graph, &queue, NULL), BURIN_OK);
    assert_int_equal(burin_queue_finish(&queue, NULL), BURIN_OK);
    assert_int_equal(burin_virtual_counts(machine).kernels, 6);
    assert_int_equal(burin_virtual_n_calls(machine, "cuGraphUpload"), 1);
    burin_graph_close(&graph);
    burin_queue_close(&queue);
    ended();
}

SPEC(each_call_of_capturing_may_fail_leaves_nothing_and_the_queue_of_use)
{
    const char *const calls[] = { "cuStreamBeginCapture_v2", "cuLaunchKernel",
                                  "cuStreamEndCapture",      "cuGraphGetNodes",
                                  "cuGraphUpload",           "cuGraphInstantiateWithFlags",
                                  "cuStreamSynchronize" };
    const struct burin_call call = { .n = { [BURIN_TOKENS] = 5 } };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        with_kernels(options());
        struct burin_queue queue = new_queue();
        struct burin_graph graph;
        burin_virtual_fail(machine, calls[i], 1, CU_OUT_OF_MEMORY, BURIN_FAULT_ONCE);

        assert_int_equal(
                burin_queue_capture(&queue, &program, 0, &call, &graph, &err),
                BURIN_ENOMEM);
        says(calls[i][2] == 'L' ? "first on 3" : "a graph of step");

        burin_graph_close(&graph);
        assert_int_equal(burin_queue_run(&queue, &program, 0, &call, NULL), BURIN_OK);
        assert_int_equal(burin_queue_finish(&queue, NULL), BURIN_OK);
        burin_queue_close(&queue);
        ended();
    }
}

SPEC(a_graph_that_the_driver_has_no_memory_for_says_how_many_nodes_it_has)
{
    struct burin_virtual_options heavy = options();
    heavy.node_bytes = (size_t)2048 * MIB;
    with_kernels(heavy);
    struct burin_queue queue = new_queue();
    const struct burin_call call = { .n = { [BURIN_TOKENS] = 5 } };
    struct burin_graph graph;

    assert_int_equal(
            burin_queue_capture(&queue, &program, 0, &call, &graph, &err), BURIN_ENOMEM);

    says("a graph of step with 2 nodes: CUDA_ERROR_OUT_OF_MEMORY");
    burin_queue_close(&queue);
    ended();
}

/* ---- Events, uploads ----------------------------------------------------------------- */

SPEC(events_tell_what_time_passed_between_two_places)
{
    with_kernels(options());
    struct burin_queue queue = new_queue();
    const struct burin_call call = { .n = { [BURIN_TOKENS] = 5 } };
    struct burin_event begin = { 0 };
    struct burin_event end = { 0 };

    assert_int_equal(burin_event_record(&begin, &queue, NULL), BURIN_OK);
    assert_int_equal(burin_queue_run(&queue, &program, 0, &call, NULL), BURIN_OK);
    assert_int_equal(burin_event_record(&end, &queue, NULL), BURIN_OK);
    assert_int_equal(burin_event_wait(&end, NULL), BURIN_OK);
    assert_int_equal(burin_event_wait(&begin, NULL), BURIN_OK);

    assert_true(end.ms > begin.ms);
    burin_event_close(&begin);
    burin_event_close(&end);
    burin_queue_close(&queue);
    ended();
}

SPEC(an_upload_uses_its_two_buffers_in_turn)
{
    started(options());
    struct burin_queue queue = new_queue();
    struct burin_upload upload;
    uint64_t to = 0;
    void *buffers[4];
    assert_int_equal(burin_device_obtain(&cuda.device, 8 * MIB, &to, NULL), BURIN_OK);
    assert_int_equal(burin_upload_open(&upload, &cuda, &queue, 2 * MIB, NULL), BURIN_OK);

    for (int i = 0; i < 4; i++) {
        assert_int_equal(burin_upload_buffer(&upload, &buffers[i], NULL), BURIN_OK);
        memset(buffers[i], i, 2 * MIB);
        assert_int_equal(
                burin_upload_send(&upload, to + (uint64_t)i * 2 * MIB, 2 * MIB, NULL),
                BURIN_OK);
    }
    assert_int_equal(burin_upload_finish(&upload, NULL), BURIN_OK);

    assert_ptr_not_equal(buffers[0], buffers[1]);
    assert_ptr_equal(buffers[0], buffers[2]);
    assert_ptr_equal(buffers[1], buffers[3]);
    assert_int_equal(burin_virtual_counts(machine).copied_bytes, 8 * MIB);
    burin_upload_close(&upload);
    burin_device_release(&cuda.device, to, 8 * MIB);
    burin_queue_close(&queue);
    ended();
}

SPEC(pinned_memory_that_is_refused_names_its_owner)
{
    started(options());
    struct burin_queue queue = new_queue();
    struct burin_upload upload;
    burin_virtual_fail(machine, "cuMemHostAlloc", 2, CU_OUT_OF_MEMORY, BURIN_FAULT_ONCE);

    assert_int_equal(
            burin_upload_open(&upload, &cuda, &queue, 2 * MIB, &err), BURIN_ENOMEM);

    says("cuMemHostAlloc, 2.00 MiB of the host's memory for staging");
    burin_queue_close(&queue);
    ended();
}
