/* The kernels agree with the table: a program run in an arena that is poison wherever the
 * table says that nothing lives writes nothing there, writes all of what it should, touches
 * no byte past arena(n), and leaves the same bits as in a clean arena.
 *
 * Built against what `gen --probe` emits, which calls burin_probe() after each operation.
 * Poison is 0xFF: a NaN as f32 and bf16, so that a kernel which reads it spoils the result. */
#include "tests/support/model_weights.h"
#include "tests/support/test.h"

#include "runtime/cpu/team.h"
#include "runtime/device/cpu.h"
#include "runtime/plan/size.h"
#include "runtime/weights/bind.h"
#include "runtime/weights/checkpoint.h"
#include "runtime/weights/pack.h"

#include <stdbool.h>
#include <stdlib.h>

enum {
    POISON = 0xFF,
    GUARD = 0xA5,
    GUARD_BYTES = 64 * 1024,
    MAX_SEQUENCES = 5,
    MAX_PAGES = 6,
    MAX_SOFT = 7
};

/* ---- What is watched: one program's call ------------------------------------------- */

static struct {
    const struct burin_program *program;
    uint8_t *arena;
    size_t bytes;
    uint8_t *alive;  /* for each byte of the arena: 0xFF, or 0 where nothing lives */
    bool poisons;    /* else it only writes down the order of operations */
    int order[4096]; /* operations of a block come again with each layer */
    int n_ops;
    int n_ops_expected;
    char report[512]; /* the first thing that was wrong */
} watched;

#define REPORT(...)                                                                        \
    do {                                                                                   \
        if (!watched.report[0])                                                            \
            snprintf(watched.report, sizeof watched.report, __VA_ARGS__);                  \
    } while (0)

struct span {
    size_t begin;
    size_t bytes;
};

static int extent_of(const struct burin_call *call, const struct burin_linear *linear)
{
    return call->n[linear->extent];
}

static size_t at(const struct burin_linear *linear, const struct burin_call *call)
{
    return burin_linear_at(linear, &call->params, extent_of(call, linear));
}

static size_t phase_begin(int phase, const struct burin_call *call)
{
    return burin_region_offset(watched.program, phase, &call->params, call->n);
}

static struct span span_of(const struct burin_buffer *buffer, const struct burin_call *call)
{
    return (struct span){
        .begin = phase_begin(buffer->phase, call) + at(&buffer->offset, call),
        .bytes = at(&buffer->bytes, call),
    };
}

/* Scratch is what lies in front of a phase's first buffer. */
static struct span scratch_of(int phase, const struct burin_call *call)
{
    const size_t begin = phase_begin(phase, call);
    size_t end = begin + at(&watched.program->costs[phase].bytes, call);
    for (int i = 0; i < watched.program->n_buffers; i++) {
        const struct burin_buffer *buffer = &watched.program->buffers[i];
        if (buffer->phase == phase && span_of(buffer, call).begin < end)
            end = span_of(buffer, call).begin;
    }
    return (struct span){ .begin = begin, .bytes = end - begin };
}

static void mark(struct span span)
{
    if (span.begin + span.bytes > watched.bytes)
        REPORT("the table places a buffer past the end of the arena");
    else
        memset(watched.alive + span.begin, 0xFF, span.bytes);
}

/* Mark what operation `op` may touch, or (with `before`) what it finds. */
static void mark_alive(const struct burin_call *call, int op, bool before)
{
    memset(watched.alive, 0, watched.bytes);
    for (int i = 0; i < watched.program->n_buffers; i++) {
        const struct burin_buffer *buffer = &watched.program->buffers[i];
        if (buffer->first_op + before > op || buffer->last_op < op)
            continue;
        mark(span_of(buffer, call));
        if (buffer->phase > 0 && !before)
            mark(scratch_of(buffer->phase, call));
    }
}

static const char *whose(const struct burin_call *call, size_t byte)
{
    for (int i = 0; i < watched.program->n_buffers; i++) {
        const struct span span = span_of(&watched.program->buffers[i], call);
        if (byte >= span.begin && byte < span.begin + span.bytes)
            return watched.program->buffers[i].name;
    }
    return "no buffer's";
}

