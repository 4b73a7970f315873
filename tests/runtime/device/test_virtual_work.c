/* Work on the streams of a virtual GPU: in which order it is done, and when. Its body has memory
 * of the host's, and one kernel, which adds a number to an int. */
#include "tests/support/host_body.h"
#include "tests/support/virtual_gpu.h"

#include <string.h>

static int run_add(const uint64_t *arguments)
{
    int n;
    memcpy(&n, &arguments[1], sizeof n);
    if (n == 666)
        return CU_LAUNCH_FAILED;
    *(int *)host_at(arguments[0]) += n;
    return CU_OK;
}
static const struct host_kernel kernels[] = { { "add", run_add, 2, { 8, 4 } },
                                              { NULL, NULL, 0, { 0 } } };

static struct burin_cu_module *module;
static struct burin_cu_function *add;
static struct burin_cu_stream *stream, *other;
static uint64_t number; /* of the device, 0 at first */
static int *seen;       /* of the host, pinned */

static void on_a_gpu_that_runs(enum burin_virtual_order order)
{
    struct burin_virtual_options options = small_gpu();
    host_kernels = kernels;
    options.body = &host_body;
    options.order = order;
    options.seed = 7;
    boot(&options);
    with_context();
    assert_int_equal(cu.cuModuleLoadData(&module, "code"), CU_OK);
    assert_int_equal(cu.cuModuleGetFunction(&add, module, "add"), CU_OK);
    cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    cu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING);
    cu.cuMemAlloc_v2(&number, 64);
    cu.cuMemHostAlloc((void **)&seen, 64, 0);
    cu.cuMemsetD32Async(number, 0, 16, stream);
    cu.cuStreamSynchronize(stream);
}

static int put_add(int n, struct burin_cu_stream *on)
{
    uint64_t address = number;
    void *arguments[] = { &address, &n }; /* gone when this returns */
    return cu.cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, on, arguments, NULL);
}

/* What the device's number is at this moment. */
static int now(void)
{
    return *(int *)(uintptr_t)number;
}

SPEC(work_is_done_in_its_order_when_somebody_waits)
{
    on_a_gpu_that_runs(BURIN_VIRTUAL_LATE);
    int three = 3;

    put_add(2, stream);
    cu.cuMemcpyDtoHAsync_v2(seen, number, 4, stream);
    put_add(three, stream);
    three = 1000;
    assert_int_equal(now(), 0);
    assert_int_equal(cu.cuStreamSynchronize(other), CU_OK);
    assert_int_equal(now(), 0);
    assert_int_equal(cu.cuStreamSynchronize(stream), CU_OK);

    assert_int_equal(now(), 5);
    assert_int_equal(*seen, 2);
    close_gpu();
    assert_int_equal(host_memories, 0);
}

SPEC(a_copy_reads_the_host_when_it_is_made_unless_it_is_not_pinned)
{
    on_a_gpu_that_runs(BURIN_VIRTUAL_LATE);
    int pageable = 5;

    *seen = 5;
    cu.cuMemcpyHtoDAsync_v2(number, seen, 4, stream);
    *seen = 6; /* a mistake, which shows */
    cu.cuStreamSynchronize(stream);
    assert_int_equal(now(), 6);

    cu.cuMemcpyHtoDAsync_v2(number, &pageable, 4, stream);
    pageable = 7; /* the driver has read it */
    cu.cuStreamSynchronize(stream);
    assert_int_equal(now(), 5);
    close_gpu();
}

SPEC(work_may_be_done_at_once)
{
    on_a_gpu_that_runs(BURIN_VIRTUAL_EARLY);
    put_add(2, stream);
    assert_int_equal(now(), 2);
    close_gpu();
}

SPEC(work_may_be_done_at_any_moment)
{
    on_a_gpu_that_runs(BURIN_VIRTUAL_RANDOM);
    int n_before = 0, n_late = 0;

    for (int i = 1; i <= 100; i++) {
        put_add(1, stream);
        n_late += now() < i;
        n_before += now() > 0;
        assert_true(now() <= i);
    }
    cu.cuStreamSynchronize(stream);

    assert_true(n_before > 0 && n_late > 0);
    assert_int_equal(now(), 100);
    close_gpu();
}

