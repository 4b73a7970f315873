#include "runtime/app/app.h"
#include "runtime/app/bandwidth.h"
#include "runtime/base/json.h"
#include "runtime/base/progress.h"
#include "runtime/base/units.h"
#include "runtime/device/machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_REPETITIONS = 1000 };

/* One line of the table. */
struct row {
    bool decode; /* tg: tokens made one by one; else pp: a prompt in chunks */
    int n;
    int n_threads;
    double median; /* tokens a second */
    double deviation;
    int n_samples;
    const double *samples;
    double bytes_a_token; /* read from memory; of decode */
    double share;         /* of the bandwidth; NaN where it says nothing */
    char note[160];       /* why the share is missing or above 1, "" where it is neither */
};

struct bench {
    struct burin_app *app;
    struct burin_engine *engine;
    bool on_gpu; /* its memory's bandwidth is not timed, and threads say nothing */
    char device[112];
    int32_t *ids; /* of a prompt: as many as the longest */
    int n_rows;
    struct row rows[2 * BURIN_MAX_LIST * BURIN_MAX_LIST];
    int n_bandwidths;
    struct {
        int n_threads;
        double gbs;
    } bandwidths[BURIN_MAX_LIST];
    const struct burin_family *family;
    const struct burin_kv_layout *kv;
};

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void summarize(struct row *row, double *samples, int n)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++)
        sum += samples[i];
    for (int i = 0; i < n; i++)
        squares += (samples[i] - sum / n) * (samples[i] - sum / n);
    qsort(samples, (size_t)n, sizeof *samples, ascending);
    row->median = n % 2 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
    row->deviation = n > 1 ? sqrt(squares / (n - 1)) : 0;
    row->samples = samples;
    row->n_samples = n;
}

/* ---- What a token reads ------------------------------------------------------------ */

/* Weights, then keys and values of half the tokens made, the mean over a run: once for each layer
 * that reads them. */
static double bytes_a_token(const struct bench *bench, int n_generated)
{
    const int kept = n_generated / 2;
    double bytes = (double)bench->family->token_bytes;
    for (int i = 0; bench->kv && i < bench->kv->n_rows; i++) {
        const struct burin_layer_state *row = &bench->kv->rows[i];
        const double token = row->window ? (double)row->bytes_per_sequence / row->window
                                         : (double)row->bytes_per_token;
        const int n = row->window && row->window < kept ? row->window : kept;
        if (row->state == BURIN_STATE_FIXED)
            bytes += (double)row->bytes_per_sequence;
        else
            bytes += token * n * row->n_readers;
    }
    return bytes;
}

/* ---- Timing ------------------------------------------------------------------------ */

/* Once: milliseconds. tg begins with one token, so that it runs n steps of one token. */
static enum burin_status time_once(
        struct bench *bench, const struct row *row, double *ms, struct burin_error *err)
{
    struct burin_request request = {
        .ids = bench->ids,
        .n_ids = row->decode ? 1 : row->n,
        .max_tokens = row->decode ? row->n : 0,
        .sampling = burin_greedy,
    };
    enum burin_status status = burin_submit(bench->engine, &request, err);
    if (!status)
        status = burin_engine_run(bench->engine, err);
    if (!status && request.finish == BURIN_FAILED)
        status = burin_fail(err, request.error.status, "%s", request.error.message);
    *ms = request.prefill_ms + request.decode_ms;
    return status;
}

static enum burin_status time_row(
        struct bench *bench, struct row *row, struct burin_error *err)
{
    const int n = bench->app->settings.repetitions;
    double *samples = BURIN_TAKE(&bench->app->arena, (size_t)n, double);
    if (!samples)
        return burin_fail(err, BURIN_ENOMEM, "no memory for %d samples", n);
    char what[64];
    const int at = snprintf(what, sizeof what, "%s%d", row->decode ? "tg" : "pp", row->n);
    if (!bench->on_gpu)
        snprintf(what + at, sizeof what - (size_t)at, ", %d threads", row->n_threads);
    struct burin_progress bar;
    burin_progress_begin(
            &bar, stderr, what, BURIN_COUNT_THINGS, bench->app->settings.verbose);
    double ms = 0;
    enum burin_status status = time_once(bench, row, &ms, err); /* to warm up */
    for (int i = 0; i < n && !status; i++) {
        burin_progress_update(&bar, i, n);
        status = time_once(bench, row, &ms, err);
        samples[i] = ms > 0 ? row->n / ms * 1e3 : 0;
    }
    burin_progress_end(&bar);
    if (status)
        return status;
    summarize(row, samples, n);
    row->bytes_a_token = row->decode ? bytes_a_token(bench, row->n) : NAN;
    return BURIN_OK;
}

