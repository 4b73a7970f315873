/* The only way to obtain device memory, and the account of it. */
#include "runtime/device/counting.h"
#include "runtime/device/ledger.h"
#include "tests/support/test.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct burin_counting counting;

static struct burin_ledger on_a_device_of(size_t bytes)
{
    struct burin_ledger ledger;
    burin_counting_open(&counting, bytes, 64);
    assert_int_equal(
            burin_ledger_open(&ledger, &counting.device, SIZE_MAX, NULL), BURIN_OK);
    return ledger;
}

SPEC(a_request_that_does_not_fit_names_its_owner_and_takes_nothing)
{
    struct burin_ledger ledger = on_a_device_of(1024);
    struct burin_error err = { 0 };
    uint64_t address;
    assert_int_equal(burin_ledger_take(&ledger, "weights", 900, &address, NULL), BURIN_OK);

    assert_int_equal(burin_ledger_take(&ledger, "arena", 65, &address, &err), BURIN_ENOMEM);

    assert_int_equal(ledger.left, 1024 - 960); /* 900 in granules of 64 */
    assert_string_equal(err.message, "arena needs 128 bytes, the device has 64 left");
    assert_null(burin_ledger_owner(&ledger, "arena"));
}

SPEC(every_device_too_small_for_900_bytes_is_refused_and_left_alone)
{
    for (size_t bytes = 0; bytes < 960; bytes++) {
        struct burin_ledger ledger = on_a_device_of(bytes);
        uint64_t address = 7;

        assert_int_equal(
                burin_ledger_take(&ledger, "weights", 900, &address, NULL), BURIN_ENOMEM);

        assert_int_equal(counting.n_buffers, 0);
        assert_int_equal(address, 7);
    }
}

SPEC(an_owner_has_what_it_took_and_the_granule_adds_to_rounding)
{
    struct burin_ledger ledger = on_a_device_of(4096);
    uint64_t address;

    burin_ledger_take(&ledger, "weights", 900, &address, NULL);
    burin_ledger_take(&ledger, "weights", 128, &address, NULL);

    const struct burin_owner *weights = burin_ledger_owner(&ledger, "weights");
    const struct burin_owner *rounding = burin_ledger_owner(&ledger, "rounding");
    assert_int_equal(weights->planned, 1028);
    assert_int_equal(weights->obtained, 1028);
    assert_int_equal(rounding->obtained, 60);
    assert_int_equal(counting.used, 1028 + 60);
}

SPEC(an_owner_with_a_plan_gets_that_much_and_no_byte_more)
{
    struct burin_ledger ledger = on_a_device_of(4096);
    struct burin_error err = { 0 };
    uint64_t address;
    burin_ledger_plan(&ledger, "kv", 192, NULL);
    assert_int_equal(burin_ledger_take(&ledger, "kv", 128, &address, NULL), BURIN_OK);

    assert_int_equal(burin_ledger_take(&ledger, "kv", 65, &address, &err), BURIN_ENOMEM);
    assert_string_equal(err.message, "kv needs 65 bytes, its plan of 192 has 64 left");

    assert_int_equal(burin_ledger_take(&ledger, "kv", 64, &address, NULL), BURIN_OK);
    assert_int_equal(burin_ledger_take(&ledger, "kv", 1, &address, NULL), BURIN_ENOMEM);
}

SPEC(what_came_from_elsewhere_is_booked_to_its_owner)
{
    struct burin_ledger ledger = on_a_device_of(4096);
    burin_ledger_plan(&ledger, "tokenizer", 1000, NULL);

    assert_int_equal(burin_ledger_book(&ledger, "tokenizer", 1000, NULL), BURIN_OK);

    assert_int_equal(burin_ledger_owner(&ledger, "tokenizer")->obtained, 1000);
    assert_int_equal(burin_ledger_book(&ledger, "tokenizer", 1, NULL), BURIN_ENOMEM);
    assert_int_equal(counting.used, 0);
}

SPEC(a_limit_below_what_the_device_has_is_what_counts)
{
    struct burin_ledger ledger;
    uint64_t address;
    burin_counting_open(&counting, 4096, 64);
    burin_ledger_open(&ledger, &counting.device, 200, NULL);

    assert_int_equal(
            burin_ledger_take(&ledger, "arena", 193, &address, NULL), BURIN_ENOMEM);
    assert_int_equal(burin_ledger_take(&ledger, "arena", 192, &address, NULL), BURIN_OK);
}