SPEC(a_stream_waits_for_an_event_of_another)
{
    struct burin_cu_event *event;
    on_a_gpu_that_runs(BURIN_VIRTUAL_LATE);
    cu.cuEventCreate(&event, CU_EVENT_UNTIMED);
    cu.cuStreamWaitEvent(other, event, 0); /* never recorded: nothing to wait for */

    put_add(2, stream);
    cu.cuEventRecord(event, stream);
    put_add(10, stream);
    cu.cuStreamWaitEvent(other, event, 0);
    cu.cuMemcpyDtoHAsync_v2(seen, number, 4, other);
    cu.cuStreamSynchronize(other);

    assert_int_equal(*seen, 2);
    assert_int_equal(now(), 2);
    close_gpu();
}

SPEC(an_event_is_reached_when_the_work_before_it_is_done)
{
    struct burin_cu_event *before, *after;
    float ms;
    on_a_gpu_that_runs(BURIN_VIRTUAL_LATE);
    cu.cuEventCreate(&before, CU_EVENT_TIMED);
    cu.cuEventCreate(&after, CU_EVENT_TIMED);
    cu.cuEventRecord(before, stream);
    put_add(2, stream);
    put_add(2, stream);
    cu.cuEventRecord(after, stream);
    put_add(10, stream);

    assert_int_equal(cu.cuEventElapsedTime(&ms, before, after), CU_NOT_READY);
    assert_int_equal(cu.cuEventQuery(after), CU_NOT_READY);
    assert_int_equal(cu.cuEventSynchronize(after), CU_OK);
    assert_int_equal(cu.cuEventQuery(after), CU_OK);
    assert_int_equal(now(), 4);

    assert_int_equal(cu.cuEventElapsedTime(&ms, before, after), CU_OK);
    assert_true(ms > 0);
    while (cu.cuStreamQuery(stream) == CU_NOT_READY)
        continue;
    assert_int_equal(now(), 14);
    close_gpu();
}

SPEC(who_frees_memory_of_the_card_waits_for_the_work_that_uses_it)
{
    on_a_gpu_that_runs(BURIN_VIRTUAL_LATE);
    cu.cuMemsetD8Async(number, 1, 4, stream);
    assert_int_equal(cu.cuMemFree_v2(number), CU_OK);
    assert_int_equal(cu.cuStreamSynchronize(stream), CU_OK);
    close_gpu();
}

SPEC(who_frees_the_host_s_memory_does_not_and_a_copy_that_needs_it_is_torn)
{
    on_a_gpu_that_runs(BURIN_VIRTUAL_LATE);
    cu.cuMemcpyDtoHAsync_v2(seen, number, 4, stream);
    assert_int_equal(cu.cuMemFreeHost(seen), CU_OK);
    assert_int_equal(burin_virtual_counts(machine).torn, 1);
    assert_int_equal(cu.cuStreamSynchronize(stream), CU_ILLEGAL_ADDRESS);
    close_gpu();
}

SPEC(a_stream_that_is_destroyed_does_its_work_later)
{
    on_a_gpu_that_runs(BURIN_VIRTUAL_LATE);
    put_add(7, other);
    assert_int_equal(cu.cuStreamDestroy_v2(other), CU_OK);
    assert_int_equal(now(), 0);
    assert_int_equal(cu.cuStreamSynchronize(stream), CU_OK);
    assert_int_equal(now(), 0);
    assert_int_equal(cu.cuCtxSynchronize(), CU_OK);
    assert_int_equal(now(), 7);
    close_gpu();
}

SPEC(memory_that_is_unmapped_under_its_work_loses_the_context)
{
    const struct burin_cu_memory memory = on_card_0();
    const struct burin_cu_access access = { { CU_LOCATION_DEVICE, 0 },
                                            CU_ACCESS_READ_WRITE };
    unsigned long long handle;
    uint64_t address;
    on_a_gpu_that_runs(BURIN_VIRTUAL_LATE);
    cu.cuMemAddressReserve(&address, GRANULE, 0, 0, 0);
    cu.cuMemCreate(&handle, GRANULE, &memory, 0);
    cu.cuMemMap(address, GRANULE, 0, handle, 0);
    cu.cuMemSetAccess(address, GRANULE, &access, 1);

    cu.cuMemsetD8Async(address, 1, GRANULE, stream);
    cu.cuMemUnmap(address, GRANULE);

    assert_int_equal(cu.cuStreamSynchronize(stream), CU_ILLEGAL_ADDRESS);
    assert_int_equal(cu.cuStreamSynchronize(other), CU_ILLEGAL_ADDRESS);
    close_gpu();
}

