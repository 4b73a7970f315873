#include "runtime/weights/gguf.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

_Static_assert(
        __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
        "headers are read as they lie in the file");

/* The limits of the reference reader, where they are not the bytes left; and ours, far above
 * what models have (a header of 40 MB, 200 keys, 3,000 tensors): a sparse file of a terabyte
 * may announce whatever it likes. */
enum {
    MAX_HEADER = 256 << 20,
    MAX_KEYS = 1 << 16,
    MAX_TENSORS = 1 << 17,
    MAX_TEXT = 1 << 30,
    MAX_COUNT = 1 << 30,
    MAX_NAME = 63, /* GGML_MAX_NAME with its NUL */
    MAX_DIMS = 4,
    MAX_ALIGNMENT = 1 << 30,
    DEFAULT_ALIGNMENT = 32,
};

/* The fewest bytes of a key and of a tensor: with both counts held against the bytes left, the
 * lists are never longer than the file could fill. */
enum { LEAST_KEY = 8 + 1 + 4 + 1, LEAST_TENSOR = 8 + 4 + 4 + 8 };

enum { READ_AHEAD = 1 << 20 };

struct burin_gguf_entry {
    struct burin_span key;
    const uint8_t *value; /* behind the type */
    uint32_t type;
};

static const uint8_t value_bytes[BURIN_GGUF_N_TYPES] = {
    [BURIN_GGUF_U8] = 1,   [BURIN_GGUF_I8] = 1,
    [BURIN_GGUF_U16] = 2,  [BURIN_GGUF_I16] = 2,
    [BURIN_GGUF_U32] = 4,  [BURIN_GGUF_I32] = 4,
    [BURIN_GGUF_F32] = 4,  [BURIN_GGUF_BOOL] = 1,
    [BURIN_GGUF_TEXT] = 8, /* its length; the text comes besides */
    [BURIN_GGUF_U64] = 8,  [BURIN_GGUF_I64] = 8,
    [BURIN_GGUF_F64] = 8,
};

static const char *const type_names[BURIN_GGUF_N_TYPES] = {
    [BURIN_GGUF_U8] = "u8",       [BURIN_GGUF_I8] = "i8",     [BURIN_GGUF_U16] = "u16",
    [BURIN_GGUF_I16] = "i16",     [BURIN_GGUF_U32] = "u32",   [BURIN_GGUF_I32] = "i32",
    [BURIN_GGUF_F32] = "f32",     [BURIN_GGUF_BOOL] = "bool", [BURIN_GGUF_TEXT] = "text",
    [BURIN_GGUF_ARRAY] = "array", [BURIN_GGUF_U64] = "u64",   [BURIN_GGUF_I64] = "i64",
    [BURIN_GGUF_F64] = "f64",
};

