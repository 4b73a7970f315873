#include "runtime/text/vocab.h"

void burin_vocab_close(struct burin_vocab *vocab)
{
    burin_arena_close(&vocab->arena);
    *vocab = (struct burin_vocab){ 0 };
}
