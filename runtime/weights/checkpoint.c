#include "runtime/weights/checkpoint.h"

#include "runtime/weights/safetensors.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static enum burin_status no_room(const char *path, struct burin_error *err)
{
    return burin_fail(err, BURIN_ENOMEM, "%s: no room to list its tensors", path);
}

/* "folder/name" in the checkpoint's arena, or NULL. */
static const char *join(
        struct burin_checkpoint *checkpoint, const char *folder, const char *name)
{
    const size_t size = strlen(folder) + 1 + strlen(name) + 1;
    char *path = burin_arena_take(&checkpoint->arena, size, 1, 1);
    if (path)
        snprintf(path, size, "%s/%s", folder, name);
    return path;
}

static const char *folder_of(struct burin_checkpoint *checkpoint, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return ".";
    const size_t length = slash == path ? 1 : (size_t)(slash - path);
    return burin_arena_text(&checkpoint->arena, path, length);
}

static bool is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* ---- Which file ------------------------------------------------------------------ */

/* The only GGUF file of a folder. */
static enum burin_status find_gguf(
        struct burin_checkpoint *checkpoint,
        const char *folder,
        const char **path,
        struct burin_error *err)
{
    DIR *entries = opendir(folder);
    if (!entries)
        return burin_file_refused(folder, errno, err);

    enum burin_status status = BURIN_OK;
    const struct dirent *entry;
    *path = NULL;
    while (!status && (entry = readdir(entries)) != NULL) {
        if (!burin_span_ends(burin_span_of(entry->d_name), ".gguf"))
            continue;
        const char *found = join(checkpoint, folder, entry->d_name);
        if (!found)
            status = no_room(folder, err);
        else if (*path)
            status = burin_fail(
                    err, BURIN_EMISSING,
                    "%s holds several GGUF files, %s and %s among them: give the one you "
                    "mean",
                    folder, *path + strlen(folder) + 1, entry->d_name);
        *path = found;
    }
    closedir(entries);
    if (!status && !*path)
        status = burin_fail(
                err, BURIN_EMISSING,
                "%s holds no model.safetensors.index.json, no model.safetensors and no "
                ".gguf",
                folder);
    return status;
}

static enum burin_status find_file(
        struct burin_checkpoint *checkpoint,
        const char *given,
        const char **path,
        struct burin_error *err)
{
    static const char *const names[] = { "model.safetensors.index.json",
                                         "model.safetensors" };
    struct stat info;
    if (stat(given, &info) != 0)
        return burin_file_refused(given, errno, err);
    if (!S_ISDIR(info.st_mode)) {
        *path = burin_arena_text(&checkpoint->arena, given, strlen(given));
        return *path ? BURIN_OK : no_room(given, err);
    }

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        *path = join(checkpoint, given, names[i]);
        if (!*path)
            return no_room(given, err);
        if (is_file(*path))
            return BURIN_OK;
    }
    return find_gguf(checkpoint, given, path, err);
}

/* ---- The three kinds ------------------------------------------------------------- */

static enum burin_status open_gguf(
        struct burin_checkpoint *checkpoint, struct burin_error *err)
{
    struct burin_gguf *gguf = &checkpoint->gguf;
    enum burin_status status = burin_gguf_open(gguf, checkpoint->path, err);
    if (status)
        return status;

    uint64_t n_parts = 1;
    status = burin_gguf_uint(gguf, "split.count", &n_parts, err);
    if (status && status != BURIN_EMISSING)
        return status;
    if (n_parts > 1)
        return burin_fail(
                err, BURIN_EFORMAT,
                "%s is one of %" PRIu64
                " parts: join them (llama-gguf-split --merge) and give the result",
                checkpoint->path, n_parts);

    /* llama.cpp's converter permutes for its "llama" (Mistral and SmolLM2 go by that name too);
     * a file that names no architecture is taken for one. */
    struct burin_span architecture = burin_span_of("llama");
    status = burin_gguf_text(gguf, "general.architecture", &architecture, err);
    if (status && status != BURIN_EMISSING)
        return status;
    checkpoint->rope_in_pairs = burin_span_is(architecture, "llama");

    checkpoint->container = BURIN_GGUF;
    checkpoint->files = BURIN_TAKE(&checkpoint->arena, 1, struct burin_file);
    if (!checkpoint->files)
        return no_room(checkpoint->path, err);
    checkpoint->files[0] = gguf->file; /* which closes it */
    checkpoint->n_files = 1;
    checkpoint->n_tensors = gguf->n_tensors;
    checkpoint->tensors = gguf->tensors;
    return BURIN_OK;
}

static enum burin_status open_safetensors(
        struct burin_checkpoint *checkpoint,
        struct burin_file *file,
        struct burin_error *err)
{
    struct burin_safetensors safetensors;
    const enum burin_status status =
            burin_safetensors_read(&safetensors, file, 0, &checkpoint->arena, err);
    checkpoint->n_tensors = safetensors.n_tensors;
    checkpoint->tensors = safetensors.tensors;
    return status;
}

/* Every tensor of the map is where the map says. What shards hold besides is ignored, as the
 * reference does. */
static enum burin_status collect(
        struct burin_checkpoint *checkpoint,
        const struct burin_shard_map *map,
        const struct burin_safetensors *shards,
        struct burin_error *err)
{
    checkpoint->tensors =
            BURIN_TAKE(&checkpoint->arena, map->n_tensors, struct burin_tensor *);
    if (!checkpoint->tensors)
        return no_room(checkpoint->path, err);