SPEC(a_kernel_that_fails_loses_the_context_and_the_work_behind_it)
{
    on_a_gpu_that_runs(BURIN_VIRTUAL_LATE);
    put_add(1, stream);
    put_add(666, stream);
    put_add(2, stream);

    assert_int_equal(cu.cuStreamSynchronize(stream), CU_LAUNCH_FAILED);

    assert_int_equal(now(), 1);
    assert_int_equal(put_add(1, stream), CU_LAUNCH_FAILED);
    close_gpu();
}

SPEC(modules_and_functions_are_what_the_body_knows)
{
    struct burin_cu_module *wrong;
    struct burin_cu_function *function;
    int value;
    on_a_gpu_that_runs(BURIN_VIRTUAL_LATE);
    const size_t before = granules_used();

    assert_int_equal(cu.cuModuleLoadData(&wrong, "no code"), CU_INVALID_IMAGE);
    assert_int_equal(cu.cuModuleGetFunction(&function, module, "sub"), CU_NOT_FOUND);
    assert_int_equal(granules_used(), before);
    assert_int_equal(cu.cuFuncGetAttribute(&value, CU_FUNCTION_MAX_THREADS, add), CU_OK);
    assert_int_equal(value, 1024);
    assert_int_equal(cu.cuModuleUnload(module), CU_OK);
    assert_int_equal(put_add(1, stream), CU_INVALID_HANDLE);
    close_gpu();
}

SPEC(modules_share_granules)
{
    struct burin_cu_module *modules[9];
    on_a_small_gpu(); /* a quarter of a granule each */
    for (int i = 0; i < 9; i++)
        cu.cuModuleLoadData(&modules[i], "any");
    assert_int_equal(granules_used(), 3 + 3);
    for (int i = 0; i < 5; i++)
        cu.cuModuleUnload(modules[i]);
    assert_int_equal(granules_used(), 3 + 1);
    close_gpu();
}

static int launch(
        struct burin_cu_function *f, unsigned blocks, unsigned threads, unsigned shared)
{
    return cu.cuLaunchKernel(f, 1, blocks, 1, threads, 1, 1, shared, stream, NULL, NULL);
}

SPEC(a_launch_of_no_shape_is_refused)
{
    struct burin_cu_function *function;
    int most;
    on_a_small_gpu();
    cu.cuStreamCreate(&stream, 0);
    cu.cuModuleLoadData(&module, "any");
    cu.cuModuleGetFunction(&function, module, "any");

    assert_int_equal(launch(function, 0, 1, 0), CU_INVALID_VALUE);
    assert_int_equal(launch(function, 65536, 1, 0), CU_INVALID_VALUE);
    assert_int_equal(launch(function, 1, 1025, 0), CU_INVALID_VALUE);
    assert_int_equal(launch(function, 1, 1, 48 * 1024 + 1), CU_INVALID_VALUE);
    assert_int_equal(launch(function, 65535, 1024, 48 * 1024), CU_OK);

    cu.cuDeviceGetAttribute(&most, CU_DEVICE_MAX_SHARED_OPT_IN, 0);
    const int attribute = CU_FUNCTION_MAX_DYNAMIC_SHARED_BYTES;
    assert_int_equal(
            cu.cuFuncSetAttribute(function, attribute, most + 1), CU_INVALID_VALUE);
    assert_int_equal(cu.cuFuncSetAttribute(function, attribute, most), CU_OK);
    assert_int_equal(launch(function, 1, 1, (unsigned)most), CU_OK);
    assert_int_equal(burin_virtual_counts(machine).launches, 2);
    close_gpu();
}

