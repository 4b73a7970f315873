/* runtime/device/cuda/memory.c -- Memory of a GPU: addresses, what lies behind them, and
 * the account of which parts were mapped, since each must be unmapped as it was mapped. */
#include "runtime/device/cuda/errors.h"
#include "runtime/device/cuda/parts.h"

#include "runtime/base/units.h"

#include <stdio.h>

struct burin_cuda_mapping {
    uint64_t address;
    size_t bytes;
    struct burin_cuda_mapping *next;
};

/* "16.9 GiB for weights" */
struct request {
    char text[128];
};

static struct request request(const struct burin_cuda *cuda, size_t bytes)
{
    struct request r;
    snprintf(
            r.text, sizeof r.text, "%s for %s", burin_human_bytes((int64_t)bytes).text,
            cuda->device.owner ? cuda->device.owner : "its caller");
    return r;
}

static struct burin_cu_memory on_this_device(const struct burin_cuda *cuda)
{
    return (struct burin_cu_memory){
        .type = CU_MEMORY_PINNED,
        .location = { .type = CU_LOCATION_DEVICE, .id = cuda->found.device },
    };
}

enum burin_status burin_cuda_granule(
        struct burin_cuda *cuda, size_t *granule, struct burin_error *err)
{
    const struct burin_cu_memory memory = on_this_device(cuda);
    return burin_cuda_check(
            cuda->driver, err,
            cuda->driver->cuMemGetAllocationGranularity(
                    granule, &memory, CU_GRANULE_WISHED),
            "cuMemGetAllocationGranularity", "how memory of device %d is divided",
            cuda->found.index);
}

enum burin_status burin_cuda_memory(
        struct burin_device *device,
        size_t *available,
        size_t *total,
        struct burin_error *err)
{
    const struct burin_cuda *cuda = burin_cuda_of(device);
    return burin_cuda_check(
            cuda->driver, err, cuda->driver->cuMemGetInfo_v2(available, total),
            "cuMemGetInfo", "how much memory of device %d is free", cuda->found.index);
}

/* Memory that was obtained is zeroed before anybody has its address. */
static enum burin_status zero(
        struct burin_cuda *cuda, uint64_t address, size_t bytes, struct burin_error *err)
{
    const struct burin_driver *driver = cuda->driver;
    const enum burin_status status = burin_cuda_check(
            driver, err, driver->cuMemsetD8Async(address, 0, bytes, cuda->stream),
            "cuMemsetD8Async", "zeroing %s", request(cuda, bytes).text);
    if (status)
        return status;
    return burin_cuda_check(
            driver, err, driver->cuStreamSynchronize(cuda->stream), "cuStreamSynchronize",
            "zeroing %s", request(cuda, bytes).text);
}

/* ---- Addresses first ----------------------------------------------------------------- */

enum burin_status burin_cuda_reserve(
        struct burin_device *device,
        size_t bytes,
        uint64_t *address,
        struct burin_error *err)
{
    const struct burin_cuda *cuda = burin_cuda_of(device);
    const enum burin_status status = burin_cuda_check(
            cuda->driver, err,
            cuda->driver->cuMemAddressReserve(address, bytes, device->granule, 0, 0),
            "cuMemAddressReserve", "addresses of %s", request(cuda, bytes).text);
    if (status && err)
        err->on_device = false; /* no memory is behind them yet */
    return status;
}

static struct burin_cuda_mapping *new_mapping(struct burin_cuda *cuda)
{
    struct burin_cuda_mapping *mapping = cuda->spare_mappings;
    if (!mapping)
        return BURIN_TAKE(&cuda->arena, 1, struct burin_cuda_mapping);
    cuda->spare_mappings = mapping->next;
    return mapping;
}

/* Put new memory behind the addresses; the mapping alone holds it from then on. */
static enum burin_status map(
        struct burin_cuda *cuda, uint64_t address, size_t bytes, struct burin_error *err)
{
    const struct burin_driver *driver = cuda->driver;
    const struct burin_cu_memory memory = on_this_device(cuda);
    const struct burin_cu_access access = {
        .location = memory.location,
        .flags = CU_ACCESS_READ_WRITE,
    };
    unsigned long long handle = 0;
    enum burin_status status = burin_cuda_check(
            driver, err, driver->cuMemCreate(&handle, bytes, &memory, 0), "cuMemCreate",
            "%s", request(cuda, bytes).text);
    if (status)
        return status;

