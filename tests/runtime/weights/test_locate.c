/* runtime/weights/locate.h: where weights are looked for, and what is said when there are none. */
#include "runtime/weights/locate.h"

#include "tests/runtime/weights/tiny.h"

static struct burin_checkpoint checkpoint;
static const struct burin_tensor *const *bound;
static struct burin_error err;

/* A current folder, a binary's folder, a home, and nothing in the environment but it. */
static void a_clean_place(const char *name)
{
    static const char *const variables[] = {
        "BURIN_MODEL", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME",
    };
    char path[64];
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        unsetenv(variables[i]);
    snprintf(path, sizeof path, "%s/home", name);
    setenv("HOME", make_folder(path), 1);
    snprintf(path, sizeof path, "%s/bin", name);
    make_folder(path);
    snprintf(path, sizeof path, "%s/here", name);
    assert_int_equal(chdir(make_folder(path)), 0);
}

static enum burin_status locate(const char *given, const char *binary)
{
    burin_checkpoint_close(&checkpoint);
    err = (struct burin_error){ 0 };
    return burin_locate(&tiny, given, binary, &checkpoint, &bound, &err);
}

static void assert_found(const char *binary, const char *path)
{
    if (locate(NULL, binary) != BURIN_OK)
        fail_msg("%s", err.message);
    if (strstr(checkpoint.path, path) == NULL)
        fail_msg("%s, not %s", checkpoint.path, path);
    assert_true(burin_span_is(bound[0]->name, "token_embd.weight"));
    burin_checkpoint_close(&checkpoint);
}

static void assert_says(const char *part)
{
    if (!strstr(err.message, part))
        fail_msg("lacks \"%s\":\n%s", part, err.message);
}

SPEC(a_given_path_is_the_only_candidate)
{
    a_clean_place("given");
    write_tiny("given/bin/tiny.gguf");
    assert_int_equal(locate("/nowhere.gguf", in_folder("given/bin")), BURIN_EMISSING);
    assert_string_equal(err.message, "/nowhere.gguf: No such file or directory");
    assert_int_equal(locate(in_folder("given/bin"), NULL), BURIN_OK);
    burin_checkpoint_close(&checkpoint);

    setenv("BURIN_MODEL", "/elsewhere.gguf", 1);
    assert_int_equal(locate(NULL, in_folder("given/bin")), BURIN_EMISSING);
    assert_says("/elsewhere.gguf");
    assert_int_equal(locate(in_folder("given/bin/tiny.gguf"), NULL), BURIN_OK);
    burin_checkpoint_close(&checkpoint);
    setenv("BURIN_MODEL", "", 1); /* as if it was not set */
    assert_found(in_folder("given/bin"), "given/bin/tiny.gguf");
}

SPEC(places_are_searched_in_order)
{
    a_clean_place("order");
    const char *binary = in_folder("order/bin");
    make_folder("order/home/.cache/huggingface/hub/models--a--b/snapshots/0123");
    write_tiny("order/home/.cache/huggingface/hub/models--a--b/snapshots/0123/t.gguf");
    assert_found(binary, "snapshots/0123/t.gguf");
    make_folder("order/here/build/weights");
    write_tiny("order/here/build/weights/t.gguf");
    assert_found(binary, "build/weights/t.gguf");
    make_folder("order/weights");
    write_tiny("order/weights/t.gguf");
    assert_found(in_folder("order/bin"), "order/bin/../weights/t.gguf");
    write_tiny("order/bin/t.gguf");
    assert_found(in_folder("order/bin"), "order/bin/t.gguf");
}

SPEC(the_cache_is_where_its_variables_say)
{
    a_clean_place("cache");
    make_folder("cache/x/huggingface/hub/models--a--b/snapshots/1");
    write_tiny("cache/x/huggingface/hub/models--a--b/snapshots/1/t.gguf");
    setenv("XDG_CACHE_HOME", in_folder("cache/x"), 1);
    assert_found(in_folder("cache/bin"), "cache/x/");
    make_folder("cache/h/hub/models--a--b/snapshots/1");
    write_tiny("cache/h/hub/models--a--b/snapshots/1/t.gguf");
    setenv("HF_HOME", in_folder("cache/h"), 1);
    assert_found(in_folder("cache/bin"), "cache/h/hub/");
    make_folder("cache/c/models--a--b/snapshots/1");
    write_tiny("cache/c/models--a--b/snapshots/1/t.gguf");
    setenv("HF_HUB_CACHE", in_folder("cache/c"), 1);
    assert_found(in_folder("cache/bin"), "cache/c/models");
}

SPEC(what_does_not_fit_is_passed_over)
{
    a_clean_place("other");
    make_folder("other/here/build/weights/deeper");
    static const struct tiny_tensor q8[] = {
        { "token_embd.weight", 2, { D, N_VOCAB }, Q8_0_ID, N_VOCAB * 68 },
    };
    write_tensors("other/here/build/weights/a.gguf", q8, 1);
    write_file("other/here/build/weights/b.gguf", "<html>", 6);
    write_tiny("other/here/build/weights/deeper/c.gguf");
    assert_found(in_folder("other/bin"), "build/weights/deeper/c.gguf");
}

SPEC(when_there_are_none_the_places_the_refused_and_the_way_out_are_said)
{
    a_clean_place("none");
    make_folder("none/here/build/weights");
    static const struct tiny_tensor q5[] = {
        { "token_embd.weight", 2, { D, N_VOCAB }, 6, N_VOCAB * 44 },
    };
    write_tensors("none/here/build/weights/a.gguf", q5, 1);
    write_file("none/here/build/weights/b.gguf", "<html>", 6);
    assert_int_equal(locate(NULL, in_folder("none/bin")), BURIN_EMISSING);
    assert_int_equal(burin_exit_code(err.status), 4);
    assert_says("no weights for llama-tiny-q4_1. Looked in\n  beside the binary: ");
    assert_says("none/bin\n");
    assert_says("/../weights (not there)\n");
    assert_says("  the current folder's: build/weights\n");
    assert_says("huggingface/hub (not there)\n");
    assert_says("Found, but of no use:\n");
    assert_says("  build/weights/a.gguf: token_embd.weight is q5_0, wanted is q8_0\n");
    assert_says("  build/weights/b.gguf has 6 bytes, a safetensors file has 8 at least\n");
    assert_says("Get them with: tools/demo-weights smollm2-135m\n");
    assert_says("give -m FILE or FOLDER");
}
