#include "runtime/text/vocab.h"

#include "runtime/weights/checkpoint.h"

#include <stdio.h>
#include <string.h>

enum burin_status burin_vocab_from_checkpoint(
        struct burin_vocab *vocab,
        const struct burin_checkpoint *checkpoint,
        bool *found,
        struct burin_error *err)
{
    enum burin_status status;
    *found = true;
    if (checkpoint->container == BURIN_GGUF)
        return burin_vocab_from_gguf(vocab, &checkpoint->gguf, err);

    char path[4096];
    const int length = snprintf(path, sizeof path, "%s/tokenizer.json", checkpoint->folder);
    if (length < 0 || (size_t)length >= sizeof path)
        return burin_fail(err, BURIN_ELIMIT, "the path %.80s... is too long", path);
    status = burin_vocab_from_json_file(vocab, path, err);
    *found = status != BURIN_EMISSING;
    return *found ? status : BURIN_OK;
}

int burin_token_byte(struct burin_span text)
{
    static const char digits[] = "0123456789ABCDEF";
    if (text.length != 6 || memcmp(text.at, "<0x", 3) != 0 || text.at[5] != '>')
        return -1;
    const char *high = memchr(digits, text.at[3], 16);
    const char *low = memchr(digits, text.at[4], 16);
    return high && low ? (int)(16 * (high - digits) + (low - digits)) : -1;
}

void burin_vocab_close(struct burin_vocab *vocab)
{
    burin_arena_close(&vocab->arena);
    *vocab = (struct burin_vocab){ 0 };
}
