#include "runtime/plan/sketch.h"

#include "runtime/plan/fit.h"
#include "runtime/plan/runs.h"
#include "runtime/plan/size.h"

#include <limits.h>
#include <string.h>

static const int64_t MIB = 1 << 20;

enum {
    /* The binary's own data, libc, Lua for the chat format, file headers while loading. */
    HOST_BYTES = 8 * 1024 * 1024,
    /* Logits order and probabilities while drawing a token. */
    HOST_BYTES_A_VOCAB_ENTRY = 16,
    /* A running request's bookkeeping. */
    HOST_BYTES_A_SEQUENCE = 64 * 1024,

    /* The worst that was met on a GPU, in MiB. Context: 555 on an RTX PRO 6000, 426 on an RTX
     * 6000 Ada, 107 on an RTX 4060 Ti (llama.cpp#23604, unsloth-zoo#1053). */
    CONTEXT_MIB = 555,
    /* Code of some tens of kernels; a torch process that loads thousands of them as it needs
     * them keeps about 300 with its context (pytorch#107667). */
    MODULES_MIB = 64,
    /* What cuBLASLt keeps on the device, and those of its kernels that it loads: nobody has
     * measured it for us; as much as a torch process keeps for all it does. */
    CUBLASLT_MIB = 300,
    /* Stacks: 1 KiB, the driver's default, for each of a multiprocessor's threads. 296 on a
     * B200, which has the most; 216 measured on an A100 (EMDC_llvm#13). */
    LOCAL_MIB = 296,
};

static void add_owner(
        struct burin_plan *plan,
        const char *name,
        const char *what,
        int64_t bytes,
        enum burin_kind kind)
{
    struct burin_plan_owner *owner = &plan->owners[plan->n_owners++];
    *owner = (struct burin_plan_owner){
        .name = name, .what = what, .bytes = bytes, .kind = kind
    };
    plan->total_bytes = burin_add(plan->total_bytes, bytes);
    if (bytes > plan->owners[plan->largest].bytes)
        plan->largest = plan->n_owners - 1;
}

/* What --assume tells, and what it takes the place of. */
static void add_told(
        struct burin_plan *plan,
        const char *name,
        const char *what,
        int64_t bytes,
        int64_t derived)
{
    add_owner(plan, name, what, bytes, BURIN_ASSUMED);
    plan->owners[plan->n_owners - 1].told = true;
    plan->owners[plan->n_owners - 1].derived_bytes = derived;
}

static void add_if_any(
        struct burin_plan *plan, const char *name, const char *what, int64_t bytes)
{
    if (bytes)
        add_owner(plan, name, what, bytes, BURIN_DERIVED);
}

/* What the device gives more than is asked for. */
static int64_t over(int64_t bytes, int64_t granule)
{
    return bytes % granule ? granule - bytes % granule : 0;
}

static int64_t rounding(const struct burin_plan *plan, int first, int64_t granule)
{
    int64_t sum = 0;
    for (int i = first; i < plan->n_owners; i++)
        sum += over(plan->owners[i].bytes, granule);
    return sum;
}

/* ---- What both kinds of machine need ------------------------------------------------- */

/* A row of the layout takes bytes where its program runs. */
static void sum_states(struct burin_plan *plan)
{
    struct burin_state_bytes *state = &plan->state;
    const struct burin_kv_layout *kv = plan->kv;
    *state = (struct burin_state_bytes){ 0 };
    if (!kv)
        return;
    state->token = (int64_t)kv->bytes_per_token;
    state->page = (int64_t)kv->page_bytes;
    if (!kv->n_rows) {
        state->scans = (int64_t)kv->bytes_per_sequence;
        state->drafts = (int64_t)kv->bytes_per_draft * plan->n_draft;
    }
    for (int i = 0; i < kv->n_rows; i++) {
        const struct burin_layer_state *row = &kv->rows[i];
        const int64_t token = (int64_t)row->bytes_per_token;
        if (!plan->programs[row->program].active)
            continue;
        if (row->program > 0) { /* on top of the layout's sums, which are the step's */
            state->token += token;
            state->page += token * kv->page_tokens;
        }
        if (row->state == BURIN_STATE_RING)
            state->windows += (int64_t)row->bytes_per_sequence;
        if (row->state == BURIN_STATE_FIXED)
            state->scans += (int64_t)row->bytes_per_sequence;
        state->drafts += (int64_t)row->bytes_per_draft * plan->n_draft;
    }
}

