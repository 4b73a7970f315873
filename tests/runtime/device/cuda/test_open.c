/* Machines without CUDA libraries, with libraries but no driver, with a driver too old,
 * without NVRTC: each is told in one sentence with what to do. */
#include "runtime/device/cuda/open.h"
#include "tests/support/test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A library that the build made of fake_NAME.c. */
static void name_fake(const char *variable, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/fake_%s.so", getenv("BURIN_BIN"), name);
    setenv(variable, path, 1);
}

static void with_driver(const char *init, const char *version)
{
    name_fake("BURIN_CUDA_DRIVER", "driver");
    setenv("FAKE_INIT", init, 1);
    setenv("FAKE_VERSION", version, 1);
}

static void refused(const char *words)
{
    struct burin_driver driver;
    struct burin_error err = { 0 };

    assert_int_equal(burin_driver_open(&driver, &err), BURIN_EMISSING);

    assert_null(driver.library);
    if (!strstr(err.message, words))
        fail_msg("\"%s\" does not say \"%s\"", err.message, words);
}

SPEC(a_driver_that_answers_is_opened_with_every_function)
{
    with_driver("0", "12040");
    struct burin_driver driver;

    assert_int_equal(burin_driver_open(&driver, NULL), BURIN_OK);

#define THERE(name, arguments) assert_non_null((void *)(uintptr_t)driver.name);
    BURIN_DRIVER_CALLS(THERE)
    assert_non_null(strstr(driver.found, "fake_driver.so"));
    burin_driver_close(&driver);
    assert_null(driver.library);
}

SPEC(a_driver_that_is_named_and_does_not_open_is_told_with_its_variable)
{
    setenv("BURIN_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
    refused("BURIN_CUDA_DRIVER names /nowhere/libcuda.so.1, which does not open: ");
}

SPEC(without_a_library_it_says_what_is_not_there_and_to_install_it)
{
    unsetenv("BURIN_CUDA_DRIVER");
    void *library = dlopen("libcuda.so.1", RTLD_LAZY);
    if (library)
        dlclose(library);
    SKIP_UNLESS(!library);
    refused("NVIDIA's driver is not there (libcuda.so.1: ");
    refused("install it");
}

SPEC(a_stub_of_the_toolkit_is_no_driver)
{
    with_driver("34", "0");
    refused("stub");
    refused("LD_LIBRARY_PATH");
}

SPEC(the_toolkits_own_stub_is_known)
{
    const char *stub = "/usr/local/cuda/lib64/stubs/libcuda.so";
    FILE *file = fopen(stub, "rb");
    SKIP_UNLESS(file != NULL);
    fclose(file);
    setenv("BURIN_CUDA_DRIVER", stub, 1);

    refused("stub");
}

SPEC(a_driver_too_old_is_told_what_is_found_and_needed)
{
    with_driver("0", "11080");
    refused("is of CUDA 11.8, 12.4 or later is needed");
}

SPEC(a_driver_without_a_gpu_says_so)
{
    with_driver("100", "13000");
    refused("no GPU that we may use");
}

SPEC(a_library_that_does_not_match_its_kernel_module_asks_for_a_restart)
{
    with_driver("803", "13000");
    refused("restart the machine");
}

SPEC(another_failure_has_the_drivers_name_for_it)
{
    with_driver("802", "13000");
    refused("cuInit");
    refused("CUDA_ERROR_SYSTEM_NOT_READY (802)");
}

SPEC(a_library_that_is_no_driver_is_not_called)
{
    name_fake("BURIN_CUDA_DRIVER", "nvrtc");
    refused("it is no CUDA driver");
}

SPEC(nvrtc_is_opened_where_a_variable_says)
{
    name_fake("BURIN_NVRTC", "nvrtc");
    setenv("FAKE_VERSION", "13", 1);
    struct burin_nvrtc nvrtc;

    assert_int_equal(burin_nvrtc_open(&nvrtc, 13000, NULL), BURIN_OK);

    assert_non_null(strstr(nvrtc.found, "fake_nvrtc.so"));
    burin_nvrtc_close(&nvrtc);
}

SPEC(nvrtc_that_is_not_there_names_the_variable)
{
    setenv("BURIN_NVRTC", "/nowhere/libnvrtc.so", 1);
    struct burin_nvrtc nvrtc;
    struct burin_error err = { 0 };

    assert_int_equal(burin_nvrtc_open(&nvrtc, 0, &err), BURIN_EMISSING);

    assert_non_null(strstr(err.message, "BURIN_NVRTC names /nowhere/libnvrtc.so"));
    assert_null(nvrtc.library);
}

SPEC(nvrtc_newer_than_the_driver_would_make_code_that_it_does_not_load)
{
    name_fake("BURIN_NVRTC", "nvrtc");
    setenv("FAKE_VERSION", "14", 1);
    struct burin_nvrtc nvrtc;
    struct burin_error err = { 0 };

    assert_int_equal(burin_nvrtc_open(&nvrtc, 13020, &err), BURIN_EMISSING);

    assert_non_null(strstr(err.message, "NVRTC 14.1"));
    assert_non_null(strstr(err.message, "driver of CUDA 13"));
}

SPEC(cublaslt_is_opened_where_a_variable_says)
{
    name_fake("BURIN_CUBLASLT", "cublaslt");
    setenv("FAKE_VERSION", "13", 1);
    struct burin_cublaslt cublaslt;

    assert_int_equal(burin_cublaslt_open(&cublaslt, 13000, NULL), BURIN_OK);

    assert_non_null(strstr(cublaslt.found, "fake_cublaslt.so"));
    burin_cublaslt_close(&cublaslt);
    assert_null(cublaslt.library);
}

SPEC(cublaslt_that_is_not_there_or_does_not_suit_says_what_does)
{
    struct burin_cublaslt cublaslt;
    struct burin_error err = { 0 };

    setenv("BURIN_CUBLASLT", "/nowhere/libcublasLt.so", 1);
    assert_int_equal(burin_cublaslt_open(&cublaslt, 0, &err), BURIN_EMISSING);
    assert_non_null(strstr(err.message, "BURIN_CUBLASLT names /nowhere/libcublasLt.so"));

    name_fake("BURIN_CUBLASLT", "nvrtc");
    assert_int_equal(burin_cublaslt_open(&cublaslt, 0, &err), BURIN_EMISSING);
    assert_non_null(strstr(err.message, "it is no cuBLASLt"));

    name_fake("BURIN_CUBLASLT", "cublaslt");
    setenv("FAKE_VERSION", "14", 1);
    assert_int_equal(burin_cublaslt_open(&cublaslt, 13020, &err), BURIN_EMISSING);
    assert_non_null(strstr(err.message, "install cuBLASLt 13"));
}

SPEC(nvml_that_is_not_there_is_a_status_and_no_more)
{
    setenv("BURIN_NVML", "/nowhere/libnvidia-ml.so.1", 1);
    struct burin_nvml nvml;

    assert_int_equal(burin_nvml_open(&nvml, NULL), BURIN_EMISSING);

    burin_nvml_close(&nvml);
}

SPEC(closing_what_was_never_opened_does_nothing)
{
    struct burin_driver driver = { 0 };
    struct burin_nvrtc nvrtc = { 0 };
    struct burin_nvml nvml = { 0 };
    burin_driver_close(&driver);
    burin_nvrtc_close(&nvrtc);
    burin_nvml_close(&nvml);
}
