/* runtime/weights/gguf.h: what is read, and what is refused with its reason. */
#include "runtime/weights/gguf.h"

#include "tests/runtime/weights/files.h"

#include <sys/resource.h>

static struct bytes file;
static struct burin_gguf gguf;
static struct burin_error err;

static void key(const char *name, uint32_t type)
{
    add_text(&file, name);
    add_u32(&file, type);
}

static void key_u32(const char *name, uint32_t value)
{
    key(name, BURIN_GGUF_U32);
    add_u32(&file, value);
}

/* Two keys, two tensors: a (3, 32) of q4_1 with 60 bytes, b (5) of f32 with 20. */
static void a_small_file(void)
{
    gguf_begin(&file, 2, 2);
    key_u32("llama.block_count", 30);
    key("general.name", BURIN_GGUF_TEXT);
    add_text(&file, "tiny");
    gguf_tensor(&file, "a", 2, (uint64_t[]){ 32, 3 }, 3, 0);
    gguf_tensor(&file, "b", 1, (uint64_t[]){ 5 }, 0, 64);
    pad_to(&file, 32);
    add_zeros(&file, 64 + 20);
}

static enum burin_status open_file(void)
{
    err = (struct burin_error){ 0 };
    return burin_gguf_open(&gguf, write_file("x.gguf", file.at, file.used), &err);
}

static void assert_refused(const char *reason)
{
    const enum burin_status status = open_file();
    if (status != BURIN_EFORMAT || !strstr(err.message, reason))
        fail_msg("status %d, \"%s\" lacks \"%s\"", status, err.message, reason);
    assert_null(gguf.header);
    assert_int_equal(gguf.file.fd, 0);
}

SPEC(tensors_are_found_by_name_with_their_outermost_dimension_first)
{
    a_small_file();
    assert_int_equal(open_file(), BURIN_OK);

    const struct burin_tensor *a = burin_gguf_find(&gguf, burin_span_of("a"));
    const struct burin_tensor *b = burin_gguf_find(&gguf, burin_span_of("b"));
    assert_int_equal(a->n_dims, 2);
    assert_int_equal(a->dims[0], 3);
    assert_int_equal(a->dims[1], 32);
    assert_int_equal(a->bytes, 60);
    assert_int_equal(a->type->format, BURIN_FORMAT_Q4_1);
    assert_int_equal(b->offset, a->offset + 64);
    assert_int_equal(b->bytes, 20);
    assert_int_equal(b->offset + b->bytes, file.used);
    assert_null(burin_gguf_find(&gguf, burin_span_of("c")));
    burin_gguf_close(&gguf);
}

SPEC(a_file_without_keys_and_tensors_is_a_file)
{
    gguf_begin(&file, 0, 0);
    assert_int_equal(open_file(), BURIN_OK);
    assert_int_equal(gguf.n_tensors, 0);
    burin_gguf_close(&gguf);
}

SPEC(version_2_reads_as_version_3)
{
    a_small_file();
    file.at[4] = 2;
    assert_int_equal(open_file(), BURIN_OK);
    burin_gguf_close(&gguf);
}

