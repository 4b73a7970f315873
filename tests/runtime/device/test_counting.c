/* A device with a set amount of memory that counts and runs nothing. */
#include "runtime/device/counting.h"
#include "tests/support/test.h"

static void nothing(const struct burin_team *team, const struct burin_call *call)
{
    (void)team;
    (void)call;
    fail(); /* it must not be run */
}
static burin_run *const run[] = { nothing };
static const struct burin_program program = { .name = "step", .run = run };

SPEC(memory_is_counted_and_addresses_never_repeat)
{
    struct burin_counting counting;
    uint64_t first;
    uint64_t second;
    burin_counting_open(&counting, 1000, 10);

    assert_int_equal(burin_device_obtain(&counting.device, 600, &first, NULL), BURIN_OK);
    assert_int_equal(
            burin_device_obtain(&counting.device, 410, &second, NULL), BURIN_ENOMEM);
    burin_device_release(&counting.device, first, 600);
    assert_int_equal(burin_device_obtain(&counting.device, 410, &second, NULL), BURIN_OK);

    assert_true(second >= first + 600);
    assert_int_equal(counting.used, 410);
    assert_int_equal(counting.most_used, 600);
    assert_null(burin_device_host(&counting.device, second));
}

SPEC(programs_are_counted_and_not_run)
{
    struct burin_counting counting;
    struct burin_queue queue;
    const struct burin_call call = { .n = { [BURIN_TOKENS] = 17 } };
    burin_counting_open(&counting, 1000, 10);
    assert_int_equal(burin_queue_open(&queue, &counting.device, NULL), BURIN_OK);

    assert_int_equal(burin_queue_run(&queue, &program, 0, &call, NULL), BURIN_OK);
    assert_int_equal(burin_queue_copy_in(&queue, 0, NULL, 30, NULL), BURIN_OK);

    assert_int_equal(counting.n_runs, 1);
    assert_int_equal(counting.last_call.n[BURIN_TOKENS], 17);
    assert_int_equal(counting.bytes_copied, 30);
    burin_queue_close(&queue);
    burin_queue_close(&queue);
    assert_int_equal(counting.n_queues, 0);
}

SPEC(events_stand_behind_the_work_before_them)
{
    struct burin_counting counting;
    struct burin_queue queue;
    struct burin_event before = { 0 };
    struct burin_event after = { 0 };
    const struct burin_call call = { 0 };
    burin_counting_open(&counting, 1000, 10);
    burin_queue_open(&queue, &counting.device, NULL);
    assert_int_equal(burin_event_wait(&before, NULL), BURIN_EUSAGE);

    burin_event_record(&before, &queue, NULL);
    burin_queue_run(&queue, &program, 0, &call, NULL);
    burin_event_record(&after, &queue, NULL);

    assert_int_equal(burin_event_wait(&after, NULL), BURIN_OK);
    assert_true(after.ms > before.ms);
    burin_event_close(&before);
    burin_event_close(&after);
    burin_queue_close(&queue);
}
