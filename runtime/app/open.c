#include "runtime/app/app.h"

#include "runtime/base/progress.h"
#include "runtime/device/machine.h"
#include "runtime/plan/plan.h"
#include "runtime/text/vocab.h"
#include "runtime/weights/locate.h"

#include <stdio.h>
#include <string.h>

/* Whether only a CPU is asked for, or can be. */
static bool wants_cpu(const struct burin_settings *settings)
{
    return settings->exact || (settings->device && strcmp(settings->device, "cpu") == 0);
}

static bool may_be_on_gpu(const struct burin_app *app)
{
    for (int i = 0; i < app->model->n_families && !wants_cpu(&app->settings); i++)
        if (app->model->families[i].sm && app->model->families[i].programs[0].enqueue)
            return true;
    return false;
}

/* On a GPU the default is what fits, which is known when the engine is open. */
int burin_app_context(const struct burin_app *app)
{
    const int asked = app->settings.n_ctx, model = app->model->n_ctx;
    if (asked > 0)
        return asked;
    return asked || model < BURIN_DEFAULT_CONTEXT || may_be_on_gpu(app)
                   ? model
                   : BURIN_DEFAULT_CONTEXT;
}

int burin_app_threads(const struct burin_app *app, int n)
{
    const int most = burin_machine_processors();
    if (n <= most)
        return n;
    fprintf(stderr, "%s: --threads %d: this machine has %d processor%s for us, so %d\n",
            app->program, n, most, most > 1 ? "s" : "", most);
    return most;
}

static enum burin_status check_target(const struct burin_app *app, struct burin_error *err)
{
    const struct burin_settings *settings = &app->settings;
    const struct burin_family *family;
    bool for_cpus = false; /* what gen --target cuda makes is not */
    for (int i = 0; i < app->model->n_families; i++)
        for_cpus |= !app->model->families[i].sm;
    for (int i = 0; i < app->model->n_families && !wants_cpu(settings); i++) {
        const struct burin_family *at = &app->model->families[i];
        if (at->sm &&
            (settings->target ? strcmp(at->name, settings->target) == 0 : !for_cpus))
            return BURIN_OK; /* the engine says whether there is such a GPU */
    }
    return burin_machine_family(
            app->model, settings->target, settings->exact, &family, err);
}

enum burin_status burin_app_options(
        struct burin_app *app, struct burin_options *options, struct burin_error *err)
{
    const struct burin_settings *settings = &app->settings;
    *options = (struct burin_options){
        .model = app->model,
        .weights = settings->weights,
        .target = settings->target,
        .n_threads = burin_app_threads(app, settings->n_threads),
        .n_ctx = settings->n_ctx,
        .n_sequences = settings->n_sequences ? settings->n_sequences : 1,
        .n_batch = settings->n_batch,
        .exact = settings->exact,
        .encoder_arena = settings->encoder_arena.bytes,
        .fast_gemm = settings->fast_gemm,
        .device = settings->device,
        .wait_s = settings->wait_for_vram,
        .padding_given = true,
        .graph_padding = settings->graph_padding,
        .graphs = &app->graphs,
        .kv_tokens = settings->kv_tokens,
        .kv_bytes = settings->kv_bytes.bytes,
    };
    if (settings->n_ctx > app->model->n_ctx)
        return burin_fail(
                err, BURIN_EUSAGE,
                "--ctx-size %d is beyond the %d tokens that %s was trained for",
                settings->n_ctx, app->model->n_ctx, app->model->variant);
    enum burin_status status = check_target(app, err);
    if (!status)
        status = burin_app_graphs(app, err);
    burin_app_limit(app, &options->limit, &options->limit_bytes, &options->limit_fraction);
    return status ? status
                  : burin_app_kv_dtype(
                            app, &options->kv_dtype_given, &options->kv_dtype, err);
}

/* The bar of the step that an engine is at. */
struct opening_bar {
    struct burin_progress bar;
    char step[32];
    bool verbose;
};

