#include "runtime/engine/open.h"

#include "runtime/base/clock.h"
#include "runtime/device/machine.h"
#include "runtime/engine/start_report.h"
#include "runtime/plan/size.h"
#include "runtime/text/tokenizer.h"
#include "runtime/weights/locate.h"
#include "runtime/weights/pack.h"

#include <string.h>

/* ---- What there is ------------------------------------------------------------------ */

static enum burin_status find_weights(
        struct burin_engine *engine, struct burin_opening *o, struct burin_error *err)
{
    const struct burin_model *model = o->options->model;
    engine->generation = burin_generation_unsaid;
    if (!model->n_weights)
        return BURIN_OK;

    enum burin_status status = burin_locate(
            model, o->options->weights, NULL, &o->checkpoint, &o->tensors, err);
    if (status)
        return status;
    const char *path = o->checkpoint.path;
    engine->weights_path = burin_arena_text(&engine->host, path, strlen(path));
    if (!engine->weights_path)
        return burin_fail(err, BURIN_ENOMEM, "no memory for a path of weights");
    status = burin_generation_read(&engine->generation, &o->checkpoint, err);
    if (status)
        return status;
    return burin_vocab_from_checkpoint(&o->vocab, &o->checkpoint, &o->has_vocab, err);
}

/* ---- The plan ----------------------------------------------------------------------- */

enum burin_status burin_opening_request(
        const struct burin_opening *o,
        struct burin_plan_request *request,
        struct burin_error *err)
{
    const struct burin_options *options = o->options;
    size_t tokenizer = 0;
    *request = (struct burin_plan_request){
        .model = options->model,
        .kv_dtype_given = options->kv_dtype_given,
        .kv_dtype = options->kv_dtype,
        .n_threads = options->n_threads > 0 ? options->n_threads : burin_machine_cores(),
        .n_ctx = options->n_ctx,
        .n_sequences = options->n_sequences,
        .n_batch = options->n_batch,
        .n_outputs = options->n_outputs,
        .kv_tokens = options->kv_tokens,
        .kv_bytes = options->kv_bytes,
        .images_given = true,
        .n_images = options->n_images,
        .n_frames = options->n_frames,
        .largest_picture = options->largest_picture,
        .padding_given = options->padding_given,
        .graph_padding = options->graph_padding,
        .encoder_arena = options->encoder_arena,
        .fast_gemm = options->fast_gemm,
        .limit = options->limit,
        .limit_bytes = options->limit_bytes,
        .limit_fraction = options->limit_fraction,
        .weights_at_hand = true,
    };
    if (options->graphs)
        request->graphs = *options->graphs;
    /* Every sequence that makes tokens has a row of logits in every step. */
    if (request->n_outputs && request->n_outputs < request->n_sequences)
        request->n_outputs = request->n_sequences;
    const enum burin_status status =
            o->has_vocab ? burin_tokenizer_plan(&o->vocab, &tokenizer, err) : BURIN_OK;
    request->tokenizer_bytes = (int64_t)tokenizer;
    return status;
}

static enum burin_status plan_cpu(
        struct burin_engine *engine, const struct burin_opening *o, struct burin_error *err)
{
    const struct burin_options *options = o->options;
    struct burin_plan_request request;
    enum burin_status status = burin_opening_request(o, &request, err);
    request.granule = (int64_t)engine->cpu.device.granule;
    if (!status)
        status = burin_machine_family(
                options->model, options->target, options->exact, &request.family, err);
    if (!status)
        status = burin_machine_card(&request.card, err);
    if (!status)
        status = burin_plan_make(&engine->plan, &request, err);
    if (!status)
        status = burin_plan_check(&engine->plan, err);
    return status;
}

static enum burin_status make_plan(
        struct burin_engine *engine, struct burin_opening *o, struct burin_error *err)
{
    struct burin_error why = { 0 };
    enum burin_status status;
    do
        status = engine->on_gpu ? burin_opening_plan_gpu(o, &why)
                                : plan_cpu(engine, o, &why);
    while (status && burin_opening_next(o, &why));
    if (!status)
        status = burin_encoder_fits(&engine->plan, o->options->largest_picture, &why);
    return status ? burin_opening_refuse(o, &why, err) : BURIN_OK;
}

