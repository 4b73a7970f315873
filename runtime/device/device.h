/* runtime/device/device.h -- What the engine asks of a machine: memory, queues, copies,
 * events, and to run a program.
 *
 * Three implementations: cpu.h runs programs on a team of threads, cuda/cuda.h puts kernels on
 * streams, counting.h has a set amount of memory, counts, and runs nothing. An address need not be
 * the host's, and a run may be captured as a graph and launched again.
 *
 * Units    Bytes.
 * Order    What is put on one queue happens in the order it was put there. Nothing is known
 *          to have happened before burin_queue_finish() or burin_event_wait().
 * Memory   Addresses come from a ledger only (ledger.h). Queues and events are values of the
 *          caller; closing a zeroed one does nothing.
 * Threads  One thread at a time for a device and all its queues. */
#ifndef BURIN_DEVICE_DEVICE_H
#define BURIN_DEVICE_DEVICE_H

#include "runtime/base/status.h"
#include "runtime/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct burin_device;

struct burin_queue {
    struct burin_device *device;
    uint64_t handle;
};

/* A place in a queue, and when the device was there. */
struct burin_event {
    struct burin_device *device;
    uint64_t handle;
    double ms; /* of the device's own clock; only differences mean something */
};

/* A program's run as it was captured: the same addresses, the same extents. */
struct burin_graph {
    struct burin_device *device;
    uint64_t handle;
    int kernel_nodes;
    int copy_nodes;
};

/* One implementation. Each may assume what the functions below have checked. */
struct burin_device_ops {
    enum burin_status (*memory)(
            struct burin_device *device,
            size_t *available,
            size_t *total,
            struct burin_error *err);
    enum burin_status (*obtain)(
            struct burin_device *device,
            size_t bytes,
            uint64_t *address,
            struct burin_error *err);
    void (*release)(struct burin_device *device, uint64_t address, size_t bytes);
    void *(*host)(struct burin_device *device, uint64_t address);

    /* Addresses first, memory behind them later. NULL where a device can't. */
    enum burin_status (*reserve)(
            struct burin_device *device,
            size_t bytes,
            uint64_t *address,
            struct burin_error *err);
    enum burin_status (*back)(
            struct burin_device *device,
            uint64_t address,
            size_t bytes,
            struct burin_error *err);
    void (*unreserve)(struct burin_device *device, uint64_t address, size_t bytes);

    enum burin_status (*queue_open)(
            struct burin_device *device,
            struct burin_queue *queue,
            struct burin_error *err);
    void (*queue_close)(struct burin_queue *queue);
    enum burin_status (*copy_in)(
            struct burin_queue *queue,
            uint64_t to,
            const void *from,
            size_t bytes,
            struct burin_error *err);
    enum burin_status (*copy_out)(
            struct burin_queue *queue,
            void *to,
            uint64_t from,
            size_t bytes,
            struct burin_error *err);
    enum burin_status (*copy)(
            struct burin_queue *queue,
            uint64_t to,
            uint64_t from,
            size_t bytes,
            struct burin_error *err);
    enum burin_status (*fill)(
            struct burin_queue *queue,
            uint64_t to,
            uint8_t byte,
            size_t bytes,
            struct burin_error *err);
    enum burin_status (*run)(
            struct burin_queue *queue,
            const struct burin_program *program,
            int kv,
            const struct burin_call *call,
            struct burin_error *err);
    enum burin_status (*finish)(struct burin_queue *queue, struct burin_error *err);

    /* NULL where a device has no graphs. */
    enum burin_status (*capture)(
            struct burin_queue *queue,
            const struct burin_program *program,
            int kv,
            const struct burin_call *call,
            struct burin_graph *graph,
            struct burin_error *err);
    enum burin_status (*graph_launch)(
            struct burin_queue *queue,
            const struct burin_graph *graph,
            struct burin_error *err);
    void (*graph_close)(struct burin_graph *graph);

    enum burin_status (*event_record)(
            struct burin_queue *queue, struct burin_event *event, struct burin_error *err);
    enum burin_status (*event_wait)(struct burin_event *event, struct burin_error *err);
    void (*event_close)(struct burin_event *event);
};

