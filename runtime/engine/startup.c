#include "runtime/engine/startup.h"

#include "runtime/base/clock.h"
#include "runtime/base/round.h"
#include "runtime/base/span.h"
#include "runtime/base/units.h"
#include "runtime/device/cuda/cache.h"
#include "runtime/engine/capture.h"
#include "runtime/engine/sampler.h"
#include "runtime/plan/runs.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const burin_start_names[BURIN_N_START_STEPS] = {
    [BURIN_START_LOOK] = "look",           [BURIN_START_CONTEXT] = "context",
    [BURIN_START_KERNELS] = "kernels",     [BURIN_START_STACKS] = "stacks",
    [BURIN_START_MEMORY] = "memory",       [BURIN_START_WEIGHTS] = "weights",
    [BURIN_START_ADDRESSES] = "addresses", [BURIN_START_WARM_UP] = "warm-up",
    [BURIN_START_GRAPHS] = "graphs",       [BURIN_START_KV] = "KV",
};

static void add_note(
        struct burin_start_facts *facts,
        bool unasked,
        const char *format,
        va_list arguments)
{
    const bool full = facts->n_notes == BURIN_START_NOTES;
    struct burin_start_note *note =
            &facts->notes[full ? facts->n_notes - 1 : facts->n_notes];
    note->unasked |= unasked;
    if (full) {
        snprintf(note->text, sizeof note->text, "... and more of the like");
        return;
    }
    vsnprintf(note->text, sizeof note->text, format, arguments);
    facts->n_notes++;
}

void burin_start_note(struct burin_start *start, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_note(&start->facts, true, format, arguments);
    va_end(arguments);
}

void burin_start_remark(struct burin_start *start, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_note(&start->facts, false, format, arguments);
    va_end(arguments);
}

/* ---- What the driver takes by itself ------------------------------------------------------ */

/* How much that is, for what is done between two looks. */
struct look {
    int64_t used;      /* by this process; -1: nobody tells */
    int64_t available; /* on the device; -1 likewise */
};

static struct look look(struct burin_start *s)
{
    struct look now = { .available = -1 };
    if (!burin_gpu_used(s->gpu, &now.used))
        now.used = -1;
    if (burin_gpu_free(s->gpu, &now.available, NULL))
        now.available = -1;
    return now;
}

static int64_t taken_since(
        struct burin_start *s, const struct look *before, int64_t planned)
{
    const struct look now = look(s);
    if (before->used >= 0 && now.used >= 0)
        return now.used > before->used ? now.used - before->used : 0;
    s->untold = true;
    if (before->available < 0 || now.available < 0)
        return planned;
    const int64_t less = before->available - now.available;
    return less < 0 ? 0 : less > planned ? planned : less;
}

/* An owner's planned bytes in granules; each graph has its own. */
static int64_t planned_in_granules(const struct burin_start *s, const char *owner)
{
    const size_t granule = s->gpu->cuda.device.granule;
    struct burin_plan_run run;
    int64_t sum = 0;
    if (strcmp(owner, "graphs") != 0)
        return (int64_t)burin_round_up(
                (size_t)burin_plan_owner_bytes(s->plan, owner), granule);
    for (int i = 0; burin_plan_run_at(s->plan, i, &run); i++)
        sum += (int64_t)burin_round_up((size_t)run.driver_bytes, granule);
    return sum;
}

static enum burin_status book(
        struct burin_start *s,
        const char *owner,
        const struct look *before,
        struct burin_error *err)
{
    const int64_t planned = planned_in_granules(s, owner);
    return burin_ledger_spend(
            s->ledger, owner, (size_t)taken_since(s, before, planned), err);
}

/* ---- The steps ---------------------------------------------------------------------------- */

static enum burin_status look_at_memory(struct burin_start *s, struct burin_error *err)
{
    s->facts.limit_bytes = s->plan->limit_bytes;
    return burin_gpu_free(s->gpu, &s->free_before, err);
}

/* Where the card's memory is the host's, what the host needs is taken later. */
static enum burin_status book_host(struct burin_start *s, struct burin_error *err)
{
    static const char *const owners[] = { "host", "tokenizer" };
    enum burin_status status = BURIN_OK;
    for (int i = 0; i < 2 && s->gpu->cuda.found.integrated && !status; i++) {
        const size_t bytes = (size_t)burin_plan_owner_bytes(s->plan, owners[i]);
        const size_t whole = (size_t)planned_in_granules(s, owners[i]);
        s->host_bytes += (int64_t)whole;
        status = burin_ledger_spend(s->ledger, owners[i], whole, err);
        if (!status)
            status = burin_ledger_unused(s->ledger, owners[i], whole - bytes, err);
    }
    return status;
}

