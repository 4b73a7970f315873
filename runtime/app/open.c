#include "runtime/app/app.h"

#include "runtime/base/progress.h"
#include "runtime/device/machine.h"
#include "runtime/text/vocab.h"
#include "runtime/weights/locate.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static enum burin_status read_kv_dtype(
        const struct burin_app *app,
        bool *given,
        enum burin_dtype *dtype,
        struct burin_error *err)
{
    const char *name = app->settings.kv_dtype;
    *given = name != NULL;
    if (!name)
        return BURIN_OK;
    const int found = burin_dtype_by_name(name);
    if (found < 0)
        return burin_fail(
                err, BURIN_EUSAGE, "--kv-cache-dtype is bf16 or f32, not '%.40s'", name);
    *dtype = (enum burin_dtype)found;
    return BURIN_OK;
}

enum burin_status burin_app_options(
        const struct burin_app *app, struct burin_options *options, struct burin_error *err)
{
    const struct burin_settings *settings = &app->settings;
    *options = (struct burin_options){
        .model = app->model,
        .weights = settings->weights,
        .target = settings->target,
        .n_threads = settings->n_threads,
        .n_ctx = settings->n_ctx,
        .n_sequences = settings->n_sequences,
        .n_batch = settings->n_batch,
        .exact = settings->exact,
        .memory_limit = settings->vram_limit.bytes,
    };
    return read_kv_dtype(app, &options->kv_dtype_given, &options->kv_dtype, err);
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
            info.weights ? info.weights : "no weights", info.load_ms / 1e3);
    return BURIN_OK;
}

/* ---- The plan -------------------------------------------------------------------- */

static enum burin_status read_limit(
        const struct burin_settings *settings,
        struct burin_plan_request *request,
        struct burin_error *err)
{
    const int n = settings->vram_limit.given + settings->vram_reserve.given +
                  settings->vram_fraction.given;
    if (n > 1)
        return burin_fail(
                err, BURIN_EUSAGE,
                "give one of --vram-limit, --vram-reserve and --vram-fraction");
    request->limit = BURIN_LIMIT_RESERVE_DEFAULT;
    if (settings->vram_limit.given) {
        request->limit = BURIN_LIMIT_BYTES;
        request->limit_bytes = settings->vram_limit.bytes;
    } else if (settings->vram_reserve.given) {
        request->limit = BURIN_LIMIT_RESERVE;
        request->limit_bytes = settings->vram_reserve.bytes;
    } else if (settings->vram_fraction.given) {
        request->limit = BURIN_LIMIT_FRACTION;
        request->limit_fraction = settings->vram_fraction.number;
    }
    return BURIN_OK;
}

enum burin_status burin_app_make_plan(
        const struct burin_app *app,
        size_t tokenizer_bytes,
        struct burin_plan *plan,
        struct burin_error *err)
{
    const struct burin_settings *settings = &app->settings;
    struct burin_plan_request request = {
        .model = app->model,
        .n_threads = settings->n_threads > 0 ? settings->n_threads : burin_machine_cores(),
        .n_ctx = settings->n_ctx,
        .n_sequences = settings->n_sequences,
        .n_batch = settings->n_batch,
        .kv_tokens = settings->kv_tokens,
        .kv_bytes = settings->kv_bytes.bytes,
        .tokenizer_bytes = (int64_t)tokenizer_bytes,
        .granule = sysconf(_SC_PAGESIZE),
    };
    enum burin_status status =
            read_kv_dtype(app, &request.kv_dtype_given, &request.kv_dtype, err);
    if (!status)
        status = read_limit(settings, &request, err);
    if (!status)
        status = burin_machine_family(
                app->model, settings->target, settings->exact, &request.family, err);
    if (!status && settings->card)
        status = burin_card_parse(&request.card, settings->card, err);
    if (!status && !settings->card) {
        size_t available = 0, total = 0;
        status = burin_machine_memory(&available, &total, err);
        snprintf(request.card.name, sizeof request.card.name, "this machine");
        request.card.available_bytes = (int64_t)available;
        request.card.total_bytes = (int64_t)total;
    }
    return status ? status : burin_plan_make(plan, &request, err);
}

/* ---- Weights and tokenizer without an engine --------------------------------------- */

static enum burin_status open_tokenizer(
        struct burin_app *app, struct burin_found *found, struct burin_error *err)
{
    struct burin_vocab vocab = { 0 };
    enum burin_status status;
    if (found->checkpoint.container == BURIN_GGUF) {
        status = burin_vocab_from_gguf(&vocab, &found->checkpoint.gguf, err);
    } else {
        char path[4096];
        snprintf(path, sizeof path, "%s/tokenizer.json", found->checkpoint.folder);
        if (access(path, R_OK))
            return BURIN_OK;
        status = burin_vocab_from_json_file(&vocab, path, err);
    }
    void *memory = NULL;
    if (!status)
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
