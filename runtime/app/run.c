#include "runtime/app/app.h"
#include "runtime/app/attach.h"
#include "runtime/app/interrupt.h"
#include "runtime/app/talk.h"
#include "runtime/base/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const finishes[] = {
    [BURIN_WAITING] = "waiting", [BURIN_RUNNING] = "running",
    [BURIN_STOPPED] = "stop",    [BURIN_LENGTH] = "length",
    [BURIN_CONTEXT] = "context", [BURIN_CANCELLED] = "cancelled",
    [BURIN_FAILED] = "failed",
};

static double per_second(int n, double ms)
{
    return ms > 0 ? n / ms * 1e3 : 0;
}

/* ---- What is said beside the answer ----------------------------------------------- */

static void write_sampling(const struct burin_talk *talk, const char *before)
{
    const struct burin_sampling *sampling = &talk->sampling;
    fprintf(stderr, "%s--temp %g --top-k %d --top-p %g", before,
            (double)sampling->temperature, sampling->top_k, (double)sampling->top_p);
    if (sampling->min_p > 0)
        fprintf(stderr, " --min-p %g", (double)sampling->min_p);
}

static void write_stats(const struct burin_talk *talk)
{
    const struct burin_request *request = &talk->request;
    const int n_drawn = request->n_generated > 1 ? request->n_generated - 1 : 0;
    fprintf(stderr, "prompt: %d tokens, %.0f a second; answer: %d tokens, %.1f a second",
            request->n_prompt_done, per_second(request->n_prompt_done, request->prefill_ms),
            request->n_generated, per_second(n_drawn, request->decode_ms));
    if (talk->own_sampling)
        write_sampling(talk, "; the model's own ");
    if (talk->sampling.temperature > 0)
        fprintf(stderr, "; --seed %llu", (unsigned long long)request->seed);
    fputc('\n', stderr);
}

/* What was drawn at random can be drawn again. */
static void write_seed(const struct burin_talk *talk)
{
    if (talk->own_sampling) {
        fprintf(stderr, "%s: drawn as the model's authors mean it,", talk->app->program);
        write_sampling(talk, " ");
        fputc('\n', stderr);
    }
    if (talk->sampling.temperature > 0 && talk->sampling.seed < 0)
        fprintf(stderr, "%s: --seed %llu draws this answer again\n", talk->app->program,
                (unsigned long long)talk->request.seed);
}

static void write_ending(const struct burin_talk *talk)
{
    if (talk->request.finish == BURIN_LENGTH && talk->thought.thinks)
        fprintf(stderr,
                "%s: %d tokens were made and it was still thinking: there is no answer "
                "yet; "
                "a larger -n lets it go on\n",
                talk->app->program, talk->request.n_generated);
    if (talk->request.finish != BURIN_CONTEXT)
        return;
    fprintf(stderr,
            "%s: the context of %d tokens is full, the answer ends here; a larger "
            "--ctx-size "
            "holds more (the model's is %d)\n",
            talk->app->program, burin_engine_info(talk->engine).n_ctx,
            talk->app->model->n_ctx);
}

/* What the plan said and what the device gave. */
static void write_owners(const struct burin_engine *engine, struct burin_json *json)
{
    const struct burin_owner *owners;
    const int n_owners = burin_engine_owners(engine, &owners);
    burin_json_open(json, "owners", '[');
    for (int i = 0; i < n_owners; i++) {
        burin_json_open(json, NULL, '{');
        burin_json_text(json, "owner", owners[i].name, SIZE_MAX);
        burin_json_integer(json, "planned", (int64_t)owners[i].planned);
        burin_json_integer(json, "obtained", (int64_t)owners[i].obtained);
        burin_json_close(json);
    }
    burin_json_close(json);
}

static void write_json(const struct burin_talk *talk, struct burin_span answer)
{
    const struct burin_request *request = &talk->request;
    struct burin_json json;
    burin_json_begin(&json, stdout);
    burin_json_open(&json, NULL, '{');
    burin_json_text(&json, "text", answer.at ? answer.at : "", answer.length);
    if (talk->facts.think_from >= 0)
        burin_json_text(
                &json, "thinking", talk->thought_text.at ? talk->thought_text.at : "",
                talk->thought_text.length);
    burin_json_text(
            &json, "finish", talk->stop.met ? "stop" : finishes[request->finish], SIZE_MAX);
    burin_json_integer(&json, "prompt_tokens", request->n_prompt_done);
    burin_json_integer(&json, "tokens", request->n_generated);
    burin_json_open(&json, "ids", '[');
    for (int i = 0; i < talk->n_ids; i++)
        burin_json_integer(&json, NULL, talk->ids[i]);
    burin_json_close(&json);
    burin_json_open(&json, "sampling", '{');
    burin_json_real(&json, "temperature", (double)talk->sampling.temperature);
    burin_json_integer(&json, "top_k", talk->sampling.top_k);
    burin_json_real(&json, "top_p", (double)talk->sampling.top_p);
    burin_json_real(&json, "min_p", (double)talk->sampling.min_p);
    burin_json_close(&json);
    burin_json_integer(&json, "seed", (int64_t)request->seed);
    burin_json_real(&json, "prefill_ms", request->prefill_ms);
    burin_json_real(&json, "decode_ms", request->decode_ms);
    write_owners(talk->engine, &json);
    burin_json_close(&json);
}

