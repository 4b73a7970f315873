/* tests/models/logits.c -- Writes the logits of given tokens, for comparing with others.
 *
 *   logits-NAME -m WEIGHTS [--target FAMILY] [--exact] [--kv-cache-dtype f32|bf16]
 *               [--threads N] [--batch-size N] [--from N] [--argmax] [--parallel N]
 *               [--frames N] [--encoder-arena BYTES] [--device cpu|cuda] [--eager]
 *               [--graphs step=1,2] [--fast-gemm]  < ids > logits
 *
 * Each input line is one sequence, its token ids between spaces; --parallel of them run at once.
 * For each line in order, and each position in it from --from on: n_vocab numbers as f32; with
 * --argmax a line "position id log_prob", id being the largest logit's.
 *
 * Among the ids, 7x6 is a picture of 7 soft tokens in each of 6 rows; its pixels are those of
 * tests/support/pictures.h. Up to --frames of them, of 70 soft tokens at most, are kept at once; how many
 * runs of the encoder there were is the last word of what it says then. */
#include "runtime/burin.h"
#include "runtime/plan/plan.h"
#include "tests/support/pictures.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_IDS = 8192,
    MAX_LINE = 12 * MAX_IDS,
    MAX_PICTURES = 64,
    MAX_PARALLEL = 8,
    ROWS_A_STEP = 64
};

struct prompt {
    int32_t ids[MAX_IDS];
    int n_ids;
    struct burin_picture pictures[MAX_PICTURES];
    int n_pictures;
    struct burin_request request;
    FILE *out; /* in memory, until its turn */
    char *bytes;
    size_t n_bytes;
};

static bool only_argmax;
static int n_vocab;

static void write_logits(struct burin_request *request, int position, const float *logits)
{
    const struct prompt *prompt = request->user;
    if (only_argmax) {
        const int32_t best = burin_argmax(logits, n_vocab);
        fprintf(prompt->out, "%d %d %.6f\n", position, best,
                burin_log_prob(logits, n_vocab, best));
    } else {
        fwrite(logits, sizeof *logits, (size_t)n_vocab, prompt->out);
    }
}

static int fail(const struct burin_error *err)
{
    fprintf(stderr, "logits: %s\n", err->message);
    return burin_exit_code(err->status);
}

/* Where it stands, <pad>, which is 0. */
static void add_picture(struct prompt *prompt, int columns, int rows, size_t *byte)
{
    prompt->pictures[prompt->n_pictures++] =
            (struct burin_picture){ .begin = prompt->n_ids,
                                    .patches = test_picture(columns, rows, byte) };
    for (int i = 0; i < columns * rows && prompt->n_ids < MAX_IDS; i++)
        prompt->ids[prompt->n_ids++] = 0;
}

static void parse(struct prompt *prompt, char *line)
{
    size_t byte = 0;
    prompt->n_ids = prompt->n_pictures = 0;
    for (char *word = strtok(line, " \n"); word && prompt->n_ids < MAX_IDS;
         word = strtok(NULL, " \n")) {
        char *end;
        const long number = strtol(word, &end, 10);
        if (*end == 'x' && prompt->n_pictures < MAX_PICTURES)
            add_picture(prompt, (int)number, atoi(end + 1), &byte);
        else
            prompt->ids[prompt->n_ids++] = (int32_t)number;
    }
}

/* The first n prompts at once, then what they gave in order. */
static enum burin_status run_prompts(
        struct burin_engine *engine,
        struct prompt *prompts,
        int n,
        int from,
        struct burin_error *err)
{
    enum burin_status status = BURIN_OK;
    for (int i = 0; i < n && !status; i++) {
        struct prompt *prompt = &prompts[i];
        prompt->request = (struct burin_request){ .ids = prompt->ids,
                                                  .n_ids = prompt->n_ids,
                                                  .pictures = prompt->pictures,
                                                  .n_pictures = prompt->n_pictures,
                                                  .sampling = burin_greedy,
                                                  .on_logits = write_logits,
                                                  .logits_from = from,
                                                  .user = prompt };
        prompt->out = open_memstream(&prompt->bytes, &prompt->n_bytes);
        status = burin_submit(engine, &prompt->request, err);
    }
    if (!status)
        status = burin_engine_run(engine, err);
    for (int i = 0; i < n && !status; i++) {
        struct prompt *prompt = &prompts[i];
        if (prompt->request.finish == BURIN_FAILED)
            return burin_fail(
                    err, prompt->request.error.status, "%s", prompt->request.error.message);
        fclose(prompt->out);
        fwrite(prompt->bytes, 1, prompt->n_bytes, stdout);
        free(prompt->bytes);
        for (int p = 0; p < prompt->n_pictures; p++)
            free(prompt->pictures[p].patches.pixels);
    }
    return status;
}

