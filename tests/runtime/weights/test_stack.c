/* Stacks of experts, numbers, convolutions and what nobody reads: what bind.h and pack.h make of
 * releases that hold them. */
#include "runtime/weights/bind.h"
#include "runtime/weights/pack.h"

#include "tests/runtime/weights/files.h"

/* Three experts of five gate rows and five of up, rows of four floats; a number; a kernel of
 * a convolution. pack() copies rows, so the arena shows which went where. */
enum { EXPERTS = 3, ROWS = 5, COLS = 4, ROW = COLS * 4, TILE = 32 * ROW };
enum { N_ROWS = EXPERTS * 2 * ROWS, STACK = EXPERTS * 2 * TILE };
enum { LIMIT = STACK, CONV = LIMIT + 64, ARENA = CONV + TILE };

static void pack_rows(uint8_t *tile, const uint8_t *const *rows, int n_rows, int64_t n_cols)
{
    memset(tile, 0, TILE);
    for (int i = 0; i < n_rows; i++)
        memcpy(tile + (size_t)i * ROW, rows[i], (size_t)n_cols * 4);
}

static void pack_vector(uint8_t *to, const uint8_t *const *rows, int n_rows, int64_t n_cols)
{
    assert_int_equal(n_rows, 1);
    memcpy(to, rows[0], (size_t)n_cols * 4);
}

static const struct burin_weight weights[] = {
    { .role = "up",
      .names = { "experts.gate_up_proj", NULL },
      .n_rows = N_ROWS,
      .n_cols = COLS,
      .n_matrices = EXPERTS,
      .n_parts = 2,
      .pieces = { "experts.%d.gate_proj.weight", "experts.%d.up_proj.weight" } },
    { .role = "limit", .names = { "input_max", NULL }, .n_rows = 1, .n_cols = 1 },
    { .role = "conv", .names = { "conv.weight", NULL }, .n_rows = 2, .n_cols = COLS },
};
static const struct burin_weight unread[] = {
    { .role = "wk", .names = { "k_proj.weight", NULL }, .n_rows = 7, .n_cols = COLS },
};
static const struct burin_packed packed[] = {
    { 0, TILE, 2 * TILE, pack_rows },
    { LIMIT, 64, 64, pack_vector },
    { CONV, TILE, TILE, pack_rows },
};
static const struct burin_family family = { .weights_bytes = ARENA, .packed = packed };
static const struct burin_model model = {
    .name = "m",
    .architecture = "m",
    .variant = "v",
    .recipe = "f32",
    .n_weights = 3,
    .weights = weights,
    .n_unread = 1,
    .unread = unread,
};

static struct burin_checkpoint checkpoint;
static const struct burin_tensor *const *bound;
static struct burin_error err;
static _Alignas(64) uint8_t arena[ARENA];

/* ---- Files that hold it ------------------------------------------------------------ */

static char header[4000];
static size_t n_data;
static float data[1000];

static void begin(void)
{
    header[0] = '\0';
    n_data = 0;
}

/* A tensor of `n` floats, `first`, `first` + 1 and so on. */
static void put(const char *name, const char *shape, int n, int first)
{
    const size_t used = strlen(header);
    snprintf(
            header + used, sizeof header - used,
            "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
            used ? "," : "{", name, shape, n_data * 4, (n_data + (size_t)n) * 4);
    for (int i = 0; i < n; i++)
        data[n_data++] = (float)(first + i);
}

static void put_fused(void)
{
    put("experts.gate_up_proj", "3,10,4", N_ROWS * COLS, 0);
}

/* From the last to the first: order in the file is no matter. */
static void put_one_by_one(int n_experts)
{
    char name[64];
    for (int e = n_experts - 1; e >= 0; e--)
        for (int part = 1; part >= 0; part--) {
            snprintf(
                    name, sizeof name, "experts.%d.%s_proj.weight", e,
                    part ? "up" : "gate");
            put(name, "5,4", ROWS * COLS, (e * 2 + part) * ROWS * COLS);
        }
}

static void put_others(void)
{
    put("input_max", "", 1, 77);
    put("conv.weight", "2,1,2,2", 8, 500);
}

static const char *end(const char *name)
{
    static struct bytes b;
    strcat(header, "}");
    b.used = 0;
    add_u64(&b, strlen(header));
    add(&b, header, strlen(header));
    add(&b, data, n_data * 4);
    return write_file(name, b.at, b.used);
}

