/* The device memory of an engine, taken as it was planned: rehearsed on a device that counts. */
#include "runtime/device/counting.h"
#include "runtime/engine/memory.h"
#include "tests/runtime/engine/fake_model.h"
#include "tests/support/test.h"

static struct burin_plan a_plan(int n_sequences, int64_t granule)
{
    struct burin_plan plan;
    const struct burin_plan_request request = {
        .model = &fake_model,
        .n_threads = 2,
        .n_sequences = n_sequences,
        .granule = granule,
    };
    assert_int_equal(burin_plan_make(&plan, &request, NULL), BURIN_OK);
    return plan;
}

SPEC(each_owner_gets_what_was_planned_and_the_device_gives_their_sum)
{
    for (int n_sequences = 1; n_sequences <= 7; n_sequences++)
        for (int granule = 1; granule <= 4096; granule *= 8) {
            static const char *const names[] = { "weights", "arena", "inputs", "kv" };
            const struct burin_plan plan = a_plan(n_sequences, granule);
            struct burin_counting counting;
            struct burin_ledger ledger;
            struct burin_memory memory;
            burin_counting_open(&counting, 1 << 20, (size_t)granule);
            burin_memory_open_ledger(&ledger, &counting.device, &plan, NULL);

            assert_int_equal(burin_memory_take(&memory, &ledger, &plan, NULL), BURIN_OK);

            size_t sum = 0;
            for (int i = 0; i < 4; i++) {
                const struct burin_owner *owner = burin_ledger_owner(&ledger, names[i]);
                assert_int_equal(owner->planned, burin_plan_owner_bytes(&plan, names[i]));
                assert_int_equal(owner->obtained, owner->planned);
                sum += owner->obtained;
            }
            if (granule > 1)
                sum += burin_ledger_owner(&ledger, "rounding")->obtained;
            assert_int_equal(counting.used, sum);
            burin_ledger_close(&ledger);
            assert_int_equal(counting.used, 0);
        }
}

SPEC(every_device_that_is_too_small_is_refused_by_the_owner_that_does_not_fit)
{
    const struct burin_plan plan = a_plan(3, 64);
    size_t needed = 0;
    for (size_t bytes = 1 << 20;; bytes -= 64) {
        struct burin_counting counting;
        struct burin_ledger ledger;
        struct burin_memory memory;
        struct burin_error err = { 0 };
        burin_counting_open(&counting, bytes, 64);
        burin_memory_open_ledger(&ledger, &counting.device, &plan, NULL);

        const enum burin_status status = burin_memory_take(&memory, &ledger, &plan, &err);

        needed = needed ? needed : counting.used;
        assert_int_equal(status, bytes >= needed ? BURIN_OK : BURIN_ENOMEM);
        if (status)
            assert_non_null(strstr(err.message, " bytes, the device has "));
        burin_ledger_close(&ledger);
        assert_int_equal(counting.n_buffers, 0);
        if (!bytes)
            break;
    }
}

SPEC(a_device_that_refuses_at_any_piece_gets_all_of_them_back)
{
    const struct burin_plan plan = a_plan(2, 64);
    for (int fail_in = 1; fail_in <= 3; fail_in++) { /* the fake model has no weights */
        struct burin_counting counting;
        struct burin_ledger ledger;
        struct burin_memory memory;
        burin_counting_open(&counting, 1 << 20, 64);
        burin_memory_open_ledger(&ledger, &counting.device, &plan, NULL);
        counting.fail_in = fail_in;

        assert_int_equal(burin_memory_take(&memory, &ledger, &plan, NULL), BURIN_ENOMEM);

        burin_ledger_close(&ledger);
        assert_int_equal(counting.n_buffers, 0);
        assert_int_equal(counting.used, 0);
    }
}