static void check_nothing_written_elsewhere(const struct burin_call *call, int op)
{
    uint8_t all = POISON; /* dead bytes are POISON, with every bit set */
    for (size_t i = 0; i < watched.bytes; i++)
        all &= watched.arena[i] | watched.alive[i];
    for (size_t i = 0; all != POISON && i < watched.bytes; i++)
        if (!watched.alive[i] && watched.arena[i] != POISON) {
            REPORT("op %d wrote byte %zu of %zu (%s), which is not alive", op, i,
                   watched.bytes, whose(call, i));
            return;
        }
}

/* A buffer that is read for the last time was written up to its last dense row. (Where layers of
 * several kinds come in turn it lives longer than from the operation that makes it.) */
static void check_last_rows(const struct burin_call *call, int op)
{
    for (int i = 0; i < watched.program->n_buffers; i++) {
        const struct burin_buffer *buffer = &watched.program->buffers[i];
        const struct span span = span_of(buffer, call);
        const int n = extent_of(call, &buffer->bytes);
        if (buffer->last_op != op || n == 0)
            continue;

        const size_t row_bytes = span.bytes / (size_t)n;
        const uint8_t *row = watched.arena + span.begin + (size_t)(n - 1) * row_bytes;
        size_t written = 0;
        if (buffer->dtype == BURIN_F32) {
            for (size_t k = 0; k < row_bytes / 4; k++)
                written += memcmp(row + 4 * k, "\xFF\xFF\xFF\xFF", 4) != 0;
            if (written != row_bytes / 4)
                REPORT("op %d finds the last row of %s unwritten: %zu of %zu floats", op,
                       buffer->name, written, row_bytes / 4);
        } else {
            for (size_t k = 0; k < row_bytes; k++)
                written += row[k] != POISON;
            if (written < row_bytes / 2) /* -1 is a value as good as any in int8 */
                REPORT("op %d finds the last row of %s unwritten: %zu of %zu bytes", op,
                       buffer->name, written, row_bytes);
        }
    }
}

static void poison_what_is_dead(const struct burin_call *call, int next_op)
{
    mark_alive(call, next_op, true);
    for (size_t i = 0; i < watched.bytes; i++)
        watched.arena[i] |= (uint8_t)~watched.alive[i];
}

/* Called by every thread after each operation, with a barrier before and after. */
void burin_probe(const struct burin_team *t, const struct burin_call *call, int op);
void burin_probe(const struct burin_team *t, const struct burin_call *call, int op)
{
    const int n_most = sizeof watched.order / sizeof *watched.order;
    if (t->thread != 0 || watched.n_ops == n_most)
        return;
    const int i = watched.n_ops++;
    if (!watched.poisons) {
        watched.order[i] = op;
        return;
    }
    if (watched.order[i] != op)
        REPORT("op %d came where op %d did before", op, watched.order[i]);
    mark_alive(call, op, false);
    check_nothing_written_elsewhere(call, op);
    check_last_rows(call, op);
    if (i + 1 < watched.n_ops_expected)
        poison_what_is_dead(call, watched.order[i + 1]);
}

/* ---- A call of any size ---------------------------------------------------------- */

struct size {
    int n_tokens;
    int n_outputs;
    int n_sequences;
    int n_threads;
};

static const struct size sizes[] = {
    { 1, 1, 1, 1 },  { 2, 1, 1, 2 },  { 3, 3, 2, 3 },   { 5, 2, 3, 1 },
    { 7, 7, 1, 2 },  { 8, 1, 4, 2 },  { 13, 4, 3, 1 },  { 31, 8, 2, 2 },
    { 64, 1, 1, 3 }, { 65, 3, 5, 2 }, { 100, 9, 4, 1 }, { 257, 2, 2, 2 },
};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

/* The same of the last rows: an input that stands before it in the table. */
static void copy_of_last(
        int32_t *to,
        const void *const *inputs,
        const struct burin_program *program,
        const char *name,
        int n_tokens,
        int n_outputs)
{
    int i = 0;
    while (strcmp(program->inputs[i].name, name) != 0)
        i++;
    memcpy(to, (const int32_t *)inputs[i] + n_tokens - n_outputs,
           (size_t)n_outputs * sizeof *to);
}

