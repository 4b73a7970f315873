#include "runtime/device/cuda/launch.h"

#include "runtime/device/cuda/errors.h"
#include "runtime/device/cuda/parts.h"

#include <string.h>

struct burin_stream burin_cuda_enqueueing(
        struct burin_cuda *cuda,
        struct burin_cu_stream *stream,
        struct burin_stream_failure *failure)
{
    return (struct burin_stream){
        .cuda = cuda,
        .handle = stream,
        .functions = cuda->functions,
        .failure = failure,
    };
}

void burin_launch(
        const struct burin_stream *stream,
        int kernel,
        struct burin_blocks blocks,
        int threads,
        int shared,
        void **args)
{
    struct burin_cuda *cuda = stream->cuda;
    const struct burin_driver *driver = cuda->driver;
    struct burin_stream_failure *failure = stream->failure;
    if (failure->status || blocks.x <= 0 || blocks.y <= 0 || blocks.z <= 0)
        return;

    struct burin_cu_stream *handle = stream->handle;
    int result = driver->cuLaunchKernel(
            stream->functions[kernel], (unsigned)blocks.x, (unsigned)blocks.y,
            (unsigned)blocks.z, (unsigned)threads, 1, 1, (unsigned)shared, handle, args,
            NULL);
    cuda->n_captured += cuda->capturing;
    if (!result && (!cuda->one_by_one || cuda->capturing))
        return;
    failure->status = burin_cuda_check(
            driver, &failure->error, result, "cuLaunchKernel",
            "%s on %d x %d x %d blocks of %d threads", cuda->code->kernels[kernel].name,
            blocks.x, blocks.y, blocks.z, threads);
    if (!failure->status)
        failure->status = burin_cuda_check(
                driver, &failure->error, driver->cuStreamSynchronize(handle),
                "cuStreamSynchronize", "waiting for %s on %d x %d x %d blocks",
                cuda->code->kernels[kernel].name, blocks.x, blocks.y, blocks.z);
}

enum burin_status burin_stream_status(
        const struct burin_stream *stream, struct burin_error *err)
{
    struct burin_stream_failure *failure = stream->failure;
    const enum burin_status status = failure->status;
    if (status && err)
        *err = failure->error;
    failure->status = BURIN_OK;
    return status;
}
