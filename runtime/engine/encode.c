#include "runtime/engine/encode.h"

#include "runtime/plan/runs.h"
#include "runtime/plan/size.h"

#include <string.h>

/* ---- Opening ------------------------------------------------------------------------- */

/* The one that is planned, or -1. */
static int planned_encoder(const struct burin_plan *plan)
{
    for (int p = 0; p < plan->family->n_programs; p++) {
        const struct burin_program *program = &plan->family->programs[p];
        if (plan->programs[p].active && burin_is_encoder(program) &&
            !burin_is_audio(program))
            return p;
    }
    return -1;
}

static enum burin_status place_inputs(
        struct burin_encoder *encoder, struct burin_error *err)
{
    const struct burin_program *program = encoder->program;
    for (int i = 0; i < program->n_inputs; i++) {
        const struct burin_input *input = &program->inputs[i];
        void *at = burin_staging_input(encoder->staging, &encoder->run_call, i);
        if (strcmp(input->name, "pixels") == 0 && input->dtype == BURIN_U8) {
            encoder->pixels = at;
            encoder->vision = burin_vision_of(input, program->largest_item);
        } else if (strcmp(input->name, "pixel_positions") == 0) {
            encoder->positions = at;
        } else if (strcmp(input->name, "item_begin") == 0) {
            encoder->item_begin = at;
        } else {
            return burin_fail(
                    err, BURIN_EMISMATCH,
                    "program %s wants the input %s (%s), which this engine does not fill",
                    program->name, input->name, burin_dtype_name(input->dtype));
        }
    }
    if (!encoder->pixels || !encoder->positions || !encoder->item_begin)
        return burin_fail(
                err, BURIN_EMISMATCH,
                "program %s must read pixels, pixel_positions and item_begin",
                program->name);
    return BURIN_OK;
}

/* Soft tokens become rows of the cache as they are. */
static enum burin_status match_cache(
        struct burin_encoder *encoder,
        const struct burin_plan *plan,
        const struct burin_program *step,
        struct burin_error *err)
{
    const struct burin_output *result = &encoder->program->outputs[0];
    for (int i = 0; i < step->n_inputs; i++) {
        const struct burin_input *input = &step->inputs[i];
        encoder->spans |= strcmp(input->name, "spans") == 0;
        if (!burin_input_is_cache(input))
            continue;
        const int64_t width = burin_size_at(&input->dims[1].fixed, &plan->params);
        if (encoder->program->n_outputs != 1 || result->dtype != input->dtype ||
            burin_size_at(&result->dims[1].fixed, &plan->params) != width)
            return burin_fail(
                    err, BURIN_EMISMATCH, "program %s makes no rows of %s",
                    encoder->program->name, input->name);
        encoder->row_bytes = (size_t)width * burin_dtype_bytes(input->dtype);
    }
    encoder->n_rows = (int)plan->params.value[BURIN_MAX_SOFT];
    if (!encoder->row_bytes)
        return burin_fail(
                err, BURIN_EMISMATCH, "program %s reads no soft tokens", step->name);
    return BURIN_OK;
}

static enum burin_status take_tables(
        struct burin_encoder *encoder,
        const struct burin_plan *plan,
        struct burin_arena *host,
        struct burin_error *err)
{
    const size_t n_slots = (size_t)plan->n_sequences;
    const size_t n_ids = n_slots * (size_t)plan->n_ctx;
    encoder->n_ctx = plan->n_ctx;
    encoder->run = BURIN_TAKE(host, (size_t)encoder->limits.n_items, struct burin_patches);
    encoder->free = BURIN_TAKE(host, (size_t)encoder->n_rows, int32_t);
    encoder->seen = BURIN_TAKE(host, n_slots, struct burin_seen);
    encoder->soft_index = BURIN_TAKE(host, n_ids, int32_t);
    encoder->span = BURIN_TAKE(host, encoder->spans ? n_ids : 1, int32_t);
    if (!encoder->run || !encoder->free || !encoder->seen || !encoder->soft_index ||
        !encoder->span)
        return burin_fail(
                err, BURIN_ENOMEM, "no memory for pictures in %zu sequences", n_slots);
    for (int i = 0; i < encoder->n_rows; i++)
        encoder->free[i] = encoder->n_rows - 1 - i;
    encoder->n_free = encoder->n_rows;
    return BURIN_OK;
}