static enum burin_status make_context(struct burin_start *s, struct burin_error *err)
{
    const struct look before = look(s);
    enum burin_status status = burin_cuda_context(&s->gpu->cuda, err);
    if (status)
        return status;
    s->gpu->has_context = true;
    burin_ledger_begin(
            s->ledger, &s->gpu->cuda.device,
            s->plan->limit_bytes == INT64_MAX ? SIZE_MAX : (size_t)s->plan->limit_bytes);
    for (int i = 0; i < s->plan->n_owners && !status; i++)
        if (strcmp(s->plan->owners[i].name, "kv") != 0) /* gets what is left */
            status = burin_ledger_plan(
                    s->ledger, s->plan->owners[i].name, (size_t)s->plan->owners[i].bytes,
                    err);
    if (!status)
        status = book(s, "context", &before, err);
    return status ? status : book_host(s, err);
}

static bool kernels_done(void *user, int done, int total)
{
    const struct burin_start *s = user;
    return !s->on_step ||
           s->on_step(s->user, BURIN_START_KERNELS, (size_t)done, (size_t)total);
}

static void note_lost_kernels(
        struct burin_start *s, const char *cache, const struct burin_compile_counts *counts)
{
    if (cache && counts->n_lost)
        burin_start_note(
                s,
                "each start compiles %d kernels again: they can't be kept in %s; "
                "BURIN_KERNEL_CACHE=FOLDER keeps them elsewhere",
                counts->n_lost, burin_show(burin_span_of(cache)).text);
    if (!cache && s->keep_kernels && counts->n_compiled && !burin_cache_unwanted())
        burin_start_note(
                s,
                "each start compiles %d kernels again: HOME and XDG_CACHE_HOME name no "
                "place for them; BURIN_KERNEL_CACHE=FOLDER keeps them",
                counts->n_compiled);
}

static enum burin_status load_kernels(struct burin_start *s, struct burin_error *err)
{
    const struct look before = look(s);
    struct burin_arena folder = { 0 };
    struct burin_compile_counts counts;
    struct burin_compiling compiling = {
        .nvrtc = &s->gpu->nvrtc,
        .cache = s->keep_kernels ? burin_cache_folder(&folder) : NULL,
        .n_threads = s->n_threads,
        .progress = kernels_done,
        .context = s,
    };
    if (s->gpu->driver.cuDriverGetVersion(&compiling.driver_version))
        compiling.driver_version = 0;
    enum burin_status status = BURIN_OK;
    if (s->plan->params.value[BURIN_FAST_GEMM])
        status = burin_cuda_fast_gemm(&s->gpu->cuda, &s->gpu->cublaslt, err);
    if (!status)
        status = burin_cuda_load(
                &s->gpu->cuda, s->plan->family->cuda, &compiling, &counts, err);
    if (!status)
        note_lost_kernels(s, compiling.cache, &counts);
    burin_arena_close(&folder);
    return status ? status : book(s, "modules", &before, err);
}

static enum burin_status set_stacks(struct burin_start *s, struct burin_error *err)
{
    const struct look before = look(s);
    size_t bytes = 0;
    const enum burin_status status = burin_cuda_local(&s->gpu->cuda, &bytes, err);
    return status ? status : book(s, "local memory", &before, err);
}

/* The host's copies of what runs read and leave. */
static enum burin_status pin_staging(struct burin_start *s, struct burin_error *err)
{
    _Static_assert(
            sizeof(struct burin_top_logits) <= BURIN_TOP_BYTES, "more than is planned");
    const size_t results = s->keep_kernels ? (size_t)burin_plan_result_bytes(s->plan) : 0;
    const size_t inputs = s->memory->inputs.bytes ? s->memory->inputs.bytes : 1;
    enum burin_status status =
            burin_cuda_pin(&s->gpu->cuda, inputs, "inputs", &s->pinned[0], err);
    if (!status && results)
        status = burin_cuda_pin(&s->gpu->cuda, results, "logits", &s->pinned[1], err);
    *s->staging = (struct burin_staging){
        .queue = s->queue,
        .copies = true,
        .inputs = s->pinned[0],
        .inputs_address = s->memory->inputs.address,
        .results = s->pinned[1],
        .results_bytes = results,
    };
    return status;
}

static enum burin_status take_memory(struct burin_start *s, struct burin_error *err)
{
    enum burin_status status = burin_queue_open(s->queue, &s->gpu->cuda.device, err);
    if (!status)
        status = burin_memory_take_fixed(s->memory, s->ledger, s->plan, err);
    return status ? status : pin_staging(s, err);
}

