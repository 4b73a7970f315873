/* runtime/device/cuda/parts.h -- What the files of this folder call of each other: the
 * functions of device.h for a CUDA device, where they are. */
#ifndef BURIN_DEVICE_CUDA_PARTS_H
#define BURIN_DEVICE_CUDA_PARTS_H

#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/device.h"

#include <stddef.h>
#include <stdint.h>

static inline struct burin_cuda *burin_cuda_of(struct burin_device *device)
{
    return (struct burin_cuda *)device; /* its head */
}

static inline struct burin_cu_stream *burin_cuda_stream(const struct burin_queue *queue)
{
    return (struct burin_cu_stream *)(uintptr_t)queue->handle;
}

/* What host programs are handed to enqueue on. */
struct burin_stream burin_cuda_enqueueing(
        struct burin_cuda *cuda,
        struct burin_cu_stream *stream,
        struct burin_stream_failure *failure);

/* multiply.c; NULL may be closed. */
void burin_multiplier_close(struct burin_multiplier *multiplier);

/* memory.c: the granule of cuMemCreate() for this device, and the functions that use it. */
enum burin_status burin_cuda_granule(
        struct burin_cuda *cuda, size_t *granule, struct burin_error *err);
enum burin_status burin_cuda_memory(
        struct burin_device *device,
        size_t *available,
        size_t *total,
        struct burin_error *err);
enum burin_status burin_cuda_reserve(
        struct burin_device *device,
        size_t bytes,
        uint64_t *address,
        struct burin_error *err);
enum burin_status burin_cuda_back(
        struct burin_device *device,
        uint64_t address,
        size_t bytes,
        struct burin_error *err);
void burin_cuda_unreserve(struct burin_device *device, uint64_t address, size_t bytes);
enum burin_status burin_cuda_obtain(
        struct burin_device *device,
        size_t bytes,
        uint64_t *address,
        struct burin_error *err);

/* Where there are no addresses without memory. */
enum burin_status burin_cuda_plain_obtain(
        struct burin_device *device,
        size_t bytes,
        uint64_t *address,
        struct burin_error *err);
void burin_cuda_plain_release(struct burin_device *device, uint64_t address, size_t bytes);

/* queue.c */
enum burin_status burin_cuda_queue_open(
        struct burin_device *device, struct burin_queue *queue, struct burin_error *err);
void burin_cuda_queue_close(struct burin_queue *queue);
enum burin_status burin_cuda_copy_in(
        struct burin_queue *queue,
        uint64_t to,
        const void *from,
        size_t bytes,
        struct burin_error *err);
enum burin_status burin_cuda_copy_out(
        struct burin_queue *queue,
        void *to,
        uint64_t from,
        size_t bytes,
        struct burin_error *err);
enum burin_status burin_cuda_copy(
        struct burin_queue *queue,
        uint64_t to,
        uint64_t from,
        size_t bytes,
        struct burin_error *err);
enum burin_status burin_cuda_fill(
        struct burin_queue *queue,
        uint64_t to,
        uint8_t byte,
        size_t bytes,
        struct burin_error *err);
enum burin_status burin_cuda_run(
        struct burin_queue *queue,
        const struct burin_program *program,
        int kv,
        const struct burin_call *call,
        struct burin_error *err);
enum burin_status burin_cuda_finish(struct burin_queue *queue, struct burin_error *err);
enum burin_status burin_cuda_event_record(
        struct burin_queue *queue, struct burin_event *event, struct burin_error *err);
enum burin_status burin_cuda_event_wait(struct burin_event *event, struct burin_error *err);
void burin_cuda_event_close(struct burin_event *event);
enum burin_status burin_cuda_set_clock(struct burin_cuda *cuda, struct burin_error *err);

/* graphs.c */
enum burin_status burin_cuda_capture(
        struct burin_queue *queue,
        const struct burin_program *program,
        int kv,
        const struct burin_call *call,
        struct burin_graph *graph,
        struct burin_error *err);
enum burin_status burin_cuda_graph_launch(
        struct burin_queue *queue,
        const struct burin_graph *graph,
        struct burin_error *err);
void burin_cuda_graph_close(struct burin_graph *graph);

#endif
