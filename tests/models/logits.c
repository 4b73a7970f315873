/* tests/models/logits.c -- Writes the logits of given tokens, for comparing with others.
 *
 *   logits-NAME -m WEIGHTS [--target FAMILY] [--exact] [--kv-cache-dtype f32|bf16]
 *               [--threads N] [--batch-size N] [--from N] [--argmax]  < ids > logits
 *
 * Each input line is one sequence, its token ids between spaces. For each line in order, and
 * each position in it from --from on: n_vocab numbers as f32; with --argmax a line
 * "position id log_prob", id being the largest logit's. */
#include "runtime/burin.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_IDS = 8192, MAX_LINE = 12 * MAX_IDS, ROWS_A_STEP = 64 };

static bool only_argmax;
static int n_vocab;

static void write_logits(struct burin_request *request, int position, const float *logits)
{
    (void)request;
    if (only_argmax) {
        const int32_t best = burin_argmax(logits, n_vocab);
        printf("%d %d %.6f\n", position, best, burin_log_prob(logits, n_vocab, best));
    } else {
        fwrite(logits, sizeof *logits, (size_t)n_vocab, stdout);
    }
}

static int fail(const struct burin_error *err)
{
    fprintf(stderr, "logits: %s\n", err->message);
    return burin_exit_code(err->status);
}

static int parse_ids(char *line, int32_t ids[static MAX_IDS])
{
    int n = 0;
    for (char *word = strtok(line, " \n"); word && n < MAX_IDS; word = strtok(NULL, " \n"))
        ids[n++] = (int32_t)strtol(word, NULL, 10);
    return n;
}

int main(int argc, char **argv)
{
    enum { TARGET = 256, EXACT, KV, FROM, ARGMAX };
    static const struct option known[] = {
        { "model", required_argument, NULL, 'm' },
        { "threads", required_argument, NULL, 't' },
        { "batch-size", required_argument, NULL, 'b' },
        { "target", required_argument, NULL, TARGET },
        { "exact", no_argument, NULL, EXACT },
        { "kv-cache-dtype", required_argument, NULL, KV },
        { "from", required_argument, NULL, FROM },
        { "argmax", no_argument, NULL, ARGMAX },
        { NULL, 0, NULL, 0 },
    };
    struct burin_options options = { .model = &burin_model, .n_outputs = ROWS_A_STEP };
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
        default:
            return 2;
        }
    }

    static struct burin_error err;
    struct burin_engine *engine;
    if (burin_engine_open(&engine, &options, &err))
        return fail(&err);
    n_vocab = burin_model.n_vocab;

    static char line[MAX_LINE];
    static int32_t ids[MAX_IDS];
    while (fgets(line, sizeof line, stdin)) {
        struct burin_request request = { .ids = ids,
                                         .n_ids = parse_ids(line, ids),
                                         .sampling = burin_greedy,
                                         .on_logits = write_logits,
                                         .logits_from = from };
        if (burin_submit(engine, &request, &err) || burin_engine_run(engine, &err))
            return fail(&err);
        if (request.finish == BURIN_FAILED)
            return fail(&request.error);
    }
    burin_engine_close(engine);
    return fflush(stdout) ? 1 : 0;
}
