#include "runtime/app/settings.h"

#include "runtime/base/put.h"
#include "runtime/base/units.h"
#include "runtime/device/machine.h"
#include "runtime/plan/plan.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const burin_command_names[BURIN_N_COMMANDS] = {
    [BURIN_RUN] = "run",           [BURIN_EVAL] = "eval", [BURIN_BENCH] = "bench",
    [BURIN_TOKENIZE] = "tokenize", [BURIN_PLAN] = "plan", [BURIN_INFO] = "info",
};

enum burin_command burin_command_by_name(const char *name)
{
    int i = 0;
    while (i < BURIN_N_COMMANDS && strcmp(burin_command_names[i], name) != 0)
        i++;
    return (enum burin_command)i;
}

/* ---- The table ------------------------------------------------------------------- */

enum kind {
    FLAG,
    TEXT,
    TEXTS,
    DEVICE,   /* a text that names one */
    PICTURES, /* files; PICTURES and VIDEOS share a list, in order */
    VIDEOS,
    INTEGER,
    SECONDS, /* an integer, "60" or "60s" */
    CONTEXT, /* an integer; 0 and -1 both mean the model's own */
    INTEGERS,
    SEED,
    GIVEN_BYTES,
    GIVEN_INTEGER,
    GIVEN_REAL,
    GIVEN_SHARE, /* a real above 0 and at most 1 */
    CHOICE,      /* `choices` separated by '|', the field holds the index */
    NOTED,       /* accepted; `help` is said on stderr */
};

struct option {
    const char *names;  /* separated by spaces: shown */
    const char *silent; /* accepted too */
    const char *value;  /* what stands behind it: "N", "PATH"; NULL for a flag */
    const char *help;
    unsigned commands;
    enum kind kind;
    size_t field;
    double least, most;
    const char *fallback; /* the default, as one would type it */
    const char *choices;
};

#define FIELD(name) offsetof(struct burin_settings, name)
enum {
    RUN = 1 << BURIN_RUN,
    EVAL = 1 << BURIN_EVAL,
    BENCH = 1 << BURIN_BENCH,
    TOKENIZE = 1 << BURIN_TOKENIZE,
    PLAN = 1 << BURIN_PLAN,
    INFO = 1 << BURIN_INFO,
    ENGINE = RUN | EVAL | BENCH, /* commands that open one */
    SIZED = ENGINE | PLAN,
    ALL = SIZED | TOKENIZE | INFO,
};

