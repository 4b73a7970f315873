/* tools/synth.c -- The fast part of tools/synth: random weights for the model it is linked
 * with, as sharded safetensors, tensor by tensor in the order of the weights table.
 *
 *     synth FOLDER SEED SHARD_BYTES [--dry-run | --force]
 *
 * Values   A tensor's are mean + spread * z, rounded to its format; z is a sum of four numbers
 *          of 16 bits, with a deviation of 1 and at most 3.5. Matrices have spread
 *          1 / sqrt(inputs), so that products keep the scale of what comes in; vectors and
 *          numbers stay near what burin_weight.around says.
 * Same     Value i of a tensor is a hash of the seed, the tensor's name and i (SplitMix64,
 *          Steele et al. 2014): whatever the shards are, and in whatever order it is written.
 * Memory   One buffer of 4 MiB and the list of tensors. */
#include "runtime/base/arena.h"
#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/base/progress.h"
#include "runtime/base/status.h"
#include "runtime/base/units.h"
#include "runtime/cpu/short_float.h"
#include "runtime/model.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct tensor {
    const struct burin_weight *weight;
    enum burin_format format; /* F32, F16 or BF16 */
    uint64_t n;               /* elements */
    uint64_t begin;           /* bytes within its shard's data */
    uint64_t end;
    int shard;
};

struct synth {
    const char *folder;
    uint64_t seed;
    struct burin_arena arena;
    struct tensor *tensors;
    int n_tensors;
    int n_shards;
    int n_made; /* shards that have a file by now */
    uint64_t n_elements;
    uint64_t n_bytes;
    uint64_t n_written;
    struct burin_progress bar;
};

enum { PIECE = 4 << 20 };
static unsigned char piece[PIECE];

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
    (void)signal;
    stopped = 1;
}

/* ---- Values ---------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t key_of(uint64_t seed, const char *name)
{
    uint64_t key = mix(seed + 0x9e3779b97f4a7c15u);
    for (; *name; name++)
        key = mix(key ^ (unsigned char)*name);
    return key;
}

struct scale {
    float mean;
    float spread; /* of a whole step of the sum */
};

static struct scale scale_of(const struct burin_weight *weight)
{
    int64_t n_inputs = weight->n_cols;
    if (weight->n_dims == 4) /* a convolution's are its channels and taps */
        n_inputs *= weight->dims[1] * weight->dims[2];
    float spread = 0.02f; /* of a bias */
    if (weight->n_dims >= 2)
        spread = 1.0f / sqrtf((float)n_inputs);
    else if (weight->around != 0)
        spread = 0.05f * fabsf(weight->around);
    return (struct scale){
        .mean = weight->around,
        .spread = spread / 37837.227f, /* sqrt(4 * (65536^2 - 1) / 12) */
    };
}

static inline float value(uint64_t key, uint64_t i, struct scale scale)
{
    const uint64_t bits = mix(key + i * 0x9e3779b97f4a7c15u);
    const uint64_t low = (bits & 0xffff) + (bits >> 16 & 0xffff);
    const uint64_t high = (bits >> 32 & 0xffff) + (bits >> 48);
    const int32_t sum = (int32_t)(low + high);
    return scale.mean + scale.spread * (float)(sum - 2 * 0xffff);
}

/* Rounded to nearest, ties to even; for what is finite in f16. */
static inline uint16_t f16_of_f32(float x)
{
    const uint32_t bits = burin_bits_of_f32(x * 0x1p-112f); /* the exponent of f16 */
    return (uint16_t)(bits >> 16 & 0x8000) |
           (uint16_t)(((bits & 0x7fffffff) + 0xfff + (bits >> 13 & 1)) >> 13);
}

static size_t element_bytes(enum burin_format format)
{
    return format == BURIN_FORMAT_F32 ? 4 : 2;
}

/* Elements first ... first + n - 1 of a tensor, as its file holds them. */
static void fill(
        void *out,
        const struct tensor *tensor,
        uint64_t key,
        struct scale scale,
        uint64_t first,
        size_t n)
{
    float *wide = out;
    uint16_t *narrow = out;

    switch (tensor->format) {
    case BURIN_FORMAT_F32:
        for (size_t i = 0; i < n; i++)
            wide[i] = value(key, first + i, scale);
        break;
    case BURIN_FORMAT_F16:
        for (size_t i = 0; i < n; i++)
            narrow[i] = f16_of_f32(value(key, first + i, scale));
        break;
    default:
        for (size_t i = 0; i < n; i++)
            narrow[i] = burin_bf16_of_f32(value(key, first + i, scale));
    }
}

