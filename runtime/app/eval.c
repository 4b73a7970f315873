#include "runtime/app/app.h"
#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/base/progress.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows of logits a step: enough to keep the weights' reading off the clock, 25 MB of arena at
 * 49,152 entries. */
enum { ROWS_A_STEP = 128 };

struct eval {
    struct burin_app *app;
    struct burin_engine *engine;
    int n_vocab;
    struct burin_span text; /* of --text or --ids */
    const int32_t *ids;     /* of the sequence that is running */
    int n_ids;
    FILE *dump;

    double nll;
    int64_t n_scored;

    struct burin_json *json; /* of --ids --json; one list is open */
    int sequence;
    int32_t *argmax; /* by position; -1 where logits are not finite */
    double *log_probs;
    double *target_log_probs; /* NaN at the last position */
};

/* ---- --text ---------------------------------------------------------------------- */

/* The logits behind position p are about the id at p + 1. */
static void score(struct burin_request *request, int position, const float *logits)
{
    struct eval *eval = request->user;
    if (position + 1 >= eval->n_ids)
        return;
    eval->nll -= burin_log_prob(logits, eval->n_vocab, eval->ids[position + 1]);
    eval->n_scored++;
}

static enum burin_status run_request(
        struct eval *eval, struct burin_request *request, struct burin_error *err)
{
    request->sampling = burin_greedy;
    request->user = eval;
    eval->ids = request->ids;
    enum burin_status status = burin_submit(eval->engine, request, err);
    if (!status)
        status = burin_engine_run(eval->engine, err);
    if (!status && request->finish == BURIN_FAILED)
        status = burin_fail(err, request->error.status, "%s", request->error.message);
    return status;
}

struct windows {
    const int32_t *ids; /* of the text */
    size_t n_ids;
    int n_prefix; /* ids that stand before each window */
    const int32_t *prefix;
    int size;    /* with the prefix */
    size_t each; /* ids of the text in a window */
    size_t n;    /* windows that are scored */
};

static void cut(struct windows *windows)
{
    windows->each = (size_t)(windows->size - windows->n_prefix);
    windows->n = windows->n_ids / windows->each;
    if (!windows->n) { /* the text is one window, and a shorter one */
        windows->each = windows->n_ids;
        windows->n = 1;
    }
}

static enum burin_status run_windows(
        struct eval *eval, const struct windows *windows, struct burin_error *err)
{
    int32_t *window = BURIN_TAKE(&eval->app->arena, (size_t)windows->size, int32_t);
    if (!window)
        return burin_fail(err, BURIN_ENOMEM, "no memory for a window");
    if (windows->n_prefix)
        memcpy(window, windows->prefix, (size_t)windows->n_prefix * sizeof *window);

    struct burin_progress bar;
    const bool verbose = eval->app->settings.verbose;
    burin_progress_begin(&bar, stderr, "scoring windows", BURIN_COUNT_THINGS, verbose);
    enum burin_status status = BURIN_OK;
    for (size_t i = 0; i < windows->n && !status; i++) {
        memcpy(window + windows->n_prefix, windows->ids + i * windows->each,
               windows->each * sizeof *window);
        eval->n_ids = windows->n_prefix + (int)windows->each;
        struct burin_request request = {
            .ids = window,
            .n_ids = eval->n_ids - 1, /* nothing follows the last */
            .on_logits = score,
            .logits_from = eval->app->settings.score_from,
        };
        status = run_request(eval, &request, err);
        burin_progress_update(&bar, (int64_t)i + 1, (int64_t)windows->n);
    }
    burin_progress_end(&bar);
    return status;
}

