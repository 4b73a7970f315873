#include "runtime/device/cuda/compile.h"

#include "runtime/base/clock.h"
#include "runtime/base/span.h"
#include "runtime/device/cuda/cache.h"
#include "runtime/device/cuda/open.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What every kernel is compiled with, besides its architecture. */
static const char *const options[] = {
    "--std=c++17",
    "--fmad=false",
    "--ptxas-options=-v",
    "--ptxas-options=--warn-on-spills",
    "--ptxas-options=--warning-as-error",
    "--diag-suppress=177", /* a kernel doesn't call all of the prelude */
};
enum {
    N_OPTIONS = sizeof options / sizeof options[0],
    MAX_COMPILE_THREADS = 64,
    MAX_ARCHS = 64
};

/* One call of burin_compile(). */
struct compilation {
    const struct burin_cuda_code *code;
    const char *arch;
    struct burin_compiling *how;
    struct burin_cache_key key; /* of what all kernels share */
    struct burin_compiled *compiled;
    int *missing; /* kernels to be compiled */
    int n_missing;

    /* Between the threads. */
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int next; /* of missing */
    int n_done;
    int n_running;
    bool stopped;
    enum burin_status status; /* of the first that failed */
    struct burin_error error;
};

struct compiler {
    struct compilation *compilation;
    struct burin_arena results; /* machine code; handed to the caller's arena at the end */
    struct burin_arena scratch; /* texts and logs */
    pthread_t thread;
};

/* ---- Architectures ------------------------------------------------------------------- */

struct burin_arch burin_arch_of(int sm)
{
    struct burin_arch arch;
    snprintf(arch.name, sizeof arch.name, "sm_%d%s", sm, sm >= 90 ? "a" : "");
    return arch;
}

/* "sm_90a" -> 90, own: true */
static int sm_of(const char *arch, bool *own)
{
    char *end = NULL;
    const int sm = strncmp(arch, "sm_", 3) == 0 ? (int)strtol(arch + 3, &end, 10) : 0;
    *own = end && *end == 'a';
    return sm;
}

/* How well code of `made` runs on `arch`, 0: not at all. Code runs on later minor numbers
 * of its major one, code for one card's own instructions on that card alone. */
static int suits(const char *made, const char *arch)
{
    bool own_made = false;
    bool own = false;
    const int sm_made = sm_of(made, &own_made);
    const int sm = sm_of(arch, &own);
    if (strcmp(made, arch) == 0)
        return 1000;
    return !own_made && sm_made > 0 && sm_made / 10 == sm / 10 && sm_made <= sm ? sm_made
                                                                                : 0;
}

/* ---- What is there already ----------------------------------------------------------- */

static const struct burin_cubin *embedded(const struct compilation *c, int kernel)
{
    const struct burin_cubin *best = NULL;
    for (const struct burin_cubin *at = c->code->cubins; at && at->arch; at++)
        if (at->kernel == kernel && suits(at->arch, c->arch) &&
            (!best || suits(at->arch, c->arch) > suits(best->arch, c->arch)))
            best = at;
    return best;
}

static bool find_embedded(struct compilation *c, int kernel)
{
    const struct burin_cubin *best = embedded(c, kernel);
    if (best)
        c->compiled[kernel] = (struct burin_compiled){
            .origin = BURIN_EMBEDDED,
            .bytes = best->bytes,
            .n_bytes = best->n_bytes,
            .registers = -1,
            .shared_bytes = -1,
            .stack_bytes = -1,
        };
    return best != NULL;
}

static void add_text(struct burin_cache_key *key, const char *text)
{
    burin_cache_key_add(key, text, strlen(text));
}

static enum burin_status make_key(struct compilation *c, struct burin_error *err)
{
    int version[2] = { 0, 0 };
    const struct burin_nvrtc *nvrtc = c->how->nvrtc;
    const int result = nvrtc->nvrtcVersion(&version[0], &version[1]);
    if (result)
        return burin_fail(
                err, BURIN_EMISSING, "nvrtcVersion, for the kernels' cache: %s (%d)",
                nvrtc->nvrtcGetErrorString(result), result);
    burin_cache_key_add(&c->key, version, sizeof version);
    add_text(&c->key, c->arch);
    for (size_t i = 0; i < N_OPTIONS; i++)
        add_text(&c->key, options[i]);
    add_text(&c->key, c->code->prelude);
    return BURIN_OK;
}

