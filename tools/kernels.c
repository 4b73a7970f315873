/* tools/kernels.c -- Compiles the kernels of a model's GPU families, without a GPU: kernels-NAME.
 *
 *   kernels-NAME [--anew] [--only KERNEL,KERNEL] [ARCH ...]
 *                                        a table: registers and shared memory of each kernel
 *                                        on each architecture, and how long it took
 *   kernels-NAME --cached [ARCH ...]     how long it takes to find them all in the cache
 *   kernels-NAME --embed ARCH ...        as C, for the binary (gen --aot; build calls it)
 *
 * ARCH is one that NVRTC knows: sm_80, sm_90a; by default all that a family of ours runs on.
 * A spill, a stack frame, more shared memory or registers than a block may have are errors: all
 * of them are told. Compiled code is kept in the cache that binaries use; --anew reads nothing
 * from it. Ends with 1 where a kernel is not as it must be or, with --cached, was not there; with
 * 77 where there is no NVRTC. */
#include "runtime/base/arena.h"
#include "runtime/base/clock.h"
#include "runtime/device/cuda/cache.h"
#include "runtime/device/cuda/compile.h"
#include "runtime/device/cuda/open.h"
#include "runtime/device/machine.h"
#include "runtime/model.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ARCHS = 16, MAX_THREADS = 64 };

static const char *const usual[] = { "sm_80",   "sm_86",   "sm_89",  "sm_90a",
                                     "sm_100a", "sm_120a", "sm_121a" };
enum { N_USUAL = sizeof usual / sizeof *usual };

/* What a block may have on the smallest of them (8.6, 8.9, 12.x): 99 KiB of shared memory,
 * 64 Ki registers. CUDA C++ Programming Guide, table of technical specifications. */
enum { MOST_SHARED_BYTES = 99 * 1024, MOST_REGISTERS = 65536 };

enum output { AS_TABLE, OF_CACHE, AS_C };

/* All kernels of one code for all architectures: job number i is kernel i % n_kernels for
 * archs[i / n_kernels]. */
struct work {
    enum output output;
    const struct burin_cuda_code *code;
    const char *archs[MAX_ARCHS];
    int n_archs;
    const char *only; /* names between commas; NULL: all */
    struct burin_compiling how;
    struct burin_compiled *compiled; /* of each job */

    pthread_mutex_t lock;
    int next;
    int n_bad;
    struct burin_compile_counts counts;
};

/* A thread's machine code lies in its arena until the end. */
struct worker {
    struct work *work;
    struct burin_arena arena;
    struct burin_error err;
    pthread_t thread;
};

/* Whether it is one of those asked for. */
static bool is_wanted(const struct work *work, int kernel)
{
    const char *name = work->code->kernels[kernel].name;
    const size_t n = strlen(name);
    for (const char *at = work->only; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, n) == 0 && (at[n] == ',' || at[n] == 0))
            return true;
    return !work->only;
}

/* ---- Compiling ----------------------------------------------------------------------- */

/* The first lines of a log that are not of a warning: nvcc's form, "k.cu(46): warning". */
static void print_errors(const char *message)
{
    int warning = 0;
    for (const char *line = message; *line;) {
        const char *end = strchr(line, '\n');
        const int n = end ? (int)(end - line) : (int)strlen(line);
        const char *at = strstr(line, ": warning");
        if (at && at < line + n)
            warning = 1;
        else if (n > 0 && line[0] != ' ')
            warning = 0;
        if (!warning && n > 0)
            fprintf(stderr, "  %.*s\n", n, line);
        line += n + (end != NULL);
    }
}

/* Whether a kernel is as it must be; tells what is not. */
static bool is_good(
        const struct burin_kernel *kernel,
        const char *arch,
        const struct burin_compiled *compiled)
{
    const int shared = compiled->shared_bytes + kernel->shared_bytes;
    const int registers = (compiled->registers + 7) / 8 * 8 * kernel->threads;
    if (compiled->stack_bytes <= 0 && shared <= MOST_SHARED_BYTES &&
        registers <= MOST_REGISTERS)
        return true;
    fprintf(stderr,
            "kernels: %s for %s: %d bytes of stack, which must be none; %d of shared "
            "memory, at most %d; %d registers of a block, at most %d\n",
            kernel->name, arch, compiled->stack_bytes, shared, MOST_SHARED_BYTES, registers,
            MOST_REGISTERS);
    return false;
}