/* By ggml's type id; what is missing here was removed or is made at run time only. */
static const struct burin_encoding encodings[] = {
    [0] = { "f32", BURIN_FORMAT_F32, 1, 4 },
    [1] = { "f16", BURIN_FORMAT_F16, 1, 2 },
    [2] = { "q4_0", BURIN_FORMAT_Q4_0, 32, 18 },
    [3] = { "q4_1", BURIN_FORMAT_Q4_1, 32, 20 },
    [6] = { "q5_0", BURIN_NO_FORMAT, 32, 22 },
    [7] = { "q5_1", BURIN_NO_FORMAT, 32, 24 },
    [8] = { "q8_0", BURIN_FORMAT_Q8_0, 32, 34 },
    [10] = { "q2_k", BURIN_NO_FORMAT, 256, 84 },
    [11] = { "q3_k", BURIN_NO_FORMAT, 256, 110 },
    [12] = { "q4_k", BURIN_NO_FORMAT, 256, 144 },
    [13] = { "q5_k", BURIN_NO_FORMAT, 256, 176 },
    [14] = { "q6_k", BURIN_NO_FORMAT, 256, 210 },
    [16] = { "iq2_xxs", BURIN_NO_FORMAT, 256, 66 },
    [17] = { "iq2_xs", BURIN_NO_FORMAT, 256, 74 },
    [18] = { "iq3_xxs", BURIN_NO_FORMAT, 256, 98 },
    [19] = { "iq1_s", BURIN_NO_FORMAT, 256, 50 },
    [20] = { "iq4_nl", BURIN_NO_FORMAT, 32, 18 },
    [21] = { "iq3_s", BURIN_NO_FORMAT, 256, 110 },
    [22] = { "iq2_s", BURIN_NO_FORMAT, 256, 82 },
    [23] = { "iq4_xs", BURIN_NO_FORMAT, 256, 136 },
    [24] = { "i8", BURIN_NO_FORMAT, 1, 1 },
    [25] = { "i16", BURIN_NO_FORMAT, 1, 2 },
    [26] = { "i32", BURIN_NO_FORMAT, 1, 4 },
    [27] = { "i64", BURIN_NO_FORMAT, 1, 8 },
    [28] = { "f64", BURIN_NO_FORMAT, 1, 8 },
    [29] = { "iq1_m", BURIN_NO_FORMAT, 256, 56 },
    [30] = { "bf16", BURIN_FORMAT_BF16, 1, 2 },
    [34] = { "tq1_0", BURIN_NO_FORMAT, 256, 54 },
    [35] = { "tq2_0", BURIN_NO_FORMAT, 256, 66 },
    [39] = { "mxfp4", BURIN_NO_FORMAT, 32, 17 },
    [40] = { "nvfp4", BURIN_NO_FORMAT, 64, 36 },
};

/* ---- Reading the header ---------------------------------------------------------- */

/* The header is read in pieces as it turns out to be longer, into a mapping that may move:
 * until it is complete, places in it are offsets. */
struct reader {
    struct burin_gguf *gguf;
    uint64_t at;     /* the next byte, <= filled */
    uint64_t filled; /* bytes of the file in gguf->header */
    uint64_t alignment;
    struct burin_error *err;
};

#define broken(reader, ...) burin_fail((reader)->err, BURIN_EFORMAT, __VA_ARGS__)

static const char *path_of(const struct reader *r)
{
    return r->gguf->file.path;
}

static uint64_t bytes_left(const struct reader *r)
{
    return r->gguf->file.size - r->at;
}

static enum burin_status grow(struct reader *r, uint64_t needed)
{
    struct burin_gguf *gguf = r->gguf;
    uint64_t wanted = needed + READ_AHEAD;
    if (needed > MAX_HEADER)
        return broken(r, "%s: a header of more than %d bytes", path_of(r), MAX_HEADER);
    if (wanted > gguf->file.size)
        wanted = gguf->file.size;