static struct burin_cache_key key_of(const struct compilation *c, int kernel)
{
    struct burin_cache_key key = c->key;
    add_text(&key, c->code->kernels[kernel].name);
    add_text(&key, c->code->kernels[kernel].text);
    return key;
}

/* An NVRTC older than the card does not know its architecture. */
static enum burin_status check_arch(struct compilation *c, struct burin_error *err)
{
    const struct burin_nvrtc *nvrtc = c->how->nvrtc;
    bool own = false;
    const int sm = sm_of(c->arch, &own);
    int archs[MAX_ARCHS] = { 0 };
    int n = 0;
    const char *call = "nvrtcGetNumSupportedArchs";
    int result = nvrtc->nvrtcGetNumSupportedArchs(&n);
    if (!result && n <= MAX_ARCHS) {
        call = "nvrtcGetSupportedArchs";
        result = nvrtc->nvrtcGetSupportedArchs(archs);
    }
    if (result)
        return burin_fail(
                err, BURIN_EMISSING, "%s, for %s: %s (%d)", call, c->arch,
                nvrtc->nvrtcGetErrorString(result), result);
    bool known = n > MAX_ARCHS;
    for (int i = 0; i < n && !known; i++)
        known = archs[i] == sm;
    if (known)
        return BURIN_OK;

    int major = 0;
    int minor = 0;
    nvrtc->nvrtcVersion(&major, &minor);
    return burin_fail(
            err, BURIN_EMISSING,
            "%s is NVRTC %d.%d, which makes no code for %s: install a newer one, or name "
            "it in BURIN_NVRTC",
            nvrtc->found, major, minor, c->arch);
}

/* NVRTC is opened here and no sooner: a binary with all its kernels embedded needs none. Its
 * version is part of the cache's key: without it nothing is found there. */
static enum burin_status open_nvrtc(struct compilation *c, struct burin_error *err)
{
    struct burin_nvrtc *nvrtc = c->how->nvrtc;
    struct burin_error why = { .status = BURIN_OK };
    if (nvrtc->nvrtcVersion)
        return BURIN_OK;
    if (!burin_nvrtc_open(nvrtc, c->how->driver_version, &why))
        return BURIN_OK;
    return burin_fail(
            err, why.status,
            "kernels that are not embedded need NVRTC, cached ones too: for %s the binary "
            "lacks %d. %s. (gen --aot %s puts them into the binary.)",
            c->arch, c->n_missing, why.message, c->arch);
}

enum burin_status burin_compile_check(
        const struct burin_cuda_code *code,
        bool fast_gemm,
        const char *arch,
        struct burin_compiling *compiling,
        struct burin_error *err)
{
    struct compilation c = { .code = code, .arch = arch, .how = compiling };
    for (int i = 0; i < code->n_kernels; i++)
        c.n_missing += (fast_gemm || !code->kernels[i].fast_gemm) && !embedded(&c, i);
    if (c.n_missing == 0)
        return BURIN_OK;
    const enum burin_status status = open_nvrtc(&c, err);
    return status ? status : check_arch(&c, err);
}

/* The rows of kernels that need no compiling, and the list of the others. */
static enum burin_status find_all(
        struct compilation *c,
        const bool *wanted,
        struct burin_arena *arena,
        struct burin_error *err)
{
    for (int i = 0; i < c->code->n_kernels; i++)
        if ((!wanted || wanted[i]) && (c->how->anew || !find_embedded(c, i)))
            c->missing[c->n_missing++] = i;
    if (c->n_missing == 0)
        return BURIN_OK;

    enum burin_status status = open_nvrtc(c, err);
    if (!status)
        status = check_arch(c, err);
    if (!status)
        status = make_key(c, err);
    if (status || c->how->anew || !c->how->cache)
        return status;

    int n_left = 0;
    for (int i = 0; i < c->n_missing; i++) {
        const double began = burin_now_ms();
        const int kernel = c->missing[i];
        const struct burin_cache_key key = key_of(c, kernel);
        if (burin_cache_find(c->how->cache, &key, arena, &c->compiled[kernel]))
            c->compiled[kernel].ms = burin_now_ms() - began;
        else
            c->missing[n_left++] = kernel;
    }
    c->n_missing = n_left;
    return BURIN_OK;
}

