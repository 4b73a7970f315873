/* An engine on a GPU that is not there, whose kernels are a model of a few lines (fake_gpu.h). */
#include "runtime/engine/engine.h"
#include "tests/runtime/engine/fake_gpu.h"
#include "tests/runtime/engine/fake_scene.h"
#include "tests/runtime/engine/survived.h"
#include "tests/support/virtual_libraries.h"

#include <stdlib.h>

enum { N_SEQUENCES = 3, N_SCENES = 5 };

static struct burin_virtual *machine;
static struct scene scenes[N_SCENES];

/* 4 GiB, of which pages take a granule: what is touched is the host's. */
static struct burin_virtual_options one_card(void)
{
    const int64_t bytes = (int64_t)4 << 30;
    const struct burin_card card = { .name = "card",
                                     .total_bytes = bytes,
                                     .available_bytes = bytes,
                                     .sm = 86,
                                     .n_processors = 10 };
    struct burin_virtual_options options = burin_virtual_default(&card);
    host_kernels = fake_host_kernels;
    options.body = &host_body;
    return options;
}

static struct burin_options engine_options(void)
{
    fake_sees = true;
    fake_faults = 0;
    return (struct burin_options){ .model = &fake_gpu_model,
                                   .device = "cuda",
                                   .n_threads = 1,
                                   .n_sequences = N_SEQUENCES,
                                   .n_batch = 7,
                                   .n_images = 2,
                                   .kv_tokens = 4 * 24,
                                   .strict = true };
}

/* Prompts of all lengths, some with pictures. */
static void set_scene(struct scene *scene, int kind)
{
    const int n_ids = 1 + kind * 7 % 16;
    set_text(scene, kind, n_ids, 1 + kind % (MOST_TEXT - 1));
    if (kind % 3 == 0 && n_ids > 7)
        add_picture(scene, 1, 2, 1 + kind / 3 % 3);
    if (kind % 2 == 0 && n_ids > 12)
        add_picture(scene, 8, 1, 1 + kind % 4);
}

static struct burin_engine *open_engine(const struct burin_options *options)
{
    struct burin_engine *engine = NULL;
    struct burin_error err = { 0 };
    if (burin_engine_open(&engine, options, &err))
        fail_msg("%s", err.message);
    return engine;
}

static void close_all(struct burin_engine *engine)
{
    char text[300];
    burin_engine_close(engine);
    burin_virtual_held_text(machine, text, sizeof text);
    assert_string_equal(text, "");
    assert_int_equal(burin_virtual_memory(machine, 0).ours[0], 0);
    assert_int_equal(fake_faults, 0);
    burin_virtual_close(machine);
    assert_int_equal(host_memories, 0);
}

static void run_scenes(struct burin_engine *engine, int n)
{
    struct burin_error err = { 0 };
    for (int i = 0; i < n; i++) {
        set_scene(&scenes[i], 6 + i);
        if (burin_submit(engine, &scenes[i].request, &err))
            fail_msg("%s", err.message);
    }
    if (burin_engine_run(engine, &err))
        fail_msg("%s", err.message);
    for (int i = 0; i < n; i++)
        assert_text_is_right(&scenes[i]);
}

/* ---- Text ------------------------------------------------------------------------------ */

SPEC(the_text_is_right_whenever_the_card_does_its_work)
{
    static const enum burin_virtual_order orders[] = { BURIN_VIRTUAL_LATE,
                                                       BURIN_VIRTUAL_EARLY,
                                                       BURIN_VIRTUAL_RANDOM };
    for (int i = 0; i < 3; i++)
        for (int plain = 0; plain < 2; plain++) {
            struct burin_virtual_options card = one_card();
            const struct burin_options options = engine_options();
            card.order = orders[i];
            card.seed = 3;
            card.no_vmm = plain;
            assert_int_equal(burin_virtual_open(&machine, &card, NULL), BURIN_OK);
            struct burin_engine *engine = open_engine(&options);

            run_scenes(engine, N_SCENES);

            assert_true(burin_virtual_counts(machine).graphs > 0);
            close_all(engine);
        }
}

/* ---- Memory ---------------------------------------------------------------------------- */