int64_t burin_plan_slot_bytes(const struct burin_plan *plan)
{
    return plan->state.windows + plan->state.scans + plan->state.drafts;
}

static int64_t weights_bytes(const struct burin_plan *plan)
{
    int64_t sum = 0;
    if (!plan->family->sm)
        return (int64_t)plan->family->weights_bytes;
    for (int p = 0; p < plan->family->n_programs; p++)
        if (plan->programs[p].active)
            sum = burin_add(sum, (int64_t)plan->family->programs[p].weights_bytes);
    return sum;
}

/* The encoder cache is the same memory for all programs that read it. */
static int64_t cache_bytes(const struct burin_plan *plan)
{
    int64_t most = 0;
    for (int p = 0; p < plan->family->n_programs; p++) {
        const struct burin_program *program = &plan->family->programs[p];
        for (int i = 0; i < program->n_inputs && plan->programs[p].active; i++) {
            const struct burin_input *input = &program->inputs[i];
            const int64_t bytes = (int64_t)burin_input_bytes(input, &plan->params, plan->n);
            if (burin_input_is_cache(input) && bytes > most)
                most = bytes;
        }
    }
    return most;
}

static void add_runs(struct burin_plan *plan)
{
    struct burin_plan_run run;
    int64_t arena = 0, inputs = 0;
    for (int i = 0; burin_plan_run_at(plan, i, &run); i++) {
        if (run.arena_bytes > arena)
            arena = run.arena_bytes;
        if (run.input_bytes > inputs)
            inputs = run.input_bytes;
    }
    add_owner(
            plan, "weights", "as the kernels read them, of all that is planned",
            weights_bytes(plan), BURIN_DERIVED);
    add_owner(plan, "arena", "scratch memory of the largest run", arena, BURIN_DERIVED);
    add_owner(
            plan, "inputs", "what the largest run reads: token ids, positions, pixels",
            inputs, BURIN_DERIVED);
    add_if_any(
            plan, "encoder cache", "encoded pictures and sound until a step has used them",
            cache_bytes(plan));
}

static void add_states(struct burin_plan *plan)
{
    const int64_t n = plan->n_sequences;
    add_if_any(
            plan, "windows", "newest keys and values, of layers that look no further back",
            burin_multiply(plan->state.windows, n));
    add_if_any(
            plan, "scans", "states of the recurrent layers, of each sequence",
            burin_multiply(plan->state.scans, n));
    add_if_any(
            plan, "drafts", "more windows and states, for tokens that are drafted",
            burin_multiply(plan->state.drafts, n));
}

static void add_kv(struct burin_plan *plan)
{
    if (!plan->kv)
        return;
    plan->kv_tokens = (int64_t)plan->n_pages * plan->kv->page_tokens;
    if (!plan->state.page) /* windows and states are all that it keeps */
        return;
    add_owner(
            plan, "kv", "keys and values of the context, in pages",
            burin_multiply(plan->state.page, plan->n_pages), BURIN_DERIVED);
}

int64_t burin_plan_result_bytes(const struct burin_plan *plan)
{
    const int64_t row = (int64_t)plan->model->n_vocab * (int64_t)sizeof(float);
    return burin_multiply(row + BURIN_TOP_BYTES, plan->n_outputs);
}

static void add_host(struct burin_plan *plan)
{
    add_owner(
            plan, "host", "the program itself, sampling, bookkeeping",
            HOST_BYTES + (int64_t)HOST_BYTES_A_VOCAB_ENTRY * plan->model->n_vocab +
                    (int64_t)HOST_BYTES_A_SEQUENCE * plan->n_sequences +
                    (plan->family->sm ? burin_plan_owner_bytes(plan, "inputs") +
                                                burin_plan_result_bytes(plan)
                                      : 0), /* the host's copies of them */
            BURIN_ASSUMED);
}