static enum burin_status send_weights(struct burin_start *s, struct burin_error *err)
{
    return s->send_weights ? s->send_weights(s->user, err) : BURIN_OK;
}

static enum burin_status open_calls(struct burin_start *s, struct burin_error *err)
{
    enum burin_status status = BURIN_OK;
    for (int p = 0; p < s->plan->family->n_programs && !status; p++)
        if (s->plan->programs[p].active)
            status = burin_program_call_open(&s->calls[p], s->plan, p, s->memory, err);
    return status;
}

static void note_capture(void *user, const char *text)
{
    burin_start_note(user, "%s", text);
}

static bool graphs_done(void *user, int done, int total)
{
    const struct burin_start *s = user;
    return !s->on_step ||
           s->on_step(s->user, BURIN_START_GRAPHS, (size_t)done, (size_t)total);
}

static struct burin_capturing capturing_of(struct burin_start *s)
{
    return (struct burin_capturing){
        .plan = s->plan,
        .calls = s->calls,
        .staging = s->staging,
        .captures = s->captures,
        .note = note_capture,
        .progress = graphs_done,
        .user = s,
    };
}

static enum burin_status warm_up(struct burin_start *s, struct burin_error *err)
{
    const struct look before = look(s);
    const struct burin_capturing capturing = capturing_of(s);
    enum burin_status status = open_calls(s, err);
    if (!status)
        status = burin_warm_up(&capturing, err);
    /* What the driver or a library loads when it is first used. */
    return status ? status : book(s, "modules", &before, err);
}

enum burin_status burin_start_capture(struct burin_start *s, struct burin_error *err)
{
    struct burin_capturing capturing = capturing_of(s);
    burin_captures_close(s->captures);
    enum burin_status status = open_calls(s, err);
    if (!status)
        status = burin_capture_all(&capturing, err);
    s->facts.n_graphs = s->captures->n;
    s->facts.n_nodes = 0;
    for (int i = 0; i < s->captures->n; i++) {
        const struct burin_graph *graph = &s->captures->at[i].graph;
        s->facts.n_nodes += graph->kernel_nodes + graph->copy_nodes;
    }
    return status;
}

static enum burin_status make_graphs(struct burin_start *s, struct burin_error *err)
{
    const struct look before = look(s);
    struct burin_start_facts *facts = &s->facts;
    int64_t n_planned;
    facts->n_graphs_planned = burin_capture_count(s->plan, &n_planned);
    enum burin_status status = burin_start_capture(s, err);
    if (status)
        return status;
    if (facts->n_graphs_planned)
        status = book(s, "graphs", &before, err);

    char drift[BURIN_START_NOTE];
    const struct burin_owner *graphs = burin_ledger_owner(s->ledger, "graphs");
    if (graphs &&
        burin_plan_drift(
                burin_plan_owner_bytes(s->plan, "graphs"), (int64_t)graphs->obtained,
                (int)facts->n_nodes, drift, sizeof drift))
        burin_start_note(s, "%s", drift);
    return status;
}

/* ---- What others did ---------------------------------------------------------------------- */

static int64_t obtained(const struct burin_ledger *ledger)
{
    int64_t sum = 0;
    for (int i = 0; i < ledger->n_owners; i++)
        sum += (int64_t)ledger->owners[i].obtained;
    return sum;
}

/* From the begin, or at some point. */
static void note_nvml(struct burin_start *s)
{
    if (s->untold)
        burin_start_remark(
                s,
                "NVML tells nothing (%.120s): what the driver takes is what the device has "
                "less, and at most what was planned",
                s->gpu->nvml_device
                        ? "it lists no process that is this one, as in a container"
                        : s->gpu->nvml_missing);
}

/* What is free and what is ours make less than there was. */
static void note_others(struct burin_start *s)
{
    enum { WORTH_A_WORD = 64 * 1024 * 1024 };
    int64_t available = 0;
    char others[200];
    if (s->free_before < 0 || burin_gpu_free(s->gpu, &available, NULL))
        return;
    const int64_t taken = obtained(s->ledger) - s->host_bytes;
    const int64_t gone = s->free_before - available - taken;
    burin_gpu_others(s->gpu, others, sizeof others);
    if (gone > WORTH_A_WORD && s->untold)
        burin_start_note(
                s,
                "%s vanished while this started, to the driver or to another process: NVML "
                "tells nothing, and they can't be told apart",
                burin_human_bytes(gone).text);
    else if (gone > WORTH_A_WORD)
        burin_start_note(
                s, "%s vanished while this started, to another process%s%s%s",
                burin_human_bytes(gone).text, others[0] ? " (" : "", others,
                others[0] ? ")" : "");
    if (gone < -WORTH_A_WORD)
        burin_start_remark(
                s, "%s became free while this started", burin_human_bytes(-gone).text);
}