/* ---- The plan -------------------------------------------------------------------- */

static const char *dtype_of(enum burin_format format)
{
    return format == BURIN_FORMAT_F32 ? "F32" : format == BURIN_FORMAT_F16 ? "F16" : "BF16";
}

/* Releases keep vectors in the format of their matrices; the loader widens them. */
static enum burin_format format_of(
        const struct burin_weight *weight, enum burin_format matrices)
{
    return weight->n_dims < 2 ? matrices : weight->format;
}

static enum burin_status list_tensors(
        struct synth *s, uint64_t shard_bytes, struct burin_error *err)
{
    const struct burin_model *model = &burin_model;
    enum burin_format matrices = BURIN_FORMAT_F32;
    for (int i = model->n_weights - 1; i >= 0; i--)
        if (model->weights[i].n_dims >= 2)
            matrices = model->weights[i].format;

    s->n_tensors = model->n_weights + model->n_unread;
    s->tensors = BURIN_TAKE(&s->arena, (size_t)s->n_tensors, struct tensor);
    if (!s->tensors)
        return burin_fail(err, BURIN_ENOMEM, "no room to list %d tensors", s->n_tensors);
    uint64_t used = 0;
    for (int i = 0; i < s->n_tensors; i++) {
        const struct burin_weight *weight = i < model->n_weights
                                                    ? &model->weights[i]
                                                    : &model->unread[i - model->n_weights];
        struct tensor *tensor = &s->tensors[i];
        tensor->weight = weight;
        tensor->format = format_of(weight, matrices);
        tensor->n = (uint64_t)weight->n_rows * (uint64_t)weight->n_cols;
        if (tensor->format > BURIN_FORMAT_BF16)
            return burin_fail(
                    err, BURIN_EUSAGE,
                    "%s is made for weights that safetensors can't hold: generate it with "
                    "--quant bf16 (or f32, f16)",
                    model->name);
        const uint64_t bytes = tensor->n * element_bytes(tensor->format);
        if (s->n_shards == 0 || (used > 0 && used + bytes > shard_bytes)) {
            s->n_shards++;
            used = 0;
        }
        tensor->shard = s->n_shards - 1;
        tensor->begin = used;
        tensor->end = used += bytes;
        s->n_bytes += bytes;
        s->n_elements +=
                weight->n_dims > 0 ? tensor->n : 0; /* as burin_model counts them */
    }
    if (s->n_elements != (uint64_t)model->n_elements)
        return burin_fail(
                err, BURIN_EMISMATCH, "%s has %" PRId64 " elements, its tables %" PRIu64,
                model->name, model->n_elements, s->n_elements);
    return BURIN_OK;
}

/* ---- Files ----------------------------------------------------------------------- */

/* The folder is where we are: run() went there. */
struct name {
    char text[64];
};

static struct name shard_name(const struct synth *s, int shard)
{
    struct name name;
    snprintf(
            name.text, sizeof name.text, "model-%05d-of-%05d.safetensors", shard + 1,
            s->n_shards);
    return name;
}

static enum burin_status cannot(
        const struct synth *s, const char *what, const char *name, struct burin_error *err)
{
    return burin_fail(
            err, BURIN_EIO, "can't %s %s/%s: %s", what, s->folder, name, strerror(errno));
}

static enum burin_status check_room(const struct synth *s, struct burin_error *err)
{
    struct statvfs disk;
    if (statvfs(".", &disk) != 0)
        return cannot(s, "look at", ".", err);
    const uint64_t free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    const uint64_t margin = 16u << 20; /* headers, index, the file system's own */
    if (free_bytes >= s->n_bytes + margin)
        return BURIN_OK;
    return burin_fail(
            err, BURIN_ENOMEM, "%s needs %s, there are %s free in %s", burin_model.name,
            burin_human_bytes((int64_t)(s->n_bytes + margin)).text,
            burin_human_bytes((int64_t)free_bytes).text, s->folder);
}

