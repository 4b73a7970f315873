/* tests/runtime/plan/vision_model.h -- Tables of a small model for a GPU: a decoder with pages,
 * a window and a scan, a program that drafts, encoders for pictures and sound. The encoder of
 * pictures has Gemma 4's patches: 9 a soft token, 768 values each, 15,360 bytes of arena. */
#ifndef BURIN_TEST_VISION_MODEL_H
#define BURIN_TEST_VISION_MODEL_H

#include "tests/runtime/plan/tiny_model.h"

enum {
    MIB = 1024 * 1024,
    PATCHES = 9, /* a soft token */
    PATCH_BYTES = 15360,
    SOFT_BYTES = PATCHES * PATCH_BYTES,
};
#define GIB ((int64_t)1 << 30)

static const struct burin_input vision_step_inputs[] = {
    { .name = "token_ids",
      .dtype = BURIN_I32,
      .n_dims = 1,
      .dims = { { .slope = CONSTANT(1), .extent = BURIN_TOKENS } } },
    { .name = "page_table",
      .dtype = BURIN_I32,
      .n_dims = 2,
      .dims = { { .slope = CONSTANT(1), .extent = BURIN_SEQUENCES },
                { .fixed = TIMES(1, BURIN_MAX_PAGES), .extent = BURIN_TOKENS } } },
    { .name = "soft_rows",
      .dtype = BURIN_BF16,
      .n_dims = 2,
      .dims = { { .fixed = TIMES(1, BURIN_MAX_SOFT), .extent = BURIN_TOKENS },
                { .fixed = CONSTANT(320), .extent = BURIN_TOKENS } } },
};
static const struct burin_chunk_cost vision_step_costs[] = {
    { "carried", { .slope = CONSTANT(640), .extent = BURIN_TOKENS }, 1 },
    { "body", { .slope = CONSTANT(3072), .extent = BURIN_TOKENS }, 1 },
    { "head", { .slope = CONSTANT(65536), .extent = BURIN_OUTPUTS }, 1 },
};
static const struct burin_buffer vision_step_buffers[] = {
    { .name = "x",
      .shape = "(tokens, D_MODEL)",
      .where = "models/vision.lua:7",
      .phase = 0,
      .dtype = BURIN_BF16,
      .offset = { .extent = BURIN_TOKENS },
      .bytes = { .slope = CONSTANT(640), .extent = BURIN_TOKENS },
      .last_op = 9 },
    { .name = "qkv",
      .shape = "(tokens, D_MODEL + 2 * D_KV)",
      .where = "models/vision.lua:8",
      .phase = 1,
      .dtype = BURIN_BF16,
      .offset = { .extent = BURIN_TOKENS },
      .bytes = { .slope = CONSTANT(1024), .extent = BURIN_TOKENS },
      .first_op = 1,
      .last_op = 3 },
    { .name = "h",
      .shape = "(tokens, D_FF)",
      .where = "models/vision.lua:11",
      .phase = 1,
      .dtype = BURIN_BF16,
      .offset = { .extent = BURIN_TOKENS },
      .bytes = { .slope = CONSTANT(3072), .extent = BURIN_TOKENS },
      .first_op = 5,
      .last_op = 6 },
};

static const struct burin_input vision_draft_inputs[] = {
    { .name = "token_ids",
      .dtype = BURIN_I32,
      .n_dims = 1,
      .dims = { { .slope = CONSTANT(1), .extent = BURIN_TOKENS } } },
    { .name = "hidden",
      .dtype = BURIN_BF16,
      .n_dims = 2,
      .dims = { { .slope = CONSTANT(1), .extent = BURIN_TOKENS },
                { .fixed = CONSTANT(320), .extent = BURIN_TOKENS } } },
};
static const struct burin_chunk_cost vision_draft_costs[] = {
    { "carried", { .slope = CONSTANT(640), .extent = BURIN_TOKENS }, 1 },
    { "body", { .slope = CONSTANT(1024), .extent = BURIN_TOKENS }, 1 },
};

static const struct burin_input vision_image_inputs[] = {
    { .name = "pixels",
      .dtype = BURIN_U8,
      .n_dims = 2,
      .dims = { { .slope = CONSTANT(PATCHES), .extent = BURIN_SOFT },
                { .fixed = CONSTANT(768), .extent = BURIN_SOFT } } },
    { .name = "item_begin",
      .dtype = BURIN_I32,
      .n_dims = 1,
      .dims = { { .fixed = CONSTANT(1), .slope = CONSTANT(1), .extent = BURIN_SOFT } } },
};
static const struct burin_chunk_cost vision_image_costs[] = {
    { "carried", { .extent = BURIN_SOFT }, 1 },
    { "soft", { .slope = CONSTANT(SOFT_BYTES), .extent = BURIN_SOFT }, 1 },
};
static const struct burin_buffer vision_image_buffers[] = {
    { .name = "ff",
      .shape = "(9 * soft, D_VISION_FF)",
      .where = "models/vision.lua:30",
      .phase = 1,
      .dtype = BURIN_BF16,
      .offset = { .slope = CONSTANT(9 * 1536), .extent = BURIN_SOFT },
      .bytes = { .slope = CONSTANT(9 * 6144), .extent = BURIN_SOFT },
      .first_op = 4,
      .last_op = 5 },
};

