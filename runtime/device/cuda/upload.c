#include "runtime/device/cuda/upload.h"

enum burin_status burin_upload_open(
        struct burin_upload *upload,
        struct burin_cuda *cuda,
        struct burin_queue *queue,
        size_t bytes,
        struct burin_error *err)
{
    *upload = (struct burin_upload){ .cuda = cuda, .queue = queue, .bytes = bytes };
    enum burin_status status = BURIN_OK;
    for (int i = 0; i < 2 && !status; i++)
        status = burin_cuda_pin(cuda, bytes, "staging", &upload->buffers[i], err);
    if (status)
        burin_upload_close(upload);
    return status;
}

enum burin_status burin_upload_buffer(
        struct burin_upload *upload, void **buffer, struct burin_error *err)
{
    struct burin_event *sent = &upload->sent[upload->next];
    *buffer = upload->buffers[upload->next];
    return sent->device ? burin_event_wait(sent, err) : BURIN_OK;
}

enum burin_status burin_upload_send(
        struct burin_upload *upload, uint64_t to, size_t n, struct burin_error *err)
{
    const int i = upload->next;
    const enum burin_status status =
            burin_queue_copy_in(upload->queue, to, upload->buffers[i], n, err);
    if (status)
        return status;
    upload->next = !i;
    return burin_event_record(&upload->sent[i], upload->queue, err);
}

enum burin_status burin_upload_finish(struct burin_upload *upload, struct burin_error *err)
{
    return burin_queue_finish(upload->queue, err);
}

void burin_upload_close(struct burin_upload *upload)
{
    if (upload->cuda) /* what was sent may be under way */
        burin_queue_finish(upload->queue, NULL);
    for (int i = 0; i < 2; i++) {
        burin_event_close(&upload->sent[i]);
        if (upload->cuda)
            burin_cuda_unpin(upload->cuda, upload->buffers[i]);
    }
    *upload = (struct burin_upload){ .cuda = NULL };
}