static bool compile_one(struct worker *worker, int job, struct burin_compile_counts *counts)
{
    struct work *work = worker->work;
    const int n_kernels = work->code->n_kernels, kernel = job % n_kernels;
    const char *arch = work->archs[job / n_kernels];
    struct burin_compiling how = work->how;
    struct burin_compiled *of_arch = work->compiled + (size_t)(job - kernel);
    bool *wanted = BURIN_TAKE(&worker->arena, (size_t)n_kernels, bool);
    if (!wanted)
        return false;
    wanted[kernel] = true;
    if (burin_compile(
                work->code, wanted, arch, &how, &worker->arena, of_arch, counts,
                &worker->err)) {
        pthread_mutex_lock(&work->lock);
        fprintf(stderr, "kernels: %s for %s:\n", work->code->kernels[kernel].name, arch);
        print_errors(worker->err.message);
        pthread_mutex_unlock(&work->lock);
        return false;
    }
    return is_good(&work->code->kernels[kernel], arch, &of_arch[kernel]);
}

static void *compile_all(void *argument)
{
    struct worker *worker = argument;
    struct work *work = worker->work;
    for (;;) {
        struct burin_compile_counts counts = { .n_bytes = 0 };
        pthread_mutex_lock(&work->lock);
        const int job = work->next++;
        pthread_mutex_unlock(&work->lock);
        if (job >= work->n_archs * work->code->n_kernels)
            return NULL;
        if (!is_wanted(work, job % work->code->n_kernels))
            continue;
        const bool good = compile_one(worker, job, &counts);
        pthread_mutex_lock(&work->lock);
        work->n_bad += !good;
        work->counts.n_cached += counts.n_cached;
        work->counts.n_compiled += counts.n_compiled;
        work->counts.n_bytes += counts.n_bytes;
        pthread_mutex_unlock(&work->lock);
    }
}

/* Returns when all jobs are done; false where a thread does not start. */
static bool run_workers(struct work *work, struct worker *workers, int n)
{
    int n_started = 0;
    for (; n_started < n; n_started++) {
        workers[n_started].work = work;
        if (pthread_create(
                    &workers[n_started].thread, NULL, compile_all, &workers[n_started]))
            break;
    }
    for (int i = 0; i < n_started; i++)
        pthread_join(workers[i].thread, NULL);
    return n_started > 0;
}

/* ---- What is printed --------------------------------------------------------------------- */

static void print_table(const struct work *work)
{
    const int n_kernels = work->code->n_kernels;
    printf("%-52s %7s", "registers, shared bytes", "threads");
    for (int a = 0; a < work->n_archs; a++)
        printf(" %7s", work->archs[a]);
    printf(" %7s\n", "shared");
    for (int k = 0; k < n_kernels; k++) {
        const struct burin_kernel *kernel = &work->code->kernels[k];
        int shared = 0;
        if (!is_wanted(work, k))
            continue;
        printf("%-52s %7d", kernel->name, kernel->threads);
        for (int a = 0; a < work->n_archs; a++) {
            const struct burin_compiled *c = &work->compiled[a * n_kernels + k];
            printf(" %7d", c->registers);
            shared = c->shared_bytes > shared ? c->shared_bytes : shared;
        }
        printf(" %7d\n", shared + kernel->shared_bytes);
    }
}

static void print_summary(const struct work *work, double seconds)
{
    const struct burin_compile_counts *counts = &work->counts;
    const int n_kernels = work->code->n_kernels;
    int slowest = 0, n_wanted = 0;
    for (int k = 0; k < n_kernels; k++)
        n_wanted += is_wanted(work, k);
    for (int i = 0; i < n_kernels * work->n_archs; i++)
        if (work->compiled[i].ms > work->compiled[slowest].ms)
            slowest = i;
    printf("%s: %d kernels, %d architectures: %d compiled, %d from the cache, %.1f MB of "
           "code, %.2f s on %d threads; the slowest took %.2f s: %s\n",
           burin_model.name, n_wanted, work->n_archs, counts->n_compiled, counts->n_cached,
           (double)counts->n_bytes / 1e6, seconds, work->how.n_threads,
           work->compiled[slowest].ms / 1e3, work->code->kernels[slowest % n_kernels].name);
}

/* One array a kernel and architecture, then the list of them. `name` is what its family's
 * functions begin with. */