/* ---- Once ------------------------------------------------------------------------ */

static enum burin_status say_system(struct burin_talk *talk, struct burin_error *err)
{
    const char *text = talk->app->settings.system;
    return text ? burin_talk_say(talk, "system", burin_span_of(text), err) : BURIN_OK;
}

static enum burin_status answer_once(
        struct burin_talk *talk, struct burin_span prompt, struct burin_error *err)
{
    const struct burin_settings *settings = &talk->app->settings;
    const bool at_terminal = isatty(STDOUT_FILENO);
    struct burin_span answer = { 0 };
    enum burin_status status = BURIN_OK;
    if (settings->json)
        talk->out = NULL;
    if (!settings->raw) {
        status = say_system(talk, err);
        if (!status)
            status = burin_talk_say(talk, "user", prompt, err);
    } else if (at_terminal && !settings->json) {
        fwrite(prompt.at, 1, prompt.length, stdout); /* the text that goes on */
        (void)burin_app_flush(talk->app, NULL);
    }
    if (!status)
        status = burin_talk_answer(talk, settings->raw ? &prompt : NULL, &answer, err);
    if (status && status != BURIN_ESTOPPED)
        return status;

    if (settings->json)
        write_json(talk, answer);
    else if (!talk->ended_with_newline && (at_terminal || !settings->raw))
        putchar('\n');
    const enum burin_status written = burin_app_flush(talk->app, status ? NULL : err);
    write_ending(talk);
    if (settings->verbose || (isatty(STDERR_FILENO) && at_terminal))
        write_stats(talk);
    else if (!settings->json)
        write_seed(talk);
    return status ? status : written;
}

/* ---- Chat ------------------------------------------------------------------------ */

struct colors {
    const char *user;
    const char *dim;
    const char *off;
};

static struct colors choose_colors(void)
{
    const char *no_color = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    const bool plain = !isatty(STDERR_FILENO) || (no_color && *no_color) ||
                       (terminal && strcmp(terminal, "dumb") == 0);
    return plain ? (struct colors){ "", "", "" }
                 : (struct colors){ "\033[1;32m", "\033[2m", "\033[0m" };
}

enum { LINE_BYTES = 64 * 1024 };

/* A line of stdin into the app's arena, without its newline. *text is NULL at the end. */
static enum burin_status read_line(
        struct burin_app *app, struct burin_span *text, struct burin_error *err)
{
    static char line[LINE_BYTES];
    *text = (struct burin_span){ NULL, 0 };
    /* A terminal gives whole lines, so that none is left in the stream's buffer. */
    const bool has_line = !isatty(STDIN_FILENO) || burin_interrupt_wait(STDIN_FILENO);
    if (!has_line || !fgets(line, sizeof line, stdin)) {
        if (burin_interrupt_taken())
            return burin_fail(err, BURIN_ESTOPPED, "interrupted");
        if (ferror(stdin))
            return burin_fail(err, BURIN_EIO, "stdin: %s", strerror(errno));
        return BURIN_OK;
    }
    size_t length = strlen(line);
    if (length && line[length - 1] == '\n')
        length--;
    else if (length == sizeof line - 1)
        return burin_fail(
                err, BURIN_ELIMIT, "a line has at most %d bytes; give a text with -f",
                LINE_BYTES);
    text->at = burin_arena_text(&app->arena, line, length);
    text->length = length;
    return text->at ? BURIN_OK : burin_fail(err, BURIN_ENOMEM, "no memory for a line");
}

static bool is_word(struct burin_span text, const char *a, const char *b)
{
    return burin_span_is(text, a) || burin_span_is(text, b);
}

/* Let the model answer what was said last, and take that back where it cannot. */
static enum burin_status take_turn(struct burin_talk *talk, struct burin_error *err)
{
    struct burin_span answer = { 0 };
    enum burin_status status = burin_talk_answer(talk, NULL, &answer, err);
    if (status && status != BURIN_ESTOPPED) {
        talk->n_messages--;
        return status;
    }
    if (!talk->ended_with_newline)
        putchar('\n');
    (void)burin_app_flush(talk->app, NULL); /* the next turn or the end tells it */
    write_ending(talk);
    if (talk->app->settings.verbose)
        write_stats(talk);
    return burin_talk_say(talk, "assistant", answer, err);
}

