#include "runtime/weights/locate.h"

#include "runtime/base/arena.h"
#include "runtime/base/caches.h"
#include "runtime/base/put.h"
#include "runtime/base/span.h"
#include "runtime/weights/bind.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_NAMES = 4096, MAX_PLACES = 8, PLACES_TEXT = 1200, REFUSED_TEXT = 1800 };

struct search {
    const struct burin_model *model;
    struct burin_checkpoint *checkpoint;
    const struct burin_tensor *const **tensors;
    bool found;
    struct burin_arena arena; /* names of folders' entries */
    struct {
        dev_t device;
        ino_t inode;
    } seen[MAX_PLACES]; /* build/weights is often the binary's ../weights */
    size_t n_seen;
    struct burin_put places;
    struct burin_put refused;
    struct burin_error error; /* of the candidate at hand */
};

static char *join(struct search *s, const char *folder, const char *name)
{
    const size_t size = strlen(folder) + 1 + strlen(name) + 1;
    char *path = burin_arena_take(&s->arena, size, 1, 1);
    if (path)
        snprintf(path, size, "%s/%s", folder, name);
    return path;
}

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The names in a folder, sorted: the same choice on every machine. Hidden ones are left out. */
static size_t list(struct search *s, const char *folder, char ***names)
{
    size_t n = 0;
    DIR *entries = opendir(folder);
    if (!entries)
        return 0;
    *names = BURIN_TAKE(&s->arena, MAX_NAMES, char *);
    const struct dirent *entry;
    while (*names && n < MAX_NAMES && (entry = readdir(entries)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        (*names)[n] = burin_arena_text(&s->arena, entry->d_name, strlen(entry->d_name));
        if (!(*names)[n])
            break;
        n++;
    }
    closedir(entries);
    burin_sort((void **)*names, n, by_text);
    return n;
}

/* ---- Candidates ------------------------------------------------------------------ */

static enum burin_status open_and_bind(
        struct search *s, const char *path, struct burin_error *err)
{
    enum burin_status status = burin_checkpoint_open(s->checkpoint, path, err);
    if (status)
        return status;
    status = burin_bind(s->model, s->checkpoint, s->tensors, err);
    if (status)
        burin_checkpoint_close(s->checkpoint);
    return status;
}

/* A message of several lines says what is wrong in its second one. */
static void put_refused(struct search *s, const char *path)
{
    const char *reason = s->error.message;
    const char *second = strchr(reason, '\n');
    if (second)
        reason = second + 1;
    while (*reason == ' ')
        reason++;
    const int length = (int)strcspn(reason, "\n");
    if (strncmp(reason, path, strlen(path)) == 0)
        burin_put(&s->refused, "  %.*s\n", length, reason);
    else
        burin_put(&s->refused, "  %s: %.*s\n", path, length, reason);
}

static void try_path(struct search *s, const char *path)
{
    if (open_and_bind(s, path, &s->error) == BURIN_OK)
        s->found = true;
    else
        put_refused(s, path);
}

/* The checkpoints that lie in a folder itself. */
static void try_files(struct search *s, const char *folder, char **names, size_t n)
{
    bool is_checkpoint = false;
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], "model.safetensors") == 0 ||
            strcmp(names[i], "model.safetensors.index.json") == 0)
            is_checkpoint = true;
    if (is_checkpoint)
        try_path(s, folder);

    for (size_t i = 0; i < n && !s->found; i++) {
        if (!burin_span_ends(burin_span_of(names[i]), ".gguf"))
            continue;
        const char *path = join(s, folder, names[i]);
        if (path)
            try_path(s, path);
    }
}

/* In a folder, then in those that it holds, `depth` levels down. */
static void try_folder(struct search *s, const char *folder, int depth)
{
    char **names = NULL;
    const size_t n = list(s, folder, &names);
    try_files(s, folder, names, n);
    for (size_t i = 0; i < n && depth > 0 && !s->found; i++) {
        const char *path = join(s, folder, names[i]);
        if (path && is_folder(path))
            try_folder(s, path, depth - 1);
    }
}