static const struct option options[] = {
    { "-m --model", "--model-path", "PATH", "weights: a file or a folder", ALL, TEXT,
      FIELD(weights), 0, 0, NULL, NULL },

    { "-p --prompt", NULL, "TEXT", "the prompt; also what stands without an option",
      RUN | TOKENIZE, TEXT, FIELD(prompt), 0, 0, NULL, NULL },
    { "-f --file", "--prompt-file", "FILE", "the prompt from a file, - for stdin",
      RUN | TOKENIZE, TEXT, FIELD(prompt_file), 0, 0, NULL, NULL },
    { "-sys --system-prompt", "--system", "TEXT", "the system message, \"\" for none", RUN,
      TEXT, FIELD(system), 0, 0, NULL, NULL },
    { "--image", NULL, "FILE", "a picture before the prompt (repeat for several)", RUN,
      PICTURES, FIELD(attachments), 0, 0, NULL, NULL },
    { "--video", NULL, "FILE", "a video, in order with the pictures", RUN, VIDEOS,
      FIELD(attachments), 0, 0, NULL, NULL },
    { "-cnv --interactive", "--conversation -i --chat", NULL,
      "chat, after a first prompt too", RUN, FLAG, FIELD(chat), 0, 0, NULL, NULL },
    { "--raw", "-no-cnv --no-conversation --no-chat", NULL,
      "continue the text as it is, without a chat format", RUN, FLAG, FIELD(raw), 0, 0,
      NULL, NULL },
    { "-n --predict", "--n-predict --max-tokens --max-new", "N",
      "tokens to make at most, -1 until it stops", RUN, INTEGER, FIELD(n_predict), -1,
      1 << 30, "-1", NULL },
    { "--think", "--enable-thinking --reasoning", NULL,
      "let the model think before it answers", RUN, FLAG, FIELD(think), 0, 0, NULL, NULL },
    { "--temp", "--temperature", "F", "0 takes the likeliest token; default: the model's",
      RUN, GIVEN_REAL, FIELD(temperature), 0, 100, NULL, NULL },
    { "--top-k", NULL, "N", "draw from the N likeliest, 0 for all; default: the model's",
      RUN, GIVEN_INTEGER, FIELD(top_k), -1, 1 << 30, NULL, NULL },
    { "--top-p", NULL, "F", "draw from the likeliest that sum to F; default: the model's",
      RUN, GIVEN_SHARE, FIELD(top_p), 0, 1, NULL, NULL },
    { "--min-p", NULL, "F", "draw from those above F x the likeliest; default: the model's",
      RUN, GIVEN_REAL, FIELD(min_p), 0, 1, NULL, NULL },
    { "-s --seed", NULL, "N", "of the draws, -1 for a random one", RUN, SEED, FIELD(seed),
      -1, 0, "-1", NULL },
    { "--stop", "-r --reverse-prompt", "TEXT", "end before this text (repeat for several)",
      RUN, TEXTS, FIELD(stop), 0, 0, NULL, NULL },
    { "--ignore-eos", NULL, NULL, "go on where the model would stop", RUN, FLAG,
      FIELD(ignore_eos), 0, 0, NULL, NULL },

    { "--text", "-f --file", "FILE", "perplexity of this text", EVAL, TEXT,
      FIELD(text_file), 0, 0, NULL, NULL },
    { "--ids", NULL, "FILE", "score given tokens: a line of ids is a sequence", EVAL, TEXT,
      FIELD(ids_file), 0, 0, NULL, NULL },
    { "--window", NULL, "N", "tokens in a window", EVAL, INTEGER, FIELD(window), 2, 1 << 24,
      "512", NULL },
    { "--score-from", NULL, "N", "leave the first N positions of each window unscored",
      EVAL, INTEGER, FIELD(score_from), 0, 1 << 24, "0", NULL },
    { "--dump-logits", NULL, "FILE", "write the logits of --ids, rows of n_vocab f32", EVAL,
      TEXT, FIELD(dump_file), 0, 0, NULL, NULL },

    { "-p --n-prompt", NULL, "LIST", "prompt lengths to time", BENCH, INTEGERS,
      FIELD(bench_prompt), 0, 1 << 24, "512", NULL },
    { "-n --n-gen", NULL, "LIST", "numbers of tokens to make", BENCH, INTEGERS,
      FIELD(bench_generate), 0, 1 << 24, "128", NULL },
    { "-r --repetitions", "--reps", "N", "times each is run", BENCH, INTEGER,
      FIELD(repetitions), 1, 1000, "5", NULL },
    { "-o --output", NULL, "md|json", "table or JSON", BENCH, CHOICE, FIELD(output_form), 0,
      0, "md", "md|json" },
    { "-t --threads", NULL, "LIST", "numbers of threads, -1 for the physical cores", BENCH,
      INTEGERS, FIELD(bench_threads), -1, BURIN_MAX_THREADS, "-1", NULL },

    { "--parse-special", NULL, NULL, "read <|...|> in the text as control tokens", TOKENIZE,
      FLAG, FIELD(parse_special), 0, 0, NULL, NULL },
    { "--ids", NULL, NULL, "print the ids alone, on one line", TOKENIZE, FLAG,
      FIELD(ids_only), 0, 0, NULL, NULL },

    { "-t --threads", NULL, "N", "threads, -1 for the physical cores", RUN | EVAL | PLAN,
      INTEGER, FIELD(n_threads), -1, BURIN_MAX_THREADS, "-1", NULL },
    { "-c --ctx-size", "--ctx --max-model-len --context-length --max-context", "N",
      "tokens a sequence may reach, 0 for the model's own", RUN | EVAL | PLAN | BENCH,
      CONTEXT, FIELD(n_ctx), -1, INT_MAX, NULL, NULL },
    { "-np --parallel", "--max-num-seqs --max-running-requests --max-concurrent", "N",
      "sequences at once; default 1, on a GPU what the card carries", PLAN, INTEGER,
      FIELD(n_sequences), 1, BURIN_MAX_PARALLEL, NULL, NULL },
    { "-b --batch-size",
      "-ub --ubatch-size --max-num-batched-tokens --prefill-chunk --prefill-chunk-size",
      "N", "tokens a step computes at most", SIZED, INTEGER, FIELD(n_batch), 1,
      BURIN_MAX_BATCH, "2048", NULL },
    { "--kv-cache-dtype", "-ctk -ctv --kv-dtype --cache-type-k --cache-type-v", "TYPE",
      "of keys and values: bf16, f32, on a GPU fp8, nvfp4", SIZED, TEXT, FIELD(kv_dtype), 0,
      0, NULL, NULL },
    { "--exact", NULL, NULL, "compute in f32 throughout", SIZED | INFO, FLAG, FIELD(exact),
      0, 0, NULL, NULL },
    { "-dev --device", NULL, "DEVICE",
      "auto, cpu, cuda or cuda:1; auto takes a GPU that can run it", SIZED, DEVICE,
      FIELD(device), 0, 0, NULL, NULL },
    { "--target", NULL, "FAMILY", "avx512, portable, sm80 ...; default: what is there",
      SIZED | INFO, TEXT, FIELD(target), 0, 0, NULL, NULL },
    { "--kv-tokens", NULL, "N", "tokens that the KV cache holds, of all sequences", SIZED,
      INTEGER, FIELD(kv_tokens), 1, INT_MAX, NULL, NULL },
    { "--kv-bytes", "--kv-cache-memory-bytes", "SIZE", "bytes of the KV cache", SIZED,
      GIVEN_BYTES, FIELD(kv_bytes), 1, 0, NULL, NULL },
    { "--vram-limit", "--memory-limit", "SIZE", "memory that may be used: 8GiB", SIZED,
      GIVEN_BYTES, FIELD(vram_limit), 1, 0, NULL, NULL },
    { "--vram-reserve", "--memory-reserve", "SIZE", "memory to leave for others", SIZED,
      GIVEN_BYTES, FIELD(vram_reserve), 0, 0, NULL, NULL },
    { "--vram-fraction", "--gpu-memory-utilization --mem-fraction-static", "F",
      "share of the memory that may be used", SIZED, GIVEN_SHARE, FIELD(vram_fraction), 0,
      1, NULL, NULL },
    { "--wait-for-vram", NULL, "SECONDS", "for a GPU's memory to become free", ENGINE,
      SECONDS, FIELD(wait_for_vram), 0, 86400, "0", NULL },
    { "--card", NULL, "CARD", "plan for it: rtx5090, or 8GiB, or 23.46GiB,sm_120", PLAN,
      TEXT, FIELD(card), 0, 0, NULL, NULL },
    { "--rehearse", NULL, NULL, "run start-up on a virtual card", PLAN, FLAG,
      FIELD(rehearse), 0, 0, NULL, NULL },
    { "--draft", "--draft-tokens --draft-max --spec-draft-n-max --num-speculative-tokens",
      "K", "tokens drafted a step and sequence", PLAN, INTEGER, FIELD(n_draft), 0,
      BURIN_MAX_DRAFT, "0", NULL },
    { "--images", NULL, "N", "pictures kept at once; default 1 on a GPU", PLAN,
      GIVEN_INTEGER, FIELD(n_images), 0, BURIN_MAX_ITEMS, NULL, NULL },
    { "--video-frames", NULL, "N",
      "frames looked at of a video (default 32), or planned for", RUN | PLAN, INTEGER,
      FIELD(n_frames), 0, BURIN_MAX_ITEMS, "0", NULL },
    { "--audio-clips", NULL, "N", "pieces of sound kept at once", PLAN, INTEGER,
      FIELD(n_clips), 0, BURIN_MAX_ITEMS, "0", NULL },
    { "--graphs", NULL, "LIST",
      "none (or --eager), or step=1 (repeat: encode_image=70,280)", ENGINE, TEXTS,
      FIELD(graphs), 0, 0, NULL, NULL },
    { "--graphs", NULL, "LIST",
      "none (or --eager), or step=1,2,4 (repeat for other programs)", PLAN, TEXTS,
      FIELD(graphs), 0, 0, NULL, NULL },
    { "", "--eager --enforce-eager", NULL, "--graphs none", SIZED, FLAG, FIELD(eager), 0, 0,
      NULL, NULL },
    { "--graph-padding", NULL, "PERCENT", "of a step that may be padding", SIZED, INTEGER,
      FIELD(graph_padding), 0, 99, "25", NULL },
    { "--fast-gemm", NULL, NULL, "cuBLASLt may multiply; bits may depend on the batch",
      SIZED, FLAG, FIELD(fast_gemm), 0, 0, NULL, NULL },
    { "--encoder-arena", NULL, "SIZE", "arena that an encoder may use at most", RUN | PLAN,
      GIVEN_BYTES, FIELD(encoder_arena), 1, 0, NULL, NULL },
    { "--assume", NULL, "WHAT", "fixed=SIZE,graphs=SIZE in place of what is derived", PLAN,
      TEXT, FIELD(assume), 0, 0, NULL, NULL },
    { "--svg", NULL, "FILE", "draw the card", PLAN, TEXT, FIELD(svg_file), 0, 0, NULL,
      NULL },
    { "--explain", NULL, "BUFFER", "where it comes from and what shares its bytes", PLAN,
      TEXT, FIELD(explain), 0, 0, NULL, NULL },
    { "--against", NULL, "FILE", "what changed since this plan's --json", PLAN, TEXT,
      FIELD(against_file), 0, 0, NULL, NULL },

    { "--last-start", NULL, NULL, "what the last start on a GPU planned and obtained", INFO,
      FLAG, FIELD(last_start), 0, 0, NULL, NULL },

    { "--json", NULL, NULL, "one JSON object on stdout", ALL, FLAG, FIELD(json), 0, 0, NULL,
      NULL },
    { "-v --verbose", NULL, NULL, "say more on stderr", ALL, FLAG, FIELD(verbose), 0, 0,
      NULL, NULL },
    { "-h --help", "-? --usage", NULL, "this page", ALL, FLAG, FIELD(help), 0, 0, NULL,
      NULL },

    { "", "-ngl --n-gpu-layers --gpu-layers", "N",
      "-ngl does nothing here: all layers run on one device", ALL, NOTED, 0, 0, 0, NULL,
      NULL },
    { "", "--mmproj", "FILE", "--mmproj is not needed: a model brings its own encoder", ALL,
      NOTED, 0, 0, 0, NULL, NULL },
};
enum { N_OPTIONS = sizeof options / sizeof *options };