/* Name, dtype and place of every tensor of a shard: eight bytes with the length of what
 * follows, JSON that ends with spaces so that data begins at a multiple of 8. */
static enum burin_status write_header(
        const struct synth *s, int shard, FILE *out, struct burin_error *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        return burin_fail(err, BURIN_ENOMEM, "no room for the header of a shard");
    struct burin_json json;
    burin_json_begin(&json, memory);
    burin_json_open(&json, NULL, '{');
    burin_json_open(&json, "__metadata__", '{');
    burin_json_text(&json, "format", "pt", SIZE_MAX);
    burin_json_close(&json);
    for (int i = 0; i < s->n_tensors; i++) {
        const struct tensor *tensor = &s->tensors[i];
        const struct burin_weight *weight = tensor->weight;
        if (tensor->shard != shard)
            continue;
        burin_json_open(&json, weight->names[BURIN_SAFETENSORS], '{');
        burin_json_text(&json, "dtype", dtype_of(tensor->format), SIZE_MAX);
        burin_json_open(&json, "shape", '[');
        for (int k = 0; k < weight->n_dims; k++)
            burin_json_integer(&json, NULL, weight->dims[k]);
        burin_json_close(&json);
        burin_json_open(&json, "data_offsets", '[');
        burin_json_integer(&json, NULL, (int64_t)tensor->begin);
        burin_json_integer(&json, NULL, (int64_t)tensor->end);
        burin_json_close(&json);
        burin_json_close(&json);
    }
    burin_json_close(&json);
    const int failed = fclose(memory);

    const uint64_t length = (size + 7) / 8 * 8;
    unsigned char head[8];
    for (int i = 0; i < 8; i++)
        head[i] = (unsigned char)(length >> 8 * i);
    if (!failed) {
        fwrite(head, 1, sizeof head, out);
        fwrite(text, 1, size, out);
        fprintf(out, "%*s", (int)(length - size), "");
    }
    free(text);
    return failed ? burin_fail(err, BURIN_ENOMEM, "no room for the header of a shard")
                  : BURIN_OK;
}

static enum burin_status write_tensor(
        struct synth *s,
        const struct tensor *tensor,
        FILE *out,
        const char *name,
        struct burin_error *err)
{
    const struct scale scale = scale_of(tensor->weight);
    const uint64_t key = key_of(s->seed, tensor->weight->names[BURIN_SAFETENSORS]);
    const size_t bytes = element_bytes(tensor->format);
    const uint64_t most = PIECE / bytes;

    for (uint64_t at = 0; at < tensor->n; at += most) {
        const size_t n = (size_t)(tensor->n - at < most ? tensor->n - at : most);
        fill(piece, tensor, key, scale, at, n);
        if (fwrite(piece, bytes, n, out) != n)
            return cannot(s, "write all of", name, err);
        if (stopped)
            return burin_fail(err, BURIN_ESTOPPED, "stopped: what was written is removed");
        s->n_written += n * bytes;
        burin_progress_update(&s->bar, (int64_t)s->n_written, (int64_t)s->n_bytes);
    }
    return BURIN_OK;
}

static enum burin_status write_shard(struct synth *s, int shard, struct burin_error *err)
{
    const struct name name = shard_name(s, shard);
    FILE *out = fopen(name.text, "wb");
    if (!out)
        return cannot(s, "write", name.text, err);
    s->n_made = shard + 1;
    enum burin_status status = write_header(s, shard, out, err);
    for (int i = 0; i < s->n_tensors && !status; i++)
        if (s->tensors[i].shard == shard)
            status = write_tensor(s, &s->tensors[i], out, name.text, err);
    if (fclose(out) != 0 && !status)
        status = cannot(s, "write all of", name.text, err);
    return status;
}

static enum burin_status write_index(const struct synth *s, struct burin_error *err)
{
    static const char name[] = "model.safetensors.index.json";
    FILE *out = fopen(name, "wb");
    if (!out)
        return cannot(s, "write", name, err);
    struct burin_json json;
    burin_json_begin(&json, out);
    burin_json_open(&json, NULL, '{');
    burin_json_open(&json, "metadata", '{');
    burin_json_integer(&json, "total_size", (int64_t)s->n_bytes);
    burin_json_close(&json);
    burin_json_open(&json, "weight_map", '{');
    for (int i = 0; i < s->n_tensors; i++)
        burin_json_text(
                &json, s->tensors[i].weight->names[BURIN_SAFETENSORS],
                shard_name(s, s->tensors[i].shard).text, SIZE_MAX);
    burin_json_close(&json);
    burin_json_close(&json);
    const int failed = ferror(out);
    return fclose(out) != 0 || failed ? cannot(s, "write all of", name, err) : BURIN_OK;
}