    status = burin_cuda_check(
            driver, err, driver->cuMemMap(address, bytes, 0, handle, 0), "cuMemMap", "%s",
            request(cuda, bytes).text);
    const int released = driver->cuMemRelease(handle);
    if (status)
        return status;
    status = burin_cuda_check(
            driver, err, released, "cuMemRelease", "%s, now held by its addresses",
            request(cuda, bytes).text);
    if (!status)
        status = burin_cuda_check(
                driver, err, driver->cuMemSetAccess(address, bytes, &access, 1),
                "cuMemSetAccess", "%s", request(cuda, bytes).text);
    if (!status)
        status = zero(cuda, address, bytes, err);
    if (status) {
        driver->cuStreamSynchronize(cuda->stream); /* zeroing may be under way */
        driver->cuMemUnmap(address, bytes);
    }
    return status;
}

enum burin_status burin_cuda_back(
        struct burin_device *device,
        uint64_t address,
        size_t bytes,
        struct burin_error *err)
{
    struct burin_cuda *cuda = burin_cuda_of(device);
    struct burin_cuda_mapping *mapping = new_mapping(cuda);
    if (!mapping)
        return burin_fail(
                err, BURIN_ENOMEM, "no host memory to note %s", request(cuda, bytes).text);

    const enum burin_status status = map(cuda, address, bytes, err);
    struct burin_cuda_mapping **list = status ? &cuda->spare_mappings : &cuda->mappings;
    *mapping = (struct burin_cuda_mapping){
        .address = address,
        .bytes = bytes,
        .next = *list,
    };
    *list = mapping;
    return status;
}

void burin_cuda_unreserve(struct burin_device *device, uint64_t address, size_t bytes)
{
    struct burin_cuda *cuda = burin_cuda_of(device);
    struct burin_cuda_mapping **at = &cuda->mappings;

    while (*at) {
        struct burin_cuda_mapping *mapping = *at;
        if (mapping->address < address || mapping->address - address >= bytes) {
            at = &mapping->next;
            continue;
        }
        cuda->driver->cuMemUnmap(mapping->address, mapping->bytes);
        *at = mapping->next;
        mapping->next = cuda->spare_mappings;
        cuda->spare_mappings = mapping;
    }
    cuda->driver->cuMemAddressFree(address, bytes);
}

enum burin_status burin_cuda_obtain(
        struct burin_device *device,
        size_t bytes,
        uint64_t *address,
        struct burin_error *err)
{
    uint64_t reserved = 0;
    enum burin_status status = burin_cuda_reserve(device, bytes, &reserved, err);
    if (status)
        return status;
    status = burin_cuda_back(device, reserved, bytes, err);
    if (status)
        burin_cuda_unreserve(device, reserved, bytes);
    else
        *address = reserved;
    return status;
}

/* ---- Without ------------------------------------------------------------------------- */

enum burin_status burin_cuda_plain_obtain(
        struct burin_device *device,
        size_t bytes,
        uint64_t *address,
        struct burin_error *err)
{
    struct burin_cuda *cuda = burin_cuda_of(device);
    uint64_t obtained = 0;
    enum burin_status status = burin_cuda_check(
            cuda->driver, err, cuda->driver->cuMemAlloc_v2(&obtained, bytes), "cuMemAlloc",
            "%s", request(cuda, bytes).text);
    if (status)
        return status;
    status = zero(cuda, obtained, bytes, err);
    if (status)
        cuda->driver->cuMemFree_v2(obtained);
    else
        *address = obtained;
    return status;
}

void burin_cuda_plain_release(struct burin_device *device, uint64_t address, size_t bytes)
{
    (void)bytes;
    burin_cuda_of(device)->driver->cuMemFree_v2(address);
}
