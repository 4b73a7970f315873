/* runtime/engine/loop.c -- Requests: into the queue, into a slot, step by step to their end. */
#include "runtime/engine/engine.h"

#include "runtime/base/clock.h"
#include "runtime/plan/size.h"

#include <limits.h>
#include <string.h>

/* ---- Submit ------------------------------------------------------------------------- */

/* The most tokens of its prompt whose logits are wanted and that are never cut. */
static int largest_piece(
        const struct burin_engine *engine, const struct burin_request *request)
{
    int most = engine->batch.quantum;
    for (int p = 0; p < request->n_pictures && engine->encoder.spans; p++) {
        const struct burin_picture *picture = &request->pictures[p];
        const int n = burin_grid_soft(picture->patches.grid);
        if (n > most && picture->begin + n > request->logits_from)
            most = n;
    }
    return most;
}

static enum burin_status check_request(
        const struct burin_engine *engine,
        const struct burin_request *request,
        struct burin_error *err)
{
    const struct burin_plan *plan = &engine->plan;
    const int n_vocab = plan->model->n_vocab;

    if (request->n_ids < 1)
        return burin_fail(err, BURIN_EUSAGE, "the prompt is empty, it needs a token");
    if (request->n_ids > plan->n_ctx)
        return burin_fail(
                err, BURIN_ELIMIT, "the prompt has %d tokens, the context has room for %d",
                request->n_ids, plan->n_ctx);
    for (int i = 0; i < request->n_ids; i++)
        if (request->ids[i] < 0 || request->ids[i] >= n_vocab)
            return burin_fail(
                    err, BURIN_EUSAGE,
                    "token %d of the prompt is %d, the vocabulary ends at %d", i,
                    request->ids[i], n_vocab - 1);
    if (request->logits_from < 0)
        return burin_fail(
                err, BURIN_EUSAGE, "logits_from is %d, below 0", request->logits_from);
    enum burin_status status = burin_encoder_check(&engine->encoder, request, err);
    if (status)
        return status;
    const int outputs = plan->n_outputs - (plan->n_sequences - 1); /* that others leave */
    const int piece = largest_piece(engine, request);
    if (request->on_logits && request->logits_from < request->n_ids - 1 && outputs < piece)
        return burin_fail(
                err, BURIN_EUSAGE,
                "prompts are cut in pieces of %d, and a step has %d rows of logits left "
                "for one: open the engine with n_outputs %d",
                piece, outputs, piece + plan->n_sequences - 1);
    return burin_sampling_check(&request->sampling, err);
}

enum burin_status burin_submit(
        struct burin_engine *engine, struct burin_request *request, struct burin_error *err)
{
    const enum burin_status status = check_request(engine, request, err);
    if (status)
        return status;

    request->finish = BURIN_WAITING;
    request->error.status = BURIN_OK;
    request->error.message[0] = 0;
    request->seed = burin_random_seed(request->sampling.seed);
    burin_random_init(request->random, request->seed);
    request->n_prompt_done = 0;
    request->n_generated = 0;
    request->queued_ms = 0;
    request->prefill_ms = 0;
    request->decode_ms = 0;
    request->mark_ms = burin_now_ms();
    request->next = NULL;
    atomic_store(&request->cancelled, false);

    if (engine->first)
        engine->last->next = request;
    else
        engine->first = request;
    engine->last = request;
    engine->n_waiting++;
    return BURIN_OK;
}

void burin_cancel(struct burin_request *request)
{
    atomic_store(&request->cancelled, true);
}

/* ---- Begin and end ------------------------------------------------------------------ */

/* Time since the last mark; the mark moves. */
static double lap(struct burin_request *request)
{
    const double now_ms = burin_now_ms();
    const double since = now_ms - request->mark_ms;
    request->mark_ms = now_ms;
    return since;
}

static void tell_end(struct burin_request *request, enum burin_finish finish)
{
    request->finish = finish;
    if (request->on_end)
        request->on_end(request);
}

