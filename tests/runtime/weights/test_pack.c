/* runtime/weights/pack.h: every row where the table says, whatever the threads. */
#include "runtime/weights/pack.h"

#include "runtime/weights/bind.h"
#include "tests/runtime/weights/tiny.h"

static struct burin_checkpoint checkpoint;
static const struct burin_tensor *const *bound;
static struct burin_error err;
static _Alignas(64) uint8_t arena[WEIGHTS_BYTES + 64];

static void open_tiny(const char *path)
{
    burin_checkpoint_close(&checkpoint);
    assert_int_equal(burin_checkpoint_open(&checkpoint, path, &err), BURIN_OK);
    assert_int_equal(burin_bind(&tiny, &checkpoint, &bound, &err), BURIN_OK);
    memset(arena, 0xee, sizeof arena);
}

static enum burin_status pack(int n_threads, burin_pack_report *report, void *user)
{
    return burin_pack(
            &tiny, &tiny_family, &checkpoint, bound, arena, n_threads, report, user, &err);
}

/* Row `row` of tensor `index` of the file begins at `at`. */
static void assert_row(size_t at, size_t index, size_t row, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(arena[at + i], tiny_byte(index, row * bytes + i));
}

SPEC(rows_go_to_their_tiles_and_the_last_tile_ends_in_zeros)
{
    open_tiny(write_tiny("tiny.gguf"));
    assert_int_equal(pack(1, NULL, NULL), BURIN_OK);
    for (size_t row = 0; row < N_VOCAB; row++)
        assert_row(row * 68, 0, row, 68);
    for (size_t at = N_VOCAB * 68; at < LAYER_0; at++)
        assert_int_equal(arena[at], 0);
    assert_row(LAYER_0, 2, 0, VECTOR);
    assert_row(NORM, 5, 0, VECTOR);
}

SPEC(rows_in_pairs_are_put_back_into_halves)
{
    open_tiny(write_tiny("tiny.gguf"));
    assert_int_equal(pack(1, NULL, NULL), BURIN_OK);
    for (size_t head = 0; head < N_HEADS; head++)
        for (size_t half = 0; half < 2; half++)
            for (size_t i = 0; i < 16; i++) {
                const size_t row = head * 32 + half * 16 + i;
                const size_t at =
                        LAYER_1 + VECTOR + row / 32 * (2 * Q4_TILE) + row % 32 * 40;
                assert_row(at, 4, head * 32 + 2 * i + half, 40);
            }
}

SPEC(what_lies_between_interleaved_tiles_is_left_alone)
{
    open_tiny(write_tiny("tiny.gguf"));
    assert_int_equal(pack(2, NULL, NULL), BURIN_OK);
    for (size_t i = 0; i < Q4_TILE; i++)
        assert_int_equal(arena[LAYER_0 + VECTOR + Q4_TILE + i], 0xee);
    for (size_t i = WEIGHTS_BYTES; i < sizeof arena; i++)
        assert_int_equal(arena[i], 0xee);
}

SPEC(any_number_of_threads_packs_the_same_bytes)
{
    static uint8_t alone[WEIGHTS_BYTES];
    open_tiny(write_tiny("tiny.gguf"));
    assert_int_equal(pack(1, NULL, NULL), BURIN_OK);
    memcpy(alone, arena, sizeof alone);
    for (int n_threads = 2; n_threads <= 9; n_threads++) {
        memset(arena, 0xee, sizeof arena);
        assert_int_equal(pack(n_threads, NULL, NULL), BURIN_OK);
        assert_memory_equal(arena, alone, sizeof alone);
    }
}

