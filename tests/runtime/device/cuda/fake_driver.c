/* A library that looks like a driver, with no GPU: cuInit() and cuDriverGetVersion() answer
 * what $FAKE_INIT and $FAKE_VERSION say. A test opens it through $BURIN_CUDA_DRIVER. */
#define cuInit other_init
#define cuDriverGetVersion other_version
#define cuGetErrorName other_error_name
#include "runtime/device/cuda/driver.h"

#include <stdlib.h>

#define DEFINE(name, arguments)                                                            \
    int name arguments;                                                                    \
    int name arguments                                                                     \
    {                                                                                      \
        return 0;                                                                          \
    }
BURIN_DRIVER_CALLS(DEFINE)
#undef cuInit
#undef cuDriverGetVersion
#undef cuGetErrorName

static int number(const char *variable, int otherwise)
{
    const char *text = getenv(variable);
    return text ? atoi(text) : otherwise;
}

int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    return number("FAKE_INIT", (int)flags);
}

int cuDriverGetVersion(int *version);
int cuDriverGetVersion(int *version)
{
    *version = number("FAKE_VERSION", 13000);
    return 0;
}

int cuGetErrorName(int result, const char **name);
int cuGetErrorName(int result, const char **name)
{
    *name = "CUDA_ERROR_SYSTEM_NOT_READY";
    return result == 802 ? 0 : CU_INVALID_VALUE;
}