SPEC(a_device_that_refuses_leaves_the_account_as_it_was)
{
    struct burin_ledger ledger = on_a_device_of(4096);
    uint64_t address;
    counting.fail_in = 2;
    burin_ledger_take(&ledger, "weights", 64, &address, NULL);

    assert_int_equal(
            burin_ledger_take(&ledger, "weights", 64, &address, NULL), BURIN_ENOMEM);

    assert_int_equal(burin_ledger_owner(&ledger, "weights")->obtained, 64);
    assert_int_equal(ledger.left, 4096 - 64);
    assert_int_equal(burin_ledger_take(&ledger, "weights", 64, &address, NULL), BURIN_OK);
}

SPEC(C5_taking_after_seal_aborts_and_names_the_owner)
{
    struct burin_ledger ledger = on_a_device_of(4096);
    burin_ledger_seal(&ledger);
    int pipe_ends[2];
    assert_int_equal(pipe(pipe_ends), 0);

    const pid_t child = fork();
    if (child == 0) {
        uint64_t address;
        dup2(pipe_ends[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        burin_ledger_take(&ledger, "scratch", 64, &address, NULL);
        _exit(0);
    }
    close(pipe_ends[1]);
    char text[512] = { 0 };
    assert_true(read(pipe_ends[0], text, sizeof text - 1) > 0);
    close(pipe_ends[0]);
    int status;
    waitpid(child, &status, 0);

    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(text, "scratch takes 64 bytes after seal"));
}

SPEC(taking_after_seal_is_refused_in_service)
{
    struct burin_ledger ledger = on_a_device_of(4096);
    struct burin_error err = { 0 };
    uint64_t address;
    ledger.refuse_after_seal = true;
    burin_ledger_seal(&ledger);

    assert_int_equal(
            burin_ledger_take(&ledger, "scratch", 64, &address, &err), BURIN_ENOMEM);

    assert_string_equal(err.message, "scratch needs 64 bytes after the memory was sealed");
    assert_int_equal(burin_ledger_book(&ledger, "scratch", 64, NULL), BURIN_ENOMEM);
    assert_int_equal(counting.used, 0);
}

SPEC(closing_gives_everything_back)
{
    struct burin_ledger ledger = on_a_device_of(4096);
    uint64_t address;
    burin_ledger_take(&ledger, "weights", 900, &address, NULL);
    burin_ledger_take(&ledger, "arena", 1, &address, NULL);

    burin_ledger_close(&ledger);

    assert_int_equal(counting.used, 0);
    assert_int_equal(counting.n_buffers, 0);
    burin_ledger_close(&ledger);
}

SPEC(an_owner_or_a_piece_too_many_is_refused)
{
    static const char *names[BURIN_LEDGER_OWNERS] = { "a", "b", "c", "d", "e", "f",
                                                      "g", "h", "i", "j", "k", "l",
                                                      "m", "n", "o", "p" };
    struct burin_ledger ledger = on_a_device_of(1 << 20);
    uint64_t address;
    for (int i = 0; i < BURIN_LEDGER_OWNERS; i++)
        assert_int_equal(
                burin_ledger_take(&ledger, names[i], 64, &address, NULL), BURIN_OK);
    assert_int_equal(burin_ledger_take(&ledger, "q", 64, &address, NULL), BURIN_ELIMIT);

    while (ledger.n_pieces < BURIN_LEDGER_PIECES)
        assert_int_equal(burin_ledger_take(&ledger, "a", 64, &address, NULL), BURIN_OK);
    assert_int_equal(burin_ledger_take(&ledger, "a", 64, &address, NULL), BURIN_ELIMIT);
    assert_int_equal(counting.n_buffers, BURIN_LEDGER_PIECES);
    burin_ledger_close(&ledger);
}

/* ---- Addresses before memory ------------------------------------------------------------- */

SPEC(addresses_take_nothing_and_memory_comes_behind_them_in_order)
{
    struct burin_ledger ledger = on_a_device_of(1024);
    uint64_t address;

    assert_int_equal(burin_ledger_reserve(&ledger, "kv", 4000, &address, NULL), BURIN_OK);
    assert_int_equal(counting.used, 0);
    assert_int_equal(ledger.left, 1024);
    assert_int_equal(burin_ledger_back(&ledger, "kv", address, 512, NULL), BURIN_OK);
    assert_int_equal(burin_ledger_back(&ledger, "kv", address, 448, NULL), BURIN_OK);
    assert_int_equal(burin_ledger_back(&ledger, "kv", address, 128, NULL), BURIN_ENOMEM);

    assert_int_equal(counting.used, 960);
    assert_int_equal(ledger.left, 64);
    assert_int_equal(burin_ledger_owner(&ledger, "kv")->obtained, 960);
    burin_ledger_close(&ledger);
    assert_int_equal(counting.used, 0);
    assert_int_equal(counting.n_buffers, 0);
}

SPEC(no_more_is_put_behind_addresses_than_they_span)
{
    struct burin_ledger ledger = on_a_device_of(4096);
    uint64_t address;
    burin_ledger_reserve(&ledger, "kv", 128, &address, NULL);
    assert_int_equal(burin_ledger_back(&ledger, "kv", address, 128, NULL), BURIN_OK);

    assert_int_equal(burin_ledger_back(&ledger, "kv", address, 64, NULL), BURIN_EUSAGE);

    assert_int_equal(
            burin_ledger_back(&ledger, "kv", address + 64, 64, NULL), BURIN_EUSAGE);
    assert_int_equal(counting.used, 128);
    burin_ledger_close(&ledger);
}

SPEC(a_granule_that_is_not_used_to_its_end_adds_to_rounding)
{
    struct burin_ledger ledger = on_a_device_of(4096);
    uint64_t address;
    burin_ledger_reserve(&ledger, "kv", 4096, &address, NULL);
    burin_ledger_back(&ledger, "kv", address, 640, NULL);

    assert_int_equal(burin_ledger_unused(&ledger, "kv", 40, NULL), BURIN_OK);

    assert_int_equal(burin_ledger_owner(&ledger, "kv")->obtained, 600);
    assert_int_equal(burin_ledger_owner(&ledger, "rounding")->obtained, 40);
    assert_int_equal(burin_ledger_unused(&ledger, "kv", 601, NULL), BURIN_EUSAGE);
    burin_ledger_close(&ledger);
}

/* ---- What others do ------------------------------------------------------------------------ */

SPEC(a_ledger_of_so_many_bytes_does_not_care_what_the_device_has_left)
{
    struct burin_ledger ledger;
    struct burin_error err = { 0 };
    uint64_t address;
    burin_counting_open(&counting, 1024, 64);
    counting.used = 512; /* another's */
    burin_ledger_begin(&ledger, &counting.device, 900);
    assert_int_equal(ledger.left, 896);

    assert_int_equal(
            burin_ledger_take(&ledger, "weights", 600, &address, &err), BURIN_ENOMEM);
    assert_string_equal(
            err.message, "the counting device refuses 640 bytes, it has 512 left");
    counting.used = 0; /* and gave it back */
    assert_int_equal(burin_ledger_take(&ledger, "weights", 600, &address, NULL), BURIN_OK);
    assert_int_equal(
            burin_ledger_take(&ledger, "arena", 300, &address, &err), BURIN_ENOMEM);
    assert_string_equal(err.message, "arena needs 320 bytes, the device has 256 left");
    burin_ledger_close(&ledger);
}

SPEC(what_the_driver_takes_by_itself_counts_also_beyond_its_plan)
{
    struct burin_ledger ledger = on_a_device_of(1024);
    burin_ledger_plan(&ledger, "context", 100, NULL);

    assert_int_equal(burin_ledger_spend(&ledger, "context", 130, NULL), BURIN_OK);

    assert_int_equal(burin_ledger_owner(&ledger, "context")->obtained, 130);
    assert_int_equal(ledger.left, (1024 - 130) / 64 * 64);
    assert_int_equal(burin_ledger_spend(&ledger, "context", 5000, NULL), BURIN_OK);
    assert_int_equal(ledger.left, 0);
}

SPEC(owners_that_share_a_piece_get_their_own_granules)
{
    static const char *const owners[] = { "windows", "scans", "drafts" };
    const size_t bytes[] = { 100, 0, 70 };
    struct burin_ledger ledger = on_a_device_of(1024);
    uint64_t address;

    assert_int_equal(
            burin_ledger_take_together(&ledger, owners, bytes, 3, &address, NULL),
            BURIN_OK);

    assert_int_equal(counting.n_buffers, 1);
    assert_int_equal(counting.used, 256);
    assert_int_equal(burin_ledger_owner(&ledger, "windows")->obtained, 100);
    assert_null(burin_ledger_owner(&ledger, "scans"));
    assert_int_equal(burin_ledger_owner(&ledger, "drafts")->obtained, 70);
    assert_int_equal(burin_ledger_owner(&ledger, "rounding")->obtained, 86);
    burin_ledger_close(&ledger);
}

SPEC(a_piece_that_is_given_back_is_left_again)
{
    struct burin_ledger ledger = on_a_device_of(1024);
    uint64_t probe, address;
    burin_ledger_take(&ledger, "kv", 100, &probe, NULL);
    burin_ledger_take(&ledger, "arena", 640, &address, NULL);

    burin_ledger_return(&ledger, "kv", probe, 100);

    assert_int_equal(ledger.left, 384);
    assert_int_equal(counting.used, 640);
    assert_int_equal(burin_ledger_owner(&ledger, "kv")->obtained, 0);
    assert_int_equal(burin_ledger_owner(&ledger, "rounding")->obtained, 0);
    burin_ledger_close(&ledger);
    assert_int_equal(counting.used, 0);
}
