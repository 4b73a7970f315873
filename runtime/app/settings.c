#include "runtime/app/settings.h"

#include "runtime/app/options.h"
#include "runtime/base/put.h"

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
static bool replaces(const struct burin_option *option, const struct burin_option *other)
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
        struct burin_settings *settings,
        const struct burin_option *option,
        enum origin *origins)
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
    for (int i = 0; i < burin_n_options; i++) {
        if (origins[i] != ENVIRONMENT || !replaces(option, &burin_option_table[i]))
            continue;
        memset(burin_option_field(settings, &burin_option_table[i]), 0,
               sizes[burin_option_table[i].kind]);
        origins[i] = DEFAULT;
    }
}

/* "--vram-limit", "BURIN_VRAM_LIMIT": as it was given. */
static void given_name(int i, const enum origin *origins, char *name, size_t capacity)
{
    if (origins[i] == LINE)
        burin_option_name(&burin_option_table[i], name, capacity);
    else
        burin_option_variable(&burin_option_table[i], name, capacity);
}

static enum burin_status check_rivals(const enum origin *origins, struct burin_error *err)
{
    for (int i = 0; i < N_RIVALS; i++) {
        int first = -1;
        for (int k = 0; k < burin_n_options; k++) {
            bool among = false;
            for (int f = 0; f < rivals[i].n; f++)
                among |= burin_option_table[k].field == rivals[i].fields[f];
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
    for (int i = 0; i < burin_n_options; i++) {
        if (origins[i] != LINE)
            continue;
        on_cpu |= burin_option_table[i].kind == DEVICE &&
                  strcmp(settings->device, "cpu") == 0;
        for (size_t k = 0; k < sizeof fields / sizeof *fields; k++) {
            char name[48];
            if (burin_option_table[i].field != fields[k] ||
                (burin_option_table[i].field == FIELD(graphs) && !graphs))
                continue;
            burin_option_name(&burin_option_table[i], name, sizeof name);
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
    for (int i = 0; i < burin_n_options; i++) {
        const struct burin_option *option = &burin_option_table[i];
        const struct burin_source from = { option, option->names };
        if (!(option->commands & commands) || !option->fallback)
            continue;
        enum burin_status status = burin_option_set(settings, &from, option->fallback, err);
        if (status)
            return status;
    }
    return BURIN_OK;
}

/* A flag that is off is as good as not given. */
static enum origin origin_of(
        struct burin_settings *settings,
        const struct burin_option *option,
        enum origin origin)
{
    const bool off =
            option->kind == FLAG && !*(const bool *)burin_option_field(settings, option);
    return off ? DEFAULT : origin;
}

static enum burin_status read_environment(
        struct burin_settings *settings,
        unsigned commands,
        enum origin *origins,
        struct burin_error *err)
{
    for (int i = 0; i < burin_n_options; i++) {
        const struct burin_option *option = &burin_option_table[i];
        if (!(option->commands & commands) || option->kind == NOTED)
            continue;
        char variable[64];
        burin_option_variable(option, variable, sizeof variable);
        const char *text = getenv(variable);
        const struct burin_source from = { option, variable };
        if (!text || !*text)
            continue;
        enum burin_status status = burin_option_set(settings, &from, text, err);
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
    const struct burin_option *option = burin_option_find(1u << command, argument, length);
    if (!option)
        return burin_option_unknown(command, argument, length, err);

    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)length, argument);
    const struct burin_source from = { option, name };
    *used = 1;
    const char *text = equals                 ? equals + 1
                       : option->kind == FLAG ? "1"
                       : left > 1             ? argv[1]
                                              : NULL;
    const bool is_option = text && !equals && text[0] == '-' &&
                           burin_option_find(1u << command, text, strlen(text));
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
    const enum burin_status status = burin_option_set(settings, &from, text, err);
    origins[option - burin_option_table] = origin_of(settings, option, LINE);
    if (flag && origins[option - burin_option_table])
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
    enum origin origins[BURIN_MOST_OPTIONS] = { DEFAULT };
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
