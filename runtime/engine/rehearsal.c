#include "runtime/engine/rehearsal.h"

#include "runtime/device/cuda/launch.h"
#include "runtime/engine/calls.h"

#include <string.h>

enum { STACK_BYTES = 1024 }; /* of a thread, as the plan assumes */

static void enqueue_as_many(
        const struct burin_stream *stream, const struct burin_call *call)
{
    const struct burin_program_call *of =
            (const struct burin_program_call *)call; /* its head */
    const struct burin_graph_cost *graph = &of->program->graph;
    const struct burin_blocks one = { 1, 1, 1 };
    for (int i = 0; i < graph->kernel_nodes + graph->copy_nodes; i++)
        burin_launch(stream, 0, one, 32, 0, NULL);
}

static const struct burin_kernel kernels[] = {
    { .name = "rehearsed",
      .text = "extern \"C\" __global__ void rehearsed(void)\n{\n}\n",
      .threads = 32 },
};
static const struct burin_cubin no_cubins[] = { { .arch = NULL } };
static const struct burin_cuda_code code = {
    .prelude = "",
    .n_kernels = 1,
    .kernels = kernels,
    .cubins = no_cubins,
};
static burin_enqueue *const enqueue[BURIN_N_DTYPES] = {
    enqueue_as_many, enqueue_as_many, enqueue_as_many, enqueue_as_many,
    enqueue_as_many, enqueue_as_many, enqueue_as_many, enqueue_as_many,
};

void burin_rehearsed_family_make(
        struct burin_rehearsed_family *stand_in, const struct burin_family *family)
{
    stand_in->family = *family;
    memcpy(stand_in->programs, family->programs,
           sizeof *family->programs * (size_t)family->n_programs);
    for (int p = 0; p < family->n_programs; p++)
        stand_in->programs[p].enqueue = enqueue;
    stand_in->family.programs = stand_in->programs;
    stand_in->family.cuda = &code;
}

static size_t owner(const struct burin_plan *plan, const char *name)
{
    return (size_t)burin_plan_owner_bytes(plan, name);
}

/* Of a card of which no number is known: as many as its stacks are planned for. */
static int processors(const struct burin_card *card, size_t stacks)
{
    const bool most = card->sm == 80 || (card->sm >= 90 && card->sm < 120); /* account.c */
    return card->n_processors
                   ? card->n_processors
                   : (int)(stacks / ((most ? 2048 : 1536) * (size_t)STACK_BYTES));
}

struct burin_virtual_options burin_rehearsal_card(const struct burin_plan *plan)
{
    struct burin_virtual_options options = burin_virtual_default(&plan->card);
    options.cards[0].n_processors = processors(&plan->card, owner(plan, "local memory"));
    options.context_bytes = owner(plan, "context");
    options.module_bytes = owner(plan, "modules");
    options.local_bytes = STACK_BYTES;
    options.node_bytes = (size_t)plan->node_bytes;
    return options;
}

void burin_rehearsal_open(
        struct burin_rehearsal *r,
        const struct burin_plan *plan,
        const struct burin_plan_request *request)
{
    *r = (struct burin_rehearsal){ .plan = *plan, .request = *request };
    burin_rehearsed_family_make(&r->stand_in, plan->family);
    r->plan.family = &r->stand_in.family;
    r->request.family = &r->stand_in.family;
    r->gpu.not_here = true;
    r->start = (struct burin_start){
        .plan = &r->plan,
        .request = &r->request,
        .gpu = &r->gpu,
        .n_threads = 1,
        .ledger = &r->ledger,
        .memory = &r->memory,
        .queue = &r->queue,
        .staging = &r->staging,
        .captures = &r->captures,
    };
}

enum burin_status burin_rehearsal_run(struct burin_rehearsal *r, struct burin_error *err)
{
    burin_virtual_tables(&r->gpu.driver, &r->gpu.nvrtc, &r->gpu.nvml);
    enum burin_status status = burin_gpu_open_tables(&r->gpu, 0, err);
    if (!status)
        status = burin_start_run(&r->start, err);
    if (!status)
        burin_ledger_seal(&r->ledger);
    return status;
}

enum burin_status burin_rehearse(
        struct burin_rehearsal *r,
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err)
{
    burin_rehearsal_open(r, plan, request);
    return burin_rehearsal_run(r, err);
}

void burin_rehearsal_close(struct burin_rehearsal *r)
{
    if (r->start.gpu)
        burin_start_close(&r->start);
    burin_gpu_close(&r->gpu);
}
