/* runtime/weights/bind.h: a checkpoint is the described model, or all of what differs is said. */
#include "runtime/weights/bind.h"

#include "tests/runtime/weights/tiny.h"

enum { N_TENSORS = sizeof tiny_tensors / sizeof tiny_tensors[0] };

static struct burin_checkpoint checkpoint;
static const struct burin_tensor *const *bound;
static struct burin_error err;

static enum burin_status bind(const char *path)
{
    burin_checkpoint_close(&checkpoint);
    err = (struct burin_error){ 0 };
    assert_int_equal(burin_checkpoint_open(&checkpoint, path, &err), BURIN_OK);
    return burin_bind(&tiny, &checkpoint, &bound, &err);
}

/* The tiny file with one tensor replaced. */
static enum burin_status bind_with(size_t index, struct tiny_tensor tensor)
{
    struct tiny_tensor tensors[N_TENSORS];
    memcpy(tensors, tiny_tensors, sizeof tensors);
    tensors[index] = tensor;
    return bind(write_tensors("x.gguf", tensors, N_TENSORS));
}

static void assert_says(const char *part)
{
    if (!strstr(err.message, part))
        fail_msg("lacks \"%s\":\n%s", part, err.message);
}

SPEC(each_weight_gets_its_tensor)
{
    assert_int_equal(bind(write_tiny("tiny.gguf")), BURIN_OK);
    for (int i = 0; i < N_WEIGHTS; i++)
        assert_true(burin_span_is(bound[i]->name, tiny_weights[i].names[BURIN_GGUF]));
}

SPEC(a_vector_may_be_narrower_in_the_file_and_a_matrix_may_not)
{
    static const struct tiny_tensor f16 = { "output_norm.weight", 1, { D, 0 }, 1, D * 2 };
    assert_int_equal(bind_with(5, f16), BURIN_OK);
    static const struct tiny_tensor bf16 = { "output_norm.weight", 2, { D, 1 }, 30, D * 2 };
    assert_int_equal(bind_with(5, bf16), BURIN_OK);
    static const struct tiny_tensor q8 = { "output_norm.weight", 1, { D, 0 }, Q8_0_ID, 68 };
    assert_int_equal(bind_with(5, q8), BURIN_EMISMATCH);
}

SPEC(every_mismatch_is_listed_at_once)
{
    static const struct tiny_tensor tensors[] = {
        { "token_embd.weight", 2, { D, N_VOCAB + 1 }, Q8_0_ID, (N_VOCAB + 1) * 68 },
        { "blk.0.attn_q.weight", 2, { D, D }, Q8_0_ID, D * 68 },
        { "blk.1.attn_q.weight", 2, { D, D }, Q8_0_ID, D * 68 },
        { "blk.0.attn_norm.weight", 1, { D, 0 }, 0, D * 4 },
        { "output_norm.weight", 1, { D, 0 }, 0, D * 4 },
        { "blk.2.attn_q.weight", 2, { D, D }, Q8_0_ID, D * 68 },
    };
    assert_int_equal(bind(write_tensors("x.gguf", tensors, 6)), BURIN_EMISMATCH);
    assert_says("x.gguf does not hold llama-tiny-q4_1:\n");
    assert_says("  token_embd.weight is (71, 64), wanted is (70, 64)\n");
    assert_says("  blk.0.attn_q.weight and 1 more like it are q8_0, wanted is q4_1\n");
    assert_says("  blk.1.attn_norm.weight is missing\n");
    assert_says("  not in the model: \"blk.2.attn_q.weight\"\n");
}

SPEC(a_file_of_the_same_shapes_and_another_theta_is_refused_naming_both)
{
    tiny_theta = 10000;
    assert_int_equal(bind(write_tiny("x.gguf")), BURIN_EMISMATCH);
    assert_says("x.gguf does not hold llama-tiny-q4_1:\n");
    assert_says("  llama.rope.freq_base is 10000, wanted is 100000\n");
    assert_says("gen --model llama.lua --variant smollm2-360m --quant");

    /* With tensors that don't fit, in one list. */
    static const struct tiny_tensor q8 = {
        "blk.0.attn_q.weight", 2, { D, D }, Q8_0_ID, D * 68
    };
    assert_int_equal(bind_with(1, q8), BURIN_EMISMATCH);
    assert_says("  llama.rope.freq_base is 10000, wanted is 100000\n");
    assert_says("  blk.0.attn_q.weight is q8_0, wanted is q4_1\n");
    tiny_theta = 100000;
}

