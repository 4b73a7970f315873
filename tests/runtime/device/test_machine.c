#include "runtime/device/machine.h"
#include "tests/runtime/plan/vision_model.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a child says of its memory whose address space is limited to what it uses and `more`. */
static int64_t available_with(int64_t more, int64_t *total)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        int64_t said[2] = { -1, -1 };
        long pages = 0;
        FILE *statm = fopen("/proc/self/statm", "r");
        if (statm && fscanf(statm, "%ld", &pages) == 1) {
            const rlim_t used = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
            const struct rlimit limit = { used + (rlim_t)more, RLIM_INFINITY };
            struct burin_card card;
            if (!setrlimit(RLIMIT_AS, &limit) && !burin_machine_card(&card, NULL)) {
                said[0] = card.available_bytes;
                said[1] = card.total_bytes;
            }
        }
        _exit(write(ends[1], said, sizeof said) != sizeof said);
    }
    int64_t said[2];
    assert_int_equal(read(ends[0], said, sizeof said), sizeof said);
    waitpid(child, NULL, 0);
    close(ends[0]);
    close(ends[1]);
    *total = said[1];
    return said[0];
}

SPEC(a_limit_of_the_address_space_bounds_what_is_available)
{
    struct burin_card free;
    int64_t total;
    assert_int_equal(burin_machine_card(&free, NULL), BURIN_OK);
    assert_in_range(available_with(64 * MIB, &total), 1, 64 * MIB);
    assert_true(total <= free.total_bytes);
    assert_true(
            free.available_bytes > 64 * MIB && free.available_bytes <= free.total_bytes);
}

/* GPUs' families stand in the same table, and no processor has them. */
SPEC(a_processor_takes_no_family_of_a_GPU)
{
    const struct burin_family families[] = { vision_families[0], tiny_families[0] };
    struct burin_model model = tiny_model;
    const struct burin_family *family;
    struct burin_error err;
    model.families = families;
    model.n_families = 2;
    assert_int_equal(burin_machine_family(&model, NULL, false, &family, NULL), BURIN_OK);
    assert_string_equal(family->name, "portable");

    assert_int_equal(
            burin_machine_family(&model, "sm120", false, &family, &err), BURIN_EUSAGE);
    assert_string_equal(
            err.message,
            "--target sm120 is of a GPU, and this is to be a processor's; tiny-q4_1 "
            "has: portable; for GPUs: sm120");
    assert_int_equal(
            burin_machine_family(&model, "sm90", false, &family, &err), BURIN_EUSAGE);
    assert_string_equal(
            err.message, "tiny-q4_1 has no family sm90, it has: portable; for GPUs: sm120");
}

SPEC(a_device_is_auto_or_cpu_or_a_GPU_by_its_number)
{
    int device;
    assert_true(
            !burin_machine_device("-dev", "cpu", &device, NULL) &&
            device == BURIN_DEVICE_CPU);
    assert_true(
            !burin_machine_device("-dev", "auto", &device, NULL) &&
            device == BURIN_DEVICE_AUTO);
    assert_true(!burin_machine_device("-dev", "cuda", &device, NULL) && device == 0);
    assert_true(!burin_machine_device("-dev", "cuda:7", &device, NULL) && device == 7);
    const char *const none[] = { "",        "gpu",    "CPU",     "cuda:",
                                 "cuda:-1", "cuda:x", "cuda:1 ", "cuda:99999999999999" };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (!burin_machine_device("-dev", none[i], &device, NULL))
            fail_msg("'%s' is %d", none[i], device);
}
