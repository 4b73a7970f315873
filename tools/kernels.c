/* tools/kernels.c -- Compiles the kernels of a model's GPU families, without a GPU: kernels-NAME.
 *
 *   kernels-NAME [--anew] [ARCH ...]     a table: registers, shared memory and stack of each
 *                                        kernel on each architecture, and how long it took
 *   kernels-NAME --embed ARCH ...        as C, for the binary (gen --aot; build calls it)
 *
 * ARCH is one that NVRTC knows: sm_80, sm_90a; by default all that a family of ours runs on.
 * A spill or a stack frame is an error. Compiled code is kept in the cache that binaries use;
 * --anew reads nothing from it. Ends with 1 where a kernel does not compile, with 77 where there
 * is no NVRTC. */
#include "runtime/base/arena.h"
#include "runtime/base/clock.h"
#include "runtime/device/cuda/cache.h"
#include "runtime/device/cuda/compile.h"
#include "runtime/device/cuda/open.h"
#include "runtime/device/machine.h"
#include "runtime/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ARCHS = 16, MAX_CODES = 8 };

static const char *const usual[] = { "sm_80",   "sm_86",   "sm_89",  "sm_90a",
                                     "sm_100a", "sm_120a", "sm_121a" };
enum { N_USUAL = sizeof usual / sizeof *usual };

/* Its kernels, compiled for each architecture. */
struct result {
    const struct burin_cuda_code *code;
    struct burin_compiled *of[MAX_ARCHS]; /* a row for each kernel */
};

static int fail(const struct burin_error *err)
{
    fprintf(stderr, "kernels: %s\n", err->message);
    return err->status == BURIN_EMISSING ? 77 : 1;
}

/* The codes of the model's families, each once. */
static int codes_of(const struct burin_model *model, const struct burin_cuda_code **codes)
{
    int n = 0;
    for (int i = 0; i < model->n_families && n < MAX_CODES; i++) {
        const struct burin_cuda_code *code = model->families[i].cuda;
        int k = 0;
        while (k < n && codes[k] != code)
            k++;
        if (code && k == n)
            codes[n++] = code;
    }
    return n;
}

static int count_frames(const struct result *result, const char *const *archs, int n_archs)
{
    int n = 0;
    for (int a = 0; a < n_archs; a++)
        for (int k = 0; k < result->code->n_kernels; k++)
            if (result->of[a][k].stack_bytes > 0) {
                fprintf(stderr, "kernels: %s on %s has %d bytes of stack\n",
                        result->code->kernels[k].name, archs[a],
                        result->of[a][k].stack_bytes);
                n++;
            }
    return n;
}

static void print_table(const struct result *result, const char *const *archs, int n_archs)
{
    printf("%-44s %7s", "registers, shared bytes", "threads");
    for (int a = 0; a < n_archs; a++)
        printf(" %11s", archs[a]);
    printf("\n");
    for (int k = 0; k < result->code->n_kernels; k++) {
        const struct burin_kernel *kernel = &result->code->kernels[k];
        printf("%-44s %7d", kernel->name, kernel->threads);
        for (int a = 0; a < n_archs; a++)
            printf(" %4d %6d", result->of[a][k].registers,
                   result->of[a][k].shared_bytes + kernel->shared_bytes);
        printf("\n");
    }
}

/* One array a kernel and architecture, then the list of them. `name` is what its family's
 * functions begin with. */
