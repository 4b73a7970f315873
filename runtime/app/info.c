#include "runtime/app/app.h"
#include "runtime/app/attach.h"
#include "runtime/base/json.h"
#include "runtime/base/put.h"
#include "runtime/base/units.h"
#include "runtime/device/machine.h"
#include "runtime/plan/plan.h"
#include "runtime/weights/tensor.h"

#include <stdio.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
#define SANITIZER ", AddressSanitizer"
#else
#define SANITIZER ""
#endif

struct formats {
    int n_weights[BURIN_N_FORMATS];
    int64_t n_elements[BURIN_N_FORMATS];
};

static struct formats count_formats(const struct burin_model *model)
{
    struct formats formats = { { 0 }, { 0 } };
    for (int i = 0; i < model->n_weights; i++) {
        const struct burin_weight *weight = &model->weights[i];
        formats.n_weights[weight->format]++;
        formats.n_elements[weight->format] += weight->n_rows * weight->n_cols;
    }
    return formats;
}

/* Why a family is or is not the one in use. */
static const char *reason(
        const struct burin_app *app,
        const struct burin_family *family,
        const struct burin_family *chosen)
{
    if (family->sm)
        return family->n_programs && family->programs[0].enqueue
                       ? "on a GPU: --device auto takes one"
                       : "planned only: no kernels for GPUs yet";
    if (family == chosen)
        return app->settings.target ? "in use: --target"
                                    : "in use: the first that runs here";
    if (!burin_machine_has(family->cpu_feature))
        return "the processor lacks what it needs";
    const bool first = !chosen || strcmp(family->name, chosen->name) == 0;
    if (family->exact)
        return first ? "with --exact" : "with --target and --exact";
    return first ? "without --exact" : "with --target";
}

/* The dtypes of keys and values that its step is computed with, or those that are planned only. */
static int kv_dtypes(
        const struct burin_family *family,
        bool planned_only,
        const char *names[BURIN_N_DTYPES])
{
    int n = 0;
    for (int k = 0; k < family->n_kv; k++)
        if (burin_program_runs(&family->programs[0], k) != planned_only)
            names[n++] = burin_dtype_name(family->kv[k].dtype);
    return n;
}

/* ---- Pictures and video ------------------------------------------------------------- */

/* What the helper says of itself, or why there is none. */
struct seeing {
    enum burin_status status;
    struct burin_media_layers layers;
    struct burin_error why;
};

static void ask_helper(struct seeing *seeing)
{
    struct burin_media media;
    seeing->status = burin_media_find(&media, &seeing->why);
    if (!seeing->status)
        seeing->status = burin_media_layers(&media, &seeing->layers, &seeing->why);
}

static void write_seeing(void)
{
    static struct seeing seeing;
    ask_helper(&seeing);
    if (seeing.status) {
        printf("  media     none: %s\n", seeing.why.message);
        return;
    }
    const struct burin_media_layers *has = &seeing.layers;
    printf("  media     JPEG, PNG, WebP%s\n",
           has->video ? ", video" : "; built without video");
    printf("            sandbox: seccomp %s, Landlock %s, privileges %s, limits %s\n",
           has->seccomp ? "holds" : "does not hold",
           has->landlock ? "holds" : "is not in this kernel",
           has->privileges ? "are given up" : "could not be given up",
           has->limits ? "hold" : "do not hold");
}

static void write_seeing_json(struct burin_json *json)
{
    static struct seeing seeing;
    ask_helper(&seeing);
    burin_json_open(json, "media", '{');
    if (seeing.status) {
        burin_json_text(json, "missing", seeing.why.message, SIZE_MAX);
    } else {
        burin_json_bool(json, "video", seeing.layers.video);
        burin_json_bool(json, "seccomp", seeing.layers.seccomp);
        burin_json_bool(json, "landlock", seeing.layers.landlock);
        burin_json_bool(json, "privileges", seeing.layers.privileges);
        burin_json_bool(json, "limits", seeing.layers.limits);
    }
    burin_json_close(json);
}

/* ---- What no device has run ---------------------------------------------------------- */

/* Off unless it's asked for, and why. */
static const char UNTRIED[] =
        "--fast-gemm: no device has run it, and bits may depend on the batch";

