#include "runtime/weights/pack.h"

#include "runtime/base/arena.h"
#include "runtime/cpu/short_float.h"

#include <assert.h>
#include <pthread.h>

enum { READ_BYTES = 1 << 20, JOB_BYTES = 256 * 1024 };

/* ---- What all threads share ------------------------------------------------------ */

/* Some adjacent tiles of one weight. */
struct job {
    int weight;
    int64_t begin;
    int64_t end;
    size_t bytes; /* of the file */
};

struct packing {
    const struct burin_model *model;
    const struct burin_family *family;
    const struct burin_checkpoint *checkpoint;
    const struct burin_tensor *const *tensors;
    size_t arena_bytes; /* what lies behind them is not packed */

    /* The part of the arena that is packed at the moment: tiles that begin in it. */
    size_t begin;
    size_t end;
    uint8_t *to; /* its first byte */

    pthread_mutex_t lock; /* for what follows */
    int weight;           /* the next job begins here */
    int64_t tile;         /* counted as they lie; -1: this weight's first in the part */
    size_t packed_to;     /* where the last of the part's tiles ends; 0 where it has none */
    size_t done;
    enum burin_status status; /* the first failure; ends all */
    struct burin_error *err;
};

struct worker {
    struct packing *packing;
    uint8_t *window; /* rows as the file has them */
    size_t window_bytes;
    float *widened; /* a vector of f16 or bf16 in f32 */
    burin_pack_report *report;
    void *user;
    size_t total;
};

/* Where a tile's rows are: adjacent ones of one matrix, or part of a matrix. */
struct tile_rows {
    int64_t piece;
    int64_t first; /* within it */
    int n;
    size_t offset; /* of the tile, from the weight's begin */
};

static int64_t parts_of(const struct burin_weight *weight)
{
    return weight->n_matrices ? weight->n_parts : 1;
}

/* Tile `index` in the order of the arena: the parts of a matrix lie in turn. */
static struct tile_rows rows_of(
        const struct burin_weight *weight, const struct burin_packed *packed, int64_t index)
{
    const int64_t n_rows = weight->n_rows / burin_weight_pieces(weight);
    const int64_t n_tiles = (n_rows + BURIN_TILE_ROWS - 1) / BURIN_TILE_ROWS;
    const int64_t n_parts = parts_of(weight);
    const int64_t tile = index / n_parts % n_tiles;
    const int64_t matrix = index / n_parts / n_tiles;
    const int64_t left = n_rows - tile * BURIN_TILE_ROWS;
    return (struct tile_rows){
        .piece = matrix * n_parts + index % n_parts,
        .first = tile * BURIN_TILE_ROWS,
        .n = left < BURIN_TILE_ROWS ? (int)left : BURIN_TILE_ROWS,
        .offset = (size_t)(index / n_parts) * packed->tile_stride +
                  (size_t)(index % n_parts) * packed->tile_bytes,
    };
}

/* The first tile of a weight that begins at byte `at` of the arena or behind it. */
static int64_t first_tile(
        const struct burin_weight *weight, const struct burin_packed *packed, size_t at)
{
    if (at <= packed->offset)
        return 0;
    const size_t stride = packed->tile_stride;
    const int64_t row = (int64_t)((at - packed->offset) / stride);
    const size_t in_row = (at - packed->offset) % stride;
    int64_t part = 0;
    while (part < parts_of(weight) && (size_t)part * packed->tile_bytes < in_row)
        part++;
    const int64_t tile = row * parts_of(weight) + part;
    const int64_t all = burin_weight_tiles(weight);
    return tile < all ? tile : all;
}

static size_t row_bytes(const struct burin_weight *weight)
{
    return (size_t)burin_format_row_bytes(weight->format, weight->n_cols);
}

/* Weights of programs that do not run lie behind the arena. */
static bool is_packed(const struct packing *p, int weight)
{
    return p->family->packed[weight].offset < p->arena_bytes;
}

/* Go on to the first weight that has tiles left in this part. False behind the last. */
static bool find_tiles(struct packing *p, int64_t *end)
{
    for (; p->weight < p->model->n_weights; p->weight++, p->tile = -1) {
        const struct burin_weight *weight = &p->model->weights[p->weight];
        const struct burin_packed *packed = &p->family->packed[p->weight];
        if (!is_packed(p, p->weight) || packed->offset >= p->end)
            continue;
        if (p->tile < 0)
            p->tile = first_tile(weight, packed, p->begin);
        *end = first_tile(weight, packed, p->end);
        if (p->tile < *end)
            return true;
    }
    return false;
}

/* Hand out the next job, in the order of the table, which is that of the arena: the file is
 * read about as it lies. False when none is left or one has failed. */