static bool on_progress(void *user, const char *step, size_t done, size_t total)
{
    struct opening_bar *opening = user;
    const bool weights = strcmp(step, "weights") == 0;
    if (strcmp(opening->step, step) != 0) {
        if (opening->step[0])
            burin_progress_end(&opening->bar);
        snprintf(opening->step, sizeof opening->step, "%s", step);
        if (strcmp(step, "waiting for memory") == 0)
            fprintf(stderr, "waiting for memory of the GPU\n");
        burin_progress_begin(
                &opening->bar, stderr, weights ? "packing weights" : opening->step,
                weights ? BURIN_COUNT_BYTES : BURIN_COUNT_THINGS, opening->verbose);
    }
    if (total)
        burin_progress_update(&opening->bar, (int64_t)done, (int64_t)total);
    return true;
}

/* Which device it is, where that was left to us and a GPU was in question. */
static void say_device(const struct burin_app *app, const struct burin_engine_info *info)
{
    const bool cpu = strcmp(info->device, "cpu") == 0;
    const bool why = info->no_gpu[0] && (app->settings.verbose || info->passed_gpu);
    if (!cpu || why)
        fprintf(stderr, "%s: on %s%s%s\n", app->program, cpu ? "the CPU" : info->device,
                why ? ": " : "", why ? info->no_gpu : "");
}

/* A start that gave something up says so, asked or not. */
static void say_notes(const struct burin_app *app, const struct burin_engine *engine)
{
    const char *note;
    for (int i = 0; (note = burin_engine_start_note(engine, i)); i++)
        fprintf(stderr, "%s: note: %s\n", app->program, note);
}

enum burin_status burin_app_open(
        const struct burin_app *app,
        struct burin_options *options,
        struct burin_engine **engine,
        struct burin_error *err)
{
    struct opening_bar opening = { .verbose = app->settings.verbose };
    options->on_progress = on_progress;
    options->user = &opening;
    enum burin_status status = burin_engine_open(engine, options, err);
    if (opening.step[0])
        burin_progress_end(&opening.bar);
    if (status)
        return status;
    const struct burin_engine_info info = burin_engine_info(*engine);
    say_device(app, &info);
    burin_app_keep_start(app, *engine);
    if (!app->settings.verbose) {
        say_notes(app, *engine);
        return status;
    }
    burin_engine_start_report(*engine, stderr);
    fprintf(stderr, "%s: %s%s, %d threads, context %d, KV %s; %s read in %.2f s\n",
            app->model->name, info.family->name, info.family->exact ? " exact" : "",
            info.n_threads, info.n_ctx, info.kv ? burin_dtype_name(info.kv->dtype) : "none",
            info.weights ? burin_show(burin_span_of(info.weights)).text : "no weights",
            info.load_ms / 1e3);
    return BURIN_OK;
}

/* ---- Weights and tokenizer without an engine --------------------------------------- */

static enum burin_status open_tokenizer(
        struct burin_app *app, struct burin_found *found, struct burin_error *err)
{
    struct burin_vocab vocab = { 0 };
    bool found_vocab = false;
    enum burin_status status =
            burin_vocab_from_checkpoint(&vocab, &found->checkpoint, &found_vocab, err);
    if (status || !found_vocab)
        return status;

    void *memory = NULL;
    status = burin_tokenizer_plan(&vocab, &found->tokenizer_bytes, err);
    if (!status) {
        memory = burin_arena_take(&app->arena, found->tokenizer_bytes, 1, 64);
        if (!memory)
            status = burin_fail(err, BURIN_ENOMEM, "no memory for the tokenizer");
    }
    if (!status)
        status = burin_tokenizer_open(
                &found->tokenizer, &vocab, memory, found->tokenizer_bytes, err);
    burin_vocab_close(&vocab);
    return status;
}

enum burin_status burin_app_find(
        struct burin_app *app, struct burin_found *found, struct burin_error *err)
{
    *found = (struct burin_found){ .tokenizer = NULL };
    const struct burin_tensor *const *tensors;
    enum burin_status status = burin_locate(
            app->model, app->settings.weights, NULL, &found->checkpoint, &tensors, err);
    if (status)
        return status;
    status = open_tokenizer(app, found, err);
    if (status)
        burin_found_close(found);
    return status;
}

void burin_found_close(struct burin_found *found)
{
    burin_tokenizer_close(found->tokenizer);
    found->tokenizer = NULL;
    burin_checkpoint_close(&found->checkpoint);
}

enum burin_status burin_app_no_tokenizer(const char *weights, struct burin_error *err)
{
    return burin_fail(
            err, BURIN_EMISSING, "%s brings no tokenizer: tokenizer.json is not beside it",
            burin_show(burin_span_of(weights)).text);
}
