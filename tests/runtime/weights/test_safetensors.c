/* runtime/weights/safetensors.h: the checks of the reference reader, and duplicates. */
#include "runtime/weights/safetensors.h"

#include "tests/runtime/weights/files.h"

#include <sys/resource.h>

static struct bytes bytes;
static struct burin_arena arena;
static struct burin_file file;
static struct burin_safetensors safetensors;
static struct burin_error err;

static enum burin_status read_bytes(void)
{
    const char *path = write_file("x.safetensors", bytes.at, bytes.used);
    burin_file_close(&file);
    burin_arena_close(&arena);
    err = (struct burin_error){ 0 };
    assert_int_equal(burin_file_open(&file, path, &err), BURIN_OK);
    return burin_safetensors_read(&safetensors, &file, 7, &arena, &err);
}

static enum burin_status read_header(const char *header, size_t n_data)
{
    safetensors_of(&bytes, header, n_data);
    return read_bytes();
}

static const struct burin_tensor *find(const char *name)
{
    return burin_tensor_find(
            safetensors.tensors, safetensors.n_tensors, burin_span_of(name));
}

SPEC(tensors_are_found_by_name_with_place_type_and_shape)
{
    const char *header =
            "{\"__metadata__\":{\"format\":\"pt\"},"
            "\"w\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[20,32]},"
            "\"b\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[0,20]}}  ";
    assert_int_equal(read_header(header, 32), BURIN_OK);

    const struct burin_tensor *w = find("w");
    assert_int_equal(safetensors.n_tensors, 2);
    assert_int_equal(w->n_dims, 2);
    assert_int_equal(w->dims[0], 2);
    assert_int_equal(w->dims[1], 3);
    assert_int_equal(w->file, 7);
    assert_int_equal(w->bytes, 12);
    assert_int_equal(w->offset, 8 + strlen(header) + 20);
    assert_int_equal(w->type->format, BURIN_FORMAT_BF16);
    assert_int_equal(find("b")->type->format, BURIN_FORMAT_F32);
}

