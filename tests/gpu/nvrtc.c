/* tests/gpu/nvrtc.c -- Compiles CUDA texts with the real NVRTC, which needs neither a GPU nor a
 * driver: registers, shared memory, stack and spills of every kernel on every architecture.
 *
 *   nvrtc [-j N] LIBRARY ARCH,ARCH... FILE...      nvrtc .../libnvrtc.so.13 sm_80,sm_90a k.cu
 *
 * A line for each: FILE ARCH KERNEL REGISTERS SHARED STACK. A stack frame or a spill is an error.
 * Exit status: 0; 1 when a text does not compile as it must; 77 when the library can't be opened. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct program program;

static int (*create)(
        program **,
        const char *,
        const char *,
        int,
        const char *const *,
        const char *const *);
static int (*compile)(program *, int, const char *const *);
static int (*log_size)(program *, size_t *);
static int (*get_log)(program *, char *);
static int (*destroy)(program **);

static char *archs[32], **files;
static int n_archs, n_jobs, n_wrong, next_job;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* libnvrtc opens its builtins by bare name: it finds them when they are open already. */
static void open_builtins(const char *library)
{
    char path[1100];
    const char *slash = strrchr(library, '/'), *version = strstr(library, ".so.");
    static const char *const minors[] = {
        "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"
    };
    for (int i = 0; slash && version && i < 10; i++) {
        snprintf(
                path, sizeof path, "%.*s/libnvrtc-builtins.so.%s.%s",
                (int)(slash - library), library, version + 4, minors[i]);
        if (dlopen(path, RTLD_NOW | RTLD_GLOBAL))
            return;
    }
}

static bool open_library(const char *path)
{
    open_builtins(path);
    void *library = dlopen(path, RTLD_NOW);
    if (!library) {
        printf("%s\n", dlerror());
        return false;
    }
    *(void **)&create = dlsym(library, "nvrtcCreateProgram");
    *(void **)&compile = dlsym(library, "nvrtcCompileProgram");
    *(void **)&log_size = dlsym(library, "nvrtcGetProgramLogSize");
    *(void **)&get_log = dlsym(library, "nvrtcGetProgramLog");
    *(void **)&destroy = dlsym(library, "nvrtcDestroyProgram");
    return create && compile && log_size && get_log && destroy;
}

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    const size_t bytes = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(bytes + 1);
    if (!text || fread(text, 1, bytes, file) != bytes)
        abort();
    text[bytes] = 0;
    fclose(file);
    return text;
}

/* "48 registers" in a line: 48; 0 where it says nothing of them. */
static int number_before(const char *line, const char *what)
{
    const char *end = strchr(line, '\n'), *at = strstr(line, what);
    if (!at || (end && at > end))
        return 0;
    while (at > line && at[-1] == ' ')
        at--;
    while (at > line && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return atoi(at);
}

/* What ptxas says of each function: its properties, then what it uses. False for a stack. */
static bool report(const char *file, const char *arch, const char *log)
{
    bool ok = true;
    char name[256] = "?";
    int stack = 0;
    for (const char *line = log; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!*line)
            break;
        const char *entry = strstr(line, "Compiling entry function '");
        const char *end = strchr(line, '\n');
        if (entry && (!end || entry < end))
            sscanf(entry, "Compiling entry function '%255[^']", name);
        if (strstr(line, "bytes stack frame") &&
            (!end || strstr(line, "bytes stack frame") < end)) {
            stack = number_before(line, "bytes stack frame");
            const int spilled = number_before(line, "bytes spill stores");
            if (stack || spilled) {
                printf("%s: %s, %s: %d bytes of stack, %d spilled\n", file, arch, name,
                       stack, spilled);
                ok = false;
            }
        }
        const char *used = strstr(line, ": Used ");
        if (used && (!end || used < end))
            printf("%s %s %s %d %d %d\n", file, arch, name,
                   number_before(line, "registers"), number_before(line, "bytes smem"),
                   stack);
    }
    return ok;
}

static bool compile_one(const char *file, const char *arch)
{
    char gpu[64];
    snprintf(gpu, sizeof gpu, "--gpu-architecture=%s", arch);
    const char *options[] = { gpu, "--std=c++17", "--fmad=false", "--ptxas-options=-v" };
    char *text = read_text(file), *log = NULL;
    program *p = NULL;
    size_t bytes = 0;
    bool ok = text && create(&p, text, file, 0, NULL, NULL) == 0;
    if (ok) {
        ok = compile(p, 4, options) == 0;
        log_size(p, &bytes);
        log = calloc(1, bytes + 1);
        get_log(p, log);
    }
    pthread_mutex_lock(&lock);
    if (ok)
        ok = report(file, arch, log);
    else
        printf("%s: %s doesn't compile:\n%s\n", file, arch, log ? log : "can't be read");
    pthread_mutex_unlock(&lock);
    if (p)
        destroy(&p);
    free(log);
    free(text);
    return ok;
}

static void *work(void *unused)
{
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&lock);
        const int job = next_job++;
        pthread_mutex_unlock(&lock);
        if (job >= n_jobs)
            return NULL;
        if (!compile_one(files[job / n_archs], archs[job % n_archs])) {
            pthread_mutex_lock(&lock);
            n_wrong++;
            pthread_mutex_unlock(&lock);
        }
    }
}

int main(int argc, char **argv)
{
    int n_threads = 2, first = 1;
    if (argc > 2 && !strcmp(argv[1], "-j")) {
        n_threads = atoi(argv[2]);
        first = 3;
    }
    if (argc < first + 3) {
        fprintf(stderr, "usage: nvrtc [-j N] LIBRARY ARCH,ARCH... FILE...\n");
        return 2;
    }
    if (!open_library(argv[first]))
        return 77;
    for (char *a = strtok(argv[first + 1], ","); a && n_archs < 32; a = strtok(NULL, ","))
        archs[n_archs++] = a;
    files = argv + first + 2;
    n_jobs = (argc - first - 2) * n_archs;
    pthread_t threads[16];
    n_threads = n_threads < 1 ? 1 : n_threads > 16 ? 16 : n_threads;
    for (int i = 0; i < n_threads; i++)
        if (pthread_create(&threads[i], NULL, work, NULL))
            abort();
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    return n_wrong > 0;
}
