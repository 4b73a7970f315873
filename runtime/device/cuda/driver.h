/* runtime/device/cuda/driver.h -- The CUDA driver as a table of functions: what we call of
 * it, with types of our own, so that a binary neither links the driver nor is built with
 * NVIDIA's headers.
 *
 * Tables   burin_driver_open() (open.h) fills one from libcuda; runtime/device/virtual
 *          fills one with functions of its own. Nothing else in the runtime tells them
 *          apart.
 * Names    Those that the library exports, not those that cuda.h's macros hide: plain
 *          cuMemAlloc is the function of CUDA 3. tests/gpu holds the list to the toolkit's
 *          stub library and the arguments to its cuda.h.
 * Types    An address is a uint64_t, an enum of NVIDIA's an int.
 * Errors   0, or a number that burin_cuda_failed() (errors.h) makes a message of.
 * Threads  As the driver has it: everything below is safe from any thread, a context is
 *          current to one thread at a time that called cuCtxSetCurrent. */
#ifndef BURIN_DEVICE_CUDA_DRIVER_H
#define BURIN_DEVICE_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

/* ---- Types --------------------------------------------------------------------------- */

struct burin_cu_context; /* all of them the driver's own */
struct burin_cu_module;
struct burin_cu_function;
struct burin_cu_stream;
struct burin_cu_event;
struct burin_cu_graph;
struct burin_cu_exec;
struct burin_cu_node;

struct burin_cu_uuid {
    char bytes[16];
};

struct burin_cu_location {
    int type; /* CU_LOCATION_DEVICE */
    int id;   /* of the device, as cuDeviceGet() counts */
};