static void write_perplexity(
        const struct eval *eval, const struct windows *windows, double seconds)
{
    const struct burin_settings *settings = &eval->app->settings;
    const double mean = eval->nll / (double)eval->n_scored;
    const double rate = (double)(windows->n * windows->each) / seconds;
    if (!settings->json) {
        printf("perplexity %.4f   (%.6f nats a token; %lld tokens scored in %zu windows of "
               "%zu, %.0f tokens a second)\n",
               exp(mean), mean, (long long)eval->n_scored, windows->n,
               windows->each + (size_t)windows->n_prefix, rate);
        return;
    }
    const struct burin_engine_info info = burin_engine_info(eval->engine);
    struct burin_json json;
    burin_json_begin(&json, stdout);
    burin_json_open(&json, NULL, '{');
    burin_json_text(&json, "model", eval->app->model->name, SIZE_MAX);
    burin_json_text(&json, "family", info.family->name, SIZE_MAX);
    burin_json_bool(&json, "exact", info.family->exact);
    burin_json_text(&json, "text", settings->text_file, SIZE_MAX);
    burin_json_integer(&json, "tokens", (int64_t)windows->n_ids);
    burin_json_integer(&json, "window", (int64_t)windows->each + windows->n_prefix);
    burin_json_integer(&json, "windows", (int64_t)windows->n);
    burin_json_integer(&json, "score_from", settings->score_from);
    burin_json_integer(&json, "scored", eval->n_scored);
    burin_json_real(&json, "nll", mean);
    burin_json_real(&json, "perplexity", exp(mean));
    burin_json_real(&json, "seconds", seconds);
    burin_json_real(&json, "tokens_per_second", rate);
    burin_json_close(&json);
}

static enum burin_status tokenize_text(
        struct eval *eval, struct windows *windows, struct burin_error *err)
{
    struct burin_app *app = eval->app;
    const struct burin_tokenizer *tokenizer = burin_engine_tokenizer(eval->engine);
    if (!tokenizer)
        return burin_fail(
                err, BURIN_EMISSING, "%s brings no tokenizer; --ids takes token ids",
                burin_show(burin_span_of(burin_engine_info(eval->engine).weights)).text);
    int32_t *ids;
    enum burin_status status = burin_encode(
            tokenizer, eval->text, BURIN_PLAIN, &app->arena, &ids, &windows->n_ids, err);
    if (status)
        return burin_app_blame_text(status, app->settings.text_file, err);

    const struct burin_tokenizer_facts facts = burin_tokenizer_facts(tokenizer);
    windows->ids = ids;
    windows->n_prefix = facts.n_prefix;
    windows->prefix = facts.prefix;
    windows->size = app->settings.window;
    if (windows->size <= windows->n_prefix + 1)
        return burin_fail(
                err, BURIN_EUSAGE, "--window %d has no room behind the %d ids of bos",
                windows->size, windows->n_prefix);
    cut(windows);
    const int last = windows->n_prefix + (int)windows->each - 1;
    if (last < 1 || app->settings.score_from >= last)
        return burin_fail(
                err, BURIN_EUSAGE,
                "%s has %zu tokens in windows of %d: none is left to score from position "
                "%d",
                burin_show(burin_span_of(app->settings.text_file)).text, windows->n_ids,
                last + 1, app->settings.score_from);
    return BURIN_OK;
}

static enum burin_status eval_text(struct eval *eval, struct burin_error *err)
{
    struct windows windows = { 0 };
    enum burin_status status = tokenize_text(eval, &windows, err);
    if (status)
        return status;
    const double began_ms = burin_now_ms();
    status = run_windows(eval, &windows, err);
    if (!status)
        write_perplexity(eval, &windows, (burin_now_ms() - began_ms) / 1e3);
    return status;
}

/* ---- --ids ------------------------------------------------------------------------ */

static void keep(struct burin_request *request, int position, const float *logits)
{
    struct eval *eval = request->user;
    const int32_t best = burin_argmax(logits, eval->n_vocab);
    eval->argmax[position] = best;
    eval->log_probs[position] =
            best < 0 ? NAN : burin_log_prob(logits, eval->n_vocab, best);
    eval->target_log_probs[position] =
            position + 1 < eval->n_ids
                    ? burin_log_prob(logits, eval->n_vocab, eval->ids[position + 1])
                    : NAN;
    if (eval->dump)
        fwrite(logits, sizeof *logits, (size_t)eval->n_vocab, eval->dump);
}

