/* An engine on a model of a few lines (fake_model.h): what a request gets, and when it ends. */
#include "runtime/burin.h"
#include "runtime/engine/engine.h"
#include "tests/runtime/engine/fake_model.h"
#include "tests/support/test.h"

#include <stdio.h>

enum { MOST = 32 };

/* A request and what came of it. */
struct job {
    struct burin_request request;
    int32_t ids[FAKE_CONTEXT + 1];
    int32_t text[MOST];
    int n_text;
    int n_rows;           /* calls of on_logits */
    int positions[MOST];  /* theirs */
    uint32_t logits_hash; /* of all their rows */
    int n_ends;
    int end_after; /* on_token returns false then; 0: never */
    struct burin_engine *engine;
    struct job *next; /* submitted by this one's first token */
};

static bool on_token(struct burin_request *request, int32_t token)
{
    struct job *job = request->user;
    job->text[job->n_text++] = token;
    if (job->next && job->n_text == 1)
        assert_int_equal(burin_submit(job->engine, &job->next->request, NULL), BURIN_OK);
    return job->n_text != job->end_after;
}

static void on_logits(struct burin_request *request, int position, const float *logits)
{
    struct job *job = request->user;
    job->positions[job->n_rows++] = position;
    for (int i = 0; i < FAKE_VOCAB; i++)
        job->logits_hash = fake_fold(job->logits_hash, (int32_t)(logits[i] * 64));
}

static void on_end(struct burin_request *request)
{
    struct job *job = request->user;
    job->n_ends++;
}

/* A prompt of n_ids tokens that depends on `kind`. */
static void make_job(struct job *job, int kind, int n_ids, int max_tokens)
{
    *job = (struct job){
        .request = {
            .n_ids = n_ids,
            .max_tokens = max_tokens,
            .sampling = burin_greedy,
            .on_token = on_token,
            .on_end = on_end,
        },
    };
    for (int i = 0; i < n_ids; i++)
        job->ids[i] = (kind * 11 + i * 7 + i * i) % FAKE_NAN;
    job->request.ids = job->ids;
    job->request.user = job;
}

static struct burin_engine *open_engine(const struct burin_options *chosen)
{
    struct burin_engine *engine = NULL;
    struct burin_error err = { 0 };
    struct burin_options options = *chosen;
    options.model = options.model ? options.model : &fake_model;
    options.n_threads = options.n_threads ? options.n_threads : 2;
    options.strict = true;
    fake_faults = 0;
    fake_runs = 0;
    fake_most_tokens = 0;
    fake_most_outputs = 0;
    if (burin_engine_open(&engine, &options, &err))
        fail_msg("%s", err.message);
    return engine;
}

static void close_engine(struct burin_engine *engine)
{
    const struct burin_engine_info info = burin_engine_info(engine);
    assert_int_equal(info.n_pages_free, info.n_pages);
    assert_int_equal(fake_faults, 0);
    burin_engine_close(engine);
}

static void submit(struct burin_engine *engine, struct job *job)
{
    struct burin_error err = { 0 };
    job->engine = engine;
    if (burin_submit(engine, &job->request, &err))
        fail_msg("%s", err.message);
}

static void assert_text_is_right(const struct job *job)
{
    int32_t right[MOST];
    fake_text(job->ids, job->request.n_ids, right, job->n_text);
    assert_memory_equal(job->text, right, (size_t)job->n_text * sizeof *right);
    assert_int_equal(job->n_text, job->request.n_generated);
}

/* ---- Text ----------------------------------------------------------------------------- */

SPEC(a_request_gets_the_models_text)
{
    struct burin_engine *engine = open_engine(&(struct burin_options){ 0 });
    struct job job;
    make_job(&job, 1, 5, 9);
    submit(engine, &job);

    assert_int_equal(burin_engine_run(engine, NULL), BURIN_OK);

    assert_int_equal(job.request.finish, BURIN_LENGTH);
    assert_int_equal(job.n_text, 9);
    assert_int_equal(job.request.n_prompt_done, 5);
    assert_int_equal(job.n_ends, 1);
    assert_text_is_right(&job);
    assert_int_equal(fake_runs, 9); /* one for the prompt, which makes the first token */
    close_engine(engine);
}

