/* runtime/app/settings.h -- What the user asked for: one table of options, and what they
 * set.
 *
 * The table (options.c) is the only place that knows an option: its spellings, which
 * commands take it, its range, its default, its line in --help. The first spellings of a
 * row are ours and are shown; others that people know from elsewhere are accepted silently.
 *
 * Order    Defaults, then the environment (BURIN_ and the long name: BURIN_CTX_SIZE), then
 *          the command line, which also switches off what the environment says by another
 *          option of which only one holds: --vram-limit and BURIN_VRAM_RESERVE.
 * Memory   Settings hold pointers into argv and the environment, and nothing else.
 * Threads  One (it reads the environment). */
#ifndef BURIN_APP_SETTINGS_H
#define BURIN_APP_SETTINGS_H

#include "runtime/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum burin_command {
    BURIN_RUN,
    BURIN_EVAL,
    BURIN_BENCH,
    BURIN_TOKENIZE,
    BURIN_PLAN,
    BURIN_INFO,
    BURIN_N_COMMANDS
};

enum { BURIN_MAX_LIST = 16 };

/* "128,512" or an option given several times. */
struct burin_numbers {
    int n;
    int values[BURIN_MAX_LIST];
};
struct burin_texts {
    int n;
    const char *values[BURIN_MAX_LIST];
};

/* Pictures and videos, in the order of the command line. */
struct burin_attachment {
    bool is_video;
    const char *path;
};
struct burin_attachments {
    int n;
    struct burin_attachment at[BURIN_MAX_LIST];
};

/* A number that has been given, or not. */
struct burin_given {
    bool given;
    int64_t bytes;
    double number;
};

enum burin_output_form { BURIN_OUTPUT_MD, BURIN_OUTPUT_JSON };

struct burin_settings {
    bool help;
    bool verbose;
    bool json;

    const char *weights;
    const char *device;
    const char *target;
    const char *kv_dtype;
    bool exact;
    int n_threads;
    int n_ctx; /* 0: the default, -1: the model's */
    int n_sequences;
    int n_batch;
    struct burin_given vram_limit;
    struct burin_given vram_reserve;
    struct burin_given vram_fraction;
    struct burin_given kv_bytes;
    int kv_tokens;
    int wait_for_vram;
    const char *card;
    bool rehearse;
    int n_draft;
    struct burin_given n_images;
    int n_frames;
    int n_clips;
    struct burin_texts graphs;
    bool eager;
    int graph_padding;
    bool fast_gemm;
    struct burin_given encoder_arena;
    const char *assume;
    const char *svg_file;
    const char *explain;
    const char *against_file;

    const char *prompt;
    const char *prompt_file;
    const char *system;
    struct burin_attachments attachments; /* before the prompt's text */
    bool chat;
    bool raw;
    int n_predict;
    struct burin_given temperature; /* not given: as the model's authors mean it */
    struct burin_given top_k;
    struct burin_given top_p;
    struct burin_given min_p;
    bool think;
    int64_t seed;
    struct burin_texts stop;
    bool ignore_eos;

    const char *text_file;
    const char *ids_file;
    const char *dump_file;
    int window;
    int score_from;

    struct burin_numbers bench_prompt;
    struct burin_numbers bench_generate;
    struct burin_numbers bench_threads;
    int repetitions;
    int output_form; /* enum burin_output_form */

    bool last_start;
    bool parse_special;
    bool ids_only;

    /* Arguments that are no options, in order. */
    int n_words;
    const char *const *words; /* into argv, which is reordered for it */

    /* What to tell of options that are accepted and do nothing here. */
    struct burin_texts notes;
};

/* Read defaults, environment and argv[0 ... argc - 1] (the command's name left out).
 * BURIN_EUSAGE says which argument, what it was, and what is near or allowed; which two are
 * given of which only one holds; what --device cpu has no use for. */
enum burin_status burin_settings_read(
        struct burin_settings *settings,
        enum burin_command command,
        int argc,
        const char **argv,
        struct burin_error *err);

/* For a command that takes options only: BURIN_EUSAGE names the first word that is none. */
enum burin_status burin_settings_no_words(
        const struct burin_settings *settings,
        enum burin_command command,
        struct burin_error *err);

/* The option lines of a command's --help. */
void burin_settings_help(enum burin_command command, FILE *out);

/* For tests and completions: row `i` of the table, its shown spellings, the mask of its
 * commands; false behind the last. */
bool burin_settings_row(
        int i,
        const char **names,
        unsigned *commands,
        const char **help,
        const char **value);

/* Edits from one word to the other: how near a misspelling is. */
int burin_edit_distance(const char *a, const char *b);

/* "run", "eval", ...; BURIN_N_COMMANDS for a word that is no command. */
extern const char *const burin_command_names[BURIN_N_COMMANDS];
enum burin_command burin_command_by_name(const char *name);

#endif
