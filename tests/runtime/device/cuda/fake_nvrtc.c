/* A library that looks like NVRTC of CUDA $FAKE_VERSION, as "14"; it compiles nothing. */
#define nvrtcVersion other_version
#include "runtime/device/cuda/nvrtc.h"

#include <stdlib.h>

#define DEFINE(name, result, arguments)                                                    \
    result name arguments;                                                                 \
    result name arguments                                                                  \
    {                                                                                      \
        return 0;                                                                          \
    }
BURIN_NVRTC_CALLS(DEFINE)
#undef nvrtcVersion

int nvrtcVersion(int *major, int *minor);
int nvrtcVersion(int *major, int *minor)
{
    const char *text = getenv("FAKE_VERSION");
    *major = text ? atoi(text) : 13;
    *minor = 1;
    return 0;
}
