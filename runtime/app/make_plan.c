/* runtime/app/make_plan.c -- From settings to a plan that is shown, without weights, text or engine: `gen
 * plan` links this and no more. */
#include "runtime/app/app.h"

#include "runtime/device/machine.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/report.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum burin_status burin_app_kv_dtype(
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

/* The family that would run here; one that is named may be planned anywhere. */
static enum burin_status choose_family(
        const struct burin_app *app,
        const struct burin_family **family,
        struct burin_error *err)
{
    const char *target = app->settings.target;
    const bool exact = app->settings.exact;
    for (int i = 0; i < app->model->n_families && target; i++) {
        const struct burin_family *at = &app->model->families[i];
        if (at->exact == exact && strcmp(at->name, target) == 0) {
            *family = at;
            return BURIN_OK;
        }
    }
    return burin_machine_family(app->model, target, exact, family, err);
}

static enum burin_status make_plan(
        const struct burin_app *app,
        const size_t *tokenizer_bytes,
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
        .weights_at_hand = tokenizer_bytes,
        .tokenizer_bytes = tokenizer_bytes ? (int64_t)*tokenizer_bytes : 0,
        .granule = sysconf(_SC_PAGESIZE),
    };
    enum burin_status status =
            burin_app_kv_dtype(app, &request.kv_dtype_given, &request.kv_dtype, err);
    if (!status)
        status = read_limit(settings, &request, err);
    if (!status)
        status = choose_family(app, &request.family, err);
    if (!status)
        status = settings->card ? burin_card_parse(&request.card, settings->card, err)
                                : burin_machine_card(&request.card, err);
    return status ? status : burin_plan_make(plan, &request, err);
}

enum burin_status burin_app_show_plan(
        const struct burin_app *app, const size_t *tokenizer_bytes, struct burin_error *err)
{
    struct burin_plan plan;
    enum burin_status status = burin_settings_no_words(&app->settings, BURIN_PLAN, err);
    if (!status)
        status = make_plan(app, tokenizer_bytes, &plan, err);
    if (status)
        return status;
    if (app->settings.json) {
        burin_plan_json(&plan, stdout);
        return burin_plan_check(&plan, err);
    }
    burin_plan_report(&plan, stdout);
    return plan.fits ? BURIN_OK : burin_fail(err, BURIN_ENOMEM, "it does not fit");
}
