/* tests/runtime/plan/tiny_model.h -- Tables of a model that is small enough to add up by
 * hand. No two sizes are equal. */
#ifndef BURIN_TEST_TINY_MODEL_H
#define BURIN_TEST_TINY_MODEL_H

#include "runtime/model.h"

#define CONSTANT(n)                                                                        \
    {                                                                                      \
        .terms = { { .factor = (n) } }                                                     \
    }
#define TIMES(n, parameter)                                                                \
    {                                                                                      \
        .terms = { { .factor = (n), .power[parameter] = 1 } }                              \
    }

static const struct burin_input tiny_inputs[] = {
    { .name = "token_ids",
      .dtype = BURIN_I32,
      .n_dims = 1,
      .dims = { { .slope = CONSTANT(1), .extent = BURIN_TOKENS } } },
    { .name = "page_table",
      .dtype = BURIN_I32,
      .n_dims = 2,
      .dims = { { .slope = CONSTANT(1), .extent = BURIN_SEQUENCES },
                { .fixed = TIMES(1, BURIN_MAX_PAGES), .extent = BURIN_TOKENS } } },
    { .name = "output_rows",
      .dtype = BURIN_I32,
      .n_dims = 1,
      .dims = { { .slope = CONSTANT(1), .extent = BURIN_OUTPUTS } } },
};

static const struct burin_output tiny_outputs[] = {
    { .name = "logits",
      .dtype = BURIN_F32,
      .n_dims = 2,
      .dims = { { .slope = CONSTANT(1), .extent = BURIN_OUTPUTS },
                { .fixed = CONSTANT(96), .extent = BURIN_TOKENS } },
      .phase = 2,
      .offset = { .slope = CONSTANT(64), .extent = BURIN_OUTPUTS } },
};

static const struct burin_chunk_cost tiny_costs[] = {
    { "carried", { .slope = CONSTANT(192), .extent = BURIN_TOKENS }, 1 },
    { "body",
      { .fixed = TIMES(256, BURIN_THREADS),
        .slope = CONSTANT(448),
        .extent = BURIN_TOKENS },
      1 },
    { "head", { .slope = CONSTANT(4096), .extent = BURIN_OUTPUTS }, 1 },
};

static const struct burin_program tiny_programs[] = {
    { .name = "step",
      .n_inputs = 3,
      .inputs = tiny_inputs,
      .n_outputs = 1,
      .outputs = tiny_outputs,
      .n_carried = 1,
      .n_costs = 3,
      .costs = tiny_costs,
      .graph = { .kernel_nodes = 17 } },
};

static const struct burin_kv_layout tiny_kv[] = {
    { .dtype = BURIN_BF16,
      .page_tokens = 64,
      .page_bytes = 64 * 80,
      .bytes_per_token = 80 },
    { .dtype = BURIN_F32,
      .page_tokens = 64,
      .page_bytes = 64 * 160,
      .bytes_per_token = 160 },
};

static const struct burin_family tiny_families[] = {
    { .name = "portable",
      .weights_bytes = 50048,
      .n_kv = 2,
      .kv = tiny_kv,
      .n_programs = 1,
      .programs = tiny_programs },
};

static const struct burin_weight tiny_weight = { .role = "embed",
                                                 .n_rows = 96,
                                                 .n_cols = 40 };

static const struct burin_model tiny_model = {
    .name = "tiny-q4_1",
    .architecture = "tiny",
    .variant = "default",
    .recipe = "q4_1",
    .n_elements = 80000,
    .n_layers = 2,
    .n_vocab = 96,
    .n_ctx = 16384,
    .n_weights = 1,
    .weights = &tiny_weight,
    .n_families = 1,
    .families = tiny_families,
};

#endif