static enum burin_status bind(const char *path)
{
    burin_checkpoint_close(&checkpoint);
    err = (struct burin_error){ 0 };
    assert_int_equal(burin_checkpoint_open(&checkpoint, path, &err), BURIN_OK);
    return burin_bind(&model, &checkpoint, &bound, &err);
}

static float packed_at(size_t offset)
{
    float x;
    memcpy(&x, arena + offset, 4);
    return x;
}

static void assert_packs(void)
{
    for (int n_threads = 1; n_threads < 4; n_threads++) {
        memset(arena, 0xee, sizeof arena);
        assert_int_equal(
                burin_pack(
                        &model, &family, &checkpoint, bound, arena, n_threads, NULL, NULL,
                        &err),
                BURIN_OK);
        for (int piece = 0; piece < EXPERTS * 2; piece++)
            for (int row = 0; row < 32; row++) {
                const float first = (float)((piece * ROWS + row) * COLS);
                const size_t at = (size_t)piece * TILE + (size_t)row * ROW;
                assert_true(packed_at(at) == (row < ROWS ? first : 0.0f));
            }
        assert_true(packed_at(LIMIT) == 77.0f);
        assert_true(packed_at(CONV) == 500.0f && packed_at(CONV + ROW) == 504.0f);
    }
    burin_checkpoint_close(&checkpoint);
}

/* ---- Promises ---------------------------------------------------------------------- */

SPEC(each_expert_has_tiles_of_its_own_gate_and_up_in_turn)
{
    begin();
    put_fused();
    put_others();
    assert_int_equal(bind(end("fused")), BURIN_OK);
    assert_packs();
}

SPEC(a_release_may_hold_experts_one_by_one)
{
    begin();
    put_one_by_one(EXPERTS);
    put_others();
    assert_int_equal(bind(end("single")), BURIN_OK);
    assert_packs();
}

SPEC(experts_may_lie_in_several_files)
{
    make_folder("shards");
    begin();
    put_one_by_one(2);
    end("shards/1.safetensors");
    begin();
    put("experts.2.gate_proj.weight", "5,4", ROWS * COLS, 4 * ROWS * COLS);
    put("experts.2.up_proj.weight", "5,4", ROWS * COLS, 5 * ROWS * COLS);
    put_others();
    end("shards/2.safetensors");
    char index[2000] = "{\"weight_map\":{";
    for (int e = 0; e < EXPERTS; e++)
        for (int part = 0; part < 2; part++)
            snprintf(
                    index + strlen(index), sizeof index - strlen(index),
                    "\"experts.%d.%s_proj.weight\":\"%d.safetensors\",", e,
                    part ? "up" : "gate", e < 2 ? 1 : 2);
    strcat(index, "\"input_max\":\"2.safetensors\",\"conv.weight\":\"2.safetensors\"}}");
    write_file("shards/model.safetensors.index.json", index, strlen(index));
    assert_int_equal(bind(in_folder("shards")), BURIN_OK);
    assert_packs();
}

SPEC(an_expert_that_is_not_there_is_a_mismatch)
{
    begin();
    put_one_by_one(EXPERTS - 1);
    put_others();
    assert_int_equal(bind(end("few")), BURIN_EMISMATCH);
    assert_non_null(strstr(err.message, "experts.gate_up_proj is missing"));
}

SPEC(what_nobody_reads_may_be_there_and_is_not_read)
{
    begin();
    put_fused();
    put_others();
    put("k_proj.weight", "7,4", 28, 0);
    assert_int_equal(bind(end("unread")), BURIN_OK);
    assert_packs();
}

SPEC(dims_of_other_sums_are_no_kernel)
{
    begin();
    put_fused();
    put("input_max", "", 1, 77);
    put("conv.weight", "4,1,2,1", 8, 500);
    assert_int_equal(bind(end("other")), BURIN_EMISMATCH);
    assert_non_null(strstr(err.message, "conv.weight is (4, 1, 2, 1), wanted is (2, 4)"));
}

SPEC(weights_behind_the_arena_are_of_programs_that_do_not_run_and_are_not_packed)
{
    struct burin_family shorter = family;
    shorter.weights_bytes = CONV;
    begin();
    put_fused();
    put_others();
    assert_int_equal(bind(end("shorter")), BURIN_OK);
    memset(arena, 0xee, sizeof arena);
    assert_int_equal(
            burin_pack(&model, &shorter, &checkpoint, bound, arena, 2, NULL, NULL, &err),
            BURIN_OK);
    assert_true(packed_at(LIMIT) == 77.0f);
    for (size_t i = CONV; i < ARENA; i++)
        assert_int_equal(arena[i], 0xee);
    burin_checkpoint_close(&checkpoint);
}
