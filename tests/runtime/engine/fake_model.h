/* tests/runtime/engine/fake_model.h -- A model of a few lines of C, to test the engine without
 * the generator. Its cache holds each token and its position; the logits of a row are a hash
 * of all tokens up to it, read back through the page table, so a wrong page, slot, position
 * or row gives another text. fake_text() says what text is right.
 *
 * Tokens   FAKE_NAN, FAKE_INF, FAKE_LOW: from such a token on, that sequence's logits have one
 *          NaN, one +Inf, or are all -Inf. The model itself never makes one of the three.
 * Checks   What the engine promises about the inputs is counted in fake_faults. */
#ifndef BURIN_TEST_FAKE_MODEL_H
#define BURIN_TEST_FAKE_MODEL_H

#include "runtime/cpu/team.h"
#include "runtime/model.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum {
    FAKE_VOCAB = 48,
    FAKE_CONTEXT = 23,
    FAKE_PAGE_TOKENS = 4,
    FAKE_NAN = 45,
    FAKE_INF = 46,
    FAKE_LOW = 47,
};

struct fake_cell {
    int32_t token;
    int32_t position;
};

static atomic_int fake_faults;
static atomic_int fake_runs;
static int fake_most_tokens; /* of all runs so far */
static int fake_most_outputs;

static uint32_t fake_fold(uint32_t hash, int32_t token)
{
    return (hash ^ (uint32_t)token) * 16777619u;
}

static void fake_logits(float *logits, uint32_t hash, int strange)
{
    for (uint32_t i = 0; i < FAKE_VOCAB; i++)
        logits[i] = (float)(((hash >> 7) * (2 * i + 1) + (hash >> 19)) % 1009u) / 64.0f;
    for (int i = FAKE_NAN; i < FAKE_VOCAB; i++)
        logits[i] = -1.0f;
    if (strange == FAKE_NAN)
        logits[hash % FAKE_VOCAB] = NAN;
    if (strange == FAKE_INF)
        logits[hash % FAKE_VOCAB] = INFINITY;
    for (int i = 0; strange == FAKE_LOW && i < FAKE_VOCAB; i++)
        logits[i] = -INFINITY;
}

enum {
    TOKEN_IDS,
    POSITIONS,
    SEQUENCE_OF,
    SEQUENCE_BEGIN,
    PAGE_TABLE,
    OUTPUT_ROWS,
    FAKE_INPUTS,
    SOFT_INDEX = FAKE_INPUTS, /* of a model that sees: fake_vision.h */
    SOFT_ROWS,
};
static bool fake_sees;

/* What stands in a row: its id, or the soft token in its place. */
static int32_t fake_token(const struct burin_call *call, int row)
{
    const int32_t *token_ids = call->inputs[TOKEN_IDS];
    if (!fake_sees)
        return token_ids[row];
    const int32_t soft = ((const int32_t *)call->inputs[SOFT_INDEX])[row];
    if (soft < 0)
        return token_ids[row];
    fake_faults += token_ids[row] != 0 || soft >= call->params.value[BURIN_MAX_SOFT];
    return (int32_t)((const float *)call->inputs[SOFT_ROWS])[soft];
}

static struct fake_cell *fake_cell(
        const struct burin_call *call, int sequence, int position)
{
    const int max_pages = (int)call->params.value[BURIN_MAX_PAGES];
    const int32_t *table = (const int32_t *)call->inputs[PAGE_TABLE] + sequence * max_pages;
    const int slot = table[position / FAKE_PAGE_TOKENS] * FAKE_PAGE_TOKENS +
                     position % FAKE_PAGE_TOKENS;
    return (struct fake_cell *)(void *)call->states[0] + slot;
}