/* ---- Memory ------------------------------------------------------------------------- */

static enum burin_status take_device_memory(
        struct burin_engine *engine, struct burin_error *err)
{
    struct burin_memory *memory = &engine->memory;
    const enum burin_status status =
            burin_memory_take(memory, &engine->ledger, &engine->plan, err);
    if (status)
        return status;
    engine->staging = (struct burin_staging){
        .queue = &engine->queue,
        .inputs = burin_device_host(engine->device, memory->inputs.address),
        .inputs_address = memory->inputs.address,
    };
    return BURIN_OK;
}

/* Pages that nobody has written are not there: without this the resident set would grow while
 * serving, and what was planned might not be had then. Behind packing, whose own buffers have
 * been given back: all of it together stays within the plan. */
static enum burin_status touch_pages(struct burin_engine *engine, struct burin_error *err)
{
    const struct burin_memory_piece *const pieces[] = {
        &engine->memory.arena, &engine->memory.inputs, &engine->memory.cache,
        &engine->memory.slots, &engine->memory.kv,
    };
    enum burin_status status = BURIN_OK;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces && !status; i++)
        if (pieces[i]->bytes)
            status = burin_queue_fill(
                    &engine->queue, pieces[i]->address, 0, pieces[i]->bytes, err);
    return status;
}

/* Of the host, for what the host alone reads; a plan of a CPU has a row for it. */
static enum burin_status take_for_host(
        struct burin_engine *engine,
        const char *owner,
        size_t bytes,
        void **memory,
        struct burin_error *err)
{
    uint64_t address = 0;
    if (engine->on_gpu) {
        *memory = burin_arena_take(&engine->host, bytes, 1, 64);
        return *memory ? BURIN_OK
                       : burin_fail(err, BURIN_ENOMEM, "no memory for %s", owner);
    }
    const enum burin_status status =
            burin_ledger_take(&engine->ledger, owner, bytes, &address, err);
    *memory = status ? NULL : burin_device_host(engine->device, address);
    return status;
}

static enum burin_status open_tokenizer(
        struct burin_engine *engine, struct burin_opening *o, struct burin_error *err)
{
    if (!o->has_vocab)
        return BURIN_OK;
    size_t bytes = 0;
    void *memory = NULL;
    enum burin_status status = burin_tokenizer_plan(&o->vocab, &bytes, err);
    if (!status)
        status = take_for_host(engine, "tokenizer", bytes, &memory, err);
    if (!status)
        status = burin_tokenizer_open(&engine->tokenizer, &o->vocab, memory, bytes, err);
    return status;
}

/* ---- The step's inputs -------------------------------------------------------------- */

static const struct burin_program *program_named(
        const struct burin_family *family, const char *name)
{
    for (int i = 0; i < family->n_programs; i++)
        if (strcmp(family->programs[i].name, name) == 0)
            return &family->programs[i];
    return NULL;
}

/* Each role is an array of the batch. It lies among the program's inputs, or on the host
 * where the program does not ask for it. */
static enum burin_status place_inputs(struct burin_engine *engine, struct burin_error *err)
{
    const struct burin_program *step = engine->step;
    const struct burin_plan *plan = &engine->plan;
    struct burin_batch *batch = &engine->batch;
    const size_t n_tokens = (size_t)plan->n_batch;
    const size_t n_sequences = (size_t)plan->n_sequences;
    const struct {
        const char *name;
        int32_t **array;
        size_t count;
    } roles[] = {
        { "token_ids", &batch->token_ids, n_tokens },
        { "positions", &batch->positions, n_tokens },
        { "sequence_of", &batch->sequence_of, n_tokens },
        { "sequence_begin", &batch->sequence_begin, n_sequences + 1 },
        { "page_table", &batch->page_table, n_sequences * (size_t)batch->max_pages },
        { "output_rows", &batch->output_rows, (size_t)plan->n_outputs },
        { "output_positions", &batch->output_positions, (size_t)plan->n_outputs },
        { "output_sequence_of", &batch->output_sequence_of, (size_t)plan->n_outputs },
        { "output_begin", &batch->output_begin, n_sequences + 1 },
        { "state_of", &batch->state_of, n_sequences },
        { "spans", &batch->spans, n_tokens },
        { "soft_index", &batch->soft_index, n_tokens },
    };
    enum { N_ROLES = sizeof roles / sizeof *roles };

