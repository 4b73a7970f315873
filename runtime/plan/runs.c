#include "runtime/plan/runs.h"

#include "runtime/base/put.h"
#include "runtime/plan/shape.h"
#include "runtime/plan/size.h"

#include <stdio.h>
#include <string.h>

bool burin_is_encoder(const struct burin_program *program)
{
    return program->extent == BURIN_SOFT;
}

bool burin_is_draft(const struct burin_program *program)
{
    return strcmp(program->name, "draft") == 0;
}

bool burin_is_audio(const struct burin_program *program)
{
    return strcmp(program->name, "encode_audio") == 0;
}

const char *burin_program_option(const struct burin_program *program)
{
    return burin_is_draft(program)     ? "--draft"
           : burin_is_audio(program)   ? "--audio-clips"
           : burin_is_encoder(program) ? "--images, --video-frames"
                                       : "always";
}

static void measure(const struct burin_plan *plan, struct burin_plan_run *run)
{
    const struct burin_program *program = run->program;
    const struct burin_graph_cost *graph = &program->graph;
    const int64_t nodes = (int64_t)graph->kernel_nodes + graph->copy_nodes;
    run->input_bytes = (int64_t)burin_inputs_bytes(program, &plan->params, run->extents);
    run->arena_bytes = (int64_t)burin_arena_bytes(program, &plan->params, run->extents);
    run->driver_bytes = run->graph ? burin_multiply(nodes, plan->node_bytes) : 0;
}

/* A graph of n sequences computes the last token of each and those drafted for it, and wants
 * the logits of all. A draft brings its cache up to what was accepted, and goes on from the
 * last token of each. */
static struct burin_plan_run graph_of(
        const struct burin_plan *plan, const struct burin_program *program, int n)
{
    struct burin_plan_run run = { .program = program, .n = n, .graph = true };
    const int n_tokens = (plan->n_draft + 1) * n;
    if (burin_is_encoder(program)) {
        run.extents[BURIN_SOFT] = n;
    } else {
        run.extents[BURIN_TOKENS] = n_tokens;
        run.extents[BURIN_SEQUENCES] = n;
        run.extents[BURIN_OUTPUTS] = burin_is_draft(program) ? n : n_tokens;
    }
    measure(plan, &run);
    return run;
}

static struct burin_plan_run eager_of(
        const struct burin_plan *plan, const struct burin_program *program, int n)
{
    struct burin_plan_run run = { .program = program, .n = n };
    if (burin_is_encoder(program)) {
        run.extents[BURIN_SOFT] = n;
    } else {
        memcpy(run.extents, plan->n, sizeof run.extents);
        if (burin_is_draft(program))
            run.extents[BURIN_OUTPUTS] = plan->n[BURIN_SEQUENCES];
    }
    measure(plan, &run);
    return run;
}

bool burin_plan_run_at(const struct burin_plan *plan, int i, struct burin_plan_run *run)
{
    for (int p = 0; p < plan->family->n_programs; p++) {
        const struct burin_program *program = &plan->family->programs[p];
        const struct burin_planned_program *planned = &plan->programs[p];
        if (!planned->active)
            continue;
        const bool covered = burin_is_encoder(program) &&
                             burin_ladder_size(&planned->graphs, planned->n_eager);
        const int n_eager = planned->n_eager > 0 && !covered;
        if (i < planned->graphs.n) {
            *run = graph_of(plan, program, planned->graphs.sizes[i]);
            return true;
        }
        if (i < planned->graphs.n + n_eager) {
            *run = eager_of(plan, program, planned->n_eager);
            return true;
        }
        i -= planned->graphs.n + n_eager;
    }
    return false;
}

bool burin_plan_largest_run(const struct burin_plan *plan, struct burin_plan_run *run)
{
    struct burin_plan_run at;
    int64_t most = -1;
    for (int i = 0; burin_plan_run_at(plan, i, &at); i++) {
        const int64_t bytes = burin_add(at.arena_bytes, at.input_bytes);
        /* Of equal ones the last: the largest graph is more to the point than the eager run. */
        if (bytes > most || (bytes == most && at.graph)) {
            most = bytes;
            *run = at;
        }
    }
    return most >= 0;
}

static void insert(
        struct burin_plan_piece *pieces,
        int *n,
        int most,
        const struct burin_plan_piece *piece)
{
    int at = *n;
    while (at > 0 && pieces[at - 1].bytes < piece->bytes)
        at--;
    if (at == most)
        return;
    if (*n < most)
        (*n)++;
    memmove(&pieces[at + 1], &pieces[at], (size_t)(*n - 1 - at) * sizeof *pieces);
    pieces[at] = *piece;
}

int burin_plan_pieces(
        const struct burin_plan *plan,
        const struct burin_plan_run *run,
        struct burin_plan_piece *pieces,
        int most)
{
    const struct burin_program *program = run->program;
    int n = 0;
    for (int i = 0; i < program->n_inputs; i++) {
        const struct burin_input *input = &program->inputs[i];
        if (burin_input_is_cache(input))
            continue;
        const struct burin_plan_piece piece = {
            .name = input->name,
            .input = input,
            .dtype = input->dtype,
            .bytes = (int64_t)burin_input_bytes(input, &plan->params, run->extents),
        };
        insert(pieces, &n, most, &piece);
    }
    for (int i = 0; i < program->n_buffers; i++) {
        const struct burin_buffer *buffer = &program->buffers[i];
        const struct burin_plan_piece piece = {
            .name = buffer->name,
            .shape = buffer->shape,
            .buffer = buffer,
            .dtype = buffer->dtype,
            .bytes = (int64_t)burin_linear_at(
                    &buffer->bytes, &plan->params, run->extents[buffer->bytes.extent]),
        };
        insert(pieces, &n, most, &piece);
    }
    return n;
}

void burin_plan_shape(
        const struct burin_plan *plan,
        const struct burin_plan_run *run,
        const struct burin_plan_piece *piece,
        char text[BURIN_SHAPE_TEXT])
{
    struct burin_put out = { text, BURIN_SHAPE_TEXT, 0 };
    text[0] = '\0';
    if (piece->input) {
        for (int i = 0; i < piece->input->n_dims; i++) {
            const struct burin_linear *dim = &piece->input->dims[i];
            const size_t n = burin_linear_at(dim, &plan->params, run->extents[dim->extent]);
            burin_put(&out, "%s%zu", i ? ", " : "(", n);
        }
        burin_put(&out, ") %s", burin_dtype_name(piece->dtype));
        return;
    }
    char numbers[BURIN_SHAPE_TEXT];
    burin_shape_numbers(
            piece->shape ? piece->shape : "()", plan->model, &plan->params, run->extents,
            numbers, sizeof numbers);
    burin_put(&out, "%s %s", numbers, burin_dtype_name(piece->dtype));
}