/* The head of every implementation's own struct. */
struct burin_device {
    const struct burin_device_ops *ops;
    const char *name;  /* "cpu" */
    size_t granule;    /* memory is given out in multiples of this */
    const char *owner; /* of what is being obtained, for messages; the ledger sets it */
};

/* `available` is what we may still take at this moment, of `total`. */
enum burin_status burin_device_memory(
        struct burin_device *device,
        size_t *available,
        size_t *total,
        struct burin_error *err);

/* For ledger.c alone. `bytes` is a multiple of the granule. The memory is zeroed. */
enum burin_status burin_device_obtain(
        struct burin_device *device,
        size_t bytes,
        uint64_t *address,
        struct burin_error *err);
void burin_device_release(struct burin_device *device, uint64_t address, size_t bytes);

/* Addresses for `bytes`, a multiple of the granule, without memory; then memory, zeroed, for a
 * part that begins and ends on granules and has none yet. BURIN_EUSAGE where the device can't,
 * see burin_device_can_reserve(). For ledger.c alone. What was put behind them goes back with
 * the addresses. */
enum burin_status burin_device_reserve(
        struct burin_device *device,
        size_t bytes,
        uint64_t *address,
        struct burin_error *err);
enum burin_status burin_device_back(
        struct burin_device *device,
        uint64_t address,
        size_t bytes,
        struct burin_error *err);
void burin_device_unreserve(struct burin_device *device, uint64_t address, size_t bytes);
bool burin_device_can_reserve(const struct burin_device *device);

/* Where the host can read and write what lies at `address`; NULL where it cannot. */
void *burin_device_host(struct burin_device *device, uint64_t address);

enum burin_status burin_queue_open(
        struct burin_queue *queue, struct burin_device *device, struct burin_error *err);
void burin_queue_close(struct burin_queue *queue);

/* The host's bytes stay in place until the queue has been there. */
enum burin_status burin_queue_copy_in(
        struct burin_queue *queue,
        uint64_t to,
        const void *from,
        size_t bytes,
        struct burin_error *err);
enum burin_status burin_queue_copy_out(
        struct burin_queue *queue,
        void *to,
        uint64_t from,
        size_t bytes,
        struct burin_error *err);
enum burin_status burin_queue_copy(/* within the device */
                                   struct burin_queue *queue,
                                   uint64_t to,
                                   uint64_t from,
                                   size_t bytes,
                                   struct burin_error *err);
enum burin_status burin_queue_fill(
        struct burin_queue *queue,
        uint64_t to,
        uint8_t byte,
        size_t bytes,
        struct burin_error *err);

/* program->run[kv], or enqueue[kv], on `call`, whose pointers are this device's addresses and which may go
 * out of scope at once. BURIN_EUSAGE for a program that has tables only. */
enum burin_status burin_queue_run(
        struct burin_queue *queue,
        const struct burin_program *program,
        int kv,
        const struct burin_call *call,
        struct burin_error *err);

/* Record what burin_queue_run() would put on the queue, and make a graph of it, ready to be launched
 * as often as one likes: instantiated, and uploaded to the device. Nothing runs. BURIN_EUSAGE where
 * the device has no graphs, see burin_device_has_graphs(). Launching reads inputs and writes results
 * at the call's addresses. */
enum burin_status burin_queue_capture(
        struct burin_queue *queue,
        const struct burin_program *program,
        int kv,
        const struct burin_call *call,
        struct burin_graph *graph,
        struct burin_error *err);
enum burin_status burin_graph_launch(
        const struct burin_graph *graph,
        struct burin_queue *queue,
        struct burin_error *err);
void burin_graph_close(struct burin_graph *graph);
bool burin_device_has_graphs(const struct burin_device *device);

/* Wait for everything on the queue. */
enum burin_status burin_queue_finish(struct burin_queue *queue, struct burin_error *err);

enum burin_status burin_event_record(
        struct burin_event *event, struct burin_queue *queue, struct burin_error *err);
enum burin_status burin_event_wait(struct burin_event *event, struct burin_error *err);
void burin_event_close(struct burin_event *event);

#endif