/* The inputs of a step of that size, in the order of the program's table. */
static const void **inputs_of(
        const struct burin_program *program, const struct burin_call *call)
{
    const int n_tokens = call->n[BURIN_TOKENS], n_outputs = call->n[BURIN_OUTPUTS];
    const int n_sequences = call->n[BURIN_SEQUENCES];
    const void **inputs = calloc((size_t)program->n_inputs, sizeof *inputs);

    for (int i = 0; i < program->n_inputs; i++) {
        const char *name = program->inputs[i].name;
        const size_t bytes = burin_input_bytes(&program->inputs[i], &call->params, call->n);
        int32_t *in = malloc(bytes);
        inputs[i] = in;
        for (int row = 0; row < n_tokens; row++) {
            const int sequence = (int)((long)row * n_sequences / n_tokens);
            const int begin =
                    (int)(((long)sequence * n_tokens + n_sequences - 1) / n_sequences);
            if (strcmp(name, "token_ids") == 0)
                in[row] = (row * 7919 + 5) % burin_model.n_vocab;
            else if (strcmp(name, "positions") == 0)
                in[row] = row - begin;
            else if (strcmp(name, "sequence_of") == 0)
                in[row] = sequence;
            else if (strcmp(name, "soft_index") == 0)
                in[row] = row % 3 ? -1 : row % MAX_SOFT;
            else if (strcmp(name, "spans") == 0) { /* five and five see each other */
                const int end =
                        (int)((((long)sequence + 1) * n_tokens + n_sequences - 1) /
                              n_sequences);
                const int stop = (row - begin) / 5 * 5 + 5;
                in[row] = stop < end - begin ? stop : end - begin;
            }
        }
        if (strcmp(name, "sequence_begin") == 0)
            for (int s = 0; s <= n_sequences; s++)
                in[s] = (int)(((long)s * n_tokens + n_sequences - 1) / n_sequences);
        else if (strcmp(name, "output_rows") == 0)
            for (int o = 0; o < n_outputs; o++) /* the last rows */
                in[o] = n_tokens - n_outputs + o;
        else if (strcmp(name, "output_positions") == 0)
            copy_of_last(in, inputs, program, "positions", n_tokens, n_outputs);
        else if (strcmp(name, "output_sequence_of") == 0)
            copy_of_last(in, inputs, program, "sequence_of", n_tokens, n_outputs);
        else if (strcmp(name, "output_begin") == 0)
            for (int s = 0; s <= n_sequences; s++) {
                const int first =
                        (int)(((long)s * n_tokens + n_sequences - 1) / n_sequences);
                in[s] = first > n_tokens - n_outputs ? first - n_tokens + n_outputs : 0;
            }
        else if (strcmp(name, "page_table") == 0)
            for (int p = 0; p < n_sequences * MAX_PAGES; p++)
                in[p] = (p * 7 + 3) %
                        (MAX_SEQUENCES * MAX_PAGES); /* no order; 7 divides not 30 */
        else if (strcmp(name, "state_of") == 0)
            for (int s = 0; s < n_sequences; s++)
                in[s] = (s * 3 + 1) % MAX_SEQUENCES;
        else if (strcmp(name, "soft_rows") == 0)
            for (size_t k = 0; k < bytes / 4; k++)
                ((float *)(void *)in)[k] = (float)(k % 13) * 0.125f - 0.75f;
        else if (strcmp(name, "pixels") == 0)
            for (size_t k = 0; k < bytes; k++)
                ((uint8_t *)(void *)in)[k] = (uint8_t)(k * 2654435761u >> 13);
        else if (strcmp(name, "pixel_positions") == 0)
            for (size_t k = 0; k < bytes / 4; k++)
                in[k] = (int)(k / 2 % 7 + k % 2 * 3);
        else if (strcmp(name, "item_begin") == 0) /* the last one takes the rest */
            for (int item = 0; item <= call->n[BURIN_SOFT]; item++)
                in[item] =
                        9 * (item < n_sequences ? item * (call->n[BURIN_SOFT] / n_sequences)
                                                : call->n[BURIN_SOFT]);
    }
    return inputs;
}

