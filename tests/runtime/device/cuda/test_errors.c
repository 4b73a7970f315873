/* A result of the driver as a status and a message. */
#include "runtime/device/cuda/errors.h"
#include "tests/support/test.h"

static int error_name(int result, const char **name)
{
    *name = result == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : NULL;
    return result == 2 ? 0 : CU_INVALID_VALUE;
}

static int error_string(int result, const char **text)
{
    *text = result == 2 ? "out of memory" : NULL;
    return result == 2 ? 0 : CU_INVALID_VALUE;
}

static const struct burin_driver driver = {
    .cuGetErrorName = error_name,
    .cuGetErrorString = error_string,
};

SPEC(a_success_is_no_error)
{
    struct burin_error err = { .message = "untouched" };

    assert_int_equal(burin_cuda_check(&driver, &err, 0, "cuInit", "starting"), BURIN_OK);

    assert_string_equal(err.message, "untouched");
}

SPEC(a_message_has_the_call_what_it_was_for_the_owner_and_the_drivers_name)
{
    struct burin_error err = { 0 };

    assert_int_equal(
            burin_cuda_check(
                    &driver, &err, 2, "cuMemCreate", "%s for %s", "16.9 GiB", "weights"),
            BURIN_ENOMEM);

    assert_string_equal(
            err.message, "cuMemCreate, 16.9 GiB for weights: CUDA_ERROR_OUT_OF_MEMORY (2, "
                         "out of memory)");
}

SPEC(a_result_that_the_driver_does_not_know_has_its_number)
{
    struct burin_error err = { 0 };

    assert_int_equal(
            burin_cuda_check(&driver, &err, 777, "cuStreamSynchronize", "waiting"),
            BURIN_EIO);

    assert_string_equal(
            err.message,
            "cuStreamSynchronize, waiting: a result that the driver has no name for (777, "
            "no description)");
}
