#include "runtime/plan/report.h"

#include "runtime/base/units.h"
#include "runtime/plan/runs.h"
#include "runtime/plan/shape.h"
#include "runtime/plan/size.h"
#include "runtime/plan/sketch.h"

#include <string.h>

static const char *const kinds[] = {
    [BURIN_DERIVED] = "derived",
    [BURIN_ASSUMED] = "assumed",
    [BURIN_MEASURED] = "measured",
};

const char *burin_kind_name(enum burin_kind kind)
{
    return kinds[kind];
}

/* "8,192", and "8,192 of 131,072" where the model could do more. */
static void out_of(FILE *out, const char *label, int64_t n, int64_t most, const char *unit)
{
    fprintf(out, "%s%s", label, burin_grouped(n).text);
    if (most > n)
        fprintf(out, " of %s", burin_grouped(most).text);
    fprintf(out, "%s", unit);
}

/* ---- What is planned ------------------------------------------------------------------- */

static void write_items(const struct burin_plan *plan, FILE *out)
{
    for (int p = 0; p < plan->family->n_programs; p++) {
        const struct burin_program *program = &plan->family->programs[p];
        const struct burin_planned_program *planned = &plan->programs[p];
        const bool audio = burin_is_audio(program);
        if (!burin_is_encoder(program))
            continue;
        fprintf(out, "  %-12s ", audio ? "sound" : "pictures");
        if (!planned->active) {
            fprintf(out, "none (%s)\n", burin_program_option(program));
            continue;
        }
        const int item = burin_plan_longest_item(plan, p);
        fprintf(out, "%d at once (%s), of %d to %s tokens each\n",
                audio ? plan->n_clips : plan->n_images,
                audio ? "--audio-clips" : "--images", program->smallest_item,
                burin_grouped(item).text);
        if (!audio && plan->n_frames)
            fprintf(out,
                    "  video        %d frames at once (--video-frames), of %s tokens "
                    "each\n",
                    plan->n_frames, burin_grouped(burin_plan_longest_frame(plan, p)).text);
    }
}

void burin_plan_planned_only(const struct burin_plan *plan, FILE *out)
{
    for (int p = 0; p < plan->family->n_programs; p++) {
        const struct burin_program *program = &plan->family->programs[p];
        if (!burin_plan_only_planned(plan, p))
            continue;
        fprintf(out, "  planned only %s: no kernels yet for ", program->name);
        if (program->missing)
            fprintf(out, "%s\n", program->missing);
        else
            fprintf(out, "keys and values in %s: a start refuses (--kv-cache-dtype)\n",
                    burin_dtype_name(plan->kv->dtype));
    }
}

static void write_head(const struct burin_plan *plan, FILE *out)
{
    const struct burin_model *model = plan->model;
    const double bits = model->n_elements ? 8.0 * (double)plan->family->weights_bytes /
                                                    (double)model->n_elements
                                          : 0.0;
    fprintf(out, "%s   %s elements, %.2f bits each\n", model->name,
            burin_grouped(model->n_elements).text, bits);
    if (plan->family->sm)
        fprintf(out,
                "  card         %s, compute capability %d.%d\n"
                "  family       %s: kernels for %d.%d and above%s\n",
                plan->card.name, plan->card.sm / 10, plan->card.sm % 10, plan->family->name,
                plan->family->sm / 10, plan->family->sm % 10,
                burin_card_is_newer(&plan->card)
                        ? "; no card as new as this is known, nor whether they run on it"
                        : "");
    else
        fprintf(out, "  family       %s%s\n  threads      %d\n", plan->family->name,
                plan->family->exact ? ", exact" : "", plan->n_threads);
    burin_plan_planned_only(plan, out);
    out_of(out, "  context      a sequence has up to ", plan->n_ctx, model->n_ctx,
           " tokens (--ctx-size)");
    fprintf(out, "; at once: %d sequence%s (--parallel)\n", plan->n_sequences,
            plan->n_sequences == 1 ? "" : "s");
    fprintf(out,
            "  step         one pass of the decoder: %s tokens at most (--batch-size), "
            "logits of %s of them\n",
            burin_grouped(plan->n_batch).text, burin_grouped(plan->n_outputs).text);
    if (plan->n_draft)
        fprintf(out, "  draft        %d tokens a step and sequence (--draft)\n",
                plan->n_draft);
    write_items(plan, out);
    fprintf(out, "\n");
}

