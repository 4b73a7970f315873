/* Which programs are planned, and for which sizes their graphs are captured. */
#include "runtime/plan/sketch.h"

#include "runtime/base/put.h"
#include "runtime/base/units.h"
#include "runtime/plan/encoder.h"
#include "runtime/plan/runs.h"
#include "runtime/plan/size.h"

#include <limits.h>
#include <string.h>

/* ---- Which ---------------------------------------------------------------------------- */

static bool wanted(const struct burin_plan *plan, const struct burin_program *program)
{
    if (burin_is_draft(program))
        return plan->n_draft > 0;
    if (burin_is_audio(program))
        return plan->n_clips > 0;
    if (burin_is_encoder(program))
        return plan->n_images + plan->n_frames > 0;
    return true;
}

/* Which programs are planned; and that what is asked for has one. */
static enum burin_status activate(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err)
{
    const struct burin_family *family = plan->family;
    bool draft = false, audio = false, vision = false;
    for (int i = 0; i < family->n_programs; i++) {
        const struct burin_program *program = &family->programs[i];
        plan->programs[i].active = wanted(plan, program);
        draft |= burin_is_draft(program);
        audio |= burin_is_audio(program);
        vision |= burin_is_encoder(program) && !burin_is_audio(program);
    }
    const char *model = plan->model->name;
    if (plan->n_draft && !draft)
        return burin_fail(
                err, BURIN_EUSAGE, "--draft %d: %s has no program that drafts",
                plan->n_draft, model);
    if (plan->n_clips && !audio)
        return burin_fail(
                err, BURIN_EUSAGE, "--audio-clips %d: %s has no encoder for sound",
                plan->n_clips, model);
    if (vision)
        return BURIN_OK;
    if (plan->n_frames || (request->images_given && plan->n_images))
        return burin_fail(
                err, BURIN_EUSAGE, "%s %d: %s has no encoder for pictures",
                plan->n_frames ? "--video-frames" : "--images",
                plan->n_frames ? plan->n_frames : plan->n_images, model);
    plan->n_images = 0;
    return BURIN_OK;
}

static const struct burin_ladder *named(
        const struct burin_graphs *graphs, const struct burin_program *program)
{
    return burin_graphs_named(graphs, program->name, strlen(program->name));
}

/* Before anything else: a graph that would seem to cost nothing. */
static enum burin_status check_graphs(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err)
{
    const struct burin_family *family = plan->family;
    bool any = false;
    for (int i = 0; i < family->n_programs && family->sm; i++) {
        const struct burin_program *program = &family->programs[i];
        if (!plan->programs[i].active || request->graphs.none)
            continue;
        any = true;
        if (program->graph.kernel_nodes <= 0 || program->graph.copy_nodes < 0)
            return burin_fail(
                    err, BURIN_EFORMAT,
                    "program %s has no graph budget: its graphs would seem to cost nothing",
                    program->name);
    }
    if (!any && request->graphs_given && request->graphs_bytes > 0 && family->sm)
        return burin_fail(
                err, BURIN_EUSAGE,
                "--assume graphs=%lld: no graphs are planned (--graphs none)",
                (long long)request->graphs_bytes);
    if (any && request->graphs_given && request->graphs_bytes <= 0)
        return burin_fail(
                err, BURIN_EUSAGE,
                "--assume graphs=0: graphs with kernels are planned, and none is free; "
                "--graphs none plans without them");
    return BURIN_OK;
}

static enum burin_status check_named(
        struct burin_plan *plan, const struct burin_graphs *graphs, struct burin_error *err)
{
    for (int i = 0; i < graphs->n; i++) {
        int p = 0;
        while (p < plan->family->n_programs &&
               strcmp(plan->family->programs[p].name, graphs->named[i].program) != 0)
            p++;
        if (p < plan->family->n_programs) {
            plan->programs[p].unused = !plan->programs[p].active;
            continue;
        }
        char names[128] = "";
        struct burin_put list = { names, sizeof names, 0 };
        for (p = 0; p < plan->family->n_programs; p++)
            burin_put(&list, " %s", plan->family->programs[p].name);
        return burin_fail(
                err, BURIN_EUSAGE, "--graphs %s: the programs of %s are%s",
                graphs->named[i].program, plan->model->name, names);
    }
    return BURIN_OK;
}

enum burin_status burin_plan_choose_programs(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err)
{
    enum burin_status status = activate(plan, request, err);
    if (!status)
        status = check_graphs(plan, request, err);
    return status ? status : check_named(plan, &request->graphs, err);
}

bool burin_plan_lacks_kv(const struct burin_plan *plan, int program, int kv)
{
    const struct burin_program *of = &plan->family->programs[program];
    bool any = false;
    for (int i = 0; i < plan->family->n_kv; i++)
        any |= burin_program_runs(of, i);
    return plan->programs[program].active && any && !burin_program_runs(of, kv);
}

