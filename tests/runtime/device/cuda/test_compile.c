/* Kernels' texts to machine code: embedded, cached or compiled. NVRTC is a table of
 * functions here whose code is the text itself; the last specifications ask the real one.
 * */
#include "runtime/device/cuda/cache.h"
#include "runtime/device/cuda/compile.h"
#include "runtime/device/cuda/open.h"
#include "tests/support/test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- A compiler that copies ---------------------------------------------------------- */

struct burin_nvrtc_program {
    char text[512];
    char options[256];
};

static struct {
    pthread_mutex_t lock;
    int n_compiled;
    int n_alive; /* programs */
    char options[256];
    int version;
} fake = { .lock = PTHREAD_MUTEX_INITIALIZER, .version = 13 };

static int version(int *major, int *minor)
{
    *major = fake.version;
    *minor = 0;
    return 0;
}

static const char *error_string(int result)
{
    return result == NVRTC_COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}

static const int known_archs[] = { 80, 86, 89, 90, 100, 103, 120, 121 };

static int n_archs(int *n)
{
    *n = sizeof known_archs / sizeof known_archs[0];
    return 0;
}

static int list_archs(int *archs)
{
    memcpy(archs, known_archs, sizeof known_archs);
    return 0;
}

static int create(
        struct burin_nvrtc_program **program,
        const char *text,
        const char *name,
        int n_headers,
        const char *const *headers,
        const char *const *names)
{
    (void)name, (void)n_headers, (void)headers, (void)names;
    *program = calloc(1, sizeof **program);
    snprintf((*program)->text, sizeof(*program)->text, "%s", text);
    pthread_mutex_lock(&fake.lock);
    fake.n_alive++;
    pthread_mutex_unlock(&fake.lock);
    return 0;
}

static int compile(struct burin_nvrtc_program *program, int n, const char *const *options)
{
    pthread_mutex_lock(&fake.lock);
    fake.n_compiled++;
    fake.options[0] = '\0';
    for (int i = 0; i < n; i++) {
        strcat(fake.options, options[i]);
        strcat(fake.options, " ");
    }
    pthread_mutex_unlock(&fake.lock);
    return strstr(program->text, "WRONG") ? NVRTC_COMPILATION : 0;
}

static int cubin_size(struct burin_nvrtc_program *program, size_t *bytes)
{
    *bytes = strlen(program->text) + 1;
    return 0;
}

static int cubin(struct burin_nvrtc_program *program, char *bytes)
{
    strcpy(bytes, program->text);
    return 0;
}

static const char ptxas[] =
        "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
        "    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 40 registers, used 1 barriers, 4096 bytes smem\n";

static int log_size(struct burin_nvrtc_program *program, size_t *bytes)
{
    *bytes = strstr(program->text, "WRONG") ? 40 : sizeof ptxas;
    return 0;
}

static int log_text(struct burin_nvrtc_program *program, char *log)
{
    strcpy(log,
           strstr(program->text, "WRONG") ? "wrong.cu(1): error: not a kernel" : ptxas);
    return 0;
}

static int destroy(struct burin_nvrtc_program **program)
{
    free(*program);
    *program = NULL;
    pthread_mutex_lock(&fake.lock);
    fake.n_alive--;
    pthread_mutex_unlock(&fake.lock);
    return 0;
}

static struct burin_nvrtc nvrtc = {
    .nvrtcVersion = version,
    .nvrtcGetErrorString = error_string,
    .nvrtcGetNumSupportedArchs = n_archs,
    .nvrtcGetSupportedArchs = list_archs,
    .nvrtcCreateProgram = create,
    .nvrtcCompileProgram = compile,
    .nvrtcGetCUBINSize = cubin_size,
    .nvrtcGetCUBIN = cubin,
    .nvrtcGetProgramLogSize = log_size,
    .nvrtcGetProgramLog = log_text,
    .nvrtcDestroyProgram = destroy,
    .found = "libnvrtc.so.13",
};

/* ---- Some kernels -------------------------------------------------------------------- */

static const struct burin_kernel kernels[] = {
    { "first", "void first() {}", 128, 0, false },
    { "second", "void second() {}", 64, 0, false },
    { "third", "void third() {}", 256, 512, false },
};
static const struct burin_cuda_code code = {
    .prelude = "prelude",
    .n_kernels = 3,
    .kernels = kernels,
};

