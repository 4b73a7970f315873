/* Copies and fills. With memory of the host that is not pinned they are no longer asynchronous:
 * what was put on the stream before is done, then the copy. */
#include "runtime/device/virtual/state.h"

static int put_copy(
        enum burin_virtual_work work,
        uint64_t to,
        uint64_t from,
        const void *host,
        size_t bytes,
        struct burin_cu_stream *stream)
{
    const int result = burin_virtual_stream(&stream);
    if (result || !bytes)
        return result;
    if ((work != WORK_COPY_IN && !burin_virtual_accessible(from, bytes)) ||
        (work != WORK_COPY_OUT && !burin_virtual_accessible(to, bytes)))
        return CU_INVALID_VALUE;
    const bool pageable = work != WORK_COPY && !burin_virtual_pinned(host, bytes);
    if (pageable && burin_virtual_no_capture(stream))
        return CU_CAPTURE_UNSUPPORTED;
    struct burin_cu_node *node = burin_virtual_node(work);
    if (!node)
        return CU_OUT_OF_MEMORY;
    node->copy.to = to;
    node->copy.from = from;
    node->copy.host = (void *)(uintptr_t)host; /* written to only where it is not const */
    node->copy.pinned = work != WORK_COPY && !pageable;
    node->copy.bytes = bytes;
    const int put = burin_virtual_put(stream, node);
    if (put || !pageable)
        return put;
    burin_virtual_drain(stream, stream->n_put);
    return burin_virtual_self()->lost;
}

CALL(cuMemcpyHtoDAsync_v2,
     NEEDS_CONTEXT,
     (uint64_t to, const void *from, size_t bytes, struct burin_cu_stream *stream),
     (to, from, bytes, stream))
{
    return put_copy(WORK_COPY_IN, to, 0, from, bytes, stream);
}

CALL(cuMemcpyDtoHAsync_v2,
     NEEDS_CONTEXT,
     (void *to, uint64_t from, size_t bytes, struct burin_cu_stream *stream),
     (to, from, bytes, stream))
{
    return put_copy(WORK_COPY_OUT, 0, from, to, bytes, stream);
}

CALL(cuMemcpyDtoDAsync_v2,
     NEEDS_CONTEXT,
     (uint64_t to, uint64_t from, size_t bytes, struct burin_cu_stream *stream),
     (to, from, bytes, stream))
{
    return put_copy(WORK_COPY, to, from, NULL, bytes, stream);
}

static int put_fill(
        uint64_t to, uint32_t value, int width, size_t n, struct burin_cu_stream *stream)
{
    const int result = burin_virtual_stream(&stream);
    if (result || !n)
        return result;
    if (n > SIZE_MAX / (size_t)width || to % (uint64_t)width ||
        !burin_virtual_accessible(to, n * (size_t)width))
        return CU_INVALID_VALUE;
    struct burin_cu_node *node = burin_virtual_node(WORK_FILL);
    if (!node)
        return CU_OUT_OF_MEMORY;
    node->fill.to = to;
    node->fill.value = value;
    node->fill.width = width;
    node->fill.n = n;
    return burin_virtual_put(stream, node);
}

CALL(cuMemsetD8Async,
     NEEDS_CONTEXT,
     (uint64_t to, unsigned char byte, size_t n, struct burin_cu_stream *stream),
     (to, byte, n, stream))
{
    return put_fill(to, byte, 1, n, stream);
}

CALL(cuMemsetD32Async,
     NEEDS_CONTEXT,
     (uint64_t to, unsigned word, size_t n, struct burin_cu_stream *stream),
     (to, word, n, stream))
{
    return put_fill(to, word, 4, n, stream);
}