bool burin_plan_only_planned(const struct burin_plan *plan, int program)
{
    return plan->programs[program].active &&
           (plan->family->programs[program].missing ||
            burin_plan_lacks_kv(plan, program, plan->kv_index));
}

/* ---- Their runs and graphs ---------------------------------------------------------- */

static int64_t arena_of(
        const struct burin_plan *plan, const struct burin_program *program, int n_soft)
{
    const int n[BURIN_N_EXTENTS] = { [BURIN_SOFT] = n_soft };
    return (int64_t)burin_arena_bytes(program, &plan->params, n);
}

/* What --encoder-arena lets an encoder's largest run be. */
static enum burin_status cap_encoder(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        const struct burin_program *program,
        const struct burin_ladder *listed,
        int *largest,
        struct burin_error *err)
{
    const int64_t cap = request->encoder_arena;
    if (!cap || arena_of(plan, program, *largest) <= cap)
        return BURIN_OK;
    const int smallest = program->smallest_item;
    const int fits = burin_run_largest(program, &plan->params, cap, smallest, *largest);
    const int asked = *largest;
    *largest = fits;
    if (!fits)
        return burin_fail(
                err, BURIN_ENOMEM,
                "--encoder-arena %lld is too little for %s: its smallest item, %d soft "
                "tokens, takes %lld bytes",
                (long long)cap, program->name, smallest,
                (long long)arena_of(plan, program, smallest));
    if (listed)
        return burin_fail(
                err, BURIN_ENOMEM,
                "--graphs %s=%s takes %lld bytes of arena, --encoder-arena is %lld: up "
                "to %d soft tokens fit",
                program->name, burin_ladder_end(listed).text,
                (long long)arena_of(plan, program, asked), (long long)cap, fits);
    return BURIN_OK;
}

/* Soft tokens of an encoder's largest run, if nobody lists graphs: of an item. On a CPU, where no
 * graph is captured for it, --encoder-arena lets it be of all that are kept at once. */
static int largest_run(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        const struct burin_program *program)
{
    int item = program->largest_item < BURIN_ENCODER_LARGEST ? program->largest_item
                                                             : BURIN_ENCODER_LARGEST;
    if (item < program->smallest_item)
        item = program->smallest_item;
    if (!request->encoder_arena || plan->family->sm)
        return item;
    const int frame = program->frame_item ? program->frame_item : item;
    const int64_t all = burin_is_audio(program) ? (int64_t)item * plan->n_clips
                                                : (int64_t)item * plan->n_images +
                                                          (int64_t)frame * plan->n_frames;
    return all < item ? item : all > INT_MAX ? INT_MAX : (int)all;
}

static enum burin_status plan_encoder(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        int p,
        struct burin_error *err)
{
    const struct burin_program *program = &plan->family->programs[p];
    struct burin_planned_program *planned = &plan->programs[p];
    const struct burin_ladder *listed = named(&request->graphs, program);
    int largest = largest_run(plan, request, program);
    if (listed) {
        largest = listed->sizes[listed->n - 1];
        if (listed->sizes[0] < program->smallest_item)
            return burin_fail(
                    err, BURIN_EUSAGE,
                    "--graphs %s=%d: its smallest item has %d soft tokens", program->name,
                    listed->sizes[0], program->smallest_item);
    }
    enum burin_status status = cap_encoder(plan, request, program, listed, &largest, err);
    if (status)
        return status;
    planned->n_eager = largest;
    if (listed)
        planned->graphs = *listed;
    else if (plan->family->sm && !request->graphs.none)
        status =
                burin_ladder_double(&planned->graphs, program->smallest_item, largest, err);
    return status;
}

static enum burin_status plan_step(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        int p,
        struct burin_error *err)
{
    const struct burin_program *program = &plan->family->programs[p];
    struct burin_planned_program *planned = &plan->programs[p];
    const struct burin_ladder *listed = named(&request->graphs, program);
    planned->n_eager = plan->n_batch;
    if (!plan->family->sm)
        return BURIN_OK;
    if (listed) {
        planned->graphs = *listed;
        const int largest = listed->sizes[listed->n - 1];
        if (largest > plan->n_sequences)
            return burin_fail(
                    err, BURIN_EUSAGE,
                    "--graphs %s=%s is above the %d sequences that run at once "
                    "(--parallel)",
                    program->name, burin_ladder_end(listed).text, plan->n_sequences);
        return BURIN_OK;
    }
    if (request->graphs.none)
        return BURIN_OK;
    return burin_ladder_padded(
            &planned->graphs, plan->n_sequences,
            request->padding_given ? request->graph_padding : BURIN_GRAPH_PADDING, err);
}

/* An item is never longer than the encoder's largest, whatever a run holds of them, nor than any
 * context. */