static void free_inputs(const struct burin_program *program, const void **inputs)
{
    for (int i = 0; i < program->n_inputs; i++)
        free((void *)inputs[i]);
    free(inputs);
}

/* ---- One program, one size ------------------------------------------------------- */

struct machine {
    struct burin_cpu cpu;
    struct burin_ledger ledger;
};

struct case_of {
    const struct burin_family *family;
    int kv;
    const struct burin_program *program;
    const uint8_t *weights;
    struct size size;
};

/* The program's output after a run in an arena of zeros, or in a poisoned one. */
static uint8_t *run(const struct case_of *c, bool poisons, size_t *n_bytes)
{
    const struct burin_kv_layout *kv = &c->family->kv[c->kv];
    struct burin_call call = {
        .weights = c->weights,
        .n = { [BURIN_TOKENS] = c->size.n_tokens,
               [BURIN_OUTPUTS] = c->size.n_outputs,
               [BURIN_SEQUENCES] = c->size.n_sequences,
               [BURIN_SOFT] = c->size.n_tokens },
        .params.value = { [BURIN_MAX_CONTEXT] = (int64_t)MAX_PAGES * kv->page_tokens,
                          [BURIN_MAX_PAGES] = MAX_PAGES,
                          [BURIN_MAX_SEQUENCES] = MAX_SEQUENCES,
                          [BURIN_THREADS] = c->size.n_threads,
                          [BURIN_MAX_SOFT] = MAX_SOFT },
    };
    const size_t bytes = burin_arena_bytes(c->program, &call.params, call.n);
    uint8_t *const fenced = aligned_alloc(64, (bytes + 63) / 64 * 64 + 2 * GUARD_BYTES);
    memset(fenced, GUARD, bytes + 2 * GUARD_BYTES);
    call.arena = fenced + GUARD_BYTES;
    memset(call.arena, poisons ? POISON : 0, bytes);

    /* Slots that nobody has written hold NaN: no kernel may let them through. */
    const size_t kv_bytes = (size_t)MAX_SEQUENCES * MAX_PAGES * kv->page_bytes;
    uint8_t *const pages = aligned_alloc(64, (kv_bytes + 63) / 64 * 64);
    memset(pages, POISON, kv_bytes);
    const size_t slots_bytes = (size_t)MAX_SEQUENCES * kv->slot_bytes;
    uint8_t *const slots = aligned_alloc(64, (slots_bytes + 63) / 64 * 64 + 64);
    memset(slots, POISON, slots_bytes);
    uint8_t *const states[] = { pages, slots };
    call.states = states;
    const void **inputs = inputs_of(c->program, &call);
    call.inputs = inputs;

    struct machine machine = { 0 };
    burin_cpu_open(&machine.cpu);
    assert_int_equal(
            burin_ledger_open(&machine.ledger, &machine.cpu.device, SIZE_MAX, NULL),
            BURIN_OK);
    assert_int_equal(
            burin_cpu_start(
                    &machine.cpu, &machine.ledger, c->size.n_threads, 1 << 20, NULL),
            BURIN_OK);
    struct burin_queue queue = { 0 };
    assert_int_equal(burin_queue_open(&queue, &machine.cpu.device, NULL), BURIN_OK);

    watched.program = c->program;
    watched.poisons = poisons;
    watched.n_ops = 0;
    watched.arena = call.arena;
    watched.bytes = bytes;
    watched.alive = malloc(bytes + 1);
    assert_int_equal(burin_queue_run(&queue, c->program, c->kv, &call, NULL), BURIN_OK);
    assert_int_equal(burin_queue_finish(&queue, NULL), BURIN_OK);

    for (size_t i = 0; i < GUARD_BYTES; i++) {
        if (fenced[i] != GUARD)
            REPORT("a byte before the arena was written");
        if (fenced[GUARD_BYTES + bytes + i] != GUARD)
            REPORT("byte %zu was written, arena(n) is %zu", bytes + i, bytes);
    }
    const struct burin_output *output = &c->program->outputs[0];
    *n_bytes = sizeof(float);
    for (int i = 0; i < output->n_dims; i++)
        *n_bytes *= at(&output->dims[i], &call);
    uint8_t *result = malloc(*n_bytes);
    memcpy(result, call.arena + burin_output_offset(c->program, 0, &call.params, call.n),
           *n_bytes);
    assert_int_equal(output->dtype, BURIN_F32);

    burin_queue_close(&queue);
    burin_cpu_stop(&machine.cpu);
    burin_ledger_close(&machine.ledger);
    free_inputs(c->program, inputs);
    free(watched.alive);
    free(pages);
    free(slots);
    free(fenced);
    return result;
}