static bool next_job(struct packing *p, struct job *job)
{
    int64_t all = 0;
    pthread_mutex_lock(&p->lock);
    const bool more = !p->status && find_tiles(p, &all);
    if (more) {
        const struct burin_weight *weight = &p->model->weights[p->weight];
        const struct burin_packed *packed = &p->family->packed[p->weight];
        const size_t bytes = row_bytes(weight);
        assert(bytes > 0); /* gen: rows are whole blocks */
        const int64_t fit = (int64_t)(JOB_BYTES / (bytes * BURIN_TILE_ROWS));
        const int64_t end = p->tile + (fit > 0 ? fit : 1);
        job->weight = p->weight;
        job->begin = p->tile;
        job->end = end < all ? end : all;
        job->bytes = 0;
        for (int64_t tile = job->begin; tile < job->end; tile++)
            job->bytes += (size_t)rows_of(weight, packed, tile).n * bytes;
        const size_t to = packed->offset + rows_of(weight, packed, job->end - 1).offset +
                          packed->tile_bytes;
        p->packed_to = to > p->packed_to ? to : p->packed_to;
        p->tile = job->end;
    }
    pthread_mutex_unlock(&p->lock);
    return more;
}

/* Keep the first failure. */
static void fail(struct packing *p, enum burin_status status, const struct burin_error *err)
{
    pthread_mutex_lock(&p->lock);
    if (!p->status) {
        p->status = status;
        if (p->err)
            *p->err = *err;
    }
    pthread_mutex_unlock(&p->lock);
}

/* ---- One tile -------------------------------------------------------------------- */

/* Where row `row` of Hugging Face's order is in the file. GGUF files for engines that rotate
 * neighbours have rows i and i + d / 2 of a head as rows 2i and 2i + 1. */
static int64_t source_row(
        const struct burin_weight *weight, bool rope_in_pairs, int64_t row)
{
    if (!weight->gguf_rope_heads || !rope_in_pairs)
        return row;
    const int64_t d_head = weight->n_rows / weight->gguf_rope_heads;
    const int64_t in_head = row % d_head;
    const int64_t half = in_head / (d_head / 2);
    const int64_t i = in_head % (d_head / 2);
    return row - in_head + 2 * i + half;
}

static void widen(float *to, const uint8_t *from, int64_t n, int format)
{
    for (int64_t i = 0; i < n; i++) {
        const uint16_t x = burin_load_u16(from + 2 * i);
        to[i] = format == BURIN_FORMAT_F16 ? burin_f32_of_f16(x) : burin_f32_of_bf16(x);
    }
}

/* Read the `n` rows in `source` and say where each lies. All rows from the least to the greatest
 * are read at once if the window holds them: a tile's rows are adjacent, or within a head. */
static enum burin_status read_rows(
        const struct worker *w,
        const struct burin_tensor *tensor,
        size_t bytes,
        const int64_t *source,
        int n,
        const uint8_t **rows,
        struct burin_error *err)
{
    const struct burin_checkpoint *checkpoint = w->packing->checkpoint;
    int64_t first = source[0];
    int64_t last = source[0];
    for (int i = 1; i < n; i++) {
        first = source[i] < first ? source[i] : first;
        last = source[i] > last ? source[i] : last;
    }

    const size_t span = (size_t)(last - first + 1) * bytes;
    if (span <= w->window_bytes) {
        for (int i = 0; i < n; i++)
            rows[i] = w->window + (size_t)(source[i] - first) * bytes;
        return burin_checkpoint_read(
                checkpoint, tensor, (uint64_t)first * bytes, w->window, span, err);
    }
    enum burin_status status = BURIN_OK;
    for (int i = 0; i < n && !status; i++) {
        uint8_t *row = w->window + (size_t)i * bytes;
        rows[i] = row;
        status = burin_checkpoint_read(
                checkpoint, tensor, (uint64_t)source[i] * bytes, row, bytes, err);
    }
    return status;
}