SPEC(text_depends_neither_on_chunks_nor_on_others_nor_on_threads)
{
    for (int n_sequences = 1; n_sequences <= 5; n_sequences++)
        for (int n_batch = n_sequences; n_batch <= 24; n_batch++)
            for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
                struct job jobs[7];
                struct burin_engine *engine = open_engine(&(struct burin_options){
                        .n_sequences = n_sequences,
                        .n_batch = n_batch,
                        .n_threads = n_threads,
                });
                for (int i = 0; i < 7; i++) {
                    make_job(&jobs[i], i, 1 + 3 * i, 8 - i);
                    submit(engine, &jobs[i]);
                }

                assert_int_equal(burin_engine_run(engine, NULL), BURIN_OK);

                assert_in_range(fake_most_tokens, 1, n_batch);
                for (int i = 0; i < 7; i++) {
                    assert_text_is_right(&jobs[i]);
                    assert_int_equal(jobs[i].n_ends, 1);
                }
                close_engine(engine);
            }
}

SPEC(a_request_may_come_while_others_run)
{
    struct job first, second, third;
    struct burin_engine *engine = open_engine(&(struct burin_options){ .n_sequences = 2 });
    make_job(&first, 1, 3, 12);
    make_job(&second, 2, 17, 4);
    make_job(&third, 3, 2, 5);
    first.next = &second;
    second.next = &third;
    second.engine = engine;
    submit(engine, &first);

    assert_int_equal(burin_engine_run(engine, NULL), BURIN_OK);

    assert_int_equal(third.n_text, 5);
    assert_text_is_right(&first);
    assert_text_is_right(&second);
    assert_text_is_right(&third);
    close_engine(engine);
}

SPEC(new_tokens_do_not_wait_for_a_long_prompt)
{
    struct job first, second;
    int n_left;
    struct burin_engine *engine =
            open_engine(&(struct burin_options){ .n_sequences = 2, .n_batch = 4 });
    make_job(&first, 1, 3, 15);
    make_job(&second, 2, 20, 1);
    submit(engine, &first);
    burin_engine_step(engine, &n_left, NULL);
    submit(engine, &second);

    for (int step = 1; step <= 7; step++) { /* 3 prompt tokens a step beside the new one */
        burin_engine_step(engine, &n_left, NULL);
        assert_int_equal(first.n_text, 1 + step);
        assert_int_equal(second.request.n_prompt_done, step < 7 ? 3 * step : 20);
    }

    assert_int_equal(second.request.finish, BURIN_LENGTH);
    burin_engine_run(engine, NULL);
    assert_text_is_right(&first);
    close_engine(engine);
}

SPEC(prompts_are_cut_at_the_programs_quantum_only)
{
    struct job jobs[2];
    int n_left = 1;
    struct burin_engine *engine = open_engine(&(struct burin_options){
            .model = &fake_model_in_fives,
            .n_sequences = 2,
            .n_batch = 13,
    });
    make_job(&jobs[0], 1, 17, 3);
    make_job(&jobs[1], 2, 12, 5);
    submit(engine, &jobs[0]);
    submit(engine, &jobs[1]);

    while (n_left) {
        burin_engine_step(engine, &n_left, NULL);
        for (int i = 0; i < 2; i++) {
            const int done = jobs[i].request.n_prompt_done;
            assert_true(done % 5 == 0 || done == jobs[i].request.n_ids);
        }
    }

    assert_text_is_right(&jobs[0]);
    assert_text_is_right(&jobs[1]);
    close_engine(engine);
}

