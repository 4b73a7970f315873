/* This machine as a device: host memory, and a team of threads. */
#include "runtime/device/cpu.h"
#include "runtime/device/machine.h"
#include "tests/support/test.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { STACK = 1024 * 1024 };

struct machine {
    struct burin_cpu cpu;
    struct burin_ledger ledger;
    struct burin_queue queue;
};

static void open_machine(struct machine *m, int n_threads)
{
    burin_cpu_open(&m->cpu);
    assert_int_equal(
            burin_ledger_open(&m->ledger, &m->cpu.device, SIZE_MAX, NULL), BURIN_OK);
    assert_int_equal(
            burin_cpu_start(&m->cpu, &m->ledger, n_threads, STACK, NULL), BURIN_OK);
    assert_int_equal(burin_queue_open(&m->queue, &m->cpu.device, NULL), BURIN_OK);
}

static void close_machine(struct machine *m)
{
    burin_queue_close(&m->queue);
    burin_cpu_stop(&m->cpu);
    burin_ledger_close(&m->ledger);
}

static int count_threads(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/task");
    for (const struct dirent *entry; (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* A program of two phases: y[i] = i, then z[i] = y[n - 1 - i], which another thread wrote. */
struct two_phases {
    int n;
    int y[1000];
    int z[1000];
};

static void run_two_phases(const struct burin_team *team, void *argument)
{
    struct two_phases *p = argument;
    const struct burin_share share = burin_share(team, p->n);
    for (int i = share.begin; i < share.end; i++)
        p->y[i] = i;
    burin_barrier(team);
    for (int i = share.begin; i < share.end; i++)
        p->z[i] = p->y[p->n - 1 - i];
}

SPEC(a_team_of_any_size_runs_one_program_after_another)
{
    for (int n_threads = 1; n_threads <= 5; n_threads++) {
        struct machine m;
        struct two_phases p = { .n = 1000 };
        open_machine(&m, n_threads);

        for (int round = 0; round < 200; round++) {
            memset(p.z, 0xff, sizeof p.z);
            p.n = 1000 - round;
            burin_cpu_run(&m.cpu, run_two_phases, &p);
            for (int i = 0; i < p.n; i++)
                assert_int_equal(p.z[i], p.n - 1 - i);
        }
        close_machine(&m);
    }
}

static void run_call(const struct burin_team *team, const struct burin_call *call)
{
    atomic_fetch_add((atomic_int *)(void *)call->arena, 1 + call->n[BURIN_TOKENS]);
    (void)team;
}

SPEC(a_program_is_called_once_by_every_thread)
{
    static burin_run *const run[] = { NULL, run_call };
    const struct burin_program program = { .name = "step", .run = run };
    const struct burin_program tables_only = { .name = "step" };
    struct machine m;
    atomic_int sum = 0;
    struct burin_error err = { 0 };
    const struct burin_call call = { .arena = (uint8_t *)&sum,
                                     .n = { [BURIN_TOKENS] = 10 } };
    open_machine(&m, 3);

    assert_int_equal(burin_queue_run(&m.queue, &program, 1, &call, NULL), BURIN_OK);
    assert_int_equal(burin_queue_finish(&m.queue, NULL), BURIN_OK);

    assert_int_equal(sum, 33);
    assert_int_equal(burin_queue_run(&m.queue, &tables_only, 0, &call, &err), BURIN_EUSAGE);
    close_machine(&m);
}

SPEC(idle_threads_sleep)
{
    struct machine m;
    struct two_phases p = { .n = 10 };
    struct rusage before;
    struct rusage after;
    open_machine(&m, 4);
    burin_cpu_run(&m.cpu, run_two_phases, &p);

    getrusage(RUSAGE_SELF, &before);
    nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
    getrusage(RUSAGE_SELF, &after);

    const long used_us = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 +
                         after.ru_utime.tv_usec - before.ru_utime.tv_usec;
    assert_true(used_us < 50000); /* three threads that spin take 600000 */
    burin_cpu_run(&m.cpu, run_two_phases, &p);
    close_machine(&m);
}

SPEC(stacks_are_the_ledgers_and_threads_end_before_it)
{
    struct machine m;
    const int before = count_threads();
    open_machine(&m, 3);
    const struct burin_owner *threads = burin_ledger_owner(&m.ledger, "threads");
    assert_int_equal(threads->obtained, 2 * STACK);
    assert_int_equal(count_threads(), before + 2);

    close_machine(&m);

    assert_int_equal(count_threads(), before);
    burin_cpu_stop(&m.cpu);
}

SPEC(a_team_that_does_not_fit_starts_no_thread)
{
    struct burin_cpu cpu;
    struct burin_ledger ledger;
    struct burin_error err = { 0 };
    const int before = count_threads();
    burin_cpu_open(&cpu);
    burin_ledger_open(&ledger, &cpu.device, STACK, NULL);

    assert_int_equal(burin_cpu_start(&cpu, &ledger, 3, STACK, &err), BURIN_ENOMEM);

    assert_string_equal(
            err.message, "threads needs 2097152 bytes, the device has 1048576 left");
    assert_int_equal(count_threads(), before);
    assert_int_equal(burin_cpu_start(&cpu, &ledger, 0, STACK, &err), BURIN_EUSAGE);
    burin_ledger_close(&ledger);
}

SPEC(large_memory_begins_on_a_huge_page_and_is_zeroed)
{
    static const size_t sizes[] = { 4096, 8192, 2 << 20, (2 << 20) + 4096, 5 << 20 };
    struct machine m;
    open_machine(&m, 2);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t address;
        assert_int_equal(
                burin_ledger_take(&m.ledger, "arena", sizes[i], &address, NULL), BURIN_OK);

        uint8_t *bytes = burin_device_host(&m.cpu.device, address);
        assert_int_equal(address % (sizes[i] < 2 << 20 ? 4096 : 2 << 20), 0);
        assert_int_equal(bytes[0] | bytes[sizes[i] - 1], 0);
        bytes[sizes[i] - 1] = 1;
    }
    close_machine(&m);
}

SPEC(fill_and_copies_reach_every_byte_and_none_beside)
{
    struct machine m;
    uint64_t address;
    const size_t n = (4 << 20) + 4096;
    open_machine(&m, 3);
    burin_ledger_take(&m.ledger, "arena", n, &address, NULL);
    const uint8_t *bytes = burin_device_host(&m.cpu.device, address);

    burin_queue_fill(&m.queue, address + 1, 7, n - 2, NULL);
    for (size_t i = 1; i < n - 1; i++)
        if (bytes[i] != 7)
            fail_msg("byte %zu is %d", i, bytes[i]);
    assert_int_equal(bytes[0] | bytes[n - 1], 0);

    char text[6];
    burin_queue_copy_in(&m.queue, address + 3, "burin", 6, NULL);
    burin_queue_copy_out(&m.queue, text, address + 3, 6, NULL);
    assert_string_equal(text, "burin");
    close_machine(&m);
}

SPEC(a_machine_has_cores_and_memory)
{
    size_t available;
    size_t total;
    assert_int_equal(burin_machine_memory(&available, &total, NULL), BURIN_OK);
    assert_in_range(available, 1, total);
    assert_in_range(burin_machine_processors(), 1, sysconf(_SC_NPROCESSORS_ONLN));
    assert_in_range(burin_machine_cores(), 1, burin_machine_processors());
}

static const struct burin_family families[] = {
    { .name = "unknown", .cpu_feature = 1000 },
    { .name = "portable" },
    { .name = "portable", .exact = true },
    { .name = "slow" },
};
static const struct burin_model model = { .name = "m",
                                          .n_families = 4,
                                          .families = families };

SPEC(the_first_family_that_the_processor_runs_is_chosen)
{
    const struct burin_family *family;
    assert_int_equal(burin_machine_family(&model, NULL, false, &family, NULL), BURIN_OK);
    assert_ptr_equal(family, &families[1]);
    assert_int_equal(burin_machine_family(&model, NULL, true, &family, NULL), BURIN_OK);
    assert_ptr_equal(family, &families[2]);
    assert_int_equal(burin_machine_family(&model, "slow", false, &family, NULL), BURIN_OK);
    assert_ptr_equal(family, &families[3]);
}

SPEC(a_family_that_is_not_there_or_not_for_this_processor_is_refused_by_name)
{
    const struct burin_family *family;
    struct burin_error err = { 0 };
    assert_int_equal(
            burin_machine_family(&model, "avx3", false, &family, &err), BURIN_EUSAGE);
    assert_string_equal(
            err.message, "m has no family avx3, it has: unknown, portable, slow");
    assert_int_equal(
            burin_machine_family(&model, "unknown", false, &family, &err), BURIN_EUSAGE);
    assert_non_null(
            strstr(err.message, "m was built for unknown, which this processor lacks"));
    assert_int_equal(
            burin_machine_family(&model, "slow", true, &family, &err), BURIN_EUSAGE);
    assert_string_equal(
            err.message,
            "m has no family slow with --exact, it has: unknown, portable, slow");
}