static void add_tokenizer(struct burin_plan *plan, const struct burin_plan_request *request)
{
    if (request->weights_at_hand)
        add_owner(
                plan, "tokenizer", "of the weights at hand", request->tokenizer_bytes,
                BURIN_DERIVED);
    else
        add_owner(
                plan, "tokenizer", "at most, from the size of the vocabulary",
                burin_plan_tokenizer_bytes(plan->model->n_vocab), BURIN_ASSUMED);
}

/* ---- A CPU --------------------------------------------------------------------------- */

static void account_cpu(struct burin_plan *plan, const struct burin_plan_request *request)
{
    add_runs(plan);
    add_if_any(
            plan, "slots", "what each sequence keeps: windows, states of recurrent layers",
            burin_multiply(burin_plan_slot_bytes(plan), plan->n_sequences));
    add_kv(plan);
    add_tokenizer(plan, request);
    add_owner(
            plan, "threads", "stacks of the workers",
            (int64_t)BURIN_THREAD_BYTES * (plan->n_threads - 1), BURIN_DERIVED);
    if (request->granule > 1)
        add_owner(
                plan, "rounding", "of these to the device's pages",
                rounding(plan, 0, request->granule), BURIN_DERIVED);
    add_host(plan);
}

/* ---- A GPU --------------------------------------------------------------------------- */

static void add_device(
        struct burin_plan *plan,
        const char *name,
        const char *what,
        int64_t measured,
        int64_t worst)
{
    add_owner(
            plan, name, what, measured ? measured : worst,
            measured ? BURIN_MEASURED : BURIN_ASSUMED);
}

static int64_t granule_of(const struct burin_plan_request *request)
{
    return request->granule ? request->granule : BURIN_GRANULE;
}

/* A multiprocessor's threads: 2048, and 1536 where it is of a consumer's kind. */
static int64_t worst_local(const struct burin_card *card)
{
    const bool most = card->sm == 80 || (card->sm >= 90 && card->sm < 120);
    return card->n_processors ? (int64_t)card->n_processors * (most ? 2048 : 1536) * 1024
                              : LOCAL_MIB * MIB;
}

static void add_derived_fixed(
        struct burin_plan *plan, const struct burin_plan_request *request)
{
    const struct burin_device_costs *costs = &request->costs;
    add_device(
            plan, "context", "the driver's, for a process on this card",
            costs->context_bytes, CONTEXT_MIB * MIB);
    const bool fast = plan->params.value[BURIN_FAST_GEMM] != 0;
    add_device(
            plan, "modules", fast ? "the kernels' code, and cuBLASLt" : "the kernels' code",
            costs->modules_bytes, (MODULES_MIB + (fast ? CUBLASLT_MIB : 0)) * MIB);
    add_device(
            plan, "local memory", "stacks of all threads that the card runs at once",
            costs->local_bytes, worst_local(&plan->card));
    add_runs(plan);
}

/* Also where --assume tells it: what is derived then stands beside it. */
static void add_fixed(struct burin_plan *plan, const struct burin_plan_request *request)
{
    add_derived_fixed(plan, request);
    if (!request->fixed_given)
        return;
    if (plan->card.unified) {
        add_tokenizer(plan, request);
        add_host(plan);
    }
    int64_t derived = plan->total_bytes;
    for (int i = 0; i < plan->n_owners; i++)
        if (plan->owners[i].kind == BURIN_DERIVED)
            derived = burin_add(derived, over(plan->owners[i].bytes, granule_of(request)));
    plan->n_owners = 0;
    plan->total_bytes = 0;
    add_told(
            plan, "fixed", "all but graphs, states and KV, as --assume tells",
            request->fixed_bytes, derived);
}

int64_t burin_plan_graphs_bytes(const struct burin_plan *plan)
{
    struct burin_plan_run run;
    int64_t sum = 0;
    for (int i = 0; burin_plan_run_at(plan, i, &run); i++)
        sum = burin_add(sum, run.driver_bytes);
    return sum;
}