static struct burin_arena arena;
static struct burin_compiled compiled[3];
static struct burin_compile_counts counts;

static enum burin_status compile_all(
        const struct burin_cuda_code *all,
        const char *arch,
        struct burin_compiling *how,
        struct burin_error *err)
{
    fake.n_compiled = 0;
    memset(compiled, 0, sizeof compiled);
    const enum burin_status status =
            burin_compile(all, NULL, arch, how, &arena, compiled, &counts, err);
    assert_int_equal(fake.n_alive, 0);
    return status;
}

static const char *new_folder(void)
{
    static char folder[256];
    strcpy(folder, "/tmp/burin-compile-XXXXXX");
    assert_non_null(mkdtemp(folder));
    return folder;
}

/* ---- Compiling ----------------------------------------------------------------------- */

SPEC(each_kernel_is_compiled_behind_the_prelude_with_lines_of_its_own)
{
    struct burin_compiling how = { .nvrtc = &nvrtc, .n_threads = 2 };

    assert_int_equal(compile_all(&code, "sm_90a", &how, NULL), BURIN_OK);

    assert_int_equal(fake.n_compiled, 3);
    assert_int_equal(counts.n_compiled, 3);
    assert_string_equal(
            (const char *)compiled[1].bytes,
            "prelude\n#line 1 \"second.cu\"\nvoid second() {}\n");
    assert_int_equal(
            counts.n_bytes,
            compiled[0].n_bytes + compiled[1].n_bytes + compiled[2].n_bytes);
}

SPEC(a_spill_is_an_error_and_nothing_is_contracted)
{
    struct burin_compiling how = { .nvrtc = &nvrtc };

    assert_int_equal(compile_all(&code, "sm_90a", &how, NULL), BURIN_OK);

    assert_non_null(strstr(fake.options, "-arch=sm_90a "));
    assert_non_null(strstr(fake.options, "--fmad=false "));
    assert_non_null(strstr(fake.options, "--warn-on-spills "));
    assert_non_null(strstr(fake.options, "--warning-as-error "));
}

SPEC(registers_shared_memory_and_stack_are_read_from_the_log)
{
    struct burin_compiling how = { .nvrtc = &nvrtc };

    assert_int_equal(compile_all(&code, "sm_90a", &how, NULL), BURIN_OK);

    assert_int_equal(compiled[2].registers, 40);
    assert_int_equal(compiled[2].shared_bytes, 4096);
    assert_int_equal(compiled[2].stack_bytes, 8);
}

SPEC(any_number_of_threads_gives_the_same)
{
    for (int n = -1; n < 70; n += 7) {
        struct burin_compiling how = { .nvrtc = &nvrtc, .n_threads = n };

        assert_int_equal(compile_all(&code, "sm_80", &how, NULL), BURIN_OK);

        assert_int_equal(fake.n_compiled, 3);
        assert_non_null(strstr((const char *)compiled[2].bytes, "third"));
    }
}

SPEC(a_text_that_does_not_compile_is_told_with_kernel_architecture_and_log)
{
    const struct burin_kernel wrong[] = { kernels[0], { "wrong", "WRONG", 1, 0, false } };
    const struct burin_cuda_code bad = { .prelude = "", .n_kernels = 2, .kernels = wrong };
    struct burin_compiling how = { .nvrtc = &nvrtc, .n_threads = 2 };
    struct burin_error err = { 0 };

    assert_int_equal(compile_all(&bad, "sm_120a", &how, &err), BURIN_EFORMAT);

    assert_string_equal(
            err.message, "nvrtcCompileProgram, kernel wrong for sm_120a with NVRTC 13.0: "
                         "NVRTC_ERROR_COMPILATION (6)\nwrong.cu(1): error: not a kernel");
}

SPEC(an_architecture_that_nvrtc_does_not_know_asks_for_a_newer_one)
{
    struct burin_compiling how = { .nvrtc = &nvrtc };
    struct burin_error err = { 0 };

    assert_int_equal(compile_all(&code, "sm_140a", &how, &err), BURIN_EMISSING);

    assert_int_equal(fake.n_compiled, 0);
    assert_non_null(strstr(
            err.message, "libnvrtc.so.13 is NVRTC 13.0, which makes no code for sm_140a"));
}