    for (int i = 0; i < step->n_inputs; i++) {
        const struct burin_input *input = &step->inputs[i];
        int role = 0;
        if (burin_input_is_cache(input))
            continue;
        while (role < N_ROLES && strcmp(roles[role].name, input->name) != 0)
            role++;
        const size_t bytes = burin_input_bytes(input, &plan->params, plan->n);
        if (role == N_ROLES || input->dtype != BURIN_I32)
            return burin_fail(
                    err, BURIN_EMISMATCH,
                    "program %s wants the input %s (%s), which this engine does not fill",
                    step->name, input->name, burin_dtype_name(input->dtype));
        if (bytes < roles[role].count * sizeof(int32_t))
            return burin_fail(
                    err, BURIN_EMISMATCH,
                    "input %s of program %s has %zu bytes, %zu are needed", input->name,
                    step->name, bytes, roles[role].count * sizeof(int32_t));
        *roles[role].array = burin_staging_input(&engine->staging, &engine->call, i);
    }
    for (int role = 0; role < N_ROLES; role++) {
        if (!*roles[role].array)
            *roles[role].array = BURIN_TAKE(&engine->host, roles[role].count, int32_t);
        if (!*roles[role].array)
            return burin_fail(err, BURIN_ENOMEM, "no memory for %s", roles[role].name);
    }
    return BURIN_OK;
}

/* Index of an output, or -1. */
static int output_named(
        const struct burin_program *program, const char *name, enum burin_dtype dtype)
{
    for (int i = 0; i < program->n_outputs; i++)
        if (strcmp(program->outputs[i].name, name) == 0 &&
            program->outputs[i].dtype == dtype)
            return i;
    return -1;
}

static enum burin_status find_step(struct burin_engine *engine, struct burin_error *err)
{
    const struct burin_family *family = engine->plan.family;
    const struct burin_program *step = program_named(family, "step");
    if (!step)
        return burin_fail(
                err, BURIN_EMISMATCH, "family %s has no program step", family->name);
    engine->step = step;
    engine->logits = output_named(step, "logits", BURIN_F32);
    engine->top = engine->on_gpu ? output_named(step, "top", BURIN_I32) : -1;
    if (engine->logits < 0)
        return burin_fail(err, BURIN_EMISMATCH, "program step leaves no logits in f32");
    const int64_t width = engine->top < 0
                                  ? BURIN_TOP_WORDS
                                  : burin_size_at(
                                            &step->outputs[engine->top].dims[1].fixed,
                                            &engine->plan.params);
    if (width != BURIN_TOP_WORDS)
        return burin_fail(
                err, BURIN_EMISMATCH,
                "program step leaves %lld words of a row's largest, not %d",
                (long long)width, BURIN_TOP_WORDS);
    return BURIN_OK;
}

/* A prompt is cut at multiples of every phase's quantum. */
static enum burin_status find_quantum(struct burin_engine *engine, struct burin_error *err)
{
    const struct burin_plan *plan = &engine->plan;
    int quantum = 1;
    for (int i = 0; i < engine->step->n_costs; i++)
        if (engine->step->costs[i].quantum > quantum)
            quantum = engine->step->costs[i].quantum;
    for (int i = 0; i < engine->step->n_costs; i++)
        if (engine->step->costs[i].quantum > 0 && quantum % engine->step->costs[i].quantum)
            return burin_fail(
                    err, BURIN_EMISMATCH,
                    "phase %s has quantum %d, which does not divide %d",
                    engine->step->costs[i].phase, engine->step->costs[i].quantum, quantum);
    if (plan->n_batch - (plan->n_sequences - 1) < quantum && plan->n_batch < plan->n_ctx)
        return burin_fail(
                err, BURIN_EUSAGE,
                "--batch-size %d leaves no room for a piece of %d prompt tokens beside %d "
                "running requests: give at least %d",
                plan->n_batch, quantum, plan->n_sequences - 1,
                plan->n_sequences - 1 + quantum);
    engine->batch.quantum = quantum;
    return BURIN_OK;
}

