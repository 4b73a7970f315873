#include "runtime/weights/safetensors.h"

#include "runtime/base/json_scan.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_HEADER = 100 * 1000 * 1000 }; /* the reference's limit */

static const struct burin_encoding encodings[] = {
    { "bool", BURIN_NO_FORMAT, 1, 1 },        { "u8", BURIN_NO_FORMAT, 1, 1 },
    { "i8", BURIN_NO_FORMAT, 1, 1 },          { "f8_e5m2", BURIN_NO_FORMAT, 1, 1 },
    { "f8_e4m3", BURIN_NO_FORMAT, 1, 1 },     { "f8_e8m0", BURIN_NO_FORMAT, 1, 1 },
    { "f8_e4m3fnuz", BURIN_NO_FORMAT, 1, 1 }, { "f8_e5m2fnuz", BURIN_NO_FORMAT, 1, 1 },
    { "i16", BURIN_NO_FORMAT, 1, 2 },         { "u16", BURIN_NO_FORMAT, 1, 2 },
    { "f16", BURIN_FORMAT_F16, 1, 2 },        { "bf16", BURIN_FORMAT_BF16, 1, 2 },
    { "i32", BURIN_NO_FORMAT, 1, 4 },         { "u32", BURIN_NO_FORMAT, 1, 4 },
    { "f32", BURIN_FORMAT_F32, 1, 4 },        { "f64", BURIN_NO_FORMAT, 1, 8 },
    { "i64", BURIN_NO_FORMAT, 1, 8 },         { "u64", BURIN_NO_FORMAT, 1, 8 },
    { "c64", BURIN_NO_FORMAT, 1, 8 },         { "f4", BURIN_NO_FORMAT, 2, 1 },
    { "f6_e2m3", BURIN_NO_FORMAT, 4, 3 },     { "f6_e3m2", BURIN_NO_FORMAT, 4, 3 },
};

/* Files have upper case only: "BF16". */
static const struct burin_encoding *find_encoding(struct burin_span dtype)
{
    for (size_t i = 0; i < sizeof encodings / sizeof encodings[0]; i++) {
        const char *name = encodings[i].name;
        size_t same = 0;
        while (same < dtype.length && name[same]) {
            const char lower = name[same];
            const char upper =
                    (char)(lower >= 'a' && lower <= 'z' ? lower - 'a' + 'A' : lower);
            if (dtype.at[same] != upper)
                break;
            same++;
        }
        if (same == dtype.length && !name[same])
            return &encodings[i];
    }
    return NULL;
}

static enum burin_status no_room(
        const struct burin_file *file, size_t n, struct burin_error *err)
{
    return burin_fail(
            err, BURIN_ENOMEM, "%s: no room to list its %zu tensors", file->path, n);
}

/* ---- One tensor ------------------------------------------------------------------ */

struct entry {
    const struct burin_file *file;
    struct burin_quoted name;
    uint64_t begin; /* data_offsets */
    uint64_t end;
    bool has_dtype;
    bool has_shape;
    bool has_offsets;
    struct burin_error *err;
};

#define broken(entry, format, ...)                                                         \
    burin_fail(                                                                            \
            (entry)->err, BURIN_EFORMAT, "%s: tensor %s" format, (entry)->file->path,      \
            (entry)->name.text, __VA_ARGS__)

static enum burin_status once(const struct entry *entry, bool *seen, const char *field)
{
    if (*seen)
        return broken(entry, " has %s twice", field);
    *seen = true;
    return BURIN_OK;
}

static enum burin_status take_dtype(
        struct burin_json_scan *scan, struct entry *entry, struct burin_tensor *tensor)
{
    struct burin_span dtype;
    enum burin_status status = once(entry, &entry->has_dtype, "dtype");
    if (!status)
        status = burin_json_take_text(scan, &dtype, entry->err);
    if (status)
        return status;
    tensor->type = find_encoding(dtype);
    if (!tensor->type)
        return broken(entry, " has the unknown dtype %s", burin_quote(dtype).text);
    return BURIN_OK;
}

static enum burin_status take_shape(
        struct burin_json_scan *scan, struct entry *entry, struct burin_tensor *tensor)
{
    bool more;
    enum burin_status status = once(entry, &entry->has_shape, "shape");
    if (!status)
        status = burin_json_enter(scan, '[', entry->err);
    while (!status) {
        status = burin_json_element(scan, &more, entry->err);
        if (status || !more)
            break;
        if (tensor->n_dims == BURIN_MAX_DIMS)
            return broken(entry, " has more than %d dimensions", BURIN_MAX_DIMS);
        uint64_t *dim = &tensor->dims[tensor->n_dims++];
        status = burin_json_u64(scan, dim, entry->err);
        if (!status && *dim > INT64_MAX)
            return broken(entry, " has a dimension of %" PRIu64, *dim);
    }
    return status;
}