enum burin_status burin_encoder_open(
        struct burin_encoder *encoder,
        const struct burin_plan *plan,
        const struct burin_program *step,
        const struct burin_memory *memory,
        const struct burin_staging *staging,
        struct burin_captures *captures,
        struct burin_arena *host,
        struct burin_error *err)
{
    const int p = planned_encoder(plan);
    *encoder = (struct burin_encoder){ .staging = staging, .captures = captures };
    if (p < 0)
        return BURIN_OK;
    const struct burin_program *program = &plan->family->programs[p];
    encoder->program = program;
    encoder->kv = plan->kv_index;
    if (!burin_program_runs(program, plan->kv_index))
        return burin_fail(
                err, BURIN_EUSAGE, "%s can't be run yet: no kernels for %s", program->name,
                program->missing ? program->missing : "this machine");

    enum burin_status status =
            burin_program_call_open(&encoder->run_call, plan, p, memory, err);
    if (!status)
        status = place_inputs(encoder, err);
    if (!status)
        status = match_cache(encoder, plan, step, err);
    if (status)
        return status;
    encoder->cache = memory->cache.address;
    encoder->n_batch = plan->n_batch;
    int n[BURIN_N_EXTENTS];
    burin_largest_extents(plan, p, n);
    encoder->limits = burin_run_limits(
            n[BURIN_SOFT], program->smallest_item, burin_vision_patches(&encoder->vision));
    if (encoder->limits.n_items > encoder->n_rows)
        encoder->limits.n_items = encoder->n_rows;
    return take_tables(encoder, plan, host, err);
}

enum burin_status burin_encoder_fits(
        const struct burin_plan *plan, int n_soft, struct burin_error *err)
{
    const int p = planned_encoder(plan);
    const int largest = p < 0 ? 0 : plan->programs[p].n_eager;
    if (p < 0 || n_soft <= largest)
        return BURIN_OK;
    const struct burin_program *program = &plan->family->programs[p];
    const int n[BURIN_N_EXTENTS] = { [BURIN_SOFT] = n_soft };
    const size_t bytes = burin_arena_bytes(program, &plan->params, n);
    return burin_fail(
            err, BURIN_ENOMEM,
            "a picture of %d soft tokens needs %zu bytes of arena at once, the encoder's "
            "runs hold %d soft tokens: give --encoder-arena %zu",
            n_soft, bytes, largest, bytes);
}

/* ---- Requests ------------------------------------------------------------------------ */

static int soft_of(const struct burin_picture *picture)
{
    return burin_grid_soft(picture->patches.grid);
}

enum burin_status burin_encoder_check(
        const struct burin_encoder *encoder,
        const struct burin_request *request,
        struct burin_error *err)
{
    int end = 0; /* of the picture before */
    if (request->n_pictures && !encoder->program)
        return burin_fail(
                err, BURIN_EUSAGE,
                "the prompt has %d pictures, the engine is open for none",
                request->n_pictures);
    for (int i = 0; i < request->n_pictures; i++) {
        const struct burin_picture *picture = &request->pictures[i];
        const int n_soft = soft_of(picture);
        if (n_soft < 1 || picture->begin < end || picture->begin > request->n_ids - n_soft)
            return burin_fail(
                    err, BURIN_EUSAGE,
                    "picture %d has %d soft tokens from token %d on: it must lie behind "
                    "the one before it, which ends at %d, and within the prompt of %d",
                    i, n_soft, picture->begin, end, request->n_ids);
        if (n_soft > encoder->limits.n_soft || n_soft > encoder->n_rows)
            return burin_fail(
                    err, BURIN_ELIMIT,
                    "picture %d has %d soft tokens; a run of the encoder holds %d, its "
                    "cache %d",
                    i, n_soft, encoder->limits.n_soft, encoder->n_rows);
        if (encoder->spans && n_soft > encoder->n_batch)
            return burin_fail(
                    err, BURIN_ELIMIT,
                    "picture %d has %d soft tokens, which one step takes together, and a "
                    "step has %d (--batch-size)",
                    i, n_soft, encoder->n_batch);
        end = picture->begin + n_soft;
    }
    return BURIN_OK;
}