static void write_owners(const struct burin_plan *plan, FILE *out)
{
    fprintf(out, "  %-13s %10s %17s  %-8s  %s\n", "owner", "", "bytes", "kind", "what");
    for (int i = 0; i < plan->n_owners; i++) {
        const struct burin_plan_owner *owner = &plan->owners[i];
        fprintf(out, "  %-13s %10s %17s  %-8s  %s", owner->name,
                burin_human_bytes(owner->bytes).text, burin_grouped(owner->bytes).text,
                kinds[owner->kind], owner->what);
        if (owner->told)
            fprintf(out, "; derived: %s%s", burin_human_bytes(owner->derived_bytes).text,
                    owner->derived_bytes > owner->bytes ? ", which is more" : "");
        fprintf(out, "\n");
    }
    fprintf(out, "  %-13s %10s %17s\n", "total", burin_human_bytes(plan->total_bytes).text,
            burin_grouped(plan->total_bytes).text);
    fprintf(out, "\n");
}

/* ---- Runs ------------------------------------------------------------------------------- */

/* "arena 72.0 KiB throughout + the larger of body 11.1 MiB, head 12.1 MiB": phases follow each
 * other. */
static void write_arena(
        const struct burin_plan *plan, const struct burin_plan_run *run, FILE *out)
{
    const struct burin_program *program = run->program;
    int64_t carried = 0;
    for (int row = 0; row < program->n_carried; row++) {
        const struct burin_linear *bytes = &program->costs[row].bytes;
        carried +=
                (int64_t)burin_linear_at(bytes, &plan->params, run->extents[bytes->extent]);
    }
    fprintf(out, "arena");
    if (carried)
        fprintf(out, " %s throughout +", burin_human_bytes(carried).text);
    const bool several = program->n_costs - program->n_carried > 1;
    if (several)
        fprintf(out, " the larger of");
    for (int row = program->n_carried; row < program->n_costs; row++) {
        const struct burin_linear *bytes = &program->costs[row].bytes;
        const size_t phase =
                burin_linear_at(bytes, &plan->params, run->extents[bytes->extent]);
        fprintf(out, "%s%s%s %s", row > program->n_carried ? "," : "", several ? " " : "",
                several ? program->costs[row].phase : "",
                burin_human_bytes((int64_t)phase).text);
    }
}

static void write_pieces(
        const struct burin_plan *plan, const struct burin_plan_run *run, FILE *out)
{
    struct burin_plan_piece pieces[3];
    const int n = burin_plan_pieces(plan, run, pieces, 3);
    for (int i = 0; i < n; i++) {
        char shape[BURIN_SHAPE_TEXT];
        burin_plan_shape(plan, run, &pieces[i], shape);
        fprintf(out, "    %-6s %-20s %-28s %s bytes\n",
                pieces[i].input ? "input" : "buffer", pieces[i].name, shape,
                burin_grouped(pieces[i].bytes).text);
    }
}

/* On a CPU each program has one kind of run, and no graphs. */
static void write_cpu_programs(const struct burin_plan *plan, FILE *out)
{
    struct burin_plan_run run;
    for (int i = 0; burin_plan_run_at(plan, i, &run); i++) {
        fprintf(out, "  program %s: ", run.program->name);
        write_arena(plan, &run, out);
        fprintf(out, "; %d kernels a run\n", run.program->graph.kernel_nodes);
    }
}

static void write_unplanned(const struct burin_plan *plan, FILE *out)
{
    for (int p = 0; p < plan->family->n_programs; p++) {
        const struct burin_program *program = &plan->family->programs[p];
        if (!plan->programs[p].active)
            fprintf(out, "  program %s: not in this plan (%s)%s\n", program->name,
                    burin_program_option(program),
                    plan->programs[p].unused ? ", so its --graphs do nothing" : "");
    }
}

/* What runs of this size would cost if its graph were left out. */
static void write_without(
        const struct burin_plan *plan, const struct burin_plan_run *run, FILE *out)
{
    const int p = (int)(run->program - plan->family->programs);
    const struct burin_ladder *ladder = &plan->programs[p].graphs;
    int i = 0;
    while (ladder->sizes[i] != run->n)
        i++;
    const int next = burin_ladder_without(ladder, i);
    if (next)
        fprintf(out, "padded to %d, %d %% unused\n", next, 100 * (next - run->n) / next);
    else
        fprintf(out, "each kernel launched\n");
}

