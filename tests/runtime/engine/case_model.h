/* tests/runtime/engine/case_model.h -- A decoder whose owners have the sizes that a reported case
 * had: so many bytes that are fixed, a token's keys and values, a sequence's states. */
#ifndef BURIN_TEST_CASE_MODEL_H
#define BURIN_TEST_CASE_MODEL_H

#include "tests/runtime/engine/rehearse.h"

struct case_model {
    struct burin_model model;
    struct burin_family family;
    struct burin_program program;
    struct burin_kv_layout kv;
    struct burin_layer_state states[2];
};

static const struct burin_chunk_cost case_costs[] = {
    { "carried", { .extent = BURIN_TOKENS }, 1 },
    { "body", { .slope = CONSTANT(1024), .extent = BURIN_TOKENS }, 1 },
};

/* `weights` bytes, `token` bytes of keys and values in pages of 64, `state` bytes a sequence. */
static inline void make_case(
        struct case_model *c, int sm, int64_t weights, int64_t token, int64_t state)
{
    *c = (struct case_model){
        .program = { .name = "step",
                     .extent = BURIN_SEQUENCES,
                     .weights_bytes = (size_t)weights,
                     .n_inputs = 1,
                     .inputs = vision_step_inputs, /* token ids */
                     .n_carried = 1,
                     .n_costs = 2,
                     .costs = case_costs,
                     .graph = { .kernel_nodes = 100 } },
        .states = { { .name = "kv",
                      .state = BURIN_STATE_PAGED,
                      .group = "layers",
                      .n_readers = 1,
                      .bytes_per_token = (size_t)token },
                    { .name = "memory",
                      .state = BURIN_STATE_FIXED,
                      .group = "layers",
                      .layer = 1,
                      .n_readers = 1,
                      .bytes_per_sequence = (size_t)state } },
        .kv = { .dtype = BURIN_BF16,
                .page_tokens = 64,
                .page_bytes = (size_t)(64 * token),
                .bytes_per_token = (size_t)token,
                .slot_bytes = (size_t)state,
                .bytes_per_sequence = (size_t)state,
                .n_rows = state ? 2 : 1 },
        .family = { .name = "sm80",
                    .sm = sm,
                    .weights_bytes = (size_t)weights,
                    .n_kv = 1,
                    .n_programs = 1 },
        .model = { .name = "case-bf16",
                   .architecture = "case",
                   .variant = "case",
                   .recipe = "bf16",
                   .n_elements = 1,
                   .n_layers = 2,
                   .n_vocab = 16384,
                   .n_ctx = 262144,
                   .n_weights = 1,
                   .weights = &tiny_weight,
                   .n_families = 1 },
    };
    c->kv.rows = c->states;
    c->family.kv = &c->kv;
    c->family.programs = &c->program;
    c->model.families = &c->family;
}

/* Fixed bytes are `fixed` in all: weights, and what the driver and the runs need beside them. */
static inline void make_case_of(
        struct case_model *c,
        const char *name,
        int64_t fixed,
        int64_t token,
        int64_t state,
        int n_ctx)
{
    static const char *const others[] = { "context", "modules", "local memory", "arena",
                                          "inputs" };
    make_case(c, 80, 2 * MIB, token, state);
    request = (struct burin_plan_request){ .model = &c->model,
                                           .n_threads = 1,
                                           .n_sequences = 1,
                                           .n_ctx = n_ctx,
                                           .n_batch = 2048 };
    assert_int_equal(burin_card_parse(&request.card, name, NULL), BURIN_OK);
    plan = gpu_plan(&request);
    int64_t weights = fixed;
    for (int i = 0; i < 5; i++) /* in granules, so that sums are exact */
        weights -= (owner_bytes(&plan, others[i]) + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
    make_case(c, 80, weights / (2 * MIB) * (2 * MIB), token, state);
    plan = gpu_plan(&request);
}

#endif
