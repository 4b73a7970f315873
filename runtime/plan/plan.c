#include "runtime/plan/plan.h"

#include "runtime/base/put.h"
#include "runtime/base/units.h"
#include "runtime/plan/size.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum {
    GIB = 1024 * 1024 * 1024,
    /* The worst known of a tokenizer: text, two hashes and a merge a token. */
    TOKENIZER_BYTES = 128 * 1024,
    TOKENIZER_BYTES_A_TOKEN = 256,
    /* The binary's own data, libc, Lua for the chat format, file headers while loading. */
    HOST_BYTES = 8 * 1024 * 1024,
    /* Logits order and probabilities while drawing a token. */
    HOST_BYTES_A_VOCAB_ENTRY = 16,
    /* A running request's bookkeeping. */
    HOST_BYTES_A_SEQUENCE = 64 * 1024,
};

static const char *const dtype_names[BURIN_N_DTYPES] = {
    [BURIN_F32] = "f32", [BURIN_F16] = "f16", [BURIN_BF16] = "bf16",
    [BURIN_I32] = "i32", [BURIN_U8] = "u8",   [BURIN_Q8] = "q8",
    [BURIN_FP8] = "fp8", [BURIN_NVFP4] = "nvfp4",
};

const char *burin_dtype_name(enum burin_dtype dtype)
{
    return dtype < BURIN_N_DTYPES ? dtype_names[dtype] : "?";
}

int burin_dtype_by_name(const char *name)
{
    for (int i = 0; i < BURIN_N_DTYPES; i++)
        if (strcmp(name, dtype_names[i]) == 0)
            return i;
    return -1;
}

/* ---- What is asked for ----------------------------------------------------------- */

enum burin_status burin_card_parse(
        struct burin_card *card, const char *text, struct burin_error *err)
{
    const size_t length = strcspn(text, ",");
    struct burin_card found = { .sm = 0 };
    enum burin_status status = burin_parse_bytes(text, length, &found.total_bytes, NULL);
    int end = 0;
    if (!status && text[length] == ',' &&
        (sscanf(text + length, ",sm_%4d%n", &found.sm, &end) != 1 || found.sm <= 0 ||
         text[length + (size_t)end]))
        status = BURIN_EUSAGE;
    if (status || found.total_bytes <= 0 || strlen(text) >= sizeof found.name)
        return burin_fail(
                err, BURIN_EUSAGE,
                "'%.40s' is not a card; a size like 8GiB, or 23.46GiB,sm_120, is", text);
    found.available_bytes = found.total_bytes;
    snprintf(found.name, sizeof found.name, "%s", text);
    *card = found;
    return BURIN_OK;
}

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

/* A table that the plan stands on and that lacks a row is a fault of the build: an unknown
 * is never taken for zero. */
