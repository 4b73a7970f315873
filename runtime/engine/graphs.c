#include "runtime/engine/graphs.h"

#include <assert.h>
#include <string.h>

void burin_captures_add(
        struct burin_captures *captures, const struct burin_captured *captured)
{
    assert(captures->n < BURIN_MAX_CAPTURES);
    captures->at[captures->n++] = *captured;
}

const struct burin_captured *burin_captures_find(
        const struct burin_captures *captures, const struct burin_program *program, int n)
{
    const struct burin_captured *found = NULL;
    for (int i = 0; i < captures->n; i++) {
        const struct burin_captured *at = &captures->at[i];
        if (at->program == program && at->n >= n && (!found || at->n < found->n))
            found = at;
    }
    return found;
}

void burin_captures_count(
        struct burin_captures *captures, const struct burin_captured *captured, int n)
{
    captures->n_eager += !captured;
    captures->n_replayed += captured != NULL;
    captures->n_padded += captured && captured->n > n;
}

void burin_captures_drop(struct burin_captures *captures, int i)
{
    burin_graph_close(&captures->at[i].graph);
    captures->n--;
    memmove(&captures->at[i], &captures->at[i + 1],
            (size_t)(captures->n - i) * sizeof captures->at[i]);
}

void burin_captures_close(struct burin_captures *captures)
{
    while (captures->n > 0)
        burin_captures_drop(captures, captures->n - 1);
}

bool burin_batch_decodes(const struct burin_batch *batch)
{
    return batch->n_tokens == batch->n_sequences && batch->n_outputs == batch->n_sequences;
}

void burin_batch_pad(const struct burin_batch *batch, int n)
{
    for (int i = batch->n_sequences; i < n; i++) {
        batch->token_ids[i] = 0;
        batch->positions[i] = -1;
        batch->sequence_of[i] = i;
        batch->sequence_begin[i + 1] = i + 1;
        batch->page_table[(size_t)i * (size_t)batch->max_pages] = 0;
        batch->output_rows[i] = i;
        batch->output_positions[i] = -1;
        batch->output_sequence_of[i] = i;
        batch->output_begin[i + 1] = i + 1;
        batch->state_of[i] = -1;
        batch->spans[i] = 0;
        batch->soft_index[i] = -1;
    }
}
