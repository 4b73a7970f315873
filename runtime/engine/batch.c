#include "runtime/engine/batch.h"

#include <string.h>

static int min(int a, int b)
{
    return a < b ? a : b;
}

static int max(int a, int b)
{
    return a > b ? a : b;
}

/* Append rows for the tokens at positions from n_done on, the last n_outputs with logits. */
static void add_rows(
        struct burin_batch *batch,
        int slot,
        const struct burin_sequence *sequence,
        const int32_t *ids,
        int position,
        int n_rows,
        int n_outputs,
        struct burin_kv *kv)
{
    const int s = batch->n_sequences++;
    const int first = batch->n_tokens;
    const bool in_prompt = position < sequence->n_ids;

    batch->parts[s] = (struct burin_part){
        .slot = slot,
        .first_row = first,
        .n_rows = n_rows,
        .first_output = batch->n_outputs,
        .n_outputs = n_outputs,
    };
    for (int i = 0; i < n_rows; i++) {
        batch->token_ids[first + i] = ids[i];
        batch->positions[first + i] = position + i;
        batch->sequence_of[first + i] = s;
        batch->soft_index[first + i] =
                in_prompt && sequence->soft_index ? sequence->soft_index[position + i] : -1;
        batch->spans[first + i] = in_prompt && sequence->spans
                                          ? sequence->spans[position + i]
                                          : position + i + 1;
    }
    batch->state_of[s] = slot;
    for (int i = n_rows - n_outputs; i < n_rows; i++, batch->n_outputs++) {
        batch->output_rows[batch->n_outputs] = first + i;
        batch->output_positions[batch->n_outputs] = position + i;
        batch->output_sequence_of[batch->n_outputs] = s;
    }
    batch->output_begin[s + 1] = batch->n_outputs;
    batch->n_tokens += n_rows;
    batch->sequence_begin[s + 1] = batch->n_tokens;

    burin_kv_grow(kv, slot, position + n_rows);
    memcpy(batch->page_table + (size_t)s * (size_t)batch->max_pages,
           burin_kv_table(kv, slot), (size_t)kv->held[slot] * sizeof *batch->page_table);
}

/* How many of a prompt's next tokens this step has room for. */
static int chunk_of(const struct burin_batch *batch, const struct burin_sequence *sequence)
{
    const int wanted = sequence->n_ids - sequence->n_done;
    const int ready = sequence->n_ready - sequence->n_done;
    const int without_outputs = max(sequence->outputs_from - sequence->n_done, 0);
    const int room =
            min(min(batch->max_tokens - batch->n_tokens, ready),
                without_outputs + batch->max_outputs - batch->n_outputs);
    if (room >= wanted)
        return wanted;
    int cut = sequence->n_done + room;
    do { /* before a span that does not end here, and at a multiple: until it is both */
        cut = cut / batch->quantum * batch->quantum;
        while (sequence->spans && cut > sequence->n_done && sequence->spans[cut - 1] > cut)
            cut--;
    } while (cut > sequence->n_done && cut % batch->quantum);
    return max(cut - sequence->n_done, 0);
}

void burin_batch_fill(
        struct burin_batch *batch,
        const struct burin_sequence *sequences,
        const int *order,
        int n_order,
        struct burin_kv *kv)
{
    batch->n_tokens = 0;
    batch->n_sequences = 0;
    batch->n_outputs = 0;
    batch->sequence_begin[0] = 0;
    batch->output_begin[0] = 0;

    for (int i = 0; i < n_order; i++) {
        const struct burin_sequence *sequence = &sequences[order[i]];
        if (sequence->n_done >= sequence->n_ids)
            add_rows(
                    batch, order[i], sequence, &sequence->token, sequence->n_done, 1, 1,
                    kv);
    }
    for (int i = 0; i < n_order; i++) {
        const struct burin_sequence *sequence = &sequences[order[i]];
        if (sequence->n_done >= sequence->n_ids)
            continue;
        const int n_rows = chunk_of(batch, sequence);
        const int end = sequence->n_done + n_rows;
        const int n_outputs = min(max(end - sequence->outputs_from, 0), n_rows);
        if (n_rows)
            add_rows(
                    batch, order[i], sequence, sequence->ids + sequence->n_done,
                    sequence->n_done, n_rows, n_outputs, kv);
    }
}
