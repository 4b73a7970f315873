#include "runtime/text/added.h"

#include "runtime/base/round.h"
#include "runtime/base/utf8.h"
#include "runtime/text/unicode.h"

enum { ALIGN = 64 };

static size_t tokens_bytes(const struct burin_vocab *vocab)
{
    return burin_round_up((size_t)vocab->n_added * sizeof(struct burin_added_token), ALIGN);
}

static size_t most_nodes(const struct burin_vocab *vocab)
{
    size_t n = BURIN_N_PASSES;
    for (int i = 0; i < vocab->n_added; i++)
        n += vocab->added[i].content.length;
    return n;
}

size_t burin_added_bytes(const struct burin_vocab *vocab)
{
    return tokens_bytes(vocab) +
           burin_round_up(most_nodes(vocab) * sizeof(struct burin_added_node), ALIGN);
}

/* The child of `node` for `byte`, or 0. */
static uint32_t child_of(const struct burin_added *added, uint32_t node, uint8_t byte)
{
    uint32_t child = added->nodes[node].child;
    while (child && added->nodes[child].byte != byte)
        child = added->nodes[child].sibling;
    return child;
}

static uint32_t new_child(struct burin_added *added, uint32_t node, uint8_t byte)
{
    const uint32_t child = added->n_nodes++;
    added->nodes[child] = (struct burin_added_node){
        .sibling = added->nodes[node].child,
        .token = -1,
        .byte = byte,
    };
    added->nodes[node].child = child;
    return child;
}

enum burin_status burin_added_fill(
        struct burin_added *added,
        const struct burin_vocab *vocab,
        void *region,
        struct burin_error *err)
{
    *added = (struct burin_added){
        .tokens = region,
        .nodes = (struct burin_added_node *)((char *)region + tokens_bytes(vocab)),
        .n_nodes = BURIN_N_PASSES,
    };
    for (int pass = 0; pass < BURIN_N_PASSES; pass++)
        added->nodes[pass] = (struct burin_added_node){ .token = -1 };

    for (int i = 0; i < vocab->n_added; i++) {
        const struct burin_vocab_added *from = &vocab->added[i];
        const enum burin_added_pass pass = from->normalized ? BURIN_NORMALIZED : BURIN_RAW;
        if (from->content.length == 0)
            continue;

        uint32_t node = pass;
        for (size_t k = 0; k < from->content.length; k++) {
            const uint8_t byte = (uint8_t)from->content.at[k];
            const uint32_t child = child_of(added, node, byte);
            node = child ? child : new_child(added, node, byte);
        }
        const int32_t known = added->nodes[node].token;
        if (known >= 0) {
            if (added->tokens[known].id == from->id)
                continue;
            return burin_fail(
                    err, BURIN_EFORMAT, "added token %s has two ids, %d and %d",
                    burin_quote(from->content).text, added->tokens[known].id, from->id);
        }
        added->nodes[node].token = added->n_tokens;
        added->tokens[added->n_tokens++] = (struct burin_added_token){
            .id = from->id,
            .special = from->special,
            .single_word = from->single_word,
            .lstrip = from->lstrip,
            .rstrip = from->rstrip,
        };
        if (from->special)
            added->n_special[pass]++;
        else
            added->n_plain[pass]++;
    }
    return BURIN_OK;
}

const struct burin_added_token *burin_added_named(
        const struct burin_added *added, struct burin_span content)
{
    for (uint32_t pass = 0; pass < BURIN_N_PASSES; pass++) {
        uint32_t node = pass;
        for (size_t i = 0; i < content.length; i++) {
            node = child_of(added, node, (uint8_t)content.at[i]);
            if (!node)
                break;
        }
        if (node && added->nodes[node].token >= 0)
            return &added->tokens[added->nodes[node].token];
    }
    return NULL;
}

/* ---- Searching ------------------------------------------------------------------- */

/* The longest token that begins at `at`; its end in *end. */
static const struct burin_added_token *longest_at(
        const struct burin_added_walk *walk, size_t at, size_t *end)
{
    const struct burin_added *added = walk->added;
    const struct burin_added_token *found = NULL;
    uint32_t node = walk->pass;

    for (size_t i = at; i < walk->text.length; i++) {
        node = child_of(added, node, (uint8_t)walk->text.at[i]);
        if (!node)
            break;
        if (added->nodes[node].token >= 0) {
            found = &added->tokens[added->nodes[node].token];
            *end = i + 1;
        }
    }
    return found;
}

static bool stands_alone(struct burin_span text, size_t begin, size_t end)
{
    const char *behind = text.at + end;
    return (begin == 0 || !burin_is_word(burin_utf8_last(text.at + begin))) &&
           (end == text.length || !burin_is_word(burin_utf8_next(&behind)));
}

static size_t back_over_space(struct burin_span text, size_t at, size_t least)
{
    if (at < least)
        return least;
    while (at > least) {
        const char *begin = text.at + at;
        if (!burin_is_space(burin_utf8_last(begin)))
            break;
        do
            at--;
        while (((uint8_t)text.at[at] & 0xC0) == 0x80);
    }
    return at;
}

static size_t over_space(struct burin_span text, size_t at)
{
    while (at < text.length) {
        const char *next = text.at + at;
        if (!burin_is_space(burin_utf8_next(&next)))
            break;
        at = (size_t)(next - text.at);
    }
    return at;
}

/* Find the next match that counts. A token that does not count still covers its text: another
 * does not begin within it. */
static bool find(struct burin_added_walk *walk)
{
    const struct burin_added *added = walk->added;

    if (added->n_plain[walk->pass] +
                (walk->with_specials ? added->n_special[walk->pass] : 0) ==
        0)
        return false;
    while (walk->at < walk->text.length) {
        const size_t begin = walk->at;
        size_t end;
        const struct burin_added_token *token = longest_at(walk, begin, &end);
        if (!token) {
            walk->at++;
            continue;
        }
        walk->at = end;
        if ((token->special && !walk->with_specials) ||
            (token->single_word && !stands_alone(walk->text, begin, end)))
            continue;
        walk->match_begin =
                token->lstrip ? back_over_space(walk->text, begin, walk->done) : begin;
        walk->match_end = token->rstrip ? over_space(walk->text, end) : end;
        walk->match = token;
        /* A token of white space may have gone to the one before it, as in the reference. */
        if (walk->match_begin >= walk->match_end)
            continue;
        return true;
    }
    return false;
}

bool burin_added_next(
        struct burin_added_walk *walk,
        struct burin_span *part,
        const struct burin_added_token **token)
{
    if (!walk->has_match)
        walk->has_match = find(walk);

    const size_t gap_end = walk->has_match ? walk->match_begin : walk->text.length;
    *token = NULL;
    if (walk->done < gap_end) {
        *part = (struct burin_span){ walk->text.at + walk->done, gap_end - walk->done };
        walk->done = gap_end;
        return true;
    }
    if (!walk->has_match)
        return false;
    *part = (struct burin_span){ walk->text.at + walk->match_begin,
                                 walk->match_end - walk->match_begin };
    *token = walk->match;
    walk->done = walk->match_end;
    walk->has_match = false;
    return true;
}
