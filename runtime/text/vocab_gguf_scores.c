/* Merges for a SentencePiece vocabulary that lists scores: every way to cut a piece into two
 * others, the best score first, then the longest left part, as transformers makes them. */
#include "runtime/text/vocab_gguf.h"

#include "runtime/base/utf8.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct cut {
    double score;
    int32_t piece;
    uint32_t at;          /* bytes of the left part */
    uint32_t left_length; /* in characters */
};

/* A table of the pieces by their texts. */
struct pieces {
    const struct burin_vocab *vocab;
    uint32_t mask;
    int32_t *slots; /* an id plus one, 0: empty */
};

static uint32_t hash_of(struct burin_span text)
{
    uint64_t h = 0xCBF29CE484222325;
    for (size_t i = 0; i < text.length; i++)
        h = (h ^ (uint8_t)text.at[i]) * 0x100000001B3;
    return (uint32_t)(h >> 32 ^ h);
}

static int32_t *slot_of(const struct pieces *pieces, struct burin_span text)
{
    uint32_t i = hash_of(text) & pieces->mask;
    while (pieces->slots[i] &&
           burin_span_compare(pieces->vocab->tokens[pieces->slots[i] - 1].text, text) != 0)
        i = (i + 1) & pieces->mask;
    return &pieces->slots[i];
}

/* Merges make these and nothing else. */
static bool is_piece(const struct burin_vocab_token *token)
{
    return token->kind == BURIN_TOKEN_NORMAL || token->kind == BURIN_TOKEN_ADDED;
}

static bool has_piece(const struct pieces *pieces, const char *at, size_t length)
{
    return *slot_of(pieces, (struct burin_span){ at, length }) != 0;
}

/* The cuts of one piece into `cuts`, unless that is NULL; returns how many there are. */
static size_t cut_piece(
        const struct pieces *pieces, int32_t id, double score, struct cut *cuts)
{
    const struct burin_span text = pieces->vocab->tokens[id].text;
    const char *at = text.at;
    size_t n = 0;
    uint32_t n_characters = 0;

    for (;;) {
        burin_utf8_next(&at);
        n_characters++;
        const size_t left = (size_t)(at - text.at);
        if (left >= text.length)
            return n;
        if (!has_piece(pieces, text.at, left) || !has_piece(pieces, at, text.length - left))
            continue;
        if (cuts)
            cuts[n] = (struct cut){ score, id, (uint32_t)left, n_characters };
        n++;
    }
}

static int by_urgency(const void *a, const void *b)
{
    const struct cut *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    if (x->left_length != y->left_length)
        return x->left_length > y->left_length ? -1 : 1;
    return x->piece != y->piece ? (x->piece < y->piece ? -1 : 1) : 0;
}

enum burin_status burin_vocab_merges_by_score(
        struct burin_vocab *vocab,
        const struct burin_gguf_array *scores,
        struct burin_error *err)
{
    struct pieces pieces = { .vocab = vocab, .mask = 63 };
    while (pieces.mask < 2 * (uint32_t)vocab->n_tokens)
        pieces.mask = 2 * pieces.mask + 1;
    pieces.slots = BURIN_TAKE(&vocab->arena, (size_t)pieces.mask + 1, int32_t);
    if (!pieces.slots)
        return burin_fail(err, BURIN_ENOMEM, "no memory for %d tokens", vocab->n_tokens);
    for (int32_t id = 0; id < vocab->n_tokens; id++)
        if (is_piece(&vocab->tokens[id]) && vocab->tokens[id].text.length)
            *slot_of(&pieces, vocab->tokens[id].text) = id + 1;

    size_t n = 0;
    for (int32_t id = 0; id < vocab->n_tokens; id++)
        if (is_piece(&vocab->tokens[id]) && vocab->tokens[id].text.length)
            n += cut_piece(&pieces, id, 0, NULL);
    if (n > INT_MAX)
        return burin_fail(err, BURIN_ELIMIT, "the file has %zu merges", n);

    struct cut *cuts = BURIN_TAKE(&vocab->arena, n + 1, struct cut);
    vocab->merges = BURIN_TAKE(&vocab->arena, n + 1, struct burin_vocab_merge);
    if (!cuts || !vocab->merges)
        return burin_fail(err, BURIN_ENOMEM, "no memory for %zu merges", n);
    n = 0;
    for (int32_t id = 0; id < vocab->n_tokens; id++) {
        const bool is_own = vocab->tokens[id].kind == BURIN_TOKEN_ADDED;
        /* llama.cpp's converter gives -1000 to what the authors defined; in the model it is 0,
         * above all others. */
        const double score = is_own ? 0 : burin_gguf_element(scores, (uint64_t)id);
        if (is_piece(&vocab->tokens[id]) && vocab->tokens[id].text.length)
            n += cut_piece(&pieces, id, score, cuts + n);
    }
    qsort(cuts, n, sizeof *cuts, by_urgency);
    vocab->n_merges = n;
    for (size_t i = 0; i < n; i++) {
        const struct burin_span text = vocab->tokens[cuts[i].piece].text;
        vocab->merges[i] = (struct burin_vocab_merge){
            { text.at, cuts[i].at },
            { text.at + cuts[i].at, text.length - cuts[i].at },
        };
    }
    return BURIN_OK;
}
