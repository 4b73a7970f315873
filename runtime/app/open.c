#include "runtime/app/app.h"

#include "runtime/base/progress.h"
#include "runtime/device/machine.h"
#include "runtime/plan/plan.h"
#include "runtime/text/vocab.h"
#include "runtime/weights/locate.h"

#include <stdio.h>

int burin_app_context(const struct burin_app *app)
{
    const int asked = app->settings.n_ctx, model = app->model->n_ctx;
    if (asked > 0)
        return asked;
    return asked || model < BURIN_DEFAULT_CONTEXT ? model : BURIN_DEFAULT_CONTEXT;
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

enum burin_status burin_app_options(
        const struct burin_app *app, struct burin_options *options, struct burin_error *err)
{
    const struct burin_settings *settings = &app->settings;
    *options = (struct burin_options){
        .model = app->model,
        .weights = settings->weights,
        .target = settings->target,
        .n_threads = burin_app_threads(app, settings->n_threads),
        .n_ctx = settings->n_ctx,
        .n_sequences = settings->n_sequences,
        .n_batch = settings->n_batch,
        .exact = settings->exact,
        .encoder_arena = settings->encoder_arena.bytes,
        .memory_limit = settings->vram_limit.bytes,
    };
    if (settings->n_ctx > app->model->n_ctx)
        return burin_fail(
                err, BURIN_EUSAGE,
                "--ctx-size %d is beyond the %d tokens that %s was trained for",
                settings->n_ctx, app->model->n_ctx, app->model->variant);
    const struct burin_family *family;
    const enum burin_status status = burin_machine_family(
            app->model, settings->target, settings->exact, &family, err);
    if (status)
        return status;
    return burin_app_kv_dtype(app, &options->kv_dtype_given, &options->kv_dtype, err);
}

static bool on_progress(void *user, size_t done, size_t total)
{
    burin_progress_update(user, (int64_t)done, (int64_t)total);
    return true;
}

enum burin_status burin_app_open(
        const struct burin_app *app,
        struct burin_options *options,
        struct burin_engine **engine,
        struct burin_error *err)
{
    struct burin_progress bar;
    burin_progress_begin(
            &bar, stderr, "packing weights", BURIN_COUNT_BYTES, app->settings.verbose);
    options->on_progress = on_progress;
    options->user = &bar;
    enum burin_status status = burin_engine_open(engine, options, err);
    burin_progress_end(&bar);
    if (status || !app->settings.verbose)
        return status;

    const struct burin_engine_info info = burin_engine_info(*engine);
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
