/* runtime/app/options.h -- The table of options, for settings.c and option_values.c: what reads them.
 *
 * Memory   Static.
 * Threads  Any number. */
#ifndef BURIN_APP_OPTIONS_H
#define BURIN_APP_OPTIONS_H

#include "runtime/app/settings.h"

enum burin_option_kind {
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

/* A row of the table. */
struct burin_option {
    const char *names;  /* separated by spaces: shown */
    const char *silent; /* accepted too */
    const char *value;  /* what stands behind it: "N", "PATH"; NULL for a flag */
    const char *help;
    unsigned commands;
    enum burin_option_kind kind;
    size_t field;
    double least, most;
    const char *fallback; /* the default, as one would type it */
    const char *choices;
};

#define FIELD(name) offsetof(struct burin_settings, name)

extern const struct burin_option burin_option_table[];
extern const int burin_n_options;
enum { BURIN_MOST_OPTIONS = 128 }; /* for arrays beside the table */

/* Of any of these commands (1 << BURIN_RUN | ...) by one of its spellings; NULL. */
const struct burin_option *burin_option_find(
        unsigned commands, const char *name, size_t length);

/* The long name, or the only one: "--ctx-size". Where none is shown the first is what another
 * option's help calls it. */
void burin_option_name(const struct burin_option *option, char *name, size_t capacity);

/* What it is called in the environment: "BURIN_CTX_SIZE". */
void burin_option_variable(
        const struct burin_option *option, char *variable, size_t capacity);

/* BURIN_EUSAGE: whose option it is, or what is near. */
enum burin_status burin_option_unknown(
        enum burin_command command,
        const char *name,
        size_t length,
        struct burin_error *err);

/* ---- option_values.c --------------------------------------------------------------------- */

/* Where a value came from, for messages: "--ctx-size" or "BURIN_CTX_SIZE". */
struct burin_source {
    const struct burin_option *option;
    const char *name;
};

/* Where the value goes. */
void *burin_option_field(
        struct burin_settings *settings, const struct burin_option *option);

/* Read `text` into it; BURIN_EUSAGE says what it was and what is allowed. */
enum burin_status burin_option_set(
        struct burin_settings *settings,
        const struct burin_source *from,
        const char *text,
        struct burin_error *err);

#endif