    if (wanted > gguf->mapped) {
        const size_t room = (size_t)(wanted < 2 * gguf->mapped ? 2 * gguf->mapped : wanted);
        void *moved = gguf->header
                              ? mremap(gguf->header, gguf->mapped, room, MREMAP_MAYMOVE)
                              : mmap(NULL, room, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (moved == MAP_FAILED)
            return burin_fail(
                    r->err, BURIN_ENOMEM, "%s: no room for %zu bytes of its header",
                    path_of(r), room);
        gguf->header = moved;
        gguf->mapped = room;
    }
    const enum burin_status status = burin_file_read(
            &gguf->file, r->filled, gguf->header + r->filled, (size_t)(wanted - r->filled),
            r->err);
    if (!status)
        r->filled = wanted;
    return status;
}

/* The next `bytes` bytes are part of the file and have been read. */
static enum burin_status have(struct reader *r, uint64_t bytes, const char *what)
{
    if (bytes > bytes_left(r))
        return broken(
                r,
                "%s: %s needs %" PRIu64 " bytes at byte %" PRIu64 ", %" PRIu64 " are left",
                path_of(r), what, bytes, r->at, bytes_left(r));
    return r->at + bytes > r->filled ? grow(r, r->at + bytes) : BURIN_OK;
}

static enum burin_status take(struct reader *r, void *value, size_t bytes, const char *what)
{
    const enum burin_status status = have(r, bytes, what);
    if (status)
        return status;
    memcpy(value, r->gguf->header + r->at, bytes);
    r->at += bytes;
    return BURIN_OK;
}

/* Pass a text; *begin is where its bytes are in the header. */
static enum burin_status take_text(
        struct reader *r, uint64_t *begin, uint64_t *length, const char *what)
{
    enum burin_status status = take(r, length, sizeof *length, what);
    if (status)
        return status;
    if (*length > MAX_TEXT)
        return broken(
                r, "%s: %s at byte %" PRIu64 " has %" PRIu64 " bytes, at most %d are read",
                path_of(r), what, r->at, *length, MAX_TEXT);
    status = have(r, *length, what);
    if (status)
        return status;
    *begin = r->at;
    r->at += *length;
    return BURIN_OK;
}

/* A place in the header while that may still move, kept in a pointer's place. */
static struct burin_span place(uint64_t begin, uint64_t length)
{
    return (struct burin_span){ (const char *)(uintptr_t)begin, (size_t)length };
}

static struct burin_span placed(const struct reader *r, struct burin_span span)
{
    return (struct burin_span){ (const char *)r->gguf->header + (uintptr_t)span.at,
                                span.length };
}

static enum burin_status pass_array(struct reader *r, struct burin_span key)
{
    uint32_t type;
    uint64_t count;
    enum burin_status status = take(r, &type, sizeof type, "an array's type");
    if (!status)
        status = take(r, &count, sizeof count, "an array's count");
    if (status)
        return status;

    if (type >= BURIN_GGUF_N_TYPES || type == BURIN_GGUF_ARRAY)
        return broken(
                r, "%s: key %s is an array of %s (type %" PRIu32 ")", path_of(r),
                burin_quote(placed(r, key)).text,
                type == BURIN_GGUF_ARRAY ? "arrays" : "an unknown type", type);
    if (count > MAX_COUNT || count > bytes_left(r) / value_bytes[type])
        return broken(
                r,
                "%s: key %s announces %" PRIu64 " elements of at least %d bytes, %" PRIu64
                " bytes are left",
                path_of(r), burin_quote(placed(r, key)).text, count, value_bytes[type],
                bytes_left(r));

    if (type != BURIN_GGUF_TEXT) {
        status = have(r, count * value_bytes[type], "an array");
        if (!status)
            r->at += count * value_bytes[type];
        return status;
    }
    for (uint64_t i = 0; i < count && !status; i++) {
        uint64_t begin;
        uint64_t length;
        status = take_text(r, &begin, &length, "a text of an array");
    }
    return status;
}

static enum burin_status take_alignment(struct reader *r, uint32_t type)
{
    uint32_t alignment;
    if (type != BURIN_GGUF_U32)
        return broken(
                r, "%s: general.alignment is a %s, u32 is wanted", path_of(r),
                type_names[type]);
    const enum burin_status status = take(r, &alignment, sizeof alignment, "alignment");
    if (status)
        return status;
    if (alignment == 0 || (alignment & (alignment - 1)) || alignment > MAX_ALIGNMENT)
        return broken(
                r, "%s: general.alignment is %" PRIu32 ", a power of two is wanted",
                path_of(r), alignment);
    r->alignment = alignment;
    return BURIN_OK;
}

static enum burin_status take_key(struct reader *r, struct burin_gguf_entry *entry)
{
    uint64_t begin = 0;
    uint64_t length = 0;
    enum burin_status status = take_text(r, &begin, &length, "a key");
    if (status)
        return status;
    if (length == 0)
        return broken(r, "%s: the key at byte %" PRIu64 " is empty", path_of(r), begin);
    entry->key = place(begin, length);

    status = take(r, &entry->type, sizeof entry->type, "a value's type");
    if (status)
        return status;
    if (entry->type >= BURIN_GGUF_N_TYPES)
        return broken(
                r, "%s: key %s has a value of the unknown type %" PRIu32, path_of(r),
                burin_quote(placed(r, entry->key)).text, entry->type);
    entry->value = (const uint8_t *)(uintptr_t)r->at;