/* Give a slot back. */
static void end_request(struct burin_engine *engine, int slot, enum burin_finish finish)
{
    struct burin_request *request = engine->requests[slot];
    const double since = lap(request);
    if (request->n_generated > 0)
        request->decode_ms += since;
    else
        request->prefill_ms += since;

    burin_kv_release(&engine->kv, slot);
    burin_encoder_release(&engine->encoder, slot, request, INT_MAX);
    engine->requests[slot] = NULL;
    engine->sequences[slot] = (struct burin_sequence){ 0 };
    int at = 0;
    while (engine->order[at] != slot)
        at++;
    engine->n_running--;
    memmove(engine->order + at, engine->order + at + 1,
            (size_t)(engine->n_running - at) * sizeof *engine->order);
    tell_end(request, finish);
}

/* Out of the queue, where `previous` (NULL: nobody) stands before it. */
static void unlink_waiting(
        struct burin_engine *engine,
        struct burin_request *previous,
        struct burin_request *request)
{
    if (previous)
        previous->next = request->next;
    else
        engine->first = request->next;
    if (engine->last == request)
        engine->last = previous;
    request->next = NULL;
    engine->n_waiting--;
}

/* Tokens that a request can reach: its pages are reserved before it begins. */
static int tokens_at_most(const struct burin_engine *engine, const struct burin_request *r)
{
    const int room = engine->plan.n_ctx - r->n_ids;
    return r->n_ids + (r->max_tokens < 0 || r->max_tokens > room ? room : r->max_tokens);
}

static int free_slot(const struct burin_engine *engine)
{
    int slot = 0;
    while (slot < engine->plan.n_sequences && engine->requests[slot])
        slot++;
    return slot;
}

/* From the queue into slots, in order: the first waits for pages, the others behind it. */
static void admit(struct burin_engine *engine)
{
    while (engine->first && engine->n_running < engine->plan.n_sequences) {
        struct burin_request *request = engine->first;
        const int slot = free_slot(engine);
        if (!burin_kv_reserve(&engine->kv, slot, tokens_at_most(engine, request)))
            return;

        unlink_waiting(engine, NULL, request);
        const int last = request->n_ids - 1;
        engine->requests[slot] = request;
        engine->sequences[slot] = (struct burin_sequence){
            .ids = request->ids,
            .n_ids = request->n_ids,
            .outputs_from = request->on_logits && request->logits_from < last
                                    ? request->logits_from
                                    : last,
        };
        burin_encoder_begin(&engine->encoder, slot, request, &engine->sequences[slot]);
        engine->order[engine->n_running++] = slot;
        request->finish = BURIN_RUNNING;
        request->queued_ms = lap(request);
    }
}

static void end_cancelled(struct burin_engine *engine)
{
    for (int i = engine->n_running - 1; i >= 0; i--)
        if (atomic_load(&engine->requests[engine->order[i]]->cancelled))
            end_request(engine, engine->order[i], BURIN_CANCELLED);

    struct burin_request *previous = NULL;
    struct burin_request *request = engine->first;
    while (request) {
        struct burin_request *next = request->next;
        if (atomic_load(&request->cancelled)) {
            unlink_waiting(engine, previous, request);
            request->queued_ms = lap(request);
            tell_end(request, BURIN_CANCELLED);
        } else {
            previous = request;
        }
        request = next;
    }
}

/* ---- Step --------------------------------------------------------------------------- */

static bool is_stop(const struct burin_request *request, int32_t token)
{
    for (int i = 0; i < request->n_stop_ids; i++)
        if (request->stop_ids[i] == token)
            return true;
    return false;
}

static void fail_request(struct burin_engine *engine, int slot, int position)
{
    struct burin_request *request = engine->requests[slot];
    burin_fail(
            &request->error, BURIN_ENUMERIC,
            "non-finite logits at step %d, after the token at position %d",
            request->n_generated, position);
    end_request(engine, slot, BURIN_FAILED);
}

/* What a step has left, as far as it was fetched. */
struct results {
    const float *logits;                /* (n_outputs, n_vocab); NULL: on the device */
    const struct burin_top_logits *top; /* (n_outputs); NULL: there are none */
};

static const uint8_t *output_of(const struct burin_engine *engine, int output)
{
    const struct burin_call *call = &engine->call.call;
    return call->arena + burin_output_offset(engine->step, output, &call->params, call->n);
}

static size_t row_bytes(const struct burin_engine *engine)
{
    return (size_t)engine->plan.model->n_vocab * sizeof(float);
}

