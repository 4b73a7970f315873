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

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int burin_token_byte(struct burin_span text)
{
    if (text.length != 6 || memcmp(text.at, "<0x", 3) != 0 || text.at[5] != '>')
        return -1;
    const int high = hex_digit(text.at[3]);
    const int low = hex_digit(text.at[4]);
    return high >= 0 && low >= 0 ? 16 * high + low : -1;
}

void burin_vocab_close(struct burin_vocab *vocab)
{
    burin_arena_close(&vocab->arena);
    *vocab = (struct burin_vocab){ 0 };
}
