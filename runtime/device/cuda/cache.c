#include "runtime/device/cuda/cache.h"

#include "runtime/base/caches.h"
#include "runtime/base/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Keys ---------------------------------------------------------------------------- */

__extension__ typedef unsigned __int128 u128;

/* http://www.isthe.com/chongo/tech/comp/fnv: the prime 2^88 + 0x13b, and the basis. */
static u128 load(const struct burin_cache_key *key)
{
    const u128 basis = (u128)0x6c62272e07bb0142 << 64 | 0x62b821756295c58d;
    u128 hash;
    memcpy(&hash, key->bytes, sizeof hash);
    return hash ^ basis; /* so that a zeroed key is the empty one */
}

static void store(struct burin_cache_key *key, u128 hash)
{
    const u128 basis = (u128)0x6c62272e07bb0142 << 64 | 0x62b821756295c58d;
    hash ^= basis;
    memcpy(key->bytes, &hash, sizeof hash);
}

static u128 hash_bytes(u128 hash, const void *bytes, size_t n)
{
    const u128 prime = (u128)1 << 88 | 0x13b;
    const uint8_t *p = bytes;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * prime;
    return hash;
}

void burin_cache_key_add(struct burin_cache_key *key, const void *bytes, size_t n)
{
    const uint64_t length = n; /* "ab" and "c" are not "a" and "bc" */
    store(key, hash_bytes(hash_bytes(load(key), &length, sizeof length), bytes, n));
}

/* ---- Where --------------------------------------------------------------------------- */

const char *burin_cache_folder(struct burin_arena *arena)
{
    char path[1024];
    const char *folder = getenv("BURIN_KERNEL_CACHE");
    if (!folder && burin_cache_path("burin/kernels", path, sizeof path))
        folder = path;
    return folder && *folder ? burin_arena_text(arena, folder, strlen(folder)) : NULL;
}

bool burin_cache_unwanted(void)
{
    const char *folder = getenv("BURIN_KERNEL_CACHE");
    return folder && !*folder;
}

/* Longer paths are no cache. */
struct path {
    char text[1200];
};

static struct path path_of(const char *folder, const struct burin_cache_key *key)
{
    struct path path;
    int at = snprintf(path.text, sizeof path.text, "%s/", folder);
    if (at < 0 || at > (int)sizeof path.text - 48) {
        path.text[0] = '\0';
        return path;
    }
    for (size_t i = 0; i < sizeof key->bytes; i++)
        at += snprintf(
                path.text + at, sizeof path.text - (size_t)at, "%02x", key->bytes[i]);
    snprintf(path.text + at, sizeof path.text - (size_t)at, ".cubin");
    return path;
}

/* ---- Files --------------------------------------------------------------------------- */

struct head {
    char magic[16];
    struct burin_cache_key key;
    struct burin_cache_key sum; /* of the machine code */
    uint64_t n_bytes;
    int32_t registers;
    int32_t shared_bytes;
    int32_t stack_bytes;
    int32_t zero;
};

static const char magic[16] = "burin kernel 1\n";

static bool all_read(int file, void *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t got = read(file, (uint8_t *)bytes + done, n - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static bool head_fits(
        const struct head *head, const struct burin_cache_key *key, off_t size)
{
    return memcmp(head->magic, magic, sizeof magic) == 0 &&
           memcmp(&head->key, key, sizeof *key) == 0 && head->n_bytes > 0 &&
           (uint64_t)size - sizeof *head == head->n_bytes;
}

static bool read_entry(
        int file,
        const struct burin_cache_key *key,
        struct burin_arena *arena,
        struct burin_compiled *compiled)
{
    struct stat about;
    struct head head;
    if (fstat(file, &about) || !S_ISREG(about.st_mode) ||
        about.st_size < (off_t)sizeof head || !all_read(file, &head, sizeof head) ||
        !head_fits(&head, key, about.st_size))
        return false;

    const struct burin_arena_mark mark = burin_arena_mark(arena);
    uint8_t *bytes = burin_arena_take(arena, head.n_bytes, 1, 64);
    struct burin_cache_key sum = { { 0 } };
    if (bytes && all_read(file, bytes, head.n_bytes)) {
        burin_cache_key_add(&sum, bytes, head.n_bytes);
        if (memcmp(&sum, &head.sum, sizeof sum) == 0) {
            compiled->origin = BURIN_CACHED;
            compiled->bytes = bytes;
            compiled->n_bytes = head.n_bytes;
            compiled->registers = head.registers;
            compiled->shared_bytes = head.shared_bytes;
            compiled->stack_bytes = head.stack_bytes;
            return true;
        }
    }
    burin_arena_rewind(arena, mark);
    return false;
}

bool burin_cache_find(
        const char *folder,
        const struct burin_cache_key *key,
        struct burin_arena *arena,
        struct burin_compiled *compiled)
{
    const struct path path = path_of(folder, key);
    /* A FIFO in its place must not be waited for. */
    const int file = open(path.text, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return false;
    const bool found = read_entry(file, key, arena, compiled);
    close(file);
    return found;
}

bool burin_cache_keep(
        const char *folder,
        const struct burin_cache_key *key,
        const struct burin_compiled *compiled)
{
    struct head head = {
        .key = *key,
        .n_bytes = compiled->n_bytes,
        .registers = compiled->registers,
        .shared_bytes = compiled->shared_bytes,
        .stack_bytes = compiled->stack_bytes,
    };
    memcpy(head.magic, magic, sizeof magic);
    burin_cache_key_add(&head.sum, compiled->bytes, compiled->n_bytes);

    const struct path path = path_of(folder, key);
    const struct burin_span parts[] = {
        { (const char *)&head, sizeof head },
        { (const char *)compiled->bytes, compiled->n_bytes },
    };
    return path.text[0] && burin_replace_file(path.text, parts, 2);
}