void burin_encoder_begin(
        struct burin_encoder *encoder,
        int slot,
        const struct burin_request *request,
        struct burin_sequence *sequence)
{
    sequence->n_ready = request->n_ids;
    if (!request->n_pictures)
        return;
    int32_t *index = encoder->soft_index + (size_t)slot * (size_t)encoder->n_ctx;
    int32_t *span = encoder->span + (size_t)slot * (size_t)encoder->n_ctx;
    encoder->seen[slot] = (struct burin_seen){ 0 };
    for (int i = 0; i < request->n_ids; i++) {
        index[i] = -1;
        if (encoder->spans)
            span[i] = i + 1;
    }
    for (int p = 0; p < request->n_pictures && encoder->spans; p++) {
        const int begin = request->pictures[p].begin;
        const int end = begin + soft_of(&request->pictures[p]);
        for (int i = begin; i < end; i++)
            span[i] = end;
    }
    sequence->soft_index = index;
    sequence->spans = encoder->spans ? span : NULL;
    sequence->n_ready = request->pictures[0].begin;
}

void burin_encoder_release(
        struct burin_encoder *encoder,
        int slot,
        const struct burin_request *request,
        int n_done)
{
    if (!request->n_pictures)
        return;
    struct burin_seen *seen = &encoder->seen[slot];
    const int32_t *index = encoder->soft_index + (size_t)slot * (size_t)encoder->n_ctx;
    while (seen->n_used < seen->n_encoded) {
        const struct burin_picture *picture = &request->pictures[seen->n_used];
        const int n_soft = soft_of(picture);
        if (picture->begin + n_soft > n_done)
            return;
        for (int i = n_soft - 1; i >= 0; i--)
            encoder->free[encoder->n_free++] = index[picture->begin + i];
        seen->n_used++;
    }
}

/* ---- Runs ---------------------------------------------------------------------------- */

/* What lies behind the real patches in a graph that has more: an item at one place. */
static void pad_run(const struct burin_encoder *encoder, int n_pictures, int n_soft, int n)
{
    const int each = burin_vision_patches(&encoder->vision);
    const int first = n_soft * each;
    memset(encoder->positions + 2 * (size_t)first, 0,
           2 * sizeof(int32_t) * (size_t)(n * each - first));
    encoder->item_begin[n_pictures] = first;
    for (int i = n_pictures + 1; i <= n; i++)
        encoder->item_begin[i] = n * each;
}

/* Rows that stand one behind another in the cache, too, are copied together. */
static enum burin_status keep_rows(
        struct burin_encoder *encoder,
        int slot,
        const struct burin_picture *pictures,
        int n,
        const uint8_t *row,
        struct burin_error *err)
{
    struct burin_queue *queue = encoder->staging->queue;
    const size_t bytes = encoder->row_bytes;
    int32_t *index = encoder->soft_index + (size_t)slot * (size_t)encoder->n_ctx;
    int32_t first = -1;
    size_t n_rows = 0; /* of the copy that begins at `first` */
    enum burin_status status = BURIN_OK;
    for (int i = 0; i < n && !status; i++)
        for (int k = 0; k < soft_of(&pictures[i]) && !status; k++) {
            const int32_t to = encoder->free[--encoder->n_free];
            index[pictures[i].begin + k] = to;
            if (n_rows && to != first + (int32_t)n_rows) {
                status = burin_queue_copy(
                        queue, encoder->cache + (uint64_t)first * bytes, (uintptr_t)row,
                        n_rows * bytes, err);
                row += n_rows * bytes;
                n_rows = 0;
            }
            if (!n_rows++)
                first = to;
        }
    if (!status && n_rows)
        status = burin_queue_copy(
                queue, encoder->cache + (uint64_t)first * bytes, (uintptr_t)row,
                n_rows * bytes, err);
    return status;
}

