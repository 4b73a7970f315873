#include "runtime/text/tokenizer.h"

#include "runtime/base/round.h"
#include "runtime/text/added.h"
#include "runtime/text/bpe.h"
#include "runtime/text/lexicon.h"
#include "runtime/text/normalize.h"
#include "runtime/text/pre_tokenize.h"
#include "runtime/text/unicode.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

enum {
    ALIGN = 64,
    SHORT_TOKEN = 128,              /* bytes that merge without an arena, bpe.h */
    HALF = 3 * BURIN_LONGEST_TOKEN, /* of a merge, as its file spells it */
};

struct burin_tokenizer {
    struct burin_lexicon lexicon;
    struct burin_bpe bpe;
    struct burin_added added;
    struct burin_splits splits;
    size_t n_merges;
    bool nfc;
    int n_prefix;
    int32_t prefix[BURIN_MAX_PREFIX];
    int32_t eos;
    uint64_t hash;
};

/* ---- Plan and open ---------------------------------------------------------------- */

struct layout {
    size_t lexicon, bpe, added, splits, end;
};

static enum burin_status lay_out(
        const struct burin_vocab *vocab, struct layout *at, struct burin_error *err)
{
    size_t lexicon_bytes;
    const enum burin_status status = burin_lexicon_bytes(vocab, &lexicon_bytes, err);
    if (status)
        return status;

    at->lexicon = burin_round_up(sizeof(struct burin_tokenizer), ALIGN);
    at->bpe = at->lexicon + lexicon_bytes;
    at->added = at->bpe + burin_bpe_bytes(vocab->n_merges);
    at->splits = at->added + burin_added_bytes(vocab);
    at->end = at->splits + burin_splits_bytes(vocab->splits, vocab->n_splits);
    return BURIN_OK;
}

enum burin_status burin_tokenizer_plan(
        const struct burin_vocab *vocab, size_t *bytes, struct burin_error *err)
{
    struct layout at;
    const enum burin_status status = lay_out(vocab, &at, err);
    if (!status)
        *bytes = at.end;
    return status;
}

/* The bytes of a merge's half; `room` holds the longest token. */
static struct burin_span half(
        enum burin_spelling spelling, struct burin_span text, char *room, bool *is_spelled)
{
    /* A byte takes a character of one or two bytes, or a space three. */
    if (text.length > HALF) {
        *is_spelled = true;
        return (struct burin_span){ 0 };
    }
    return (struct burin_span){ room,
                                burin_spelled_bytes(spelling, text, room, is_spelled) };
}

static enum burin_status put_merges(
        struct burin_tokenizer *t,
        const struct burin_vocab *vocab,
        char *room,
        struct burin_error *err)
{
    static const struct burin_span nothing = { 0 };

    for (size_t i = 0; i < vocab->n_merges; i++) {
        const struct burin_vocab_merge *merge = &vocab->merges[i];
        bool left_spelled;
        bool right_spelled;
        const struct burin_span left =
                half(vocab->spelling, merge->left, room, &left_spelled);
        const struct burin_span right =
                half(vocab->spelling, merge->right, room + HALF, &right_spelled);
        if (!left_spelled || !right_spelled)
            continue; /* no text holds such characters once it is spelled */

        const int32_t l = burin_lexicon_find(&t->lexicon, left, nothing);
        const int32_t r = burin_lexicon_find(&t->lexicon, right, nothing);
        const int32_t merged = burin_lexicon_find(&t->lexicon, left, right);
        if (l < 0 || r < 0 || merged < 0)
            return burin_fail(
                    err, BURIN_EFORMAT, "merge %zu joins %s and %s, but %s is no token", i,
                    burin_quote(merge->left).text, burin_quote(merge->right).text,
                    l < 0   ? "the first"
                    : r < 0 ? "the second"
                            : "what it makes");
        burin_bpe_put(&t->bpe, l, r, (uint32_t)i, merged);
    }
    return BURIN_OK;
}

/* Most words of a text are one token, and a look at the lexicon finds it, provided that the
 * merges would make it too. */
