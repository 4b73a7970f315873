#include "runtime/text/vocab.h"

#include <jansson.h>

void burin_vocab_close(struct burin_vocab *vocab)
{
    json_decref(vocab->document);
    burin_arena_close(&vocab->arena);
    *vocab = (struct burin_vocab){ 0 };
}
