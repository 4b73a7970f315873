/* runtime/weights/hyperparameters.h: what a file says of itself is what the model computes, or
 * each key that isn't is named with what was found. */
#include "runtime/weights/hyperparameters.h"

#include "tests/runtime/weights/files.h"

static const struct burin_hyperparameter rows[] = {
    { BURIN_GGUF, 0, "qwen3 qwen35", "general.architecture" },
    { BURIN_GGUF, 3, NULL, ".block_count" },
    { BURIN_GGUF, 2, NULL, ".attention.head_count_kv" },
    { BURIN_GGUF, 1e-5, NULL, ".attention.layer_norm_rms_epsilon" },
    { BURIN_GGUF, 0, "none", ".rope.scaling.type" },
    { BURIN_GGUF, 16, NULL, ".attention.key_length .attention.value_length" },
    { BURIN_GGUF, 8, NULL, "rope_freqs.weight" },
    { BURIN_SAFETENSORS, 0, "llama llama_text", "model_type" },
    { BURIN_SAFETENSORS, 3, NULL, "num_hidden_layers" },
    { BURIN_SAFETENSORS, 1e-5, NULL, "rms_norm_eps" },
    { BURIN_SAFETENSORS, 1, NULL, "attention_bias" },
    { BURIN_SAFETENSORS, 10000, NULL, "rope_theta rope_parameters.rope_theta" },
    { BURIN_SAFETENSORS, 0, "default null", "rope_scaling rope_scaling.type" },
    { BURIN_SAFETENSORS, 160, NULL, "intermediate_size" },
};

static const struct burin_model model = {
    .name = "three",
    .n_hyperparameters = sizeof rows / sizeof rows[0],
    .hyperparameters = rows,
};

static struct burin_self_report report;
static struct burin_error err;

static enum burin_status compare(const char *path)
{
    struct burin_checkpoint checkpoint;
    err = (struct burin_error){ 0 };
    assert_int_equal(burin_checkpoint_open(&checkpoint, path, &err), BURIN_OK);
    const enum burin_status status =
            burin_hyperparameters_compare(&model, &checkpoint, &report, &err);
    burin_checkpoint_close(&checkpoint);
    return status;
}

static void assert_found(size_t i, const char *key, const char *found)
{
    assert_true(i < report.n && i < BURIN_MAX_DISAGREEMENTS);
    assert_string_equal(report.rows[i].key, key);
    assert_string_equal(report.rows[i].found, found);
}

/* ---- GGUF ------------------------------------------------------------------------ */

static struct bytes file;

static void begin_gguf(uint64_t n_keys, const char *architecture)
{
    gguf_begin(&file, 0, n_keys);
    add_text(&file, "general.architecture");
    add_u32(&file, BURIN_GGUF_TEXT);
    add_text(&file, architecture);
}

static void key_u32(const char *key, uint32_t value)
{
    add_text(&file, key);
    add_u32(&file, BURIN_GGUF_U32);
    add_u32(&file, value);
}

static void key_f32(const char *key, float value)
{
    add_text(&file, key);
    add_u32(&file, BURIN_GGUF_F32);
    add(&file, &value, sizeof value);
}

static void key_text(const char *key, const char *value)
{
    add_text(&file, key);
    add_u32(&file, BURIN_GGUF_TEXT);
    add_text(&file, value);
}

static void key_list(const char *key, const uint32_t *values, size_t n)
{
    add_text(&file, key);
    add_u32(&file, BURIN_GGUF_ARRAY);
    add_u32(&file, BURIN_GGUF_U32);
    add_u64(&file, n);
    for (size_t i = 0; i < n; i++)
        add_u32(&file, values[i]);
}

static enum burin_status compare_gguf(void)
{
    return compare(write_file("x.gguf", file.at, file.used));
}

SPEC(a_gguf_file_that_says_the_same_agrees)
{
    begin_gguf(5, "qwen35");
    key_u32("qwen35.block_count", 3);
    key_f32("qwen35.attention.layer_norm_rms_epsilon", 1e-5f); /* not 1e-5 in double */
    key_text("qwen35.rope.scaling.type", "none");
    key_u32("qwen35.attention.key_length", 16);

    assert_int_equal(compare_gguf(), BURIN_OK);
    assert_int_equal(report.n, 0);
}

SPEC(keys_that_a_file_does_not_have_are_not_compared)
{
    begin_gguf(2, "qwen3");
    key_u32("llama.block_count", 7); /* not this file's architecture */

    assert_int_equal(compare_gguf(), BURIN_OK);
    assert_int_equal(report.n, 0);
}

SPEC(every_key_of_a_gguf_file_that_differs_is_named_with_what_was_found)
{
    begin_gguf(6, "gemma3");
    key_u32("gemma3.block_count", 30);
    key_f32("gemma3.attention.layer_norm_rms_epsilon", 1e-6f);
    key_text("gemma3.rope.scaling.type", "yarn\n");
    key_text("gemma3.attention.key_length", "16");
    key_u32("gemma3.attention.value_length", 32);

    assert_int_equal(compare_gguf(), BURIN_OK);
    assert_int_equal(report.n, 6);
    assert_found(0, "general.architecture", "\"gemma3\"");
    assert_found(1, "gemma3.block_count", "30");
    assert_found(2, "gemma3.attention.layer_norm_rms_epsilon", "1e-06");
    assert_found(3, "gemma3.rope.scaling.type", "\"yarn\\x0a\"");
    assert_found(4, "gemma3.attention.key_length", "\"16\"");
    assert_found(5, "gemma3.attention.value_length", "32");
    assert_ptr_equal(report.rows[1].wanted, &rows[1]);
}