SPEC(a_batch_without_room_for_a_quantum_is_refused)
{
    struct burin_engine *engine = NULL;
    struct burin_error err = { 0 };
    const struct burin_options options = {
        .model = &fake_model_in_fives,
        .n_sequences = 3,
        .n_batch = 6,
    };

    assert_int_equal(burin_engine_open(&engine, &options, &err), BURIN_EUSAGE);

    assert_string_equal(
            err.message,
            "--batch-size 6 leaves no room for a piece of 5 prompt tokens beside 2 running "
            "requests: give at least 7");
    assert_null(engine);
}

SPEC(rows_of_logits_that_do_not_hold_a_quantum_are_refused_and_the_least_are_enough)
{
    for (int n_outputs = 2; n_outputs <= 7; n_outputs++) {
        struct job job;
        struct burin_error err = { 0 };
        struct burin_engine *engine = open_engine(&(struct burin_options){
                .model = &fake_model_in_fives,
                .n_sequences = 2,
                .n_outputs = n_outputs,
        });
        make_job(&job, 1, 13, 0);
        job.request.on_logits = on_logits;

        if (burin_submit(engine, &job.request, &err) == BURIN_OK) {
            burin_engine_run(engine, NULL);
            assert_int_equal(job.n_rows, 13);
        }

        assert_int_equal(err.status, n_outputs < 6 ? BURIN_EUSAGE : BURIN_OK);
        close_engine(engine);
    }
}

/* ---- Ends ----------------------------------------------------------------------------- */

SPEC(a_stop_id_ends_the_request_and_is_not_shown)
{
    int32_t right[9];
    struct job job;
    struct burin_engine *engine = open_engine(&(struct burin_options){ 0 });
    make_job(&job, 1, 5, 9);
    fake_text(job.ids, 5, right, 9);
    const int32_t stops[] = { FAKE_LOW, right[4] };
    int first = 0;
    while (right[first] != right[4])
        first++;
    job.request.stop_ids = stops;
    job.request.n_stop_ids = 2;
    submit(engine, &job);

    burin_engine_run(engine, NULL);

    assert_int_equal(job.request.finish, BURIN_STOPPED);
    assert_int_equal(job.n_text, first);
    assert_text_is_right(&job);
    close_engine(engine);
}

SPEC(prompt_and_new_tokens_fill_the_context_and_no_more)
{
    for (int n_ids = 1; n_ids <= FAKE_CONTEXT; n_ids++) {
        struct job job;
        struct burin_engine *engine = open_engine(&(struct burin_options){ .n_batch = 6 });
        make_job(&job, n_ids, n_ids, -1);
        submit(engine, &job);

        burin_engine_run(engine, NULL);

        assert_int_equal(job.request.finish, BURIN_CONTEXT);
        assert_int_equal(job.n_text, FAKE_CONTEXT - n_ids);
        assert_text_is_right(&job);
        close_engine(engine);
    }
}

SPEC(a_prompt_longer_than_the_context_is_refused_with_both_numbers)
{
    struct job job;
    struct burin_error err = { 0 };
    struct burin_engine *engine = open_engine(&(struct burin_options){ .n_ctx = 19 });
    make_job(&job, 1, 20, 3);

    assert_int_equal(burin_submit(engine, &job.request, &err), BURIN_ELIMIT);

    assert_string_equal(
            err.message, "the prompt has 20 tokens, the context has room for 19");
    assert_int_equal(job.n_ends, 0);
    close_engine(engine);
}

SPEC(a_request_that_makes_no_sense_is_refused)
{
    struct job job;
    struct burin_error err = { 0 };
    struct burin_engine *engine = open_engine(&(struct burin_options){ 0 });

    make_job(&job, 1, 0, 3);
    assert_int_equal(burin_submit(engine, &job.request, &err), BURIN_EUSAGE);
    assert_string_equal(err.message, "the prompt is empty, it needs a token");

    make_job(&job, 1, 3, 3);
    job.ids[2] = FAKE_VOCAB;
    assert_int_equal(burin_submit(engine, &job.request, &err), BURIN_EUSAGE);
    assert_string_equal(
            err.message, "token 2 of the prompt is 48, the vocabulary ends at 47");
    job.ids[2] = -1;
    assert_int_equal(burin_submit(engine, &job.request, &err), BURIN_EUSAGE);

    make_job(&job, 1, 3, 3);
    job.request.sampling.top_p = 0;
    assert_int_equal(burin_submit(engine, &job.request, &err), BURIN_EUSAGE);
    assert_string_equal(err.message, "top_p is 0, it must be above 0 and at most 1");
    close_engine(engine);
}