/* What the rows from `first` on read of the memory's bandwidth. A share above 1 is told as it is,
 * with its reason: cut off at 1 it would look like a perfect result. */
static void share_rows(struct bench *bench, int first, double gbs)
{
    const int64_t cache = (int64_t)burin_cache_bytes();
    for (int i = first; i < bench->n_rows; i++) {
        struct row *row = &bench->rows[i];
        row->share = NAN;
        if (!row->decode)
            continue;
        const struct burin_text24 bytes = burin_human_bytes((int64_t)row->bytes_a_token);
        if (row->bytes_a_token <= (double)cache) {
            snprintf(
                    row->note, sizeof row->note,
                    "a token reads %s, which stay in the cache of %s: no share of memory",
                    bytes.text, burin_human_bytes(cache).text);
            continue;
        }
        row->share = row->median * row->bytes_a_token / 1e9 / gbs;
        if (row->share > 1)
            snprintf(
                    row->note, sizeof row->note,
                    "above 100 %%: the cache of %s may keep a part of the %s that a token "
                    "reads, or the memory was busier when it was timed",
                    burin_human_bytes(cache).text, bytes.text);
    }
}

static enum burin_status add_rows(
        struct bench *bench,
        const struct burin_numbers *counts,
        bool decode,
        int n_threads,
        struct burin_error *err)
{
    enum burin_status status = BURIN_OK;
    for (int i = 0; i < counts->n && !status; i++) {
        if (counts->values[i] == 0)
            continue; /* "-n 0": leave this kind out */
        struct row *row = &bench->rows[bench->n_rows++];
        *row = (struct row){
            .decode = decode, .n = counts->values[i], .n_threads = n_threads, .share = NAN
        };
        status = time_row(bench, row, err);
    }
    return status;
}

static int largest(const struct burin_numbers *numbers)
{
    int most = 0;
    for (int i = 0; i < numbers->n; i++)
        if (numbers->values[i] > most)
            most = numbers->values[i];
    return most;
}

static enum burin_status bench_with(
        struct bench *bench,
        struct burin_options options,
        int n_threads,
        struct burin_error *err)
{
    const struct burin_settings *settings = &bench->app->settings;
    const int prompt = largest(&settings->bench_prompt);
    const int made = largest(&settings->bench_generate) + 1;
    if (!settings->n_ctx)
        options.n_ctx = prompt > made ? prompt : made;
    options.n_threads = n_threads;
    enum burin_status status = burin_app_open(bench->app, &options, &bench->engine, err);
    if (status)
        return status;
    const struct burin_engine_info info = burin_engine_info(bench->engine);
    bench->family = info.family;
    bench->kv = info.kv;
    bench->on_gpu = info.family->sm > 0;
    snprintf(bench->device, sizeof bench->device, "%s", info.device);
    status = add_rows(bench, &settings->bench_prompt, false, info.n_threads, err);
    if (!status)
        status = add_rows(bench, &settings->bench_generate, true, info.n_threads, err);
    burin_engine_close(bench->engine);
    return status;
}

/* ---- What is told ------------------------------------------------------------------ */

static void write_gpu_table(const struct bench *bench, const char *name, const char *params)
{
    printf("| %-30s | %10s | %10s | %-8s | %8s | %18s |\n", "model", "size", "params",
           "backend", "test", "t/s");
    printf("| ------------------------------ | ---------: | ---------: | -------- | "
           "-------: | -----------------: |\n");
    for (int i = 0; i < bench->n_rows; i++) {
        const struct row *row = &bench->rows[i];
        char test[32], speed[48];
        snprintf(test, sizeof test, "%s%d", row->decode ? "tg" : "pp", row->n);
        snprintf(speed, sizeof speed, "%.2f ± %.2f", row->median, row->deviation);
        printf("| %-30s | %10s | %10s | %-8s | %8s | %19s |\n", name,
               burin_human_bytes((int64_t)bench->family->weights_bytes).text, params,
               bench->family->name, test, speed);
    }
    printf("\non %s\n", bench->device);
}