bool burin_settings_row(
        int i,
        const char **names,
        unsigned *commands,
        const char **help,
        const char **value)
{
    if (i < 0 || i >= N_OPTIONS)
        return false;
    *names = options[i].names;
    *commands = options[i].commands;
    *help = options[i].help;
    *value = options[i].value;
    return true;
}

/* ---- Words ----------------------------------------------------------------------- */

/* The next of the words separated by spaces; false at the end. */
static bool next_word(const char **rest, char *word, size_t capacity)
{
    const char *begin = *rest ? *rest + strspn(*rest, " ") : "";
    const size_t length = strcspn(begin, " ");
    if (!length)
        return false;
    snprintf(word, capacity, "%.*s", (int)length, begin);
    *rest = begin + length;
    return true;
}

static bool has_name(const char *names, const char *name, size_t length)
{
    char word[48];
    while (next_word(&names, word, sizeof word))
        if (strlen(word) == length && strncmp(word, name, length) == 0)
            return true;
    return false;
}

static const struct option *find(unsigned commands, const char *name, size_t length)
{
    for (int i = 0; i < N_OPTIONS; i++)
        if ((options[i].commands & commands) && (has_name(options[i].names, name, length) ||
                                                 has_name(options[i].silent, name, length)))
            return &options[i];
    return NULL;
}