SPEC(on_token_ends_its_request_by_returning_false)
{
    struct job job;
    struct burin_engine *engine = open_engine(&(struct burin_options){ 0 });
    make_job(&job, 1, 5, 9);
    job.end_after = 3;
    submit(engine, &job);

    burin_engine_run(engine, NULL);

    assert_int_equal(job.request.finish, BURIN_CANCELLED);
    assert_int_equal(job.n_text, 3);
    close_engine(engine);
}

SPEC(a_cancelled_request_ends_at_the_next_step_running_or_waiting)
{
    struct job jobs[4];
    int n_left;
    struct burin_engine *engine = open_engine(&(struct burin_options){ .n_sequences = 1 });
    for (int i = 0; i < 4; i++) {
        make_job(&jobs[i], i, 4, 6);
        submit(engine, &jobs[i]);
    }
    burin_engine_step(engine, &n_left, NULL);
    assert_int_equal(n_left, 4);

    burin_cancel(&jobs[0].request); /* runs */
    burin_cancel(&jobs[1].request); /* waits, first */
    burin_cancel(&jobs[3].request); /* waits, last */
    burin_engine_step(engine, &n_left, NULL);

    assert_int_equal(n_left, 1);
    assert_int_equal(jobs[0].request.finish, BURIN_CANCELLED);
    assert_int_equal(jobs[1].request.finish, BURIN_CANCELLED);
    assert_int_equal(jobs[3].request.finish, BURIN_CANCELLED);
    assert_int_equal(jobs[0].n_text, 1);
    make_job(&jobs[3], 3, 4, 6);
    submit(engine, &jobs[3]);
    burin_engine_run(engine, NULL);
    assert_int_equal(jobs[2].n_text, 6);
    assert_int_equal(jobs[3].n_text, 6);
    for (int i = 0; i < 4; i++) {
        assert_text_is_right(&jobs[i]);
        assert_int_equal(jobs[i].n_ends, 1);
    }
    close_engine(engine);
}

SPEC(logits_that_are_not_finite_end_that_request_and_no_other)
{
    static const int32_t strange[] = { FAKE_NAN, FAKE_INF, FAKE_LOW };
    for (int i = 0; i < 3; i++)
        for (int warm = 0; warm < 2; warm++) {
            struct job sick, well;
            struct burin_engine *engine =
                    open_engine(&(struct burin_options){ .n_sequences = 2 });
            make_job(&sick, 1, 6, 9);
            make_job(&well, 2, 4, 9);
            sick.ids[3] = strange[i];
            sick.request.sampling.temperature = warm ? 0.8f : 0;
            submit(engine, &sick);
            submit(engine, &well);

            assert_int_equal(burin_engine_run(engine, NULL), BURIN_OK);

            assert_int_equal(sick.request.finish, BURIN_FAILED);
            assert_int_equal(sick.request.error.status, BURIN_ENUMERIC);
            assert_string_equal(
                    sick.request.error.message,
                    "non-finite logits at step 0, after the token at position 5");
            assert_int_equal(sick.n_text, 0);
            assert_int_equal(well.n_text, 9);
            assert_text_is_right(&well);
            close_engine(engine);
        }
}

/* ---- Logits --------------------------------------------------------------------------- */