static enum burin_status take_offsets(struct burin_json_scan *scan, struct entry *entry)
{
    uint64_t *const bounds[2] = { &entry->begin, &entry->end };
    bool more;
    enum burin_status status = once(entry, &entry->has_offsets, "data_offsets");
    if (!status)
        status = burin_json_enter(scan, '[', entry->err);
    for (int i = 0; i < 2 && !status; i++) {
        status = burin_json_element(scan, &more, entry->err);
        if (!status && !more)
            return broken(entry, ": data_offsets has %d numbers, 2 are wanted", i);
        if (!status)
            status = burin_json_u64(scan, bounds[i], entry->err);
    }
    if (!status)
        status = burin_json_element(scan, &more, entry->err);
    if (!status && more)
        return broken(entry, ": data_offsets has more than %d numbers", 2);
    return status;
}

/* The bytes that shape and dtype ask for. */
static enum burin_status needed_bytes(
        const struct entry *entry, const struct burin_tensor *tensor, uint64_t *bytes)
{
    uint64_t elements = 1;
    for (int i = 0; i < tensor->n_dims; i++)
        if (__builtin_mul_overflow(elements, tensor->dims[i], &elements))
            return broken(entry, ": the product of its %d dimensions overflows", i + 1);
    if (elements % tensor->type->block)
        return broken(
                entry, ": %" PRIu64 " elements of %s are no whole number of bytes",
                elements, tensor->type->name);
    if (__builtin_mul_overflow(elements / tensor->type->block, tensor->type->bytes, bytes))
        return broken(entry, ": the size of %" PRIu64 " elements overflows", elements);
    return BURIN_OK;
}

static enum burin_status check_sizes(
        const struct entry *entry, struct burin_tensor *tensor, uint64_t data)
{
    if (!entry->has_dtype || !entry->has_shape || !entry->has_offsets)
        return broken(
                entry, " has no %s",
                !entry->has_dtype   ? "dtype"
                : !entry->has_shape ? "shape"
                                    : "data_offsets");
    uint64_t needed = 0;
    const enum burin_status status = needed_bytes(entry, tensor, &needed);
    if (status)
        return status;

    const uint64_t data_bytes = entry->file->size - data;
    if (entry->begin > entry->end)
        return broken(
                entry, " ends at byte %" PRIu64 ", before its begin %" PRIu64, entry->end,
                entry->begin);
    if (entry->end > data_bytes)
        return broken(
                entry,
                " ends at byte %" PRIu64 " of the data, the file has %" PRIu64
                ": is it truncated?",
                entry->end, data_bytes);
    if (entry->end - entry->begin != needed)
        return broken(
                entry, " has %" PRIu64 " bytes, its shape and dtype need %" PRIu64,
                entry->end - entry->begin, needed);
    tensor->bytes = needed;
    tensor->offset = data + entry->begin;
    return BURIN_OK;
}

static enum burin_status take_tensor(
        struct burin_json_scan *scan,
        const struct burin_file *file,
        uint64_t data,
        struct burin_tensor *tensor,
        struct burin_error *err)
{
    struct entry entry = { .file = file, .name = burin_quote(tensor->name), .err = err };
    struct burin_span field;
    bool more;
    enum burin_status status = burin_json_enter(scan, '{', err);
    while (!status) {
        status = burin_json_member(scan, &field, &more, err);
        if (status || !more)
            break;
        if (burin_span_is(field, "dtype"))
            status = take_dtype(scan, &entry, tensor);
        else if (burin_span_is(field, "shape"))
            status = take_shape(scan, &entry, tensor);
        else if (burin_span_is(field, "data_offsets"))
            status = take_offsets(scan, &entry);
        else
            status = burin_json_skip(scan, err);
    }
    if (status)
        return status;
    return check_sizes(&entry, tensor, data);
}

/* ---- The header ------------------------------------------------------------------ */

static enum burin_status skip_metadata(
        struct burin_json_scan *scan, struct burin_error *err)
{
    struct burin_span ignored;
    bool more;
    enum burin_status status = burin_json_enter(scan, '{', err);
    while (!status) {
        status = burin_json_member(scan, &ignored, &more, err);
        if (status || !more)
            break;
        status = burin_json_take_text(scan, &ignored, err);
    }
    return status;
}