    if (burin_span_is(placed(r, entry->key), "general.alignment"))
        return take_alignment(r, entry->type);
    if (entry->type == BURIN_GGUF_ARRAY)
        return pass_array(r, entry->key);
    if (entry->type == BURIN_GGUF_TEXT)
        return take_text(r, &begin, &length, "a text");
    status = have(r, value_bytes[entry->type], "a value");
    if (!status)
        r->at += value_bytes[entry->type];
    return status;
}

static int by_key(const void *a, const void *b)
{
    const struct burin_gguf_entry *left = a;
    const struct burin_gguf_entry *right = b;
    return burin_span_compare(left->key, right->key);
}

/* Sizes of one tensor: its elements, its bytes. */
static enum burin_status take_dims(
        struct reader *r, struct burin_tensor *tensor, const char *name, uint32_t n_dims)
{
    uint64_t dims[MAX_DIMS];
    uint64_t elements = 1;
    for (uint32_t i = 0; i < n_dims; i++) {
        const enum burin_status status = take(r, &dims[i], sizeof dims[i], "a dimension");
        if (status)
            return status;
        if (dims[i] == 0 || dims[i] > INT64_MAX)
            return broken(
                    r, "%s: tensor %s: dimension %" PRIu32 " is %" PRId64, path_of(r), name,
                    i, (int64_t)dims[i]);
        if (__builtin_mul_overflow(elements, dims[i], &elements) || elements > INT64_MAX)
            return broken(
                    r, "%s: tensor %s: the product of its dimensions overflows", path_of(r),
                    name);
    }
    tensor->n_dims = (int)n_dims;
    for (uint32_t i = 0; i < n_dims; i++) /* the file has them innermost first */
        tensor->dims[i] = dims[n_dims - 1 - i];
    tensor->bytes = elements; /* until the type is known */
    return BURIN_OK;
}

static enum burin_status take_type(
        struct reader *r, struct burin_tensor *tensor, const char *name)
{
    uint32_t id;
    const enum burin_status status = take(r, &id, sizeof id, "a tensor's type");
    if (status)
        return status;
    if (id >= sizeof encodings / sizeof encodings[0] || !encodings[id].name)
        return broken(
                r, "%s: tensor %s has the unknown type %" PRIu32, path_of(r), name, id);

    const struct burin_encoding *type = &encodings[id];
    const uint64_t n_cols = tensor->n_dims ? tensor->dims[tensor->n_dims - 1] : 1;
    if (n_cols % type->block)
        return broken(
                r,
                "%s: tensor %s: rows of %" PRIu64
                " elements are no whole blocks of %s (%d)",
                path_of(r), name, n_cols, type->name, type->block);
    if (__builtin_mul_overflow(tensor->bytes / type->block, type->bytes, &tensor->bytes))
        return broken(r, "%s: tensor %s: its size overflows", path_of(r), name);
    tensor->type = type;
    return BURIN_OK;
}

/* Round up to the alignment. Callers pass what is at most the file's size. */
static uint64_t aligned(const struct reader *r, uint64_t bytes)
{
    return (bytes + r->alignment - 1) / r->alignment * r->alignment;
}

/* *data_end is where the data of the tensors so far ends, relative to where data begins. */
static enum burin_status take_tensor(
        struct reader *r, struct burin_tensor *tensor, uint64_t *data_end)
{
    uint64_t begin = 0;
    uint64_t length = 0;
    uint32_t n_dims = 0;
    uint64_t offset = 0;
    enum burin_status status = take_text(r, &begin, &length, "a tensor's name");
    if (status)
        return status;
    tensor->name = place(begin, length);
    const struct burin_quoted name = burin_quote(placed(r, tensor->name));
    if (length > MAX_NAME)
        return broken(
                r, "%s: tensor %s: a name of %" PRIu64 " bytes, at most %d are allowed",
                path_of(r), name.text, length, MAX_NAME);

