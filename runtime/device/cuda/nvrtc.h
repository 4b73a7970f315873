/* runtime/device/cuda/nvrtc.h -- NVIDIA's run-time compiler as a table of functions, like
 * driver.h. It needs neither a GPU nor a driver.
 *
 * Errors   0, or a number that nvrtcGetErrorString() names.
 * Threads  Different programs may be compiled at once. */
#ifndef BURIN_DEVICE_CUDA_NVRTC_H
#define BURIN_DEVICE_CUDA_NVRTC_H

#include <stddef.h>

struct burin_nvrtc_program; /* the library's own */

enum { NVRTC_OK = 0, NVRTC_OUT_OF_MEMORY = 1, NVRTC_COMPILATION = 6 };

/* clang-format off */
#define BURIN_NVRTC_CALLS(X)                                                               \
    X(nvrtcVersion, int, (int *major, int *minor))                                         \
    X(nvrtcGetErrorString, const char *, (int result))                                     \
    X(nvrtcGetNumSupportedArchs, int, (int *n))                                            \
    X(nvrtcGetSupportedArchs, int, (int *archs)) /* 90 */                                  \
    X(nvrtcCreateProgram, int,                                                             \
      (struct burin_nvrtc_program **program, const char *text, const char *name,           \
       int n_headers, const char *const *headers, const char *const *names))               \
    X(nvrtcCompileProgram, int,                                                            \
      (struct burin_nvrtc_program *program, int n_options, const char *const *options))    \
    X(nvrtcGetCUBINSize, int, (struct burin_nvrtc_program *program, size_t *bytes))        \
    X(nvrtcGetCUBIN, int, (struct burin_nvrtc_program *program, char *cubin))              \
    X(nvrtcGetProgramLogSize, int, (struct burin_nvrtc_program *program, size_t *bytes))   \
    X(nvrtcGetProgramLog, int, (struct burin_nvrtc_program *program, char *log))           \
    X(nvrtcDestroyProgram, int, (struct burin_nvrtc_program **program))
/* clang-format on */

struct burin_nvrtc {
#define BURIN_CALL(name, result, arguments) result(*name) arguments;
    BURIN_NVRTC_CALLS(BURIN_CALL)
#undef BURIN_CALL
    void *library;  /* of dlopen, or NULL: a table of our own */
    void *builtins; /* opened before it, since it looks for them by bare name */
    char found[256];
};

#endif