SPEC(a_file_of_this_variant_with_another_theta_is_not_sent_back_to_the_same_gen_line)
{
    static struct burin_model same;
    same = tiny;
    same.variant = "smollm2-360m";
    tiny_theta = 10000;
    burin_checkpoint_close(&checkpoint);
    assert_int_equal(burin_checkpoint_open(&checkpoint, write_tiny("x.gguf"), &err), 0);
    assert_int_equal(burin_bind(&same, &checkpoint, &bound, &err), BURIN_EMISMATCH);
    assert_says("What fits the file: a variant in models/llama.lua that has what it says");
    tiny_theta = 100000;
}

SPEC(the_message_ends_with_the_gen_line_that_fits_the_file)
{
    static const struct tiny_tensor q8[] = {
        { "token_embd.weight", 2, { D, N_VOCAB }, Q8_0_ID, N_VOCAB * 68 },
        { "blk.0.attn_q.weight", 2, { D, D }, Q8_0_ID, D * 68 },
        { "blk.0.attn_norm.weight", 1, { D, 0 }, 0, D * 4 },
        { "blk.1.attn_norm.weight", 1, { D, 0 }, 0, D * 4 },
        { "blk.1.attn_q.weight", 2, { D, D }, Q8_0_ID, D * 68 },
        { "output_norm.weight", 1, { D, 0 }, 0, D * 4 },
    };
    assert_int_equal(bind(write_tensors("x.gguf", q8, 6)), BURIN_EMISMATCH);
    assert_says("\nWhat fits the file: gen --model llama.lua --variant tiny --quant q8_0");

    /* Of other sizes: the file's own names for itself. */
    assert_int_equal(bind(write_tensors("x.gguf", q8, 4)), BURIN_EMISMATCH);
    assert_says("gen --model llama.lua --variant smollm2-360m --quant q8_0");
}

SPEC(a_transposed_matrix_is_told_and_no_other_binary_is_proposed)
{
    static const struct tiny_tensor embed = {
        "token_embd.weight", 2, { N_VOCAB, D }, 0, N_VOCAB * D * 4
    };
    assert_int_equal(bind_with(0, embed), BURIN_EMISMATCH);
    assert_says("token_embd.weight is (64, 70), wanted is (70, 64): it lies transposed\n");
    assert_says("\nThe file is of this model, and incomplete or changed");
    assert_null(strstr(err.message, "gen --model"));
}

SPEC(a_file_that_calls_itself_this_model_and_lacks_a_tensor_is_told_to_be_incomplete)
{
    struct burin_model named = tiny;
    named.variant = "smollm2-360m";
    const char *path = write_tensors("x.gguf", tiny_tensors, N_TENSORS - 1);
    burin_checkpoint_close(&checkpoint);
    assert_int_equal(burin_checkpoint_open(&checkpoint, path, &err), BURIN_OK);

    assert_int_equal(burin_bind(&named, &checkpoint, &bound, &err), BURIN_EMISMATCH);

    assert_says("  output_norm.weight is missing\n");
    assert_says("\nThe file is of this model, and incomplete or changed");
}

SPEC(a_hole_in_a_layer_is_a_damage_where_the_file_has_no_name_for_itself)
{
    static struct bytes b;
    make_folder("hole");
    safetensors_of(
            &b,
            "{\"model.layers.0.input_layernorm.weight\":{\"dtype\":\"F32\",\"shape\":[64],"
            "\"data_offsets\":[0,256]},"
            "\"model.layers.1.input_layernorm.weight\":{\"dtype\":\"F32\",\"shape\":[64],"
            "\"data_offsets\":[256,512]},"
            "\"model.layers.1.self_attn.q_proj.weight\":{\"dtype\":\"F32\",\"shape\":[64,"
            "64],"
            "\"data_offsets\":[512,16896]}}",
            16896);
    write_file("hole/model.safetensors", b.at, b.used);

    assert_int_equal(bind(in_folder("hole")), BURIN_EMISMATCH);

    assert_says("layers.0.self_attn.q_proj.weight is missing\n");
    assert_says("\nThe file is of this model, and incomplete or changed");
}

SPEC(a_mixture_that_no_recipe_makes_is_read_off_the_file)
{
    static const struct tiny_tensor q4_embed = {
        "token_embd.weight", 2, { D, N_VOCAB }, Q4_1_ID, N_VOCAB * 40
    };
    assert_int_equal(bind_with(0, q4_embed), BURIN_EMISMATCH);
    assert_says(
            "gen --model llama.lua --variant tiny --quant auto --weights /tmp/burin-test-");
}