static void fake_check(const struct burin_call *call)
{
    const int32_t *positions = call->inputs[POSITIONS];
    const int32_t *sequence_of = call->inputs[SEQUENCE_OF];
    const int32_t *begin = call->inputs[SEQUENCE_BEGIN];
    const int32_t *rows = call->inputs[OUTPUT_ROWS];
    const int n_tokens = call->n[BURIN_TOKENS];
    const int n_sequences = call->n[BURIN_SEQUENCES];
    const int n_outputs = call->n[BURIN_OUTPUTS];

    fake_faults += begin[0] != 0 || begin[n_sequences] != n_tokens;
    for (int s = 0; s < n_sequences; s++) {
        fake_faults += begin[s] >= begin[s + 1] && positions[0] >= 0;
        for (int row = begin[s]; row < begin[s + 1]; row++) {
            fake_faults += sequence_of[row] != s && positions[row] >= 0;
            if (positions[row] < 0) /* a row of nobody, on a GPU */
                continue;
            fake_faults += positions[row] != positions[begin[s]] + row - begin[s];
            fake_faults += positions[row] >= call->params.value[BURIN_MAX_CONTEXT];
        }
    }
    for (int i = 0; i < n_outputs; i++)
        fake_faults += rows[i] < 0 || rows[i] >= n_tokens || (i && rows[i] <= rows[i - 1]);

    fake_runs++;
    fake_most_tokens = n_tokens > fake_most_tokens ? n_tokens : fake_most_tokens;
    fake_most_outputs = n_outputs > fake_most_outputs ? n_outputs : fake_most_outputs;
}

static void fake_step(const struct burin_team *team, const struct burin_call *call)
{
    const int32_t *positions = call->inputs[POSITIONS];
    const int32_t *sequence_of = call->inputs[SEQUENCE_OF];
    const int32_t *rows = call->inputs[OUTPUT_ROWS];
    const struct burin_share tokens = burin_share(team, call->n[BURIN_TOKENS]);
    const struct burin_share outputs = burin_share(team, call->n[BURIN_OUTPUTS]);
    uint8_t *body = call->arena;

    if (team->thread == 0)
        fake_check(call);
    for (int row = tokens.begin; row < tokens.end; row++) {
        memset(body + 64 * row, 0xaa, 64); /* the whole arena is ours */
        if (positions[row] < 0)
            continue;
        *fake_cell(call, sequence_of[row], positions[row]) = (struct fake_cell){
            .token = fake_token(call, row),
            .position = positions[row],
        };
    }
    burin_barrier(team);

    for (int i = outputs.begin; i < outputs.end; i++) {
        const int row = rows[i];
        uint32_t hash = 2166136261u;
        int strange = 0;
        for (int p = 0; p <= positions[row]; p++) {
            const struct fake_cell *cell = fake_cell(call, sequence_of[row], p);
            fake_faults += cell->position != p;
            hash = fake_fold(hash, cell->token);
            strange = cell->token >= FAKE_NAN ? cell->token : strange;
        }
        fake_logits((float *)(void *)call->arena + i * FAKE_VOCAB, hash, strange);
    }
}

/* Greedy text after a prompt, straight from the definition. */
static inline void fake_text(const int32_t *prompt, int n_prompt, int32_t *text, int n_text)
{
    uint32_t hash = 2166136261u;
    for (int i = 0; i < n_prompt; i++)
        hash = fake_fold(hash, prompt[i]);
    for (int i = 0; i < n_text; i++) {
        float logits[FAKE_VOCAB];
        fake_logits(logits, hash, 0);
        int32_t most = 0;
        for (int32_t j = 1; j < FAKE_VOCAB; j++)
            most = logits[j] > logits[most] ? j : most;
        text[i] = most;
        hash = fake_fold(hash, most);
    }
}

#define CONSTANT(n)                                                                        \
    {                                                                                      \
        .terms = { { .factor = (n) } }                                                     \
    }
#define ONE_EACH(e)                                                                        \
    {                                                                                      \
        .slope = CONSTANT(1), .extent = (e)                                                \
    }