SPEC(without_a_body_the_host_reads_zeros)
{
    uint64_t address;
    char bytes[100];
    memset(bytes, 1, sizeof bytes);
    on_a_small_gpu();
    cu.cuMemAlloc_v2(&address, 100);

    assert_int_equal(cu.cuMemcpyHtoDAsync_v2(address, bytes, 100, NULL), CU_OK);
    assert_int_equal(cu.cuMemcpyDtoDAsync_v2(address, address, 100, NULL), CU_OK);
    assert_int_equal(cu.cuMemcpyDtoHAsync_v2(bytes, address, 99, NULL), CU_OK);
    assert_int_equal(cu.cuMemcpyDtoHAsync_v2(bytes, address, 0, NULL), CU_OK);

    assert_int_equal(bytes[98], 0);
    assert_int_equal(bytes[99], 1);
    assert_int_equal(burin_virtual_counts(machine).copies, 3);
    assert_int_equal(burin_virtual_counts(machine).copied_bytes, 299);
    close_gpu();
}

SPEC(the_host_waits_behind_a_thousand_pieces_of_work)
{
    on_a_gpu_that_runs(BURIN_VIRTUAL_LATE);
    for (int i = 0; i < 1024 + 10; i++)
        put_add(1, stream);
    assert_int_equal(now(), 10);
    close_gpu();
}

/* ---- Graphs ------------------------------------------------------------------------------ */

static struct burin_cu_graph *captured(int n)
{
    struct burin_cu_graph *graph = NULL;
    assert_int_equal(cu.cuStreamBeginCapture_v2(stream, CU_CAPTURE_THIS_THREAD), CU_OK);
    for (int i = 0; i < n; i++)
        assert_int_equal(put_add(i + 1, stream), CU_OK);
    assert_int_equal(cu.cuMemcpyDtoHAsync_v2(seen, number, 4, stream), CU_OK);
    assert_int_equal(cu.cuStreamEndCapture(stream, &graph), CU_OK);
    return graph;
}

SPEC(a_graph_replays_what_was_captured_and_nothing_ran_before)
{
    struct burin_cu_exec *exec;
    size_t n;
    on_a_gpu_that_runs(BURIN_VIRTUAL_LATE);

    struct burin_cu_graph *graph = captured(3);
    cu.cuStreamSynchronize(stream);
    assert_int_equal(now(), 0);
    assert_int_equal(cu.cuGraphGetNodes(graph, NULL, &n), CU_OK);
    assert_int_equal(n, 4);
    assert_int_equal(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), CU_OK);
    assert_int_equal(cu.cuGraphDestroy(graph), CU_OK); /* what was instantiated lives on */
    assert_int_equal(cu.cuGraphUpload(exec, stream), CU_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(cu.cuGraphLaunch(exec, stream), CU_OK);
    assert_int_equal(now(), 0);
    cu.cuStreamSynchronize(stream);

    assert_int_equal(now(), 2 * (1 + 2 + 3));
    assert_int_equal(*seen, 12);
    assert_int_equal(burin_virtual_counts(machine).kernels, 6);
    assert_int_equal(burin_virtual_counts(machine).launches, 3);
    assert_int_equal(cu.cuGraphExecDestroy(exec), CU_OK);
    assert_int_equal(cu.cuGraphLaunch(exec, stream), CU_INVALID_HANDLE);
    close_gpu();
}

SPEC(a_graph_takes_memory_for_its_nodes_when_it_is_instantiated)
{
    struct burin_cu_exec *exec[2];
    on_a_gpu_that_runs(BURIN_VIRTUAL_LATE);
    struct burin_cu_graph *graph = captured(9); /* 10 nodes of an eighth of a granule */
    const size_t before = granules_used();

    cu.cuGraphInstantiateWithFlags(&exec[0], graph, 0);
    cu.cuGraphInstantiateWithFlags(&exec[1], graph, 0);
    assert_int_equal(granules_used() - before, 2 + 1 + 2); /* and stacks, once */

    cu.cuGraphExecDestroy(exec[0]);
    cu.cuGraphExecDestroy(exec[1]);
    assert_int_equal(granules_used() - before, 1);

    int64_t all = N_GRANULES * (int64_t)GRANULE;
    burin_virtual_neighbour(machine, 0, NULL, 0, all);
    assert_int_equal(cu.cuGraphInstantiateWithFlags(&exec[0], graph, 0), CU_OUT_OF_MEMORY);
    close_gpu();
}

