/* An engine on real tables and weights: what it obtains is what was planned, whatever the
 * options, and an opening that is stopped leaves nothing. */
#include "tests/support/model_weights.h"
#include "tests/support/test.h"

#include "runtime/burin.h"

#include <dirent.h>

static int count_threads(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

static void assert_owners_have_what_was_planned(const struct burin_engine *engine)
{
    const struct burin_owner *owners;
    const int n = burin_engine_owners(engine, &owners);
    int n_equal = 0;
    for (int i = 0; i < n; i++) {
        const bool assumed = strcmp(owners[i].name, "host") == 0;
        if (assumed)
            assert_true(owners[i].obtained <= owners[i].planned);
        else if (owners[i].obtained != owners[i].planned)
            fail_msg(
                    "%s has %zu of %zu planned bytes", owners[i].name, owners[i].obtained,
                    owners[i].planned);
        n_equal += !assumed;
    }
    assert_true(n_equal >= 6);
}

SPEC(each_owner_obtains_what_was_planned)
{
    static const struct burin_options choices[] = {
        { .n_threads = 1 },
        { .n_threads = 3, .n_sequences = 5, .n_ctx = 77, .n_batch = 9, .n_outputs = 7 },
        { .n_threads = 2, .exact = true, .kv_dtype_given = true, .kv_dtype = BURIN_F32 },
        { .n_threads = 2, .n_sequences = 3, .n_ctx = 200, .kv_tokens = 300 },
        { .n_threads = 2, .target = "portable" },
    };
    SKIP_UNLESS(model_weights());
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        struct burin_options options = choices[i];
        struct burin_engine *engine;
        struct burin_error err = { 0 };
        options.model = &burin_model;
        options.weights = model_weights();
        options.strict = true;
        if (burin_engine_open(&engine, &options, &err))
            fail_msg("%s", err.message);

        assert_owners_have_what_was_planned(engine);
        burin_engine_close(engine);
    }
}

static bool stop_half_way(void *user, const char *step, size_t done, size_t total)
{
    int *n_calls = user;
    (void)step;
    ++*n_calls;
    return done < total / 2;
}

SPEC(packing_that_is_stopped_leaves_no_engine_and_no_thread)
{
    SKIP_UNLESS(model_weights());
    int n_calls = 0;
    const int n_threads = count_threads();
    const struct burin_options options = {
        .model = &burin_model,
        .weights = model_weights(),
        .n_threads = 3,
        .on_progress = stop_half_way,
        .user = &n_calls,
    };
    struct burin_engine *engine = NULL;

    assert_int_equal(burin_engine_open(&engine, &options, NULL), BURIN_ESTOPPED);

    assert_null(engine);
    assert_true(n_calls > 0);
    assert_int_equal(count_threads(), n_threads);
}

SPEC(weights_that_are_not_there_are_named)
{
    const struct burin_options options = { .model = &burin_model,
                                           .weights = "no/such/file" };
    struct burin_engine *engine = NULL;
    struct burin_error err = { 0 };

    assert_int_equal(burin_engine_open(&engine, &options, &err), BURIN_EMISSING);

    assert_non_null(strstr(err.message, "no/such/file"));
    assert_null(engine);
}