SPEC(keys_have_types_and_a_missing_key_leaves_the_value_alone)
{
    gguf_begin(&file, 0, 9);
    key("i8", BURIN_GGUF_I8);
    add(&file, "\x80", 1);
    key_u32("u32", 7);
    key("u64", BURIN_GGUF_U64);
    add_u64(&file, 1ull << 40);
    key("i16", BURIN_GGUF_I16);
    add(&file, &(int16_t){ -3 }, 2);
    key("f32", BURIN_GGUF_F32);
    add(&file, &(float){ 1.5f }, 4);
    key("bool", BURIN_GGUF_BOOL);
    add(&file, "\2", 1); /* not 0 is true, as in the reference */
    key("text", BURIN_GGUF_TEXT);
    add_text(&file, "hello");
    key("texts", BURIN_GGUF_ARRAY);
    add_u32(&file, BURIN_GGUF_TEXT);
    add_u64(&file, 3);
    add_text(&file, "x");
    add_text(&file, "");
    add_text(&file, "yz");
    key("ints", BURIN_GGUF_ARRAY);
    add_u32(&file, BURIN_GGUF_I32);
    add_u64(&file, 2);
    add_u32(&file, (uint32_t)-5);
    add_u32(&file, 6);
    assert_int_equal(open_file(), BURIN_OK);

    uint64_t u = 99;
    bool truth = false;
    struct burin_span text;
    struct burin_gguf_array array;
    assert_int_equal(burin_gguf_uint(&gguf, "absent", &u, NULL), BURIN_EMISSING);
    assert_int_equal(u, 99);
    assert_int_equal(burin_gguf_uint(&gguf, "u32", &u, NULL), BURIN_OK);
    assert_int_equal(u, 7);
    assert_int_equal(burin_gguf_uint(&gguf, "u64", &u, NULL), BURIN_OK);
    assert_int_equal(u, 1ull << 40);
    assert_int_equal(burin_gguf_uint(&gguf, "i16", &u, &err), BURIN_EFORMAT);
    assert_non_null(strstr(err.message, "key i16 is -3, at least 0 is wanted"));
    assert_int_equal(burin_gguf_uint(&gguf, "text", &u, &err), BURIN_EFORMAT);
    assert_non_null(strstr(err.message, "key text is of type text, an integer is wanted"));
    assert_int_equal(burin_gguf_uint(&gguf, "i8", &u, &err), BURIN_EFORMAT);
    assert_non_null(strstr(err.message, "key i8 is -128"));
    assert_int_equal(burin_gguf_uint(&gguf, "f32", &u, &err), BURIN_EFORMAT);
    assert_int_equal(burin_gguf_bool(&gguf, "bool", &truth, NULL), BURIN_OK);
    assert_true(truth);
    assert_int_equal(burin_gguf_text(&gguf, "text", &text, NULL), BURIN_OK);
    assert_true(burin_span_is(text, "hello"));
    assert_int_equal(burin_gguf_numbers(&gguf, "texts", &array, NULL), BURIN_EFORMAT);
    assert_int_equal(burin_gguf_texts(&gguf, "texts", &array, NULL), BURIN_OK);
    assert_int_equal(array.count, 3);
    assert_true(burin_span_is(burin_gguf_next_text(&array), "x"));
    assert_true(burin_span_is(burin_gguf_next_text(&array), ""));
    assert_true(burin_span_is(burin_gguf_next_text(&array), "yz"));
    assert_int_equal(burin_gguf_numbers(&gguf, "ints", &array, NULL), BURIN_OK);
    assert_true(burin_gguf_element(&array, 0) == -5);
    assert_true(burin_gguf_element(&array, 1) == 6);
    burin_gguf_close(&gguf);
}

SPEC(alignment_moves_the_data)
{
    gguf_begin(&file, 2, 1);
    key_u32("general.alignment", 256);
    gguf_tensor(&file, "a", 1, (uint64_t[]){ 5 }, 0, 0);
    gguf_tensor(&file, "b", 1, (uint64_t[]){ 3 }, 0, 256);
    pad_to(&file, 256);
    add_zeros(&file, 256 + 12);
    assert_int_equal(open_file(), BURIN_OK);
    assert_int_equal(burin_gguf_find(&gguf, burin_span_of("b"))->offset % 256, 0);
    burin_gguf_close(&gguf);
}

/* ---- Refusals -------------------------------------------------------------------- */

SPEC(what_is_no_gguf_file_is_named_by_its_first_bytes)
{
    file.used = 0;
    add(&file, "<!DOCTYPE html><html>", 21);
    assert_refused("begins with \"<!DO\"");
}