SPEC(what_the_reference_accepts_is_accepted)
{
    static const struct {
        const char *header;
        size_t n_data;
    } rows[] = {
        { "{}", 0 },
        { "  \n{}\t \r\n", 0 },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4 },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[0,3],\"data_offsets\":[0,0]}}", 0 },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"more\":[{}]}}",
          1 },
        { "{\"\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1 },
        { "{\"../x\\u0000\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1 },
        { "{\"a\":{\"data_offsets\":[0,3],\"shape\":[2,3],\"dtype\":\"F4\"}}", 3 },
        { "{\"a\":{\"data_offsets\":[0,3],\"shape\":[4],\"dtype\":\"F6_E2M3\"}}", 3 },
        { "{\"a\":{\"dtype\":\"F8_E8M0\",\"shape\":[1],\"data_offsets\":[0,1]},"
          "\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[1,1]},"
          "\"c\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
          1 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (read_header(rows[i].header, rows[i].n_data) != BURIN_OK)
            fail_msg("%s: %s", rows[i].header, err.message);
}

SPEC(what_is_malformed_is_refused_with_the_reason)
{
#define F32(shape, offsets)                                                                \
    "{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
    static const struct {
        const char *header;
        size_t n_data;
        const char *reason;
    } rows[] = {
        /* bug-corpus: K silently aliased as V, holes, trailing bytes */
        { "{\"a\":" F32("[1]", "[0,4]") ",\"a\":" F32("[1]", "[4,8]") "}", 8,
          "duplicate key \"a\"" },
        { "{\"a\":" F32("[1]", "[0,4]") ",\"\\u0061\":" F32("[1]", "[4,8]") "}", 8,
          "duplicate key" },
        { "{\"k\":" F32("[2]", "[0,8]") ",\"v\":" F32("[2]", "[0,8]") "}", 8, "overlap" },
        { "{\"k\":" F32("[2]", "[0,8]") ",\"v\":" F32("[2]", "[4,12]") "}", 12,
          "\"k\" and \"v\" overlap" },
        { "{\"a\":" F32("[1]", "[0,4]") ",\"b\":" F32("[1]", "[8,12]") "}", 12,
          "a hole of 4 bytes at byte 4 of the data, before tensor \"b\"" },
        { "{\"a\":" F32("[1]", "[4,8]") "}", 8, "a hole of 4 bytes at byte 0" },
        { "{\"a\":" F32("[1]", "[0,4]") "}", 9, "5 bytes behind the last tensor" },
        { "{}", 1, "1 bytes behind the last tensor" },
        /* sizes */
        { "{\"a\":" F32("[1000,1000]", "[0,4]") "}", 4,
          "has 4 bytes, its shape and dtype need 4000000" },
        { "{\"a\":" F32("[1]", "[4,0]") "}", 4, "before its begin" },
        { "{\"a\":" F32("[2]", "[0,8]") "}", 4, "is it truncated?" },
        { "{\"a\":" F32("[1]", "[0,18446744073709551615]") "}", 4, "truncated" },
        { "{\"a\":" F32("[4294967296,4294967296]", "[0,0]") "}", 0, "overflows" },
        { "{\"a\":" F32("[4611686018427387904]", "[0,0]") "}", 0, "overflows" },
        { "{\"a\":" F32("[18446744073709551615]", "[0,4]") "}", 4, "a dimension of" },
        { "{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", 1,
          "no whole number of bytes" },
        { "{\"a\":" F32("[1,1,1,1,1,1]", "[0,4]") "}", 4, "more than 5 dimensions" },
        /* fields */
        { "{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "has no dtype" },
        { "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "has no shape" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "has no data_offsets" },
        { "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]"
          "}}",
          4, "has dtype twice" },
        { "{\"a\":{\"dtype\":\"f32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
          "unknown dtype \"f32\"" },
        { "{\"a\":{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
          "unknown dtype" },
        { "{\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
          "a text is wanted" },
        { "{\"a\":" F32("[-1]", "[0,4]") "}", 4, "a whole number" },
        { "{\"a\":" F32("[1.0]", "[0,4]") "}", 4, "a whole number" },
        { "{\"a\":" F32("[1]", "[0,4.0]") "}", 4, "a whole number" },
        { "{\"a\":" F32("[1]", "[0]") "}", 4, "data_offsets has 1 numbers" },
        { "{\"a\":" F32("[1]", "[0,4,8]") "}", 4, "more than 2 numbers" },
        { "{\"a\":" F32("1", "[0,4]") "}", 4, "an array is wanted" },
        { "{\"a\":[]}", 0, "an object is wanted" },
        { "{\"a\":null}", 0, "an object is wanted" },
        /* the whole */
        { "{\"__metadata__\":{\"a\":1}}", 0, "a text is wanted" },
        { "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "__metadata__ occurs twice" },
        { "[]", 0, "an object is wanted" },
        { "", 0, "an object is wanted" },
        { "{}x", 0, "the end is wanted" },
        { "{", 0, "where" },
        { "{\"\xff\":1}", 0, "UTF-8 is wanted" },
    };
#undef F32
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const enum burin_status status = read_header(rows[i].header, rows[i].n_data);
        if (status != BURIN_EFORMAT || !strstr(err.message, rows[i].reason))
            fail_msg("%s: status %d, %s", rows[i].header, status, err.message);
    }
}

SPEC(the_length_of_the_header_is_held_against_the_file)
{
    static const uint64_t lengths[] = { 3, 100, 1ull << 63, UINT64_MAX, UINT64_MAX - 7 };
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        safetensors_of(&bytes, "{}", 0);
        memcpy(bytes.at, &lengths[i], 8);
        assert_int_equal(read_bytes(), BURIN_EFORMAT);
        assert_non_null(strstr(err.message, "neither a GGUF nor a safetensors file"));
    }
    bytes.used = 7;
    assert_int_equal(read_bytes(), BURIN_EFORMAT);
}

SPEC(a_web_page_saved_as_the_model_is_shown)
{
    bytes.used = 0;
    add(&bytes, "<!DOCTYPE html><html><body>Not found</body></html>", 50);
    assert_int_equal(read_bytes(), BURIN_EFORMAT);
    assert_non_null(strstr(err.message, "begins with \"<!DOCTYP\""));
}

SPEC(a_header_above_100_MB_is_refused_unread)
{
    static const uint64_t length = 132000000;
    const char *path = write_file("big.safetensors", &length, 8);
    assert_int_equal(truncate(path, 8 + 132000000), 0); /* sparse */
    burin_file_close(&file);
    assert_int_equal(burin_file_open(&file, path, &err), BURIN_OK);

    assert_int_equal(
            burin_safetensors_read(&safetensors, &file, 0, &arena, &err), BURIN_EFORMAT);
    assert_non_null(strstr(err.message, "a header of 132000000 bytes, at most 100000000"));
}

SPEC(a_header_of_nothing_but_small_values_takes_at_most_4_times_its_size)
{
    /* A tree of values would take 40 bytes for each two. */
    static char header[1 << 20];
    size_t used = (size_t)sprintf(header, "{\"a\":{\"x\":[0");
    while (used < sizeof header - 80) {
        memcpy(header + used, ",0", 2);
        used += 2;
    }
    used += (size_t)sprintf(
            header + used, "],\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}");
    const uint64_t length = used;
    const char *path = in_folder("wide.safetensors");
    FILE *out = fopen(path, "wb");
    fwrite(&length, 1, 8, out);
    fwrite(header, 1, used, out);
    fclose(out);
    burin_file_close(&file);
    burin_arena_close(&arena);
    assert_int_equal(burin_file_open(&file, path, &err), BURIN_OK);

    assert_int_equal(
            burin_safetensors_read(&safetensors, &file, 0, &arena, &err), BURIN_OK);
    assert_true(arena.obtained <= 4 * used);
}

SPEC(no_prefix_of_a_file_is_a_file_and_no_byte_crashes)
{
    const char *header =
            "{\"w\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[0,12]}}";
    safetensors_of(&bytes, header, 12);
    const size_t whole = bytes.used;
    for (size_t length = 0; length < whole; length++) {
        bytes.used = length;
        assert_int_equal(read_bytes(), BURIN_EFORMAT);
    }
    bytes.used = whole;
    for (size_t i = 0; i < whole - 12; i++) {
        const unsigned char kept = bytes.at[i];
        for (int step = 1; step < 256; step += 7) {
            bytes.at[i] = (unsigned char)(kept + step);
            (void)read_bytes();
        }
        bytes.at[i] = kept;
    }
}

/* ---- Shards ---------------------------------------------------------------------- */

static enum burin_status read_map(struct burin_shard_map *map, const char *json)
{
    const char *path = write_file("model.safetensors.index.json", json, strlen(json));
    burin_file_close(&file);
    burin_arena_close(&arena);
    assert_int_equal(burin_file_open(&file, path, &err), BURIN_OK);
    return burin_shard_map_read(map, &file, &arena, &err);
}

SPEC(a_map_says_which_tensor_is_in_which_shard)
{
    struct burin_shard_map map;
    assert_int_equal(
            read_map(
                    &map,
                    "{\"metadata\":{\"total_size\":1.5e10},\"weight_map\":{\"a\":\"s1\","
                    "\"b\":\"s2\",\"c\":\"s1\"}}"),
            BURIN_OK);
    assert_int_equal(map.n_tensors, 3);
    assert_int_equal(map.n_shards, 2);
    assert_string_equal(map.shards[map.entries[1].shard], "s2");
    assert_int_equal(map.entries[0].shard, map.entries[2].shard);
}

SPEC(a_map_stays_in_its_folder_and_is_well_formed)
{
    static const char *const rows[] = {
        "{\"weight_map\":{\"a\":\"../x\"}}",
        "{\"weight_map\":{\"a\":\"/etc/passwd\"}}",
        "{\"weight_map\":{\"a\":\"..\"}}",
        "{\"weight_map\":{\"a\":\"\"}}",
        "{\"weight_map\":{\"a\":\"x\\u0000\"}}",
        "{\"weight_map\":{\"a\":\"x\\u002fy\"}}",
        "{\"weight_map\":{\"a\":1}}",
        "{\"weight_map\":[]}",
        "{\"weight_map\":{},\"weight_map\":{}}",
        "{}",
        "[]",
        "",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct burin_shard_map map;
        if (read_map(&map, rows[i]) != BURIN_EFORMAT)
            fail_msg("%s passed", rows[i]);
    }
}