static const struct burin_input fake_inputs[] = {
    { "token_ids", BURIN_I32, 1, { ONE_EACH(BURIN_TOKENS) } },
    { "positions", BURIN_I32, 1, { ONE_EACH(BURIN_TOKENS) } },
    { "sequence_of", BURIN_I32, 1, { ONE_EACH(BURIN_TOKENS) } },
    { "sequence_begin",
      BURIN_I32,
      1,
      { { .fixed = CONSTANT(1), .slope = CONSTANT(1), .extent = BURIN_SEQUENCES } } },
    { "page_table",
      BURIN_I32,
      2,
      { ONE_EACH(BURIN_SEQUENCES),
        { .fixed = { .terms = { { .factor = 1, .power[BURIN_MAX_PAGES] = 1 } } } } } },
    { "output_rows", BURIN_I32, 1, { ONE_EACH(BURIN_OUTPUTS) } },
    /* Behind these FAKE_INPUTS, what a model that sees reads too. */
    { "soft_index", BURIN_I32, 1, { ONE_EACH(BURIN_TOKENS) } },
    { "soft_rows",
      BURIN_F32,
      2,
      { { .fixed = { .terms = { { .factor = 1, .power[BURIN_MAX_SOFT] = 1 } } } },
        { .fixed = CONSTANT(1) } } },
};
static const struct burin_output fake_outputs[] = {
    { .name = "logits",
      .dtype = BURIN_F32,
      .n_dims = 2,
      .dims = { ONE_EACH(BURIN_OUTPUTS), { .fixed = CONSTANT(FAKE_VOCAB) } },
      .phase = 2 },
};
static const struct burin_chunk_cost fake_costs[] = {
    { "carried", { .extent = BURIN_TOKENS }, 1 },
    { "body", { .slope = CONSTANT(64), .extent = BURIN_TOKENS }, 1 },
    { "head", { .slope = CONSTANT(FAKE_VOCAB * 4), .extent = BURIN_OUTPUTS }, 1 },
};
static const struct burin_chunk_cost fake_costs_in_fives[] = {
    { "carried", { .extent = BURIN_TOKENS }, 1 },
    { "body", { .slope = CONSTANT(64), .extent = BURIN_TOKENS }, 5 },
    { "head", { .slope = CONSTANT(FAKE_VOCAB * 4), .extent = BURIN_OUTPUTS }, 1 },
};
static burin_run *const fake_run[] = { fake_step };
static const struct burin_program fake_program = {
    .name = "step",
    .n_inputs = FAKE_INPUTS,
    .inputs = fake_inputs,
    .n_outputs = 1,
    .outputs = fake_outputs,
    .n_carried = 1,
    .n_costs = 3,
    .costs = fake_costs,
    .graph = { .kernel_nodes = 2 },
    .run = fake_run,
};
static const struct burin_program fake_program_in_fives = {
    .name = "step",
    .n_inputs = FAKE_INPUTS,
    .inputs = fake_inputs,
    .n_outputs = 1,
    .outputs = fake_outputs,
    .n_carried = 1,
    .n_costs = 3,
    .costs = fake_costs_in_fives,
    .graph = { .kernel_nodes = 2 },
    .run = fake_run,
};
static const struct burin_kv_layout fake_kv[] = {
    { .dtype = BURIN_BF16,
      .page_tokens = FAKE_PAGE_TOKENS,
      .page_bytes = FAKE_PAGE_TOKENS * sizeof(struct fake_cell),
      .bytes_per_token = sizeof(struct fake_cell) },
};
static const struct burin_family fake_families[] = {
    { .name = "portable",
      .n_kv = 1,
      .kv = fake_kv,
      .n_programs = 1,
      .programs = &fake_program },
};
static const struct burin_family fake_families_in_fives[] = {
    { .name = "portable",
      .n_kv = 1,
      .kv = fake_kv,
      .n_programs = 1,
      .programs = &fake_program_in_fives },
};
static const struct burin_model fake_model = {
    .name = "fake",
    .architecture = "fake",
    .variant = "fake",
    .recipe = "none",
    .n_vocab = FAKE_VOCAB,
    .n_ctx = FAKE_CONTEXT,
    .n_families = 1,
    .families = fake_families,
};
__attribute__((unused)) static const struct burin_model fake_model_in_fives = {
    .name = "fake",
    .architecture = "fake",
    .variant = "fake",
    .recipe = "none",
    .n_vocab = FAKE_VOCAB,
    .n_ctx = FAKE_CONTEXT,
    .n_families = 1,
    .families = fake_families_in_fives,
};

#endif
