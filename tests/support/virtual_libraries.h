/* tests/support/virtual_libraries.h -- In place of runtime/device/cuda/open.c: NVIDIA's libraries
 * are those of the virtual machine that is selected, and nothing is looked for. Include it once. */
#ifndef BURIN_TEST_VIRTUAL_LIBRARIES_H
#define BURIN_TEST_VIRTUAL_LIBRARIES_H

#include "runtime/device/cuda/open.h"
#include "runtime/device/virtual/virtual.h"

enum burin_status burin_driver_open(struct burin_driver *driver, struct burin_error *err)
{
    burin_virtual_tables(driver, NULL, NULL);
    const int result = driver->cuInit(0);
    if (!result)
        return BURIN_OK;
    return burin_fail(
            err, result == CU_OUT_OF_MEMORY ? BURIN_ENOMEM : BURIN_EMISSING, "cuInit: %d",
            result);
}

void burin_driver_close(struct burin_driver *driver)
{
    *driver = (struct burin_driver){ 0 };
}

bool burin_driver_is_named(void)
{
    return false;
}

static bool nvrtc_is_missing;

enum burin_status burin_nvrtc_open(
        struct burin_nvrtc *nvrtc, int driver_version, struct burin_error *err)
{
    (void)driver_version;
    if (nvrtc_is_missing)
        return burin_fail(err, BURIN_EMISSING, "NVRTC is not there");
    burin_virtual_tables(NULL, nvrtc, NULL);
    return BURIN_OK;
}

void burin_nvrtc_close(struct burin_nvrtc *nvrtc)
{
    *nvrtc = (struct burin_nvrtc){ 0 };
}

enum burin_status burin_nvml_open(struct burin_nvml *nvml, struct burin_error *err)
{
    burin_virtual_tables(NULL, NULL, nvml);
    const int result = nvml->nvmlInit_v2();
    return result ? burin_fail(err, BURIN_EMISSING, "nvmlInit_v2: %d", result) : BURIN_OK;
}

void burin_nvml_close(struct burin_nvml *nvml)
{
    if (nvml->nvmlShutdown)
        nvml->nvmlShutdown();
    *nvml = (struct burin_nvml){ 0 };
}

/* The virtual machine has none. */
enum burin_status burin_cublaslt_open(
        struct burin_cublaslt *cublaslt, int driver_version, struct burin_error *err)
{
    (void)driver_version;
    *cublaslt = (struct burin_cublaslt){ 0 };
    return burin_fail(err, BURIN_EMISSING, "a virtual GPU has no cuBLASLt");
}

void burin_cublaslt_close(struct burin_cublaslt *cublaslt)
{
    *cublaslt = (struct burin_cublaslt){ 0 };
}

#endif