static enum burin_status pack_tile(
        const struct worker *w, int index, int64_t tile, struct burin_error *err)
{
    const struct packing *p = w->packing;
    const struct burin_weight *weight = &p->model->weights[index];
    const struct burin_packed *packed = &p->family->packed[index];
    const struct burin_tensor *tensor = p->tensors[index];
    const bool wider = tensor->type->format != (int)weight->format;
    const size_t bytes = wider ? 2 * (size_t)weight->n_cols : row_bytes(weight);
    const struct tile_rows at = rows_of(weight, packed, tile);
    const size_t offset = packed->offset + at.offset;
    assert(offset >= p->begin && offset + packed->tile_bytes <= p->arena_bytes);

    int64_t source[BURIN_TILE_ROWS] = { 0 };
    const uint8_t *rows[BURIN_TILE_ROWS] = { NULL };
    int64_t first = at.first;
    if (tensor->pieces)
        tensor = tensor->pieces[at.piece];
    else
        first += at.piece * (weight->n_rows / burin_weight_pieces(weight));
    assert(at.n > 0);
    for (int i = 0; i < at.n; i++)
        source[i] = source_row(weight, p->checkpoint->rope_in_pairs, first + i);
    const enum burin_status status = read_rows(w, tensor, bytes, source, at.n, rows, err);
    if (status)
        return status;

    if (wider) { /* a vector: see burin_bind() */
        widen(w->widened, rows[0], weight->n_cols, tensor->type->format);
        rows[0] = (const uint8_t *)w->widened;
    }
    packed->pack(p->to + (offset - p->begin), rows, at.n, weight->n_cols);
    return BURIN_OK;
}

/* Disks want to know early; the next megabytes of a tensor are read for certain. */
static void expect(const struct packing *p, int weight)
{
    const struct burin_tensor *tensor = p->tensors[weight];
    const int64_t n = burin_weight_pieces(&p->model->weights[weight]);
    for (int64_t i = 0; i < (tensor->pieces ? n : 1); i++) {
        const struct burin_tensor *piece = tensor->pieces ? tensor->pieces[i] : tensor;
        burin_file_expect(&p->checkpoint->files[piece->file], piece->offset, piece->bytes);
    }
}

/* ---- Threads --------------------------------------------------------------------- */

static void *work(void *argument)
{
    const struct worker *w = argument;
    struct packing *p = w->packing;
    struct burin_error err = { 0 };
    struct job job;
    while (next_job(p, &job)) {
        enum burin_status status = BURIN_OK;
        if (job.begin == 0)
            expect(p, job.weight);
        for (int64_t tile = job.begin; tile < job.end && !status; tile++)
            status = pack_tile(w, job.weight, tile, &err);

        pthread_mutex_lock(&p->lock);
        p->done += job.bytes;
        const size_t done = p->done;
        pthread_mutex_unlock(&p->lock);
        if (!status && w->report && !w->report(w->user, done, w->total))
            status = burin_fail(&err, BURIN_ESTOPPED, "interrupted while packing weights");
        if (status)
            fail(p, status, &err);
    }
    return NULL;
}

/* The longest row, in bytes, and the longest vector, in elements. */
static void longest(const struct burin_model *model, size_t *row, size_t *vector)
{
    *row = 0;
    *vector = 0;
    for (int i = 0; i < model->n_weights; i++) {
        const struct burin_weight *weight = &model->weights[i];
        if (row_bytes(weight) > *row)
            *row = row_bytes(weight);
        if (weight->n_rows == 1 && (size_t)weight->n_cols > *vector)
            *vector = (size_t)weight->n_cols;
    }
}

static enum burin_status take_buffers(
        struct burin_arena *arena,
        struct worker *worker,
        const struct burin_model *model,
        struct burin_error *err)
{
    size_t row;
    size_t vector;
    longest(model, &row, &vector);
    const size_t tile = row * BURIN_TILE_ROWS;
    worker->window_bytes = tile > READ_BYTES ? tile : READ_BYTES;
    worker->window = burin_arena_take(arena, worker->window_bytes, 1, 64);
    worker->widened = BURIN_TAKE(arena, vector, float);
    if (!worker->window || !worker->widened)
        return burin_fail(
                err, BURIN_ENOMEM, "no room for %zu bytes to read rows of weights into",
                worker->window_bytes);
    return BURIN_OK;
}

/* Run the workers; fewer than asked for where the system gives no more threads. */
static void run(struct worker *workers, pthread_t *threads, int n_threads)
{
    int n_started = 1;
    while (n_started < n_threads &&
           pthread_create(&threads[n_started], NULL, work, &workers[n_started]) == 0)
        n_started++;
    work(&workers[0]);
    for (int i = 1; i < n_started; i++)
        pthread_join(threads[i], NULL);
}

static enum burin_status take_workers(
        struct packing *packing,
        struct burin_arena *buffers,
        int n_threads,
        struct worker **workers,
        pthread_t **threads,
        struct burin_error *err)
{
    *workers = BURIN_TAKE(buffers, (size_t)n_threads, struct worker);
    *threads = BURIN_TAKE(buffers, (size_t)n_threads, pthread_t);
    if (!*workers || !*threads)
        return burin_fail(err, BURIN_ENOMEM, "no room for %d threads", n_threads);
    enum burin_status status = BURIN_OK;
    for (int i = 0; i < n_threads && !status; i++) {
        (*workers)[i].packing = packing;
        status = take_buffers(buffers, &(*workers)[i], packing->model, err);
    }
    return status;
}

