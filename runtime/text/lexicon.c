#include "runtime/text/lexicon.h"

#include "runtime/base/round.h"
#include "runtime/base/utf8.h"

#include <string.h>

enum { ALIGN = 64, MOST_BYTES = 1 << 30 };

/* ---- The alphabet ---------------------------------------------------------------- */

/* Bytes that print stand for themselves; the other 68 are U+0100 and on, in order: 00 to 20,
 * 7F to A0, AD (Radford et al. 2019, the code of GPT-2). -1 for other characters. */
static int byte_of_character(uint32_t c)
{
    if ((c >= 0x21 && c <= 0x7E) || (c >= 0xA1 && c <= 0xAC) || (c >= 0xAE && c <= 0xFF))
        return (int)c;
    if (c < 0x100 || c > 0x143)
        return -1;
    const int i = (int)c - 0x100;
    return i <= 0x20 ? i : i < 0x43 ? i - 0x21 + 0x7F : 0xAD;
}

static size_t alphabet_bytes(struct burin_span text, char *bytes, bool *is_spelled)
{
    const char *at = text.at;
    const char *const end = text.at + text.length;
    size_t n = 0;

    *is_spelled = false;
    while (at < end) {
        const int byte = byte_of_character(burin_utf8_next(&at));
        if (byte < 0) {
            if (bytes)
                memcpy(bytes, text.at, text.length);
            return text.length;
        }
        if (bytes)
            bytes[n] = (char)byte;
        n++;
    }
    *is_spelled = true;
    return n;
}

static const char block[] = "\xE2\x96\x81"; /* U+2581 */
enum { BLOCK = 3 };

size_t burin_put_spaces(char *text, size_t length)
{
    size_t n = 0;
    for (size_t i = 0; i < length; n++) {
        const bool is_block = length - i >= BLOCK && memcmp(text + i, block, BLOCK) == 0;
        text[n] = text[i];
        if (is_block)
            text[n] = ' ';
        i += is_block ? BLOCK : 1;
    }
    return n;
}

static size_t text_bytes(struct burin_span text, char *bytes, bool *is_spelled)
{
    size_t n = 0;

    *is_spelled = true;
    for (size_t i = 0; i < text.length; n++) {
        const bool is_block =
                text.length - i >= BLOCK && memcmp(text.at + i, block, BLOCK) == 0;
        *is_spelled = *is_spelled && text.at[i] != ' ';
        if (bytes)
            bytes[n] = text.at[i];
        if (bytes && is_block)
            bytes[n] = ' ';
        i += is_block ? BLOCK : 1;
    }
    return n;
}

size_t burin_spelled_bytes(
        enum burin_spelling spelling, struct burin_span text, char *bytes, bool *is_spelled)
{
    return spelling == BURIN_SPELLED_TEXT ? text_bytes(text, bytes, is_spelled)
                                          : alphabet_bytes(text, bytes, is_spelled);
}

/* Of a token: <0xE2> is one byte, which merging does not make. */
static size_t token_bytes(
        const struct burin_vocab *vocab, int32_t id, char *bytes, bool *is_spelled)
{
    const struct burin_vocab_token *token = &vocab->tokens[id];
    if (token->kind != BURIN_TOKEN_BYTE)
        return burin_spelled_bytes(vocab->spelling, token->text, bytes, is_spelled);
    if (bytes)
        *bytes = (char)burin_token_byte(token->text);
    *is_spelled = false;
    return 1;
}

/* ---- The table ------------------------------------------------------------------- */

static uint32_t n_slots(int32_t n_tokens)
{
    uint32_t n = 64;
    while (n < 2 * (uint32_t)n_tokens)
        n *= 2;
    return n;
}

struct layout {
    size_t begins, slots, kinds, is_whole, bytes, end;
};

static struct layout lay_out(int32_t n_tokens, size_t n_bytes)
{
    const size_t n = (size_t)n_tokens;
    struct layout at = { 0 };
    at.slots = burin_round_up(at.begins + (n + 1) * sizeof(uint32_t), ALIGN);
    at.kinds = burin_round_up(at.slots + n_slots(n_tokens) * sizeof(int32_t), ALIGN);
    at.is_whole = burin_round_up(at.kinds + n, ALIGN);
    at.bytes = burin_round_up(at.is_whole + n, ALIGN);
    at.end = burin_round_up(at.bytes + n_bytes, ALIGN);
    return at;
}

enum burin_status burin_lexicon_bytes(
        const struct burin_vocab *vocab, size_t *bytes, struct burin_error *err)
{
    size_t total = 0;
    for (int32_t id = 0; id < vocab->n_tokens; id++) {
        bool is_spelled;
        const size_t length = token_bytes(vocab, id, NULL, &is_spelled);
        if (length > BURIN_LONGEST_TOKEN)
            return burin_fail(
                    err, BURIN_ELIMIT, "token %d has %zu bytes, the limit is %d", id,
                    length, BURIN_LONGEST_TOKEN);
        total += length;
        if (total > MOST_BYTES)
            return burin_fail(
                    err, BURIN_ELIMIT, "the tokens have more than %d bytes", MOST_BYTES);
    }
    *bytes = lay_out(vocab->n_tokens, total).end;
    return BURIN_OK;
}

