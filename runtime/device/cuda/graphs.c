/* runtime/device/cuda/graphs.c -- A program's kernels, recorded once and launched as one.
 * */
#include "runtime/device/cuda/errors.h"
#include "runtime/device/cuda/parts.h"

static struct burin_cu_exec *exec_of(const struct burin_graph *graph)
{
    return (struct burin_cu_exec *)(uintptr_t)graph->handle;
}

/* What enqueueing the program puts on the stream. The capture is ended whatever happens, or
 * the stream would be of no use any more. */
static enum burin_status record(
        struct burin_cuda *cuda,
        struct burin_cu_stream *stream,
        const struct burin_program *program,
        int kv,
        const struct burin_call *call,
        struct burin_cu_graph **graph,
        struct burin_error *err)
{
    const struct burin_driver *driver = cuda->driver;
    enum burin_status status = burin_cuda_check(
            driver, err, driver->cuStreamBeginCapture_v2(stream, CU_CAPTURE_THIS_THREAD),
            "cuStreamBeginCapture", "a graph of %s", program->name);
    if (status)
        return status;

    struct burin_stream_failure failure = { .status = BURIN_OK };
    const struct burin_stream enqueueing = burin_cuda_enqueueing(cuda, stream, &failure);
    cuda->capturing = true;
    cuda->n_captured = 0;
    program->enqueue[kv](&enqueueing, call);
    cuda->capturing = false;

    status = burin_stream_status(&enqueueing, err);
    const int ended = driver->cuStreamEndCapture(stream, graph);
    return status ? status
                  : burin_cuda_check(
                            driver, err, ended, "cuStreamEndCapture", "a graph of %s",
                            program->name);
}

static enum burin_status instantiate(
        struct burin_cuda *cuda,
        struct burin_cu_stream *stream,
        const struct burin_program *program,
        struct burin_cu_graph *recorded,
        struct burin_graph *graph,
        struct burin_error *err)
{
    const struct burin_driver *driver = cuda->driver;
    size_t n_nodes = 0;
    enum burin_status status = burin_cuda_check(
            driver, err, driver->cuGraphGetNodes(recorded, NULL, &n_nodes),
            "cuGraphGetNodes", "a graph of %s", program->name);
    if (status)
        return status;

    struct burin_cu_exec *exec = NULL;
    status = burin_cuda_check(
            driver, err, driver->cuGraphInstantiateWithFlags(&exec, recorded, 0),
            "cuGraphInstantiate", "a graph of %s with %zu nodes", program->name, n_nodes);
    if (status)
        return status;

    /* Waited for, so that what the upload lacks shows here. */
    status = burin_cuda_check(
            driver, err, driver->cuGraphUpload(exec, stream), "cuGraphUpload",
            "a graph of %s with %zu nodes", program->name, n_nodes);
    if (!status)
        status = burin_cuda_check(
                driver, err, driver->cuStreamSynchronize(stream), "cuStreamSynchronize",
                "the upload of a graph of %s with %zu nodes", program->name, n_nodes);
    if (status) {
        driver->cuGraphExecDestroy(exec);
        return status;
    }
    graph->handle = (uintptr_t)exec;
    graph->kernel_nodes = cuda->n_captured;
    graph->copy_nodes = (int)n_nodes - cuda->n_captured;
    return BURIN_OK;
}

enum burin_status burin_cuda_capture(
        struct burin_queue *queue,
        const struct burin_program *program,
        int kv,
        const struct burin_call *call,
        struct burin_graph *graph,
        struct burin_error *err)
{
    struct burin_cuda *cuda = burin_cuda_of(queue->device);
    struct burin_cu_stream *stream = burin_cuda_stream(queue);
    struct burin_cu_graph *recorded = NULL;

    enum burin_status status = record(cuda, stream, program, kv, call, &recorded, err);
    if (!status)
        status = instantiate(cuda, stream, program, recorded, graph, err);
    if (recorded)
        cuda->driver->cuGraphDestroy(recorded);
    return status;
}

enum burin_status burin_cuda_graph_launch(
        struct burin_queue *queue, const struct burin_graph *graph, struct burin_error *err)
{
    const struct burin_driver *driver = burin_cuda_of(queue->device)->driver;
    return burin_cuda_check(
            driver, err, driver->cuGraphLaunch(exec_of(graph), burin_cuda_stream(queue)),
            "cuGraphLaunch", "a graph of %d kernels", graph->kernel_nodes);
}

void burin_cuda_graph_close(struct burin_graph *graph)
{
    if (graph->handle)
        burin_cuda_of(graph->device)->driver->cuGraphExecDestroy(exec_of(graph));
}