int burin_edit_distance(const char *a, const char *b)
{
    enum { MOST = 63 };
    const int n = (int)strnlen(a, MOST), m = (int)strnlen(b, MOST);
    int row[MOST + 1];
    for (int j = 0; j <= m; j++)
        row[j] = j;
    for (int i = 1; i <= n; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            const int above = row[j];
            int best = diagonal + (a[i - 1] != b[j - 1]);
            if (above + 1 < best)
                best = above + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
            diagonal = above;
        }
    }
    return row[m];
}

/* The long name of an option, or its only one: "--ctx-size". Where none is shown the first is
 * what another option's help calls it: "--eager". */
static void main_name(const struct option *option, char *name, size_t capacity)
{
    const char *rest = option->names;
    name[0] = '\0';
    while (next_word(&rest, name, capacity))
        ;
    rest = option->silent;
    if (!*option->names)
        next_word(&rest, name, capacity);
}

/* What it is called in the environment: "BURIN_CTX_SIZE". */
static void variable_name(const struct option *option, char *variable, size_t capacity)
{
    char name[48];
    main_name(option, name, sizeof name);
    snprintf(variable, capacity, "BURIN_%s", name + strspn(name, "-"));
    for (char *c = variable; *c; c++)
        *c = (char)(*c == '-' ? '_' : toupper((unsigned char)*c));
}

static enum burin_status unknown_option(
        enum burin_command command,
        const char *name,
        size_t length,
        struct burin_error *err)
{
    char typed[64];
    snprintf(typed, sizeof typed, "%.*s", (int)length, name);
    const struct option *elsewhere = find(ALL, typed, strlen(typed));
    if (elsewhere)
        for (int i = 0; i < BURIN_N_COMMANDS; i++)
            if (elsewhere->commands & (1u << i))
                return burin_fail(
                        err, BURIN_EUSAGE,
                        "%s is an option of `%s`, `%s` has no use for it", typed,
                        burin_command_names[i], burin_command_names[command]);