SPEC(narrow_vectors_are_widened_exactly)
{
    static const struct {
        uint16_t bits;
        uint32_t type;
        uint32_t wide;
    } rows[] = {
        { 0x3c00, 1, 0x3f800000 },  { 0x8000, 1, 0x80000000 },  { 0x0001, 1, 0x33800000 },
        { 0x83ff, 1, 0xb87fc000 },  { 0x7bff, 1, 0x477fe000 },  { 0x7c00, 1, 0x7f800000 },
        { 0xfc00, 1, 0xff800000 },  { 0x7e01, 1, 0x7fc02000 },  { 0x0400, 1, 0x38800000 },
        { 0x3f80, 30, 0x3f800000 }, { 0x0001, 30, 0x00010000 }, { 0xff7f, 30, 0xff7f0000 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tiny_tensor tensors[N_WEIGHTS];
        memcpy(tensors, tiny_tensors, sizeof tensors);
        tensors[5].type = rows[i].type;
        tensors[5].bytes = D * 2;
        const char *path = write_tensors("narrow.gguf", tensors, N_WEIGHTS);
        open_tiny(path);
        FILE *file = fopen(path, "r+b");
        fseek(file, (long)bound[5]->offset + 2 * 3, SEEK_SET);
        fwrite(&rows[i].bits, 2, 1, file);
        fclose(file);

        assert_int_equal(pack(1, NULL, NULL), BURIN_OK);
        uint32_t wide;
        memcpy(&wide, arena + NORM + 4 * 3, 4);
        assert_int_equal(wide, rows[i].wide);
    }
}

struct reports {
    int n;
    size_t last;
    size_t total;
    int stop_at;
};

static bool count(void *user, size_t done, size_t total)
{
    struct reports *reports = user;
    assert_true(done >= reports->last && done <= total);
    reports->last = done;
    reports->total = total;
    return ++reports->n != reports->stop_at;
}

SPEC(progress_rises_to_the_total)
{
    struct reports reports = { 0 };
    open_tiny(write_tiny("tiny.gguf"));
    assert_int_equal(pack(3, count, &reports), BURIN_OK);
    assert_int_equal(reports.last, reports.total);
    assert_int_equal(reports.total, N_VOCAB * 68 + 2 * D * 40 + 3 * VECTOR);
}

SPEC(a_report_can_stop_it)
{
    struct reports reports = { .stop_at = 2 };
    open_tiny(write_tiny("tiny.gguf"));
    assert_int_equal(pack(1, count, &reports), BURIN_ESTOPPED);
    assert_int_equal(reports.n, 2);
}

SPEC(a_file_that_shrinks_meanwhile_is_an_error_and_no_signal)
{
    const char *path = write_tiny("tiny.gguf");
    open_tiny(path);
    assert_int_equal(truncate(path, (off_t)bound[4]->offset + 100), 0);
    for (int n_threads = 1; n_threads < 4; n_threads++) {
        assert_int_equal(pack(n_threads, NULL, NULL), BURIN_EIO);
        assert_non_null(strstr(err.message, "it was changed meanwhile"));
    }
    burin_checkpoint_close(&checkpoint);
}

/* ---- Other containers and sizes -------------------------------------------------- */

enum { N_ROWS = 64, N_COLS = 8192, ROW = N_COLS * 4 };

static void pack_f32(uint8_t *tile, const uint8_t *const *rows, int n_rows, int64_t n_cols)
{
    tiny_copy(tile, rows, n_rows, (size_t)n_cols * 4);
}

/* One head of 64 rows: a tile's rows in pairs span 63 rows, 2 MiB, more than the window. Each
 * float is the number of its row. */
static void pack_long_rows(const char *header, size_t header_bytes, float *first_of_row)
{
    static float row[N_COLS];
    static _Alignas(64) uint8_t packed_rows[N_ROWS * ROW];
    static const struct burin_weight weight = { .role = "wk",
                                                .names = { "k", "k" },
                                                .n_rows = N_ROWS,
                                                .n_cols = N_COLS,
                                                .format = BURIN_FORMAT_F32,
                                                .gguf_rope_heads = 1 };
    static const struct burin_packed packed = { 0, 32 * ROW, 32 * ROW, pack_f32 };
    const struct burin_family family = { .weights_bytes = sizeof packed_rows,
                                         .packed = &packed };
    const struct burin_model model = { .name = "long", .n_weights = 1, .weights = &weight };

    const char *path = in_folder("long");
    FILE *file = fopen(path, "wb");
    fwrite(header, 1, header_bytes, file);
    for (int i = 0; i < N_ROWS; i++) {
        for (int c = 0; c < N_COLS; c++)
            row[c] = (float)i;
        fwrite(row, 1, sizeof row, file);
    }
    fclose(file);

    burin_checkpoint_close(&checkpoint);
    assert_int_equal(burin_checkpoint_open(&checkpoint, path, &err), BURIN_OK);
    assert_int_equal(burin_bind(&model, &checkpoint, &bound, &err), BURIN_OK);
    assert_int_equal(
            burin_pack(
                    &model, &family, &checkpoint, bound, packed_rows, 2, NULL, NULL, &err),
            BURIN_OK);
    burin_checkpoint_close(&checkpoint);
    for (int i = 0; i < N_ROWS; i++)
        memcpy(&first_of_row[i], packed_rows + (size_t)i * ROW, 4);
}

SPEC(rows_in_pairs_that_span_more_than_the_window_are_read_one_by_one)
{
    static struct bytes b;
    float row[N_ROWS];
    gguf_begin(&b, 1, 0);
    gguf_tensor(&b, "k", 2, (uint64_t[]){ N_COLS, N_ROWS }, 0, 0);
    pad_to(&b, 32);
    pack_long_rows((const char *)b.at, b.used, row);
    for (int i = 0; i < N_ROWS / 2; i++) {
        assert_true(row[i] == (float)(2 * i));
        assert_true(row[N_ROWS / 2 + i] == (float)(2 * i + 1));
    }
}

/* It is the file that has pairs, whatever the description is called. */
SPEC(a_gguf_of_an_architecture_without_pairs_is_taken_as_it_lies)
{
    static struct bytes b;
    float row[N_ROWS];
    gguf_begin(&b, 1, 1);
    add_text(&b, "general.architecture");
    add_u32(&b, 8);
    add_text(&b, "qwen2");
    gguf_tensor(&b, "k", 2, (uint64_t[]){ N_COLS, N_ROWS }, 0, 0);
    pad_to(&b, 32);
    pack_long_rows((const char *)b.at, b.used, row);
    for (int i = 0; i < N_ROWS; i++)
        assert_true(row[i] == (float)i);
}

SPEC(safetensors_have_no_pairs_to_undo)
{
    static struct bytes b;
    float row[N_ROWS];
    safetensors_of(
            &b,
            "{\"k\":{\"dtype\":\"F32\",\"shape\":[64,8192],\"data_offsets\":[0,2097152]}}",
            0);
    pack_long_rows((const char *)b.at, b.used, row);
    for (int i = 0; i < N_ROWS; i++)
        assert_true(row[i] == (float)i);
}

/* ---- To an arena that the host cannot write ---------------------------------------------- */

static uint8_t far_away[WEIGHTS_BYTES];

/* A copy takes until its buffer is wanted again: the bytes must stay as they are. */
struct far_sink {
    struct burin_pack_sink sink;
    uint8_t *buffers[2];
    size_t offset[2], n[2];
    int next;
    int fail_in;
};

static void land(struct far_sink *sink, int i)
{
    if (sink->n[i])
        memcpy(far_away + sink->offset[i], sink->buffers[i], sink->n[i]);
    sink->n[i] = 0;
}

static enum burin_status free_buffer(void *user, uint8_t **buffer, struct burin_error *e)
{
    struct far_sink *sink = user;
    (void)e;
    land(sink, sink->next);
    *buffer = sink->buffers[sink->next];
    return BURIN_OK;
}

static enum burin_status leave(void *user, size_t offset, size_t n, struct burin_error *e)
{
    struct far_sink *sink = user;
    if (sink->fail_in > 0 && --sink->fail_in == 0)
        return burin_fail(e, BURIN_EIO, "no copy");
    assert_true(offset + n <= WEIGHTS_BYTES && n <= sink->sink.buffer_bytes);
    sink->offset[sink->next] = offset;
    sink->n[sink->next] = n;
    sink->next ^= 1;
    return BURIN_OK;
}

static enum burin_status land_all(void *user, struct burin_error *e)
{
    (void)e;
    land(user, 0);
    land(user, 1);
    return BURIN_OK;
}

static struct far_sink sink_of(size_t buffer_bytes)
{
    static _Alignas(64) uint8_t buffers[2][WEIGHTS_BYTES + 8192];
    memset(buffers, 0, sizeof buffers);
    memset(far_away, 0, sizeof far_away);
    return (struct far_sink){ .sink = { .buffer_bytes = buffer_bytes,
                                        .buffer = free_buffer,
                                        .send = leave,
                                        .finish = land_all },
                              .buffers = { buffers[0], buffers[1] } };
}

static enum burin_status pack_far(struct far_sink *sink, int n_threads)
{
    sink->sink.user = sink;
    return burin_pack_stream(
            &tiny, &tiny_family, &checkpoint, bound, WEIGHTS_BYTES, &sink->sink, n_threads,
            NULL, NULL, &err);
}

static size_t largest_tile(void)
{
    size_t most = 0;
    for (int i = 0; i < tiny.n_weights; i++)
        if (tiny_family.packed[i].tile_bytes > most)
            most = tiny_family.packed[i].tile_bytes;
    return most;
}

SPEC(an_arena_far_away_gets_the_same_bytes_through_buffers_of_any_size)
{
    static uint8_t in_zeros[WEIGHTS_BYTES]; /* what differs lies between tiles */
    open_tiny(write_tiny("tiny.gguf"));
    memset(arena, 0, sizeof arena);
    assert_int_equal(pack(1, NULL, NULL), BURIN_OK);
    memcpy(in_zeros, arena, sizeof in_zeros);
    memset(arena, 0xee, sizeof arena);
    assert_int_equal(pack(1, NULL, NULL), BURIN_OK);
    for (size_t bytes = largest_tile() + 64; bytes < WEIGHTS_BYTES + 8192; bytes += 1088) {
        struct far_sink sink = sink_of(bytes);

        assert_int_equal(pack_far(&sink, 1 + (int)(bytes / 64 % 3)), BURIN_OK);

        for (size_t i = 0; i < WEIGHTS_BYTES; i++)
            assert_true(arena[i] != in_zeros[i] || far_away[i] == arena[i]);
    }
}

SPEC(a_copy_that_fails_ends_it_and_no_buffer_is_left_in_use)
{
    open_tiny(write_tiny("tiny.gguf"));
    for (int fail_in = 1; fail_in <= 3; fail_in++) {
        struct far_sink sink = sink_of(largest_tile() + 1024);
        sink.fail_in = fail_in;
        assert_int_equal(pack_far(&sink, 2), BURIN_EIO);
        assert_int_equal(sink.n[0] + sink.n[1], 0);
    }
    struct far_sink small = sink_of(largest_tile());
    assert_int_equal(pack_far(&small, 1), BURIN_ELIMIT);
}