static void assert_table_holds(const struct case_of *c)
{
    size_t n_bytes;
    uint8_t *clean = run(c, false, &n_bytes);
    watched.report[0] = '\0';
    watched.n_ops_expected = watched.n_ops;
    uint8_t *poisoned = run(c, true, &n_bytes);

    if (!watched.report[0] && watched.n_ops != c->program->graph.kernel_nodes)
        REPORT("%d operations ran, graph_budgets says %d", watched.n_ops,
               c->program->graph.kernel_nodes);
    if (!watched.report[0] && memcmp(clean, poisoned, n_bytes) != 0)
        REPORT("other bits than in a clean arena: something dead was read");
    if (watched.report[0])
        fail_msg(
                "%s %s%s, %s, kv %d, %d tokens, %d outputs, %d sequences, %d threads: %s",
                burin_model.name, c->family->name, c->family->exact ? " exact" : "",
                c->program->name, c->kv, c->size.n_tokens, c->size.n_outputs,
                c->size.n_sequences, c->size.n_threads, watched.report);
    free(clean);
    free(poisoned);
}

static uint8_t *packed_weights(const struct burin_family *family, const char *path)
{
    struct burin_error err = { 0 };
    struct burin_checkpoint checkpoint;
    const struct burin_tensor *const *tensors;
    uint8_t *arena = aligned_alloc(64, (family->weights_bytes + 63) / 64 * 64);
    if (burin_checkpoint_open(&checkpoint, path, &err) ||
        burin_bind(&burin_model, &checkpoint, &tensors, &err) ||
        burin_pack(&burin_model, family, &checkpoint, tensors, arena, 1, NULL, NULL, &err))
        fail_msg("%s", err.message);
    burin_checkpoint_close(&checkpoint);
    return arena;
}

/* A real model's 30 layers say no more of each kernel than a tiny one's 2: its best family
 * is enough, and the portable one would take minutes. */
static bool is_walked(const struct burin_family *family)
{
    if (family->cpu_feature == BURIN_CPU_AVX512 && !__builtin_cpu_supports("avx512bf16"))
        return false;
    return burin_model.n_layers < 16 ||
           family->cpu_feature == burin_model.families[0].cpu_feature;
}

SPEC(kernels_agree_with_the_table_at_a_dozen_sizes_in_a_poisoned_arena)
{
    SKIP_UNLESS(model_weights());
    int n_runs = 0;
    for (int f = 0; f < burin_model.n_families; f++) {
        struct case_of c = { .family = &burin_model.families[f] };
        if (!is_walked(c.family))
            continue;
        uint8_t *weights = packed_weights(c.family, model_weights());
        c.weights = weights;
        for (int p = 0; p < c.family->n_programs; p++)
            for (c.kv = 0; c.kv < c.family->n_kv; c.kv++)
                for (int s = 0; s < N_SIZES; s++) {
                    c.program = &c.family->programs[p];
                    c.size = sizes[s];
                    if (c.program->run)
                        assert_table_holds(&c);
                    n_runs++;
                }
        free(weights);
    }
    print_message("%s: %d runs, no report\n", burin_model.name, n_runs);
    assert_true(n_runs >= N_SIZES || burin_model.n_layers >= 16);
}