static void write_table(const struct bench *bench)
{
    const struct burin_model *model = bench->app->model;
    char name[96], params[32], test[32], speed[48];
    snprintf(
            name, sizeof name, "%s %s %s", model->architecture, model->variant,
            model->recipe);
    snprintf(params, sizeof params, "%.2f M", (double)model->n_elements / 1e6);
    if (bench->on_gpu) {
        write_gpu_table(bench, name, params);
        return;
    }
    printf("| %-30s | %10s | %10s | %-8s | %7s | %8s | %18s | %9s |\n", "model", "size",
           "params", "backend", "threads", "test", "t/s", "bandwidth");
    printf("| ------------------------------ | ---------: | ---------: | -------- | "
           "------: | "
           "-------: | -----------------: | --------: |\n");
    for (int i = 0; i < bench->n_rows; i++) {
        const struct row *row = &bench->rows[i];
        char share[16] = "";
        snprintf(test, sizeof test, "%s%d", row->decode ? "tg" : "pp", row->n);
        snprintf(speed, sizeof speed, "%.2f ± %.2f", row->median, row->deviation);
        if (!isnan(row->share))
            snprintf(share, sizeof share, "%.0f %%", 100 * row->share);
        printf("| %-30s | %10s | %10s | %-8s | %7d | %8s | %19s | %9s |\n", name,
               burin_human_bytes((int64_t)bench->family->weights_bytes).text, params,
               bench->family->name, row->n_threads, test, speed, share);
    }
    for (int i = 0; i < bench->n_bandwidths; i++)
        printf("\nread bandwidth, %d threads: %.1f GB/s", bench->bandwidths[i].n_threads,
               bench->bandwidths[i].gbs);
    putchar('\n');
    for (int i = 0; i < bench->n_rows; i++)
        if (*bench->rows[i].note)
            printf("tg%d, %d threads: %s\n", bench->rows[i].n, bench->rows[i].n_threads,
                   bench->rows[i].note);
}

static void write_json_row(
        const struct bench *bench, const struct row *row, struct burin_json *json)
{
    char test[32];
    snprintf(test, sizeof test, "%s%d", row->decode ? "tg" : "pp", row->n);
    burin_json_open(json, NULL, '{');
    burin_json_text(json, "test", test, SIZE_MAX);
    burin_json_text(json, "phase", row->decode ? "decode" : "prefill", SIZE_MAX);
    burin_json_integer(json, "tokens", row->n);
    if (!bench->on_gpu)
        burin_json_integer(json, "threads", row->n_threads);
    burin_json_real(json, "tokens_per_second", row->median);
    burin_json_real(json, "deviation", row->deviation);
    burin_json_open(json, "samples", '[');
    for (int i = 0; i < row->n_samples; i++)
        burin_json_real(json, NULL, row->samples[i]);
    burin_json_close(json);
    burin_json_real(json, "bytes_per_token", row->bytes_a_token);
    if (!bench->on_gpu) {
        burin_json_real(json, "bandwidth_share", row->share);
        burin_json_text(json, "bandwidth_note", *row->note ? row->note : NULL, SIZE_MAX);
    }
    burin_json_close(json);
}

static void write_bandwidths(const struct bench *bench, struct burin_json *json)
{
    burin_json_open(json, "bandwidth", '[');
    for (int i = 0; i < bench->n_bandwidths; i++) {
        burin_json_open(json, NULL, '{');
        burin_json_integer(json, "threads", bench->bandwidths[i].n_threads);
        burin_json_real(json, "gbs", bench->bandwidths[i].gbs);
        burin_json_close(json);
    }
    burin_json_close(json);
}

static void write_json(const struct bench *bench)
{
    const struct burin_model *model = bench->app->model;
    struct burin_json json;
    burin_json_begin(&json, stdout);
    burin_json_open(&json, NULL, '{');
    burin_json_text(&json, "model", model->architecture, SIZE_MAX);
    burin_json_text(&json, "variant", model->variant, SIZE_MAX);
    burin_json_text(&json, "quant", model->recipe, SIZE_MAX);
    burin_json_text(&json, "family", bench->family->name, SIZE_MAX);
    burin_json_bool(&json, "exact", bench->family->exact);
    burin_json_integer(&json, "elements", model->n_elements);
    burin_json_integer(&json, "weights_bytes", (int64_t)bench->family->weights_bytes);
    if (bench->on_gpu)
        burin_json_text(&json, "device", bench->device, SIZE_MAX);
    else
        write_bandwidths(bench, &json);
    burin_json_open(&json, "rows", '[');
    for (int i = 0; i < bench->n_rows; i++)
        write_json_row(bench, &bench->rows[i], &json);
    burin_json_close(&json);
    burin_json_close(&json);
}

