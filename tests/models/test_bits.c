/* A sequence's logits have the same bits alone and in a batch, however its prompt is cut,
 * and on any number of threads; in default mode and with --exact. */
#include "tests/support/model_weights.h"
#include "tests/support/test.h"

#include "runtime/burin.h"

/* 530 is no multiple of any chunk, 64-key block or tile. */
enum { PROMPT = 530, NEW = 12, LOOKED_AT = 40, ROWS = PROMPT + NEW, OTHERS = 7 };

struct run {
    int n_threads;
    int n_batch;
    int n_others; /* sequences beside it, each of another length */
    bool exact;
    bool all_logits; /* of the whole prompt: some models compute more then */
};

static uint64_t bits[ROWS]; /* a hash of each position's logits; 0 where not looked at */

static void keep_bits(struct burin_request *request, int position, const float *logits)
{
    (void)request;
    const unsigned char *bytes = (const unsigned char *)logits;
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < (size_t)burin_model.n_vocab * sizeof *logits; i++)
        hash = (hash ^ bytes[i]) * 1099511628211u;
    bits[position] = hash;
}

static struct burin_request request_of(int32_t *ids, int n_ids, int seed)
{
    for (int i = 0; i < n_ids; i++)
        ids[i] = (int32_t)((i * 7919LL + seed * 104729LL + i / 3) % burin_model.n_vocab);
    return (struct burin_request){
        .ids = ids, .n_ids = n_ids, .max_tokens = NEW, .sampling = burin_greedy
    };
}

static void run_into_bits(struct run run)
{
    static int32_t ids[OTHERS + 1][PROMPT];
    const struct burin_options options = { .model = &burin_model,
                                           .weights = model_weights(),
                                           .n_threads = run.n_threads,
                                           .n_batch = run.n_batch,
                                           .n_ctx = 640,
                                           .n_sequences = 1 + run.n_others,
                                           .n_outputs = 16,
                                           .exact = run.exact };
    struct burin_engine *engine;
    struct burin_error err = { 0 };
    if (burin_engine_open(&engine, &options, &err))
        fail_msg("%s", err.message);

    memset(bits, 0, sizeof bits);
    struct burin_request requests[OTHERS + 1];
    for (int s = 0; s <= run.n_others; s++)
        requests[s] = request_of(ids[s], s == 0 ? PROMPT : 5 + 29 * s, s);
    requests[0].on_logits = keep_bits;
    requests[0].logits_from = run.all_logits ? 0 : PROMPT - LOOKED_AT;
    /* It comes fourth, so that its rows begin within a step. */
    const int order[OTHERS + 1] = { 1, 2, 3, 0, 4, 5, 6, 7 };
    for (int i = 0; i <= OTHERS; i++)
        if (order[i] <= run.n_others)
            assert_int_equal(burin_submit(engine, &requests[order[i]], NULL), BURIN_OK);
    assert_int_equal(burin_engine_run(engine, NULL), BURIN_OK);
    assert_int_equal(requests[0].finish, BURIN_LENGTH);
    burin_engine_close(engine);
}

static void assert_same_bits_whatever_the_way(bool exact)
{
    static const struct run runs[] = {
        { .n_threads = 2, .n_batch = 512 },
        { .n_threads = 2, .n_batch = 1 },
        { .n_threads = 1, .n_batch = 7 },
        { .n_threads = 2, .n_batch = 64 },
        { .n_threads = 1, .n_batch = 512, .n_others = OTHERS },
        { .n_threads = 2, .n_batch = 64, .n_others = OTHERS },
        { .n_threads = 2, .n_batch = 13, .n_others = OTHERS },
        { .n_threads = 1, .n_batch = 512, .all_logits = true },
    };
    run_into_bits((struct run){ .n_threads = 1, .n_batch = 2048, .exact = exact });
    uint64_t alone[ROWS];
    memcpy(alone, bits, sizeof bits);
    assert_true(alone[PROMPT - LOOKED_AT] && alone[PROMPT - 1] && alone[ROWS - 2]);

    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct run run = runs[i];
        run.exact = exact;
        run_into_bits(run);
        for (int row = 0; row < ROWS; row++)
            if (alone[row] && bits[row] != alone[row])
                fail_msg(
                        "position %d differs: %d threads, chunks of %d, %d others%s", row,
                        run.n_threads, run.n_batch, run.n_others,
                        run.all_logits ? ", all logits wanted" : "");
    }
}

SPEC(logits_have_the_same_bits_in_a_batch_in_chunks_and_on_two_threads)
{
    SKIP_UNLESS(model_weights());
    assert_same_bits_whatever_the_way(false);
}

SPEC(exact_logits_have_the_same_bits_in_a_batch_in_chunks_and_on_two_threads)
{
    SKIP_UNLESS(model_weights());
    assert_same_bits_whatever_the_way(true);
}