/* Sorted by place, each tensor begins where the one before it ended. */
static enum burin_status check_tiling(
        const struct burin_safetensors *safetensors,
        const struct burin_file *file,
        uint64_t data,
        struct burin_error *err)
{
    uint64_t end = data;
    struct burin_span before = burin_span_of("the header");
    for (size_t i = 0; i < safetensors->n_tensors; i++) {
        const struct burin_tensor *tensor = safetensors->tensors[i];
        if (tensor->offset < end)
            return burin_fail(
                    err, BURIN_EFORMAT, "%s: tensors %s and %s overlap", file->path,
                    burin_quote(before).text, burin_quote(tensor->name).text);
        if (tensor->offset > end)
            return burin_fail(
                    err, BURIN_EFORMAT,
                    "%s: a hole of %" PRIu64 " bytes at byte %" PRIu64
                    " of the data, before tensor %s",
                    file->path, tensor->offset - end, end - data,
                    burin_quote(tensor->name).text);
        end = tensor->offset + tensor->bytes;
        before = tensor->name;
    }
    if (end != file->size)
        return burin_fail(
                err, BURIN_EFORMAT,
                "%s: %" PRIu64 " bytes behind the last tensor belong to none", file->path,
                file->size - end);
    return BURIN_OK;
}

static enum burin_status read_header(
        const struct burin_file *file,
        struct burin_arena *arena,
        char **header,
        uint64_t *length,
        struct burin_error *err)
{
    char begin[8];
    if (file->size < sizeof begin)
        return burin_fail(
                err, BURIN_EFORMAT,
                "%s has %" PRIu64 " bytes, a safetensors file has 8 at least", file->path,
                file->size);
    enum burin_status status = burin_file_read(file, 0, begin, sizeof begin, err);
    if (status)
        return status;
    memcpy(length, begin, sizeof *length);

    if (*length > file->size - sizeof begin)
        return burin_fail(
                err, BURIN_EFORMAT,
                "%s is neither a GGUF nor a safetensors file: it begins with %s, which is "
                "a header of %" PRIu64 " bytes where %" PRIu64 " are left",
                file->path, burin_quote((struct burin_span){ begin, sizeof begin }).text,
                *length, file->size - sizeof begin);
    if (*length > MAX_HEADER)
        return burin_fail(
                err, BURIN_EFORMAT,
                "%s: a header of %" PRIu64 " bytes, at most %d are read", file->path,
                *length, MAX_HEADER);

    *header = burin_arena_take(arena, (size_t)*length, 1, 1);
    if (!*header)
        return burin_fail(
                err, BURIN_ENOMEM, "%s: no room for its header of %" PRIu64 " bytes",
                file->path, *length);
    return burin_file_read(file, sizeof begin, *header, (size_t)*length, err);
}

static enum burin_status take_entries(
        struct burin_safetensors *safetensors,
        struct burin_json_scan *scan,
        const struct burin_file *file,
        struct burin_tensor *tensors,
        int file_index,
        uint64_t data,
        struct burin_error *err)
{
    bool has_metadata = false;
    bool more;
    enum burin_status status = burin_json_enter(scan, '{', err);
    while (!status) {
        struct burin_span name;
        status = burin_json_member(scan, &name, &more, err);
        if (status || !more)
            break;
        if (burin_span_is(name, "__metadata__")) {
            if (has_metadata)
                return burin_fail(
                        err, BURIN_EFORMAT, "%s: __metadata__ occurs twice", file->path);
            has_metadata = true;
            status = skip_metadata(scan, err);
            continue;
        }
        struct burin_tensor *tensor = &tensors[safetensors->n_tensors];
        tensor->name = name;
        tensor->file = file_index;
        status = take_tensor(scan, file, data, tensor, err);
        safetensors->tensors[safetensors->n_tensors++] = tensor;
    }
    return status ? status : burin_json_end(scan, err);
}

enum burin_status burin_safetensors_read(
        struct burin_safetensors *safetensors,
        const struct burin_file *file,
        int file_index,
        struct burin_arena *arena,
        struct burin_error *err)
{
    char *header = NULL;
    uint64_t length = 0;
    size_t n_members = 0;
    struct burin_json_scan scan;
    *safetensors = (struct burin_safetensors){ 0 };

    enum burin_status status = read_header(file, arena, &header, &length, err);
    if (!status)
        status = burin_json_scan_begin(&scan, file->path, header, (size_t)length, err);
    if (!status)
        status = burin_json_count(&scan, &n_members, err);
    if (status)
        return status;

    struct burin_tensor *tensors = BURIN_TAKE(arena, n_members, struct burin_tensor);
    safetensors->tensors = BURIN_TAKE(arena, n_members, struct burin_tensor *);
    if (!tensors || !safetensors->tensors)
        return no_room(file, n_members, err);
    const uint64_t data = 8 + length;
    status = take_entries(safetensors, &scan, file, tensors, file_index, data, err);
    if (status)
        return status;