/* ---- Compiling ----------------------------------------------------------------------- */

/* The number in front of `words` in ptxas's log: "Used 40 registers"; the largest. */
static int number_before(const char *log, const char *words)
{
    int largest = 0;
    for (const char *at = strstr(log, words); at; at = strstr(at + 1, words)) {
        const char *begin = at;
        while (begin > log && begin[-1] >= '0' && begin[-1] <= '9')
            begin--;
        const int n = (int)strtol(begin, NULL, 10);
        largest = n > largest ? n : largest;
    }
    return largest;
}

static const char *read_log(
        const struct burin_nvrtc *nvrtc,
        struct burin_nvrtc_program *program,
        struct burin_arena *scratch)
{
    size_t n = 0;
    if (nvrtc->nvrtcGetProgramLogSize(program, &n) || n == 0)
        return "";
    char *log = burin_arena_take(scratch, n + 1, 1, 1);
    return log && !nvrtc->nvrtcGetProgramLog(program, log) ? log : "";
}

/* Prelude and kernel as one text, in which the kernel's lines count from 1. */
static char *join_text(
        const struct burin_cuda_code *code,
        const struct burin_kernel *kernel,
        struct burin_arena *scratch)
{
    const size_t n =
            strlen(code->prelude) + strlen(kernel->text) + strlen(kernel->name) + 64;
    char *text = burin_arena_take(scratch, n, 1, 1);
    if (text)
        snprintf(
                text, n, "%s\n#line 1 \"%s.cu\"\n%s\n", code->prelude, kernel->name,
                kernel->text);
    return text;
}

static enum burin_status refuse_text(
        const struct compilation *c,
        const struct burin_kernel *kernel,
        int result,
        const char *log,
        struct burin_error *err)
{
    const struct burin_nvrtc *nvrtc = c->how->nvrtc;
    int major = 0;
    int minor = 0;
    nvrtc->nvrtcVersion(&major, &minor);
    return burin_fail(
            err, result == NVRTC_OUT_OF_MEMORY ? BURIN_ENOMEM : BURIN_EFORMAT,
            "nvrtcCompileProgram, kernel %s for %s with NVRTC %d.%d: %s (%d)\n%.3000s",
            kernel->name, c->arch, major, minor, nvrtc->nvrtcGetErrorString(result), result,
            log);
}

static enum burin_status take_code(
        const struct compilation *c,
        const struct burin_kernel *kernel,
        struct burin_nvrtc_program *program,
        struct burin_arena *results,
        struct burin_compiled *compiled,
        struct burin_error *err)
{
    const struct burin_nvrtc *nvrtc = c->how->nvrtc;
    size_t n = 0;
    int result = nvrtc->nvrtcGetCUBINSize(program, &n);
    uint8_t *bytes = result ? NULL : burin_arena_take(results, n, 1, 64);
    if (!result && !bytes)
        return burin_fail(
                err, BURIN_ENOMEM, "no host memory for %zu bytes of kernel %s", n,
                kernel->name);
    if (!result)
        result = nvrtc->nvrtcGetCUBIN(program, (char *)bytes);
    if (result || n == 0)
        return burin_fail(
                err, BURIN_EFORMAT, "nvrtcGetCUBIN, kernel %s for %s: %s (%d)",
                kernel->name, c->arch, nvrtc->nvrtcGetErrorString(result), result);
    compiled->bytes = bytes;
    compiled->n_bytes = n;
    return BURIN_OK;
}

static enum burin_status compile_program(
        const struct compilation *c,
        const struct burin_kernel *kernel,
        struct burin_nvrtc_program *program,
        struct compiler *compiler,
        struct burin_compiled *compiled,
        struct burin_error *err)
{
    char arch[32];
    snprintf(arch, sizeof arch, "-arch=%s", c->arch);
    const char *all[N_OPTIONS + 1] = { arch };
    memcpy(all + 1, options, sizeof options);

    const struct burin_nvrtc *nvrtc = c->how->nvrtc;
    const int result = nvrtc->nvrtcCompileProgram(program, N_OPTIONS + 1, all);
    const char *log = read_log(nvrtc, program, &compiler->scratch);
    if (result)
        return refuse_text(c, kernel, result, log, err);