SPEC(versions_that_we_do_not_read_are_refused)
{
    static const struct {
        uint32_t version;
        const char *reason;
    } rows[] = {
        { 0, "GGUF version 0" },
        { 1, "GGUF version 1" },
        { 4, "GGUF version 4" },
        { 0x03000000, "big-endian" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        a_small_file();
        memcpy(file.at + 4, &rows[i].version, 4);
        assert_refused(rows[i].reason);
    }
}

SPEC(no_prefix_of_a_file_is_a_file)
{
    a_small_file();
    const size_t whole = file.used;
    for (size_t length = 0; length < whole; length++) {
        file.used = length;
        assert_int_equal(open_file(), BURIN_EFORMAT);
    }
}

SPEC(no_byte_of_a_header_crashes_whatever_it_is)
{
    a_small_file();
    const size_t header = file.used - 84;
    for (size_t i = 0; i < header; i++) {
        const unsigned char kept = file.at[i];
        for (int step = 1; step < 256; step += 6) {
            file.at[i] = (unsigned char)(kept + step);
            if (open_file() == BURIN_OK)
                burin_gguf_close(&gguf);
        }
        file.at[i] = kept;
    }
}

SPEC(counts_are_held_against_the_bytes_left)
{
    static const struct {
        uint64_t n_tensors;
        uint64_t n_keys;
    } rows[] = {
        { 1000000000, 0 },
        { 0, 1000000000 },
        { UINT64_MAX, 0 },
        { 0, UINT64_MAX },
        { UINT64_MAX / 2, UINT64_MAX / 2 },
        { 7, 0 },
        { 0, 10 },
        { 5, 3 }, /* each alone would fit into 160 bytes */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        gguf_begin(&file, rows[i].n_tensors, rows[i].n_keys);
        add_zeros(&file, 160 - file.used);
        assert_refused(
                rows[i].n_tensors + rows[i].n_keys > 10 ? "at most" : "cannot hold them");
    }
}

SPEC(a_sparse_file_of_a_terabyte_does_not_get_what_it_announces)
{
    gguf_begin(&file, 1ull << 34, 1ull << 34);
    const char *path = write_file("sparse.gguf", file.at, file.used);
    assert_int_equal(truncate(path, 1ll << 40), 0);
    assert_int_equal(burin_gguf_open(&gguf, path, &err), BURIN_EFORMAT);

    gguf_begin(&file, 0, 1);
    key("tokens", BURIN_GGUF_ARRAY);
    add_u32(&file, BURIN_GGUF_U8);
    add_u64(&file, 1ull << 30);
    path = write_file("sparse.gguf", file.at, file.used);
    assert_int_equal(truncate(path, 1ll << 40), 0);
    assert_int_equal(burin_gguf_open(&gguf, path, &err), BURIN_EFORMAT);
    assert_non_null(strstr(err.message, "a header of more than 268435456 bytes"));
}

SPEC(arrays_are_held_against_the_bytes_left)
{
    static const struct {
        uint32_t type;
        uint64_t count;
    } rows[] = {
        { BURIN_GGUF_TEXT, 1000000000 },
        { BURIN_GGUF_U8, 1ull << 30 },
        { BURIN_GGUF_F64, UINT64_MAX / 8 + 1 },
        { BURIN_GGUF_U64, UINT64_MAX },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        gguf_begin(&file, 0, 1);
        key("tokens", BURIN_GGUF_ARRAY);
        add_u32(&file, rows[i].type);
        add_u64(&file, rows[i].count);
        add_zeros(&file, 160 - file.used);
        assert_refused("bytes are left");
    }
}

SPEC(a_file_that_announces_much_takes_little_memory)
{
    struct rusage before;
    struct rusage after;
    getrusage(RUSAGE_SELF, &before);
    counts_are_held_against_the_bytes_left(NULL);
    arrays_are_held_against_the_bytes_left(NULL);
    getrusage(RUSAGE_SELF, &after);
    assert_true(after.ru_maxrss - before.ru_maxrss < 64 * 1024); /* KiB */
}

SPEC(texts_longer_than_the_file_are_refused)
{
    static const uint64_t lengths[] = { 1000, (1ull << 30) + 1, UINT64_MAX,
                                        UINT64_MAX - 7 };
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        gguf_begin(&file, 0, 1);
        add_u64(&file, lengths[i]);
        add_zeros(&file, 100);
        assert_int_equal(open_file(), BURIN_EFORMAT);
    }
}

SPEC(keys_are_there_once_and_have_names)
{
    gguf_begin(&file, 0, 1);
    key_u32("", 1);
    assert_refused("is empty");

    gguf_begin(&file, 0, 3);
    key_u32("x", 1);
    key_u32("y", 1);
    key_u32("x", 2);
    assert_refused("duplicate key \"x\"");
}

SPEC(values_of_unknown_types_and_nested_arrays_are_refused)
{
    gguf_begin(&file, 0, 1);
    key("x", 13);
    add_zeros(&file, 32);
    assert_refused("key \"x\" has a value of the unknown type 13");

    gguf_begin(&file, 0, 1);
    key("x", BURIN_GGUF_ARRAY);
    add_u32(&file, BURIN_GGUF_ARRAY);
    add_u64(&file, 1);
    add_zeros(&file, 32);
    assert_refused("an array of arrays");

    gguf_begin(&file, 0, 1);
    key("x", BURIN_GGUF_ARRAY);
    add_u32(&file, 77);
    add_u64(&file, 1);
    add_zeros(&file, 32);
    assert_refused("an array of an unknown type (type 77)");
}

