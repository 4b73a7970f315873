/* runtime/device/device.c -- The part of device.h that is the same for every machine. */
#include "runtime/device/device.h"

#include <assert.h>

enum burin_status burin_device_memory(
        struct burin_device *device,
        size_t *available,
        size_t *total,
        struct burin_error *err)
{
    return device->ops->memory(device, available, total, err);
}

enum burin_status burin_device_obtain(
        struct burin_device *device,
        size_t bytes,
        uint64_t *address,
        struct burin_error *err)
{
    assert(bytes % device->granule == 0);
    return device->ops->obtain(device, bytes, address, err);
}

void burin_device_release(struct burin_device *device, uint64_t address, size_t bytes)
{
    device->ops->release(device, address, bytes);
}

bool burin_device_can_reserve(const struct burin_device *device)
{
    return device->ops->reserve != NULL;
}

enum burin_status burin_device_reserve(
        struct burin_device *device,
        size_t bytes,
        uint64_t *address,
        struct burin_error *err)
{
    assert(bytes % device->granule == 0);
    if (!device->ops->reserve)
        return burin_fail(
                err, BURIN_EUSAGE, "device %s has no addresses without memory",
                device->name);
    return device->ops->reserve(device, bytes, address, err);
}

enum burin_status burin_device_back(
        struct burin_device *device,
        uint64_t address,
        size_t bytes,
        struct burin_error *err)
{
    assert(bytes % device->granule == 0);
    return device->ops->back(device, address, bytes, err);
}

void burin_device_unreserve(struct burin_device *device, uint64_t address, size_t bytes)
{
    device->ops->unreserve(device, address, bytes);
}

void *burin_device_host(struct burin_device *device, uint64_t address)
{
    return device->ops->host(device, address);
}

enum burin_status burin_queue_open(
        struct burin_queue *queue, struct burin_device *device, struct burin_error *err)
{
    *queue = (struct burin_queue){ .device = device };
    return device->ops->queue_open(device, queue, err);
}

void burin_queue_close(struct burin_queue *queue)
{
    if (queue->device)
        queue->device->ops->queue_close(queue);
    *queue = (struct burin_queue){ 0 };
}

enum burin_status burin_queue_copy_in(
        struct burin_queue *queue,
        uint64_t to,
        const void *from,
        size_t bytes,
        struct burin_error *err)
{
    return queue->device->ops->copy_in(queue, to, from, bytes, err);
}

enum burin_status burin_queue_copy_out(
        struct burin_queue *queue,
        void *to,
        uint64_t from,
        size_t bytes,
        struct burin_error *err)
{
    return queue->device->ops->copy_out(queue, to, from, bytes, err);
}

enum burin_status burin_queue_copy(
        struct burin_queue *queue,
        uint64_t to,
        uint64_t from,
        size_t bytes,
        struct burin_error *err)
{
    return queue->device->ops->copy(queue, to, from, bytes, err);
}

enum burin_status burin_queue_fill(
        struct burin_queue *queue,
        uint64_t to,
        uint8_t byte,
        size_t bytes,
        struct burin_error *err)
{
    return queue->device->ops->fill(queue, to, byte, bytes, err);
}

static enum burin_status check_kernels(
        const struct burin_program *program, int kv, struct burin_error *err)
{
    if (burin_program_runs(program, kv))
        return BURIN_OK;
    return burin_fail(
            err, BURIN_EUSAGE,
            "program %s has tables only: it was generated for another machine",
            program->name);
}

enum burin_status burin_queue_run(
        struct burin_queue *queue,
        const struct burin_program *program,
        int kv,
        const struct burin_call *call,
        struct burin_error *err)
{
    const enum burin_status status = check_kernels(program, kv, err);
    return status ? status : queue->device->ops->run(queue, program, kv, call, err);
}

bool burin_device_has_graphs(const struct burin_device *device)
{
    return device->ops->capture != NULL;
}

enum burin_status burin_queue_capture(
        struct burin_queue *queue,
        const struct burin_program *program,
        int kv,
        const struct burin_call *call,
        struct burin_graph *graph,
        struct burin_error *err)
{
    const struct burin_device_ops *ops = queue->device->ops;
    *graph = (struct burin_graph){ .device = NULL };
    if (!ops->capture)
        return burin_fail(
                err, BURIN_EUSAGE, "device %s has no graphs", queue->device->name);
    enum burin_status status = check_kernels(program, kv, err);
    if (!status)
        status = ops->capture(queue, program, kv, call, graph, err);
    if (!status)
        graph->device = queue->device;
    return status;
}

enum burin_status burin_graph_launch(
        const struct burin_graph *graph, struct burin_queue *queue, struct burin_error *err)
{
    return queue->device->ops->graph_launch(queue, graph, err);
}

void burin_graph_close(struct burin_graph *graph)
{
    if (graph->device)
        graph->device->ops->graph_close(graph);
    *graph = (struct burin_graph){ .device = NULL };
}

enum burin_status burin_queue_finish(struct burin_queue *queue, struct burin_error *err)
{
    return queue->device->ops->finish(queue, err);
}

enum burin_status burin_event_record(
        struct burin_event *event, struct burin_queue *queue, struct burin_error *err)
{
    if (event->device && event->device != queue->device)
        return burin_fail(
                err, BURIN_EUSAGE, "an event of device %s, a queue of device %s",
                event->device->name, queue->device->name);
    event->device = queue->device;
    return queue->device->ops->event_record(queue, event, err);
}

enum burin_status burin_event_wait(struct burin_event *event, struct burin_error *err)
{
    if (!event->device)
        return burin_fail(
                err, BURIN_EUSAGE, "waiting for an event that was never recorded");
    return event->device->ops->event_wait(event, err);
}

void burin_event_close(struct burin_event *event)
{
    if (event->device)
        event->device->ops->event_close(event);
    *event = (struct burin_event){ 0 };
}
