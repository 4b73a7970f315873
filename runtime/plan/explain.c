#include "runtime/plan/report.h"

#include "runtime/base/put.h"
#include "runtime/base/units.h"
#include "runtime/plan/runs.h"
#include "runtime/plan/shape.h"
#include "runtime/plan/size.h"

#include <string.h>

/* The largest run of a program; false where the plan has none. */
static bool largest_run(
        const struct burin_plan *plan,
        const struct burin_program *program,
        struct burin_plan_run *largest)
{
    struct burin_plan_run run;
    bool found = false;
    for (int i = 0; burin_plan_run_at(plan, i, &run); i++)
        if (run.program == program && (!found || run.arena_bytes >= largest->arena_bytes)) {
            *largest = run;
            found = true;
        }
    return found;
}

static void write_size(
        const struct burin_plan *plan,
        const struct burin_plan_run *run,
        const struct burin_linear *bytes,
        FILE *out)
{
    const int64_t fixed = burin_size_at(&bytes->fixed, &plan->params);
    const int64_t slope = burin_size_at(&bytes->slope, &plan->params);
    const int n = run->extents[bytes->extent];
    fprintf(out, "    grows    ");
    if (slope)
        fprintf(out, "%s bytes for each of the %s", burin_grouped(slope).text,
                burin_extent_name(bytes->extent));
    if (fixed || !slope)
        fprintf(out, "%s%s bytes whatever runs", slope ? ", and " : "",
                burin_grouped(fixed).text);
    fprintf(out, ": %s bytes",
            burin_grouped((int64_t)burin_linear_at(bytes, &plan->params, n)).text);
    if (slope)
        fprintf(out, " at %s", burin_grouped(n).text);
    fprintf(out, "\n");
}

struct place {
    size_t begin, end;
};

static struct place place_of(
        const struct burin_plan *plan,
        const struct burin_plan_run *run,
        const struct burin_buffer *buffer)
{
    const size_t begin =
            burin_region_offset(run->program, buffer->phase, &plan->params, run->extents) +
            burin_linear_at(
                    &buffer->offset, &plan->params, run->extents[buffer->offset.extent]);
    const size_t bytes = burin_linear_at(
            &buffer->bytes, &plan->params, run->extents[buffer->bytes.extent]);
    return (struct place){ begin, begin + bytes };
}

static void write_sharers(
        const struct burin_plan *plan,
        const struct burin_plan_run *run,
        const struct burin_buffer *buffer,
        FILE *out)
{
    const struct place own = place_of(plan, run, buffer);
    fprintf(out, "    arena    bytes %s to %s of %s",
            burin_grouped((int64_t)own.begin).text, burin_grouped((int64_t)own.end).text,
            burin_grouped(run->arena_bytes).text);
    int n = 0;
    for (int i = 0; i < run->program->n_buffers; i++) {
        const struct burin_buffer *other = &run->program->buffers[i];
        const struct place place = place_of(plan, run, other);
        if (other == buffer || place.end <= own.begin || place.begin >= own.end)
            continue;
        if (!n++)
            fprintf(out, ", which at other times hold");
        fprintf(out, "\n             %-28s %s, operations %d to %d", other->name,
                other->where ? other->where : "", other->first_op, other->last_op);
    }
    fprintf(out, n ? "\n" : ", which nothing else uses\n");
}

static void explain_buffer(
        const struct burin_plan *plan,
        const struct burin_plan_run *run,
        const struct burin_buffer *buffer,
        FILE *out)
{
    const struct burin_plan_piece piece = { .name = buffer->name,
                                            .shape = buffer->shape,
                                            .buffer = buffer,
                                            .dtype = buffer->dtype };
    char shape[BURIN_SHAPE_TEXT];
    burin_plan_shape(plan, run, &piece, shape);
    fprintf(out, "%s   a buffer of %s, made by %s\n", buffer->name, run->program->name,
            buffer->where ? buffer->where : "the generator");
    fprintf(out, "    shape    %s, here %s\n", buffer->shape ? buffer->shape : "", shape);
    write_size(plan, run, &buffer->bytes, out);
    fprintf(out, "    lives    from operation %d to operation %d, in %s\n",
            buffer->first_op, buffer->last_op,
            buffer->phase < run->program->n_carried
                    ? "all phases"
                    : run->program->costs[buffer->phase].phase);
    write_sharers(plan, run, buffer, out);
}