static void write_run(
        const struct burin_plan *plan, const struct burin_plan_run *run, FILE *out)
{
    const struct burin_graph_cost *graph = &run->program->graph;
    fprintf(out, "  %-14s %7d %7d %10s %10s", run->program->name, run->n,
            run->extents[burin_is_encoder(run->program) ? BURIN_SOFT : BURIN_TOKENS],
            burin_human_bytes(run->input_bytes).text,
            burin_human_bytes(run->arena_bytes).text);
    if (run->graph) {
        fprintf(out, " %7d %10s  ", graph->kernel_nodes + graph->copy_nodes,
                burin_human_bytes(run->driver_bytes).text);
        write_without(plan, run, out);
    } else {
        fprintf(out, " %7s %10s  is none: any n up to this, each kernel launched\n", "-",
                "-");
    }
}

static const char *graphs_kind(const struct burin_plan *plan)
{
    for (int i = 0; i < plan->n_owners; i++)
        if (strcmp(plan->owners[i].name, "graphs") == 0)
            return kinds[plan->owners[i].kind];
    return "there are none";
}

static void write_runs(const struct burin_plan *plan, FILE *out)
{
    struct burin_plan_run run;
    fprintf(out,
            "  Of inputs and arena the largest counts, since runs follow each other; "
            "driver adds up: %s a node (%s)\n",
            burin_human_bytes(plan->node_bytes).text,
            plan->graphs_assumed ? "--assume tells another total" : graphs_kind(plan));
    fprintf(out, "  %-14s %7s %7s %10s %10s %7s %10s  %s\n", "run", "n", "tokens", "inputs",
            "arena", "nodes", "driver", "without its graph");
    for (int i = 0; burin_plan_run_at(plan, i, &run); i++)
        write_run(plan, &run, out);
    fprintf(out, "\n");
    for (int p = 0; p < plan->family->n_programs; p++) {
        bool found = false;
        struct burin_plan_run at;
        for (int i = 0; burin_plan_run_at(plan, i, &at); i++)
            if (at.program == &plan->family->programs[p]) {
                run = at;
                found = true;
            }
        if (!found)
            continue;
        const enum burin_extent extent =
                burin_is_encoder(run.program) ? BURIN_SOFT : BURIN_TOKENS;
        fprintf(out, "  %s of %s %s: ", run.program->name,
                burin_grouped(run.extents[extent]).text, burin_extent_name(extent));
        write_arena(plan, &run, out);
        fprintf(out, "; its largest pieces\n");
        write_pieces(plan, &run, out);
    }
}

/* ---- KV and the verdict ---------------------------------------------------------------- */

/* Layers that keep something of a kind; a layer may keep several. */
static int layers_of(const struct burin_plan *plan, enum burin_state state)
{
    const struct burin_kv_layout *kv = plan->kv;
    int n = 0;
    for (int i = 0; i < kv->n_rows; i++) {
        const struct burin_layer_state *row = &kv->rows[i];
        bool first = row->state == state && plan->programs[row->program].active;
        for (int k = 0; k < i && first; k++)
            first = kv->rows[k].state != state || kv->rows[k].layer != row->layer ||
                    kv->rows[k].program != row->program;
        n += first;
    }
    return n;
}

static void write_states(const struct burin_plan *plan, FILE *out)
{
    int window = 0;
    for (int i = 0; i < plan->kv->n_rows; i++)
        if (plan->kv->rows[i].window > window)
            window = plan->kv->rows[i].window;
    if (plan->state.windows)
        fprintf(out, "      %s bytes a sequence: the newest %s tokens of %d layers\n",
                burin_grouped(plan->state.windows).text, burin_grouped(window).text,
                layers_of(plan, BURIN_STATE_RING));
    if (plan->state.scans)
        fprintf(out, "      %s bytes a sequence: what %d recurrent layers carry on\n",
                burin_grouped(plan->state.scans).text, layers_of(plan, BURIN_STATE_FIXED));
    if (plan->state.drafts)
        fprintf(out, "      %s bytes a sequence: more of these for %d drafted tokens\n",
                burin_grouped(plan->state.drafts).text, plan->n_draft);
}

