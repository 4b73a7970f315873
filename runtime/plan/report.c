#include "runtime/plan/report.h"

#include "runtime/base/json.h"
#include "runtime/base/units.h"
#include "runtime/plan/size.h"

static const char *const kinds[] = {
    [BURIN_DERIVED] = "derived",
    [BURIN_ASSUMED] = "assumed",
    [BURIN_MEASURED] = "measured",
};

/* "8,192", and "8,192 of 131,072" where the model could do more. */
static void out_of(FILE *out, const char *label, int64_t n, int64_t most, const char *unit)
{
    fprintf(out, "%s%s", label, burin_grouped(n).text);
    if (most > n)
        fprintf(out, " of %s", burin_grouped(most).text);
    fprintf(out, "%s", unit);
}

static void write_head(const struct burin_plan *plan, FILE *out)
{
    const struct burin_model *model = plan->model;
    const double bits = model->n_elements ? 8.0 * (double)plan->family->weights_bytes /
                                                    (double)model->n_elements
                                          : 0.0;
    fprintf(out, "%s   %s elements, %.2f bits each\n", model->name,
            burin_grouped(model->n_elements).text, bits);
    fprintf(out, "  family       %s%s\n", plan->family->name,
            plan->family->exact ? ", exact" : "");
    fprintf(out, "  threads      %d\n", plan->n_threads);
    out_of(out, "  context      ", plan->n_ctx, plan->model->n_ctx, " tokens (--ctx-size)");
    fprintf(out, " x %d at once (--parallel)\n", plan->n_sequences);
    fprintf(out, "  step         %s tokens (--batch-size), logits of %s\n\n",
            burin_grouped(plan->n_batch).text, burin_grouped(plan->n_outputs).text);
}

static void write_owners(const struct burin_plan *plan, FILE *out)
{
    fprintf(out, "  %-10s %10s %17s  %-8s  %s\n", "owner", "", "bytes", "kind", "what");
    for (int i = 0; i < plan->n_owners; i++) {
        const struct burin_plan_owner *owner = &plan->owners[i];
        fprintf(out, "  %-10s %10s %17s  %-8s  %s\n", owner->name,
                burin_human_bytes(owner->bytes).text, burin_grouped(owner->bytes).text,
                kinds[owner->kind], owner->what);
    }
    fprintf(out, "  %-10s %10s %17s\n\n", "total",
            burin_human_bytes(plan->total_bytes).text,
            burin_grouped(plan->total_bytes).text);
}

/* The first phase whose rows this plan has no number of, or NULL. Only its fixed bytes are in
 * the total. */
static const char *phase_of_unknown_size(
        const struct burin_plan *plan, const struct burin_program *program)
{
    for (int row = 0; row < program->n_costs; row++) {
        const struct burin_linear *bytes = &program->costs[row].bytes;
        if (bytes->slope.terms[0].factor && !plan->n[bytes->extent])
            return program->costs[row].phase;
    }
    return NULL;
}

static void write_programs(const struct burin_plan *plan, FILE *out)
{
    for (int i = 0; i < plan->family->n_programs; i++) {
        const struct burin_program *program = &plan->family->programs[i];
        const char *unknown = phase_of_unknown_size(plan, program);
        if (unknown) {
            fprintf(out, "  program %s: not in this plan, which has no number of %s\n",
                    program->name, unknown);
            continue;
        }
        fprintf(out, "  program %s: arena", program->name);
        for (int row = 0; row < program->n_costs; row++) {
            const struct burin_chunk_cost *cost = &program->costs[row];
            const size_t bytes = burin_linear_at(
                    &cost->bytes, &plan->params, plan->n[cost->bytes.extent]);
            fprintf(out, "%s %s %s",
                    row == 0                    ? ""
                    : row == program->n_carried ? " + the larger of"
                                                : ",",
                    cost->phase, burin_human_bytes((int64_t)bytes).text);
        }
        fprintf(out, "; %d kernels a run\n", program->graph.kernel_nodes);
    }
    if (plan->kv)
        fprintf(out, "  KV: %s pages of %d tokens in %s = %s tokens, %s bytes each\n",
                burin_grouped(plan->n_pages).text, plan->kv->page_tokens,
                burin_dtype_name(plan->kv->dtype), burin_grouped(plan->kv_tokens).text,
                burin_grouped((int64_t)plan->kv->bytes_per_token).text);
}

static void write_verdict(const struct burin_plan *plan, FILE *out)
{
    if (plan->limit_bytes == INT64_MAX) {
        fprintf(out, "\nNo limit is known, so nothing is refused.\n");
        return;
    }
    fprintf(out, "\n  %s: %s in all, %s free, %s of it may be used\n", plan->card.name,
            burin_human_bytes(plan->card.total_bytes).text,
            burin_human_bytes(plan->card.available_bytes).text,
            burin_human_bytes(plan->limit_bytes).text);
    if (plan->fits) {
        fprintf(out, "It fits, with %s to spare.",
                burin_human_bytes(plan->limit_bytes - plan->total_bytes).text);
        out_of(out, " Longest context here: ", plan->longest_context, plan->model->n_ctx,
               " tokens");
        fprintf(out, "; most at once: %s.\n", burin_grouped(plan->most_sequences).text);
        return;
    }
    const struct burin_plan_owner *largest = &plan->owners[plan->largest];
    fprintf(out,
            "It does not fit: short by %s (%s bytes). The largest part is %s, %s.\n%s\n",
            burin_human_bytes(plan->short_by_bytes).text,
            burin_grouped(plan->short_by_bytes).text, largest->name,
            burin_human_bytes(largest->bytes).text, plan->advice);
}