/* What kind of memory cuMemCreate() is to make. */
struct burin_cu_memory {
    int type; /* CU_MEMORY_PINNED: stays where it is */
    int exported;
    struct burin_cu_location location;
    void *windows;
    struct {
        unsigned char compression;
        unsigned char rdma;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
};

struct burin_cu_access {
    struct burin_cu_location location;
    int flags; /* CU_ACCESS_READ_WRITE */
};

enum { CU_LOCATION_DEVICE = 1, CU_MEMORY_PINNED = 1, CU_ACCESS_READ_WRITE = 3 };
enum { CU_GRANULE_LEAST = 0, CU_GRANULE_WISHED = 1 }; /* of cuMemGetAllocationGranularity */

/* Results that mean something to us; errors.c asks the driver for the others' names. */
enum burin_cu_result {
    CU_OK = 0,
    CU_INVALID_VALUE = 1,
    CU_OUT_OF_MEMORY = 2,
    CU_NOT_INITIALIZED = 3,
    CU_STUB_LIBRARY = 34, /* the toolkit's libcuda.so, which is for linking only */
    CU_NO_DEVICE = 100,
    CU_INVALID_DEVICE = 101,
    CU_INVALID_IMAGE = 200,
    CU_INVALID_CONTEXT = 201,
    CU_NO_BINARY_FOR_GPU = 209,
    CU_UNSUPPORTED_LIMIT = 215,
    CU_INVALID_HANDLE = 400,
    CU_NOT_FOUND = 500,
    CU_NOT_READY = 600,
    CU_ILLEGAL_ADDRESS = 700,
    CU_LAUNCH_OUT_OF_RESOURCES = 701,
    CU_LAUNCH_FAILED = 719,
    CU_NOT_PERMITTED = 800,
    CU_NOT_SUPPORTED = 801,
    CU_DRIVER_MISMATCH = 803, /* library and kernel module are of different versions */
    CU_CAPTURE_UNSUPPORTED = 900,
    CU_CAPTURE_INVALIDATED = 901,
    CU_CAPTURE_UNMATCHED = 903,
    CU_UNKNOWN = 999,
};

/* Of cuDeviceGetAttribute(). */
enum burin_cu_device_attribute {
    CU_DEVICE_MAX_SHARED_PER_BLOCK = 8, /* without asking for more */
    CU_DEVICE_MULTIPROCESSORS = 16,
    CU_DEVICE_INTEGRATED = 18, /* shares the host's memory */
    CU_DEVICE_MEMORY_CLOCK_KHZ = 36,
    CU_DEVICE_BUS_BITS = 37,
    CU_DEVICE_L2_BYTES = 38,
    CU_DEVICE_THREADS_PER_MULTIPROCESSOR = 39,
    CU_DEVICE_SM_MAJOR = 75,
    CU_DEVICE_SM_MINOR = 76,
    CU_DEVICE_MAX_SHARED_OPT_IN = 97,
    CU_DEVICE_HAS_VMM = 102,
};

/* Of cuFuncGetAttribute() and cuFuncSetAttribute(). */
enum burin_cu_function_attribute {
    CU_FUNCTION_MAX_THREADS = 0,
    CU_FUNCTION_STATIC_SHARED_BYTES = 1,
    CU_FUNCTION_LOCAL_BYTES = 3,
    CU_FUNCTION_REGISTERS = 4,
    CU_FUNCTION_MAX_DYNAMIC_SHARED_BYTES = 8, /* may be set */
};

/* Of cuCtxSetLimit(). */
enum burin_cu_limit { CU_LIMIT_STACK = 0, CU_LIMIT_PRINTF = 1, CU_LIMIT_HEAP = 2 };

enum { CU_STREAM_NON_BLOCKING = 1 }; /* does not wait for the default stream */
enum { CU_CAPTURE_THIS_THREAD = 1 }; /* what this thread must not call while it captures */
enum { CU_EVENT_TIMED = 0, CU_EVENT_BLOCKING = 1, CU_EVENT_UNTIMED = 2 };

/* ---- Functions ----------------------------------------------------------------------- */

/* X(name, arguments); each returns enum burin_cu_result as an int. A driver that lacks one
 * is too old. (clang-format takes the stars of a macro's arguments for products.) */
/* clang-format off */
#define BURIN_DRIVER_CALLS(X)                                                              \
    X(cuInit, (unsigned flags))                                                            \
    X(cuDriverGetVersion, (int *version))                                                  \
    X(cuGetErrorName, (int result, const char **name))                                     \
    X(cuGetErrorString, (int result, const char **text))                                   \
    X(cuDeviceGetCount, (int *n))                                                          \
    X(cuDeviceGet, (int *device, int ordinal))                                             \
    X(cuDeviceGetName, (char *name, int length, int device))                               \
    X(cuDeviceGetUuid_v2, (struct burin_cu_uuid *uuid, int device))                        \
    X(cuDeviceGetAttribute, (int *value, int attribute, int device))                       \
    X(cuDeviceTotalMem_v2, (size_t *bytes, int device))                                    \
    X(cuDeviceGetPCIBusId, (char *id, int length, int device))                             \
    X(cuDevicePrimaryCtxRetain, (struct burin_cu_context **context, int device))           \
    X(cuDevicePrimaryCtxRelease_v2, (int device))                                          \
    X(cuCtxSetCurrent, (struct burin_cu_context *context))                                 \
    X(cuCtxSetLimit, (int limit, size_t value))                                            \
    X(cuCtxGetLimit, (size_t *value, int limit))                                           \
    X(cuCtxSynchronize, (void))                                                            \
    X(cuMemGetInfo_v2, (size_t *available, size_t *total))                                 \
    X(cuMemAlloc_v2, (uint64_t *address, size_t bytes))                                    \
    X(cuMemFree_v2, (uint64_t address))                                                    \
    X(cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags))                       \
    X(cuMemFreeHost, (void *memory))                                                       \
    X(cuMemGetAllocationGranularity,                                                       \
      (size_t *bytes, const struct burin_cu_memory *memory, int which))                    \
    X(cuMemAddressReserve,                                                                 \
      (uint64_t *address, size_t bytes, size_t align, uint64_t at,                         \
       unsigned long long flags))                                                          \
    X(cuMemAddressFree, (uint64_t address, size_t bytes))                                  \
    X(cuMemCreate,                                                                         \
      (unsigned long long *handle, size_t bytes, const struct burin_cu_memory *memory,     \
       unsigned long long flags))                                                          \
    X(cuMemRelease, (unsigned long long handle))                                           \
    X(cuMemMap,                                                                            \
      (uint64_t address, size_t bytes, size_t offset, unsigned long long handle,           \
       unsigned long long flags))                                                          \
    X(cuMemUnmap, (uint64_t address, size_t bytes))                                        \
    X(cuMemSetAccess,                                                                      \
      (uint64_t address, size_t bytes, const struct burin_cu_access *access, size_t n))    \
    X(cuMemcpyHtoDAsync_v2,                                                                \
      (uint64_t to, const void *from, size_t bytes, struct burin_cu_stream *stream))       \
    X(cuMemcpyDtoHAsync_v2,                                                                \
      (void *to, uint64_t from, size_t bytes, struct burin_cu_stream *stream))             \
    X(cuMemcpyDtoDAsync_v2,                                                                \
      (uint64_t to, uint64_t from, size_t bytes, struct burin_cu_stream *stream))          \
    X(cuMemsetD8Async,                                                                     \
      (uint64_t to, unsigned char byte, size_t n, struct burin_cu_stream *stream))         \
    X(cuMemsetD32Async,                                                                    \
      (uint64_t to, unsigned word, size_t n, struct burin_cu_stream *stream))              \
    X(cuStreamCreate, (struct burin_cu_stream **stream, unsigned flags))                   \
    X(cuStreamDestroy_v2, (struct burin_cu_stream *stream))                                \
    X(cuStreamSynchronize, (struct burin_cu_stream *stream))                               \
    X(cuStreamQuery, (struct burin_cu_stream *stream))                                     \
    X(cuStreamWaitEvent,                                                                   \
      (struct burin_cu_stream *stream, struct burin_cu_event *event, unsigned flags))      \
    X(cuStreamBeginCapture_v2, (struct burin_cu_stream *stream, int mode))                 \
    X(cuStreamEndCapture,                                                                  \
      (struct burin_cu_stream *stream, struct burin_cu_graph **graph))                     \
    X(cuEventCreate, (struct burin_cu_event **event, unsigned flags))                      \
    X(cuEventDestroy_v2, (struct burin_cu_event *event))                                   \
    X(cuEventRecord, (struct burin_cu_event *event, struct burin_cu_stream *stream))       \
    X(cuEventSynchronize, (struct burin_cu_event *event))                                  \
    X(cuEventQuery, (struct burin_cu_event *event))                                        \
    X(cuEventElapsedTime,                                                                  \
      (float *ms, struct burin_cu_event *begin, struct burin_cu_event *end))               \
    X(cuModuleLoadData, (struct burin_cu_module **module, const void *image))              \
    X(cuModuleUnload, (struct burin_cu_module *module))                                    \
    X(cuModuleGetFunction,                                                                 \
      (struct burin_cu_function **function, struct burin_cu_module *module,                \
       const char *name))                                                                  \
    X(cuFuncGetAttribute,                                                                  \
      (int *value, int attribute, struct burin_cu_function *function))                     \
    X(cuFuncSetAttribute, (struct burin_cu_function *function, int attribute, int value))  \
    X(cuLaunchKernel,                                                                      \
      (struct burin_cu_function *function, unsigned grid_x, unsigned grid_y,               \
       unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,              \
       unsigned shared_bytes, struct burin_cu_stream *stream, void **arguments,            \
       void **extra))                                                                      \
    X(cuGraphGetNodes,                                                                     \
      (struct burin_cu_graph *graph, struct burin_cu_node **nodes, size_t *n))             \
    X(cuGraphInstantiateWithFlags,                                                         \
      (struct burin_cu_exec **exec, struct burin_cu_graph *graph,                          \
       unsigned long long flags))                                                          \
    X(cuGraphUpload, (struct burin_cu_exec *exec, struct burin_cu_stream *stream))         \
    X(cuGraphLaunch, (struct burin_cu_exec *exec, struct burin_cu_stream *stream))         \
    X(cuGraphExecDestroy, (struct burin_cu_exec *exec))                                    \
    X(cuGraphDestroy, (struct burin_cu_graph *graph))
/* clang-format on */

struct burin_driver {
#define BURIN_CALL(name, arguments) int(*name) arguments;
    BURIN_DRIVER_CALLS(BURIN_CALL)
#undef BURIN_CALL
    void *library;   /* of dlopen, or NULL: a virtual GPU's table */
    char found[256]; /* where: "libcuda.so.1", or the path that was given */
};

#endif
