/* tests/runtime/weights/tiny.h -- A model of four kinds of weights, and files that hold it.
 *
 * pack() copies rows one behind the other, so the packed arena shows which row went where. */
#ifndef BURIN_TEST_TINY_H
#define BURIN_TEST_TINY_H

#include "runtime/model.h"
#include "tests/runtime/weights/files.h"

enum { N_VOCAB = 70, D = 64, N_HEADS = 2, N_WEIGHTS = 6 };

/* Q4_1 rows of 64 elements have 40 bytes, Q8_0 rows 68. */
#define LAYER(i)                                                                           \
    { "attn_norm",                                                                         \
      "layers",                                                                            \
      i,                                                                                   \
      { "model.layers." #i ".input_layernorm.weight", "blk." #i ".attn_norm.weight" },     \
      1,                                                                                   \
      D,                                                                                   \
      BURIN_FORMAT_F32,                                                                    \
      0,                                                                                   \
      1,                                                                                   \
      { D },                                                                               \
      1,                                                                                   \
      0,                                                                                   \
      0,                                                                                   \
      { NULL } },                                                                          \
    {                                                                                      \
        "wq", "layers", i,                                                                 \
                { "model.layers." #i ".self_attn.q_proj.weight",                           \
                  "blk." #i ".attn_q.weight" },                                            \
                D, D, BURIN_FORMAT_Q4_1, N_HEADS, 2, { D, D }, 0, 0, 0,                    \
        {                                                                                  \
            NULL                                                                           \
        }                                                                                  \
    }

static const struct burin_weight tiny_weights[N_WEIGHTS] = {
    { "embed",
      NULL,
      -1,
      { "model.embed_tokens.weight", "token_embd.weight" },
      N_VOCAB,
      D,
      BURIN_FORMAT_Q8_0,
      0,
      2,
      { N_VOCAB, D },
      0,
      0,
      0,
      { NULL } },
    LAYER(0),
    LAYER(1),
    { "norm",
      NULL,
      -1,
      { "model.norm.weight", "output_norm.weight" },
      1,
      D,
      BURIN_FORMAT_F32,
      0,
      1,
      { D },
      1,
      0,
      0,
      { NULL } },
};

static void tiny_copy(uint8_t *tile, const uint8_t *const *rows, int n_rows, size_t bytes)
{
    memset(tile, 0, BURIN_TILE_ROWS * bytes);
    for (int i = 0; i < n_rows; i++)
        memcpy(tile + (size_t)i * bytes, rows[i], bytes);
}

static void pack_q8_0(uint8_t *tile, const uint8_t *const *rows, int n_rows, int64_t n_cols)
{
    tiny_copy(tile, rows, n_rows, (size_t)n_cols / 32 * 34);
}

static void pack_q4_1(uint8_t *tile, const uint8_t *const *rows, int n_rows, int64_t n_cols)
{
    tiny_copy(tile, rows, n_rows, (size_t)n_cols / 32 * 20);
}

static void pack_vector(
        uint8_t *tile, const uint8_t *const *rows, int n_rows, int64_t n_cols)
{
    assert_int_equal(n_rows, 1);
    memcpy(tile, rows[0], (size_t)n_cols * 4);
}

/* Three tiles of embed, then a layer: its norm and two tiles of wq with a gap of a tile between
 * them, as interleaved weights have. */
enum {
    Q8_TILE = 32 * 68,
    Q4_TILE = 32 * 40,
    VECTOR = 64 * 4,
    LAYER_0 = 3 * Q8_TILE,
    LAYER_1 = LAYER_0 + VECTOR + 4 * Q4_TILE,
    NORM = LAYER_1 + VECTOR + 4 * Q4_TILE,
    WEIGHTS_BYTES = NORM + VECTOR,
};
static const struct burin_packed tiny_packed[N_WEIGHTS] = {
    { 0, Q8_TILE, Q8_TILE, pack_q8_0 },
    { LAYER_0, VECTOR, VECTOR, pack_vector },
    { LAYER_0 + VECTOR, Q4_TILE, 2 * Q4_TILE, pack_q4_1 },
    { LAYER_1, VECTOR, VECTOR, pack_vector },
    { LAYER_1 + VECTOR, Q4_TILE, 2 * Q4_TILE, pack_q4_1 },
    { NORM, VECTOR, VECTOR, pack_vector },
};

static const struct burin_family tiny_family = {
    .name = "portable",
    .weights_bytes = WEIGHTS_BYTES,
    .packed = tiny_packed,
};

static const struct burin_hyperparameter tiny_hyperparameters[] = {
    { BURIN_GGUF, 100000, NULL, ".rope.freq_base" },
    { BURIN_SAFETENSORS, 100000, NULL, "rope_theta rope_parameters.rope_theta" },
};

UNUSED static const struct burin_model tiny = {
    .name = "llama-tiny-q4_1",
    .architecture = "llama",
    .variant = "tiny",
    .recipe = "q4_1",
    .demo_weights = "smollm2-135m",
    .n_layers = 2,
    .n_vocab = N_VOCAB,
    .n_hyperparameters = 2,
    .hyperparameters = tiny_hyperparameters,
    .n_weights = N_WEIGHTS,
    .weights = tiny_weights,
    .n_families = 1,
    .families = &tiny_family,
};

/* ---- A GGUF file of it ----------------------------------------------------------- */

enum { Q4_1_ID = 3, Q8_0_ID = 8 };

/* A tensor with data made from its number, so that each row of each is different. */
struct tiny_tensor {
    const char *name;
    uint32_t n_dims;
    uint64_t dims[2]; /* innermost first */
    uint32_t type;
    size_t bytes;
};

static const struct tiny_tensor tiny_tensors[] = {
    { "token_embd.weight", 2, { D, N_VOCAB }, Q8_0_ID, N_VOCAB * 68 },
    { "blk.0.attn_q.weight", 2, { D, D }, Q4_1_ID, D * 40 },
    { "blk.0.attn_norm.weight", 1, { D, 0 }, 0, D * 4 },
    { "blk.1.attn_norm.weight", 1, { D, 0 }, 0, D * 4 },
    { "blk.1.attn_q.weight", 2, { D, D }, Q4_1_ID, D * 40 },
    { "output_norm.weight", 1, { D, 0 }, 0, D * 4 },
};

static unsigned char tiny_byte(size_t tensor, size_t i)
{
    return (unsigned char)((i * 2654435761u + tensor * 97 + i / 251) >> 3);
}

/* What the file says of itself; a test changes it. */
static float tiny_theta = 100000;

UNUSED static const char *write_tensors(
        const char *name, const struct tiny_tensor *tensors, size_t n)
{
    static struct bytes b;
    size_t offset = 0;
    gguf_begin(&b, n, 4);
    add_text(&b, "general.architecture");
    add_u32(&b, 8);
    add_text(&b, "llama");
    add_text(&b, "general.basename");
    add_u32(&b, 8);
    add_text(&b, "SmolLM2");
    add_text(&b, "general.size_label");
    add_u32(&b, 8);
    add_text(&b, "360M");
    add_text(&b, "llama.rope.freq_base");
    add_u32(&b, 6);
    add(&b, &tiny_theta, sizeof tiny_theta);
    for (size_t i = 0; i < n; i++) {
        gguf_tensor(
                &b, tensors[i].name, tensors[i].n_dims, tensors[i].dims, tensors[i].type,
                offset);
        offset += (tensors[i].bytes + 31) / 32 * 32;
    }
    for (size_t i = 0; i < n; i++) {
        pad_to(&b, 32);
        for (size_t at = 0; at < tensors[i].bytes; at++)
            add(&b, &(unsigned char){ tiny_byte(i, at) }, 1);
    }
    return write_file(name, b.at, b.used);
}

UNUSED static const char *write_tiny(const char *name)
{
    return write_tensors(name, tiny_tensors, sizeof tiny_tensors / sizeof tiny_tensors[0]);
}

#endif