SPEC(the_logits_of_every_prompt_row_are_shown_once_and_in_order)
{
    for (int n_outputs = 1; n_outputs <= 9; n_outputs++)
        for (int n_batch = 1; n_batch <= 9; n_batch++) {
            struct job job;
            struct burin_engine *engine = open_engine(&(struct burin_options){
                    .n_outputs = n_outputs,
                    .n_batch = n_batch,
            });
            make_job(&job, 1, 13, 0);
            job.request.on_logits = on_logits;
            job.request.logits_from = 4;
            submit(engine, &job);

            burin_engine_run(engine, NULL);

            assert_int_equal(job.request.finish, BURIN_LENGTH);
            assert_int_equal(job.n_rows, 9);
            for (int i = 0; i < 9; i++)
                assert_int_equal(job.positions[i], 4 + i);
            uint32_t right = 0;
            uint32_t hash = 2166136261u;
            for (int i = 0; i < 13; i++) {
                float logits[FAKE_VOCAB];
                hash = fake_fold(hash, job.ids[i]);
                fake_logits(logits, hash, 0);
                for (int j = 0; i >= 4 && j < FAKE_VOCAB; j++)
                    right = fake_fold(right, (int32_t)(logits[j] * 64));
            }
            assert_int_equal(job.logits_hash, right);
            assert_in_range(fake_most_outputs, 1, n_outputs);
            close_engine(engine);
        }
}