SPEC(a_list_says_a_value_for_each_layer_and_0_where_there_is_none)
{
    static const uint32_t same[] = { 2, 0, 2 };
    begin_gguf(2, "qwen35");
    key_list("qwen35.attention.head_count_kv", same, 3);
    assert_int_equal(compare_gguf(), BURIN_OK);
    assert_int_equal(report.n, 0);

    static const uint32_t other[] = { 2, 4, 2, 4 };
    begin_gguf(2, "qwen35");
    key_list("qwen35.attention.head_count_kv", other, 4);
    assert_int_equal(compare_gguf(), BURIN_OK);
    assert_int_equal(report.n, 1);
    assert_found(0, "qwen35.attention.head_count_kv", "4");
}

/* Llama 3.1's rope scaling in GGUF is a tensor and no key. */
SPEC(the_factors_of_a_rope_scaling_are_known_by_the_largest)
{
    static const float factors[] = { 1, 1, 2.5f, 8, 32 };
    for (size_t n = 4; n <= 5; n++) {
        begin_gguf(1, "qwen3");
        memcpy(file.at + 8, &(uint64_t){ 1 }, 8); /* tensors */
        gguf_tensor(&file, "rope_freqs.weight", 1, (uint64_t[]){ n }, 0, 0);
        pad_to(&file, 32);
        add(&file, factors, n * sizeof factors[0]);
        pad_to(&file, 32);
        assert_int_equal(compare_gguf(), BURIN_OK);
        assert_int_equal(report.n, n - 4);
    }
    assert_found(0, "rope_freqs.weight", "32");
}

SPEC(an_architecture_of_any_length_is_foreign_text)
{
    static char name[1000];
    memset(name, '%', sizeof name - 1);
    begin_gguf(1, name);
    assert_int_equal(compare_gguf(), BURIN_OK);
}

/* ---- config.json ----------------------------------------------------------------- */

static enum burin_status compare_config(const char *text)
{
    make_folder("hub");
    safetensors_of(
            &file, "{\"m\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[0,12]}}",
            12);
    write_file("hub/model.safetensors", file.at, file.used);
    if (text)
        write_file("hub/config.json", text, strlen(text));
    return compare(in_folder("hub"));
}

SPEC(without_a_config_nothing_is_compared)
{
    assert_int_equal(compare_config(NULL), BURIN_OK);
    assert_int_equal(report.n, 0);
    assert_string_equal(report.config, "");
}

SPEC(both_spellings_of_transformers_are_read)
{
    assert_int_equal(
            compare_config("{\"model_type\": \"llama\", \"num_hidden_layers\": 3,"
                           "\"rms_norm_eps\": 1e-05, \"attention_bias\": true,"
                           "\"rope_scaling\": null, \"rope_theta\": 10000.0}"),
            BURIN_OK);
    assert_int_equal(report.n, 0);
    assert_string_equal(report.model_type, "llama");
    assert_non_null(strstr(report.config, "hub/config.json"));

    assert_int_equal(
            compare_config(
                    "{\"rope_parameters\": {\"rope_theta\": 5000, \"x\": [[1], {}]}}"),
            BURIN_OK);
    assert_int_equal(report.n, 1);
    assert_found(0, "rope_parameters.rope_theta", "5000");
}

SPEC(every_key_of_a_config_that_differs_is_named_with_what_was_found)
{
    assert_int_equal(
            compare_config(
                    "{\"num_hidden_layers\": \"3\", \"rms_norm_eps\": 1e-06,"
                    "\"attention_bias\": false, \"rope_scaling\": {\"type\": \"yarn\"},"
                    "\"intermediate_size\": [160, 320]}"),
            BURIN_OK);
    assert_int_equal(report.n, 5);
    assert_found(0, "num_hidden_layers", "\"3\"");
    assert_found(1, "rms_norm_eps", "1e-06");
    assert_found(2, "attention_bias", "0");
    assert_found(3, "rope_scaling.type", "\"yarn\"");
    assert_found(4, "intermediate_size", "320");
}

SPEC(text_config_counts_as_if_it_stood_outside_and_other_parts_do_not)
{
    assert_int_equal(
            compare_config("{\"model_type\": \"llama\","
                           "\"text_config\": {\"model_type\": \"llama_text\","
                           "\"rope_parameters\": {\"rope_theta\": 7}},"
                           "\"vision_config\": {\"num_hidden_layers\": 12}}"),
            BURIN_OK);
    assert_int_equal(report.n, 1);
    assert_found(0, "rope_parameters.rope_theta", "7");
    assert_string_equal(report.model_type, "llama");
}

SPEC(null_is_not_told_where_a_number_is_wanted)
{
    assert_int_equal(compare_config("{\"intermediate_size\": null}"), BURIN_OK);
    assert_int_equal(report.n, 0);
}

SPEC(a_config_that_is_no_json_object_is_refused)
{
    static const char *const broken[] = { "", "[]", "{\"a\": }", "{\"a\": 1} x",
                                          "{\"a\": [1,}" };
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        assert_int_equal(compare_config(broken[i]), BURIN_EFORMAT);
        assert_non_null(strstr(err.message, "hub/config.json"));
    }
}
