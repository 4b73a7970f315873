/* tests/fuzz/fuzz_tokenizer_json.c -- A tokenizer.json of any bytes is read or refused; what is
 * read opens in the bytes it planned, and encodes and decodes texts. */
#include "runtime/text/detokenize.h"
#include "runtime/text/tokenizer.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static const char text[] =
        "don't <s><mask> caf\xC3\xA9 e\xCC\x81 12\xC2\xBD  \n\n \xF0\x9F\xA6\x99"
        "<|im_end|> \xE6\xBC\xA2\xE5\xAD\x97 abababab\t<think>";

static void use(const struct burin_tokenizer *tokenizer, enum burin_specials specials)
{
    struct burin_arena arena = { 0 };
    struct burin_span back;
    int32_t *ids;
    size_t n;
    const enum burin_status status = burin_encode(
            tokenizer, (struct burin_span){ text, sizeof text - 1 }, specials, &arena, &ids,
            &n, NULL);
    PROMISE(status == BURIN_OK || status == BURIN_ELIMIT);
    if (!status) {
        const struct burin_tokenizer_facts facts = burin_tokenizer_facts(tokenizer);
        PROMISE(n <= 3 * sizeof text);
        for (size_t i = 0; i < n; i++)
            PROMISE(ids[i] >= 0 && ids[i] < facts.n_tokens);
        PROMISE(burin_decode(tokenizer, ids, n, true, &arena, &back, NULL) == BURIN_OK);
    }
    burin_arena_close(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct burin_vocab vocab;
    struct burin_tokenizer *tokenizer;
    struct burin_error err = { 0 };
    size_t planned = 0;

    if (burin_vocab_from_json(
                &vocab, (struct burin_span){ (const char *)bytes, n }, &err)) {
        PROMISE(err.message[0]);
        return 0;
    }
    PROMISE(vocab.arena.obtained <= 4 * n + 66 * 1024 * 1024);
    if (burin_tokenizer_plan(&vocab, &planned, &err) == BURIN_OK) {
        void *memory = NULL;
        PROMISE(posix_memalign(&memory, 64, planned) == 0);
        if (burin_tokenizer_open(&tokenizer, &vocab, memory, planned, &err) == BURIN_OK) {
            use(tokenizer, BURIN_PLAIN);
            use(tokenizer, BURIN_SPECIALS);
            burin_tokenizer_close(tokenizer);
        }
        free(memory);
    }
    burin_vocab_close(&vocab);
    return 0;
}