/* ---- Tables on the host ------------------------------------------------------------- */

static enum burin_status open_encoder(struct burin_engine *engine, struct burin_error *err)
{
    return burin_encoder_open(
            &engine->encoder, &engine->plan, engine->step, &engine->memory,
            &engine->staging, &engine->captures, &engine->host, err);
}

static enum burin_status take_host_memory(
        struct burin_engine *engine, struct burin_error *err)
{
    const struct burin_plan *plan = &engine->plan;
    const size_t n_slots = (size_t)plan->n_sequences;
    const int page_tokens = plan->kv ? plan->kv->page_tokens : 1;
    const int max_pages = (int)plan->params.value[BURIN_MAX_PAGES];

    engine->batch.max_tokens = plan->n_batch;
    engine->batch.max_sequences = plan->n_sequences;
    engine->batch.max_outputs = plan->n_outputs;
    engine->batch.max_pages = max_pages;
    engine->batch.parts = BURIN_TAKE(&engine->host, n_slots, struct burin_part);
    engine->sequences = BURIN_TAKE(&engine->host, n_slots, struct burin_sequence);
    engine->requests = BURIN_TAKE(&engine->host, n_slots, struct burin_request *);
    engine->order = BURIN_TAKE(&engine->host, n_slots, int);
    if (!engine->batch.parts || !engine->sequences || !engine->requests || !engine->order)
        return burin_fail(
                err, BURIN_ENOMEM, "no memory for the tables of %zu sequences", n_slots);

    const int program = (int)(engine->step - plan->family->programs);
    enum burin_status status =
            burin_program_call_open(&engine->call, plan, program, &engine->memory, err);
    if (!status)
        status = place_inputs(engine, err);
    if (!status)
        status = open_encoder(engine, err);
    if (!status)
        status = burin_kv_init(
                &engine->kv, &engine->host, plan->n_pages, page_tokens, plan->n_sequences,
                max_pages, err);
    if (!status)
        status = burin_sampler_init(
                &engine->sampler, &engine->host, plan->model->n_vocab, err);
    if (!status && !engine->on_gpu) /* where memory is shared, start-up has booked it */
        status = burin_ledger_book(&engine->ledger, "host", engine->host.obtained, err);
    return status;
}

static bool packed(void *user, size_t done, size_t total)
{
    const struct burin_options *options = user;
    return options->on_progress(options->user, "weights", done, total);
}

static enum burin_status pack_weights(
        struct burin_engine *engine, const struct burin_opening *o, struct burin_error *err)
{
    if (!o->options->model->n_weights)
        return BURIN_OK;
    return burin_pack(
            o->options->model, engine->plan.family, &o->checkpoint, o->tensors,
            burin_device_host(engine->device, engine->memory.weights.address),
            engine->plan.n_threads, o->options->on_progress ? packed : NULL,
            (void *)(uintptr_t)o->options, err);
}

/* ---- Open and close ----------------------------------------------------------------- */

static enum burin_status start_cpu(
        struct burin_engine *engine, struct burin_opening *o, struct burin_error *err)
{
    enum burin_status status = burin_memory_open_ledger(
            &engine->ledger, &engine->cpu.device, &engine->plan, err);
    if (!status)
        status = burin_cpu_start(
                &engine->cpu, &engine->ledger, engine->plan.n_threads, BURIN_THREAD_BYTES,
                err);
    if (!status)
        status = burin_queue_open(&engine->queue, &engine->cpu.device, err);
    if (!status)
        status = take_device_memory(engine, err);
    if (!status)
        status = open_tokenizer(engine, o, err);
    if (!status)
        status = take_host_memory(engine, err);
    if (!status)
        status = pack_weights(engine, o, err);
    return status ? status : touch_pages(engine, err);
}

static enum burin_status start_gpu(
        struct burin_engine *engine, struct burin_opening *o, struct burin_error *err)
{
    enum burin_status status = burin_opening_start_gpu(o, err);
    if (!status)
        status = open_tokenizer(engine, o, err);
    return status ? status : take_host_memory(engine, err);
}