SPEC(alignment_is_a_power_of_two_in_u32)
{
    static const uint32_t wrong[] = { 0, 3, 48, 0x80000000u };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        gguf_begin(&file, 0, 1);
        key_u32("general.alignment", wrong[i]);
        assert_refused("a power of two is wanted");
    }
    gguf_begin(&file, 0, 1);
    key("general.alignment", BURIN_GGUF_U64);
    add_u64(&file, 32);
    assert_refused("general.alignment is a u64, u32 is wanted");
}

/* One tensor, all of it wrong in one way. */
static void a_tensor(
        const char *name,
        uint32_t n_dims,
        const uint64_t *dims,
        uint32_t type,
        uint64_t offset)
{
    gguf_begin(&file, 1, 0);
    gguf_tensor(&file, name, n_dims, dims, type, offset);
    pad_to(&file, 32);
    add_zeros(&file, 4096);
}

SPEC(dimensions_are_positive_and_their_product_does_not_wrap)
{
    a_tensor("a", 1, (uint64_t[]){ 0 }, 0, 0);
    assert_refused("tensor \"a\": dimension 0 is 0");
    a_tensor("a", 2, (uint64_t[]){ 32, UINT64_MAX }, 0, 0);
    assert_refused("dimension 1 is -1");
    a_tensor("a", 3, (uint64_t[]){ 1ull << 22, 1ull << 22, 1ull << 22 }, 0, 0);
    assert_refused("overflows");
    a_tensor(
            "a", 2, (uint64_t[]){ 1ull << 32, 1ull << 30 }, 0,
            0); /* elements fit, bytes wrap */
    assert_refused("overflows");
    a_tensor("a", 1, (uint64_t[]){ (1ull << 42) + 1 }, 0, 0);
    assert_refused("truncated");
    a_tensor("a", 5, (uint64_t[]){ 1, 1, 1, 1, 1 }, 0, 0);
    assert_refused("has 5 dimensions, at most 4");
    gguf_begin(&file, 1, 0);
    add_text(&file, "a");
    add_u32(&file, 0x80000000u);
    add_zeros(&file, 64);
    assert_refused("has 2147483648 dimensions, at most 4");
}

static void gguf_tensor_of_type(uint32_t type)
{
    a_tensor("a", 1, (uint64_t[]){ 256 }, type, 0);
}

SPEC(types_are_known_and_rows_are_whole_blocks)
{
    static const uint32_t unknown[] = { 4,  5,  9,  15, 31,   32,        33,
                                        36, 37, 38, 43, 1000, UINT32_MAX };
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        gguf_tensor_of_type(unknown[i]);
        assert_refused("unknown type");
    }
    a_tensor("a", 2, (uint64_t[]){ 33, 32 }, 3, 0);
    assert_refused("rows of 33 elements are no whole blocks of q4_1 (32)");
    a_tensor("a", 1, (uint64_t[]){ 128 }, 12, 0);
    assert_refused("no whole blocks of q4_k (256)");
}

SPEC(names_of_tensors_are_short_and_there_once)
{
    char name[65] = { 0 };
    memset(name, 'n', 64);
    a_tensor(name, 1, (uint64_t[]){ 4 }, 0, 0);
    assert_refused("a name of 64 bytes, at most 63");

    gguf_begin(&file, 2, 0);
    gguf_tensor(&file, "a", 1, (uint64_t[]){ 8 }, 0, 0);
    gguf_tensor(&file, "a", 1, (uint64_t[]){ 8 }, 0, 32);
    pad_to(&file, 32);
    add_zeros(&file, 64);
    assert_refused("duplicate tensor \"a\"");
}