static void add_graphs(struct burin_plan *plan, const struct burin_plan_request *request)
{
    if (request->graphs_given)
        add_told(
                plan, "graphs", "as --assume tells", request->graphs_bytes,
                burin_plan_graphs_bytes(plan));
    else if (burin_plan_graphs_bytes(plan))
        add_owner(
                plan, "graphs", "what the driver keeps for each node of a graph",
                burin_plan_graphs_bytes(plan),
                request->costs.node_bytes ? BURIN_MEASURED : BURIN_ASSUMED);
}

/* What the device takes for what we ask of it, and the driver for itself and for each graph:
 * whole granules. What was measured had them. */
static int64_t gpu_rounding(const struct burin_plan *plan, int64_t granule)
{
    int64_t sum = 0;
    for (int i = 0; i < plan->n_owners; i++)
        if (plan->owners[i].kind != BURIN_MEASURED &&
            strcmp(plan->owners[i].name, "graphs") != 0 &&
            strcmp(plan->owners[i].name, "rounding") != 0)
            sum += over(plan->owners[i].bytes, granule);
    struct burin_plan_run run;
    for (int i = 0; burin_plan_run_at(plan, i, &run) && !plan->graphs_assumed; i++)
        sum += over(run.driver_bytes, granule);
    return sum;
}

/* One sequence as long as it may get, and a page for each of the others; a pool that is asked
 * for is held to the same (settle.c). */
static int pages_needed(const struct burin_plan *plan)
{
    const int longest = burin_plan_pages_of(plan, plan->n_ctx);
    return longest > INT_MAX - plan->n_sequences ? INT_MAX
                                                 : longest + plan->n_sequences - 1;
}

/* Pages get what is left. Where that is too little the plan has what is needed, and does not
 * fit. */
static void fill_with_kv(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        int64_t rounded,
        int64_t granule)
{
    if (!plan->kv || burin_plan_pool_given(plan, request))
        return;
    const struct burin_fit fit = { .limit = plan->limit_bytes,
                                   .fixed = burin_add(plan->total_bytes, rounded),
                                   .n_segments = 1,
                                   .page_bytes = plan->state.page,
                                   .granule = granule };
    int64_t n = 0;
    if (plan->limit_bytes != INT64_MAX && plan->state.page)
        burin_fit_pages(&fit, &n, NULL);
    if (n > INT_MAX)
        n = INT_MAX;
    plan->n_pages = pages_needed(plan);
    if (n > plan->n_pages)
        plan->n_pages = (int)n;
}

static void account_gpu(struct burin_plan *plan, const struct burin_plan_request *request)
{
    /* --assume fixed= has rounding in it already. */
    const int64_t granule = request->fixed_given ? 1 : granule_of(request);
    add_fixed(plan, request);
    add_states(plan);
    add_graphs(plan, request);
    if (plan->card.unified && !request->fixed_given) {
        add_tokenizer(plan, request);
        add_host(plan);
    }
    fill_with_kv(plan, request, gpu_rounding(plan, granule), granule);
    add_kv(plan);
    if (granule > 1)
        add_owner(
                plan, "rounding",
                "memory comes in whole pieces: what they hold beyond the above",
                gpu_rounding(plan, granule),
                request->granule ? BURIN_MEASURED : BURIN_ASSUMED);
}

void burin_plan_account(struct burin_plan *plan, const struct burin_plan_request *request)
{
    plan->n_owners = 0;
    plan->total_bytes = 0;
    plan->largest = 0;
    plan->kv_tokens = 0;
    sum_states(plan);
    if (plan->family->sm)
        account_gpu(plan, request);
    else
        account_cpu(plan, request);
    const int64_t over_limit = plan->total_bytes > plan->limit_bytes
                                       ? plan->total_bytes - plan->limit_bytes
                                       : 0;
    const int64_t over_share = plan->family->sm ? burin_plan_graphs_over(plan) : 0;
    plan->fits = !over_limit && !over_share;
    plan->short_by_bytes = over_limit ? over_limit : over_share;
}
