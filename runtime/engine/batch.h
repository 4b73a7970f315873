/* runtime/engine/batch.h -- Which rows the next step computes: new tokens of some sequences and
 * chunks of the prompts of others, together.
 *
 * Order    First one row of each sequence that makes tokens, then prompts, the oldest first,
 *          as far as the step has room. A prompt is cut where the step is full, at a multiple
 *          of the program's quantum and not within a span. Only positions decide what a row
 *          computes, so the order and the cuts change no bit of it.
 * Memory   The arrays of a step stand at fixed addresses; nothing is allocated.
 * Threads  One at a time. */
#ifndef BURIN_ENGINE_BATCH_H
#define BURIN_ENGINE_BATCH_H

#include "runtime/engine/kv.h"

#include <stdbool.h>
#include <stdint.h>

/* One that has a slot. */
struct burin_sequence {
    const int32_t *ids; /* the prompt */
    int n_ids;
    int outputs_from; /* position in the prompt from which each row's logits are wanted: at
                         most n_ids - 1, a token is drawn after the last */
    int n_ready; /* tokens of the prompt that can run: those before a picture that is not encoded */
    int n_done;    /* tokens that are in the cache */
    int32_t token; /* to run next, when the prompt is done */

    /* Of pictures and sound within the prompt, for each id; NULL without any. */
    const int32_t
            *soft_index;  /* the row of soft_rows that stands there, -1: the id's own */
    const int32_t *spans; /* one past the last position of its picture, where that is never
                             cut and its tokens see each other; else past its own */
};

/* The rows of one sequence in this step. */
struct burin_part {
    int slot;
    int first_row;
    int n_rows;
    int first_output; /* the outputs are its last n_outputs rows */
    int n_outputs;
};

struct burin_batch {
    /* Set once. */
    int max_tokens;
    int max_sequences;
    int max_outputs;
    int max_pages; /* a row of page_table */
    int quantum;
    struct burin_part *parts; /* max_sequences */
    int32_t *token_ids;   /* max_tokens; the step's inputs, as runtime/model.h has them */
    int32_t *positions;   /* max_tokens */
    int32_t *sequence_of; /* max_tokens */
    int32_t *sequence_begin;     /* max_sequences + 1 */
    int32_t *page_table;         /* (max_sequences, max_pages) */
    int32_t *output_rows;        /* max_outputs; of these rows: */
    int32_t *output_positions;   /* max_outputs */
    int32_t *output_sequence_of; /* max_outputs */
    int32_t *output_begin;       /* max_sequences + 1 */
    int32_t *state_of;           /* max_sequences */
    int32_t *spans;              /* max_tokens */
    int32_t *soft_index;         /* max_tokens */

    /* The step. */
    int n_tokens;
    int n_sequences; /* and parts */
    int n_outputs;
};

/* Fill the step's arrays from the sequences, by slot; order[0 ... n_order) are the slots in
 * use, the oldest first. Slots get the pages that their rows need. A step without rows means
 * that nobody has anything to run. */
void burin_batch_fill(
        struct burin_batch *batch,
        const struct burin_sequence *sequences,
        const int *order,
        int n_order,
        struct burin_kv *kv);

#endif
