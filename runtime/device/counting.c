#include "runtime/device/counting.h"

#include <assert.h>

static struct burin_counting *counting_of(struct burin_device *device)
{
    return (struct burin_counting *)device; /* its head */
}

static enum burin_status memory(
        struct burin_device *device,
        size_t *available,
        size_t *total,
        struct burin_error *err)
{
    (void)err;
    const struct burin_counting *counting = counting_of(device);
    *available = counting->total - counting->used;
    *total = counting->total;
    return BURIN_OK;
}

static enum burin_status obtain(
        struct burin_device *device,
        size_t bytes,
        uint64_t *address,
        struct burin_error *err)
{
    struct burin_counting *counting = counting_of(device);
    const bool fails = counting->fail_in > 0 && --counting->fail_in == 0;
    const size_t left = counting->total - counting->used;

    if (fails || bytes > left)
        return burin_fail(
                err, BURIN_ENOMEM, "the counting device refuses %zu bytes, it has %zu left",
                bytes, left);
    *address = counting->next_address;
    counting->next_address += bytes;
    counting->used += bytes;
    if (counting->most_used < counting->used)
        counting->most_used = counting->used;
    counting->n_buffers++;
    return BURIN_OK;
}

static void release(struct burin_device *device, uint64_t address, size_t bytes)
{
    struct burin_counting *counting = counting_of(device);
    assert(address + bytes <= counting->next_address && bytes <= counting->used);
    (void)address;
    counting->used -= bytes;
    counting->n_buffers--;
}

/* ---- Addresses first ----------------------------------------------------------------- */

static struct burin_counting_range *range_at(
        struct burin_counting *counting, uint64_t address, size_t bytes)
{
    for (int i = 0; i < BURIN_COUNTING_RANGES; i++) {
        struct burin_counting_range *range = &counting->ranges[i];
        if (range->bytes && address >= range->address &&
            address + bytes <= range->address + range->bytes)
            return range;
    }
    return NULL;
}

static enum burin_status reserve(
        struct burin_device *device,
        size_t bytes,
        uint64_t *address,
        struct burin_error *err)
{
    struct burin_counting *counting = counting_of(device);
    for (int i = 0; i < BURIN_COUNTING_RANGES; i++) {
        struct burin_counting_range *range = &counting->ranges[i];
        if (range->bytes)
            continue;
        *range = (struct burin_counting_range){ counting->next_address, bytes, 0, 0 };
        *address = range->address;
        counting->next_address += bytes;
        return BURIN_OK;
    }
    return burin_fail(
            err, BURIN_ENOMEM, "the counting device has no addresses for %zu bytes", bytes);
}

static enum burin_status back(
        struct burin_device *device,
        uint64_t address,
        size_t bytes,
        struct burin_error *err)
{
    struct burin_counting *counting = counting_of(device);
    struct burin_counting_range *range = range_at(counting, address, bytes);
    assert(range);
    uint64_t own;
    const enum burin_status status = obtain(device, bytes, &own, err);
    if (!status) {
        range->backed += bytes;
        range->n_pieces++;
    }
    return status;
}

static void unreserve(struct burin_device *device, uint64_t address, size_t bytes)
{
    struct burin_counting *counting = counting_of(device);
    struct burin_counting_range *range = range_at(counting, address, bytes);
    assert(range);
    counting->used -= range->backed;
    counting->n_buffers -= range->n_pieces;
    *range = (struct burin_counting_range){ 0 };
}

static void *host(struct burin_device *device, uint64_t address)
{
    (void)device;
    (void)address;
    return NULL;
}

static enum burin_status queue_open(
        struct burin_device *device, struct burin_queue *queue, struct burin_error *err)
{
    (void)err;
    queue->handle = (uint64_t)++counting_of(device)->n_queues;
    return BURIN_OK;
}

static void queue_close(struct burin_queue *queue)
{
    counting_of(queue->device)->n_queues--;
}

static enum burin_status count_copy(struct burin_queue *queue, size_t bytes)
{
    struct burin_counting *counting = counting_of(queue->device);
    counting->n_copies++;
    counting->bytes_copied += bytes;
    return BURIN_OK;
}

static enum burin_status copy_in(
        struct burin_queue *queue,
        uint64_t to,
        const void *from,
        size_t bytes,
        struct burin_error *err)
{
    (void)to;
    (void)from;
    (void)err;
    return count_copy(queue, bytes);
}

static enum burin_status copy_out(
        struct burin_queue *queue,
        void *to,
        uint64_t from,
        size_t bytes,
        struct burin_error *err)
{
    (void)to;
    (void)from;
    (void)err;
    return count_copy(queue, bytes);
}

static enum burin_status copy(
        struct burin_queue *queue,
        uint64_t to,
        uint64_t from,
        size_t bytes,
        struct burin_error *err)
{
    (void)to;
    (void)from;
    (void)err;
    return count_copy(queue, bytes);
}

static enum burin_status fill(
        struct burin_queue *queue,
        uint64_t to,
        uint8_t byte,
        size_t bytes,
        struct burin_error *err)
{
    (void)queue;
    (void)to;
    (void)byte;
    (void)bytes;
    (void)err;
    return BURIN_OK;
}

static enum burin_status run(
        struct burin_queue *queue,
        const struct burin_program *program,
        int kv,
        const struct burin_call *call,
        struct burin_error *err)
{
    struct burin_counting *counting = counting_of(queue->device);
    (void)program;
    (void)kv;
    (void)err;
    counting->n_runs++;
    counting->last_call = *call;
    return BURIN_OK;
}

static enum burin_status finish(struct burin_queue *queue, struct burin_error *err)
{
    (void)queue;
    (void)err;
    return BURIN_OK;
}

static enum burin_status event_record(
        struct burin_queue *queue, struct burin_event *event, struct burin_error *err)
{
    const struct burin_counting *counting = counting_of(queue->device);
    (void)err;
    event->handle = (uint64_t)counting->n_runs + (uint64_t)counting->n_copies;
    event->ms = (double)event->handle;
    return BURIN_OK;
}

static enum burin_status event_wait(struct burin_event *event, struct burin_error *err)
{
    (void)event;
    (void)err;
    return BURIN_OK;
}

static void event_close(struct burin_event *event)
{
    (void)event;
}

void burin_counting_open(struct burin_counting *counting, size_t total, size_t granule)
{
    static const struct burin_device_ops ops = {
        .memory = memory,
        .obtain = obtain,
        .release = release,
        .host = host,
        .reserve = reserve,
        .back = back,
        .unreserve = unreserve,
        .queue_open = queue_open,
        .queue_close = queue_close,
        .copy_in = copy_in,
        .copy_out = copy_out,
        .copy = copy,
        .fill = fill,
        .run = run,
        .finish = finish,
        .event_record = event_record,
        .event_wait = event_wait,
        .event_close = event_close,
    };
    *counting = (struct burin_counting){
        .device = { .ops = &ops, .name = "counting", .granule = granule },
        .total = total,
        .next_address = (uint64_t)1 << 32,
    };
}
