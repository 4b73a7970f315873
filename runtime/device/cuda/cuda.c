#include "runtime/device/cuda/cuda.h"

#include "runtime/device/cuda/errors.h"
#include "runtime/device/cuda/parts.h"

#include "runtime/base/put.h"
#include "runtime/base/units.h"

#include <stdlib.h>
#include <string.h>

/* ---- Before there is a context ------------------------------------------------------- */

enum burin_status burin_cuda_count(
        const struct burin_driver *driver, int *n, struct burin_error *err)
{
    return burin_cuda_check(
            driver, err, driver->cuDeviceGetCount(n), "cuDeviceGetCount",
            "how many GPUs there are");
}

/* "GPU-4a6bcb2c-...", as nvidia-smi and CUDA_VISIBLE_DEVICES have it. */
static void write_uuid(char *text, size_t size, const struct burin_cu_uuid *uuid)
{
    struct burin_put put = { text, size, 0 };
    burin_put(&put, "GPU");
    for (int i = 0; i < 16; i++)
        burin_put(
                &put, "%s%02x", i == 0 || (i >= 4 && i <= 10 && i % 2 == 0) ? "-" : "",
                (unsigned)(uuid->bytes[i] & 0xff));
}

static enum burin_status find_attributes(
        const struct burin_driver *driver,
        struct burin_cuda_found *found,
        struct burin_error *err)
{
    int major = 0;
    int minor = 0;
    int has_vmm = 0;
    int integrated = 0;
    const struct {
        int attribute;
        int *value;
    } wanted[] = {
        { CU_DEVICE_SM_MAJOR, &major },
        { CU_DEVICE_SM_MINOR, &minor },
        { CU_DEVICE_MULTIPROCESSORS, &found->n_multiprocessors },
        { CU_DEVICE_THREADS_PER_MULTIPROCESSOR, &found->threads_per_multiprocessor },
        { CU_DEVICE_MAX_SHARED_OPT_IN, &found->max_shared_bytes },
        { CU_DEVICE_HAS_VMM, &has_vmm },
        { CU_DEVICE_INTEGRATED, &integrated },
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const enum burin_status status = burin_cuda_check(
                driver, err,
                driver->cuDeviceGetAttribute(
                        wanted[i].value, wanted[i].attribute, found->device),
                "cuDeviceGetAttribute", "attribute %d of device %d", wanted[i].attribute,
                found->index);
        if (status)
            return status;
    }
    found->sm = major * 10 + minor;
    found->has_vmm = has_vmm != 0;
    found->integrated = integrated != 0;
    return BURIN_OK;
}

enum burin_status burin_cuda_find(
        const struct burin_driver *driver,
        int index,
        struct burin_cuda_found *found,
        struct burin_error *err)
{
    int n = 0;
    enum burin_status status = burin_cuda_count(driver, &n, err);
    if (status)
        return status;
    if (index < 0 || index >= n)
        return burin_fail(
                err, BURIN_EUSAGE, "there is no CUDA device %d: this machine has %d%s",
                index, n, n > 1 ? ", counted from 0" : "");

    *found = (struct burin_cuda_found){ .index = index };
    struct burin_cu_uuid uuid = { { 0 } };
    status = burin_cuda_check(
            driver, err, driver->cuDeviceGet(&found->device, index), "cuDeviceGet",
            "device %d", index);
    if (!status)
        status = burin_cuda_check(
                driver, err,
                driver->cuDeviceGetName(
                        found->name, (int)sizeof found->name, found->device),
                "cuDeviceGetName", "device %d", index);
    if (!status)
        status = burin_cuda_check(
                driver, err, driver->cuDeviceGetUuid_v2(&uuid, found->device),
                "cuDeviceGetUuid", "device %d", index);
    if (!status)
        status = burin_cuda_check(
                driver, err,
                driver->cuDeviceGetPCIBusId(
                        found->pci, (int)sizeof found->pci, found->device),
                "cuDeviceGetPCIBusId", "device %d", index);
    if (!status)
        status = burin_cuda_check(
                driver, err, driver->cuDeviceTotalMem_v2(&found->total, found->device),
                "cuDeviceTotalMem", "device %d", index);
    if (status)
        return status;
    write_uuid(found->uuid, sizeof found->uuid, &uuid);
    return find_attributes(driver, found, err);
}

enum burin_status burin_cuda_open(
        struct burin_cuda *cuda,
        const struct burin_driver *driver,
        int index,
        struct burin_error *err)
{
    const char *one_by_one = getenv("BURIN_CUDA_SYNC");
    *cuda = (struct burin_cuda){
        .device = { .name = "cuda" },
        .driver = driver,
        .one_by_one = one_by_one && strcmp(one_by_one, "1") == 0,
    };
    return burin_cuda_find(driver, index, &cuda->found, err);
}

/* ---- The context --------------------------------------------------------------------- */

/* Where there are addresses without memory, and where there are none. */
#define BURIN_CUDA_OPS                                                                     \
    .memory = burin_cuda_memory, .host = host, .queue_open = burin_cuda_queue_open,        \
    .queue_close = burin_cuda_queue_close, .copy_in = burin_cuda_copy_in,                  \
    .copy_out = burin_cuda_copy_out, .copy = burin_cuda_copy, .fill = burin_cuda_fill,     \
    .run = burin_cuda_run, .finish = burin_cuda_finish, .capture = burin_cuda_capture,     \
    .graph_launch = burin_cuda_graph_launch, .graph_close = burin_cuda_graph_close,        \
    .event_record = burin_cuda_event_record, .event_wait = burin_cuda_event_wait,          \
    .event_close = burin_cuda_event_close