SPEC(ten_thousand_steps_of_all_kinds_allocate_nothing)
{
    const struct burin_virtual_options card = one_card();
    const struct burin_options options = engine_options();
    struct burin_error err = { 0 };
    assert_int_equal(burin_virtual_open(&machine, &card, NULL), BURIN_OK);
    struct burin_engine *engine = open_engine(&options);
    for (int i = 0; i < N_SCENES; i++)
        set_scene(&scenes[i], i);
    const struct burin_virtual_counts before = burin_virtual_counts(machine);
    const int n_encoder_runs = burin_engine_info(engine).n_encoder_runs;

    int n_done = 0;
    for (int step = 0; step < 10000; step++) {
        int n_left;
        for (int i = 0; i < N_SCENES; i++) {
            struct burin_request *request = &scenes[i].request;
            if (request->finish == BURIN_LENGTH) {
                assert_text_is_right(&scenes[i]);
                set_scene(&scenes[i], N_SCENES + n_done++);
                request->finish = BURIN_WAITING;
            } else if (step > 0) {
                continue;
            }
            assert_int_equal(burin_submit(engine, request, &err), BURIN_OK);
        }
        if (burin_engine_step(engine, &n_left, &err))
            fail_msg("%s", err.message);
    }

    const struct burin_virtual_counts after = burin_virtual_counts(machine);
    assert_int_equal(after.obtained - before.obtained, 0);
    assert_true(n_done > 5000);
    assert_true(after.graphs - before.graphs > 1000);
    assert_true(after.launches - before.launches > 1000); /* prompts, kernel by kernel */
    assert_true(burin_engine_info(engine).n_encoder_runs - n_encoder_runs > 1000);
    burin_engine_run(engine, NULL);
    close_all(engine);
}

/* ---- Faults ------------------------------------------------------------------------------ */

static struct burin_start_facts facts; /* of the last start */

static bool noted(const char *words)
{
    for (int i = 0; i < facts.n_notes; i++)
        if (strstr(facts.notes[i].text, words))
            return true;
    return false;
}

static enum burin_status ten_steps(struct burin_engine *engine, struct burin_error *err)
{
    enum burin_status status = BURIN_OK;
    int n_left = 1;
    for (int i = 0; i < N_SCENES && !status; i++) {
        set_scene(&scenes[i], 6 + i);
        status = burin_submit(engine, &scenes[i].request, err);
    }
    for (int step = 0; step < 10 && !status; step++)
        status = burin_engine_step(engine, &n_left, err);
    return status;
}

/* A start, and ten steps or until it fails. */
static enum burin_status start_and_step(struct burin_error *err)
{
    const struct burin_options options = engine_options();
    struct burin_engine *engine = NULL;
    enum burin_status status = burin_engine_open(&engine, &options, err);
    if (!status) {
        facts = engine->start.facts;
        status = ten_steps(engine, err);
    }
    burin_engine_close(engine);
    return status;
}

SPEC(every_call_of_a_start_and_of_ten_steps_may_fail_once)
{
    const struct burin_virtual_options card = one_card();
    fail_every_call(&(struct fault_plan){ &card, start_and_step, start_survived, noted });
    assert_int_equal(host_memories, 0);
}

/* To who runs it, asked or not. */
SPEC(what_a_start_gives_up_is_told_line_by_line_and_other_notes_are_not)
{
    const struct burin_virtual_options card = one_card();
    const struct burin_options options = engine_options();
    assert_int_equal(burin_virtual_open(&machine, &card, NULL), BURIN_OK);
    setenv("BURIN_KERNEL_CACHE", "", 1); /* whatever place there is */
    burin_virtual_fail(machine, "nvmlInit_v2", 1, 1, BURIN_FAULT_ONCE);
    for (int nth = 1; nth <= 2; nth++)
        burin_virtual_fail(
                machine, "cuGraphInstantiateWithFlags", nth, 2, BURIN_FAULT_ONCE);

    struct burin_engine *engine = open_engine(&options);

    assert_true(engine->start.facts.n_notes > 2); /* of NVML, too */
    for (int i = 0; i < 2; i++)
        assert_non_null(strstr(burin_engine_start_note(engine, i), " is given up"));
    assert_null(burin_engine_start_note(engine, 2));
    close_all(engine);
}