SPEC(rows_that_tokens_are_drawn_from_are_shown_too)
{
    struct job job;
    struct burin_engine *engine = open_engine(&(struct burin_options){ 0 });
    make_job(&job, 1, 7, 5);
    job.request.on_logits = on_logits;
    job.request.logits_from = 100; /* beyond the prompt: its last row alone */
    submit(engine, &job);

    burin_engine_run(engine, NULL);

    assert_int_equal(job.n_rows, 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(job.positions[i], 6 + i);
    assert_text_is_right(&job);
    close_engine(engine);
}

SPEC(a_shown_row_that_is_not_finite_ends_the_request)
{
    struct job job;
    struct burin_engine *engine = open_engine(&(struct burin_options){ .n_outputs = 4 });
    make_job(&job, 1, 13, 0);
    job.ids[6] = FAKE_NAN;
    job.request.on_logits = on_logits;
    submit(engine, &job);

    burin_engine_run(engine, NULL);

    assert_int_equal(job.request.finish, BURIN_FAILED);
    assert_int_equal(job.n_rows, 6);
    close_engine(engine);
}

/* ---- Sampling ------------------------------------------------------------------------- */

SPEC(a_seed_gives_the_same_text_alone_and_among_others)
{
    struct job alone, jobs[4];
    struct burin_engine *engine = open_engine(&(struct burin_options){ .n_sequences = 4 });
    make_job(&alone, 1, 5, 15);
    alone.request.sampling.temperature = 3;
    alone.request.sampling.seed = 17;
    submit(engine, &alone);
    burin_engine_run(engine, NULL);

    for (int i = 0; i < 4; i++) {
        make_job(&jobs[i], 1, 5, 15);
        jobs[i].request.sampling.temperature = 3;
        jobs[i].request.sampling.seed = 16 + i;
        submit(engine, &jobs[i]);
    }
    burin_engine_run(engine, NULL);

    assert_int_equal(alone.request.seed, 17);
    assert_memory_equal(jobs[1].text, alone.text, 15 * sizeof *alone.text);
    assert_memory_not_equal(jobs[0].text, alone.text, 15 * sizeof *alone.text);
    close_engine(engine);
}

SPEC(a_random_seed_is_reported_and_gives_the_text_again)
{
    struct job first, again;
    struct burin_engine *engine = open_engine(&(struct burin_options){ 0 });
    make_job(&first, 1, 5, 15);
    first.request.sampling.temperature = 3;
    first.request.sampling.seed = -1;
    submit(engine, &first);
    burin_engine_run(engine, NULL);

    make_job(&again, 1, 5, 15);
    again.request.sampling.temperature = 3;
    again.request.sampling.seed = (int64_t)first.request.seed;
    submit(engine, &again);
    burin_engine_run(engine, NULL);

    assert_memory_equal(first.text, again.text, 15 * sizeof *again.text);
    close_engine(engine);
}

/* ---- Memory --------------------------------------------------------------------------- */

static const struct burin_owner *owner(const struct burin_engine *engine, const char *name)
{
    const struct burin_owner *owners;
    const int n = burin_engine_owners(engine, &owners);
    for (int i = 0; i < n; i++)
        if (strcmp(owners[i].name, name) == 0)
            return &owners[i];
    return NULL;
}

SPEC(each_owner_has_obtained_what_was_planned)
{
    static const char *const names[] = { "weights", "arena",   "inputs",
                                         "kv",      "threads", "rounding" };
    struct burin_engine *engine =
            open_engine(&(struct burin_options){ .n_sequences = 3, .n_threads = 3 });

    for (int i = 0; i < 5; i++)
        assert_int_equal(
                owner(engine, names[i])->obtained, owner(engine, names[i])->planned);

    assert_int_equal(owner(engine, "kv")->planned, 3 * 6 * FAKE_PAGE_TOKENS * 8);
    assert_in_range(owner(engine, "host")->obtained, 1, owner(engine, "host")->planned);
    close_engine(engine);
}

SPEC(a_ready_engine_takes_no_more_memory)
{
    struct burin_options options = { .model = &fake_model, .n_threads = 1 };
    struct burin_engine *engine = NULL;
    uint64_t address;
    assert_int_equal(burin_engine_open(&engine, &options, NULL), BURIN_OK);
    const size_t left = engine->ledger.left;

    assert_int_equal(
            burin_ledger_take(&engine->ledger, "kv", 64, &address, NULL), BURIN_ENOMEM);

    assert_true(engine->ledger.sealed);
    assert_int_equal(engine->ledger.left, left);
    burin_engine_close(engine);
}

SPEC(a_smaller_pool_makes_requests_wait_and_none_run_out)
{
    struct job jobs[6];
    struct burin_engine *engine = open_engine(&(struct burin_options){
            .n_sequences = 6,
            .kv_tokens = 32,
    });
    assert_int_equal(burin_engine_info(engine).n_pages, 8);
    for (int i = 0; i < 6; i++) {
        make_job(&jobs[i], i, 4 + i, i == 3 ? -1 : 5);
        submit(engine, &jobs[i]);
    }

    assert_int_equal(burin_engine_run(engine, NULL), BURIN_OK);

    for (int i = 0; i < 6; i++) {
        assert_int_equal(jobs[i].n_text, i == 3 ? FAKE_CONTEXT - 7 : 5);
        assert_text_is_right(&jobs[i]);
    }
    close_engine(engine);
}

SPEC(options_that_make_no_sense_are_refused_and_leave_nothing)
{
    struct burin_engine *engine = NULL;
    struct burin_error err = { 0 };
    struct burin_options options = { .model = &fake_model, .n_threads = 2 };

    options.n_ctx = FAKE_CONTEXT + 1;
    assert_int_equal(burin_engine_open(&engine, &options, &err), BURIN_EUSAGE);
    options.n_ctx = 0;
    options.exact = true;
    assert_int_equal(burin_engine_open(&engine, &options, &err), BURIN_EUSAGE);
    options.exact = false;
    options.kv_dtype_given = true;
    options.kv_dtype = BURIN_F32;
    assert_int_equal(burin_engine_open(&engine, &options, &err), BURIN_EUSAGE);
    assert_null(engine);
}

SPEC(stepping_without_requests_does_nothing)
{
    int n_left = 7;
    struct burin_engine *engine = open_engine(&(struct burin_options){ 0 });
    assert_int_equal(burin_engine_step(engine, &n_left, NULL), BURIN_OK);
    assert_int_equal(n_left, 0);
    assert_int_equal(fake_runs, 0);
    close_engine(engine);
    burin_engine_close(NULL);
}