int burin_plan_longest_item(const struct burin_plan *plan, int p)
{
    const int run = plan->programs[p].n_eager;
    int largest = plan->family->programs[p].largest_item;
    if (largest > plan->model->n_ctx)
        largest = plan->model->n_ctx;
    if (plan->largest_picture && plan->largest_picture < largest &&
        !burin_is_audio(&plan->family->programs[p]))
        largest = plan->largest_picture;
    return run < largest ? run : largest;
}

int burin_plan_longest_frame(const struct burin_plan *plan, int p)
{
    const int item = burin_plan_longest_item(plan, p);
    const int frame = plan->family->programs[p].frame_item;
    return frame && frame < item ? frame : item;
}

int64_t burin_plan_cache_rows(const struct burin_plan *plan)
{
    int64_t rows = 0;
    for (int p = 0; p < plan->family->n_programs; p++) {
        const struct burin_program *program = &plan->family->programs[p];
        if (!burin_is_encoder(program) || !plan->programs[p].active)
            continue;
        const int64_t item = burin_plan_longest_item(plan, p);
        rows += burin_is_audio(program)
                        ? item * plan->n_clips
                        : item * plan->n_images +
                                  (int64_t)burin_plan_longest_frame(plan, p) *
                                          plan->n_frames;
    }
    return rows;
}

int burin_plan_spanned(const struct burin_plan *plan)
{
    const struct burin_family *family = plan->family;
    bool spans = false;
    int most = 0;
    for (int p = 0; p < family->n_programs; p++)
        for (int i = 0; i < family->programs[p].n_inputs; i++)
            spans |= strcmp(family->programs[p].inputs[i].name, "spans") == 0;
    for (int p = 0; p < family->n_programs && spans; p++) {
        const struct burin_program *program = &family->programs[p];
        if (!plan->programs[p].active || !burin_is_encoder(program) ||
            burin_is_audio(program))
            continue;
        const int item = plan->n_images ? burin_plan_longest_item(plan, p)
                                        : burin_plan_longest_frame(plan, p);
        if (item > most)
            most = item;
    }
    return most;
}

/* What leaves a sequence so few tokens. */
static const char *context_option(
        const struct burin_plan *plan, const struct burin_plan_request *request)
{
    if (plan->n_ctx == request->n_ctx || !burin_plan_pool_given(plan, request))
        return "--ctx-size";
    return request->kv_tokens ? "--kv-tokens" : "--kv-bytes";
}

/* One sequence has all of a picture, and one step takes it. */
static enum burin_status check_spans(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err)
{
    const int item = burin_plan_spanned(plan);
    const bool context = item > plan->n_ctx;
    if (!context && item <= plan->n_batch)
        return BURIN_OK;
    return burin_fail(
            err, BURIN_EUSAGE,
            "a picture becomes up to %d tokens, which one step takes together, and a %s "
            "has %d (%s); --graphs encode_image=... sets how many a picture becomes",
            item, context ? "sequence" : "step", context ? plan->n_ctx : plan->n_batch,
            context ? context_option(plan, request) : "--batch-size");
}

enum burin_status burin_plan_programs(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err)
{
    enum burin_status status = BURIN_OK;
    for (int p = 0; p < plan->family->n_programs && !status; p++) {
        plan->programs[p].n_eager = 0;
        plan->programs[p].graphs.n = 0;
        if (!plan->programs[p].active)
            continue;
        status = burin_is_encoder(&plan->family->programs[p])
                         ? plan_encoder(plan, request, p, err)
                         : plan_step(plan, request, p, err);
    }
    return status ? status : check_spans(plan, request, err);
}

int64_t burin_plan_graphs_over(const struct burin_plan *plan)
{
    const int64_t over = burin_plan_graphs_bytes(plan) - plan->card.total_bytes / 4;
    return plan->graphs_assumed || !plan->card.total_bytes || over < 0 ? 0 : over;
}

void burin_plan_graphs_text(const struct burin_plan *plan, char *text, size_t capacity)
{
    struct burin_put put = { text, capacity, 0 };
    text[0] = '\0';
    if (!burin_plan_graphs_over(plan))
        return;

    struct burin_plan_run run, largest[3] = { 0 };
    int n = 0, n_graphs = 0;
    for (int i = 0; burin_plan_run_at(plan, i, &run); i++) {
        if (!run.graph)
            continue;
        n_graphs++;
        int at = n < 3 ? n++ : 3;
        for (; at > 0 && largest[at - 1].driver_bytes <= run.driver_bytes; at--)
            if (at < 3)
                largest[at] = largest[at - 1];
        if (at < 3)
            largest[at] = run;
    }
    burin_put(
            &put,
            "%d graphs would take %s, more than a quarter of %s. The largest:", n_graphs,
            burin_human_bytes(burin_plan_graphs_bytes(plan)).text, plan->card.name);
    for (int i = 0; i < n; i++)
        burin_put(
                &put, "%s %s n = %d %s", i ? "," : "", largest[i].program->name,
                largest[i].n, burin_human_bytes(largest[i].driver_bytes).text);
    burin_put(&put, ".");
}