static bool has_kernels_for_gpus(const struct burin_model *model)
{
    for (int i = 0; i < model->n_families; i++)
        if (model->families[i].sm && model->families[i].cuda)
            return true;
    return false;
}

/* ---- All of it ---------------------------------------------------------------------- */

static void write_text(
        const struct burin_app *app,
        const struct burin_family *chosen,
        const struct burin_found *found,
        const struct burin_error *missing)
{
    const struct burin_model *model = app->model;
    const struct formats formats = count_formats(model);
    printf("%s\n", model->name);
    printf("  model     %s, variant %s, recipe %s\n", model->architecture, model->variant,
           model->recipe);
    printf("  elements  %s in %d weights, %d layers, vocabulary %s, context %s\n",
           burin_grouped(model->n_elements).text, model->n_weights, model->n_layers,
           burin_grouped(model->n_vocab).text, burin_grouped(model->n_ctx).text);
    printf("  sizes    ");
    for (int i = 0, column = 0; i < model->n_dims; i++) {
        if (column > 64) {
            printf("\n           ");
            column = 0;
        }
        column += printf(" %s=%lld", model->dims[i].name, (long long)model->dims[i].value);
    }
    printf("\n  formats  ");
    for (int i = 0; i < BURIN_N_FORMATS; i++)
        if (formats.n_weights[i])
            printf(" %s (%d weights, %.1f %%)", burin_format_name((enum burin_format)i),
                   formats.n_weights[i],
                   100.0 * (double)formats.n_elements[i] / (double)model->n_elements);
    printf("\n  chat      %s\n", model->chat ? "yes" : "no chat format");
    printf("\n  family    exact  weights     KV        status\n");
    for (int i = 0; i < model->n_families; i++) {
        const struct burin_family *family = &model->families[i];
        const char *names[BURIN_N_DTYPES];
        char kv[32] = "";
        char planned[64] = "";
        struct burin_put dtypes = { kv, sizeof kv, 0 };
        const int n_kv = kv_dtypes(family, false, names);
        for (int k = 0; k < n_kv; k++)
            burin_put(&dtypes, "%s%s", k ? " " : "", names[k]);
        dtypes = (struct burin_put){ planned, sizeof planned, 0 };
        const int n_planned = kv_dtypes(family, true, names);
        for (int k = 0; k < n_planned && n_kv; k++)
            burin_put(&dtypes, "%s%s", k ? ", " : "; KV planned only: ", names[k]);
        printf("  %-9s %-5s  %-10s  %-8s  %s%s\n", family->name,
               family->exact ? "yes" : "no",
               burin_human_bytes((int64_t)family->weights_bytes).text, kv,
               reason(app, family, chosen), planned);
    }
    for (int i = 0; chosen && i < chosen->n_programs; i++)
        if (chosen->programs[i].missing)
            printf("  program   %s is planned only: no kernels yet for %s\n",
                   chosen->programs[i].name, chosen->programs[i].missing);
    if (has_kernels_for_gpus(model))
        printf("  untried   %s\n", UNTRIED);
    if (burin_app_encoder(model))
        write_seeing();
    printf("\n  built     Burin %s with %s%s\n", BURIN_VERSION, BURIN_COMPILER, SANITIZER);
    printf("  machine   %d cores\n", burin_machine_cores());
    if (found)
        printf("  weights   %s\n", burin_show(burin_span_of(found->checkpoint.path)).text);
    else
        printf("  weights   none: %s\n", missing->message);
}