static uint64_t mix(uint64_t h, struct burin_span text)
{
    const char *const end = text.at + text.length;
    for (const char *at = text.at; at < end; at++)
        h = (h ^ (uint8_t)*at) * 0x100000001B3;
    return h;
}

/* FNV-1a, folded. */
static uint32_t hash(struct burin_span head, struct burin_span tail)
{
    const uint64_t h = mix(mix(0xCBF29CE484222325, head), tail);
    return (uint32_t)(h >> 32 ^ h);
}

static bool is_same(struct burin_span a, struct burin_span head, struct burin_span tail)
{
    return a.length == head.length + tail.length &&
           (!head.at || memcmp(a.at, head.at, head.length) == 0) &&
           (!tail.at || memcmp(a.at + head.length, tail.at, tail.length) == 0);
}

static int32_t *find_slot(
        const struct burin_lexicon *lexicon, struct burin_span head, struct burin_span tail)
{
    uint32_t i = hash(head, tail) & lexicon->mask;
    while (lexicon->slots[i] >= 0 &&
           !is_same(burin_lexicon_token(lexicon, lexicon->slots[i]), head, tail))
        i = (i + 1) & lexicon->mask;
    return &lexicon->slots[i];
}

int32_t burin_lexicon_find(
        const struct burin_lexicon *lexicon, struct burin_span head, struct burin_span tail)
{
    return *find_slot(lexicon, head, tail);
}

int32_t burin_lexicon_whole(const struct burin_lexicon *lexicon, struct burin_span piece)
{
    if (piece.length > lexicon->longest)
        return -1;
    const int32_t id = *find_slot(lexicon, piece, (struct burin_span){ 0 });
    return id >= 0 && lexicon->is_whole[id] ? id : -1;
}

/* An added token whose name the model's own list has under another id: the reference takes the
 * model's and warns; which of the two was meant is not for us to guess. */
static enum burin_status check_added(
        const struct burin_lexicon *lexicon,
        const struct burin_vocab *vocab,
        struct burin_error *err)
{
    for (int32_t id = 0; id < vocab->n_tokens; id++) {
        const struct burin_vocab_token *token = &vocab->tokens[id];
        if (token->kind == BURIN_TOKEN_NONE || token->in_model)
            continue;
        const int32_t other = burin_lexicon_find(
                lexicon, burin_lexicon_token(lexicon, id), (struct burin_span){ 0 });
        if (other >= 0 && burin_span_compare(vocab->tokens[other].text, token->text) == 0)
            return burin_fail(
                    err, BURIN_EFORMAT, "added token %s has id %d, but it is token %d",
                    burin_quote(token->text).text, id, other);
    }
    return BURIN_OK;
}

enum burin_status burin_lexicon_fill(
        struct burin_lexicon *lexicon,
        const struct burin_vocab *vocab,
        void *region,
        struct burin_error *err)
{
    const struct layout at = lay_out(vocab->n_tokens, 0);
    char *const base = region;
    const uint32_t n = n_slots(vocab->n_tokens);

    *lexicon = (struct burin_lexicon){
        .n_tokens = vocab->n_tokens,
        .spelling = vocab->spelling,
        .begins = (uint32_t *)(base + at.begins),
        .slots = (int32_t *)(base + at.slots),
        .kinds = (uint8_t *)(base + at.kinds),
        .is_whole = (bool *)(base + at.is_whole),
        .bytes = base + at.bytes,
        .mask = n - 1,
    };
    memset(lexicon->slots, 0xFF, n * sizeof *lexicon->slots);
    lexicon->begins[0] = 0;

    for (int32_t id = 0; id < vocab->n_tokens; id++) {
        const struct burin_vocab_token *token = &vocab->tokens[id];
        bool is_spelled;
        const size_t length =
                token_bytes(vocab, id, lexicon->bytes + lexicon->n_bytes, &is_spelled);

        lexicon->n_bytes += length;
        lexicon->begins[id + 1] = (uint32_t)lexicon->n_bytes;
        lexicon->kinds[id] = (uint8_t)token->kind;
        lexicon->is_whole[id] = false;
        if (length > lexicon->longest)
            lexicon->longest = length;
        if (!is_spelled || length == 0 || !token->in_model)
            continue;

        int32_t *slot = find_slot(
                lexicon, burin_lexicon_token(lexicon, id), (struct burin_span){ 0 });
        if (*slot >= 0 && token->kind == BURIN_TOKEN_NORMAL &&
            lexicon->kinds[*slot] == BURIN_TOKEN_NORMAL)
            return burin_fail(
                    err, BURIN_EFORMAT, "tokens %d and %d are both %s", *slot, id,
                    burin_quote(token->text).text);
        if (*slot < 0 || token->kind == BURIN_TOKEN_NORMAL)
            *slot = id;
    }
    return check_added(lexicon, vocab, err);
}