static void greet(const struct burin_app *app, const struct colors *colors)
{
    fprintf(stderr,
            "%s%s %s (%s). /clear begins anew, /exit or Ctrl-D ends, Ctrl-C stops an "
            "answer.%s\n",
            colors->dim, app->model->architecture, app->model->variant, app->model->recipe,
            colors->off);
}

static enum burin_status chat(
        struct burin_talk *talk, struct burin_span first, struct burin_error *err)
{
    struct burin_app *app = talk->app;
    const struct colors colors = choose_colors();
    const bool at_terminal = isatty(STDIN_FILENO);
    enum burin_status status = say_system(talk, err);
    if (status)
        return status;
    if (at_terminal)
        greet(app, &colors);
    burin_interrupt_wakes();

    for (struct burin_span text = first;; text = (struct burin_span){ NULL, 0 }) {
        if (!text.at) {
            if (at_terminal)
                fprintf(stderr, "%s> %s", colors.user, colors.off);
            status = read_line(app, &text, err);
            if (status || !text.at) {
                if (at_terminal)
                    fputc('\n', stderr);
                return status;
            }
        }
        if (is_word(text, "/exit", "/bye") || is_word(text, "/quit", "exit"))
            return BURIN_OK;
        if (is_word(text, "/clear", "/reset")) {
            talk->n_messages = app->settings.system ? 1 : 0;
            continue;
        }
        if (is_word(text, "/help", "/?")) {
            greet(app, &colors);
            continue;
        }
        if (!text.length)
            continue;
        status = burin_talk_say(talk, "user", text, err);
        if (!status)
            status = take_turn(talk, err);
        if (status == BURIN_ELIMIT || status == BURIN_EUSAGE)
            fprintf(stderr, "%s; /clear begins anew\n", err->message);
        else if (status)
            return status;
    }
}

/* What the options say by themselves: told before anything is read or loaded. */
static enum burin_status check_settings(
        const struct burin_app *app, struct burin_error *err)
{
    const struct burin_settings *settings = &app->settings;
    if (settings->raw && settings->chat)
        return burin_fail(err, BURIN_EUSAGE, "--raw continues one text, it cannot chat");
    if (!app->model->chat && !settings->raw)
        return burin_fail(
                err, BURIN_EUSAGE, "%s has no chat format: continue a text with --raw",
                app->model->name);
    if (settings->raw && settings->think)
        return burin_fail(
                err, BURIN_EUSAGE, "--raw continues a text, it cannot --think about it");
    if (settings->raw && settings->attachments.n)
        return burin_fail(
                err, BURIN_EUSAGE,
                "--raw continues one text, and no picture or video has a place in it");
    for (int i = 0; i < settings->stop.n; i++)
        if (!*settings->stop.values[i])
            return burin_fail(err, BURIN_EUSAGE, "--stop needs a text, found an empty one");
    return BURIN_OK;
}

enum burin_status burin_app_run(struct burin_app *app, struct burin_error *err)
{
    static struct burin_attached attached;
    const struct burin_settings *settings = &app->settings;
    struct burin_options options;
    struct burin_span prompt = { 0 };
    bool given = false;
    enum burin_status status = check_settings(app, err);
    if (!status)
        status = burin_app_options(app, &options, err);
    if (!status)
        status = burin_app_attach(app, &attached, err);
    if (!status)
        status = burin_app_prompt(app, &prompt, &given, err);
    if (status)
        return status;
    if (given && prompt.length == 0)
        return burin_fail(err, BURIN_EUSAGE, "the prompt is empty");
    if (!given && (settings->raw || settings->json))
        return burin_fail(
                err, BURIN_EUSAGE, "%s needs a prompt: words, -p, -f, or a pipe",
                settings->raw ? "--raw" : "--json");

    options.n_frames = attached.n_frames;
    options.n_images = attached.n_pictures - attached.n_frames;
    options.largest_picture = attached.largest;
    static struct burin_talk talk;
    status = burin_talk_open(&talk, app, &options, err);
    if (status)
        return status;
    if (!settings->json && (isatty(STDERR_FILENO) || settings->verbose)) {
        const struct colors colors = choose_colors();
        talk.thoughts = stderr;
        talk.thought_begin = colors.dim;
        talk.thought_end = colors.off;
    }
    talk.attached = &attached;
    status = given && !settings->chat ? answer_once(&talk, prompt, err)
                                      : chat(&talk, prompt, err);
    burin_talk_close(&talk);
    return status;
}