static void write_sequence(struct eval *eval)
{
    if (!eval->json) {
        for (int p = 0; p < eval->n_ids; p++) {
            printf("%d %d %d %.6f", eval->sequence, p, eval->argmax[p], eval->log_probs[p]);
            if (p + 1 < eval->n_ids)
                printf(" %d %.6f", eval->ids[p + 1], eval->target_log_probs[p]);
            putchar('\n');
        }
        return;
    }
    burin_json_open(eval->json, NULL, '{');
    burin_json_integer(eval->json, "n_ids", eval->n_ids);
    burin_json_open(eval->json, "argmax", '[');
    for (int p = 0; p < eval->n_ids; p++)
        burin_json_integer(eval->json, NULL, eval->argmax[p]);
    burin_json_close(eval->json);
    burin_json_open(eval->json, "log_probs", '[');
    for (int p = 0; p < eval->n_ids; p++)
        burin_json_real(eval->json, NULL, eval->log_probs[p]);
    burin_json_close(eval->json);
    burin_json_open(eval->json, "target_log_probs", '[');
    for (int p = 0; p + 1 < eval->n_ids; p++)
        burin_json_real(eval->json, NULL, eval->target_log_probs[p]);
    burin_json_close(eval->json);
    burin_json_close(eval->json);
}

/* The ids of a line; *at moves behind it. Separated by spaces or commas. */
static enum burin_status read_line(
        const struct eval *eval,
        const char **at,
        int32_t *ids,
        int most,
        int *n,
        struct burin_error *err)
{
    *n = 0;
    while (true) {
        *at += strspn(*at, " \t\r,");
        if (**at == '\0')
            return BURIN_OK;
        if (**at == '\n') {
            (*at)++;
            return BURIN_OK;
        }
        char *end;
        const long id = strtol(*at, &end, 10);
        if (end == *at || id < 0 || id >= eval->n_vocab)
            return burin_fail(
                    err, BURIN_EUSAGE, "%s, sequence %d: %s is not a token id from 0 to %d",
                    burin_show(burin_span_of(eval->app->settings.ids_file)).text,
                    eval->sequence,
                    burin_quote((struct burin_span){ *at, strcspn(*at, " \t\r\n,") }).text,
                    eval->n_vocab - 1);
        if (*n == most)
            return burin_fail(
                    err, BURIN_ELIMIT,
                    "%s, sequence %d: more than the %d tokens of the context%s",
                    burin_show(burin_span_of(eval->app->settings.ids_file)).text,
                    eval->sequence, most,
                    most < eval->app->model->n_ctx ? "; --ctx-size makes it larger" : "");
        ids[(*n)++] = (int32_t)id;
        *at = end;
    }
}

static enum burin_status run_lines(
        struct eval *eval, struct burin_span text, struct burin_error *err)
{
    const int most = burin_engine_info(eval->engine).n_ctx;
    int32_t *ids = BURIN_TAKE(&eval->app->arena, (size_t)most, int32_t);
    eval->argmax = BURIN_TAKE(&eval->app->arena, (size_t)most, int32_t);
    eval->log_probs = BURIN_TAKE(&eval->app->arena, (size_t)most, double);
    eval->target_log_probs = BURIN_TAKE(&eval->app->arena, (size_t)most, double);
    if (!ids || !eval->argmax || !eval->log_probs || !eval->target_log_probs)
        return burin_fail(err, BURIN_ENOMEM, "no memory for %d positions", most);

    struct burin_progress bar;
    burin_progress_begin(
            &bar, stderr, "scoring ids", BURIN_COUNT_BYTES, eval->app->settings.verbose);
    enum burin_status status = BURIN_OK;
    for (const char *at = text.at; *at && !status;) {
        status = read_line(eval, &at, ids, most, &eval->n_ids, err);
        if (status || eval->n_ids == 0)
            continue;
        struct burin_request request = { .ids = ids,
                                         .n_ids = eval->n_ids,
                                         .on_logits = keep };
        status = run_request(eval, &request, err);
        if (!status)
            write_sequence(eval);
        eval->sequence++;
        burin_progress_update(&bar, at - text.at, (int64_t)text.length);
    }
    burin_progress_end(&bar);
    return status;
}