/* models--ORG--NAME/snapshots/COMMIT/ of the Hugging Face cache. */
static void try_cache(struct search *s, const char *hub)
{
    char **names = NULL;
    const size_t n = list(s, hub, &names);
    for (size_t i = 0; i < n && !s->found; i++) {
        if (strncmp(names[i], "models--", 8) != 0)
            continue;
        const char *model = join(s, hub, names[i]);
        const char *snapshots = model ? join(s, model, "snapshots") : NULL;
        if (snapshots)
            try_folder(s, snapshots, 1);
    }
}

/* ---- Places ---------------------------------------------------------------------- */

/* Note the place, and whether it is one that was not searched before. */
static bool is_new(struct search *s, const char *what, const char *folder)
{
    struct stat info;
    const bool exists = stat(folder, &info) == 0 && S_ISDIR(info.st_mode);
    for (size_t i = 0; exists && i < s->n_seen; i++)
        if (s->seen[i].device == info.st_dev && s->seen[i].inode == info.st_ino)
            return false;
    if (exists && s->n_seen < MAX_PLACES) {
        s->seen[s->n_seen].device = info.st_dev;
        s->seen[s->n_seen].inode = info.st_ino;
        s->n_seen++;
    }
    burin_put(&s->places, "  %s: %s%s\n", what, folder, exists ? "" : " (not there)");
    return exists;
}

static void look_in(struct search *s, const char *what, const char *folder)
{
    if (!s->found && folder && is_new(s, what, folder))
        try_folder(s, folder, 1);
}

static const char *binary_folder(struct search *s)
{
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    if (length <= 0 || length == (ssize_t)sizeof path)
        return NULL;
    size_t end = (size_t)length;
    while (end > 1 && path[end - 1] != '/')
        end--;
    return burin_arena_text(&s->arena, path, end > 1 ? end - 1 : 1);
}

static const char *set(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value ? value : NULL;
}

/* What huggingface_hub does. */
static const char *hub_folder(struct search *s)
{
    char path[4096];
    const char *folder = set("HF_HUB_CACHE");
    if (folder || (folder = set("HUGGINGFACE_HUB_CACHE")) != NULL)
        return folder;
    if ((folder = set("HF_HOME")) != NULL)
        return join(s, folder, "hub");
    return burin_cache_path("huggingface/hub", path, sizeof path)
                   ? burin_arena_text(&s->arena, path, strlen(path))
                   : NULL;
}

static void look(struct search *s, const char *binary)
{
    if (!binary)
        binary = binary_folder(s);
    look_in(s, "beside the binary", binary);
    look_in(s, "the binary's ../weights", binary ? join(s, binary, "../weights") : NULL);
    look_in(s, "the current folder's", "build/weights");
    const char *hub = hub_folder(s);
    if (!s->found && hub && is_new(s, "the Hugging Face cache", hub))
        try_cache(s, hub);
}

static enum burin_status not_found(const struct search *s, struct burin_error *err)
{
    const char *demo = s->model->demo_weights;
    return burin_fail(
            err, BURIN_EMISSING,
            "no weights for %s. Looked in\n%s%s%s%s%s%sgive -m FILE or FOLDER, or set "
            "BURIN_MODEL",
            s->model->name, s->places.bytes,
            s->refused.used ? "Found, but of no use:\n" : "", s->refused.bytes,
            demo ? "Get them with: tools/demo-weights " : "", demo ? demo : "",
            demo ? "\nor " : "Please ");
}

enum burin_status burin_locate(
        const struct burin_model *model,
        const char *given,
        const char *binary,
        struct burin_checkpoint *checkpoint,
        const struct burin_tensor *const **tensors,
        struct burin_error *err)
{
    char places[PLACES_TEXT] = { 0 };
    char refused[REFUSED_TEXT] = { 0 };
    struct search search = {
        .model = model,
        .checkpoint = checkpoint,
        .tensors = tensors,
        .places = { places, sizeof places, 0 },
        .refused = { refused, sizeof refused, 0 },
    };
    *checkpoint = (struct burin_checkpoint){ 0 };

    if (!given)
        given = set("BURIN_MODEL");
    if (given)
        return open_and_bind(&search, given, err);
    look(&search, binary);
    burin_arena_close(&search.arena);
    return search.found ? BURIN_OK : not_found(&search, err);
}
