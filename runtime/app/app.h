/* runtime/app/app.h -- What the subcommands share: the model, what the user asked for, and
 * the way to weights, tokenizer and engine.
 *
 * Output   A command's answer goes to stdout and everything else to stderr. A command that
 *          fails returns a status; app.c prints the message and chooses the exit code.
 * Memory   app->arena lives as long as the command.
 * Threads  One; the engine has its own. */
#ifndef BURIN_APP_APP_H
#define BURIN_APP_APP_H

#include "runtime/app/settings.h"
#include "runtime/base/arena.h"
#include "runtime/base/span.h"
#include "runtime/base/status.h"
#include "runtime/burin.h"
#include "runtime/model.h"
#include "runtime/plan/plan.h"
#include "runtime/text/tokenizer.h"
#include "runtime/weights/checkpoint.h"

#include <stddef.h>
#include <stdint.h>

#define BURIN_VERSION "0.1.0"

struct burin_app {
    const struct burin_model *model;
    struct burin_graphs graphs; /* as --graphs and --eager say */
    /* The GPU that this machine has for it, for a plan without --card; NULL, or *found false: the
     * CPU. */
    enum burin_status (*find_card)(
            const struct burin_app *app,
            struct burin_card *card,
            bool *found,
            struct burin_error *err);
    const char *program; /* as the user called it */
    enum burin_command command;
    struct burin_settings settings;
    struct burin_arena arena;
    int stdout_error; /* errno of the first write that failed, for burin_app_flush() */
};

#ifdef __clang__
#define BURIN_COMPILER "clang " __clang_version__
#else
#define BURIN_COMPILER "gcc " __VERSION__
#endif

/* All of a binary: read the command line, run the command, return its exit code. argv is
 * reordered. */
int burin_app_main(const struct burin_model *model, int argc, const char **argv);

/* Let stdout be written: BURIN_EIO with the reason where this or an earlier flush failed. */
enum burin_status burin_app_flush(struct burin_app *app, struct burin_error *err);

/* The subcommands, one file each. */
enum burin_status burin_app_run(struct burin_app *app, struct burin_error *err);
enum burin_status burin_app_eval(struct burin_app *app, struct burin_error *err);
enum burin_status burin_app_bench(struct burin_app *app, struct burin_error *err);
enum burin_status burin_app_tokenize(struct burin_app *app, struct burin_error *err);
enum burin_status burin_app_plan(struct burin_app *app, struct burin_error *err);
enum burin_status burin_app_info(struct burin_app *app, struct burin_error *err);

/* ---- open.c ---------------------------------------------------------------------- */

/* Tokens that a sequence may reach at most, from --ctx-size and the model's own. */
int burin_app_context(const struct burin_app *app);

/* `n`, or the processors of this machine where those are fewer, told on stderr; "-t 64" of
 * another machine's script must not make 64 threads wait for 2. -1 is left alone. */
int burin_app_threads(const struct burin_app *app, int n);

/* Options for an engine as the user asked: weights, target, threads, context, batch, KV
 * dtype. What a command needs beyond it (outputs, sequences) it sets itself. BURIN_EUSAGE for
 * one that makes no sense to this model or machine: commands call it before they read or load
 * anything. */
enum burin_status burin_app_options(
        struct burin_app *app, struct burin_options *options, struct burin_error *err);

/* burin_engine_open() with a bar on stderr. */
enum burin_status burin_app_open(
        const struct burin_app *app,
        struct burin_options *options,
        struct burin_engine **engine,
        struct burin_error *err);

/* The weights that would be used, and their tokenizer. */
struct burin_found {
    struct burin_checkpoint checkpoint;
    struct burin_tokenizer *tokenizer; /* NULL where the weights bring none */
    size_t tokenizer_bytes;
};
enum burin_status burin_app_find(
        struct burin_app *app, struct burin_found *found, struct burin_error *err);
void burin_found_close(struct burin_found *found);

/* BURIN_EMISSING: these weights bring no tokenizer. */
enum burin_status burin_app_no_tokenizer(const char *weights, struct burin_error *err);

/* ---- make_plan.c ----------------------------------------------------------------- */

/* What --kv-cache-dtype says; *given is false without it. */
enum burin_status burin_app_kv_dtype(
        const struct burin_app *app,
        bool *given,
        enum burin_dtype *dtype,
        struct burin_error *err);

/* Which of the limits is given, and what it says. */
void burin_app_limit(
        const struct burin_app *app,
        enum burin_limit *limit,
        int64_t *bytes,
        double *fraction);

/* Fill app->graphs. BURIN_EUSAGE also for a step of more sequences than the command runs. */
enum burin_status burin_app_graphs(struct burin_app *app, struct burin_error *err);

/* A plan as the engine would make it from the same settings, and what it was made of.
 * `tokenizer_bytes` is what the weights bring, NULL where there are none to ask. */
enum burin_status burin_app_make_plan(
        struct burin_app *app,
        const size_t *tokenizer_bytes,
        struct burin_plan *plan,
        struct burin_plan_request *request,
        struct burin_error *err);

/* Make one and write it to stdout: BURIN_ENOMEM where it does not fit. */
enum burin_status burin_app_show_plan(
        struct burin_app *app, const size_t *tokenizer_bytes, struct burin_error *err);

/* ---- rehearse.c ------------------------------------------------------------------ */

/* Make a plan and run start-up for it on a virtual card: its report to stdout, or the plan as JSON
 * with what each owner obtained; without that where it is refused. */
enum burin_status burin_app_rehearse(
        struct burin_app *app, const size_t *tokenizer_bytes, struct burin_error *err);

/* ---- last_start.c ---------------------------------------------------------------- */

/* Keep what a start on a GPU obtained, where `info --last-start` finds it. What cannot be kept is
 * not. */
void burin_app_keep_start(const struct burin_app *app, const struct burin_engine *engine);

/* Write it to stdout. BURIN_EIO where there was none. */
enum burin_status burin_app_show_start(
        const struct burin_app *app, struct burin_error *err);

/* ---- input.c --------------------------------------------------------------------- */

/* Where the user's own text breaks its format it is his mistake, not the weights': say whose
 * text it is and make BURIN_EFORMAT a BURIN_EUSAGE. Any other status is handed on. */
enum burin_status burin_app_blame_text(
        enum burin_status status, const char *whose, struct burin_error *err);

/* All of a file, "-" for stdin, into app->arena, with a NUL behind it. At most 1 GiB. */
enum burin_status burin_app_read(
        struct burin_app *app,
        const char *path,
        struct burin_span *text,
        struct burin_error *err);

/* What the user gave as text: -p, -f, the words of the command line, or a pipe, to the last
 * byte. *given is false where there is none of them. */
enum burin_status burin_app_text(
        struct burin_app *app,
        struct burin_span *text,
        bool *given,
        struct burin_error *err);

/* The same as a prompt: one newline at the end of a file or pipe is no part of it, and what the
 * context cannot hold is refused by its bytes (BURIN_ELIMIT, both numbers) before it is held. */
enum burin_status burin_app_prompt(
        struct burin_app *app,
        struct burin_span *text,
        bool *given,
        struct burin_error *err);

#endif
