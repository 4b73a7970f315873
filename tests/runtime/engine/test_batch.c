/* Which rows a step has: what it says of each, and where prompts are cut. */
#include "runtime/engine/batch.h"
#include "tests/support/test.h"

enum { PROMPT = 23, SLOTS = 3, MAX_TOKENS = 32, PAGE_TOKENS = 4, MAX_PAGES = 8 };

/* Pictures at 3 ... 6, 7 ... 8 and 14 ... 20; text around them. */
static const int32_t spans[PROMPT] = { 1,  2,  3,  7,  7,  7,  7,  9,  9,  10, 11, 12,
                                       13, 14, 21, 21, 21, 21, 21, 21, 21, 22, 23 };
static int32_t soft_index[PROMPT];
static int32_t ids[PROMPT];

struct table {
    struct burin_arena arena;
    struct burin_kv kv;
    struct burin_batch batch;
    struct burin_part parts[SLOTS];
    int32_t token_ids[MAX_TOKENS], positions[MAX_TOKENS], sequence_of[MAX_TOKENS];
    int32_t soft_index[MAX_TOKENS], spans[MAX_TOKENS];
    int32_t sequence_begin[SLOTS + 1], page_table[SLOTS * MAX_PAGES], state_of[SLOTS];
    int32_t output_rows[MAX_TOKENS], output_positions[MAX_TOKENS];
    int32_t output_sequence_of[MAX_TOKENS], output_begin[SLOTS + 1];
};

static void open_table(struct table *t, int max_tokens, int quantum)
{
    *t = (struct table){ .batch = { .max_tokens = max_tokens,
                                    .max_sequences = SLOTS,
                                    .max_outputs = MAX_TOKENS,
                                    .max_pages = MAX_PAGES,
                                    .quantum = quantum,
                                    .parts = t->parts,
                                    .token_ids = t->token_ids,
                                    .positions = t->positions,
                                    .sequence_of = t->sequence_of,
                                    .sequence_begin = t->sequence_begin,
                                    .page_table = t->page_table,
                                    .output_rows = t->output_rows,
                                    .output_positions = t->output_positions,
                                    .output_sequence_of = t->output_sequence_of,
                                    .output_begin = t->output_begin,
                                    .state_of = t->state_of,
                                    .spans = t->spans,
                                    .soft_index = t->soft_index } };
    assert_int_equal(
            burin_kv_init(
                    &t->kv, &t->arena, SLOTS * MAX_PAGES, PAGE_TOKENS, SLOTS, MAX_PAGES,
                    NULL),
            BURIN_OK);
    for (int slot = 0; slot < SLOTS; slot++)
        assert_true(burin_kv_reserve(&t->kv, slot, MAX_PAGES * PAGE_TOKENS));
    for (int i = 0; i < PROMPT; i++) {
        ids[i] = 100 + i;
        soft_index[i] = spans[i] > i + 1 || (i > 0 && spans[i - 1] > i) ? 40 - i : -1;
    }
}

static void close_table(struct table *t)
{
    burin_arena_close(&t->arena);
}

static struct burin_sequence a_prompt_with_pictures(void)
{
    return (struct burin_sequence){ .ids = ids,
                                    .n_ids = PROMPT,
                                    .n_ready = PROMPT,
                                    .outputs_from = PROMPT - 1,
                                    .soft_index = soft_index,
                                    .spans = spans };
}

SPEC(a_prompt_is_never_cut_within_a_picture)
{
    for (int max_tokens = 7; max_tokens <= PROMPT; max_tokens++)
        for (int quantum = 1; quantum <= 2; quantum++) {
            struct table t;
            open_table(&t, max_tokens, quantum);
            struct burin_sequence sequences[SLOTS] = { [2] = a_prompt_with_pictures() };
            const int order[] = { 2 };

            while (sequences[2].n_done < PROMPT) {
                burin_batch_fill(&t.batch, sequences, order, 1, &t.kv);

                if (quantum > 1 && t.batch.n_tokens == 0)
                    break; /* a picture of 7 begins at 14, and 21 is no multiple of 2 */
                const int end = sequences[2].n_done + t.batch.n_tokens;
                assert_in_range(t.batch.n_tokens, 1, max_tokens);
                assert_int_equal(t.spans[t.batch.n_tokens - 1], end);
                assert_true(end == PROMPT || end % quantum == 0);
                for (int row = 0; row < t.batch.n_tokens; row++) {
                    assert_int_equal(t.spans[row], spans[t.positions[row]]);
                    assert_int_equal(t.soft_index[row], soft_index[t.positions[row]]);
                }
                sequences[2].n_done = end;
            }
            close_table(&t);
        }
}

SPEC(rows_without_pictures_end_with_themselves_and_have_no_soft_token)
{
    struct table t;
    open_table(&t, MAX_TOKENS, 1);
    struct burin_sequence sequences[SLOTS] = {
        [0] = { .ids = ids, .n_ids = 5, .n_ready = 5, .outputs_from = 4 },
        [1] = a_prompt_with_pictures(),
    };
    sequences[1].n_done = PROMPT + 2; /* it makes tokens */
    const int order[] = { 1, 0 };

    burin_batch_fill(&t.batch, sequences, order, 2, &t.kv);

    assert_int_equal(t.batch.n_tokens, 6);
    for (int row = 0; row < 6; row++) {
        assert_int_equal(t.spans[row], t.positions[row] + 1);
        assert_int_equal(t.soft_index[row], -1);
    }
    close_table(&t);
}

SPEC(each_sequence_has_its_slot_and_its_outputs_side_by_side)
{
    struct table t;
    open_table(&t, MAX_TOKENS, 1);
    struct burin_sequence sequences[SLOTS] = {
        [0] = { .ids = ids, .n_ids = 9, .n_ready = 9, .outputs_from = 6 },
        [1] = { .ids = ids, .n_ids = 4, .n_ready = 4, .outputs_from = 3, .n_done = 4 },
        [2] = { .ids = ids, .n_ids = 23, .n_ready = 23, .outputs_from = 22 },
    };
    const int order[] = { 2, 0, 1 };

    burin_batch_fill(&t.batch, sequences, order, 3, &t.kv);

    /* The one that makes tokens first, then prompts, the oldest first. */
    assert_int_equal(t.batch.n_sequences, 3);
    const int32_t slots[] = { 1, 2, 0 }, begin[] = { 0, 1, 2, 4 };
    assert_memory_equal(t.state_of, slots, sizeof slots);
    assert_memory_equal(t.output_begin, begin, sizeof begin);
    for (int i = 0; i < t.batch.n_outputs; i++) {
        assert_int_equal(t.output_positions[i], t.positions[t.output_rows[i]]);
        assert_int_equal(t.output_sequence_of[i], t.sequence_of[t.output_rows[i]]);
    }
    assert_int_equal(t.output_positions[0], 4);
    assert_int_equal(t.output_positions[3], 7); /* the step has room for 8 of its 9 rows */
    close_table(&t);
}
