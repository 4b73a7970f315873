/* runtime/device/cuda/nvml.h -- NVIDIA's management library as a table of functions, like
 * driver.h: what a GPU's memory looks like to all processes, before we have a context.
 *
 * Errors   0, or a number that nvmlErrorString() names. All of it may be refused (in
 *          containers, under MIG), so nothing may depend on it but messages. */
#ifndef BURIN_DEVICE_CUDA_NVML_H
#define BURIN_DEVICE_CUDA_NVML_H

#include <stddef.h>

struct burin_nvml_device; /* the library's own */

/* `version` is BURIN_NVML_MEMORY; bytes. */
struct burin_nvml_memory {
    unsigned version;
    unsigned long long total;
    unsigned long long reserved; /* by driver and firmware */
    unsigned long long available;
    unsigned long long used;
};
#define BURIN_NVML_MEMORY ((unsigned)sizeof(struct burin_nvml_memory) | 2U << 24)

struct burin_nvml_process {
    unsigned pid;
    unsigned long long used; /* bytes; all ones where it is not told */
    unsigned gpu_instance;
    unsigned compute_instance;
};

enum { NVML_OK = 0, NVML_INSUFFICIENT_SIZE = 7 };

/* clang-format off */
#define BURIN_NVML_CALLS(X)                                                                \
    X(nvmlInit_v2, int, (void))                                                            \
    X(nvmlShutdown, int, (void))                                                           \
    X(nvmlErrorString, const char *, (int result))                                         \
    X(nvmlSystemGetDriverVersion, int, (char *version, unsigned length)) /* "580.65" */    \
    X(nvmlDeviceGetHandleByPciBusId_v2, int,                                               \
      (const char *id, struct burin_nvml_device **device))                                 \
    X(nvmlDeviceGetMemoryInfo_v2, int,                                                     \
      (struct burin_nvml_device *device, struct burin_nvml_memory *memory))                \
    X(nvmlDeviceGetComputeRunningProcesses_v3, int,                                        \
      (struct burin_nvml_device *device, unsigned *n,                                      \
       struct burin_nvml_process *processes))                                              \
    X(nvmlSystemGetProcessName, int, (unsigned pid, char *name, unsigned length))
/* clang-format on */

struct burin_nvml {
#define BURIN_CALL(name, result, arguments) result(*name) arguments;
    BURIN_NVML_CALLS(BURIN_CALL)
#undef BURIN_CALL
    void *library; /* of dlopen, or NULL: a table of our own */
};

#endif
