/* A library that looks like cuBLASLt of CUDA $FAKE_VERSION, as "14"; it multiplies nothing. */
#define cublasLtGetVersion other_version
#include "runtime/device/cuda/cublaslt.h"

#include <stdlib.h>

#define DEFINE(name, result, arguments)                                                    \
    result name arguments;                                                                 \
    result name arguments                                                                  \
    {                                                                                      \
        return 0;                                                                          \
    }
BURIN_CUBLASLT_CALLS(DEFINE)
#undef cublasLtGetVersion

size_t cublasLtGetVersion(void);
size_t cublasLtGetVersion(void)
{
    const char *text = getenv("FAKE_VERSION");
    return (text ? (size_t)atoi(text) : 13) * 10000 + 1;
}