    /* Names first: of two tensors with one name, the overlap is not the news. */
    burin_sort((void **)safetensors->tensors, safetensors->n_tensors, burin_tensor_by_name);
    for (size_t i = 1; i < safetensors->n_tensors; i++)
        if (burin_tensor_by_name(safetensors->tensors[i - 1], safetensors->tensors[i]) == 0)
            return burin_fail(
                    err, BURIN_EFORMAT, "%s: duplicate key %s", file->path,
                    burin_quote(safetensors->tensors[i]->name).text);

    burin_sort(
            (void **)safetensors->tensors, safetensors->n_tensors, burin_tensor_by_offset);
    status = check_tiling(safetensors, file, data, err);
    burin_sort((void **)safetensors->tensors, safetensors->n_tensors, burin_tensor_by_name);
    return status;
}

/* ---- Shards ---------------------------------------------------------------------- */

static enum burin_status find_shard(
        struct burin_shard_map *map,
        const struct burin_file *file,
        struct burin_span name,
        struct burin_arena *arena,
        int *shard,
        struct burin_error *err)
{
    /* A map is written in the order of names, so the shard is often the last one found. */
    for (int i = map->n_shards; i-- > 0;)
        if (burin_span_is(name, map->shards[i])) {
            *shard = i;
            return BURIN_OK;
        }

    if (name.length == 0 || memchr(name.at, '/', name.length) ||
        memchr(name.at, '\0', name.length) || name.at[0] == '.')
        return burin_fail(
                err, BURIN_EFORMAT, "%s: %s is no name of a shard in this folder",
                file->path, burin_quote(name).text);
    if (map->n_shards == BURIN_MAX_SHARDS)
        return burin_fail(
                err, BURIN_EFORMAT, "%s names more than %d shards", file->path,
                BURIN_MAX_SHARDS);
    const char *copy = burin_arena_text(arena, name.at, name.length);
    if (!copy)
        return no_room(file, map->n_tensors, err);
    *shard = map->n_shards;
    map->shards[map->n_shards++] = copy;
    return BURIN_OK;
}

static enum burin_status take_weight_map(
        struct burin_shard_map *map,
        struct burin_json_scan *scan,
        const struct burin_file *file,
        struct burin_arena *arena,
        struct burin_error *err)
{
    size_t n_members = 0;
    enum burin_status status = burin_json_count(scan, &n_members, err);
    if (status)
        return status;
    map->entries = BURIN_TAKE(arena, n_members, struct burin_shard_entry);
    map->shards = BURIN_TAKE(arena, BURIN_MAX_SHARDS, const char *);
    if (!map->entries || !map->shards)
        return no_room(file, n_members, err);

    bool more;
    status = burin_json_enter(scan, '{', err);
    while (!status) {
        struct burin_shard_entry *entry = &map->entries[map->n_tensors];
        struct burin_span name;
        struct burin_span shard;
        status = burin_json_member(scan, &name, &more, err);
        if (status || !more)
            break;
        status = burin_json_take_text(scan, &shard, err);
        if (!status)
            status = find_shard(map, file, shard, arena, &entry->shard, err);
        entry->name = name;
        map->n_tensors++;
    }
    return status;
}

enum burin_status burin_shard_map_read(
        struct burin_shard_map *map,
        const struct burin_file *file,
        struct burin_arena *arena,
        struct burin_error *err)
{
    *map = (struct burin_shard_map){ 0 };
    if (file->size > MAX_HEADER)
        return burin_fail(
                err, BURIN_EFORMAT, "%s has %" PRIu64 " bytes, at most %d are read",
                file->path, file->size, MAX_HEADER);
    char *text = burin_arena_take(arena, (size_t)file->size, 1, 1);
    if (!text)
        return no_room(file, 0, err);

    struct burin_json_scan scan;
    bool more;
    enum burin_status status = burin_file_read(file, 0, text, (size_t)file->size, err);
    if (!status)
        status = burin_json_scan_begin(&scan, file->path, text, (size_t)file->size, err);
    if (!status)
        status = burin_json_enter(&scan, '{', err);
    while (!status) {
        struct burin_span key;
        status = burin_json_member(&scan, &key, &more, err);
        if (status || !more)
            break;
        if (!burin_span_is(key, "weight_map"))
            status = burin_json_skip(&scan, err);
        else if (map->entries)
            return burin_fail(
                    err, BURIN_EFORMAT, "%s: weight_map occurs twice", file->path);
        else
            status = take_weight_map(map, &scan, file, arena, err);
    }
    if (!status)
        status = burin_json_end(&scan, err);
    if (!status && !map->entries)
        return burin_fail(err, BURIN_EFORMAT, "%s has no weight_map", file->path);
    return status;
}
