/* runtime/app/make_plan.c -- From settings to a plan that is shown, without weights, text or
 * engine: `gen plan` links this and no more. */
#include "runtime/app/app.h"

#include "runtime/base/units.h"
#include "runtime/device/machine.h"
#include "runtime/plan/against.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/report.h"

#include <errno.h>
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
                err, BURIN_EUSAGE,
                "--kv-cache-dtype is bf16, f32, fp8 or nvfp4, not '%.40s'", name);
    *dtype = (enum burin_dtype)found;
    return BURIN_OK;
}

/* ---- What is asked for ------------------------------------------------------------------- */

/* Exactly one holds, and giving one switches the default reserve off: settings.c sees to the
 * first. */
void burin_app_limit(
        const struct burin_app *app,
        enum burin_limit *limit,
        int64_t *bytes,
        double *fraction)
{
    const struct burin_settings *settings = &app->settings;
    const bool has_pool = settings->kv_tokens > 0 || settings->kv_bytes.given;
    *limit = has_pool ? BURIN_LIMIT_RESERVE : BURIN_LIMIT_RESERVE_DEFAULT;
    *bytes = 0;
    *fraction = 0;
    if (settings->vram_limit.given) {
        *limit = BURIN_LIMIT_BYTES;
        *bytes = settings->vram_limit.bytes;
    } else if (settings->vram_reserve.given) {
        *limit = BURIN_LIMIT_RESERVE;
        *bytes = settings->vram_reserve.bytes;
    } else if (settings->vram_fraction.given) {
        *limit = BURIN_LIMIT_FRACTION;
        *fraction = settings->vram_fraction.number;
    }
}

/* Commands that start have no --parallel: a step is one sequence's. */
static enum burin_status check_steps(const struct burin_app *app, struct burin_error *err)
{
    const char *step = app->model->families[0].programs[0].name;
    for (int i = 0; i < app->graphs.n; i++) {
        const struct burin_ladder *sizes = &app->graphs.named[i].ladder;
        if (strcmp(app->graphs.named[i].program, step) == 0 &&
            sizes->sizes[sizes->n - 1] > 1)
            return burin_fail(
                    err, BURIN_EUSAGE,
                    "--graphs %s=%s: `%s` runs one sequence at a time, %s=1 is all it "
                    "uses",
                    step, burin_ladder_end(sizes).text, burin_command_names[app->command],
                    step);
    }
    return BURIN_OK;
}

enum burin_status burin_app_graphs(struct burin_app *app, struct burin_error *err)
{
    const struct burin_texts *texts = &app->settings.graphs;
    app->graphs = (struct burin_graphs){ .none = app->settings.eager };
    enum burin_status status = BURIN_OK;
    for (int i = 0; i < texts->n && !status; i++)
        status = burin_graphs_parse(&app->graphs, texts->values[i], err);
    return status || app->command == BURIN_PLAN ? status : check_steps(app, err);
}

/* "fixed=19.57GiB,graphs=0.4748GiB", or one of them. */
static enum burin_status read_assumptions(
        const char *text, struct burin_plan_request *request, struct burin_error *err)
{
    while (text && *text) {
        const size_t name = strcspn(text, "=,");
        const size_t length = strcspn(text, ",");
        const bool fixed = name == 5 && strncmp(text, "fixed", 5) == 0;
        const bool graphs = name == 6 && strncmp(text, "graphs", 6) == 0;
        int64_t bytes = 0;
        if ((!fixed && !graphs) || name >= length ||
            burin_parse_bytes(text + name + 1, length - name - 1, &bytes, NULL))
            return burin_fail(
                    err, BURIN_EUSAGE,
                    "--assume is fixed=SIZE,graphs=SIZE or one of them, not '%.60s'", text);
        if (fixed ? request->fixed_given : request->graphs_given)
            return burin_fail(
                    err, BURIN_EUSAGE, "--assume tells %s= twice",
                    fixed ? "fixed" : "graphs");
        if (fixed) {
            request->fixed_given = true;
            request->fixed_bytes = bytes;
        } else {
            request->graphs_given = true;
            request->graphs_bytes = bytes;
        }
        text += length;
        text += *text == ',';
    }
    return BURIN_OK;
}

/* The family that runs on the card, or the one that is named: it may be planned for any card
 * that is new enough, and any CPU's for any memory. */
static enum burin_status choose_family(
        const struct burin_app *app,
        const struct burin_card *card,
        const struct burin_family **family,
        struct burin_error *err)
{
    const char *target = app->settings.target;
    const bool exact = app->settings.exact;
    for (int i = 0; i < app->model->n_families && target; i++) {
        const struct burin_family *at = &app->model->families[i];
        if (at->exact != exact || strcmp(at->name, target) != 0)
            continue;
        if (at->sm > card->sm || (card->sm && !at->sm))
            return burin_fail(
                    err, BURIN_EUSAGE, "--target %s does not run on %s%s", target,
                    card->name, card->sm ? "" : ", which is no GPU: --card names one");
        *family = at;
        return BURIN_OK;
    }
    if (!card->sm)
        return burin_machine_family(app->model, target, exact, family, err);
    if (exact)
        return burin_fail(
                err, BURIN_EUSAGE, "--exact: %s is exact on CPUs only, not on %s",
                app->model->name, card->name);
    if (target)
        return burin_fail(
                err, BURIN_EUSAGE, "--target %s: %s has no such family", target,
                app->model->name);
    return burin_card_family(card, app->model, family, err);
}

static enum burin_status find_card(
        const struct burin_app *app, struct burin_card *card, struct burin_error *err)
{
    bool found = false;
    enum burin_status status = BURIN_OK;
    if (app->settings.card)
        return burin_card_parse(card, app->settings.card, err);
    if (app->find_card)
        status = app->find_card(app, card, &found, err);
    return status || found ? status : burin_machine_card(card, err);
}