SPEC(a_format_that_we_do_not_compute_with_is_named)
{
    static const struct tiny_tensor q5[] = {
        { "token_embd.weight", 2, { D, N_VOCAB }, 6, N_VOCAB * 44 },
    };
    assert_int_equal(bind(write_tensors("x.gguf", q5, 1)), BURIN_EMISMATCH);
    assert_says("token_embd.weight is q5_0, wanted is q8_0");
    assert_says("Burin does not compute with q5_0; it does with f32, f16, bf16, q4_0");
}

SPEC(what_the_model_does_not_use_is_a_mismatch_unless_it_is_a_copy_or_computed)
{
    struct tiny_tensor tensors[N_TENSORS + 2];
    memcpy(tensors, tiny_tensors, sizeof tiny_tensors);
    tensors[N_TENSORS] =
            (struct tiny_tensor){ "rope_freqs.weight", 1, { 16, 0 }, 0, 16 * 4 };
    assert_int_equal(bind(write_tensors("x.gguf", tensors, N_TENSORS + 1)), BURIN_OK);

    /* An untied head: same shape and format as the embedding, other bytes. */
    tensors[N_TENSORS + 1] = (struct tiny_tensor){
        "output.weight", 2, { D, N_VOCAB }, Q8_0_ID, N_VOCAB * 68
    };
    const char *path = write_tensors("x.gguf", tensors, N_TENSORS + 2);
    assert_int_equal(bind(path), BURIN_EMISMATCH);
    assert_says("not in the model: \"output.weight\"");

    /* Tied, and stored twice. */
    const struct burin_tensor *head = burin_checkpoint_find(&checkpoint, "output.weight");
    FILE *file = fopen(path, "r+b");
    fseek(file, (long)head->offset, SEEK_SET);
    for (size_t i = 0; i < head->bytes; i++)
        fputc(tiny_byte(0, i), file);
    fclose(file);
    assert_int_equal(bind(path), BURIN_OK);
}

SPEC(a_hundred_mismatches_fit_into_the_message_and_the_gen_line_stays)
{
    enum { MANY = 120 };
    static struct burin_weight weights[MANY];
    static char names[MANY][200];
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "a.rather.long.name.%0150d.weight", i);
        weights[i] = (struct burin_weight){
            .role = names[i], .names = { names[i], names[i] }, .n_rows = 1, .n_cols = 8
        };
    }
    const struct burin_model model = { .name = "many",
                                       .architecture = "llama",
                                       .variant = "v",
                                       .recipe = "f32",
                                       .n_weights = MANY,
                                       .weights = weights };
    burin_checkpoint_close(&checkpoint);
    assert_int_equal(burin_checkpoint_open(&checkpoint, write_tiny("x.gguf"), &err), 0);
    assert_int_equal(burin_bind(&model, &checkpoint, &bound, &err), BURIN_EMISMATCH);
    assert_says(" more\n");
    assert_says("not in the model: ");
    assert_says("--quant q4_1");
    burin_checkpoint_close(&checkpoint);
}

SPEC(safetensors_are_named_by_their_config)
{
    static struct bytes b;
    static const char config[] = "{\"architectures\":[\"X\"],\"model_type\":\"gemma3\"}";
    make_folder("hub");
    safetensors_of(
            &b, "{\"m\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[0,12]}}", 12);
    write_file("hub/model.safetensors", b.at, b.used);
    write_file("hub/config.json", config, strlen(config));
    assert_int_equal(bind(in_folder("hub")), BURIN_EMISMATCH);
    assert_says("  model.norm.weight is missing\n");
    assert_says("gen --model gemma3.lua --config ");
    assert_says("hub/config.json --quant bf16");
    burin_checkpoint_close(&checkpoint);
}

SPEC(foreign_names_do_not_reach_the_gen_line)
{
    static struct bytes b;
    static const char config[] = "{\"model_type\":\"x; rm -rf /\"}";
    make_folder("evil");
    safetensors_of(
            &b, "{\"m\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[0,12]}}", 12);
    write_file("evil/model.safetensors", b.at, b.used);
    write_file("evil/config.json", config, strlen(config));
    assert_int_equal(bind(in_folder("evil")), BURIN_EMISMATCH);
    assert_null(strstr(err.message, "rm -rf"));
    assert_says("gen --model llama.lua --variant NAME");
    burin_checkpoint_close(&checkpoint);
}