static void *host(struct burin_device *device, uint64_t address)
{
    (void)device;
    (void)address;
    return NULL;
}

static const struct burin_device_ops ops = {
    BURIN_CUDA_OPS,
    .obtain = burin_cuda_obtain,
    .release = burin_cuda_unreserve,
    .reserve = burin_cuda_reserve,
    .back = burin_cuda_back,
    .unreserve = burin_cuda_unreserve,
};

static const struct burin_device_ops plain_ops = {
    BURIN_CUDA_OPS,
    .obtain = burin_cuda_plain_obtain,
    .release = burin_cuda_plain_release,
};

/* What cuMemAlloc() takes from the device at a time, where nobody can be asked. */
enum { PLAIN_GRANULE = 2 * 1024 * 1024 };

enum burin_status burin_cuda_use(struct burin_cuda *cuda, struct burin_error *err)
{
    return burin_cuda_check(
            cuda->driver, err, cuda->driver->cuCtxSetCurrent(cuda->context),
            "cuCtxSetCurrent", "device %d, for this thread", cuda->found.index);
}

/* The driver may keep more than is asked for, and some say so. */
static enum burin_status set_limit(
        struct burin_cuda *cuda,
        int limit,
        size_t bytes,
        const char *what,
        struct burin_error *err)
{
    const int result = cuda->driver->cuCtxSetLimit(limit, bytes);
    if (result == CU_INVALID_VALUE || result == CU_UNSUPPORTED_LIMIT)
        return BURIN_OK;
    return burin_cuda_check(
            cuda->driver, err, result, "cuCtxSetLimit", "%zu bytes for %s", bytes, what);
}

/* Kernels neither print nor call malloc; the driver would set memory aside for both. */
static enum burin_status set_limits(struct burin_cuda *cuda, struct burin_error *err)
{
    const enum burin_status status =
            set_limit(cuda, CU_LIMIT_PRINTF, 0, "printf in kernels", err);
    return status ? status : set_limit(cuda, CU_LIMIT_HEAP, 0, "malloc in kernels", err);
}

enum burin_status burin_cuda_context(struct burin_cuda *cuda, struct burin_error *err)
{
    const struct burin_driver *driver = cuda->driver;
    enum burin_status status = burin_cuda_check(
            driver, err,
            driver->cuDevicePrimaryCtxRetain(&cuda->context, cuda->found.device),
            "cuDevicePrimaryCtxRetain", "the context of device %d, %s", cuda->found.index,
            cuda->found.name);
    if (status) {
        cuda->context = NULL;
        return status;
    }
    status = burin_cuda_use(cuda, err);
    if (!status)
        status = set_limits(cuda, err);
    if (!status)
        status = burin_cuda_check(
                driver, err, driver->cuStreamCreate(&cuda->stream, CU_STREAM_NON_BLOCKING),
                "cuStreamCreate", "zeroing memory");
    if (!status)
        status = burin_cuda_set_clock(cuda, err);
    if (status)
        return status;

    cuda->device.ops = cuda->found.has_vmm ? &ops : &plain_ops;
    cuda->device.granule = PLAIN_GRANULE;
    return cuda->found.has_vmm ? burin_cuda_granule(cuda, &cuda->device.granule, err)
                               : BURIN_OK;
}

/* ---- The rest ------------------------------------------------------------------------ */

enum burin_status burin_cuda_local(
        struct burin_cuda *cuda, size_t *bytes, struct burin_error *err)
{
    const size_t stack = (size_t)cuda->local_bytes;
    *bytes = stack * (size_t)cuda->found.n_multiprocessors *
             (size_t)cuda->found.threads_per_multiprocessor;
    return set_limit(cuda, CU_LIMIT_STACK, stack, "the stack of each thread", err);
}

enum burin_status burin_cuda_pin(
        struct burin_cuda *cuda,
        size_t bytes,
        const char *owner,
        void **memory,
        struct burin_error *err)
{
    *memory = NULL;
    const enum burin_status status = burin_cuda_check(
            cuda->driver, err, cuda->driver->cuMemHostAlloc(memory, bytes, 0),
            "cuMemHostAlloc", "%s of the host's memory for %s",
            burin_human_bytes((int64_t)bytes).text, owner);
    if (status)
        *memory = NULL;
    if (status && err)
        err->on_device = false;
    return status;
}

void burin_cuda_unpin(struct burin_cuda *cuda, void *memory)
{
    if (memory)
        cuda->driver->cuMemFreeHost(memory);
}

void burin_cuda_close(struct burin_cuda *cuda)
{
    const struct burin_driver *driver = cuda->driver;
    if (cuda->context) {
        burin_multiplier_close(cuda->multiplier);
        for (int i = 0; i < cuda->n_modules; i++)
            driver->cuModuleUnload(cuda->modules[i]);
        if (cuda->clock)
            driver->cuEventDestroy_v2(cuda->clock);
        if (cuda->stream)
            driver->cuStreamDestroy_v2(cuda->stream);
        driver->cuCtxSetCurrent(NULL);
        driver->cuDevicePrimaryCtxRelease_v2(cuda->found.device);
    }
    burin_arena_close(&cuda->arena);
    *cuda = (struct burin_cuda){ .driver = NULL };
}