static void write_json(
        const struct burin_app *app,
        const struct burin_family *chosen,
        const struct burin_found *found,
        const struct burin_error *missing)
{
    const struct burin_model *model = app->model;
    const struct formats formats = count_formats(model);
    struct burin_json json;
    burin_json_begin(&json, stdout);
    burin_json_open(&json, NULL, '{');
    burin_json_text(&json, "name", model->name, SIZE_MAX);
    burin_json_text(&json, "model", model->architecture, SIZE_MAX);
    burin_json_text(&json, "variant", model->variant, SIZE_MAX);
    burin_json_text(&json, "quant", model->recipe, SIZE_MAX);
    burin_json_integer(&json, "elements", model->n_elements);
    burin_json_open(&json, "dims", '{');
    for (int i = 0; i < model->n_dims; i++)
        burin_json_integer(&json, model->dims[i].name, model->dims[i].value);
    burin_json_close(&json);
    burin_json_open(&json, "formats", '[');
    for (int i = 0; i < BURIN_N_FORMATS; i++) {
        if (!formats.n_weights[i])
            continue;
        burin_json_open(&json, NULL, '{');
        burin_json_text(&json, "format", burin_format_name((enum burin_format)i), SIZE_MAX);
        burin_json_integer(&json, "weights", formats.n_weights[i]);
        burin_json_integer(&json, "elements", formats.n_elements[i]);
        burin_json_close(&json);
    }
    burin_json_close(&json);
    burin_json_open(&json, "families", '[');
    for (int i = 0; i < model->n_families; i++) {
        const struct burin_family *family = &model->families[i];
        burin_json_open(&json, NULL, '{');
        burin_json_text(&json, "family", family->name, SIZE_MAX);
        burin_json_bool(&json, "exact", family->exact);
        burin_json_integer(&json, "weights_bytes", (int64_t)family->weights_bytes);
        for (int planned_only = 0; planned_only < 2; planned_only++) {
            const char *names[BURIN_N_DTYPES];
            const int n = kv_dtypes(family, planned_only, names);
            burin_json_open(&json, planned_only ? "kv_planned_only" : "kv", '[');
            for (int k = 0; k < n; k++)
                burin_json_text(&json, NULL, names[k], SIZE_MAX);
            burin_json_close(&json);
        }
        burin_json_bool(
                &json, "runs_here", !family->sm && burin_machine_has(family->cpu_feature));
        burin_json_open(&json, "programs", '[');
        for (int p = 0; p < family->n_programs; p++) {
            burin_json_open(&json, NULL, '{');
            burin_json_text(&json, "program", family->programs[p].name, SIZE_MAX);
            burin_json_bool(&json, "runs", burin_program_runs(&family->programs[p], 0));
            burin_json_text(&json, "missing", family->programs[p].missing, SIZE_MAX);
            burin_json_close(&json);
        }
        burin_json_close(&json);
        burin_json_bool(&json, "in_use", family == chosen);
        burin_json_text(&json, "why", reason(app, family, chosen), SIZE_MAX);
        burin_json_close(&json);
    }
    burin_json_close(&json);
    burin_json_text(
            &json, "untried", has_kernels_for_gpus(model) ? UNTRIED : NULL, SIZE_MAX);
    burin_json_bool(&json, "chat", model->chat != NULL);
    if (burin_app_encoder(model))
        write_seeing_json(&json);
    burin_json_open(&json, "build", '{');
    burin_json_text(&json, "version", BURIN_VERSION, SIZE_MAX);
    burin_json_text(&json, "compiler", BURIN_COMPILER, SIZE_MAX);
    burin_json_close(&json);
    burin_json_integer(&json, "cores", burin_machine_cores());
    burin_json_text(&json, "weights", found ? found->checkpoint.path : NULL, SIZE_MAX);
    burin_json_text(&json, "weights_missing", found ? NULL : missing->message, SIZE_MAX);
    burin_json_close(&json);
}

enum burin_status burin_app_info(struct burin_app *app, struct burin_error *err)
{
    const struct burin_family *chosen = NULL;
    enum burin_status status = burin_settings_no_words(&app->settings, BURIN_INFO, err);
    if (status)
        return status;
    if (app->settings.last_start)
        return burin_app_show_start(app, err);
    status = burin_machine_family(
            app->model, app->settings.target, app->settings.exact, &chosen, err);
    if (status && (app->settings.target || app->settings.exact))
        return status;

    static struct burin_error missing;
    struct burin_found found;
    const bool have = !burin_app_find(app, &found, &missing);
    if (app->settings.json)
        write_json(app, chosen, have ? &found : NULL, &missing);
    else
        write_text(app, chosen, have ? &found : NULL, &missing);
    if (have)
        burin_found_close(&found);
    return BURIN_OK;
}