static void explain_input(
        const struct burin_plan *plan,
        const struct burin_plan_run *run,
        const struct burin_input *input,
        FILE *out)
{
    const struct burin_plan_piece piece = { .input = input, .dtype = input->dtype };
    char shape[BURIN_SHAPE_TEXT];
    burin_plan_shape(plan, run, &piece, shape);
    const size_t bytes = burin_input_bytes(input, &plan->params, run->extents);
    fprintf(out, "%s   an input of %s\n    shape    %s at n = %d: %s bytes\n", input->name,
            run->program->name, shape, run->n, burin_grouped((int64_t)bytes).text);
    fprintf(out,
            burin_input_is_cache(input)
                    ? "    memory   the encoder cache, of its own and kept from run to "
                      "run\n"
                    : "    memory   the inputs, which all runs share: they follow one "
                      "another\n");
}

static int explain_states(const struct burin_plan *plan, const char *name, FILE *out)
{
    static const char *const kinds[] = { [BURIN_STATE_PAGED] = "in pages",
                                         [BURIN_STATE_RING] = "a window a sequence",
                                         [BURIN_STATE_FIXED] = "a state a sequence" };
    int n = 0;
    for (int i = 0; plan->kv && i < plan->kv->n_rows; i++) {
        const struct burin_layer_state *row = &plan->kv->rows[i];
        if (strcmp(row->name, name) != 0 || !plan->programs[row->program].active)
            continue;
        if (!n++)
            fprintf(out, "%s   kept from step to step, in %s\n", name,
                    burin_dtype_name(plan->kv->dtype));
        fprintf(out, "    %s.%d  %s", row->group ? row->group : "", row->layer,
                kinds[row->state]);
        if (row->window)
            fprintf(out, " of %d tokens", row->window);
        fprintf(out,
                ": %s bytes a token, %s a sequence, %s a drafted token; read by %d "
                "layer%s\n",
                burin_grouped((int64_t)row->bytes_per_token).text,
                burin_grouped((int64_t)row->bytes_per_sequence).text,
                burin_grouped((int64_t)row->bytes_per_draft).text, row->n_readers,
                row->n_readers == 1 ? "" : "s");
    }
    return n;
}

static bool has(const struct burin_program *program, const char *name)
{
    for (int i = 0; i < program->n_inputs; i++)
        if (strcmp(program->inputs[i].name, name) == 0)
            return true;
    for (int i = 0; i < program->n_buffers; i++)
        if (strcmp(program->buffers[i].name, name) == 0)
            return true;
    return false;
}

static enum burin_status nothing_of_that_name(
        const struct burin_plan *plan, const char *name, struct burin_error *err)
{
    for (int p = 0; p < plan->family->n_programs; p++) {
        const struct burin_program *program = &plan->family->programs[p];
        if (has(program, name) && !plan->programs[p].active)
            return burin_fail(
                    err, BURIN_EUSAGE,
                    "--explain %.40s: %s has it, which is not in this plan (%s)", name,
                    program->name, burin_program_option(program));
    }
    char names[2048] = "";
    struct burin_put list = { names, sizeof names, 0 };
    for (int p = 0; p < plan->family->n_programs; p++) {
        const struct burin_program *program = &plan->family->programs[p];
        burin_put(
                &list, "\n  %s%s:", program->name,
                plan->programs[p].active ? "" : " (not in this plan)");
        for (int i = 0; i < program->n_inputs; i++)
            burin_put(&list, " %s", program->inputs[i].name);
        for (int i = 0; i < program->n_buffers; i++)
            burin_put(&list, " %s", program->buffers[i].name);
    }
    return burin_fail(
            err, BURIN_EUSAGE, "--explain %.40s: no program has it. There are%s", name,
            names);
}

enum burin_status burin_plan_explain(
        const struct burin_plan *plan, const char *name, FILE *out, struct burin_error *err)
{
    int n = explain_states(plan, name, out);
    for (int p = 0; p < plan->family->n_programs; p++) {
        const struct burin_program *program = &plan->family->programs[p];
        struct burin_plan_run run;
        if (!largest_run(plan, program, &run))
            continue;
        for (int i = 0; i < program->n_inputs; i++)
            if (strcmp(program->inputs[i].name, name) == 0) {
                explain_input(plan, &run, &program->inputs[i], out);
                n++;
            }
        for (int i = 0; i < program->n_buffers; i++)
            if (strcmp(program->buffers[i].name, name) == 0) {
                explain_buffer(plan, &run, &program->buffers[i], out);
                n++;
            }
    }
    return n ? BURIN_OK : nothing_of_that_name(plan, name, err);
}