static enum burin_status make_prompt(struct bench *bench, struct burin_error *err)
{
    const int n = largest(&bench->app->settings.bench_prompt) + 1;
    bench->ids = BURIN_TAKE(&bench->app->arena, (size_t)n, int32_t);
    if (!bench->ids)
        return burin_fail(err, BURIN_ENOMEM, "no memory for a prompt of %d tokens", n);
    uint64_t state = 1; /* the same tokens each time; any will do */
    for (int i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        bench->ids[i] = (int32_t)((state >> 33) % (uint64_t)bench->app->model->n_vocab);
    }
    return BURIN_OK;
}

/* One number of threads. The memory is timed before and behind, since other guests of a machine
 * come and go. A GPU has its own, of which nothing is known. */
static enum burin_status bench_threads(
        struct bench *bench,
        const struct burin_options *options,
        int n_threads,
        struct burin_error *err)
{
    const int first = bench->n_rows;
    struct burin_card card;
    bool gpu = false;
    double before = 0, behind = 0;
    enum burin_status status = burin_engine_card(options, &card, &gpu, NULL, 0, err);
    if (!status && !gpu)
        status = burin_bandwidth(n_threads, &before, err);
    if (!status)
        status = bench_with(bench, *options, n_threads, err);
    if (status || bench->on_gpu)
        return status;
    status = burin_bandwidth(n_threads, &behind, err);
    const double gbs = fmax(before, behind);
    const int at = bench->n_bandwidths++;
    bench->bandwidths[at].n_threads = n_threads;
    bench->bandwidths[at].gbs = gbs;
    share_rows(bench, first, gbs);
    return status;
}

/* All lengths are within the context: else a row would time something shorter. */
static enum burin_status check_lengths(
        const struct burin_app *app,
        const char *option,
        const struct burin_numbers *counts,
        int beside, /* tokens of the context that are taken already */
        struct burin_error *err)
{
    const int asked = app->settings.n_ctx;
    const int n_ctx = asked > 0 ? asked : app->model->n_ctx;
    const int most = largest(counts);
    if (most <= n_ctx - beside)
        return BURIN_OK;
    return burin_fail(
            err, BURIN_EUSAGE, "%s %d: %s of %d tokens has room for %d", option, most,
            asked > 0 ? "--ctx-size" : "the model's context", n_ctx, n_ctx - beside);
}

static enum burin_status check_settings(
        const struct burin_app *app, struct burin_error *err)
{
    const struct burin_settings *settings = &app->settings;
    enum burin_status status = burin_settings_no_words(settings, BURIN_BENCH, err);
    if (!status)
        status = check_lengths(app, "-p", &settings->bench_prompt, 0, err);
    if (!status) /* the first of its tokens stands for the prompt */
        status = check_lengths(app, "-n", &settings->bench_generate, 1, err);
    if (status)
        return status;
    if (largest(&settings->bench_prompt) == 0 && largest(&settings->bench_generate) == 0)
        return burin_fail(err, BURIN_EUSAGE, "-p 0 and -n 0 leave nothing to time");
    return BURIN_OK;
}

enum burin_status burin_app_bench(struct burin_app *app, struct burin_error *err)
{
    const struct burin_settings *settings = &app->settings;
    static struct bench bench;
    struct burin_options options;
    bench = (struct bench){ .app = app };
    enum burin_status status = check_settings(app, err);
    if (!status)
        status = burin_app_options(app, &options, err);
    if (!status)
        status = make_prompt(&bench, err);
    for (int i = 0; i < settings->bench_threads.n && !status && !bench.on_gpu; i++) {
        const int asked = burin_app_threads(app, settings->bench_threads.values[i]);
        const int n_threads = asked > 0 ? asked : burin_machine_cores();
        status = bench_threads(&bench, &options, n_threads, err);
    }
    if (status || !bench.family)
        return status;
    if (settings->json || settings->output_form == BURIN_OUTPUT_JSON)
        write_json(&bench);
    else
        write_table(&bench);
    return BURIN_OK;
}
