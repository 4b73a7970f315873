/* runtime/weights/checkpoint.h: one interface over files, shards and folders. */
#include "runtime/weights/checkpoint.h"

#include "tests/runtime/weights/tiny.h"

static struct burin_checkpoint checkpoint;
static struct burin_error err;
static struct bytes bytes;

static const char *write_shard(const char *path, const char *header, size_t n_data)
{
    safetensors_of(&bytes, header, n_data);
    return write_file(path, bytes.at, bytes.used);
}

static void write_shards(const char *folder)
{
    char path[64];
    static const char map[] = "{\"metadata\":{\"total_size\":8},\"weight_map\":"
                              "{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\"}}";
    make_folder(folder);
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder);
    write_file(path, map, strlen(map));
    snprintf(path, sizeof path, "%s/one.safetensors", folder);
    write_shard(path, "{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3);
    snprintf(path, sizeof path, "%s/two.safetensors", folder);
    write_shard(
            path,
            "{\"more\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
            "\"b\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[2,7]}}",
            7);
}

SPEC(a_gguf_file_is_known_by_its_first_bytes)
{
    assert_int_equal(
            burin_checkpoint_open(&checkpoint, write_tiny("weights.bin"), &err), 0);
    assert_int_equal(checkpoint.container, BURIN_GGUF);
    assert_string_equal(checkpoint.folder, test_folder);

    unsigned char row[40];
    const struct burin_tensor *wq =
            burin_checkpoint_find(&checkpoint, "blk.0.attn_q.weight");
    assert_int_equal(burin_checkpoint_read(&checkpoint, wq, 80, row, 40, &err), BURIN_OK);
    for (size_t i = 0; i < 40; i++)
        assert_int_equal(row[i], tiny_byte(1, 80 + i));
    burin_checkpoint_close(&checkpoint);
    burin_checkpoint_close(&checkpoint);
}

SPEC(shards_are_one_checkpoint_and_what_the_map_does_not_name_is_ignored)
{
    write_shards("sharded");
    assert_int_equal(burin_checkpoint_open(&checkpoint, in_folder("sharded"), &err), 0);
    assert_int_equal(checkpoint.container, BURIN_SAFETENSORS);
    assert_int_equal(checkpoint.n_tensors, 2);
    assert_null(burin_checkpoint_find(&checkpoint, "more"));

    unsigned char data[5];
    const struct burin_tensor *b = burin_checkpoint_find(&checkpoint, "b");
    assert_int_equal(burin_checkpoint_read(&checkpoint, b, 0, data, 5, &err), BURIN_OK);
    assert_int_equal(data[0], 2 * 37 + 11);
    burin_checkpoint_close(&checkpoint);

    assert_int_equal(
            burin_checkpoint_open(
                    &checkpoint, in_folder("sharded/model.safetensors.index.json"), &err),
            BURIN_OK);
    burin_checkpoint_close(&checkpoint);
}

SPEC(a_map_that_names_what_a_shard_does_not_hold_is_refused)
{
    write_shards("lying");
    static const char map[] = "{\"weight_map\":{\"a\":\"one.safetensors\","
                              "\"c\":\"two.safetensors\"}}";
    write_file("lying/model.safetensors.index.json", map, strlen(map));
    assert_int_equal(
            burin_checkpoint_open(&checkpoint, in_folder("lying"), &err), BURIN_EFORMAT);
    assert_non_null(strstr(err.message, "tensor \"c\" is not in two.safetensors"));

    static const char twice[] = "{\"weight_map\":{\"a\":\"one.safetensors\","
                                "\"a\":\"one.safetensors\"}}";
    write_file("lying/model.safetensors.index.json", twice, strlen(twice));
    assert_int_equal(
            burin_checkpoint_open(&checkpoint, in_folder("lying"), &err), BURIN_EFORMAT);
    assert_non_null(strstr(err.message, "duplicate key \"a\""));
}

SPEC(a_shard_that_is_not_there_is_named)
{
    write_shards("torn");
    assert_int_equal(unlink(in_folder("torn/two.safetensors")), 0);
    assert_int_equal(
            burin_checkpoint_open(&checkpoint, in_folder("torn"), &err), BURIN_EMISSING);
    assert_non_null(strstr(err.message, "torn/two.safetensors: No such file"));
}

SPEC(a_folder_gives_its_index_then_model_safetensors_then_its_only_gguf)
{
    make_folder("mixed");
    assert_int_equal(
            burin_checkpoint_open(&checkpoint, in_folder("mixed"), &err), BURIN_EMISSING);
    assert_non_null(strstr(err.message, "no model.safetensors and no .gguf"));

    write_tiny("mixed/a.gguf");
    assert_int_equal(burin_checkpoint_open(&checkpoint, in_folder("mixed"), &err), 0);
    assert_int_equal(checkpoint.container, BURIN_GGUF);
    burin_checkpoint_close(&checkpoint);

    write_tiny("mixed/b.gguf");
    assert_int_equal(
            burin_checkpoint_open(&checkpoint, in_folder("mixed"), &err), BURIN_EMISSING);
    assert_non_null(strstr(err.message, "several GGUF files"));

    write_shard("mixed/model.safetensors", "{}", 0);
    assert_int_equal(burin_checkpoint_open(&checkpoint, in_folder("mixed"), &err), 0);
    assert_int_equal(checkpoint.container, BURIN_SAFETENSORS);
    burin_checkpoint_close(&checkpoint);
}

SPEC(a_part_of_a_split_gguf_is_refused_with_what_mends_it)
{
    gguf_begin(&bytes, 0, 1);
    add_text(&bytes, "split.count");
    add_u32(&bytes, 2);
    add(&bytes, &(uint16_t){ 3 }, 2);
    const char *path = write_file("part.gguf", bytes.at, bytes.used);
    assert_int_equal(burin_checkpoint_open(&checkpoint, path, &err), BURIN_EFORMAT);
    assert_non_null(strstr(err.message, "one of 3 parts: join them"));
}

SPEC(nothing_stays_open_after_a_failure)
{
    const int before = dup(0);
    close(before);
    write_shard("bad.safetensors", "{\"a\":1}", 0);
    assert_int_equal(
            burin_checkpoint_open(&checkpoint, in_folder("bad.safetensors"), &err),
            BURIN_EFORMAT);
    write_shards("half");
    write_shard("half/two.safetensors", "{\"b\":1}", 0);
    assert_int_equal(
            burin_checkpoint_open(&checkpoint, in_folder("half"), &err), BURIN_EFORMAT);
    assert_int_equal(burin_checkpoint_open(&checkpoint, "/nowhere", &err), BURIN_EMISSING);
    assert_string_equal(err.message, "/nowhere: No such file or directory");

    const int after = dup(0);
    close(after);
    assert_int_equal(before, after);
}