    compiled->origin = BURIN_COMPILED;
    compiled->lost = false;
    compiled->registers = number_before(log, " registers");
    compiled->shared_bytes = number_before(log, " bytes smem");
    compiled->stack_bytes = number_before(log, " bytes stack frame");
    return take_code(c, kernel, program, &compiler->results, compiled, err);
}

static enum burin_status compile_kernel(
        struct compiler *compiler, int number, struct burin_error *err)
{
    const struct compilation *c = compiler->compilation;
    const struct burin_nvrtc *nvrtc = c->how->nvrtc;
    const struct burin_kernel *kernel = &c->code->kernels[number];
    struct burin_compiled *compiled = &c->compiled[number];
    const double began = burin_now_ms();
    const struct burin_arena_mark mark = burin_arena_mark(&compiler->scratch);

    const char *text = join_text(c->code, kernel, &compiler->scratch);
    if (!text)
        return burin_fail(
                err, BURIN_ENOMEM, "no host memory for the text of kernel %s",
                kernel->name);
    char name[256];
    snprintf(name, sizeof name, "%s.cu", kernel->name);
    struct burin_nvrtc_program *program = NULL;
    const int result = nvrtc->nvrtcCreateProgram(&program, text, name, 0, NULL, NULL);
    if (result)
        return burin_fail(
                err, result == NVRTC_OUT_OF_MEMORY ? BURIN_ENOMEM : BURIN_EIO,
                "nvrtcCreateProgram, kernel %s: %s (%d)", kernel->name,
                nvrtc->nvrtcGetErrorString(result), result);

    const enum burin_status status =
            compile_program(c, kernel, program, compiler, compiled, err);
    nvrtc->nvrtcDestroyProgram(&program);
    burin_arena_rewind(&compiler->scratch, mark);
    compiled->ms = burin_now_ms() - began;
    if (!status && c->how->cache) {
        const struct burin_cache_key key = key_of(c, number);
        compiled->lost = !burin_cache_keep(c->how->cache, &key, compiled);
    }
    return status;
}

/* ---- Threads ------------------------------------------------------------------------- */

/* The next kernel to compile, or -1. */
static int take_next(struct compilation *c)
{
    pthread_mutex_lock(&c->lock);
    const bool over = c->stopped || c->status || c->next == c->n_missing;
    const int kernel = over ? -1 : c->missing[c->next++];
    pthread_mutex_unlock(&c->lock);
    return kernel;
}

/* False: there is none. */
static bool compile_next(struct compiler *compiler)
{
    struct compilation *c = compiler->compilation;
    struct burin_error error = { .status = BURIN_OK };
    const int kernel = take_next(c);
    if (kernel < 0)
        return false;
    const enum burin_status status = compile_kernel(compiler, kernel, &error);
    pthread_mutex_lock(&c->lock);
    c->n_done++;
    if (status && !c->status) {
        c->status = status;
        c->error = error;
    }
    pthread_cond_signal(&c->moved);
    pthread_mutex_unlock(&c->lock);
    return true;
}

static void *compile_until_done(void *argument)
{
    struct compiler *compiler = argument;
    struct compilation *c = compiler->compilation;
    while (compile_next(compiler))
        ;
    pthread_mutex_lock(&c->lock);
    c->n_running--;
    pthread_cond_signal(&c->moved);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* Tell how far it is, until all threads have ended. */
static void watch(struct compilation *c)
{
    int told = -1;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        const int n_done = c->n_done;
        if (n_done != told && c->how->progress && !c->stopped) {
            pthread_mutex_unlock(&c->lock);
            const bool go_on = c->how->progress(c->how->context, n_done, c->n_missing);
            told = n_done;
            pthread_mutex_lock(&c->lock);
            c->stopped = !go_on;
            continue;
        }
        if (c->n_running == 0)
            break;
        pthread_cond_wait(&c->moved, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
}

/* Threads that do not start leave their work to the others; without any it is the caller's, who
 * tells between two kernels. */
static void run_compilers(struct compilation *c, struct compiler *compilers, int n)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the caller's thread */
    int n_started = 0;
    c->n_running = n;
    while (n_started < n && !pthread_create(
                                    &compilers[n_started].thread, NULL, compile_until_done,
                                    &compilers[n_started]))
        n_started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);

    pthread_mutex_lock(&c->lock);
    c->n_running -= n - n_started;
    pthread_mutex_unlock(&c->lock);
    do
        watch(c);
    while (n_started == 0 && compile_next(&compilers[0]));
    for (int i = 0; i < n_started; i++)
        pthread_join(compilers[i].thread, NULL);
}