/* ---- What lacks --------------------------------------------------------------------------- */

static enum burin_status try_plan(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err)
{
    enum burin_status status = burin_card_check_cap(
            &request->card, request->limit, request->limit_bytes, request->limit_fraction,
            err);
    if (!status)
        status = burin_plan_make(plan, request, err);
    return status ? status : burin_plan_check(plan, err);
}

enum burin_status burin_start_plan(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        bool *may_come,
        struct burin_error *err)
{
    struct burin_plan_request whole = *request;
    struct burin_plan most;
    const enum burin_status status = try_plan(plan, request, err);
    whole.card.available_bytes = whole.card.total_bytes;
    *may_come = status == BURIN_ENOMEM && !try_plan(&most, &whole, NULL);
    return status;
}

/* A step that lacks memory of the device says what the plan would be with what there is. */
static enum burin_status explain(
        struct burin_start *s,
        enum burin_start_step step,
        enum burin_status status,
        struct burin_error *err)
{
    int64_t available = 0;
    char others[200] = "";
    bool may_come = false;
    if (status != BURIN_ENOMEM || step == BURIN_START_KV || !err || !err->on_device ||
        burin_gpu_free(s->gpu, &available, NULL) || available < 0)
        return status;
    struct burin_error first = *err, second = { 0 };
    struct burin_plan plan;
    struct burin_plan_request request = *s->request;
    const int64_t ours = s->ledger->device ? obtained(s->ledger) - s->host_bytes : 0;
    request.family = s->plan->family;
    request.card.available_bytes = available + ours;
    burin_gpu_others(s->gpu, others, sizeof others);
    if (!burin_start_plan(&plan, &request, &may_come, &second))
        snprintf(
                second.message, sizeof second.message,
                "A plan made now fits, the device has %s free at this moment: it may start "
                "when it is tried again",
                burin_human_bytes(available).text);
    return burin_fail(
            err, status, "%.800s%s%s.\n%.2000s%s", first.message,
            others[0] ? "; others on the card: " : "", others, second.message,
            may_come ? "\n" BURIN_START_WAITS : "");
}

/* ---- All of it ---------------------------------------------------------------------------- */

enum burin_status burin_start_step(
        struct burin_start *s, enum burin_start_step step, struct burin_error *err)
{
    static enum burin_status (*const steps[BURIN_N_START_STEPS])(
            struct burin_start *, struct burin_error *) = {
        [BURIN_START_LOOK] = look_at_memory,
        [BURIN_START_CONTEXT] = make_context,
        [BURIN_START_KERNELS] = load_kernels,
        [BURIN_START_STACKS] = set_stacks,
        [BURIN_START_MEMORY] = take_memory,
        [BURIN_START_WEIGHTS] = send_weights,
        [BURIN_START_ADDRESSES] = burin_start_addresses,
        [BURIN_START_WARM_UP] = warm_up,
        [BURIN_START_GRAPHS] = make_graphs,
        [BURIN_START_KV] = burin_start_pages,
    };
    const double begin_ms = burin_now_ms();
    if (s->on_step && !s->on_step(s->user, step, 0, 0))
        return burin_fail(
                err, BURIN_ESTOPPED, "interrupted before %s", burin_start_names[step]);
    const enum burin_status status = steps[step](s, err);
    s->facts.ms[step] = burin_now_ms() - begin_ms;
    return status ? explain(s, step, status, err) : BURIN_OK;
}

enum burin_status burin_start_run(struct burin_start *s, struct burin_error *err)
{
    enum burin_status status = BURIN_OK;
    for (int i = 0; i < BURIN_N_START_STEPS && !status; i++)
        status = burin_start_step(s, (enum burin_start_step)i, err);
    if (status)
        return status;
    note_nvml(s);
    note_others(s);
    return BURIN_OK;
}

void burin_start_close(struct burin_start *s)
{
    if (s->queue->device) /* behind a failure copies may be under way: their memory goes next */
        burin_queue_finish(s->queue, NULL);
    burin_captures_close(s->captures);
    for (int i = 0; i < 2; i++)
        if (s->gpu->has_context)
            burin_cuda_unpin(&s->gpu->cuda, s->pinned[i]);
    burin_queue_close(s->queue);
    burin_ledger_close(s->ledger);
    *s->staging = (struct burin_staging){ .copies = false };
    *s->memory = (struct burin_memory){ .arena = { 0 } };
    s->pinned[0] = NULL;
    s->pinned[1] = NULL;
}