    char nearest[48] = "";
    int best = INT_MAX;
    for (int i = 0; i < N_OPTIONS; i++) {
        const char *lists[] = { options[i].names, options[i].silent };
        for (int k = 0; k < 2; k++) {
            char word[48];
            while ((options[i].commands & (1u << command)) &&
                   next_word(&lists[k], word, sizeof word)) {
                const int distance = burin_edit_distance(typed, word);
                if (distance < best) {
                    best = distance;
                    snprintf(nearest, sizeof nearest, "%s", word);
                }
            }
        }
    }
    if (best <= (int)strlen(typed) / 3 + 1)
        return burin_fail(
                err, BURIN_EUSAGE, "unknown option %s; %s is near", typed, nearest);
    return burin_fail(err, BURIN_EUSAGE, "unknown option %s", typed);
}

/* ---- Values ---------------------------------------------------------------------- */

/* Where a value came from, for messages: "--ctx-size" or "BURIN_CTX_SIZE". */
struct source {
    const struct option *option;
    const char *name;
};

static void *field_of(struct burin_settings *settings, const struct option *option)
{
    return (char *)settings + option->field;
}

static enum burin_status read_number(
        const struct source *from,
        const char *text,
        bool whole,
        double *number,
        struct burin_error *err)
{
    const struct option *option = from->option;
    char *end;
    *number = strtod(text, &end);
    const bool plain = text[strspn(text, "+-.0123456789eE")] == '\0'; /* no hex, inf, nan */
    if (end == text || *end || !plain || (whole && *number != trunc(*number)))
        return burin_fail(
                err, BURIN_EUSAGE, "%s takes a %snumber, not '%.60s'", from->name,
                whole ? "whole " : "", text);
    if (option->kind == SEED ? *number < option->least || *number >= 0x1p53
                             : *number < option->least || *number > option->most) {
        if (option->most >= 1 << 20 || option->kind == SEED)
            return burin_fail(
                    err, BURIN_EUSAGE, "%s is at least %.10g%s, not %.60s", from->name,
                    option->least, *number > 0 ? " and not that large" : "", text);
        return burin_fail(
                err, BURIN_EUSAGE, "%s goes from %.10g to %.10g, not %.60s", from->name,
                option->least, option->most, text);
    }
    return BURIN_OK;
}

static enum burin_status read_seconds(
        const struct source *from,
        const char *text,
        double *number,
        struct burin_error *err)
{
    char digits[64];
    const size_t n = strlen(text);
    if (n < 2 || n > sizeof digits || text[n - 1] != 's')
        return read_number(from, text, true, number, err);
    snprintf(digits, sizeof digits, "%.*s", (int)n - 1, text);
    return read_number(from, digits, true, number, err);
}

static enum burin_status too_many(const struct source *from, struct burin_error *err)
{
    return burin_fail(
            err, BURIN_EUSAGE, "%s may be given %d times", from->name, BURIN_MAX_LIST);
}

static enum burin_status read_share(
        double *share, const struct source *from, const char *text, struct burin_error *err)
{
    const enum burin_status status = read_number(from, text, false, share, err);
    if (!status && !((float)*share > 0))
        return burin_fail(
                err, BURIN_EUSAGE, "%s is above 0 and at most 1, not %.60s", from->name,
                text);
    return status;
}

static enum burin_status read_numbers(
        struct burin_numbers *list,
        const struct source *from,
        const char *text,
        struct burin_error *err)
{
    list->n = 0;
    while (true) {
        char word[32];
        const size_t length = strcspn(text, ",");
        snprintf(word, sizeof word, "%.*s", (int)length, text);
        double number;
        enum burin_status status = read_number(from, word, true, &number, err);
        if (status)
            return status;
        if (list->n == BURIN_MAX_LIST)
            return burin_fail(
                    err, BURIN_EUSAGE, "%s takes at most %d numbers", from->name,
                    BURIN_MAX_LIST);
        list->values[list->n++] = (int)number;
        if (!text[length])
            return BURIN_OK;
        text += length + 1;
    }
}

static enum burin_status read_choice(
        int *index, const struct source *from, const char *text, struct burin_error *err)
{
    const char *rest = from->option->choices;
    for (int i = 0; *rest; i++) {
        const size_t length = strcspn(rest, "|");
        if (strlen(text) == length && strncmp(text, rest, length) == 0) {
            *index = i;
            return BURIN_OK;
        }
        rest += length + (rest[length] != '\0');
    }
    return burin_fail(
            err, BURIN_EUSAGE, "%s is one of %s, not '%.60s'", from->name,
            from->option->choices, text);
}