static void mark_whole_tokens(struct burin_tokenizer *t, bool ignore_merges)
{
    for (int32_t id = 0; id < t->lexicon.n_tokens; id++) {
        const struct burin_span bytes = burin_lexicon_token(&t->lexicon, id);
        const bool is_made = t->lexicon.kinds[id] != BURIN_TOKEN_SPECIAL &&
                             t->lexicon.kinds[id] != BURIN_TOKEN_BYTE;

        if (bytes.length == 0 || !is_made ||
            burin_lexicon_find(&t->lexicon, bytes, (struct burin_span){ 0 }) != id)
            continue;
        if (ignore_merges) {
            t->lexicon.is_whole[id] = true;
        } else if (bytes.length <= SHORT_TOKEN) {
            int32_t ids[SHORT_TOKEN];
            size_t n;
            burin_bpe_encode(&t->bpe, bytes, NULL, ids, &n);
            t->lexicon.is_whole[id] = n == 1 && ids[0] == id;
        }
    }
}

/* What merging begins with: bytes, or characters and the bytes that stand in for them. */
static void begin_with(struct burin_tokenizer *t, const struct burin_vocab *vocab)
{
    struct burin_bpe *bpe = &t->bpe;

    bpe->unknown = vocab->unknown;
    bpe->fuse_unknown = vocab->fuse_unknown;
    if (vocab->spelling != BURIN_SPELLED_TEXT) {
        for (int byte = 0; byte < 256; byte++) {
            const char text = (char)byte;
            bpe->byte_ids[byte] = burin_lexicon_find(
                    &t->lexicon, (struct burin_span){ &text, 1 }, (struct burin_span){ 0 });
        }
        return;
    }
    bpe->lexicon = &t->lexicon;
    bpe->byte_fallback = vocab->byte_fallback;
    for (int byte = 0; byte < 256; byte++)
        bpe->byte_ids[byte] = -1;
    for (int32_t id = 0; id < vocab->n_tokens; id++)
        if (vocab->tokens[id].kind == BURIN_TOKEN_BYTE)
            bpe->byte_ids[burin_token_byte(vocab->tokens[id].text)] = id;
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ at[i]) * 0x100000001B3;
    return (hash ^ length) * 0x100000001B3;
}

static uint64_t hash_of(const struct burin_vocab *vocab)
{
    uint64_t hash = 0xCBF29CE484222325;
    for (int32_t i = 0; i < vocab->n_tokens; i++)
        hash = mix(hash, vocab->tokens[i].text.at, vocab->tokens[i].text.length);
    for (size_t i = 0; i < vocab->n_merges; i++) {
        hash = mix(hash, vocab->merges[i].left.at, vocab->merges[i].left.length);
        hash = mix(hash, vocab->merges[i].right.at, vocab->merges[i].right.length);
    }
    for (int i = 0; i < vocab->n_added; i++)
        hash = mix(hash, vocab->added[i].content.at, vocab->added[i].content.length);
    for (int i = 0; i < vocab->n_splits; i++)
        hash = mix(hash, vocab->splits[i].pattern.at, vocab->splits[i].pattern.length);
    return hash;
}

enum burin_status burin_tokenizer_open(
        struct burin_tokenizer **tokenizer,
        const struct burin_vocab *vocab,
        void *memory,
        size_t bytes,
        struct burin_error *err)
{
    struct layout at;
    enum burin_status status = lay_out(vocab, &at, err);
    *tokenizer = NULL;
    if (status)
        return status;
    if (bytes != at.end || (uintptr_t)memory % ALIGN != 0)
        return burin_fail(
                err, BURIN_EUSAGE, "the tokenizer needs %zu bytes aligned to %d, got %zu",
                at.end, ALIGN, bytes);

    char *const base = memory;
    struct burin_tokenizer *t = memory;
    *t = (struct burin_tokenizer){
        .n_merges = vocab->n_merges,
        .nfc = vocab->nfc,
        .n_prefix = vocab->n_prefix,
        .eos = vocab->eos,
        .hash = hash_of(vocab),
    };
    memcpy(t->prefix, vocab->prefix, sizeof t->prefix);