static const struct burin_chunk_cost vision_audio_costs[] = {
    { "carried", { .extent = BURIN_SOFT }, 1 },
    { "soft", { .slope = CONSTANT(40960), .extent = BURIN_SOFT }, 1 },
};

static const struct burin_program vision_programs[] = {
    { .name = "step",
      .extent = BURIN_SEQUENCES,
      .weights_bytes = 100 * MIB + 1,
      .n_inputs = 3,
      .inputs = vision_step_inputs,
      .n_carried = 1,
      .n_costs = 3,
      .costs = vision_step_costs,
      .graph = { .kernel_nodes = 31, .copy_nodes = 1 },
      .n_buffers = 3,
      .buffers = vision_step_buffers },
    { .name = "draft",
      .extent = BURIN_SEQUENCES,
      .weights_bytes = 7 * MIB,
      .n_inputs = 2,
      .inputs = vision_draft_inputs,
      .n_carried = 1,
      .n_costs = 2,
      .costs = vision_draft_costs,
      .graph = { .kernel_nodes = 8 } },
    { .name = "encode_image",
      .extent = BURIN_SOFT,
      .smallest_item = 70,
      .largest_item = 1120,
      .frame_item = 70,
      .weights_bytes = 11 * MIB,
      .n_inputs = 2,
      .inputs = vision_image_inputs,
      .n_carried = 1,
      .n_costs = 2,
      .costs = vision_image_costs,
      .graph = { .kernel_nodes = 16 },
      .n_buffers = 1,
      .buffers = vision_image_buffers },
    { .name = "encode_audio",
      .extent = BURIN_SOFT,
      .smallest_item = 25,
      .largest_item = 750,
      .weights_bytes = 5 * MIB,
      .n_carried = 1,
      .n_costs = 2,
      .costs = vision_audio_costs,
      .graph = { .kernel_nodes = 24 } },
};

/* Bytes of bf16, and of the same halved. */
#define VISION_STATES(share)                                                               \
    {                                                                                      \
        { .name = "kv",                                                                    \
          .state = BURIN_STATE_PAGED,                                                      \
          .group = "layers",                                                               \
          .n_readers = 2,                                                                  \
          .bytes_per_token = 1280 / (share) },                                             \
                { .name = "kv",                                                            \
                  .state = BURIN_STATE_RING,                                               \
                  .group = "layers",                                                       \
                  .layer = 1,                                                              \
                  .n_readers = 1,                                                          \
                  .window = 512,                                                           \
                  .bytes_per_sequence = 512 * 1280 / (share),                              \
                  .bytes_per_draft = 1280 / (share) },                                     \
                { .name = "memory",                                                        \
                  .state = BURIN_STATE_FIXED,                                              \
                  .group = "layers",                                                       \
                  .layer = 2,                                                              \
                  .n_readers = 1,                                                          \
                  .bytes_per_sequence = 300000,                                            \
                  .bytes_per_draft = 300000 },                                             \
        {                                                                                  \
            .name = "kv", .state = BURIN_STATE_PAGED, .group = "mtp", .program = 1,        \
            .n_readers = 1, .bytes_per_token = 640 / (share)                               \
        }                                                                                  \
    }
static const struct burin_layer_state vision_states_bf16[] = VISION_STATES(1);
static const struct burin_layer_state vision_states_fp8[] = VISION_STATES(2);

static const struct burin_kv_layout vision_kv[] = {
    { .dtype = BURIN_BF16,
      .page_tokens = 64,
      .page_bytes = 64 * 1280,
      .bytes_per_token = 1280,
      .bytes_per_sequence = 512 * 1280 + 300000,
      .bytes_per_draft = 1280 + 300000,
      .n_rows = 4,
      .rows = vision_states_bf16 },
    { .dtype = BURIN_FP8,
      .page_tokens = 64,
      .page_bytes = 64 * 640,
      .bytes_per_token = 640,
      .bytes_per_sequence = 512 * 640 + 300000,
      .bytes_per_draft = 640 + 300000,
      .n_rows = 4,
      .rows = vision_states_fp8 },
};

#define VISION_FAMILY(family_name, family_sm)                                              \
    {                                                                                      \
        .name = family_name, .sm = family_sm, .weights_bytes = 123 * MIB + 1, .n_kv = 2,   \
        .kv = vision_kv, .n_programs = 4, .programs = vision_programs                      \
    }
static const struct burin_family vision_families[] = {
    VISION_FAMILY("sm120", 120),
    VISION_FAMILY("sm100", 100),
    VISION_FAMILY("sm90", 90),
    VISION_FAMILY("sm80", 80),
};

static const struct burin_dim vision_dims[] = {
    { "d_model", 320 },
    { "d_kv", 96 },
    { "d_ff", 1536 },
    { "d_vision_ff", 3072 },
};

static const struct burin_model vision_model = {
    .name = "vision-bf16",
    .architecture = "vision",
    .variant = "small",
    .recipe = "bf16",
    .n_elements = 64000000,
    .n_layers = 3,
    .n_vocab = 16384,
    .n_ctx = 131072,
    .n_dims = 4,
    .dims = vision_dims,
    .n_weights = 1,
    .weights = &tiny_weight,
    .n_families = 4,
    .families = vision_families,
};

#endif