int main(int argc, char **argv)
{
    enum {
        TARGET = 256,
        EXACT,
        KV,
        FROM,
        ARGMAX,
        FRAMES,
        ARENA,
        DEVICE,
        EAGER,
        FAST,
        GRAPHS,
        PARALLEL
    };
    static const struct option known[] = {
        { "model", required_argument, NULL, 'm' },
        { "threads", required_argument, NULL, 't' },
        { "batch-size", required_argument, NULL, 'b' },
        { "target", required_argument, NULL, TARGET },
        { "exact", no_argument, NULL, EXACT },
        { "kv-cache-dtype", required_argument, NULL, KV },
        { "from", required_argument, NULL, FROM },
        { "argmax", no_argument, NULL, ARGMAX },
        { "frames", required_argument, NULL, FRAMES },
        { "encoder-arena", required_argument, NULL, ARENA },
        { "device", required_argument, NULL, DEVICE },
        { "eager", no_argument, NULL, EAGER },
        { "fast-gemm", no_argument, NULL, FAST },
        { "graphs", required_argument, NULL, GRAPHS },
        { "parallel", required_argument, NULL, PARALLEL },
        { NULL, 0, NULL, 0 },
    };
    static struct burin_error err;
    static struct burin_graphs graphs;
    struct burin_options options = {
        .model = &burin_model, .n_outputs = ROWS_A_STEP, .device = "cpu", .n_sequences = 1
    };
    int from = 0;
    for (int c; (c = getopt_long(argc, argv, "m:t:b:", known, NULL)) != -1;) {
        switch (c) {
        case 'm':
            options.weights = optarg;
            break;
        case 't':
            options.n_threads = atoi(optarg);
            break;
        case 'b':
            options.n_batch = atoi(optarg);
            break;
        case TARGET:
            options.target = optarg;
            break;
        case EXACT:
            options.exact = true;
            break;
        case KV:
            options.kv_dtype_given = true;
            options.kv_dtype = strcmp(optarg, "f32") == 0 ? BURIN_F32 : BURIN_BF16;
            break;
        case FROM:
            from = atoi(optarg);
            break;
        case ARGMAX:
            only_argmax = true;
            break;
        case FRAMES:
            options.n_frames = atoi(optarg);
            break;
        case ARENA:
            options.encoder_arena = atoll(optarg);
            break;
        case DEVICE:
            options.device = optarg;
            break;
        case EAGER:
            graphs = (struct burin_graphs){ .none = true }; /* those named so far, too */
            options.graphs = &graphs;
            break;
        case FAST:
            options.fast_gemm = true;
            options.n_outputs = 2 * ROWS_A_STEP + 1; /* products of fewer rows aren't its */
            break;
        case GRAPHS:
            graphs = (struct burin_graphs){ 0 }; /* the last list holds */
            if (burin_graphs_parse(&graphs, optarg, &err))
                return fail(&err);
            options.graphs = &graphs;
            break;
        case PARALLEL:
            options.n_sequences = atoi(optarg);
            break;
        default:
            return 2;
        }
    }

    if (options.n_sequences < 1 || options.n_sequences > MAX_PARALLEL)
        return 2;

    struct burin_engine *engine;
    if (burin_engine_open(&engine, &options, &err))
        return fail(&err);
    n_vocab = burin_model.n_vocab;

    static char line[MAX_LINE];
    static struct prompt prompts[MAX_PARALLEL];
    int n = 0;
    for (bool more = true; more;) {
        more = fgets(line, sizeof line, stdin);
        if (more)
            parse(&prompts[n++], line);
        if (n == options.n_sequences || (n && !more)) {
            if (run_prompts(engine, prompts, n, from, &err))
                return fail(&err);
            n = 0;
        }
    }
    if (options.n_frames)
        fprintf(stderr, "encoder runs: %d\n", burin_engine_info(engine).n_encoder_runs);
    burin_engine_close(engine);
    return fflush(stdout) ? 1 : 0;
}