    status = take(r, &n_dims, sizeof n_dims, "a tensor's dimensions");
    if (status)
        return status;
    if (n_dims > MAX_DIMS)
        return broken(
                r, "%s: tensor %s has %" PRIu32 " dimensions, at most %d are allowed",
                path_of(r), name.text, n_dims, MAX_DIMS);
    status = take_dims(r, tensor, name.text, n_dims);
    if (!status)
        status = take_type(r, tensor, name.text);
    if (!status)
        status = take(r, &offset, sizeof offset, "a tensor's offset");
    if (status)
        return status;

    const uint64_t expected = aligned(r, *data_end);
    if (offset != expected)
        return broken(
                r,
                "%s: tensor %s begins at byte %" PRIu64 " of the data, %" PRIu64
                " is where the one before it ends",
                path_of(r), name.text, offset, expected);
    if (tensor->bytes > r->gguf->file.size || offset > r->gguf->file.size - tensor->bytes)
        return broken(
                r,
                "%s: tensor %s: %" PRIu64 " bytes at byte %" PRIu64
                " of the data; the whole file has %" PRIu64 ": is it truncated?",
                path_of(r), name.text, tensor->bytes, offset, r->gguf->file.size);
    tensor->offset = offset;
    *data_end = offset + tensor->bytes;
    return BURIN_OK;
}

static enum burin_status take_magic(struct reader *r)
{
    char magic[4];
    enum burin_status status = take(r, magic, sizeof magic, "the magic");
    if (status)
        return status;
    if (memcmp(magic, "GGUF", 4) != 0)
        return broken(
                r, "%s begins with %s, a GGUF file with \"GGUF\"", path_of(r),
                burin_quote((struct burin_span){ magic, 4 }).text);

    uint32_t version;
    status = take(r, &version, sizeof version, "the version");
    if (status)
        return status;
    if (version && (version & 0xffff) == 0)
        return broken(r, "%s: a big-endian GGUF file; we read little-endian", path_of(r));
    if (version != 2 && version != 3)
        return broken(
                r, "%s: GGUF version %" PRIu32 "; we read versions 2 and 3", path_of(r),
                version);
    r->gguf->version = version;
    return BURIN_OK;
}

static enum burin_status take_counts(struct reader *r)
{
    uint64_t n_tensors;
    uint64_t n_keys;
    enum burin_status status = take(r, &n_tensors, sizeof n_tensors, "the tensor count");
    if (!status)
        status = take(r, &n_keys, sizeof n_keys, "the key count");
    if (status)
        return status;

    const uint64_t left = bytes_left(r);
    if (n_keys > MAX_KEYS || n_tensors > MAX_TENSORS)
        return broken(
                r,
                "%s announces %" PRIu64 " keys and %" PRIu64
                " tensors; at most %d and %d are read",
                path_of(r), n_keys, n_tensors, MAX_KEYS, MAX_TENSORS);
    if (n_keys > left / LEAST_KEY || n_tensors > (left - n_keys * LEAST_KEY) / LEAST_TENSOR)
        return broken(
                r,
                "%s announces %" PRIu64 " keys and %" PRIu64 " tensors; its %" PRIu64
                " bytes cannot hold them",
                path_of(r), n_keys, n_tensors, r->gguf->file.size);
    r->gguf->n_keys = (size_t)n_keys;
    r->gguf->n_tensors = (size_t)n_tensors;
    return BURIN_OK;
}

static enum burin_status no_room(const struct reader *r)
{
    return burin_fail(
            r->err, BURIN_ENOMEM, "%s: no room to list its %zu keys and %zu tensors",
            path_of(r), r->gguf->n_keys, r->gguf->n_tensors);
}

static enum burin_status take_keys(struct reader *r, struct burin_gguf_entry **entries)
{
    struct burin_gguf *gguf = r->gguf;
    *entries = BURIN_TAKE(&gguf->arena, gguf->n_keys, struct burin_gguf_entry);
    gguf->keys = BURIN_TAKE(&gguf->arena, gguf->n_keys, struct burin_gguf_entry *);
    if (!*entries || !gguf->keys)
        return no_room(r);