    for (size_t i = 0; i < map->n_tensors; i++) {
        const struct burin_shard_entry *entry = &map->entries[i];
        const struct burin_safetensors *shard = &shards[entry->shard];
        struct burin_tensor *tensor =
                burin_tensor_find(shard->tensors, shard->n_tensors, entry->name);
        if (!tensor)
            return burin_fail(
                    err, BURIN_EFORMAT, "%s: tensor %s is not in %s", checkpoint->path,
                    burin_quote(entry->name).text, map->shards[entry->shard]);
        checkpoint->tensors[i] = tensor;
    }
    checkpoint->n_tensors = map->n_tensors;
    burin_sort((void **)checkpoint->tensors, map->n_tensors, burin_tensor_by_name);
    for (size_t i = 1; i < map->n_tensors; i++)
        if (burin_tensor_by_name(checkpoint->tensors[i - 1], checkpoint->tensors[i]) == 0)
            return burin_fail(
                    err, BURIN_EFORMAT, "%s: duplicate key %s", checkpoint->path,
                    burin_quote(checkpoint->tensors[i]->name).text);
    return BURIN_OK;
}

static enum burin_status open_shards(
        struct burin_checkpoint *checkpoint,
        const struct burin_file *index,
        struct burin_error *err)
{
    struct burin_shard_map map;
    enum burin_status status = burin_shard_map_read(&map, index, &checkpoint->arena, err);
    if (status)
        return status;

    const size_t n_shards = (size_t)map.n_shards;
    struct burin_file *files = BURIN_TAKE(&checkpoint->arena, n_shards, struct burin_file);
    struct burin_safetensors *shards =
            BURIN_TAKE(&checkpoint->arena, n_shards, struct burin_safetensors);
    if (!files || !shards)
        return no_room(checkpoint->path, err);
    checkpoint->files = files;
    for (int i = 0; i < map.n_shards; i++) {
        const char *path = join(checkpoint, checkpoint->folder, map.shards[i]);
        if (!path)
            return no_room(checkpoint->path, err);
        status = burin_file_open(&files[i], path, err);
        if (status)
            return status;
        checkpoint->n_files = i + 1;
        status = burin_safetensors_read(&shards[i], &files[i], i, &checkpoint->arena, err);
        if (status)
            return status;
    }
    return collect(checkpoint, &map, shards, err);
}

/* ---- The interface --------------------------------------------------------------- */

static enum burin_status open_file(
        struct burin_checkpoint *checkpoint, struct burin_error *err)
{
    struct burin_file file;
    enum burin_status status = burin_file_open(&file, checkpoint->path, err);
    if (status)
        return status;

    char magic[4] = { 0 };
    if (file.size >= sizeof magic)
        status = burin_file_read(&file, 0, magic, sizeof magic, err);
    if (status || memcmp(magic, "GGUF", sizeof magic) == 0 ||
        burin_span_ends(burin_span_of(checkpoint->path), ".json")) {
        if (!status)
            status = magic[0] == 'G' ? open_gguf(checkpoint, err)
                                     : open_shards(checkpoint, &file, err);
        burin_file_close(&file);
        return status;
    }

    struct burin_file *kept = BURIN_TAKE(&checkpoint->arena, 1, struct burin_file);
    if (!kept) {
        burin_file_close(&file);
        return no_room(checkpoint->path, err);
    }
    *kept = file;
    checkpoint->n_files = 1;
    checkpoint->files = kept;
    return open_safetensors(checkpoint, kept, err);
}

enum burin_status burin_checkpoint_open(
        struct burin_checkpoint *checkpoint, const char *path, struct burin_error *err)
{
    *checkpoint = (struct burin_checkpoint){ .container = BURIN_SAFETENSORS };

    enum burin_status status = find_file(checkpoint, path, &checkpoint->path, err);
    if (!status && checkpoint->path)
        checkpoint->folder = folder_of(checkpoint, checkpoint->path);
    if (!status)
        status = checkpoint->folder ? open_file(checkpoint, err) : no_room(path, err);
    if (status)
        burin_checkpoint_close(checkpoint);
    return status;
}

void burin_checkpoint_close(struct burin_checkpoint *checkpoint)
{
    if (checkpoint->container == BURIN_SAFETENSORS)
        for (int i = 0; i < checkpoint->n_files; i++)
            burin_file_close(&checkpoint->files[i]);
    burin_gguf_close(&checkpoint->gguf);
    burin_arena_close(&checkpoint->arena);
    *checkpoint = (struct burin_checkpoint){ 0 };
}

const struct burin_tensor *burin_checkpoint_find(
        const struct burin_checkpoint *checkpoint, const char *name)
{
    return burin_tensor_find(
            checkpoint->tensors, checkpoint->n_tensors, burin_span_of(name));
}

enum burin_status burin_checkpoint_read(
        const struct burin_checkpoint *checkpoint,
        const struct burin_tensor *tensor,
        uint64_t offset,
        void *buffer,
        size_t bytes,
        struct burin_error *err)
{
    assert(offset <= tensor->bytes && bytes <= tensor->bytes - offset);
    return burin_file_read(
            &checkpoint->files[tensor->file], tensor->offset + offset, buffer, bytes, err);
}