SPEC(kernels_that_can_t_be_kept_are_told_once_with_the_folder_and_what_names_another)
{
    const struct burin_virtual_options card = one_card();
    const struct burin_options options = engine_options();
    setenv("BURIN_KERNEL_CACHE", "/dev/null/kernels", 1);
    assert_int_equal(burin_virtual_open(&machine, &card, NULL), BURIN_OK);

    struct burin_engine *engine = open_engine(&options);

    const char *note = burin_engine_start_note(engine, 0);
    assert_non_null(strstr(note, "can't be kept in /dev/null/kernels"));
    assert_non_null(strstr(note, "BURIN_KERNEL_CACHE"));
    assert_null(burin_engine_start_note(engine, 1));
    close_all(engine);
}

SPEC(kernels_that_have_no_place_are_told_and_those_that_are_to_have_none_are_not)
{
    for (int unwanted = 0; unwanted <= 1; unwanted++) {
        const struct burin_virtual_options card = one_card();
        const struct burin_options options = engine_options();
        unsetenv("HOME");
        unsetenv("XDG_CACHE_HOME");
        unsetenv("BURIN_KERNEL_CACHE");
        if (unwanted)
            setenv("BURIN_KERNEL_CACHE", "", 1);
        assert_int_equal(burin_virtual_open(&machine, &card, NULL), BURIN_OK);

        struct burin_engine *engine = open_engine(&options);

        const char *note = burin_engine_start_note(engine, 0);
        if (unwanted)
            assert_null(note);
        else
            assert_non_null(strstr(note, "HOME and XDG_CACHE_HOME name no place for them"));
        close_all(engine);
    }
}

static void fail_in_a_step(
        const char *call, int nth, int error, enum burin_virtual_fault how)
{
    const struct burin_virtual_options card = one_card();
    const struct burin_options options = engine_options();
    struct burin_error err = { 0 };
    assert_int_equal(burin_virtual_open(&machine, &card, NULL), BURIN_OK);
    struct burin_engine *engine = open_engine(&options);
    burin_virtual_fail(machine, call, nth, error, how);

    if (!ten_steps(engine, &err))
        fail_msg("%s, call %d, error %d: not noticed", call, nth, error);

    if (how != BURIN_FAULT_LATER && !names(err.message, call))
        fail_msg("%s, call %d, error %d: %s", call, nth, error, err.message);
    close_all(engine);
}

/* No graph is left to be given up, no page to be had in smaller pieces. */
SPEC(a_step_whose_call_fails_says_so)
{
    const struct burin_virtual_options card = one_card();
    const struct burin_options options = engine_options();
    const char *calls[200];
    int before[200], n[200], n_calls = 0;
    assert_int_equal(burin_virtual_open(&machine, &card, NULL), BURIN_OK);
    struct burin_engine *engine = open_engine(&options);
    for (int i = 0; burin_virtual_call(machine, i).name; i++)
        before[i] = burin_virtual_call(machine, i).n;
    assert_int_equal(ten_steps(engine, NULL), BURIN_OK);
    for (int i = 0; burin_virtual_call(machine, i).name; i++, n_calls++)
        n[i] = burin_virtual_call(machine, i).n - before[i];
    for (int i = 0; i < n_calls; i++)
        calls[i] = burin_virtual_call(machine, i).name;
    close_all(engine);

    for (int i = 0; i < n_calls; i++) {
        const char *call = calls[i];
        const int nth[] = { 1, 2, n[i] };
        for (int k = 0; k < 3; k++) {
            if (nth[k] > n[i] || (k == 2 && n[i] <= 2))
                continue;
            fail_in_a_step(call, nth[k], CU_OUT_OF_MEMORY, BURIN_FAULT_ONCE);
            fail_in_a_step(call, nth[k], CU_UNKNOWN, BURIN_FAULT_ONCE);
            fail_in_a_step(call, nth[k], CU_ILLEGAL_ADDRESS, BURIN_FAULT_STICKY);
            if (strcmp(call, "cuStreamSynchronize") != 0)
                fail_in_a_step(call, nth[k], CU_LAUNCH_FAILED, BURIN_FAULT_LATER);
        }
    }
}
