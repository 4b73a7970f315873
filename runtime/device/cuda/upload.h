/* runtime/device/cuda/upload.h -- Bytes into a device's memory through two page-locked
 * buffers: while one is on its way, the next is filled.
 *
 *     burin_upload_open(&upload, &cuda, &queue, 32 << 20, err);
 *     while (there is more) {
 *         burin_upload_buffer(&upload, &buffer, err);     // waits until one is free
 *         n = fill(buffer, upload.bytes);
 *         burin_upload_send(&upload, to, n, err); to += n;
 *     }
 *     burin_upload_finish(&upload, err);
 *     burin_upload_close(&upload);
 *
 * Threads  One at a time; several may fill a buffer. */
#ifndef BURIN_DEVICE_CUDA_UPLOAD_H
#define BURIN_DEVICE_CUDA_UPLOAD_H

#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda.h"
#include "runtime/device/device.h"

#include <stddef.h>
#include <stdint.h>

struct burin_upload {
    struct burin_cuda *cuda;
    struct burin_queue *queue;
    size_t bytes; /* of each buffer */
    void *buffers[2];
    struct burin_event sent[2]; /* closed: the buffer is free */
    int next;
};

enum burin_status burin_upload_open(
        struct burin_upload *upload,
        struct burin_cuda *cuda,
        struct burin_queue *queue,
        size_t bytes,
        struct burin_error *err);

/* A buffer of upload->bytes that nothing is read from any more. */
enum burin_status burin_upload_buffer(
        struct burin_upload *upload, void **buffer, struct burin_error *err);

/* Send the first n bytes of that buffer to the device's address `to`. */
enum burin_status burin_upload_send(
        struct burin_upload *upload, uint64_t to, size_t n, struct burin_error *err);

/* Wait until all has arrived. */
enum burin_status burin_upload_finish(struct burin_upload *upload, struct burin_error *err);

/* Closing a zeroed one does nothing. */
void burin_upload_close(struct burin_upload *upload);

#endif
