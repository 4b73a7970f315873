/* From what is asked for to numbers. What the request leaves open follows from what fits. */
#include "runtime/plan/sketch.h"

#include "runtime/base/put.h"
#include "runtime/base/units.h"
#include "runtime/plan/encoder.h"
#include "runtime/plan/runs.h"
#include "runtime/plan/size.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The worst known of a node, of driver 470 (forum of NVIDIA, 244901: 66 and 63 kB). Drivers
 * from CUDA 12.4 on are told to take 10 KiB (NVIDIA/cccl#3768). */
enum { NODE_BYTES = 64 * 1024 };

/* ---- Checks ---------------------------------------------------------------------- */

static enum burin_status find_kv(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err)
{
    const struct burin_family *family = plan->family;
    if (!family->n_kv)
        return request->kv_dtype_given
                       ? burin_fail(
                                 err, BURIN_EUSAGE, "%s has no KV cache", plan->model->name)
                       : BURIN_OK;

    char known[128] = "";
    struct burin_put list = { known, sizeof known, 0 };
    for (int i = 0; i < family->n_kv; i++) {
        const struct burin_kv_layout *kv = &family->kv[i];
        if (!request->kv_dtype_given || kv->dtype == request->kv_dtype) {
            plan->kv = kv;
            plan->kv_index = i;
            break;
        }
        burin_put(&list, " %s", burin_dtype_name(kv->dtype));
    }
    if (!plan->kv)
        return burin_fail(
                err, BURIN_EUSAGE, "--kv-cache-dtype %s: the %s family has%s",
                burin_dtype_name(request->kv_dtype), family->name, known);
    return BURIN_OK;
}

/* Windows, states and a model that keeps nothing need no pages: a row that is in pages does, or
 * a page table where there are no rows. */
static bool lacks_pages(const struct burin_family *family, const struct burin_kv_layout *kv)
{
    for (int i = 0; i < kv->n_rows; i++)
        if (kv->rows[i].state == BURIN_STATE_PAGED &&
            (!kv->rows[i].bytes_per_token || (!kv->rows[i].program && !kv->page_bytes)))
            return true;
    for (int p = 0; p < family->n_programs && !kv->n_rows && !kv->page_bytes; p++)
        for (int i = 0; i < family->programs[p].n_inputs; i++)
            if (strcmp(family->programs[p].inputs[i].name, "page_table") == 0)
                return true;
    return false;
}

/* A table that the plan stands on and that lacks a row is a fault of the build: an unknown
 * is never taken for zero. */
static enum burin_status check_tables(
        const struct burin_plan *plan, struct burin_error *err)
{
    const struct burin_family *family = plan->family;
    if (plan->model->n_ctx < 1)
        return burin_fail(
                err, BURIN_EFORMAT, "%s has a context of %d tokens (n_ctx)",
                plan->model->name, plan->model->n_ctx);
    if (plan->model->n_weights && !family->weights_bytes)
        return burin_fail(
                err, BURIN_EFORMAT, "family %s has weights of zero bytes", family->name);
    if (plan->kv && (plan->kv->page_tokens <= 0 || lacks_pages(family, plan->kv)))
        return burin_fail(
                err, BURIN_EFORMAT, "family %s has KV pages of zero bytes", family->name);
    if (family->n_programs > BURIN_MAX_PROGRAMS)
        return burin_fail(
                err, BURIN_EFORMAT, "family %s has %d programs, a plan takes %d",
                family->name, family->n_programs, BURIN_MAX_PROGRAMS);
    for (int i = 0; i < family->n_programs; i++) {
        const struct burin_program *program = &family->programs[i];
        if (!program->n_costs)
            return burin_fail(
                    err, BURIN_EFORMAT, "program %s has no row in chunk_costs",
                    program->name);
        if (burin_is_encoder(program) &&
            (program->smallest_item < 1 || program->largest_item < program->smallest_item))
            return burin_fail(
                    err, BURIN_EFORMAT, "program %s has items of %d to %d soft tokens",
                    program->name, program->smallest_item, program->largest_item);
    }
    return BURIN_OK;
}

static enum burin_status check_range(
        const char *option,
        int64_t value,
        int64_t least,
        int64_t most,
        struct burin_error *err)
{
    if (value >= least && value <= most)
        return BURIN_OK;
    return burin_fail(
            err, BURIN_EUSAGE, "%s %lld is outside %lld ... %lld", option, (long long)value,
            (long long)least, (long long)most);
}

static enum burin_status check_ranges(
        const struct burin_plan_request *r, struct burin_error *err)
{
    const struct {
        const char *option;
        int64_t value, least, most;
    } ranges[] = {
        { "--threads", r->n_threads, 1, BURIN_MAX_THREADS },
        { "--parallel", r->n_sequences, 0, BURIN_MAX_PARALLEL },
        { "--batch-size", r->n_batch, 0, BURIN_MAX_BATCH },
        { "outputs", r->n_outputs, 0, BURIN_MAX_BATCH },
        { "--ctx-size", r->n_ctx, -1, INT_MAX },
        { "--kv-tokens", r->kv_tokens, 0, INT_MAX },
        { "--kv-bytes", r->kv_bytes, 0, INT64_MAX },
        { "--draft", r->n_draft, 0, BURIN_MAX_DRAFT },
        { "--images", r->n_images, 0, BURIN_MAX_ITEMS },
        { "--video-frames", r->n_frames, 0, BURIN_MAX_ITEMS },
        { "--audio-clips", r->n_clips, 0, BURIN_MAX_ITEMS },
        { "--encoder-arena", r->encoder_arena, 0, INT64_MAX },
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const enum burin_status status = check_range(
                ranges[i].option, ranges[i].value, ranges[i].least, ranges[i].most, err);
        if (status)
            return status;
    }
    if (r->kv_tokens && r->kv_bytes)
        return burin_fail(err, BURIN_EUSAGE, "give --kv-tokens or --kv-bytes, not both");
    if (r->n_ctx > r->model->n_ctx)
        return burin_fail(
                err, BURIN_EUSAGE,
                "--ctx-size %d is beyond the %d tokens that %s was trained for", r->n_ctx,
                r->model->n_ctx, r->model->variant);
    return BURIN_OK;
}

/* ---- Numbers --------------------------------------------------------------------- */

int burin_plan_page_tokens(const struct burin_plan *plan)
{
    return plan->kv ? plan->kv->page_tokens : 1;
}

int burin_plan_pages_of(const struct burin_plan *plan, int64_t tokens)
{
    const int64_t pages =
            (tokens + burin_plan_page_tokens(plan) - 1) / burin_plan_page_tokens(plan);
    return pages > INT_MAX ? INT_MAX : (int)pages;
}

bool burin_plan_pool_given(
        const struct burin_plan *plan, const struct burin_plan_request *request)
{
    return plan->kv && (request->kv_tokens || request->kv_bytes);
}

/* --kv-tokens or --kv-bytes: whole pages, and the context that they hold. */
static enum burin_status settle_pool(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err)
{
    burin_plan_account(plan, request); /* for the bytes of a page */
    if (!plan->state.page)
        return burin_fail(
                err, BURIN_EUSAGE,
                "--kv-tokens, --kv-bytes: %s keeps nothing in pages, only windows and "
                "states of each sequence",
                plan->model->name);
    const int64_t pages = request->kv_tokens ? burin_plan_pages_of(plan, request->kv_tokens)
                                             : request->kv_bytes / plan->state.page;
    if (!pages || pages > INT_MAX)
        return burin_fail(
                err, BURIN_EUSAGE,
                "--kv-bytes %lld is not between one page of %lld bytes and %d of them",
                (long long)request->kv_bytes, (long long)plan->state.page, INT_MAX);
    plan->n_pages = (int)pages;
    return BURIN_OK;
}

/* The option that was given, with what so many tokens would take. */
static void pool_option(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        int64_t tokens,
        char *text,
        size_t capacity)
{
    if (request->kv_tokens)
        snprintf(text, capacity, "--kv-tokens %lld", (long long)tokens);
    else
        snprintf(
                text, capacity, "--kv-bytes %s",
                burin_exact_bytes(
                        burin_multiply(plan->state.page, burin_plan_pages_of(plan, tokens)))
                        .text);
}

/* What a pool that is asked for leaves to the longest sequence. On a GPU each of the others has
 * a page; on a CPU they wait for it. */
static enum burin_status share_pool(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err)
{
    const int others = plan->family->sm ? plan->n_sequences - 1 : 0;
    const int page = burin_plan_page_tokens(plan);
    const int64_t tokens = ((int64_t)plan->n_pages - others) * page;
    const int64_t own = request->n_ctx > page ? request->n_ctx : page;
    char beside[64] = "", pool[48];
    if (others)
        snprintf(beside, sizeof beside, " beside a page for each of %d others", others);
    pool_option(plan, request, own + (int64_t)others * page, pool, sizeof pool);
    if (tokens <= 0)
        return burin_fail(
                err, BURIN_EUSAGE,
                "a KV cache of %d pages of %d tokens, and --parallel %d: each sequence has "
                "a page at least, %s",
                plan->n_pages, page, plan->n_sequences, pool);
    if (request->n_ctx > 0 && tokens < request->n_ctx)
        return burin_fail(
                err, BURIN_EUSAGE,
                "room for %lld tokens%s, one request may need %d: start with --ctx-size "
                "%lld, or give %s",
                (long long)tokens, beside, request->n_ctx, (long long)tokens, pool);
    if (tokens < plan->n_ctx)
        plan->n_ctx = (int)tokens;
    return BURIN_OK;
}

/* The plan for so many sequences of so many tokens. */
static enum burin_status plan_for(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        int n_sequences,
        int n_ctx,
        struct burin_error *err)
{
    const bool pool = burin_plan_pool_given(plan, request);
    plan->n_sequences = n_sequences;
    plan->n_ctx = n_ctx;
    enum burin_status status = pool ? share_pool(plan, request, err) : BURIN_OK;
    if (status)
        return status;
    plan->n_batch = request->n_batch ? request->n_batch : BURIN_DEFAULT_BATCH;
    const int64_t at_once = (int64_t)n_sequences * (plan->n_draft + 1);
    if (plan->n_batch < at_once)
        return burin_fail(
                err, BURIN_EUSAGE,
                "--batch-size %d is below --parallel %d%s: a step has a token of each "
                "sequence%s",
                plan->n_batch, n_sequences, plan->n_draft ? " times --draft + 1" : "",
                plan->n_draft ? ", and those drafted" : "");

    const int max_pages = burin_plan_pages_of(plan, plan->n_ctx);
    if (!pool) {
        const int64_t pages = (int64_t)max_pages * n_sequences;
        plan->n_pages = pages > INT_MAX ? INT_MAX : (int)pages;
    }
    const int64_t all = (int64_t)plan->n_ctx * n_sequences;
    const int64_t most =
            all > at_once ? all : at_once; /* a draft may reach beyond a context */
    if (plan->n_batch > most)
        plan->n_batch = (int)most;
    plan->n_outputs = request->n_outputs ? request->n_outputs : (int)at_once;
    if (plan->n_outputs > plan->n_batch)
        plan->n_outputs = plan->n_batch;

    int64_t *value = plan->params.value;
    value[BURIN_MAX_CONTEXT] = plan->n_ctx;
    value[BURIN_MAX_PAGES] = max_pages;
    value[BURIN_MAX_SEQUENCES] = n_sequences;
    value[BURIN_THREADS] = plan->n_threads;
    value[BURIN_DRAFT] = plan->n_draft;
    value[BURIN_MAX_SOFT] = 0;
    value[BURIN_FAST_GEMM] = plan->family->sm && request->fast_gemm;
    plan->n[BURIN_TOKENS] = plan->n_batch;
    plan->n[BURIN_SEQUENCES] = n_sequences;
    plan->n[BURIN_OUTPUTS] = plan->n_outputs;

    status = burin_plan_programs(plan, request, err);
    if (status)
        return status;
    value[BURIN_MAX_SOFT] = burin_plan_cache_rows(plan);
    burin_plan_account(plan, request);
    return BURIN_OK;
}

/* ---- What a GPU leaves open ------------------------------------------------------- */

static int least_context(const struct burin_plan *plan, const struct burin_plan_request *r)
{
    const int model = plan->model->n_ctx;
    if (r->n_ctx)
        return r->n_ctx > 0 ? r->n_ctx : model;
    return model < BURIN_LEAST_CONTEXT ? model : BURIN_LEAST_CONTEXT;
}

/* As many sequences as the request says; else the largest power of two up to 64 that leaves
 * three quarters of the room to KV, and that does not itself make the plan fail; where all do,
 * the least, which is one where none makes a plan: what is refused then is no number of them. */
static enum burin_status settle_sequences(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err)
{
    const int n_ctx = least_context(plan, request);
    if (request->n_sequences)
        return plan_for(plan, request, request->n_sequences, n_ctx, err);
    int least = 1;
    for (int n = BURIN_DEFAULT_SEQUENCES; n >= 1; n /= 2) {
        if (plan_for(plan, request, n, n_ctx, NULL))
            continue;
        least = n;
        const int64_t slots = burin_multiply(burin_plan_slot_bytes(plan), n);
        const int64_t others =
                plan->total_bytes - slots - burin_plan_owner_bytes(plan, "kv");
        if (plan->fits && plan->n_ctx == n_ctx && slots <= (plan->limit_bytes - others) / 4)
            return BURIN_OK;
    }
    return plan_for(plan, request, least, n_ctx, err);
}

/* A context that nobody has asked for: the longest that fits, the page table that grows with
 * it among what is counted. */
static enum burin_status widen_context(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err)
{
    const int n = plan->n_sequences;
    const int page = burin_plan_page_tokens(plan);
    const int model = plan->model->n_ctx;
    int fits = plan->n_ctx / page;
    int above = model / page + 1;
    if (!plan_for(plan, request, n, model, NULL) && plan->fits)
        return BURIN_OK;
    while (above - fits > 1) {
        const int middle = fits + (above - fits) / 2;
        if (!plan_for(plan, request, n, middle * page, NULL) && plan->fits)
            fits = middle;
        else
            above = middle;
    }
    const int least = least_context(plan, request);
    return plan_for(plan, request, n, fits * page > least ? fits * page : least, err);
}

static enum burin_status settle_gpu(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        bool widen,
        struct burin_error *err)
{
    plan->node_bytes = request->costs.node_bytes ? request->costs.node_bytes : NODE_BYTES;
    plan->graphs_assumed = request->graphs_given;
    const enum burin_status status = settle_sequences(plan, request, err);
    if (status || request->n_ctx || !plan->fits || !widen)
        return status;
    return widen_context(plan, request, err);
}

static enum burin_status settle_cpu(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err)
{
    const int model = plan->model->n_ctx;
    int n_ctx = request->n_ctx > 0 ? request->n_ctx : model;
    if (request->n_ctx == 0 && n_ctx > BURIN_DEFAULT_CONTEXT)
        n_ctx = BURIN_DEFAULT_CONTEXT;
    return plan_for(
            plan, request, request->n_sequences ? request->n_sequences : 1, n_ctx, err);
}

enum burin_status burin_plan_sketch(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        bool widen,
        struct burin_error *err)
{
    const struct burin_model *model = request->model;
    const struct burin_family *family =
            request->family ? request->family : &model->families[0];
    *plan = (struct burin_plan){
        .model = model,
        .family = family,
        .card = request->card,
        .n_threads = request->n_threads,
        .n_draft = request->n_draft,
        .n_images = request->images_given ? request->n_images : family->sm > 0,
        .n_frames = request->n_frames,
        .n_clips = request->n_clips,
        .largest_picture = request->largest_picture,
    };
    if (!plan->card.name[0])
        snprintf(plan->card.name, sizeof plan->card.name, "the memory");

    enum burin_status status = check_ranges(request, err);
    if (!status)
        status = find_kv(plan, request, err);
    if (!status)
        status = check_tables(plan, err);
    if (!status)
        status = burin_plan_choose_programs(plan, request, err);
    if (!status)
        status = burin_card_limit(
                &request->card, request->limit, request->limit_bytes,
                request->limit_fraction, &plan->limit_bytes, err);
    if (!status && burin_plan_pool_given(plan, request))
        status = settle_pool(plan, request, err);
    if (status)
        return status;
    return family->sm ? settle_gpu(plan, request, widen, err)
                      : settle_cpu(plan, request, err);
}

bool burin_plan_sketch_fits(const struct burin_plan_request *request)
{
    struct burin_plan plan;
    return !burin_plan_sketch(&plan, request, false, NULL) && plan.fits;
}