static enum burin_status eval_ids(struct eval *eval, struct burin_error *err)
{
    struct burin_json json;
    if (eval->app->settings.json) {
        burin_json_begin(&json, stdout);
        burin_json_open(&json, NULL, '{');
        burin_json_text(&json, "model", eval->app->model->name, SIZE_MAX);
        burin_json_open(&json, "sequences", '[');
        eval->json = &json;
    }
    const enum burin_status status = run_lines(eval, eval->text, err);
    if (eval->json) {
        burin_json_close(&json);
        burin_json_close(&json);
    }
    eval->json = NULL;
    return status;
}

/* ---- The command ------------------------------------------------------------------- */

/* What the options say by themselves: told before anything is read or loaded. */
static enum burin_status check_settings(
        const struct burin_app *app, struct burin_error *err)
{
    const struct burin_settings *settings = &app->settings;
    const enum burin_status status = burin_settings_no_words(settings, BURIN_EVAL, err);
    if (status)
        return status;
    if (!settings->text_file == !settings->ids_file)
        return burin_fail(
                err, BURIN_EUSAGE, "give %s",
                settings->ids_file ? "--text or --ids, not both"
                                   : "--text FILE or --ids FILE");
    if (settings->dump_file && !settings->ids_file)
        return burin_fail(err, BURIN_EUSAGE, "--dump-logits writes the logits of --ids");
    if (!settings->text_file)
        return BURIN_OK;

    const int most = settings->n_ctx > 0 ? settings->n_ctx : app->model->n_ctx;
    if (settings->window > most)
        return burin_fail(
                err, BURIN_EUSAGE, "--window %d is beyond the %d tokens of the %s",
                settings->window, most, settings->n_ctx > 0 ? "context" : "model");
    if (settings->score_from >= settings->window - 1)
        return burin_fail(
                err, BURIN_EUSAGE, "--score-from %d leaves nothing of a --window of %d",
                settings->score_from, settings->window);
    return BURIN_OK;
}

static enum burin_status open_dump(struct eval *eval, struct burin_error *err)
{
    const char *path = eval->app->settings.dump_file;
    if (path && !(eval->dump = fopen(path, "wb")))
        return burin_fail(
                err, BURIN_EIO, "%s: %s", burin_show(burin_span_of(path)).text,
                strerror(errno));
    return BURIN_OK;
}

static enum burin_status close_dump(struct eval *eval, struct burin_error *err)
{
    const bool lost = eval->dump && ferror(eval->dump);
    if (eval->dump && (fclose(eval->dump) || lost))
        return burin_fail(
                err, BURIN_EIO, "%s: %s",
                burin_show(burin_span_of(eval->app->settings.dump_file)).text,
                strerror(errno));
    return BURIN_OK;
}

enum burin_status burin_app_eval(struct burin_app *app, struct burin_error *err)
{
    const struct burin_settings *settings = &app->settings;
    const char *path = settings->text_file ? settings->text_file : settings->ids_file;
    struct eval eval = { .app = app, .n_vocab = app->model->n_vocab };
    struct burin_options options;
    enum burin_status status = check_settings(app, err);
    if (!status)
        status = burin_app_options(app, &options, err);
    if (!status)
        status = burin_app_read(app, path, &eval.text, err);
    if (!status)
        status = open_dump(&eval, err);
    if (status)
        return status;

    if (settings->text_file && !settings->n_ctx)
        options.n_ctx = settings->window;
    options.n_outputs = ROWS_A_STEP;
    status = burin_app_open(app, &options, &eval.engine, err);
    if (!status)
        status = settings->text_file ? eval_text(&eval, err) : eval_ids(&eval, err);
    burin_engine_close(eval.engine);
    const enum burin_status closed = close_dump(&eval, status ? NULL : err);
    return status ? status : closed;
}