enum burin_status burin_app_make_plan(
        struct burin_app *app,
        const size_t *tokenizer_bytes,
        struct burin_plan *plan,
        struct burin_plan_request *request,
        struct burin_error *err)
{
    const struct burin_settings *settings = &app->settings;
    *request = (struct burin_plan_request){
        .model = app->model,
        .n_threads = settings->n_threads > 0 ? settings->n_threads : burin_machine_cores(),
        .n_ctx = settings->n_ctx,
        .n_sequences = settings->n_sequences,
        .n_batch = settings->n_batch,
        .kv_tokens = settings->kv_tokens,
        .kv_bytes = settings->kv_bytes.bytes,
        .n_draft = settings->n_draft,
        .images_given = settings->n_images.given,
        .n_images = (int)settings->n_images.bytes,
        .n_frames = settings->n_frames,
        .n_clips = settings->n_clips,
        .padding_given = true,
        .graph_padding = settings->graph_padding,
        .encoder_arena = settings->encoder_arena.bytes,
        .fast_gemm = settings->fast_gemm,
        .weights_at_hand = tokenizer_bytes,
        .tokenizer_bytes = tokenizer_bytes ? (int64_t)*tokenizer_bytes : 0,
    };
    enum burin_status status =
            burin_app_kv_dtype(app, &request->kv_dtype_given, &request->kv_dtype, err);
    if (!status)
        status = burin_app_graphs(app, err);
    request->graphs = app->graphs;
    if (!status)
        status = read_assumptions(settings->assume, request, err);
    burin_app_limit(app, &request->limit, &request->limit_bytes, &request->limit_fraction);
    if (!status)
        status = find_card(app, &request->card, err);
    if (!status)
        status = choose_family(app, &request->card, &request->family, err);
    if (!status && request->family->sm)
        status = burin_card_check_cap(
                &request->card, request->limit, request->limit_bytes,
                request->limit_fraction, err);
    if (status)
        return status;
    /* A GPU's granule is the device's to tell. */
    request->granule = request->family->sm ? 0 : sysconf(_SC_PAGESIZE);
    return burin_plan_make(plan, request, err);
}

/* ---- What is shown ----------------------------------------------------------------------- */

static enum burin_status draw(
        const struct burin_plan *plan, const char *path, struct burin_error *err)
{
    FILE *out = fopen(path, "w");
    if (!out)
        return burin_fail(err, BURIN_EIO, "cannot write %.200s: %s", path, strerror(errno));
    burin_plan_svg(plan, out);
    const bool failed = ferror(out);
    if (fclose(out) || failed)
        return burin_fail(err, BURIN_EIO, "cannot write all of %.200s", path);
    return BURIN_OK;
}

static enum burin_status compare(
        const struct burin_plan *plan, const char *path, struct burin_error *err)
{
    static char bytes[1 << 20]; /* a plan's JSON takes a hundredth of it */
    static struct burin_plan_facts before, after;
    FILE *in = fopen(path, "rb");
    if (!in)
        return burin_fail(
                err, BURIN_EMISSING, "cannot read %.200s: %s", path, strerror(errno));
    size_t length = fread(bytes, 1, sizeof bytes, in);
    const bool whole = feof(in) && !ferror(in);
    fclose(in);
    if (!whole)
        return burin_fail(
                err, BURIN_EFORMAT,
                "%.200s is no plan's --json: it has more than %zu bytes", path,
                sizeof bytes);
    enum burin_status status = burin_plan_facts_read(&before, path, bytes, length, err);
    if (status)
        return status;

    FILE *out = fmemopen(bytes, sizeof bytes, "w");
    if (!out)
        return burin_fail(err, BURIN_EIO, "no memory for a plan: %s", strerror(errno));
    burin_plan_json(plan, out);
    length = (size_t)ftell(out);
    fclose(out);
    status = burin_plan_facts_read(&after, "this plan", bytes, length, err);
    if (!status)
        burin_plan_facts_compare(&before, &after, stdout);
    return status;
}

enum burin_status burin_app_show_plan(
        struct burin_app *app, const size_t *tokenizer_bytes, struct burin_error *err)
{
    static struct burin_plan plan;
    static struct burin_plan_request request;
    const struct burin_settings *settings = &app->settings;
    const int n_shown =
            (settings->explain != NULL) + (settings->against_file != NULL) + settings->json;
    enum burin_status status = burin_settings_no_words(settings, BURIN_PLAN, err);
    if (!status && n_shown > 1)
        return burin_fail(
                err, BURIN_EUSAGE,
                "give one of --json, --explain and --against: each is shown in place of "
                "the report");
    if (!status)
        status = burin_app_make_plan(app, tokenizer_bytes, &plan, &request, err);
    if (!status && settings->svg_file)
        status = draw(&plan, settings->svg_file, err);
    if (!status && settings->explain)
        status = burin_plan_explain(&plan, settings->explain, stdout, err);
    else if (!status && settings->against_file)
        status = compare(&plan, settings->against_file, err);
    if (status)
        return status;
    if (settings->json)
        burin_plan_json(&plan, stdout);
    else if (!n_shown)
        burin_plan_report(&plan, stdout);
    if (fflush(stdout)) /* what is said of it on stderr comes behind it */
        return burin_fail(err, BURIN_EIO, "stdout: %s", strerror(errno));
    if (n_shown)
        return burin_plan_check(&plan, err);
    return plan.fits ? BURIN_OK : burin_fail(err, BURIN_ENOMEM, "it does not fit");
}