/* The logits of one row, which may be still on the device. */
static enum burin_status fetch_row(
        struct burin_engine *engine,
        const struct results *results,
        int row,
        const float **logits,
        struct burin_error *err)
{
    const void *at = NULL;
    if (results->logits) {
        *logits = results->logits + (size_t)row * (size_t)engine->plan.model->n_vocab;
        return BURIN_OK;
    }
    enum burin_status status = burin_staging_fetch(
            &engine->staging, 0,
            output_of(engine, engine->logits) + (size_t)row * row_bytes(engine),
            row_bytes(engine), &at, err);
    if (!status)
        status = burin_queue_finish(&engine->queue, err);
    *logits = at;
    return status;
}

/* The token of a row; -1 where its logits are not finite. */
static enum burin_status draw_token(
        struct burin_engine *engine,
        struct burin_request *request,
        const struct results *results,
        int row,
        int32_t *token,
        struct burin_error *err)
{
    const struct burin_sampling *sampling = &request->sampling;
    const float *logits = NULL;
    bool decided = false;
    if (results->top && burin_sampling_by_top(sampling))
        *token = burin_sampler_draw_top(
                &engine->sampler, &results->top[row], sampling, request->random, &decided);
    if (decided)
        return BURIN_OK;
    const enum burin_status status = fetch_row(engine, results, row, &logits, err);
    if (!status)
        *token = burin_sampler_draw(&engine->sampler, logits, sampling, request->random);
    return status;
}

/* Draw the token that follows the last row of a sequence, and end the request where it ends
 * it. The context counts prompt and new tokens: a full one has no room for another. */
static enum burin_status draw(
        struct burin_engine *engine,
        int slot,
        const struct results *results,
        int row,
        struct burin_error *err)
{
    struct burin_request *request = engine->requests[slot];
    struct burin_sequence *sequence = &engine->sequences[slot];
    const int n_ctx = engine->plan.n_ctx;
    int32_t token = -1;

    if (request->max_tokens == 0) {
        end_request(engine, slot, BURIN_LENGTH);
        return BURIN_OK;
    }
    if (request->n_ids + request->n_generated == n_ctx) {
        end_request(engine, slot, BURIN_CONTEXT);
        return BURIN_OK;
    }
    const enum burin_status status = draw_token(engine, request, results, row, &token, err);
    if (status)
        return status;
    if (token < 0) {
        fail_request(engine, slot, sequence->n_done - 1);
        return BURIN_OK;
    }
    if (is_stop(request, token)) {
        end_request(engine, slot, BURIN_STOPPED);
        return BURIN_OK;
    }

    if (request->n_generated++ == 0)
        request->prefill_ms += lap(request);
    sequence->token = token;
    if (request->on_token && !request->on_token(request, token))
        end_request(engine, slot, BURIN_CANCELLED);
    else if (request->n_generated == request->max_tokens)
        end_request(engine, slot, BURIN_LENGTH);
    else if (request->n_ids + request->n_generated == n_ctx)
        end_request(engine, slot, BURIN_CONTEXT);
    return BURIN_OK;
}

/* Hand out the logits of one sequence's rows; false when that ended the request. */
static bool show_logits(
        struct burin_engine *engine, const struct burin_part *part, const float *logits)
{
    struct burin_request *request = engine->requests[part->slot];
    const int n_vocab = engine->plan.model->n_vocab;
    const int end = engine->sequences[part->slot].n_done;

    if (!request->on_logits)
        return true;
    for (int i = 0; i < part->n_outputs; i++) {
        const int position = end - part->n_outputs + i;
        const float *row = logits + (size_t)(part->first_output + i) * (size_t)n_vocab;
        if (burin_argmax(row, n_vocab) < 0) {
            fail_request(engine, part->slot, position);
            return false;
        }
        request->on_logits(request, position, row);
    }
    return true;
}

static enum burin_status finish_part(
        struct burin_engine *engine,
        const struct burin_part *part,
        const struct results *results,
        struct burin_error *err)
{
    struct burin_request *request = engine->requests[part->slot];
    struct burin_sequence *sequence = &engine->sequences[part->slot];

    sequence->n_done += part->n_rows;
    burin_encoder_release(&engine->encoder, part->slot, request, sequence->n_done);
    if (request->n_prompt_done < request->n_ids)
        request->n_prompt_done = sequence->n_done;
    if (!show_logits(engine, part, results->logits) || sequence->n_done < sequence->n_ids)
        return BURIN_OK;
    return draw(engine, part->slot, results, part->first_output + part->n_outputs - 1, err);
}

