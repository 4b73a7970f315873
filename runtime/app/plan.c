#include "runtime/app/app.h"

#include <stdio.h>

/* The GPU that `run` would take. */
static enum burin_status find_card(
        const struct burin_app *app,
        struct burin_card *card,
        bool *found,
        struct burin_error *err)
{
    struct burin_options options = {
        .model = app->model,
        .device = app->settings.device,
        .target = app->settings.target,
        .exact = app->settings.exact,
        .fast_gemm = app->settings.fast_gemm,
    };
    char no_gpu[1024] = "";
    enum burin_status status =
            burin_app_kv_dtype(app, &options.kv_dtype_given, &options.kv_dtype, err);
    if (!status)
        status = burin_engine_card(&options, card, found, no_gpu, sizeof no_gpu, err);
    if (!status && no_gpu[0])
        fprintf(stderr, "%s: for the CPU: %s\n", app->program, no_gpu);
    return status;
}

enum burin_status burin_app_plan(struct burin_app *app, struct burin_error *err)
{
    /* Without weights everything but the tokenizer is known all the same. */
    static struct burin_error missing;
    struct burin_found found;
    const enum burin_status have = burin_app_find(app, &found, &missing);
    if (!have)
        burin_found_close(&found);
    if (have && app->settings.weights)
        return burin_fail(err, have, "%s", missing.message);

    const size_t *tokenizer_bytes = have ? NULL : &found.tokenizer_bytes;
    app->find_card = find_card;
    return app->settings.rehearse ? burin_app_rehearse(app, tokenizer_bytes, err)
                                  : burin_app_show_plan(app, tokenizer_bytes, err);
}
