/* runtime/device/cuda/open.h -- Find NVIDIA's libraries on this machine and fill our tables
 * from them. A binary needs none of them until here.
 *
 * Where    Each first where its variable says, a path: $BURIN_CUDA_DRIVER, $BURIN_NVRTC,
 *          $BURIN_CUBLASLT, $BURIN_NVML; there alone then. The driver and NVML otherwise by
 *          their names in the loader's path; NVRTC and cuBLASLt there, under /usr/local/cuda,
 *          and where the packages of PyPI put them, of the system or in $VIRTUAL_ENV.
 * Memory   A table is the caller's. Closing a zeroed one, or one of a virtual GPU, does
 *          nothing.
 * Errors   BURIN_EMISSING where a library is not there or lacks a function that we call:
 *          the message says what was looked for, and what to install. */
#ifndef BURIN_DEVICE_CUDA_OPEN_H
#define BURIN_DEVICE_CUDA_OPEN_H

#include "runtime/base/status.h"
#include "runtime/device/cuda/cublaslt.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/nvml.h"
#include "runtime/device/cuda/nvrtc.h"

#include <stdbool.h>

/* The least version of the driver that we run on: its graphs take 4 times less memory a
 * node than those before it. As cuDriverGetVersion() says it. */
enum { BURIN_LEAST_DRIVER = 12040 };

/* Opens the library and calls cuInit(). Also BURIN_EMISSING: the library is the toolkit's
 * stub, there is no device, or the driver is older than BURIN_LEAST_DRIVER. */
enum burin_status burin_driver_open(struct burin_driver *driver, struct burin_error *err);
void burin_driver_close(struct burin_driver *driver);

/* Whether $BURIN_CUDA_DRIVER says where: then a GPU is meant to be there. */
bool burin_driver_is_named(void);

/* The newest that makes code for a driver of that version, 13000; 0: the newest. */
enum burin_status burin_nvrtc_open(
        struct burin_nvrtc *nvrtc, int driver_version, struct burin_error *err);
void burin_nvrtc_close(struct burin_nvrtc *nvrtc);

/* Likewise: the newest that runs on a driver of that version. It's half a gigabyte, so only
 * for --fast-gemm. */
enum burin_status burin_cublaslt_open(
        struct burin_cublaslt *cublaslt, int driver_version, struct burin_error *err);
void burin_cublaslt_close(struct burin_cublaslt *cublaslt);

/* Opens the library and calls nvmlInit_v2(). */
enum burin_status burin_nvml_open(struct burin_nvml *nvml, struct burin_error *err);
void burin_nvml_close(struct burin_nvml *nvml);

#endif