static bool count_calls(void *context, int done, int total)
{
    int *seen = context;
    assert_true(done >= 0 && done <= total);
    assert_int_equal(total, 3);
    seen[0]++;
    seen[1] = done;
    return true;
}

SPEC(progress_is_told_to_the_end_on_the_callers_thread)
{
    int seen[2] = { 0, -1 };
    struct burin_compiling how = {
        .nvrtc = &nvrtc,
        .n_threads = 2,
        .progress = count_calls,
        .context = seen,
    };

    assert_int_equal(compile_all(&code, "sm_80", &how, NULL), BURIN_OK);

    assert_true(seen[0] > 0);
    assert_int_equal(seen[1], 3);
}

static bool stop(void *context, int done, int total)
{
    (void)context, (void)done, (void)total;
    return false;
}

SPEC(progress_may_stop_it)
{
    struct burin_compiling how = { .nvrtc = &nvrtc, .n_threads = 1, .progress = stop };

    assert_int_equal(compile_all(&code, "sm_80", &how, NULL), BURIN_ESTOPPED);
}

static bool stop_after_one(void *context, int done, int total)
{
    (void)context, (void)total;
    return done < 1;
}

SPEC(where_no_thread_starts_progress_is_told_between_two_kernels)
{
    int seen[2] = { 0, -1 };
    struct burin_compiling how = {
        .nvrtc = &nvrtc, .n_threads = 2, .progress = count_calls, .context = seen
    };
    pthread_attr_t before, boundless;
    assert_int_equal(pthread_getattr_default_np(&before), 0);
    assert_int_equal(pthread_attr_init(&boundless), 0);
    assert_int_equal(pthread_attr_setstacksize(&boundless, (size_t)1 << 52), 0);
    assert_int_equal(pthread_setattr_default_np(&boundless), 0);
    assert_int_equal(compile_all(&code, "sm_80", &how, NULL), BURIN_OK);
    how.progress = stop_after_one;
    const enum burin_status stopped = compile_all(&code, "sm_80", &how, NULL);
    assert_int_equal(pthread_setattr_default_np(&before), 0);
    pthread_attr_destroy(&boundless);
    pthread_attr_destroy(&before);

    assert_int_equal(seen[0], 4);
    assert_int_equal(seen[1], 3);
    assert_int_equal(stopped, BURIN_ESTOPPED);
    assert_int_equal(fake.n_compiled, 1);
}

/* ---- What is there already ----------------------------------------------------------- */

SPEC(what_was_compiled_once_is_taken_from_the_cache)
{
    struct burin_compiling how = { .nvrtc = &nvrtc, .n_threads = 2, .cache = new_folder() };
    assert_int_equal(compile_all(&code, "sm_90a", &how, NULL), BURIN_OK);
    assert_int_equal(counts.n_compiled, 3);

    assert_int_equal(compile_all(&code, "sm_90a", &how, NULL), BURIN_OK);

    assert_int_equal(fake.n_compiled, 0);
    assert_int_equal(counts.n_cached, 3);
    assert_int_equal(compiled[0].origin, BURIN_CACHED);
    assert_int_equal(compiled[0].registers, 40);
    assert_string_equal(
            (const char *)compiled[0].bytes,
            "prelude\n#line 1 \"first.cu\"\nvoid first() {}\n");
}

SPEC(another_architecture_prelude_text_or_compiler_is_compiled_anew)
{
    struct burin_compiling how = { .nvrtc = &nvrtc, .n_threads = 1, .cache = new_folder() };
    assert_int_equal(compile_all(&code, "sm_90a", &how, NULL), BURIN_OK);

    compile_all(&code, "sm_80", &how, NULL);
    assert_int_equal(fake.n_compiled, 3);

    struct burin_cuda_code other = code;
    other.prelude = "prelude 2";
    compile_all(&other, "sm_90a", &how, NULL);
    assert_int_equal(fake.n_compiled, 3);

    struct burin_kernel texts[] = { kernels[0], kernels[1], kernels[2] };
    texts[1].text = "void second() { }";
    other = code;
    other.kernels = texts;
    compile_all(&other, "sm_90a", &how, NULL);
    assert_int_equal(fake.n_compiled, 1);

    fake.version = 12;
    compile_all(&code, "sm_90a", &how, NULL);
    fake.version = 13;
    assert_int_equal(fake.n_compiled, 3);
}