static enum burin_status read_flag(
        bool *flag, const struct source *from, const char *text, struct burin_error *err)
{
    static const char *const words[] = {
        "0", "1", "false", "true", "off", "on", "no", "yes"
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text, words[i]) == 0) {
            *flag = i % 2 == 1;
            return BURIN_OK;
        }
    return burin_fail(err, BURIN_EUSAGE, "%s is 0 or 1, not '%.60s'", from->name, text);
}

static enum burin_status set(
        struct burin_settings *settings,
        const struct source *from,
        const char *text,
        struct burin_error *err)
{
    const struct option *option = from->option;
    void *field = field_of(settings, option);
    enum burin_status status = BURIN_OK;
    double number = 0;
    int device;
    switch (option->kind) {
    case FLAG:
        return read_flag(field, from, text, err);
    case TEXT:
        *(const char **)field = text;
        return BURIN_OK;
    case DEVICE:
        *(const char **)field = text;
        return burin_machine_device(text, &device)
                       ? BURIN_OK
                       : burin_fail(
                                 err, BURIN_EUSAGE,
                                 "%s is auto, cpu, cuda or cuda:1, not '%.40s'", from->name,
                                 text);
    case TEXTS: {
        struct burin_texts *texts = field;
        if (texts->n == BURIN_MAX_LIST)
            return too_many(from, err);
        texts->values[texts->n++] = text;
        return BURIN_OK;
    }
    case PICTURES:
    case VIDEOS: {
        struct burin_attachments *list = field;
        if (list->n == BURIN_MAX_LIST)
            return too_many(from, err);
        list->at[list->n++] = (struct burin_attachment){ option->kind == VIDEOS, text };
        return BURIN_OK;
    }
    case INTEGER:
        status = read_number(from, text, true, &number, err);
        if (!status)
            *(int *)field = (int)number;
        return status;
    case SECONDS:
        status = read_seconds(from, text, &number, err);
        if (!status)
            *(int *)field = (int)number;
        return status;
    case CONTEXT:
        status = read_number(from, text, true, &number, err);
        if (!status)
            *(int *)field = number > 0 ? (int)number : -1;
        return status;
    case INTEGERS:
        return read_numbers(field, from, text, err);
    case SEED:
        status = read_number(from, text, true, &number, err);
        if (!status)
            *(int64_t *)field = (int64_t)number;
        return status;
    case GIVEN_BYTES: {
        struct burin_given *given = field;
        struct burin_error why = { 0 };
        status = burin_parse_bytes(text, strlen(text), &given->bytes, &why);
        if (!status && (double)given->bytes < option->least)
            return burin_fail(err, BURIN_EUSAGE, "%s cannot be %.60s", from->name, text);
        given->given = !status;
        return status ? burin_fail(err, BURIN_EUSAGE, "%s: %s", from->name, why.message)
                      : BURIN_OK;
    }
    case GIVEN_INTEGER: {
        struct burin_given *given = field;
        status = read_number(from, text, true, &number, err);
        given->bytes = (int64_t)number;
        given->given = !status;
        return status;
    }
    case GIVEN_REAL: {
        struct burin_given *given = field;
        status = read_number(from, text, false, &given->number, err);
        given->given = !status;
        return status;
    }
    case GIVEN_SHARE: {
        struct burin_given *given = field;
        status = read_share(&given->number, from, text, err);
        given->given = !status;
        return status;
    }
    case CHOICE:
        return read_choice(field, from, text, err);
    case NOTED:
        if (settings->notes.n < BURIN_MAX_LIST)
            settings->notes.values[settings->notes.n++] = option->help;
        return BURIN_OK;
    }
    return BURIN_OK;
}

/* ---- Options that know of each other ---------------------------------------------- */

/* Where an option's value came from. */
enum origin { DEFAULT, ENVIRONMENT, LINE };

/* Of these only one holds. The command line's switches the environment's off; two of one origin
 * are refused. */
enum { MAX_RIVALS = 5 };
static const struct {
    int n;
    size_t fields[MAX_RIVALS];
    const char *why;
} rivals[] = {
    { 5,
      { FIELD(kv_tokens), FIELD(kv_bytes), FIELD(vram_limit), FIELD(vram_reserve),
        FIELD(vram_fraction) },
      "each says how much memory is used" },
    { 2, { FIELD(graphs), FIELD(eager) }, "one has no graphs, the other names some" },
    { 2, { FIELD(card), FIELD(device) }, "each says what is planned for" },
};
enum { N_RIVALS = sizeof rivals / sizeof *rivals };