    status = burin_lexicon_fill(&t->lexicon, vocab, base + at.lexicon, err);
    if (status)
        return status;
    burin_bpe_begin(&t->bpe, vocab->n_merges, base + at.bpe);
    begin_with(t, vocab);
    /* The patterns' region is not in use yet. */
    static_assert(2 * HALF <= BURIN_SPLITS_WORK, "room for two halves");
    status = put_merges(t, vocab, base + at.splits, err);
    if (status)
        return status;
    mark_whole_tokens(t, vocab->ignore_merges);
    status = burin_added_fill(&t->added, vocab, base + at.added, err);
    if (status)
        return status;
    status = burin_splits_open(
            &t->splits, vocab->splits, vocab->n_splits, base + at.splits, err);
    if (!status)
        *tokenizer = t;
    return status;
}

void burin_tokenizer_close(struct burin_tokenizer *tokenizer)
{
    if (tokenizer)
        burin_splits_close(&tokenizer->splits);
}

/* ---- Encode ----------------------------------------------------------------------- */

struct job {
    const struct burin_tokenizer *t;
    enum burin_specials specials;
    struct burin_arena *arena;
    struct burin_walk walk;
    int32_t *ids;
    size_t n_ids;
    struct burin_error *err;
};

/* Text without added tokens, normalized. */
static enum burin_status encode_pieces(struct job *job, struct burin_span text)
{
    const struct burin_tokenizer *t = job->t;
    const char *subject = text.at;
    bool has_stand_ins = false;

    if (t->splits.n > 0)
        burin_utf8_valid(text, &has_stand_ins);
    if (has_stand_ins) {
        char *copy = burin_arena_text(job->arena, text.at, text.length);
        if (!copy)
            return burin_fail(
                    job->err, BURIN_ENOMEM, "no memory to encode %zu bytes", text.length);
        burin_put_stand_ins(copy, text.length);
        subject = copy;
    }

    burin_walk_text(&job->walk, text.at, subject, text.length);
    for (;;) {
        struct burin_span piece;
        const enum burin_status status = burin_walk_next(&job->walk, &piece, job->err);
        if (status || !piece.at)
            return status;

        const int32_t whole = burin_lexicon_whole(&t->lexicon, piece);
        if (whole >= 0) {
            job->ids[job->n_ids++] = whole;
            continue;
        }
        size_t n;
        if (!burin_bpe_encode(&t->bpe, piece, job->arena, job->ids + job->n_ids, &n))
            return burin_fail(
                    job->err, BURIN_ENOMEM, "no memory to merge a word of %zu bytes",
                    piece.length);
        job->n_ids += n;
    }
}

/* U+2581 is a space to such a vocabulary, as a space is U+2581 to its reference. */
static enum burin_status put_spaces(struct job *job, struct burin_span *text)
{
    if (!memmem(text->at, text->length, "\xE2\x96\x81", 3))
        return BURIN_OK;
    char *copy = burin_arena_text(job->arena, text->at, text->length);
    if (!copy)
        return burin_fail(
                job->err, BURIN_ENOMEM, "no memory to encode %zu bytes", text->length);
    *text = (struct burin_span){ copy, burin_put_spaces(copy, text->length) };
    return BURIN_OK;
}

/* Text without the added tokens that are looked for before normalizing. */
static enum burin_status encode_raw(struct job *job, struct burin_span text)
{
    const struct burin_added_token *token;
    struct burin_span part = text;
    enum burin_status status = BURIN_OK;

    if (job->t->nfc)
        status = burin_nfc(text, job->arena, &part, job->err);
    if (!status && job->t->lexicon.spelling == BURIN_SPELLED_TEXT)
        status = put_spaces(job, &part);
    struct burin_added_walk walk = {
        .added = &job->t->added,
        .pass = BURIN_NORMALIZED,
        .with_specials = job->specials == BURIN_SPECIALS,
        .text = part,
    };
    while (!status && burin_added_next(&walk, &part, &token)) {
        if (token)
            job->ids[job->n_ids++] = token->id;
        else
            status = encode_pieces(job, part);
    }
    return status;
}