void burin_plan_report(const struct burin_plan *plan, FILE *out)
{
    write_head(plan, out);
    write_owners(plan, out);
    write_programs(plan, out);
    write_verdict(plan, out);
}

static void json_programs(const struct burin_plan *plan, struct burin_json *json)
{
    burin_json_open(json, "programs", '[');
    for (int i = 0; i < plan->family->n_programs; i++) {
        const struct burin_program *program = &plan->family->programs[i];
        const struct burin_graph_cost *graph = &program->graph;
        const size_t inputs = burin_inputs_bytes(program, &plan->params, plan->n);
        const size_t arena = burin_arena_bytes(program, &plan->params, plan->n);
        burin_json_open(json, NULL, '{');
        burin_json_text(json, "program", program->name, SIZE_MAX);
        if (phase_of_unknown_size(plan, program))
            burin_json_null(json, "n");
        else
            burin_json_integer(json, "n", plan->n[BURIN_TOKENS]);
        burin_json_integer(json, "input_bytes", (int64_t)inputs);
        burin_json_integer(json, "arena_bytes", (int64_t)arena);
        burin_json_integer(json, "kernel_nodes", graph->kernel_nodes);
        burin_json_integer(json, "copy_nodes", graph->copy_nodes);
        burin_json_integer(json, "driver_bytes", 0);
        burin_json_close(json);
    }
    burin_json_close(json);
}

static void json_kv(const struct burin_plan *plan, struct burin_json *json)
{
    const struct burin_kv_layout *kv = plan->kv;
    burin_json_open(json, "kv", '{');
    burin_json_text(json, "dtype", kv ? burin_dtype_name(kv->dtype) : NULL, SIZE_MAX);
    burin_json_integer(json, "bytes_per_token", kv ? (int64_t)kv->bytes_per_token : 0);
    burin_json_integer(
            json, "bytes_per_sequence", kv ? (int64_t)kv->bytes_per_sequence : 0);
    burin_json_integer(json, "bytes", burin_plan_owner_bytes(plan, "kv"));
    burin_json_integer(json, "tokens", plan->kv_tokens);
    burin_json_close(json);
}

static void json_owners(const struct burin_plan *plan, struct burin_json *json)
{
    burin_json_open(json, "owners", '[');
    for (int i = 0; i < plan->n_owners; i++) {
        burin_json_open(json, NULL, '{');
        burin_json_text(json, "owner", plan->owners[i].name, SIZE_MAX);
        burin_json_integer(json, "bytes", plan->owners[i].bytes);
        burin_json_text(json, "kind", kinds[plan->owners[i].kind], SIZE_MAX);
        burin_json_close(json);
    }
    burin_json_close(json);
}

void burin_plan_json(const struct burin_plan *plan, FILE *out)
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
    burin_json_open(&json, "card", '{');
    burin_json_text(&json, "name", plan->card.name, SIZE_MAX);
    burin_json_integer(&json, "total_bytes", plan->card.total_bytes);
    burin_json_integer(&json, "available_bytes", plan->card.available_bytes);
    if (plan->card.sm)
        burin_json_integer(&json, "sm", plan->card.sm);
    else
        burin_json_null(&json, "sm");
    burin_json_close(&json);
    burin_json_integer(&json, "elements", model->n_elements);
    burin_json_integer(&json, "weights_bytes", (int64_t)plan->family->weights_bytes);
    json_programs(plan, &json);
    json_kv(plan, &json);
    json_owners(plan, &json);
    burin_json_open(&json, "options", '{');
    burin_json_integer(&json, "threads", plan->n_threads);
    burin_json_integer(&json, "ctx_size", plan->n_ctx);
    burin_json_integer(&json, "parallel", plan->n_sequences);
    burin_json_integer(&json, "batch_size", plan->n_batch);
    burin_json_integer(&json, "outputs", plan->n_outputs);
    burin_json_close(&json);
    burin_json_integer(&json, "total_bytes", plan->total_bytes);
    if (plan->limit_bytes == INT64_MAX)
        burin_json_null(&json, "limit_bytes");
    else
        burin_json_integer(&json, "limit_bytes", plan->limit_bytes);
    burin_json_bool(&json, "fits", plan->fits);
    burin_json_integer(&json, "short_by_bytes", plan->short_by_bytes);
    burin_json_integer(&json, "longest_context", plan->longest_context);
    burin_json_integer(&json, "most_sequences", plan->most_sequences);
    burin_json_text(&json, "advice", plan->advice, SIZE_MAX);
    burin_json_close(&json);
}
