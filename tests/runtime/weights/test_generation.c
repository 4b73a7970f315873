/* runtime/weights/generation.h: what generation_config.json and a GGUF file say of stops and of
 * sampling. */
#include "runtime/weights/generation.h"
#include "tests/runtime/weights/files.h"
#include "tests/support/test.h"

#include <math.h>
#include <string.h>

static struct burin_error err;
static struct burin_generation generation;

static enum burin_status read_json(const char *json)
{
    char copy[512];
    strcpy(copy, json);
    err = (struct burin_error){ 0 };
    return burin_generation_from_json(&generation, copy, strlen(copy), &err);
}

SPEC(gemma_4_is_drawn_as_its_file_says_and_has_three_stops)
{
    assert_int_equal(
            read_json(
                    "{\"bos_token_id\":2,\"do_sample\":true,\"eos_token_id\":[1,106,50],"
                    "\"pad_token_id\":0,\"temperature\":1.0,\"top_k\":64,\"top_p\":0.95}"),
            BURIN_OK);
    assert_int_equal(generation.n_stops, 3);
    assert_int_equal(generation.stops[0], 1);
    assert_int_equal(generation.stops[1], 106);
    assert_int_equal(generation.stops[2], 50);
    assert_true(generation.draws);
    assert_true(generation.temperature == 1 && generation.top_k == 64);
    assert_true(generation.top_p == 0.95);
    assert_true(isnan(generation.min_p));
}

SPEC(what_is_not_said_is_left_open)
{
    assert_int_equal(read_json("{\"eos_token_id\":2,\"top_k\":null}"), BURIN_OK);
    assert_int_equal(generation.n_stops, 1);
    assert_int_equal(generation.stops[0], 2);
    assert_false(generation.draws);
    assert_false(generation.is_greedy);
    assert_true(isnan(generation.temperature) && isnan(generation.top_k));
    assert_int_equal(read_json("{\"do_sample\":false}"), BURIN_OK);
    assert_true(generation.is_greedy);
    assert_int_equal(generation.n_stops, 0);
}

SPEC(what_makes_no_sense_is_refused_by_its_key)
{
    static const char *const rows[][2] = {
        { "{\"temperature\":\"hot\"}", "\"temperature\" is" },
        { "{\"top_p\":-1}", "\"top_p\" is \"-1\"" },
        { "{\"top_k\":1e300}", "\"top_k\" is" },
        { "{\"eos_token_id\":\"x\"}", "generation_config.json" },
        { "{", "generation_config.json" },
        { "[]", "generation_config.json" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (read_json(rows[i][0]) != BURIN_EFORMAT || !strstr(err.message, rows[i][1]))
            fail_msg("%s: \"%s\" lacks \"%s\"", rows[i][0], err.message, rows[i][1]);
        assert_true(isnan(generation.temperature));
        assert_int_equal(generation.n_stops, 0);
    }
}

SPEC(a_folder_without_the_file_says_nothing)
{
    struct burin_checkpoint checkpoint = { .container = BURIN_SAFETENSORS,
                                           .folder = "no/such/folder" };
    assert_int_equal(burin_generation_read(&generation, &checkpoint, &err), BURIN_OK);
    assert_int_equal(generation.n_stops, 0);
    assert_true(isnan(generation.top_p));
}

static void add_key(struct bytes *b, const char *key, uint32_t type)
{
    add_text(b, key);
    add_u32(b, type);
}

SPEC(a_gguf_file_says_it_in_its_keys)
{
    static struct bytes b;
    struct burin_checkpoint checkpoint;
    gguf_begin(&b, 0, 4);
    add_key(&b, "general.architecture", BURIN_GGUF_TEXT);
    add_text(&b, "gemma4");
    add_key(&b, "tokenizer.ggml.eos_token_id", BURIN_GGUF_U32);
    add_u32(&b, 106);
    add_key(&b, "tokenizer.ggml.eot_token_id", BURIN_GGUF_U32);
    add_u32(&b, 50);
    add_key(&b, "general.sampling.top_k", BURIN_GGUF_I32);
    add_u32(&b, 64);
    pad_to(&b, 32);
    if (burin_checkpoint_open(&checkpoint, write_file("g.gguf", b.at, b.used), &err))
        fail_msg("%s", err.message);
    assert_int_equal(burin_generation_read(&generation, &checkpoint, &err), BURIN_OK);
    burin_checkpoint_close(&checkpoint);
    assert_int_equal(generation.n_stops, 2);
    assert_int_equal(generation.stops[0], 106);
    assert_int_equal(generation.stops[1], 50);
    assert_true(generation.top_k == 64);
    assert_true(isnan(generation.temperature));
}