static enum burin_status encode_text(struct job *job, struct burin_span text)
{
    const struct burin_added_token *token;
    struct burin_span part;
    struct burin_added_walk walk = {
        .added = &job->t->added,
        .pass = BURIN_RAW,
        .with_specials = job->specials == BURIN_SPECIALS,
        .text = text,
    };
    while (burin_added_next(&walk, &part, &token)) {
        if (token) {
            job->ids[job->n_ids++] = token->id;
            continue;
        }
        const enum burin_status status = encode_raw(job, part);
        if (status)
            return status;
    }
    return BURIN_OK;
}

enum burin_status burin_encode(
        const struct burin_tokenizer *tokenizer,
        struct burin_span text,
        enum burin_specials specials,
        struct burin_arena *arena,
        int32_t **ids,
        size_t *n_ids,
        struct burin_error *err)
{
    *ids = NULL;
    *n_ids = 0;
    if (text.length > INT_MAX / 3)
        return burin_fail(
                err, BURIN_ELIMIT, "the text has %zu bytes, the limit is %d", text.length,
                INT_MAX / 3);
    const size_t valid = burin_utf8_valid(text, NULL);
    if (valid < text.length)
        return burin_fail(
                err, BURIN_EFORMAT, "the text is not UTF-8: byte 0x%02x at offset %zu",
                (unsigned)(uint8_t)text.at[valid], valid);

    /* A byte makes at most one id, and composing makes at most three bytes of one. */
    const bool grows = tokenizer->nfc && !burin_is_plainly_nfc(text);
    int32_t *room = BURIN_TAKE(arena, text.length * (grows ? 3 : 1) + 1, int32_t);
    if (!room)
        return burin_fail(err, BURIN_ENOMEM, "no memory to encode %zu bytes", text.length);

    const struct burin_arena_mark mark = burin_arena_mark(arena);
    struct job job = {
        .t = tokenizer,
        .specials = specials,
        .arena = arena,
        .ids = room,
        .err = err,
    };
    enum burin_status status = burin_walk_open(&job.walk, &tokenizer->splits, arena, err);
    if (!status)
        status = encode_text(&job, text);
    burin_arena_rewind(arena, mark);
    if (!status) {
        *ids = room;
        *n_ids = job.n_ids;
    }
    return status;
}

/* ---- Look up ---------------------------------------------------------------------- */

int32_t burin_token_named(const struct burin_tokenizer *tokenizer, struct burin_span name)
{
    const struct burin_added_token *token = burin_added_named(&tokenizer->added, name);
    return token ? token->id : -1;
}

struct burin_span burin_token_bytes(const struct burin_tokenizer *tokenizer, int32_t id)
{
    if (id < 0 || id >= tokenizer->lexicon.n_tokens)
        return (struct burin_span){ 0 };
    return burin_lexicon_token(&tokenizer->lexicon, id);
}

enum burin_token_kind burin_token_kind(const struct burin_tokenizer *tokenizer, int32_t id)
{
    if (id < 0 || id >= tokenizer->lexicon.n_tokens)
        return BURIN_TOKEN_NONE;
    return (enum burin_token_kind)tokenizer->lexicon.kinds[id];
}

void burin_token_strips(
        const struct burin_tokenizer *tokenizer, int32_t id, bool *left, bool *right)
{
    *left = false;
    *right = false;
    for (int i = 0; i < tokenizer->added.n_tokens; i++) {
        if (tokenizer->added.tokens[i].id == id) {
            *left = tokenizer->added.tokens[i].lstrip;
            *right = tokenizer->added.tokens[i].rstrip;
        }
    }
}

struct burin_tokenizer_facts burin_tokenizer_facts(const struct burin_tokenizer *tokenizer)
{
    return (struct burin_tokenizer_facts){
        .n_tokens = tokenizer->lexicon.n_tokens,
        .n_merges = tokenizer->n_merges,
        .n_added = tokenizer->added.n_tokens,
        .longest = tokenizer->lexicon.longest,
        .n_prefix = tokenizer->n_prefix,
        .prefix = tokenizer->prefix,
        .eos = tokenizer->eos,
        .hash = tokenizer->hash,
    };
}