/* A step of one row a sequence is replayed in the smallest graph that holds it. */
static const struct burin_captured *find_graph(const struct burin_engine *engine)
{
    const struct burin_batch *batch = &engine->batch;
    return burin_batch_decodes(batch)
                   ? burin_captures_find(
                             &engine->captures, engine->step, batch->n_sequences)
                   : NULL;
}

/* Whether a request of this step takes rows as they are, or draws from all of one. */
static bool wants_rows(const struct burin_engine *engine)
{
    for (int i = 0; i < engine->batch.n_sequences; i++) {
        const struct burin_part *part = &engine->batch.parts[i];
        const struct burin_request *request = engine->requests[part->slot];
        if (part->n_outputs &&
            (request->on_logits || !burin_sampling_by_top(&request->sampling)))
            return true;
    }
    return engine->top < 0;
}

static enum burin_status fetch_results(
        struct burin_engine *engine, struct results *results, struct burin_error *err)
{
    const size_t n = (size_t)engine->batch.n_outputs;
    const size_t behind = (size_t)engine->plan.n_outputs * row_bytes(engine);
    const void *at = NULL;
    enum burin_status status = BURIN_OK;
    *results = (struct results){ .logits = NULL };
    if (n && wants_rows(engine)) {
        status = burin_staging_fetch(
                &engine->staging, 0, output_of(engine, engine->logits),
                n * row_bytes(engine), &at, err);
        results->logits = at;
    }
    if (n && !status && engine->top >= 0) {
        status = burin_staging_fetch(
                &engine->staging, behind, output_of(engine, engine->top),
                n * sizeof *results->top, &at, err);
        results->top = at;
    }
    return status;
}

static enum burin_status run_batch(
        struct burin_engine *engine, struct results *results, struct burin_error *err)
{
    const struct burin_batch *batch = &engine->batch;
    struct burin_call *call = &engine->call.call;
    const struct burin_captured *captured = find_graph(engine);
    call->n[BURIN_TOKENS] = captured ? captured->n : batch->n_tokens;
    call->n[BURIN_SEQUENCES] = captured ? captured->n : batch->n_sequences;
    call->n[BURIN_OUTPUTS] = captured ? captured->n : batch->n_outputs;
    if (captured)
        burin_batch_pad(batch, captured->n);

    enum burin_status status = burin_staging_send(&engine->staging, &engine->call, err);
    if (!status)
        status = captured ? burin_graph_launch(&captured->graph, &engine->queue, err)
                          : burin_queue_run(
                                    &engine->queue, engine->step, engine->plan.kv_index,
                                    call, err);
    if (!status)
        status = fetch_results(engine, results, err);
    if (!status)
        status = burin_queue_finish(&engine->queue, err);
    if (!status)
        burin_captures_count(&engine->captures, captured, batch->n_sequences);
    return status;
}

enum burin_status burin_engine_step(
        struct burin_engine *engine, int *n_left, struct burin_error *err)
{
    end_cancelled(engine);
    admit(engine);
    for (int i = 0; i < engine->n_running; i++) {
        const int slot = engine->order[i];
        const enum burin_status status = burin_encoder_advance(
                &engine->encoder, slot, engine->requests[slot], &engine->sequences[slot],
                engine->plan.n_batch, err);
        if (status)
            return status;
    }
    burin_batch_fill(
            &engine->batch, engine->sequences, engine->order, engine->n_running,
            &engine->kv);

    if (engine->batch.n_tokens > 0) {
        struct results results;
        enum burin_status status = run_batch(engine, &results, err);
        for (int i = 0; i < engine->batch.n_sequences && !status; i++)
            status = finish_part(engine, &engine->batch.parts[i], &results, err);
        if (status)
            return status;
    }
    *n_left = engine->n_running + engine->n_waiting;
    return BURIN_OK;
}

enum burin_status burin_engine_run(struct burin_engine *engine, struct burin_error *err)
{
    int n_left = 0;
    enum burin_status status;
    do
        status = burin_engine_step(engine, &n_left, err);
    while (!status && n_left > 0);
    return status;
}