SPEC(anew_reads_neither_cache_nor_binary)
{
    struct burin_compiling how = { .nvrtc = &nvrtc, .n_threads = 1, .cache = new_folder() };
    assert_int_equal(compile_all(&code, "sm_90a", &how, NULL), BURIN_OK);
    how.anew = true;

    assert_int_equal(compile_all(&code, "sm_90a", &how, NULL), BURIN_OK);

    assert_int_equal(fake.n_compiled, 3);
}

/* Kernels embedded for these architectures, each a byte that tells which. */
static struct burin_cubin cubins[16];
static struct burin_cuda_code embedding(const char *const *archs, int n_archs)
{
    static const uint8_t bytes[16] = {
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    };
    struct burin_cuda_code all = code;
    for (int i = 0; i < n_archs * 3; i++)
        cubins[i] = (struct burin_cubin){ archs[i / 3], i % 3, &bytes[i], 1 };
    cubins[n_archs * 3] = (struct burin_cubin){ .arch = NULL };
    all.cubins = cubins;
    return all;
}

SPEC(embedded_kernels_need_no_nvrtc)
{
    const char *const archs[] = { "sm_90a" };
    const struct burin_cuda_code all = embedding(archs, 1);
    struct burin_nvrtc none = { 0 };
    struct burin_compiling how = { .nvrtc = &none };
    setenv("BURIN_NVRTC", "/nowhere/libnvrtc.so", 1);

    assert_int_equal(compile_all(&all, "sm_90a", &how, NULL), BURIN_OK);

    assert_int_equal(counts.n_embedded, 3);
    assert_int_equal(compiled[2].origin, BURIN_EMBEDDED);
    assert_int_equal(compiled[2].bytes[0], 2);
}

SPEC(without_nvrtc_and_kernels_it_says_how_many_are_missing_and_both_remedies)
{
    const char *const archs[] = { "sm_120a" };
    const struct burin_cuda_code all = embedding(archs, 1);
    struct burin_nvrtc none = { 0 };
    struct burin_compiling how = { .nvrtc = &none };
    struct burin_error err = { 0 };
    setenv("BURIN_NVRTC", "/nowhere/libnvrtc.so", 1);

    assert_int_equal(compile_all(&all, "sm_90a", &how, &err), BURIN_EMISSING);

    assert_non_null(strstr(err.message, "kernels that are not embedded need NVRTC"));
    assert_non_null(strstr(err.message, "for sm_90a the binary lacks 3"));
    assert_non_null(strstr(err.message, "BURIN_NVRTC names /nowhere/libnvrtc.so"));
    assert_non_null(strstr(err.message, "gen --aot sm_90a"));
}

SPEC(a_check_says_before_anything_is_compiled_whether_that_can_be_done)
{
    const char *const archs[] = { "sm_90a" };
    const struct burin_cuda_code all = embedding(archs, 1);
    struct burin_nvrtc none = { 0 };
    struct burin_compiling how = { .nvrtc = &none };
    struct burin_error err = { 0 };
    setenv("BURIN_NVRTC", "/nowhere/libnvrtc.so", 1);

    assert_int_equal(burin_compile_check(&all, false, "sm_90a", &how, &err), BURIN_OK);
    assert_int_equal(burin_compile_check(&all, false, "sm_80", &how, &err), BURIN_EMISSING);
    assert_non_null(strstr(err.message, "for sm_80 the binary lacks 3"));
}

SPEC(embedded_code_serves_later_cards_of_its_generation_and_the_nearest_is_taken)
{
    const struct {
        const char *arch;
        const char *embedded[3];
        int taken; /* -1: none */
    } table[] = {
        { "sm_86", { "sm_80", "sm_90a" }, 0 },
        { "sm_89", { "sm_80", "sm_86" }, 1 },
        { "sm_80", { "sm_86", "sm_80" }, 1 },
        { "sm_80", { "sm_86", "sm_89" }, -1 },
        { "sm_90a", { "sm_80", "sm_89" }, -1 },
        { "sm_90a", { "sm_90", "sm_90a" }, 1 },
        { "sm_90a", { "sm_90", "sm_80" }, 0 },
        { "sm_103a", { "sm_100a", "sm_100" }, 1 },
        { "sm_121a", { "sm_120a", "sm_80" }, -1 },
        { "sm_121a", { "sm_120", "sm_80" }, 0 },
    };
    setenv("BURIN_NVRTC", "/nowhere/libnvrtc.so", 1);

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const struct burin_cuda_code all = embedding(table[i].embedded, 2);
        struct burin_nvrtc none = { 0 };
        struct burin_compiling how = { .nvrtc = &none };

        const enum burin_status status = compile_all(&all, table[i].arch, &how, NULL);

        assert_int_equal(status, table[i].taken < 0 ? BURIN_EMISSING : BURIN_OK);
        if (table[i].taken >= 0)
            assert_int_equal(compiled[0].bytes[0], table[i].taken * 3);
    }
}