/* The first n pictures of encoder->run, and their rows into the cache. */
static enum burin_status run_encoder(
        struct burin_encoder *encoder,
        int slot,
        const struct burin_picture *pictures,
        int n,
        struct burin_error *err)
{
    struct burin_call *call = &encoder->run_call.call;
    struct burin_queue *queue = encoder->staging->queue;
    int n_soft = 0;
    for (int i = 0; i < n; i++) {
        encoder->run[i] = pictures[i].patches;
        n_soft += soft_of(&pictures[i]);
    }
    const struct burin_captured *captured =
            burin_captures_find(encoder->captures, encoder->program, n_soft);
    call->n[BURIN_SOFT] = captured ? captured->n : n_soft;
    burin_patches_pack(
            encoder->run, n, &encoder->vision, n_soft, encoder->pixels, encoder->positions,
            encoder->item_begin);
    if (call->n[BURIN_SOFT] > n_soft)
        pad_run(encoder, n, n_soft, call->n[BURIN_SOFT]);

    enum burin_status status =
            burin_staging_send(encoder->staging, &encoder->run_call, err);
    if (!status)
        status = captured
                         ? burin_graph_launch(&captured->graph, queue, err)
                         : burin_queue_run(queue, encoder->program, encoder->kv, call, err);
    if (!status)
        status = keep_rows(
                encoder, slot, pictures, n,
                call->arena + burin_output_offset(
                                      encoder->program,
                                      0 /* match_cache(): its one output */, &call->params,
                                      call->n),
                err);
    if (!status)
        status = burin_queue_finish(queue, err);
    if (status)
        return status;
    burin_captures_count(encoder->captures, captured, n_soft);
    encoder->n_runs++;
    return BURIN_OK;
}

/* How many pictures from `first` on go into the next run: none where that begins behind `stop`,
 * else as many as the run holds and the cache has rows for. */
static int take_pictures(
        const struct burin_encoder *encoder,
        const struct burin_request *request,
        int first,
        int stop)
{
    const int room = encoder->limits.n_soft < encoder->n_free ? encoder->limits.n_soft
                                                              : encoder->n_free;
    int n = 0;
    int n_soft = 0;
    while (first + n < request->n_pictures && n < encoder->limits.n_items) {
        const struct burin_picture *picture = &request->pictures[first + n];
        if ((n == 0 && picture->begin >= stop) || n_soft + soft_of(picture) > room)
            break;
        n_soft += soft_of(picture);
        n++;
    }
    return n;
}

enum burin_status burin_encoder_advance(
        struct burin_encoder *encoder,
        int slot,
        const struct burin_request *request,
        struct burin_sequence *sequence,
        int room,
        struct burin_error *err)
{
    if (!request->n_pictures)
        return BURIN_OK;
    struct burin_seen *seen = &encoder->seen[slot];
    int n;
    while ((n = take_pictures(
                    encoder, request, seen->n_encoded, sequence->n_done + room))) {
        const enum burin_status status =
                run_encoder(encoder, slot, request->pictures + seen->n_encoded, n, err);
        if (status)
            return status;
        seen->n_encoded += n;
    }
    sequence->n_ready = seen->n_encoded < request->n_pictures
                                ? request->pictures[seen->n_encoded].begin
                                : request->n_ids;
    return BURIN_OK;
}