/* A folder that holds a checkpoint keeps it, unless told otherwise. */
static enum burin_status make_way(const struct synth *s, int force, struct burin_error *err)
{
    static const char *const names[] = { "model.safetensors.index.json",
                                         "model.safetensors" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (access(names[i], F_OK) != 0)
            continue;
        if (!force)
            return burin_fail(
                    err, BURIN_EUSAGE, "%s/%s is there already: --force replaces it",
                    s->folder, names[i]);
        if (unlink(names[i]) != 0)
            return cannot(s, "remove", names[i], err);
    }
    return BURIN_OK;
}

static void tell(const struct synth *s, const char *verb, double ms)
{
    fprintf(stderr, "%s: %s %s tensors, %s elements, %s in %d file%s", s->folder, verb,
            burin_grouped(s->n_tensors).text, burin_grouped((int64_t)s->n_elements).text,
            burin_human_bytes((int64_t)s->n_bytes).text, s->n_shards,
            s->n_shards > 1 ? "s" : "");
    if (ms > 0)
        fprintf(stderr, ", %.1f s, %s/s", ms / 1e3,
                burin_human_bytes((int64_t)((double)s->n_bytes / ms * 1e3)).text);
    fputc('\n', stderr);
}

static enum burin_status write_all(struct synth *s, int force, struct burin_error *err)
{
    enum burin_status status = check_room(s, err);
    if (!status)
        status = make_way(s, force, err);
    if (status)
        return status;
    const double began_ms = burin_now_ms();
    burin_progress_begin(&s->bar, stderr, "writing", BURIN_COUNT_BYTES, true);
    for (int i = 0; i < s->n_shards && !status; i++)
        status = write_shard(s, i, err);
    if (!status)
        status = write_index(s, err);
    burin_progress_end(&s->bar);
    for (int i = 0; i < s->n_made && status; i++)
        unlink(shard_name(s, i).text);
    if (!status)
        tell(s, "wrote", burin_now_ms() - began_ms);
    return status;
}

static enum burin_status run(
        int argc, char **argv, struct synth *s, struct burin_error *err)
{
    if (argc < 4)
        return burin_fail(
                err, BURIN_EUSAGE, "FOLDER SEED SHARD_BYTES: tools/synth gives them");
    char *end;
    s->folder = argv[1];
    errno = 0;
    s->seed = strtoull(argv[2], &end, 10);
    if (errno || *end || end == argv[2] || *argv[2] == '-')
        return burin_fail(err, BURIN_EUSAGE, "--seed: '%s' isn't a number", argv[2]);
    int64_t shard_bytes;
    enum burin_status status =
            burin_parse_bytes(argv[3], strlen(argv[3]), &shard_bytes, err);
    if (!status && shard_bytes < 1)
        status = burin_fail(err, BURIN_EUSAGE, "--shard: a file holds a byte at least");
    if (!status)
        status = list_tensors(s, (uint64_t)shard_bytes, err);
    if (!status && s->n_shards > 512)
        status = burin_fail(
                err, BURIN_EUSAGE, "--shard: %d files, 512 at most can be loaded",
                s->n_shards);
    if (status)
        return status;
    if (argc > 4 && strcmp(argv[4], "--dry-run") == 0) {
        tell(s, "would be", 0);
        return BURIN_OK;
    }
    if (chdir(s->folder) != 0)
        return cannot(s, "enter", "", err);
    return write_all(s, argc > 4 && strcmp(argv[4], "--force") == 0, err);
}

int main(int argc, char **argv)
{
    static struct synth s;
    static struct burin_error err;
    const struct sigaction action = { .sa_handler = stop };
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);

    const enum burin_status status = run(argc, argv, &s, &err);
    if (status)
        fprintf(stderr, "synth: %s\n", err.message);
    burin_arena_close(&s.arena);
    return burin_exit_code(status);
}