static enum burin_status check_tables(
        const struct burin_plan *plan, struct burin_error *err)
{
    const struct burin_family *family = plan->family;
    if (plan->model->n_weights && !family->weights_bytes)
        return burin_fail(
                err, BURIN_EFORMAT, "family %s has weights of zero bytes", family->name);
    if (plan->kv && (plan->kv->page_tokens <= 0 || !plan->kv->page_bytes))
        return burin_fail(
                err, BURIN_EFORMAT, "family %s has KV pages of zero bytes", family->name);
    for (int i = 0; i < family->n_programs; i++) {
        const struct burin_program *program = &family->programs[i];
        if (!program->n_costs)
            return burin_fail(
                    err, BURIN_EFORMAT, "program %s has no row in chunk_costs",
                    program->name);
        const struct burin_graph_cost *graph = &program->graph;
        if (plan->card.sm && !graph->kernel_nodes)
            return burin_fail(
                    err, BURIN_EFORMAT, "program %s has no graph budget", program->name);
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

static int page_tokens(const struct burin_plan *plan)
{
    return plan->kv ? plan->kv->page_tokens : 1;
}

static int pages_of(const struct burin_plan *plan, int64_t tokens)
{
    const int64_t pages = (tokens + page_tokens(plan) - 1) / page_tokens(plan);
    return pages > INT_MAX ? INT_MAX : (int)pages;
}

/* What n_ctx, n_sequences, n_batch and n_outputs entail. */
static void bind(struct burin_plan *plan, bool pool_given)
{
    const int max_pages = pages_of(plan, plan->n_ctx);
    if (!pool_given) {
        const int64_t pages = (int64_t)max_pages * plan->n_sequences;
        plan->n_pages = pages > INT_MAX ? INT_MAX : (int)pages;
    }
    const int64_t most = (int64_t)plan->n_ctx * plan->n_sequences;
    if (plan->n_batch > most)
        plan->n_batch = (int)most;
    if (plan->n_outputs > plan->n_batch)
        plan->n_outputs = plan->n_batch;

    plan->params = (struct burin_params){ .value = {
                                                  [BURIN_MAX_CONTEXT] = plan->n_ctx,
                                                  [BURIN_MAX_PAGES] = max_pages,
                                                  [BURIN_MAX_SEQUENCES] = plan->n_sequences,
                                                  [BURIN_THREADS] = plan->n_threads,
                                          } };
    plan->n[BURIN_TOKENS] = plan->n_batch;
    plan->n[BURIN_SEQUENCES] = plan->n_sequences;
    plan->n[BURIN_OUTPUTS] = plan->n_outputs;
}

static bool pool_given(const struct burin_plan *plan, const struct burin_plan_request *r)
{
    return plan->kv && (r->kv_tokens || r->kv_bytes);
}

static enum burin_status resolve(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err)
{
    const struct burin_model *model = request->model;
    *plan = (struct burin_plan){ .model = model, .card = request->card };
    if (!plan->card.name[0])
        snprintf(plan->card.name, sizeof plan->card.name, "the memory");
    plan->family = request->family ? request->family : &model->families[0];
    plan->n_threads = request->n_threads;
    plan->n_sequences = request->n_sequences ? request->n_sequences : 1;
    plan->n_batch = request->n_batch ? request->n_batch : BURIN_DEFAULT_BATCH;
    plan->n_outputs = request->n_outputs ? request->n_outputs : plan->n_sequences;

    enum burin_status status = find_kv(plan, request, err);
    if (!status)
        status = check_tables(plan, err);
    if (!status)
        status = check_range("--threads", plan->n_threads, 1, BURIN_MAX_THREADS, err);
    if (!status)
        status = check_range("--parallel", plan->n_sequences, 1, BURIN_MAX_PARALLEL, err);
    if (!status)
        status = check_range("--batch-size", plan->n_batch, 1, BURIN_MAX_BATCH, err);
    if (!status)
        status = check_range("outputs", plan->n_outputs, 1, BURIN_MAX_BATCH, err);
    if (!status)
        status = check_range("--ctx-size", request->n_ctx, -1, INT_MAX, err);
    if (!status)
        status = check_range("--kv-tokens", request->kv_tokens, 0, INT_MAX, err);
    if (!status)
        status = check_range("--kv-bytes", request->kv_bytes, 0, INT64_MAX, err);
    if (status)
        return status;
    if (plan->n_batch < plan->n_sequences)
        return burin_fail(
                err, BURIN_EUSAGE,
                "--batch-size %d is below --parallel %d: a step has a token of each "
                "sequence",
                plan->n_batch, plan->n_sequences);
    if (request->kv_tokens && request->kv_bytes)
        return burin_fail(err, BURIN_EUSAGE, "give --kv-tokens or --kv-bytes, not both");
    if (request->n_ctx > model->n_ctx)
        return burin_fail(
                err, BURIN_EUSAGE,
                "--ctx-size %d is beyond the %d tokens that %s was trained for",
                request->n_ctx, model->n_ctx, model->variant);

    plan->n_ctx = request->n_ctx > 0 ? request->n_ctx : model->n_ctx;
    if (request->n_ctx == 0 && plan->n_ctx > BURIN_DEFAULT_CONTEXT)
        plan->n_ctx = BURIN_DEFAULT_CONTEXT;

    if (pool_given(plan, request)) {
        const int64_t pages = request->kv_tokens
                                      ? pages_of(plan, request->kv_tokens)
                                      : request->kv_bytes / (int64_t)plan->kv->page_bytes;
        const int64_t tokens = pages * page_tokens(plan);
        if (!pages || pages > INT_MAX)
            return burin_fail(
                    err, BURIN_EUSAGE,
                    "--kv-bytes %lld is not between one page of %zu bytes and %d of them",
                    (long long)request->kv_bytes, plan->kv->page_bytes, INT_MAX);
        plan->n_pages = (int)pages;
        if (request->n_ctx > 0 && tokens < plan->n_ctx)
            return burin_fail(
                    err, BURIN_EUSAGE,
                    "room for %lld tokens, one request may need %d: start with --ctx-size "
                    "%lld, or give --kv-tokens %d",
                    (long long)tokens, plan->n_ctx, (long long)tokens, plan->n_ctx);
        if (tokens < plan->n_ctx)
            plan->n_ctx = (int)tokens;
    }
    bind(plan, pool_given(plan, request));
    return BURIN_OK;
}

/* ---- The account ----------------------------------------------------------------- */

static void add_owner(
        struct burin_plan *plan,
        const char *name,
        const char *what,
        int64_t bytes,
        enum burin_kind kind)
{
    struct burin_plan_owner *owner = &plan->owners[plan->n_owners++];
    *owner = (struct burin_plan_owner){ name, what, bytes, kind };
    plan->total_bytes = burin_add(plan->total_bytes, bytes);
    if (bytes > plan->owners[plan->largest].bytes)
        plan->largest = plan->n_owners - 1;
}

static int64_t rounding(const struct burin_plan *plan, int64_t granule)
{
    int64_t sum = 0;
    for (int i = 0; i < plan->n_owners; i++) {
        const int64_t over = plan->owners[i].bytes % granule;
        sum += over ? granule - over : 0;
    }
    return sum;
}

static void account(struct burin_plan *plan, const struct burin_plan_request *request)
{
    const struct burin_family *family = plan->family;
    int64_t arena = 0, inputs = 0, kv = 0;
    for (int i = 0; i < family->n_programs; i++) {
        const struct burin_program *program = &family->programs[i];
        const int64_t own = (int64_t)burin_arena_bytes(program, &plan->params, plan->n);
        if (own > arena)
            arena = own; /* programs run one at a time */
        const int64_t fixed = (int64_t)burin_inputs_bytes(program, &plan->params, plan->n);
        if (fixed > inputs)
            inputs = fixed;
    }
    if (plan->kv) {
        kv = burin_multiply((int64_t)plan->kv->page_bytes, plan->n_pages);
        kv = burin_add(
                kv,
                burin_multiply((int64_t)plan->kv->bytes_per_sequence, plan->n_sequences));
        plan->kv_tokens = (int64_t)plan->n_pages * plan->kv->page_tokens;
    }

    plan->n_owners = 0;
    plan->total_bytes = 0;
    plan->largest = 0;
    add_owner(
            plan, "weights", "packed, all of them", (int64_t)family->weights_bytes,
            BURIN_DERIVED);
    add_owner(plan, "arena", "what a step computes with", arena, BURIN_DERIVED);
    add_owner(plan, "inputs", "token ids, positions, page table", inputs, BURIN_DERIVED);
    add_owner(plan, "kv", "keys and values of the context", kv, BURIN_DERIVED);
    if (request->weights_at_hand)
        add_owner(
                plan, "tokenizer", "of the weights at hand", request->tokenizer_bytes,
                BURIN_DERIVED);
    else
        add_owner(
                plan, "tokenizer", "at most, from the size of the vocabulary",
                burin_plan_tokenizer_bytes(plan->model->n_vocab), BURIN_ASSUMED);
    add_owner(
            plan, "threads", "stacks of the workers",
            (int64_t)BURIN_THREAD_BYTES * (plan->n_threads - 1), BURIN_DERIVED);
    if (request->granule > 1)
        add_owner(
                plan, "rounding", "of these to the device's pages",
                rounding(plan, request->granule), BURIN_DERIVED);
    add_owner(
            plan, "host", "the program itself, sampling, bookkeeping",
            HOST_BYTES + (int64_t)HOST_BYTES_A_VOCAB_ENTRY * plan->model->n_vocab +
                    (int64_t)HOST_BYTES_A_SEQUENCE * plan->n_sequences,
            BURIN_ASSUMED);

    plan->fits = plan->total_bytes <= plan->limit_bytes;
    plan->short_by_bytes = plan->fits ? 0 : plan->total_bytes - plan->limit_bytes;
}

static enum burin_status find_limit(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err)
{
    const struct burin_card *card = &request->card;
    plan->limit_bytes = INT64_MAX;
    switch (request->limit) {
    case BURIN_LIMIT_NONE:
        return BURIN_OK;
    case BURIN_LIMIT_BYTES:
        plan->limit_bytes = request->limit_bytes;
        break;
    case BURIN_LIMIT_RESERVE_DEFAULT: {
        if (!card->total_bytes)
            return BURIN_OK;
        int64_t reserve = card->total_bytes / 16;
        if (reserve > GIB || card->sm)
            reserve = GIB;
        plan->limit_bytes = card->available_bytes - reserve;
        break;
    }
    case BURIN_LIMIT_RESERVE:
        if (!card->total_bytes)
            return BURIN_OK;
        plan->limit_bytes = card->available_bytes - request->limit_bytes;
        break;
    case BURIN_LIMIT_FRACTION:
        if (!(request->limit_fraction > 0 && request->limit_fraction <= 1))
            return burin_fail(
                    err, BURIN_EUSAGE, "--vram-fraction %g is outside 0 ... 1",
                    request->limit_fraction);
        if (!card->total_bytes)
            return BURIN_OK;
        plan->limit_bytes = (int64_t)((double)card->total_bytes * request->limit_fraction);
        break;
    }
    if (plan->limit_bytes < 0)
        plan->limit_bytes = 0;
    if (card->total_bytes && plan->limit_bytes > card->available_bytes)
        plan->limit_bytes = card->available_bytes;
    return BURIN_OK;
}

/* A plan without what else would fit. */
static enum burin_status sketch(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err)
{
    enum burin_status status = resolve(plan, request, err);
    if (!status)
        status = find_limit(plan, request, err);
    if (!status)
        account(plan, request);
    return status;
}

/* ---- What else would fit --------------------------------------------------------- */

/* What the user may turn down. */
enum knob { CONTEXT, BATCH, PARALLEL, POOL, N_KNOBS };

static const char *const knob_options[N_KNOBS] = {
    [CONTEXT] = "--ctx-size",
    [BATCH] = "--batch-size",
    [PARALLEL] = "--parallel",
    [POOL] = "--kv-tokens",
};

/* Asked for by itself, all else as it was: what was left to its default follows. */
static bool fits_with(
        const struct burin_plan_request *request, enum knob knob, int64_t value)
{
    struct burin_plan_request other = *request;
    struct burin_plan plan;
    switch (knob) {
    case CONTEXT:
        other.n_ctx = (int)value;
        break;
    case BATCH:
        other.n_batch = (int)value;
        break;
    case PARALLEL:
        other.n_sequences = (int)value;
        break;
    case POOL:
        other.kv_tokens = value;
        other.kv_bytes = 0;
        break;
    case N_KNOBS:
        return false;
    }
    return !sketch(&plan, &other, NULL) && plan.fits;
}

/* The largest multiple of `step` from `least` to `most` that fits, 0 for none. Totals grow with
 * each of the numbers, so halving the interval finds it. */
static int64_t largest_that_fits(
        const struct burin_plan_request *request,
        enum knob knob,
        int64_t step,
        int64_t least,
        int64_t most)
{
    int64_t fits = (least + step - 1) / step;
    int64_t too_large = most / step + 1;
    if (fits >= too_large || !fits_with(request, knob, fits * step))
        return 0;
    while (too_large - fits > 1) {
        const int64_t middle = fits + (too_large - fits) / 2;
        if (fits_with(request, knob, middle * step))
            fits = middle;
        else
            too_large = middle;
    }
    return fits * step;
}

static bool advise_default_kv(
        struct burin_plan *plan, const struct burin_plan_request *request)
{
    struct burin_plan_request other = *request;
    struct burin_plan with_default;
    other.kv_dtype_given = false;
    if (plan->kv_index == 0 || sketch(&with_default, &other, NULL) || !with_default.fits)
        return false;
    snprintf(
            plan->advice, sizeof plan->advice,
            "Smallest change: --kv-cache-dtype %s in place of %s.",
            burin_dtype_name(with_default.kv->dtype), burin_dtype_name(plan->kv->dtype));
    return true;
}

/* Of the options that mend it alone, the one that keeps most of its value. Below `least` the
 * engine is of no use. */
static bool advise_option(struct burin_plan *plan, const struct burin_plan_request *request)
{
    const struct {
        int64_t now, step, least;
    } knobs[N_KNOBS] = {
        [CONTEXT] = { plan->n_ctx, page_tokens(plan), 256 },
        [BATCH] = { plan->n_batch, 32, plan->n_sequences },
        [PARALLEL] = { plan->n_sequences, 1, 1 },
        [POOL] = { plan->kv_tokens, page_tokens(plan), plan->n_ctx },
    };
    double best = 0;
    for (enum knob i = 0; i < N_KNOBS; i++) {
        if (i == POOL && !pool_given(plan, request))
            continue;
        const int64_t now = knobs[i].now;
        const int64_t value =
                largest_that_fits(request, i, knobs[i].step, knobs[i].least, now - 1);
        const double kept = now ? (double)value / (double)now : 0;
        if (kept <= best)
            continue;
        best = kept;
        snprintf(
                plan->advice, sizeof plan->advice,
                "Smallest change: %s %lld in place of %lld.", knob_options[i],
                (long long)value, (long long)now);
    }
    return best > 0;
}

/* No option by itself: what all of them at their smallest leave for the weights. */
static enum burin_status advise_all(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err)
{
    struct burin_plan_request smallest = *request;
    struct burin_plan least;
    smallest.n_ctx = page_tokens(plan) < plan->n_ctx ? page_tokens(plan) : plan->n_ctx;
    smallest.n_batch = 32;
    smallest.n_sequences = 1;
    smallest.n_outputs = 1;
    smallest.kv_tokens = 0;
    smallest.kv_bytes = 0;
    const enum burin_status status = sketch(&least, &smallest, err);
    if (status)
        return status;

    const int64_t weights = (int64_t)plan->family->weights_bytes;
    const int64_t room = plan->limit_bytes - (least.total_bytes - weights);
    const double elements = (double)plan->model->n_elements;
    const double bits = elements > 0 ? 8.0 * (double)room / elements : 0;
    if (least.fits)
        snprintf(
                plan->advice, sizeof plan->advice,
                "No single option mends it. Several do: --ctx-size, --batch-size and "
                "--parallel at their smallest need %s.",
                burin_human_bytes(least.total_bytes).text);
    else if (bits >= 2)
        snprintf(
                plan->advice, sizeof plan->advice,
                "No option mends it. Smallest change: a recipe of at most %.1f bits an "
                "element (gen --quant), the weights have %.1f; or a smaller variant.",
                bits, 8.0 * (double)weights / elements);
    else
        snprintf(
                plan->advice, sizeof plan->advice,
                "No option mends it: the least this model runs in is %s. A smaller variant "
                "(gen list) may fit.",
                burin_human_bytes(least.total_bytes).text);
    return BURIN_OK;
}

enum burin_status burin_plan_make(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err)
{
    enum burin_status status = sketch(plan, request, err);
    if (status)
        return status;

    const int64_t page = page_tokens(plan);
    const int n_ctx = plan->model->n_ctx; /* perhaps no whole number of pages */
    const int n_batch = request->n_batch ? request->n_batch : BURIN_DEFAULT_BATCH;
    plan->longest_context =
            fits_with(request, CONTEXT, n_ctx)
                    ? n_ctx
                    : (int)largest_that_fits(request, CONTEXT, page, page, n_ctx);
    plan->most_sequences = (int)largest_that_fits(request, PARALLEL, 1, 1, n_batch);
    if (!plan->fits && !advise_default_kv(plan, request) && !advise_option(plan, request))
        status = advise_all(plan, request, err);
    return status;
}

enum burin_status burin_plan_check(const struct burin_plan *plan, struct burin_error *err)
{
    if (plan->fits)
        return BURIN_OK;
    const struct burin_plan_owner *largest = &plan->owners[plan->largest];
    return burin_fail(
            err, BURIN_ENOMEM,
            "%s needs %s and may use %s of %s: short by %s (%lld bytes).\n"
            "The largest part is %s, %s. %s",
            plan->model->name, burin_human_bytes(plan->total_bytes).text,
            burin_human_bytes(plan->limit_bytes).text, plan->card.name,
            burin_human_bytes(plan->short_by_bytes).text, (long long)plan->short_by_bytes,
            largest->name, burin_human_bytes(largest->bytes).text, plan->advice);
}

int64_t burin_plan_tokenizer_bytes(int64_t n_vocab)
{
    return burin_add(TOKENIZER_BYTES, burin_multiply(TOKENIZER_BYTES_A_TOKEN, n_vocab));
}

int64_t burin_plan_owner_bytes(const struct burin_plan *plan, const char *name)
{
    for (int i = 0; i < plan->n_owners; i++)
        if (strcmp(plan->owners[i].name, name) == 0)
            return plan->owners[i].bytes;
    return 0;
}
