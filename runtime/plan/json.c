#include "runtime/plan/report.h"

#include "runtime/base/json.h"
#include "runtime/plan/runs.h"
#include "runtime/plan/size.h"
#include "runtime/plan/sketch.h"

static void put_run(
        const struct burin_plan *plan,
        const struct burin_plan_run *run,
        struct burin_json *json)
{
    const struct burin_graph_cost *graph = &run->program->graph;
    const struct burin_ladder *ladder =
            &plan->programs[run->program - plan->family->programs].graphs;
    burin_json_open(json, NULL, '{');
    burin_json_text(json, "program", run->program->name, SIZE_MAX);
    burin_json_integer(json, "n", run->n);
    burin_json_integer(json, "input_bytes", run->input_bytes);
    burin_json_integer(json, "arena_bytes", run->arena_bytes);
    burin_json_integer(json, "kernel_nodes", graph->kernel_nodes);
    burin_json_integer(json, "copy_nodes", graph->copy_nodes);
    burin_json_integer(json, "driver_bytes", run->driver_bytes);
    for (int i = 0; i < ladder->n && run->graph; i++)
        if (ladder->sizes[i] == run->n) /* the size that its runs would take, 0: no graph */
            burin_json_integer(json, "without", burin_ladder_without(ladder, i));
    burin_json_close(json);
}

static void put_runs(const struct burin_plan *plan, bool graphs, struct burin_json *json)
{
    struct burin_plan_run run;
    for (int i = 0; burin_plan_run_at(plan, i, &run); i++)
        if (run.graph == graphs)
            put_run(plan, &run, json);
}

static void put_kv(const struct burin_plan *plan, struct burin_json *json)
{
    const struct burin_kv_layout *kv = plan->kv;
    const struct burin_state_bytes *state = &plan->state;
    burin_json_open(json, "kv", '{');
    burin_json_text(json, "dtype", kv ? burin_dtype_name(kv->dtype) : NULL, SIZE_MAX);
    burin_json_integer(json, "bytes_per_token", state->token);
    burin_json_integer(
            json, "bytes_per_sequence", state->windows + state->scans + state->drafts);
    burin_json_integer(json, "bytes", burin_plan_owner_bytes(plan, "kv"));
    burin_json_integer(json, "tokens", plan->kv_tokens);
    burin_json_integer(json, "page_tokens", kv ? kv->page_tokens : 0);
    burin_json_integer(json, "window_bytes", state->windows);
    burin_json_integer(json, "scan_bytes", state->scans);
    burin_json_integer(json, "draft_bytes", state->drafts);
    burin_json_close(json);
}

static void put_owners(
        const struct burin_plan *plan, const int64_t *obtained, struct burin_json *json)
{
    burin_json_open(json, "owners", '[');
    for (int i = 0; i < plan->n_owners; i++) {
        burin_json_open(json, NULL, '{');
        burin_json_text(json, "owner", plan->owners[i].name, SIZE_MAX);
        burin_json_integer(json, "bytes", plan->owners[i].bytes);
        burin_json_text(json, "kind", burin_kind_name(plan->owners[i].kind), SIZE_MAX);
        if (obtained)
            burin_json_integer(json, "obtained_bytes", obtained[i]);
        if (plan->owners[i].told)
            burin_json_integer(json, "derived_bytes", plan->owners[i].derived_bytes);
        burin_json_close(json);
    }
    burin_json_close(json);
}

static void put_card(const struct burin_card *card, struct burin_json *json)
{
    burin_json_open(json, "card", '{');
    burin_json_text(json, "name", card->name, SIZE_MAX);
    burin_json_integer(json, "total_bytes", card->total_bytes);
    burin_json_integer(json, "available_bytes", card->available_bytes);
    if (card->sm)
        burin_json_integer(json, "sm", card->sm);
    else
        burin_json_null(json, "sm");
    burin_json_close(json);
}

static void put_options(const struct burin_plan *plan, struct burin_json *json)
{
    burin_json_open(json, "options", '{');
    burin_json_integer(json, "threads", plan->n_threads);
    burin_json_integer(json, "ctx_size", plan->n_ctx);
    burin_json_integer(json, "parallel", plan->n_sequences);
    burin_json_integer(json, "batch_size", plan->n_batch);
    burin_json_integer(json, "outputs", plan->n_outputs);
    burin_json_integer(json, "draft", plan->n_draft);
    burin_json_integer(json, "images", plan->n_images);
    burin_json_integer(json, "video_frames", plan->n_frames);
    burin_json_integer(json, "audio_clips", plan->n_clips);
    burin_json_close(json);
}

void burin_plan_json(const struct burin_plan *plan, FILE *out)
{
    burin_plan_json_obtained(plan, NULL, out);
}

void burin_plan_json_obtained(
        const struct burin_plan *plan, const int64_t *obtained, FILE *out)
{
    const struct burin_model *model = plan->model;
    struct burin_json json;
    burin_json_begin(&json, out);
    burin_json_open(&json, NULL, '{');
    burin_json_text(&json, "model", model->architecture, SIZE_MAX);
    burin_json_text(&json, "variant", model->variant, SIZE_MAX);
    burin_json_text(&json, "quant", model->recipe, SIZE_MAX);
    burin_json_text(&json, "family", plan->family->name, SIZE_MAX);
    burin_json_bool(&json, "exact", plan->family->exact);
    put_card(&plan->card, &json);
    burin_json_integer(&json, "elements", model->n_elements);
    burin_json_integer(&json, "weights_bytes", (int64_t)plan->family->weights_bytes);
    burin_json_open(&json, "programs", '[');
    put_runs(plan, plan->family->sm > 0, &json);
    burin_json_close(&json);
    burin_json_open(&json, "eager", '[');
    if (plan->family->sm)
        put_runs(plan, false, &json);
    burin_json_close(&json);
    put_kv(plan, &json);
    put_owners(plan, obtained, &json);
    put_options(plan, &json);
    burin_json_integer(&json, "total_bytes", plan->total_bytes);
    if (plan->limit_bytes == INT64_MAX)
        burin_json_null(&json, "limit_bytes");
    else
        burin_json_integer(&json, "limit_bytes", plan->limit_bytes);
    burin_json_bool(&json, "fits", plan->fits);
    burin_json_integer(&json, "short_by_bytes", plan->short_by_bytes);
    burin_json_integer(&json, "longest_context", plan->longest_context);
    burin_json_integer(&json, "most_sequences", plan->most_sequences);
    burin_json_integer(&json, "largest_batch", plan->largest_batch);
    burin_json_open(&json, "planned_only", '[');
    for (int p = 0; p < plan->family->n_programs; p++)
        if (burin_plan_only_planned(plan, p))
            burin_json_text(&json, NULL, plan->family->programs[p].name, SIZE_MAX);
    burin_json_close(&json);
    burin_json_text(&json, "advice", plan->advice, SIZE_MAX);
    burin_json_close(&json);
}