/* Whether a value of `option` leaves none to `other`. */
static bool replaces(const struct option *option, const struct option *other)
{
    bool both = option->field == other->field && option->kind != NOTED;
    for (int i = 0; i < N_RIVALS && !both; i++) {
        int n = 0;
        for (int k = 0; k < rivals[i].n; k++)
            n += (rivals[i].fields[k] == option->field) +
                 (rivals[i].fields[k] == other->field);
        both = n == 2;
    }
    return both;
}

/* What the environment said is gone with the first on the command line that replaces it. */
static void forget_environment(
        struct burin_settings *settings, const struct option *option, enum origin *origins)
{
    static const size_t sizes[] = {
        [FLAG] = sizeof(bool),
        [TEXT] = sizeof(const char *),
        [DEVICE] = sizeof(const char *),
        [TEXTS] = sizeof(struct burin_texts),
        [PICTURES] = sizeof(struct burin_attachments),
        [VIDEOS] = sizeof(struct burin_attachments),
        [INTEGER] = sizeof(int),
        [GIVEN_BYTES] = sizeof(struct burin_given),
        [GIVEN_SHARE] = sizeof(struct burin_given),
        [NOTED] = 0,
    };
    for (int i = 0; i < N_OPTIONS; i++) {
        if (origins[i] != ENVIRONMENT || !replaces(option, &options[i]))
            continue;
        memset(field_of(settings, &options[i]), 0, sizes[options[i].kind]);
        origins[i] = DEFAULT;
    }
}

/* "--vram-limit", "BURIN_VRAM_LIMIT": as it was given. */
static void given_name(int i, const enum origin *origins, char *name, size_t capacity)
{
    if (origins[i] == LINE)
        main_name(&options[i], name, capacity);
    else
        variable_name(&options[i], name, capacity);
}

static enum burin_status check_rivals(const enum origin *origins, struct burin_error *err)
{
    for (int i = 0; i < N_RIVALS; i++) {
        int first = -1;
        for (int k = 0; k < N_OPTIONS; k++) {
            bool among = false;
            for (int f = 0; f < rivals[i].n; f++)
                among |= options[k].field == rivals[i].fields[f];
            if (!among || !origins[k])
                continue;
            char one[64], other[64];
            if (first >= 0) {
                given_name(first, origins, one, sizeof one);
                given_name(k, origins, other, sizeof other);
                return burin_fail(
                        err, BURIN_EUSAGE, "give one of %s and %s: %s", one, other,
                        rivals[i].why);
            }
            first = k;
        }
    }
    return BURIN_OK;
}

/* A CPU that was asked for by name does nothing of what only a GPU does; what the environment
 * says, or for `auto`, is for the machine that has one. */
static enum burin_status check_cpu(
        const struct burin_settings *settings,
        const enum origin *origins,
        struct burin_error *err)
{
    static const size_t fields[] = { FIELD(graphs), FIELD(graph_padding), FIELD(fast_gemm),
                                     FIELD(wait_for_vram) };
    char names[128] = "";
    struct burin_put put = { names, sizeof names, 0 };
    bool on_cpu = false;
    bool graphs = false;
    for (int i = 0; i < settings->graphs.n; i++)
        graphs |= strcmp(settings->graphs.values[i], "none") != 0;
    for (int i = 0; i < N_OPTIONS; i++) {
        if (origins[i] != LINE)
            continue;
        on_cpu |= options[i].kind == DEVICE && strcmp(settings->device, "cpu") == 0;
        for (size_t k = 0; k < sizeof fields / sizeof *fields; k++) {
            char name[48];
            if (options[i].field != fields[k] ||
                (options[i].field == FIELD(graphs) && !graphs))
                continue;
            main_name(&options[i], name, sizeof name);
            burin_put(&put, "%s%s", put.used ? ", " : "", name);
        }
    }
    if (!on_cpu || !put.used)
        return BURIN_OK;
    return burin_fail(
            err, BURIN_EUSAGE,
            "--device cpu has no use for what only a GPU does: leave out %s", names);
}

/* ---- Reading --------------------------------------------------------------------- */

static enum burin_status read_defaults(
        struct burin_settings *settings, unsigned commands, struct burin_error *err)
{
    for (int i = 0; i < N_OPTIONS; i++) {
        const struct option *option = &options[i];
        const struct source from = { option, option->names };
        if (!(option->commands & commands) || !option->fallback)
            continue;
        enum burin_status status = set(settings, &from, option->fallback, err);
        if (status)
            return status;
    }
    return BURIN_OK;
}

/* A flag that is off is as good as not given. */
static enum origin origin_of(
        struct burin_settings *settings, const struct option *option, enum origin origin)
{
    const bool off = option->kind == FLAG && !*(const bool *)field_of(settings, option);
    return off ? DEFAULT : origin;
}