/* Each of these while a stream is captured. */
static int obtain(void)
{
    uint64_t address;
    return cu.cuMemAlloc_v2(&address, 1);
}
static int back(void)
{
    const struct burin_cu_memory memory = on_card_0();
    unsigned long long handle;
    return cu.cuMemCreate(&handle, GRANULE, &memory, 0);
}
static int load(void)
{
    struct burin_cu_module *new;
    return cu.cuModuleLoadData(&new, "code");
}
static int wait(void)
{
    return cu.cuStreamSynchronize(stream);
}
static int wait_for_all(void)
{
    return cu.cuCtxSynchronize();
}
static int query(void)
{
    return cu.cuStreamQuery(stream);
}
static int copy_pageable(void)
{
    int here = 0;
    return cu.cuMemcpyHtoDAsync_v2(number, &here, 4, stream);
}

SPEC(what_is_forbidden_while_capturing_is_refused_and_ends_the_capture)
{
    static int (*const forbidden[])(void) = { obtain,       back,  load,         wait,
                                              wait_for_all, query, copy_pageable };
    on_a_gpu_that_runs(BURIN_VIRTUAL_LATE);
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++) {
        struct burin_cu_graph *graph = (struct burin_cu_graph *)&graph;
        const size_t used = granules_used();
        cu.cuStreamBeginCapture_v2(stream, CU_CAPTURE_THIS_THREAD);
        put_add(1, stream);

        assert_int_equal(forbidden[i](), CU_CAPTURE_UNSUPPORTED);

        assert_int_equal(put_add(1, stream), CU_CAPTURE_INVALIDATED);
        assert_int_equal(cu.cuStreamEndCapture(stream, &graph), CU_CAPTURE_INVALIDATED);
        assert_null(graph);
        assert_int_equal(granules_used(), used);
        assert_int_equal(put_add(1, stream), CU_OK); /* it works again */
        assert_int_equal(cu.cuStreamSynchronize(stream), CU_OK);
    }
    close_gpu();
}

SPEC(other_streams_work_while_one_is_captured)
{
    struct burin_cu_graph *graph;
    on_a_gpu_that_runs(BURIN_VIRTUAL_LATE);
    cu.cuStreamBeginCapture_v2(stream, CU_CAPTURE_THIS_THREAD);
    put_add(1, stream);

    put_add(5, other);
    assert_int_equal(cu.cuStreamSynchronize(other), CU_OK);

    assert_int_equal(now(), 5);
    assert_int_equal(cu.cuStreamEndCapture(stream, &graph), CU_OK);
    close_gpu();
}

SPEC(captures_begin_and_end_once)
{
    struct burin_cu_graph *graph;
    on_a_gpu_that_runs(BURIN_VIRTUAL_LATE);

    assert_int_equal(
            cu.cuStreamBeginCapture_v2(NULL, CU_CAPTURE_THIS_THREAD),
            CU_CAPTURE_UNSUPPORTED);
    assert_int_not_equal(cu.cuStreamEndCapture(stream, &graph), CU_OK);
    assert_int_equal(cu.cuStreamBeginCapture_v2(stream, CU_CAPTURE_THIS_THREAD), CU_OK);
    assert_int_not_equal(cu.cuStreamBeginCapture_v2(stream, CU_CAPTURE_THIS_THREAD), CU_OK);
    assert_int_equal(cu.cuStreamEndCapture(stream, &graph), CU_OK);
    close_gpu();
}

SPEC(a_capture_that_fails_at_its_end_leaves_no_graph)
{
    struct burin_cu_graph *graph;
    on_a_gpu_that_runs(BURIN_VIRTUAL_LATE);
    burin_virtual_fail(
            machine, "cuStreamEndCapture", 1, CU_OUT_OF_MEMORY, BURIN_FAULT_ONCE);
    cu.cuStreamBeginCapture_v2(stream, CU_CAPTURE_THIS_THREAD);
    put_add(1, stream);

    assert_int_equal(cu.cuStreamEndCapture(stream, &graph), CU_OUT_OF_MEMORY);

    assert_null(graph);
    assert_int_equal(burin_virtual_held(machine, 0, BURIN_VIRTUAL_GRAPH).n, 0);
    assert_int_equal(put_add(1, stream), CU_OK);
    assert_int_equal(cu.cuStreamSynchronize(stream), CU_OK);
    close_gpu();
}