    for (size_t i = 0; i < gguf->n_keys; i++) {
        const enum burin_status status = take_key(r, *entries + i);
        if (status)
            return status;
    }
    return BURIN_OK;
}

static enum burin_status take_tensors(struct reader *r, struct burin_tensor **tensors)
{
    struct burin_gguf *gguf = r->gguf;
    *tensors = BURIN_TAKE(&gguf->arena, gguf->n_tensors, struct burin_tensor);
    gguf->tensors = BURIN_TAKE(&gguf->arena, gguf->n_tensors, struct burin_tensor *);
    if (!*tensors || !gguf->tensors)
        return no_room(r);

    uint64_t data_end = 0;
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        const enum burin_status status = take_tensor(r, *tensors + i, &data_end);
        if (status)
            return status;
    }

    const uint64_t data = aligned(r, r->at);
    if (gguf->n_tensors && (data > gguf->file.size || data_end > gguf->file.size - data))
        return broken(
                r,
                "%s: its tensors end at byte %" PRIu64 ", the file at %" PRIu64
                ": it is truncated",
                path_of(r), data + data_end, gguf->file.size);
    for (size_t i = 0; i < gguf->n_tensors; i++)
        (*tensors)[i].offset += data;
    return BURIN_OK;
}

/* Nothing moves from here on: turn places into pointers, give back what was read ahead. */
static void settle(
        struct reader *r, struct burin_gguf_entry *entries, struct burin_tensor *tensors)
{
    struct burin_gguf *gguf = r->gguf;
    gguf->header_bytes = r->at;

    enum { PAGE = 4096 };
    const size_t kept = (size_t)(r->at + PAGE - 1) / PAGE * PAGE;
    if (kept < gguf->mapped) {
        void *header = mremap(gguf->header, gguf->mapped, kept, 0);
        if (header != MAP_FAILED)
            gguf->mapped = kept;
    }

    for (size_t i = 0; i < gguf->n_keys; i++) {
        entries[i].key = placed(r, entries[i].key);
        entries[i].value = gguf->header + (uintptr_t)entries[i].value;
        gguf->keys[i] = &entries[i];
    }
    burin_sort((void **)gguf->keys, gguf->n_keys, by_key);
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        tensors[i].name = placed(r, tensors[i].name);
        gguf->tensors[i] = &tensors[i];
    }
    burin_sort((void **)gguf->tensors, gguf->n_tensors, burin_tensor_by_name);
}

static enum burin_status refuse_duplicates(const struct reader *r)
{
    const struct burin_gguf *gguf = r->gguf;
    for (size_t i = 1; i < gguf->n_keys; i++)
        if (by_key(gguf->keys[i - 1], gguf->keys[i]) == 0)
            return broken(
                    r, "%s: duplicate key %s", path_of(r),
                    burin_quote(gguf->keys[i]->key).text);
    for (size_t i = 1; i < gguf->n_tensors; i++)
        if (burin_tensor_by_name(gguf->tensors[i - 1], gguf->tensors[i]) == 0)
            return broken(
                    r, "%s: duplicate tensor %s", path_of(r),
                    burin_quote(gguf->tensors[i]->name).text);
    return BURIN_OK;
}

enum burin_status burin_gguf_open(
        struct burin_gguf *gguf, const char *path, struct burin_error *err)
{
    struct burin_gguf_entry *entries = NULL;
    struct burin_tensor *tensors = NULL;
    struct reader r = { .gguf = gguf, .alignment = DEFAULT_ALIGNMENT, .err = err };
    *gguf = (struct burin_gguf){ 0 };

    enum burin_status status = burin_file_open(&gguf->file, path, err);
    if (!status)
        status = take_magic(&r);
    if (!status)
        status = take_counts(&r);
    if (!status)
        status = take_keys(&r, &entries);
    if (!status)
        status = take_tensors(&r, &tensors);
    if (!status) {
        settle(&r, entries, tensors);
        status = refuse_duplicates(&r);
    }
    if (status)
        burin_gguf_close(gguf);
    return status;
}

