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

enum burin_status burin_queue_fill(
        struct burin_queue *queue,
        uint64_t to,
        uint8_t byte,
        size_t bytes,
        struct burin_error *err)
{
    return queue->device->ops->fill(queue, to, byte, bytes, err);
}

enum burin_status burin_queue_run(
        struct burin_queue *queue,
        const struct burin_program *program,
        int kv,
        const struct burin_call *call,
        struct burin_error *err)
{
    if (!program->run)
        return burin_fail(
                err, BURIN_EUSAGE,
                "program %s has tables only: it was generated for another machine",
                program->name);
    return queue->device->ops->run(queue, program, kv, call, err);
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