static enum burin_status read_environment(
        struct burin_settings *settings,
        unsigned commands,
        enum origin *origins,
        struct burin_error *err)
{
    for (int i = 0; i < N_OPTIONS; i++) {
        const struct option *option = &options[i];
        if (!(option->commands & commands) || option->kind == NOTED)
            continue;
        char variable[64];
        variable_name(option, variable, sizeof variable);
        const char *text = getenv(variable);
        const struct source from = { option, variable };
        if (!text || !*text)
            continue;
        enum burin_status status = set(settings, &from, text, err);
        if (status)
            return status;
        origins[i] = origin_of(settings, option, ENVIRONMENT);
    }
    return BURIN_OK;
}

/* One option at argv[i]; *used is how many arguments it took. */
static enum burin_status read_option(
        struct burin_settings *settings,
        enum burin_command command,
        int left,
        const char **argv,
        enum origin *origins,
        int *used,
        struct burin_error *err)
{
    const char *argument = argv[0];
    const char *equals = strchr(argument, '=');
    const size_t length = equals ? (size_t)(equals - argument) : strlen(argument);
    const struct option *option = find(1u << command, argument, length);
    if (!option)
        return unknown_option(command, argument, length, err);

    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)length, argument);
    const struct source from = { option, name };
    *used = 1;
    const char *text = equals                 ? equals + 1
                       : option->kind == FLAG ? "1"
                       : left > 1             ? argv[1]
                                              : NULL;
    const bool is_option =
            text && !equals && text[0] == '-' && find(1u << command, text, strlen(text));
    if (!text || is_option)
        return burin_fail(
                err, BURIN_EUSAGE, "%s needs %s behind it%s%s", name, option->value,
                is_option ? ", found the option " : "", is_option ? text : "");
    if (!equals && option->kind != FLAG)
        *used = 2;
    /* A list is emptied before it is filled; a flag may be given to say that it is off. */
    const bool flag = option->kind == FLAG;
    if (!flag)
        forget_environment(settings, option, origins);
    const enum burin_status status = set(settings, &from, text, err);
    origins[option - options] = origin_of(settings, option, LINE);
    if (flag && origins[option - options])
        forget_environment(settings, option, origins);
    return status;
}

enum burin_status burin_settings_read(
        struct burin_settings *settings,
        enum burin_command command,
        int argc,
        const char **argv,
        struct burin_error *err)
{
    *settings = (struct burin_settings){ .words = argv };
    enum origin origins[N_OPTIONS] = { DEFAULT };
    enum burin_status status = read_defaults(settings, 1u << command, err);
    if (!status)
        status = read_environment(settings, 1u << command, origins, err);

    bool only_words = false;
    for (int i = 0; i < argc && !status;) {
        int used = 1;
        const char *argument = argv[i];
        if (only_words || argument[0] != '-' || !argument[1]) {
            argv[settings->n_words++] = argument;
        } else if (strcmp(argument, "--") == 0) {
            only_words = true;
        } else {
            status =
                    read_option(settings, command, argc - i, argv + i, origins, &used, err);
        }
        i += used;
    }
    if (!status && !settings->help)
        status = check_rivals(origins, err);
    if (!status && !settings->help)
        status = check_cpu(settings, origins, err);
    return status;
}

enum burin_status burin_settings_no_words(
        const struct burin_settings *settings,
        enum burin_command command,
        struct burin_error *err)
{
    if (!settings->n_words)
        return BURIN_OK;
    return burin_fail(
            err, BURIN_EUSAGE, "%s takes options only, not '%.40s'",
            burin_command_names[command], settings->words[0]);
}

/* ---- Help ------------------------------------------------------------------------ */

void burin_settings_help(enum burin_command command, FILE *out)
{
    for (int i = 0; i < N_OPTIONS; i++) {
        const struct option *option = &options[i];
        if (!(option->commands & (1u << command)) || !*option->names)
            continue;
        char shown[64] = "";
        size_t length = 0;
        const char *rest = option->names;
        char word[48];
        while (next_word(&rest, word, sizeof word))
            length += (size_t)snprintf(
                    shown + length, sizeof shown - length, "%s%s", length ? ", " : "",
                    word);
        if (option->value)
            snprintf(shown + length, sizeof shown - length, " %s", option->value);
        const bool show_default = option->fallback && strcmp(option->fallback, "-1") != 0;
        fprintf(out, "  %-28s %s%s%s%s\n", shown, option->help, show_default ? " [" : "",
                show_default ? option->fallback : "", show_default ? "]" : "");
    }
}