/* Machine code out of a compiler's arena into the caller's, which outlives it. */
static enum burin_status hand_over(
        struct compilation *c, struct burin_arena *arena, struct burin_error *err)
{
    for (int i = 0; i < c->n_missing; i++) {
        struct burin_compiled *compiled = &c->compiled[c->missing[i]];
        uint8_t *bytes = burin_arena_take(arena, compiled->n_bytes, 1, 64);
        if (!bytes)
            return burin_fail(
                    err, BURIN_ENOMEM, "no host memory for %zu bytes of kernels",
                    compiled->n_bytes);
        memcpy(bytes, compiled->bytes, compiled->n_bytes);
        compiled->bytes = bytes;
    }
    return BURIN_OK;
}

static enum burin_status compile_missing(
        struct compilation *c, struct burin_arena *arena, struct burin_error *err)
{
    struct compiler compilers[MAX_COMPILE_THREADS] = { { .compilation = c } };
    int n = c->how->n_threads < c->n_missing ? c->how->n_threads : c->n_missing;
    n = n < 1 ? 1 : n > MAX_COMPILE_THREADS ? MAX_COMPILE_THREADS : n;
    for (int i = 0; i < n; i++)
        compilers[i].compilation = c;

    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->moved, NULL);
    run_compilers(c, compilers, n);
    pthread_cond_destroy(&c->moved);
    pthread_mutex_destroy(&c->lock);

    enum burin_status status = c->status;
    if (status && err)
        *err = c->error;
    if (!status && c->stopped)
        status = burin_fail(
                err, BURIN_ESTOPPED, "stopped after %d of %d kernels were compiled",
                c->n_done, c->n_missing);
    if (!status)
        status = hand_over(c, arena, err);
    for (int i = 0; i < n; i++) {
        burin_arena_close(&compilers[i].results);
        burin_arena_close(&compilers[i].scratch);
    }
    return status;
}

/* ---- All of it ----------------------------------------------------------------------- */

static struct burin_compile_counts count(
        const struct burin_cuda_code *code,
        const bool *wanted,
        const struct burin_compiled *compiled)
{
    struct burin_compile_counts counts = { .ms = 0 };
    for (int i = 0; i < code->n_kernels; i++) {
        if (wanted && !wanted[i])
            continue;
        counts.n_embedded += compiled[i].origin == BURIN_EMBEDDED;
        counts.n_cached += compiled[i].origin == BURIN_CACHED;
        counts.n_compiled += compiled[i].origin == BURIN_COMPILED;
        counts.n_lost += compiled[i].origin == BURIN_COMPILED && compiled[i].lost;
        counts.n_bytes += compiled[i].n_bytes;
    }
    return counts;
}

enum burin_status burin_compile(
        const struct burin_cuda_code *code,
        const bool *wanted,
        const char *arch,
        struct burin_compiling *compiling,
        struct burin_arena *arena,
        struct burin_compiled *compiled,
        struct burin_compile_counts *counts,
        struct burin_error *err)
{
    const double began = burin_now_ms();
    struct burin_arena own = { 0 };
    struct compilation c = {
        .code = code,
        .arch = arch,
        .how = compiling,
        .compiled = compiled,
        .missing = BURIN_TAKE(&own, (size_t)code->n_kernels, int),
    };
    enum burin_status status =
            c.missing
                    ? find_all(&c, wanted, arena, err)
                    : burin_fail(err, BURIN_ENOMEM, "no host memory for a list of kernels");
    if (!status && c.n_missing > 0)
        status = compile_missing(&c, arena, err);
    if (!status) {
        *counts = count(code, wanted, compiled);
        counts->ms = burin_now_ms() - began;
    }
    burin_arena_close(&own);
    return status;
}
