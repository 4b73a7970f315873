/* runtime/device/cuda/queue.c -- Queues are streams; events that tell when the device was
 * there. */
#include "runtime/device/cuda/errors.h"
#include "runtime/device/cuda/parts.h"

#include "runtime/base/units.h"

/* ---- Queues -------------------------------------------------------------------------- */

enum burin_status burin_cuda_queue_open(
        struct burin_device *device, struct burin_queue *queue, struct burin_error *err)
{
    const struct burin_driver *driver = burin_cuda_of(device)->driver;
    struct burin_cu_stream *stream = NULL;
    const enum burin_status status = burin_cuda_check(
            driver, err, driver->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING),
            "cuStreamCreate", "a queue");
    queue->handle = (uintptr_t)stream;
    return status;
}

void burin_cuda_queue_close(struct burin_queue *queue)
{
    if (queue->handle)
        burin_cuda_of(queue->device)->driver->cuStreamDestroy_v2(burin_cuda_stream(queue));
}

enum burin_status burin_cuda_copy_in(
        struct burin_queue *queue,
        uint64_t to,
        const void *from,
        size_t bytes,
        struct burin_error *err)
{
    const struct burin_driver *driver = burin_cuda_of(queue->device)->driver;
    return burin_cuda_check(
            driver, err,
            driver->cuMemcpyHtoDAsync_v2(to, from, bytes, burin_cuda_stream(queue)),
            "cuMemcpyHtoDAsync", "%s to the device",
            burin_human_bytes((int64_t)bytes).text);
}

enum burin_status burin_cuda_copy_out(
        struct burin_queue *queue,
        void *to,
        uint64_t from,
        size_t bytes,
        struct burin_error *err)
{
    const struct burin_driver *driver = burin_cuda_of(queue->device)->driver;
    return burin_cuda_check(
            driver, err,
            driver->cuMemcpyDtoHAsync_v2(to, from, bytes, burin_cuda_stream(queue)),
            "cuMemcpyDtoHAsync", "%s from the device",
            burin_human_bytes((int64_t)bytes).text);
}

enum burin_status burin_cuda_copy(
        struct burin_queue *queue,
        uint64_t to,
        uint64_t from,
        size_t bytes,
        struct burin_error *err)
{
    const struct burin_driver *driver = burin_cuda_of(queue->device)->driver;
    return burin_cuda_check(
            driver, err,
            driver->cuMemcpyDtoDAsync_v2(to, from, bytes, burin_cuda_stream(queue)),
            "cuMemcpyDtoDAsync", "%s within the device",
            burin_human_bytes((int64_t)bytes).text);
}

enum burin_status burin_cuda_fill(
        struct burin_queue *queue,
        uint64_t to,
        uint8_t byte,
        size_t bytes,
        struct burin_error *err)
{
    const struct burin_driver *driver = burin_cuda_of(queue->device)->driver;
    return burin_cuda_check(
            driver, err, driver->cuMemsetD8Async(to, byte, bytes, burin_cuda_stream(queue)),
            "cuMemsetD8Async", "filling %s", burin_human_bytes((int64_t)bytes).text);
}

enum burin_status burin_cuda_run(
        struct burin_queue *queue,
        const struct burin_program *program,
        int kv,
        const struct burin_call *call,
        struct burin_error *err)
{
    struct burin_cuda *cuda = burin_cuda_of(queue->device);
    struct burin_stream_failure failure = { .status = BURIN_OK };
    struct burin_stream stream =
            burin_cuda_enqueueing(cuda, burin_cuda_stream(queue), &failure);
    if (call->params.value[BURIN_FAST_GEMM]) /* else there is no scratch for it */
        stream.multiplier = cuda->multiplier;
    program->enqueue[kv](&stream, call);
    return burin_stream_status(&stream, err);
}

enum burin_status burin_cuda_finish(struct burin_queue *queue, struct burin_error *err)
{
    const struct burin_driver *driver = burin_cuda_of(queue->device)->driver;
    return burin_cuda_check(
            driver, err, driver->cuStreamSynchronize(burin_cuda_stream(queue)),
            "cuStreamSynchronize",
            "waiting for the kernels and copies of a queue (with BURIN_CUDA_SYNC=1 each "
            "kernel is waited for, and named)");
}

/* ---- Events -------------------------------------------------------------------------- */

static struct burin_cu_event *event_of(const struct burin_event *event)
{
    return (struct burin_cu_event *)(uintptr_t)event->handle;
}

enum burin_status burin_cuda_event_record(
        struct burin_queue *queue, struct burin_event *event, struct burin_error *err)
{
    const struct burin_driver *driver = burin_cuda_of(queue->device)->driver;
    if (!event->handle) {
        struct burin_cu_event *made = NULL;
        const enum burin_status status = burin_cuda_check(
                driver, err, driver->cuEventCreate(&made, CU_EVENT_TIMED), "cuEventCreate",
                "a place in a queue");
        if (status)
            return status;
        event->handle = (uintptr_t)made;
    }
    return burin_cuda_check(
            driver, err, driver->cuEventRecord(event_of(event), burin_cuda_stream(queue)),
            "cuEventRecord", "a place in a queue");
}

/* Times are floats of milliseconds since the clock's event: after a minute they are exact
 * to 4 us. The clock is set anew then. */
enum burin_status burin_cuda_set_clock(struct burin_cuda *cuda, struct burin_error *err)
{
    const struct burin_driver *driver = cuda->driver;
    struct burin_cu_event *clock = NULL;
    float passed = 0;

    enum burin_status status = burin_cuda_check(
            driver, err, driver->cuEventCreate(&clock, CU_EVENT_TIMED), "cuEventCreate",
            "the device's clock");
    if (!status)
        status = burin_cuda_check(
                driver, err, driver->cuEventRecord(clock, cuda->stream), "cuEventRecord",
                "the device's clock");
    if (!status)
        status = burin_cuda_check(
                driver, err, driver->cuEventSynchronize(clock), "cuEventSynchronize",
                "the device's clock");
    if (!status && cuda->clock)
        status = burin_cuda_check(
                driver, err, driver->cuEventElapsedTime(&passed, cuda->clock, clock),
                "cuEventElapsedTime", "the device's clock");
    if (status) {
        if (clock)
            driver->cuEventDestroy_v2(clock);
        return status;
    }
    if (cuda->clock)
        driver->cuEventDestroy_v2(cuda->clock);
    cuda->clock = clock;
    cuda->clock_ms += (double)passed;
    return BURIN_OK;
}

enum burin_status burin_cuda_event_wait(struct burin_event *event, struct burin_error *err)
{
    struct burin_cuda *cuda = burin_cuda_of(event->device);
    const struct burin_driver *driver = cuda->driver;
    float since = 0;

    enum burin_status status = burin_cuda_check(
            driver, err, driver->cuEventSynchronize(event_of(event)), "cuEventSynchronize",
            "waiting for a place in a queue");
    if (!status)
        status = burin_cuda_check(
                driver, err,
                driver->cuEventElapsedTime(&since, cuda->clock, event_of(event)),
                "cuEventElapsedTime", "when the device was at a place in a queue");
    if (status)
        return status;
    event->ms = cuda->clock_ms + (double)since;
    return since > 60000 ? burin_cuda_set_clock(cuda, err) : BURIN_OK;
}

void burin_cuda_event_close(struct burin_event *event)
{
    if (event->handle)
        burin_cuda_of(event->device)->driver->cuEventDestroy_v2(event_of(event));
}
