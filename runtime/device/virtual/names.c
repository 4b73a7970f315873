/* What errors are called. */
#include "runtime/device/virtual/state.h"

static const struct {
    int result;
    const char *name;
    const char *text;
} errors[] = {
    { CU_OK, "CUDA_SUCCESS", "no error" },
    { CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
    { CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
    { CU_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
    { CU_STUB_LIBRARY, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library" },
    { CU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
    { CU_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
    { CU_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid" },
    { CU_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
    { CU_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
      "no kernel image is available for execution on the device" },
    { CU_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
    { CU_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE",
      "the operation cannot be performed in the present state" },
    { CU_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
    { CU_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready" },
    { CU_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
      "an illegal memory access was encountered" },
    { CU_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
      "too many resources requested for launch" },
    { CU_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure" },
    { CU_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted" },
    { CU_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported" },
    { CU_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
      "operation not permitted when stream is capturing" },
    { CU_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
      "operation failed due to a previous error during capture" },
    { CU_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT",
      "operation not permitted on an event last recorded in a capturing stream" },
    { CU_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error" },
};
enum { N_ERRORS = sizeof errors / sizeof *errors };

static int find(int result)
{
    int i = 0;
    while (i < N_ERRORS && errors[i].result != result)
        i++;
    return i;
}

CALL(cuGetErrorName, NEEDS_NOTHING, (int result, const char **name), (result, name))
{
    const int i = find(result);
    *name = i < N_ERRORS ? errors[i].name : NULL;
    return i < N_ERRORS ? CU_OK : CU_INVALID_VALUE;
}

CALL(cuGetErrorString, NEEDS_NOTHING, (int result, const char **text), (result, text))
{
    const int i = find(result);
    *text = i < N_ERRORS ? errors[i].text : NULL;
    return i < N_ERRORS ? CU_OK : CU_INVALID_VALUE;
}