static size_t largest_tile(const struct packing *p)
{
    size_t most = 0;
    for (int i = 0; i < p->model->n_weights; i++)
        if (is_packed(p, i) && p->family->packed[i].tile_bytes > most)
            most = p->family->packed[i].tile_bytes;
    return most;
}

/* One part of the arena. */
static enum burin_status pack_part(
        struct packing *p,
        size_t begin,
        size_t end,
        uint8_t *to,
        struct worker *workers,
        pthread_t *threads,
        int n_threads)
{
    p->begin = begin;
    p->end = end;
    p->to = to;
    p->weight = 0;
    p->tile = -1;
    p->packed_to = 0;
    run(workers, threads, n_threads);
    return p->status;
}

/* Part by part: while one is on its way, the next is packed. */
static enum burin_status stream(
        struct packing *p,
        const struct burin_pack_sink *sink,
        struct worker *workers,
        pthread_t *threads,
        int n_threads,
        struct burin_error *err)
{
    const size_t tile = largest_tile(p);
    if (sink->buffer_bytes < tile + 64)
        return burin_fail(
                err, BURIN_ELIMIT, "weights go in pieces of %zu bytes, a tile has %zu",
                sink->buffer_bytes, tile);
    const size_t step =
            (sink->buffer_bytes - tile) / 64 * 64; /* a tile reaches beyond it */
    enum burin_status status = BURIN_OK;
    for (size_t begin = 0; begin < p->arena_bytes && !status;) {
        const size_t end = p->arena_bytes - begin < step ? p->arena_bytes : begin + step;
        uint8_t *buffer = NULL;
        status = sink->buffer(sink->user, &buffer, err);
        if (!status)
            status = pack_part(p, begin, end, buffer, workers, threads, n_threads);
        if (!status && p->packed_to)
            status = sink->send(sink->user, begin, p->packed_to - begin, err);
        begin = p->packed_to > end ? p->packed_to : end;
    }
    const enum burin_status finished = sink->finish(sink->user, status ? NULL : err);
    return status ? status : finished;
}

static enum burin_status pack_all(
        struct packing *packing,
        uint8_t *arena,
        const struct burin_pack_sink *sink,
        int n_threads,
        burin_pack_report *report,
        void *user,
        struct burin_error *err)
{
    const struct burin_model *model = packing->model;
    size_t total = 0;
    for (int i = 0; i < model->n_weights; i++)
        if (is_packed(packing, i))
            total += (size_t)model->weights[i].n_rows * row_bytes(&model->weights[i]);
    if ((size_t)n_threads > total / JOB_BYTES + 1) /* a small model has no work for all */
        n_threads = (int)(total / JOB_BYTES + 1);

    struct burin_arena buffers = { 0 };
    struct worker *workers = NULL;
    pthread_t *threads = NULL;
    enum burin_status status =
            take_workers(packing, &buffers, n_threads, &workers, &threads, err);
    if (!status) {
        workers[0].report = report;
        workers[0].user = user;
        workers[0].total = total;
        status = sink ? stream(packing, sink, workers, threads, n_threads, err)
                      : pack_part(
                                packing, 0, packing->arena_bytes, arena, workers, threads,
                                n_threads);
    }
    if (!status && report && !report(user, total, total))
        status = burin_fail(err, BURIN_ESTOPPED, "interrupted while packing weights");
    burin_arena_close(&buffers);
    pthread_mutex_destroy(&packing->lock);
    return status;
}

enum burin_status burin_pack(
        const struct burin_model *model,
        const struct burin_family *family,
        const struct burin_checkpoint *checkpoint,
        const struct burin_tensor *const *tensors,
        uint8_t *arena,
        int n_threads,
        burin_pack_report *report,
        void *user,
        struct burin_error *err)
{
    struct packing packing = {
        .model = model,
        .family = family,
        .checkpoint = checkpoint,
        .tensors = tensors,
        .arena_bytes = family->weights_bytes,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .err = err,
    };
    return pack_all(&packing, arena, NULL, n_threads, report, user, err);
}

enum burin_status burin_pack_stream(
        const struct burin_model *model,
        const struct burin_family *family,
        const struct burin_checkpoint *checkpoint,
        const struct burin_tensor *const *tensors,
        size_t arena_bytes,
        const struct burin_pack_sink *sink,
        int n_threads,
        burin_pack_report *report,
        void *user,
        struct burin_error *err)
{
    struct packing packing = {
        .model = model,
        .family = family,
        .checkpoint = checkpoint,
        .tensors = tensors,
        .arena_bytes = arena_bytes,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .err = err,
    };
    return pack_all(&packing, NULL, sink, n_threads, report, user, err);
}