void burin_gguf_close(struct burin_gguf *gguf)
{
    burin_file_close(&gguf->file);
    if (gguf->header)
        munmap(gguf->header, gguf->mapped);
    burin_arena_close(&gguf->arena);
    *gguf = (struct burin_gguf){ 0 };
}

const struct burin_tensor *burin_gguf_find(
        const struct burin_gguf *gguf, struct burin_span name)
{
    return burin_tensor_find(gguf->tensors, gguf->n_tensors, name);
}

/* ---- Looking up ------------------------------------------------------------------ */

static const struct burin_gguf_entry *find_key(
        const struct burin_gguf *gguf, const char *key)
{
    const struct burin_span wanted = burin_span_of(key);
    size_t begin = 0;
    size_t end = gguf->n_keys;
    while (begin < end) {
        const size_t middle = begin + (end - begin) / 2;
        const int order = burin_span_compare(gguf->keys[middle]->key, wanted);
        if (order == 0)
            return gguf->keys[middle];
        if (order < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    return NULL;
}

static enum burin_status get(
        const struct burin_gguf *gguf,
        const char *key,
        const struct burin_gguf_entry **entry,
        struct burin_error *err)
{
    *entry = find_key(gguf, key);
    if (!*entry)
        return burin_fail(err, BURIN_EMISSING, "%s has no key %s", gguf->file.path, key);
    return BURIN_OK;
}

static enum burin_status wrong_type(
        const struct burin_gguf *gguf,
        const char *key,
        uint32_t type,
        const char *wanted,
        struct burin_error *err)
{
    return burin_fail(
            err, BURIN_EFORMAT, "%s: key %s is of type %s, %s is wanted", gguf->file.path,
            key, type_names[type], wanted);
}

struct burin_span burin_gguf_key(
        const struct burin_gguf *gguf, size_t i, enum burin_gguf_type *type)
{
    *type = gguf->keys[i]->type;
    return gguf->keys[i]->key;
}

enum burin_status burin_gguf_text(
        const struct burin_gguf *gguf,
        const char *key,
        struct burin_span *value,
        struct burin_error *err)
{
    const struct burin_gguf_entry *entry;
    const enum burin_status status = get(gguf, key, &entry, err);
    if (status)
        return status;
    if (entry->type != BURIN_GGUF_TEXT)
        return wrong_type(gguf, key, entry->type, "text", err);

    uint64_t length;
    memcpy(&length, entry->value, sizeof length);
    *value = (struct burin_span){ (const char *)entry->value + 8, (size_t)length };
    return BURIN_OK;
}

/* An integer as its two's complement; *negative tells how to read it. False for other types. */
static bool integer_at(uint32_t type, const uint8_t *at, uint64_t *bits, bool *negative)
{
    int64_t value;
    switch (type) {
    case BURIN_GGUF_U8:
    case BURIN_GGUF_U16:
    case BURIN_GGUF_U32:
    case BURIN_GGUF_U64:
        *bits = 0;
        memcpy(bits, at, value_bytes[type]);
        *negative = false;
        return true;
    case BURIN_GGUF_I8:
        value = (int64_t)(at[0] ^ 0x80) - 0x80;
        break;
    case BURIN_GGUF_I16: {
        int16_t narrow;
        memcpy(&narrow, at, sizeof narrow);
        value = narrow;
        break;
    }
    case BURIN_GGUF_I32: {
        int32_t narrow;
        memcpy(&narrow, at, sizeof narrow);
        value = narrow;
        break;
    }
    case BURIN_GGUF_I64:
        memcpy(&value, at, sizeof value);
        break;
    default:
        return false;
    }
    *bits = (uint64_t)value;
    *negative = value < 0;
    return true;
}

/* Any number or bool as a double. False for other types. */
static bool number_at(uint32_t type, const uint8_t *at, double *number)
{
    uint64_t bits;
    bool negative;
    if (type == BURIN_GGUF_F32) {
        float value;
        memcpy(&value, at, sizeof value);
        *number = value;
    } else if (type == BURIN_GGUF_F64) {
        memcpy(number, at, sizeof *number);
    } else if (type == BURIN_GGUF_BOOL) {
        *number = at[0] != 0;
    } else if (integer_at(type, at, &bits, &negative)) {
        *number = negative ? (double)(int64_t)bits : (double)bits;
    } else {
        return false;
    }
    return true;
}

enum burin_status burin_gguf_uint(
        const struct burin_gguf *gguf,
        const char *key,
        uint64_t *value,
        struct burin_error *err)
{
    const struct burin_gguf_entry *entry;
    const enum burin_status status = get(gguf, key, &entry, err);
    if (status)
        return status;

    uint64_t bits;
    bool negative;
    if (!integer_at(entry->type, entry->value, &bits, &negative))
        return wrong_type(gguf, key, entry->type, "an integer", err);
    if (negative)
        return burin_fail(
                err, BURIN_EFORMAT, "%s: key %s is %" PRId64 ", at least 0 is wanted",
                gguf->file.path, key, (int64_t)bits);
    *value = bits;
    return BURIN_OK;
}

enum burin_status burin_gguf_bool(
        const struct burin_gguf *gguf,
        const char *key,
        bool *value,
        struct burin_error *err)
{
    const struct burin_gguf_entry *entry;
    const enum burin_status status = get(gguf, key, &entry, err);
    if (status)
        return status;
    if (entry->type != BURIN_GGUF_BOOL)
        return wrong_type(gguf, key, entry->type, "bool", err);
    *value = entry->value[0] != 0;
    return BURIN_OK;
}

enum burin_status burin_gguf_number(
        const struct burin_gguf *gguf,
        const char *key,
        double *value,
        struct burin_error *err)
{
    const struct burin_gguf_entry *entry;
    const enum burin_status status = get(gguf, key, &entry, err);
    if (status)
        return status;
    if (!number_at(entry->type, entry->value, value))
        return wrong_type(gguf, key, entry->type, "a number", err);
    return BURIN_OK;
}

enum burin_status burin_gguf_array(
        const struct burin_gguf *gguf,
        const char *key,
        struct burin_gguf_array *value,
        struct burin_error *err)
{
    const struct burin_gguf_entry *entry;
    const enum burin_status status = get(gguf, key, &entry, err);
    if (status)
        return status;
    if (entry->type != BURIN_GGUF_ARRAY)
        return wrong_type(gguf, key, entry->type, "an array", err);

    uint32_t type;
    memcpy(&type, entry->value, sizeof type);
    memcpy(&value->count, entry->value + 4, sizeof value->count);
    value->type = type;
    value->begin = entry->value + 12;
    value->at = value->begin;
    return BURIN_OK;
}

enum burin_status burin_gguf_texts(
        const struct burin_gguf *gguf,
        const char *key,
        struct burin_gguf_array *value,
        struct burin_error *err)
{
    struct burin_gguf_array array = { 0 };
    const enum burin_status status = burin_gguf_array(gguf, key, &array, err);
    if (status)
        return status;
    if (array.type != BURIN_GGUF_TEXT)
        return wrong_type(gguf, key, array.type, "an array of texts", err);
    *value = array;
    return BURIN_OK;
}

enum burin_status burin_gguf_numbers(
        const struct burin_gguf *gguf,
        const char *key,
        struct burin_gguf_array *value,
        struct burin_error *err)
{
    struct burin_gguf_array array = { 0 };
    const enum burin_status status = burin_gguf_array(gguf, key, &array, err);
    if (status)
        return status;
    if (array.type == BURIN_GGUF_TEXT)
        return wrong_type(gguf, key, array.type, "an array of numbers", err);
    *value = array;
    return BURIN_OK;
}

struct burin_span burin_gguf_next_text(struct burin_gguf_array *array)
{
    uint64_t length;
    memcpy(&length, array->at, sizeof length);
    const struct burin_span text = { (const char *)array->at + 8, (size_t)length };
    array->at += 8 + length;
    return text;
}

double burin_gguf_element(const struct burin_gguf_array *array, uint64_t i)
{
    double number = 0;
    (void)number_at(array->type, array->begin + i * value_bytes[array->type], &number);
    return number;
}
