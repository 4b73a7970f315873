#include "runtime/app/app.h"

#include "runtime/app/interrupt.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct command {
    enum burin_status (*run)(struct burin_app *app, struct burin_error *err);
    const char *usage; /* behind the command's name */
    const char *does;  /* in the list of commands */
    const char *says;  /* in its own --help */
    const char *examples[4];
};

static const struct command commands[BURIN_N_COMMANDS] = {
    [BURIN_RUN] = {
        burin_app_run,
        "[PROMPT]",
        "answer a prompt; chat where there is none",
        "Answers a prompt: the words behind run, -p, -f, or what is piped in (without a last\n"
        "newline). Without one, at a terminal, it chats. The answer goes to stdout, everything\n"
        "else to stderr.\n",
        { "run \"Why is the sky blue?\"",
          "run --temp 0.8 --top-p 0.9 --seed 1 -n 200 \"Write a haiku about rain\"",
          "run -sys \"Answer in one word\" < question.txt",
          "run --raw -n 32 \"Once upon a time\"" },
    },
    [BURIN_EVAL] = {
        burin_app_eval,
        "--text FILE",
        "perplexity of a text, probabilities of given tokens",
        "--text tokenizes a file once, as plain text, and cuts it into windows of N tokens, one\n"
        "behind the other; each is run alone from position 0, begins with the tokenizer's bos\n"
        "where it has one, and all its tokens but the first are scored. What is left over for\n"
        "a last, shorter window is scored only if it is the only one. perplexity =\n"
        "exp(-mean log p). --ids scores token ids, a line of them is a sequence: for each\n"
        "position the likeliest next id, its log p, and that of the id that follows.\n",
        { "eval --text book.txt",
          "eval --text book.txt --window 1024 --exact --json",
          "eval --ids tokens.txt --json" },
    },
    [BURIN_BENCH] = {
        burin_app_bench,
        "",
        "speed of prompts and of generation",
        "Times prompts of p tokens (pp) and the making of n tokens (tg): the median of r runs\n"
        "after one to warm up, in tokens a second, with the standard deviation. The memory's\n"
        "read bandwidth is measured before and behind it, with as many threads: the bytes that\n"
        "tokens read in a second, divided by the most it gave, are the share of the possible\n"
        "speed that was reached. Caches can make it more than all. On a GPU, whose memory is\n"
        "not timed, the speed is told alone.\n",
        { "bench", "bench -p 128,512 -n 64 -t 1,2 -r 7", "bench -o json > speed.json" },
    },
    [BURIN_TOKENIZE] = {
        burin_app_tokenize,
        "[TEXT]",
        "the tokens of a text",
        "Prints the ids and pieces of a text: the words behind tokenize, -p, -f, or what is\n"
        "piped in, to the last byte.\n",
        { "tokenize \"Hello, world\"", "tokenize --ids < book.txt", "tokenize --json \"a 12\"" },
    },
    [BURIN_PLAN] = {
        burin_app_plan,
        "",
        "who would own how many bytes, and what fits",
        "Says before anything is loaded which part will own how many bytes, whether they fit,\n"
        "and if not (exit code 3) by how much, and the smallest change that mends it. Needs no\n"
        "weights; with them the tokenizer's bytes are derived, not assumed.\n",
        { "plan", "plan --ctx-size 8192 --parallel 8", "plan --card 512MiB --json" },
    },
    [BURIN_INFO] = {
        burin_app_info,
        "",
        "the model, its families, the weights found",
        "Says what this binary is: model, sizes, formats, the families it has and which of\n"
        "them this processor runs, how it was built, and which weights it finds.\n",
        { "info", "info --json" },
    },
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void overview(const struct burin_app *app, FILE *out)
{
    fprintf(out, "usage: %s COMMAND [options]\n\n%s %s (%s), one engine for one model.\n\n",
            app->program, app->model->architecture, app->model->variant,
            app->model->recipe);
    for (int i = 0; i < BURIN_N_COMMANDS; i++)
        fprintf(out, "  %-10s %s\n", burin_command_names[i], commands[i].does);
    fprintf(out, "\nAlone at a terminal it chats. COMMAND --help lists a command's "
                 "options; each is\n"
                 "also read from the environment: BURIN_CTX_SIZE for "
                 "--ctx-size.\n\nexamples:\n");
    for (int i = 0; i < BURIN_N_COMMANDS; i++)
        fprintf(out, "  %s %s\n", app->program, commands[i].examples[0]);
    fprintf(out,
            "\nexit codes: 0 done, 1 failed, 2 usage, 3 does not fit, 4 something needed\n"
            "is missing or wrong (weights, a driver, NVRTC), 130 interrupted\n");
}

static void command_help(const struct burin_app *app, FILE *out)
{
    const struct command *command = &commands[app->command];
    const char *name = burin_command_names[app->command];
    fprintf(out, "usage: %s %s %s%s[options]\n\n%s\n", app->program, name, command->usage,
            *command->usage ? " " : "", command->says);
    burin_settings_help(app->command, out);
    fprintf(out, "\nexamples:\n");
    for (int i = 0; i < 4 && command->examples[i]; i++)
        fprintf(out, "  %s %s\n", app->program, command->examples[i]);
}

static enum burin_status unknown_command(const char *word, struct burin_error *err)
{
    int nearest = 0, best = INT_MAX;
    for (int i = 0; i < BURIN_N_COMMANDS; i++) {
        const int distance = burin_edit_distance(word, burin_command_names[i]);
        if (distance < best) {
            best = distance;
            nearest = i;
        }
    }
    if (best <= 2)
        return burin_fail(
                err, BURIN_EUSAGE, "'%.40s' is not a command; %s is near", word,
                burin_command_names[nearest]);
    return burin_fail(
            err, BURIN_EUSAGE,
            "'%.40s' is not a command; to answer a prompt: run \"%.40s\"", word, word);
}

/* The command that argv asks for; *skip arguments are its name. */
static enum burin_status choose_command(
        enum burin_command *command,
        int argc,
        const char **argv,
        int *skip,
        struct burin_error *err)
{
    *skip = 0;
    *command = BURIN_RUN;
    if (argc == 0 || argv[0][0] == '-')
        return BURIN_OK;
    *command = burin_command_by_name(argv[0]);
    if (*command == BURIN_N_COMMANDS)
        return unknown_command(argv[0], err);
    *skip = 1;
    return BURIN_OK;
}

static bool is_one_of(const char *word, const char *a, const char *b)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

static enum burin_status run_command(
        struct burin_app *app, int argc, const char **argv, struct burin_error *err)
{
    int skip = 0;
    enum burin_status status = choose_command(&app->command, argc, argv, &skip, err);
    if (!status)
        status = burin_settings_read(
                &app->settings, app->command, argc - skip, argv + skip, err);
    if (status)
        return status;
    if (app->settings.help) {
        command_help(app, stdout);
        return BURIN_OK;
    }
    for (int i = 0; i < app->settings.notes.n; i++)
        fprintf(stderr, "%s: %s\n", app->program, app->settings.notes.values[i]);
    return commands[app->command].run(app, err);
}

enum burin_status burin_app_flush(struct burin_app *app, struct burin_error *err)
{
    errno = 0;
    if ((fflush(stdout) || ferror(stdout)) && !app->stdout_error)
        app->stdout_error = errno ? errno : EIO;
    if (!app->stdout_error)
        return BURIN_OK;
    return burin_fail(err, BURIN_EIO, "stdout: %s", strerror(app->stdout_error));
}

int burin_app_main(const struct burin_model *model, int argc, const char **argv)
{
    static struct burin_error err;
    struct burin_app app = { .model = model, .command = BURIN_N_COMMANDS };
    const struct burin_shown program = burin_show(burin_span_of(argc > 0 ? argv[0] : ""));
    app.program = *program.text ? base_name(program.text) : model->name;
    const int n = argc > 0 ? argc - 1 : 0;
    argv += argc > 0;
    burin_interrupt_ends();
    /* What stdio writes by itself, when its buffer is full, fails without a reason: a plan or
     * an answer as JSON is smaller than this. */
    static char stdout_buffer[1 << 18];
    if (!isatty(STDOUT_FILENO))
        setvbuf(stdout, stdout_buffer, _IOFBF, sizeof stdout_buffer);

    enum burin_status status = BURIN_OK;
    if (n > 0 && (is_one_of(argv[0], "-h", "--help") || is_one_of(argv[0], "help", "-?")))
        overview(&app, stdout);
    else if (n > 0 && is_one_of(argv[0], "--version", "version"))
        printf("%s %s, built with %s\n", model->name, BURIN_VERSION, BURIN_COMPILER);
    else
        status = run_command(&app, n, argv, &err);
    burin_arena_close(&app.arena);

    if (!status)
        status = burin_app_flush(&app, &err);
    if (status && status != BURIN_ESTOPPED) {
        const bool known = app.command < BURIN_N_COMMANDS;
        fprintf(stderr, "%s%s%s: %s\n", app.program, known ? " " : "",
                known ? burin_command_names[app.command] : "", err.message);
        if (status == BURIN_EUSAGE)
            fprintf(stderr, "%s%s%s --help says more\n", app.program, known ? " " : "",
                    known ? burin_command_names[app.command] : "");
    }
    return burin_exit_code(status);
}
