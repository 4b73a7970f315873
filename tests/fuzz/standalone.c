/* tests/fuzz/standalone.c -- Runs a fuzzer without libFuzzer: every file of a corpus, then
 * mutations of them by a fixed generator, for so many seconds.
 *
 *     fuzz-gguf tests/fuzz/corpus/gguf [SECONDS]
 *     fuzz-gguf FILE                       one input, such as the one that failed
 *
 * What fails is left in the current folder, as fuzz-failed.bin. */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

enum { MOST_BYTES = 1 << 16, MOST_FILES = 256, DEFAULT_SECONDS = 3 };

struct input {
    size_t n;
    uint8_t bytes[MOST_BYTES];
};

static struct input *corpus;
static size_t n_corpus;
static struct input current;

static uint64_t state = 0x9e3779b97f4a7c15;

static size_t below(size_t n) /* xorshift64* */
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return n ? (size_t)(state * 0x2545f4914f6cdd1d >> 16) % n : 0;
}

/* Keep the input that failed. abort() raises SIGABRT; ASan is told to as well. */
static void on_abort(int number)
{
    FILE *out = fopen("fuzz-failed.bin", "wb");
    if (out) {
        fwrite(current.bytes, 1, current.n, out);
        fclose(out);
    }
    signal(number, SIG_DFL);
    raise(number);
}

const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "abort_on_error=1";
}

static void load(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
    struct input *input = &corpus[n_corpus++];
    input->n = fread(input->bytes, 1, MOST_BYTES, file);
    fclose(file);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void load_all(const char *path)
{
    struct dirent **entries;
    const int n = scandir(path, &entries, NULL, by_name);
    if (n < 0) { /* not a folder */
        load(path);
        return;
    }
    for (int i = 0; i < n; i++) {
        char name[1024];
        snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && n_corpus < MOST_FILES)
            load(name);
        free(entries[i]);
    }
    free(entries);
}

static void overwrite(size_t width)
{
    static const uint64_t edges[] = { 0,         1,          2,          31,
                                      32,        0x7f,       0xff,       0x7fff,
                                      0xffff,    0x7fffffff, 0xffffffff, 1ull << 40,
                                      INT64_MAX, UINT64_MAX };
    if (current.n < width)
        return;
    const uint64_t value = edges[below(sizeof edges / sizeof edges[0])];
    memcpy(current.bytes + below(current.n - width + 1), &value, width);
}

static void erase(size_t at, size_t n)
{
    memmove(current.bytes + at, current.bytes + at + n, current.n - at - n);
    current.n -= n;
}

static void insert(size_t at, const uint8_t *from, size_t n)
{
    if (current.n + n > MOST_BYTES)
        return;
    memmove(current.bytes + at + n, current.bytes + at, current.n - at);
    memcpy(current.bytes + at, from, n);
    current.n += n;
}

static void mutate(void)
{
    if (!current.n)
        return;
    const size_t at = below(current.n);
    const size_t most = current.n - at < 32 ? current.n - at : 32;
    const struct input *other = &corpus[below(n_corpus)];
    const size_t from = below(other->n);
    switch (below(8)) {
    case 0:
        current.bytes[at] ^= (uint8_t)(1 << below(8));
        break;
    case 1:
        current.bytes[at] = (uint8_t)below(256);
        break;
    case 2:
        overwrite(4);
        break;
    case 3:
        overwrite(8);
        break;
    case 4:
        erase(at, 1 + below(most));
        break;
    case 5:
        current.n = at; /* truncate */
        break;
    case 6:
        insert(at, other->bytes + from, other->n - from < 32 ? other->n - from : 32);
        break;
    case 7: { /* a piece of its own, twice */
        uint8_t piece[32];
        memcpy(piece, current.bytes + at, most);
        insert(below(current.n), piece, most);
        break;
    }
    default:
        break;
    }
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "%s CORPUS [SECONDS]\n", argv[0]);
        return 2;
    }
    signal(SIGABRT, on_abort);
    corpus = calloc(MOST_FILES, sizeof *corpus);
    PROMISE(corpus);
    load_all(argv[1]);
    for (size_t i = 0; i < n_corpus; i++) {
        current = corpus[i];
        LLVMFuzzerTestOneInput(current.bytes, current.n);
    }

    const long seconds = argc > 2 ? strtol(argv[2], NULL, 10) : DEFAULT_SECONDS;
    const time_t end = time(NULL) + seconds;
    long n = 0;
    while (n_corpus > 1 && time(NULL) < end) {
        const struct input *seed = &corpus[below(n_corpus)];
        current.n = seed->n;
        memcpy(current.bytes, seed->bytes, seed->n);
        for (size_t i = 0, times = 1 + below(4); i < times; i++)
            mutate();
        LLVMFuzzerTestOneInput(current.bytes, current.n);
        n++;
    }
    printf("%zu files, %ld mutations\n", n_corpus, n);
    free(corpus);
    return 0;
}