SPEC(a_cards_own_architecture_has_an_a_where_there_is_one)
{
    assert_string_equal(burin_arch_of(80).name, "sm_80");
    assert_string_equal(burin_arch_of(89).name, "sm_89");
    assert_string_equal(burin_arch_of(90).name, "sm_90a");
    assert_string_equal(burin_arch_of(120).name, "sm_120a");
}

/* ---- The real one -------------------------------------------------------------------- */

static const struct burin_kernel real_kernels[] = {
    { "add",
      "extern \"C\" __global__ __launch_bounds__(128) void add(float *y, const float *x)\n"
      "{\n"
      "    y[threadIdx.x] += x[threadIdx.x];\n"
      "}\n",
      128, 0, false },
    { "mistaken",
      "extern \"C\" __global__ void mistaken(float *y)\n"
      "{\n"
      "    y[0] = nobody;\n"
      "}\n",
      128, 0, false },
    { "spilling",
      "extern \"C\" __global__ __launch_bounds__(1024, 2) void spilling(float *y)\n"
      "{\n"
      "    float kept[64];\n"
      "    for (int i = 0; i < 64; i++) kept[i] = y[i * 1024 + threadIdx.x];\n"
      "    __syncthreads();\n"
      "    for (int i = 0; i < 64; i++) y[i] = kept[63 - i] * kept[i];\n"
      "}\n",
      1024, 0, false },
};

static bool with_real_nvrtc(struct burin_nvrtc *real)
{
    unsetenv("BURIN_NVRTC");
    *real = (struct burin_nvrtc){ 0 };
    return !burin_nvrtc_open(real, 0, NULL);
}

static enum burin_status compile_real(
        struct burin_nvrtc *real, int kernel, const char *arch, struct burin_error *err)
{
    const struct burin_cuda_code all = { .prelude = "",
                                         .n_kernels = 1,
                                         .kernels = &real_kernels[kernel] };
    struct burin_compiling how = { .nvrtc = real, .n_threads = 1 };
    return compile_all(&all, arch, &how, err);
}

SPEC(nvrtc_makes_a_cubin_for_every_architecture_of_ours)
{
    const char *const archs[] = { "sm_80",   "sm_86",   "sm_89",  "sm_90a",
                                  "sm_100a", "sm_120a", "sm_121a" };
    struct burin_nvrtc real;
    SKIP_UNLESS(with_real_nvrtc(&real));

    for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++) {
        assert_int_equal(compile_real(&real, 0, archs[i], NULL), BURIN_OK);
        assert_memory_equal(compiled[0].bytes, "\177ELF", 4);
        assert_true(compiled[0].registers > 0);
        assert_int_equal(compiled[0].stack_bytes, 0);
    }
    burin_nvrtc_close(&real);
}

SPEC(nvrtcs_message_names_the_kernels_own_line)
{
    struct burin_nvrtc real;
    struct burin_error err = { 0 };
    SKIP_UNLESS(with_real_nvrtc(&real));

    assert_int_equal(compile_real(&real, 1, "sm_80", &err), BURIN_EFORMAT);

    assert_non_null(strstr(err.message, "mistaken.cu(3): error: identifier \"nobody\""));
    burin_nvrtc_close(&real);
}

SPEC(a_spill_does_not_compile)
{
    struct burin_nvrtc real;
    struct burin_error err = { 0 };
    SKIP_UNLESS(with_real_nvrtc(&real));

    assert_int_equal(compile_real(&real, 2, "sm_80", &err), BURIN_EFORMAT);

    assert_non_null(strstr(err.message, "spill"));
    burin_nvrtc_close(&real);
}