static void write_kv(const struct burin_plan *plan, FILE *out)
{
    if (!plan->kv)
        return;
    if (plan->state.page)
        fprintf(out,
                "  KV: %s pages of %d tokens in %s = %s tokens, %s bytes each (derived)\n",
                burin_grouped(plan->n_pages).text, plan->kv->page_tokens,
                burin_dtype_name(plan->kv->dtype), burin_grouped(plan->kv_tokens).text,
                burin_grouped(plan->state.token).text);
    else
        fprintf(out, "  KV: none in pages; what is kept does not grow with the context\n");
    write_states(plan, out);
    if (plan->family->sm && plan->n_ctx && plan->state.page)
        fprintf(out,
                "      of all sequences together: enough for %.1f of the whole context\n",
                (double)plan->kv_tokens / plan->n_ctx);
    if (plan->fewer_sequences)
        fprintf(out, "      more with --parallel %d: %s tokens\n", plan->fewer_sequences,
                burin_grouped(plan->fewer_kv_tokens).text);
}

/* What a table of cards says was met on such a card; a number that was typed was told. */
static const char *card_kind(const struct burin_plan *plan)
{
    const char *name = plan->card.name;
    for (int i = 0; burin_card_known(i); i++)
        if (strcmp(burin_card_known(i)->name, name) == 0)
            return "assumed: as met on such cards";
    return name[0] >= '0' && name[0] <= '9' ? "as --card tells" : "measured";
}

static void write_verdict(const struct burin_plan *plan, FILE *out)
{
    if (plan->limit_bytes == INT64_MAX) {
        fprintf(out, "\nNo limit is known, so nothing is refused.\n");
        return;
    }
    fprintf(out, "\n  %s: %s in all, %s free (%s); %s of it may be used\n", plan->card.name,
            burin_human_bytes(plan->card.total_bytes).text,
            burin_human_bytes(plan->card.available_bytes).text, card_kind(plan),
            burin_human_bytes(plan->limit_bytes).text);
    if (plan->fits) {
        fprintf(out,
                "It fits under what is assumed, with %s to spare. By itself each of these "
                "would, "
                "too: ",
                burin_human_bytes(plan->limit_bytes - plan->total_bytes).text);
        out_of(out, "a context\nof ", plan->longest_context, plan->model->n_ctx, " tokens");
        fprintf(out, ", %s sequence%s at once, steps of %s tokens.\n",
                burin_grouped(plan->most_sequences).text,
                plan->most_sequences == 1 ? "" : "s",
                burin_grouped(plan->largest_batch).text);
        return;
    }
    const struct burin_plan_owner *largest = &plan->owners[plan->largest];
    char pieces[512], graphs[512];
    burin_plan_largest_text(plan, pieces, sizeof pieces);
    burin_plan_graphs_text(plan, graphs, sizeof graphs);
    fprintf(out,
            "It does not fit: %s by %s (%s bytes). %s%sThe largest part is %s, "
            "%s.\n%s\n%s\n",
            plan->total_bytes > plan->limit_bytes ? "short" : "graphs too large",
            burin_human_bytes(plan->short_by_bytes).text,
            burin_grouped(plan->short_by_bytes).text, graphs, graphs[0] ? "\n" : "",
            largest->name, burin_human_bytes(largest->bytes).text, pieces, plan->advice);
}

/* The words that the tables above use, for who meets them for the first time. */
static void write_words(const struct burin_plan *plan, FILE *out)
{
    fprintf(out,
            "\nWords\n"
            "  derived   follows from the model and the options, as does all that bears no "
            "mark; assumed: the worst known,\n"
            "            or told by --assume; measured: read from the device\n"
            "  step      one pass of the decoder over new tokens of all sequences; body: "
            "its layers; head: the logits behind them\n"
            "  arena     scratch memory of a run, for its buffers; they bear the "
            "description's names, --explain NAME shows the line\n"
            "  KV        keys and values, which attention reads again for each token; "
            "pages go to the sequence that grows\n");
    if (!plan->family->sm)
        return;
    fprintf(out,
            "  tokens    of a picture or of sound are soft tokens: rows that an encoder "
            "makes, each in a token's place in the context\n"
            "  graph     a run that the driver has recorded and replays at once, for n "
            "sequences of a step or n soft tokens of an\n"
            "            encoder; fewer are padded to it. Its nodes are kernels (launches) "
            "and copies\n");
}

void burin_plan_report(const struct burin_plan *plan, FILE *out)
{
    write_head(plan, out);
    write_owners(plan, out);
    if (plan->family->sm)
        write_runs(plan, out);
    else
        write_cpu_programs(plan, out);
    write_unplanned(plan, out);
    fprintf(out, "\n");
    write_kv(plan, out);
    write_verdict(plan, out);
    write_words(plan, out);
}