SPEC(each_tensor_begins_where_the_one_before_it_ends)
{
    a_tensor("a", 1, (uint64_t[]){ 4 }, 0, 32); /* a hole */
    assert_refused("begins at byte 32 of the data, 0 is where");

    gguf_begin(&file, 2, 0); /* K silently aliased as V */
    gguf_tensor(&file, "k", 1, (uint64_t[]){ 8 }, 0, 0);
    gguf_tensor(&file, "v", 1, (uint64_t[]){ 8 }, 0, 0);
    pad_to(&file, 32);
    add_zeros(&file, 64);
    assert_refused("tensor \"v\" begins at byte 0");
    a_tensor("a", 1, (uint64_t[]){ 4 }, 0, UINT64_MAX - 31);
    assert_refused("begins at byte");
}

SPEC(a_name_in_a_message_cannot_drive_the_terminal)
{
    a_tensor("\033[2J\n\"", 1, (uint64_t[]){ 0 }, 0, 0);
    assert_refused("tensor \"\\x1b[2J\\x0a\\x22\"");
}

SPEC(a_file_that_shrinks_while_it_is_open_is_an_error_and_no_signal)
{
    a_small_file();
    assert_int_equal(open_file(), BURIN_OK);
    const struct burin_tensor *b = burin_gguf_find(&gguf, burin_span_of("b"));
    char data[20];
    assert_int_equal(truncate(gguf.file.path, (off_t)b->offset + 10), 0);

    assert_int_equal(
            burin_file_read(&gguf.file, b->offset, data, sizeof data, &err), BURIN_EIO);
    assert_non_null(strstr(err.message, "it was changed meanwhile"));
    burin_gguf_close(&gguf);
}

SPEC(a_header_longer_than_one_reading_is_whole)
{
    const char *path = in_folder("long.gguf");
    FILE *out = fopen(path, "wb");
    gguf_begin(&file, 0, 2);
    key("tokens", BURIN_GGUF_ARRAY);
    add_u32(&file, BURIN_GGUF_TEXT);
    add_u64(&file, 300000);
    fwrite(file.at, 1, file.used, out);
    for (uint32_t i = 0; i < 300000; i++) {
        char text[16];
        file.used = 0;
        snprintf(text, sizeof text, "t%u", i);
        add_text(&file, text);
        fwrite(file.at, 1, file.used, out);
    }
    file.used = 0;
    key_u32("last", 5);
    fwrite(file.at, 1, file.used, out);
    fclose(out);
    assert_int_equal(burin_gguf_open(&gguf, path, &err), BURIN_OK);

    uint64_t last = 0;
    struct burin_gguf_array tokens;
    struct burin_span text = { 0 };
    assert_int_equal(burin_gguf_uint(&gguf, "last", &last, NULL), BURIN_OK);
    assert_int_equal(last, 5);
    assert_int_equal(burin_gguf_texts(&gguf, "tokens", &tokens, NULL), BURIN_OK);
    for (uint64_t i = 0; i < tokens.count; i++)
        text = burin_gguf_next_text(&tokens);
    assert_true(burin_span_is(text, "t299999"));
    burin_gguf_close(&gguf);
}

SPEC(no_such_file_folders_and_pipes_are_errors)
{
    assert_int_equal(burin_gguf_open(&gguf, "/nowhere/x.gguf", &err), BURIN_EMISSING);
    assert_int_equal(burin_gguf_open(&gguf, "/tmp", &err), BURIN_EUNREADABLE);
    assert_int_equal(burin_gguf_open(&gguf, "/dev/null", &err), BURIN_EUNREADABLE);
    burin_gguf_close(&gguf);
}

/* ---- Real weights ---------------------------------------------------------------- */

SPEC(the_demo_weights_read_as_they_are_described)
{
    const char *path = "build/weights/SmolLM2-135M-Instruct.Q4_1.gguf";
    SKIP_UNLESS(access(path, R_OK) == 0);
    assert_int_equal(burin_gguf_open(&gguf, path, &err), BURIN_OK);

    struct burin_gguf_array tokens;
    const struct burin_tensor *wk =
            burin_gguf_find(&gguf, burin_span_of("blk.29.attn_k.weight"));
    assert_int_equal(gguf.n_tensors, 272);
    assert_int_equal(wk->dims[0], 192);
    assert_int_equal(wk->dims[1], 576);
    assert_string_equal(wk->type->name, "q4_1");
    assert_int_equal(burin_gguf_texts(&gguf, "tokenizer.ggml.tokens", &tokens, NULL), 0);
    assert_int_equal(tokens.count, 49152);
    burin_gguf_close(&gguf);
}
