/* tests/runtime/engine/fake_vision.h -- The fake model with eyes. A soft token is four patches of
 * 2 x 2 pixels; it stands for the token that its pixels and the place of its first patch add up
 * to, so the text after a prompt is right where every row of the cache is.
 *
 * Checks   Where items begin, and what lies behind the last, is counted in fake_faults. */
#ifndef BURIN_TEST_FAKE_VISION_H
#define BURIN_TEST_FAKE_VISION_H

#include "runtime/media/patches.h"
#include "tests/runtime/engine/fake_model.h"

enum { FAKE_PATCHES = 4, FAKE_PATCH_BYTES = 12, FAKE_LARGEST = 6 };

static int fake_encoded; /* soft tokens of all runs so far */
static int fake_encoder_runs;
static int fake_most_soft; /* of a run */

static int32_t fake_soft(const uint8_t *pixels, int column, int row)
{
    int sum = column + 5 * row;
    for (int i = 0; i < FAKE_PATCHES * FAKE_PATCH_BYTES; i++)
        sum += pixels[i];
    return sum % FAKE_NAN;
}

static void fake_encode(const struct burin_team *team, const struct burin_call *call)
{
    const uint8_t *pixels = call->inputs[0];
    const int32_t *positions = call->inputs[1];
    const int32_t *item_begin = call->inputs[2];
    const int n_soft = call->n[BURIN_SOFT];
    if (team->thread)
        return;
    fake_faults += item_begin[0] != 0 || item_begin[n_soft] != n_soft * FAKE_PATCHES;
    fake_encoder_runs++;
    fake_encoded += n_soft;
    fake_most_soft = n_soft > fake_most_soft ? n_soft : fake_most_soft;
    memset(call->arena, 0xaa, (size_t)n_soft * 64); /* the whole arena is ours */
    float *soft = (float *)(void *)call->arena;
    for (int i = 0; i < n_soft; i++) {
        const size_t patch = (size_t)i * FAKE_PATCHES;
        soft[i] = (float)fake_soft(
                pixels + patch * FAKE_PATCH_BYTES, positions[2 * patch],
                positions[2 * patch + 1]);
    }
}

#define SOFT_TIMES(n)                                                                      \
    {                                                                                      \
        .slope = CONSTANT(n), .extent = BURIN_SOFT                                         \
    }

static const struct burin_input fake_vision_inputs[] = {
    { "pixels",
      BURIN_U8,
      2,
      { SOFT_TIMES(FAKE_PATCHES), { .fixed = CONSTANT(FAKE_PATCH_BYTES) } } },
    { "pixel_positions",
      BURIN_I32,
      2,
      { SOFT_TIMES(FAKE_PATCHES), { .fixed = CONSTANT(2) } } },
    { "item_begin",
      BURIN_I32,
      1,
      { { .fixed = CONSTANT(1), .slope = CONSTANT(1), .extent = BURIN_SOFT } } },
};
static const struct burin_output fake_soft_tokens[] = {
    { .name = "result",
      .dtype = BURIN_F32,
      .n_dims = 2,
      .dims = { SOFT_TIMES(1), { .fixed = CONSTANT(1) } },
      .phase = 1 },
};
static const struct burin_chunk_cost fake_vision_costs[] = {
    { "carried", { .extent = BURIN_SOFT }, 1 },
    { "soft", { .slope = CONSTANT(64), .extent = BURIN_SOFT }, 1 },
};
static burin_run *const fake_vision_run[] = { fake_encode };

/* Its programs, run on a CPU or enqueued on a GPU (fake_gpu.h). */
/* clang-format off */
#define FAKE_SEEING_PROGRAMS(how, steps, encodes)                                          \
    { { .name = "step",                                                                    \
        .extent = BURIN_SEQUENCES,                                                         \
        .n_inputs = SOFT_ROWS + 1,                                                         \
        .inputs = fake_inputs,                                                             \
        .n_outputs = 1,                                                                    \
        .outputs = fake_outputs,                                                           \
        .n_carried = 1,                                                                    \
        .n_costs = 3,                                                                      \
        .costs = fake_costs,                                                               \
        .graph = { .kernel_nodes = 2 },                                                    \
        .how = steps },                                                                    \
      { .name = "encode_image",                                                            \
        .extent = BURIN_SOFT,                                                              \
        .smallest_item = 1,                                                                \
        .largest_item = FAKE_LARGEST,                                                      \
        .n_inputs = 3,                                                                     \
        .inputs = fake_vision_inputs,                                                      \
        .n_outputs = 1,                                                                    \
        .outputs = fake_soft_tokens,                                                       \
        .n_carried = 1,                                                                    \
        .n_costs = 2,                                                                      \
        .costs = fake_vision_costs,                                                        \
        .graph = { .kernel_nodes = 1 },                                                    \
        .how = encodes } }
/* clang-format on */

static const struct burin_program fake_seeing_programs[] =
        FAKE_SEEING_PROGRAMS(run, fake_run, fake_vision_run);
static const struct burin_family fake_seeing_families[] = {
    { .name = "portable",
      .n_kv = 1,
      .kv = fake_kv,
      .n_programs = 2,
      .programs = fake_seeing_programs },
};
static const struct burin_model fake_seeing_model = {
    .name = "fake",
    .architecture = "fake",
    .variant = "fake",
    .recipe = "none",
    .n_vocab = FAKE_VOCAB,
    .n_ctx = FAKE_CONTEXT,
    .n_families = 1,
    .families = fake_seeing_families,
};

#endif
