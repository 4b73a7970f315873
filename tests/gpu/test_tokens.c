/* Tokens that a GPU's kernels leave the largest logits for (gen/ops/top_logits.lua), on a virtual one
 * that executes: they are those of the rows themselves, which then need not leave the device. */
#include "tests/support/model_weights.h"
#include "tests/support/test.h"

#include "runtime/burin.h"
#include "runtime/plan/plan.h"

enum { MOST = 12, PROMPT = 5, SEQUENCES = 2 };

static struct burin_engine *engine;
static int n_vocab;

struct text {
    struct burin_request request;
    int32_t ids[PROMPT];
    int32_t tokens[MOST];
    int32_t likeliest[MOST]; /* of the rows, where they are asked for */
    int n, n_rows;
};

static bool on_token(struct burin_request *request, int32_t token)
{
    struct text *text = request->user;
    text->tokens[text->n++] = token;
    return true;
}

static void on_logits(struct burin_request *request, int position, const float *logits)
{
    struct text *text = request->user;
    if (position >= PROMPT - 1)
        text->likeliest[text->n_rows++] = burin_argmax(logits, n_vocab);
}

static void open_engine(void)
{
    static struct burin_graphs graphs;
    struct burin_error err = { 0 };
    n_vocab = burin_model.n_vocab;
    if (engine)
        return;
    assert_int_equal(burin_graphs_parse(&graphs, "step=1,2", NULL), BURIN_OK);
    const struct burin_options options = { .model = &burin_model,
                                           .weights = model_weights(),
                                           .device = "cuda",
                                           .n_threads = 1,
                                           .n_ctx = 64,
                                           .n_sequences = SEQUENCES,
                                           .n_batch = 8,
                                           .graphs = &graphs,
                                           .kv_tokens = 64 * 2 * SEQUENCES,
                                           .strict = true };
    if (burin_engine_open(&engine, &options, &err))
        fail_msg("%s", err.message);
}

static void submit(struct text *text, struct burin_sampling sampling, int kind, bool rows)
{
    *text = (struct text){ .request = { .n_ids = PROMPT,
                                        .max_tokens = MOST,
                                        .sampling = sampling,
                                        .on_token = on_token,
                                        .on_logits = rows ? on_logits : NULL,
                                        .logits_from = PROMPT - 1 } };
    for (int i = 0; i < PROMPT; i++)
        text->ids[i] = (kind * 13 + i * 7) % n_vocab;
    text->request.ids = text->ids;
    text->request.user = text;
    assert_int_equal(burin_submit(engine, &text->request, NULL), BURIN_OK);
}

SPEC(greedy_tokens_are_the_likeliest_of_their_rows)
{
    SKIP_UNLESS(model_weights());
    open_engine();
    for (int kind = 0; kind < 4; kind++) {
        static struct text by_rows, alone;
        submit(&by_rows, burin_greedy, kind, true);
        assert_int_equal(burin_engine_run(engine, NULL), BURIN_OK);
        submit(&alone, burin_greedy, kind, false);
        assert_int_equal(burin_engine_run(engine, NULL), BURIN_OK);

        assert_int_equal(alone.n, MOST);
        assert_memory_equal(alone.tokens, by_rows.tokens, sizeof alone.tokens);
        assert_memory_equal(alone.tokens, by_rows.likeliest, sizeof alone.tokens);
    }
}

SPEC(a_seed_draws_the_same_tokens_whether_or_not_rows_are_fetched_and_whoever_is_beside)
{
    static const struct burin_sampling samplings[] = {
        { .temperature = 1, .top_k = 5, .top_p = 1, .seed = 3 },
        { .temperature = 0.7f, .top_p = 0.8f, .seed = 4 },
        { .temperature = 1.5f, .top_p = 1, .min_p = 0.2f, .seed = 5 },
        { .temperature = 1, .top_p = 0.9999f, .seed = 6 }, /* more than the 64 largest */
        { .temperature = 1, .top_p = 1, .seed = 7 },
    };
    SKIP_UNLESS(model_weights());
    open_engine();
    for (int i = 0; i < 5; i++) {
        static struct text with_rows, alone, beside, other;
        submit(&alone, samplings[i], i, false);
        assert_int_equal(burin_engine_run(engine, NULL), BURIN_OK);
        submit(&with_rows, samplings[i], i, true);
        assert_int_equal(burin_engine_run(engine, NULL), BURIN_OK);
        submit(&beside, samplings[i], i, false);
        submit(&other, samplings[4 - i], i + 1, i % 2 == 0);
        assert_int_equal(burin_engine_run(engine, NULL), BURIN_OK);

        assert_int_equal(alone.n, MOST);
        assert_memory_equal(alone.tokens, with_rows.tokens, sizeof alone.tokens);
        assert_memory_equal(alone.tokens, beside.tokens, sizeof alone.tokens);
    }
    burin_engine_close(engine);
    engine = NULL;
}