static enum burin_status open_parts(
        struct burin_engine *engine, struct burin_opening *o, struct burin_error *err)
{
    burin_cpu_open(&engine->cpu);
    engine->device = &engine->cpu.device;
    enum burin_status status = burin_opening_device(o, err);
    if (!status)
        status = find_weights(engine, o, err);
    if (!status)
        status = make_plan(engine, o, err);
    if (!status)
        status = find_step(engine, err);
    if (!status)
        status = find_quantum(engine, err);
    if (!status)
        status = engine->on_gpu ? start_gpu(engine, o, err) : start_cpu(engine, o, err);
    if (status)
        return status;
    engine->ledger.refuse_after_seal = !o->options->strict;
    burin_ledger_seal(&engine->ledger);
    return BURIN_OK;
}

enum burin_status burin_engine_open(
        struct burin_engine **engine,
        const struct burin_options *options,
        struct burin_error *err)
{
    const double begin_ms = burin_now_ms();
    struct burin_opening o = { .options = options };
    struct burin_arena host = { 0 };

    struct burin_engine *opened =
            burin_arena_take(&host, 1, sizeof *opened, _Alignof(struct burin_engine));
    if (!opened)
        return burin_fail(err, BURIN_ENOMEM, "no memory for an engine");
    opened->host = host;
    o.engine = opened;

    const enum burin_status status = open_parts(opened, &o, err);
    burin_vocab_close(&o.vocab);
    burin_checkpoint_close(&o.checkpoint);
    if (status) {
        burin_engine_close(opened);
        return status;
    }
    opened->load_ms = burin_now_ms() - begin_ms;
    *engine = opened;
    return BURIN_OK;
}

void burin_engine_close(struct burin_engine *engine)
{
    if (!engine)
        return;
    burin_tokenizer_close(engine->tokenizer);
    if (engine->start.gpu)
        burin_start_close(&engine->start);
    burin_queue_close(&engine->queue);
    burin_cpu_stop(&engine->cpu);
    burin_ledger_close(&engine->ledger);
    burin_gpu_close(&engine->gpu);
    struct burin_arena host = engine->host; /* the engine lies in it */
    burin_arena_close(&host);
}

/* ---- Facts -------------------------------------------------------------------------- */

struct burin_engine_info burin_engine_info(const struct burin_engine *engine)
{
    const struct burin_plan *plan = &engine->plan;
    return (struct burin_engine_info){
        .device = engine->device_name,
        .no_gpu = engine->no_gpu,
        .passed_gpu = engine->passed_gpu,
        .model = plan->model,
        .family = plan->family,
        .kv = plan->kv,
        .n_threads = plan->n_threads,
        .n_ctx = plan->n_ctx,
        .n_sequences = plan->n_sequences,
        .n_batch = plan->n_batch,
        .n_outputs = plan->n_outputs,
        .n_pages = engine->kv.n_pages,
        .n_pages_free = engine->kv.n_free,
        .n_encoder_runs = engine->encoder.n_runs,
        .load_ms = engine->load_ms,
        .weights = engine->weights_path,
    };
}

bool burin_engine_start_report(const struct burin_engine *engine, FILE *out)
{
    if (engine->on_gpu)
        burin_start_report(&engine->plan, &engine->ledger, &engine->start.facts, out);
    return engine->on_gpu;
}

const char *burin_engine_start_note(const struct burin_engine *engine, int i)
{
    const struct burin_start_facts *facts = &engine->start.facts;
    for (int at = 0; at < facts->n_notes; at++)
        if (facts->notes[at].unasked && i-- == 0)
            return facts->notes[at].text;
    return NULL;
}

int burin_engine_owners(
        const struct burin_engine *engine, const struct burin_owner **owners)
{
    *owners = engine->ledger.owners;
    return engine->ledger.n_owners;
}

const struct burin_generation *burin_engine_generation(const struct burin_engine *engine)
{
    return &engine->generation;
}

const struct burin_tokenizer *burin_engine_tokenizer(const struct burin_engine *engine)
{
    return engine->tokenizer;
}