static void print_c(
        const struct result *result,
        const char *const *archs,
        int n_archs,
        const char *name)
{
    for (int a = 0; a < n_archs; a++)
        for (int k = 0; k < result->code->n_kernels; k++) {
            const struct burin_compiled *compiled = &result->of[a][k];
            printf("\nstatic const uint8_t %s_%d_%s[] = {", name, k, archs[a]);
            for (size_t i = 0; i < compiled->n_bytes; i++)
                printf("%s%d,", i % 32 ? "" : "\n", compiled->bytes[i]);
            printf("\n};\n");
        }
    printf("\nextern const struct burin_cubin %s_cubins[];\n"
           "const struct burin_cubin %s_cubins[] = {\n",
           name, name);
    for (int a = 0; a < n_archs; a++)
        for (int k = 0; k < result->code->n_kernels; k++)
            printf("    { \"%s\", %d, %s_%d_%s, sizeof %s_%d_%s },\n", archs[a], k, name, k,
                   archs[a], name, k, archs[a]);
    printf("    { NULL, 0, NULL, 0 },\n};\n");
}

/* What a family's functions begin with: the name of the first that has this code. */
static const char *name_of(
        const struct burin_model *model, const struct burin_cuda_code *code)
{
    int i = 0;
    while (model->families[i].cuda != code)
        i++;
    return model->families[i].name;
}

int main(int argc, char **argv)
{
    static struct burin_error err;
    static struct burin_arena arena;
    static struct burin_nvrtc nvrtc;
    const struct burin_cuda_code *codes[MAX_CODES];
    const char *archs[MAX_ARCHS];
    int n_archs = 0;
    bool embed = false, anew = false;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--embed") == 0)
            embed = true;
        else if (strcmp(argv[i], "--anew") == 0)
            anew = true;
        else if (strncmp(argv[i], "sm_", 3) != 0 || n_archs == MAX_ARCHS) {
            fprintf(stderr, "kernels: %s is no architecture: sm_80, sm_90a\n", argv[i]);
            return 2;
        } else
            archs[n_archs++] = argv[i];
    }
    for (int i = 0; i < N_USUAL && !n_archs; n_archs = ++i == N_USUAL ? i : 0)
        archs[i] = usual[i];

    const int n_codes = codes_of(&burin_model, codes);
    if (!n_codes) {
        fprintf(stderr, "kernels: %s has no kernels for GPUs\n", burin_model.name);
        return 1;
    }
    struct burin_compiling compiling = {
        .nvrtc = &nvrtc,
        .cache = burin_cache_folder(&arena),
        .anew = anew,
        .n_threads = burin_machine_cores(),
    };
    if (embed)
        printf("/* Kernels as NVRTC compiled them when this was built: tools/kernels.c. "
               "*/\n"
               "#include \"runtime/model.h\"\n\n#include <stddef.h>\n");
    int n_bad = 0;
    for (int c = 0; c < n_codes; c++) {
        struct result result = { .code = codes[c] };
        struct burin_compile_counts all = { .n_embedded = 0 };
        const double begin_ms = burin_now_ms();
        for (int a = 0; a < n_archs; a++) {
            struct burin_compile_counts counts;
            result.of[a] =
                    BURIN_TAKE(&arena, (size_t)codes[c]->n_kernels, struct burin_compiled);
            if (!result.of[a])
                return 1;
            if (burin_compile(
                        codes[c], NULL, archs[a], &compiling, &arena, result.of[a], &counts,
                        &err))
                return fail(&err);
            all.n_cached += counts.n_cached;
            all.n_compiled += counts.n_compiled;
            all.n_bytes += counts.n_bytes;
        }
        if (embed) {
            print_c(&result, archs, n_archs, name_of(&burin_model, codes[c]));
            continue;
        }
        print_table(&result, archs, n_archs);
        printf("%s: %d kernels, %d architectures: %d compiled, %d from the cache, %.1f MB "
               "of "
               "code, %.2f s on %d threads\n",
               burin_model.name, codes[c]->n_kernels, n_archs, all.n_compiled, all.n_cached,
               (double)all.n_bytes / 1e6, (burin_now_ms() - begin_ms) / 1e3,
               compiling.n_threads);
        n_bad += count_frames(&result, archs, n_archs);
    }
    burin_nvrtc_close(&nvrtc);
    burin_arena_close(&arena);
    return n_bad > 0;
}
