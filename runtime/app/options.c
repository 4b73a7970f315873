#include "runtime/app/options.h"

#include "runtime/plan/plan.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

/* ---- The table ------------------------------------------------------------------- */

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

const struct burin_option burin_option_table[] = {
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
const int burin_n_options = sizeof burin_option_table / sizeof *burin_option_table;
_Static_assert(
        sizeof burin_option_table / sizeof *burin_option_table <= BURIN_MOST_OPTIONS,
        "arrays beside the table are too short");

bool burin_settings_row(
        int i,
        const char **names,
        unsigned *commands,
        const char **help,
        const char **value)
{
    if (i < 0 || i >= burin_n_options)
        return false;
    *names = burin_option_table[i].names;
    *commands = burin_option_table[i].commands;
    *help = burin_option_table[i].help;
    *value = burin_option_table[i].value;
    return true;
}

/* ---- Words ----------------------------------------------------------------------- */

/* The next of the words separated by spaces; false at the end. */
static bool burin_option_word(const char **rest, char *word, size_t capacity)
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
    while (burin_option_word(&names, word, sizeof word))
        if (strlen(word) == length && strncmp(word, name, length) == 0)
            return true;
    return false;
}

const struct burin_option *burin_option_find(
        unsigned commands, const char *name, size_t length)
{
    for (int i = 0; i < burin_n_options; i++)
        if ((burin_option_table[i].commands & commands) &&
            (has_name(burin_option_table[i].names, name, length) ||
             has_name(burin_option_table[i].silent, name, length)))
            return &burin_option_table[i];
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

void burin_option_name(const struct burin_option *option, char *name, size_t capacity)
{
    const char *rest = option->names;
    name[0] = '\0';
    while (burin_option_word(&rest, name, capacity))
        ;
    rest = option->silent;
    if (!*option->names)
        burin_option_word(&rest, name, capacity);
}

void burin_option_variable(
        const struct burin_option *option, char *variable, size_t capacity)
{
    char name[48];
    burin_option_name(option, name, sizeof name);
    snprintf(variable, capacity, "BURIN_%s", name + strspn(name, "-"));
    for (char *c = variable; *c; c++)
        *c = (char)(*c == '-' ? '_' : toupper((unsigned char)*c));
}

enum burin_status burin_option_unknown(
        enum burin_command command,
        const char *name,
        size_t length,
        struct burin_error *err)
{
    char typed[64];
    snprintf(typed, sizeof typed, "%.*s", (int)length, name);
    const struct burin_option *elsewhere = burin_option_find(ALL, typed, strlen(typed));
    if (elsewhere)
        for (int i = 0; i < BURIN_N_COMMANDS; i++)
            if (elsewhere->commands & (1u << i))
                return burin_fail(
                        err, BURIN_EUSAGE,
                        "%s is an option of `%s`, `%s` has no use for it", typed,
                        burin_command_names[i], burin_command_names[command]);

    char nearest[48] = "";
    int best = INT_MAX;
    for (int i = 0; i < burin_n_options; i++) {
        const char *lists[] = { burin_option_table[i].names, burin_option_table[i].silent };
        for (int k = 0; k < 2; k++) {
            char word[48];
            while ((burin_option_table[i].commands & (1u << command)) &&
                   burin_option_word(&lists[k], word, sizeof word)) {
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

/* ---- Help ------------------------------------------------------------------------ */

void burin_settings_help(enum burin_command command, FILE *out)
{
    for (int i = 0; i < burin_n_options; i++) {
        const struct burin_option *option = &burin_option_table[i];
        if (!(option->commands & (1u << command)) || !*option->names)
            continue;
        char shown[64] = "";
        size_t length = 0;
        const char *rest = option->names;
        char word[48];
        while (burin_option_word(&rest, word, sizeof word))
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