static void print_c(const struct work *work, const char *name)
{
    const int n_kernels = work->code->n_kernels;
    for (int a = 0; a < work->n_archs; a++)
        for (int k = 0; k < n_kernels; k++) {
            const struct burin_compiled *compiled = &work->compiled[a * n_kernels + k];
            printf("\nstatic const uint8_t %s_%d_%s[] = {", name, k, work->archs[a]);
            for (size_t i = 0; i < compiled->n_bytes; i++)
                printf("%s%d,", i % 32 ? "" : "\n", compiled->bytes[i]);
            printf("\n};\n");
        }
    printf("\nextern const struct burin_cubin %s_cubins[];\n"
           "const struct burin_cubin %s_cubins[] = {\n",
           name, name);
    for (int a = 0; a < work->n_archs; a++)
        for (int k = 0; k < n_kernels; k++)
            printf("    { \"%s\", %d, %s_%d_%s, sizeof %s_%d_%s },\n", work->archs[a], k,
                   name, k, work->archs[a], name, k, work->archs[a]);
    printf("    { NULL, 0, NULL, 0 },\n};\n");
}

/* ---- The command ------------------------------------------------------------------------- */

/* Families that share their kernels name the same code: it is the first one's. */
static bool is_first(const struct burin_model *model, int family)
{
    for (int i = 0; i < family; i++)
        if (model->families[i].cuda == model->families[family].cuda)
            return false;
    return model->families[family].cuda != NULL;
}

/* 0, or what the command ends with. */
static int read_options(int argc, char **argv, struct work *work)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--embed") == 0)
            work->output = AS_C;
        else if (strcmp(argv[i], "--cached") == 0)
            work->output = OF_CACHE;
        else if (strcmp(argv[i], "--anew") == 0)
            work->how.anew = true;
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            work->only = argv[++i];
        else if (strncmp(argv[i], "sm_", 3) == 0 && work->n_archs < MAX_ARCHS)
            work->archs[work->n_archs++] = argv[i];
        else {
            fprintf(stderr, "kernels: %s is no architecture: sm_80, sm_90a\n", argv[i]);
            return 2;
        }
    }
    if (work->n_archs == 0)
        for (; work->n_archs < N_USUAL; work->n_archs++)
            work->archs[work->n_archs] = usual[work->n_archs];
    return 0;
}

/* One family's kernels; false where one is not as it must be. */
static bool compile_family(struct work *work, const char *name)
{
    static struct worker workers[MAX_THREADS];
    struct burin_arena arena = { 0 };
    const double begin_ms = burin_now_ms();
    const size_t n_jobs = (size_t)work->n_archs * (size_t)work->code->n_kernels;

    work->next = work->n_bad = 0;
    work->counts = (struct burin_compile_counts){ .n_bytes = 0 };
    work->compiled = BURIN_TAKE(&arena, n_jobs, struct burin_compiled);
    bool good = work->compiled && run_workers(work, workers, work->how.n_threads);
    const double seconds = (burin_now_ms() - begin_ms) / 1e3;
    if (work->output == OF_CACHE)
        work->n_bad += work->counts.n_compiled;
    if (good && work->output == AS_TABLE)
        print_table(work);
    if (good && work->output != AS_C)
        print_summary(work, seconds);
    else if (good && work->n_bad == 0)
        print_c(work, name);
    good = good && work->n_bad == 0;
    for (int i = 0; i < MAX_THREADS; i++)
        burin_arena_close(&workers[i].arena);
    burin_arena_close(&arena);
    return good;
}

int main(int argc, char **argv)
{
    static struct burin_error err;
    static struct burin_arena arena;
    static struct burin_nvrtc nvrtc;
    static struct work work = { .lock = PTHREAD_MUTEX_INITIALIZER };
    bool good = true;
    int n_codes = 0;

    const int wrong = read_options(argc, argv, &work);
    if (wrong)
        return wrong;
    if (burin_nvrtc_open(&nvrtc, 0, &err)) {
        fprintf(stderr, "kernels: %s\n", err.message);
        return err.status == BURIN_EMISSING ? 77 : 1;
    }
    const int cores = burin_machine_cores();
    work.how.nvrtc = &nvrtc;
    work.how.cache = burin_cache_folder(&arena);
    work.how.n_threads = cores < MAX_THREADS ? cores : MAX_THREADS;
    if (work.output == AS_C)
        printf("/* Kernels as NVRTC compiled them when this was built: tools/kernels.c. "
               "*/\n"
               "#include \"runtime/model.h\"\n\n#include <stddef.h>\n");
    for (int i = 0; i < burin_model.n_families; i++)
        if (is_first(&burin_model, i)) {
            work.code = burin_model.families[i].cuda;
            good &= compile_family(&work, burin_model.families[i].name);
            n_codes++;
        }
    if (n_codes == 0) {
        fprintf(stderr, "kernels: %s has no kernels for GPUs\n", burin_model.name);
        good = false;
    }
    burin_nvrtc_close(&nvrtc);
    burin_arena_close(&arena);
    return good ? 0 : 1;
}
