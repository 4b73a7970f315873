/* runtime/text/vocab_gguf.h -- Private to the readers of a GGUF file's vocabulary.
 *
 * Threads  As vocab.h. */
#ifndef BURIN_TEXT_VOCAB_GGUF_H
#define BURIN_TEXT_VOCAB_GGUF_H

#include "runtime/base/status.h"
#include "runtime/text/vocab.h"
#include "runtime/weights/gguf.h"

/* The merges that scores stand for; the vocab has its tokens, one score each. None
 * of them is NaN. */
enum burin_status burin_vocab_merges_by_score(
        struct burin_vocab *vocab,
        const struct burin_gguf_array *scores,
        struct burin_error *err);

#endif
