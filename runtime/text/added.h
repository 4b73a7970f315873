/* runtime/text/added.h -- Tokens that are cut from the text before it falls into pieces.
 *
 * Matches are the leftmost, and the longest that begin there. Some tokens are looked for in the
 * text as it came, the others once it is normalized: two searches, each on what the other left.
 *
 * Memory   A region of the caller's, burin_added_bytes() long: a tree of bytes.
 * Threads  Read-only once filled. */
#ifndef BURIN_TEXT_ADDED_H
#define BURIN_TEXT_ADDED_H

#include "runtime/base/span.h"
#include "runtime/base/status.h"
#include "runtime/text/vocab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum burin_added_pass { BURIN_RAW, BURIN_NORMALIZED, BURIN_N_PASSES };

struct burin_added_token {
    int32_t id;
    bool special;
    bool single_word;
    bool lstrip;
    bool rstrip;
};

struct burin_added_node {
    uint32_t child; /* 0: none */
    uint32_t sibling;
    int32_t token; /* in tokens, or -1 */
    uint8_t byte;
};

struct burin_added {
    int n_tokens;
    struct burin_added_token *tokens;
    uint32_t n_nodes;
    struct burin_added_node *nodes; /* [pass] is the root of a pass */
    int n_plain[BURIN_N_PASSES];    /* tokens that are not special */
    int n_special[BURIN_N_PASSES];
};

/* A multiple of 64. */
size_t burin_added_bytes(const struct burin_vocab *vocab);

/* Fill `region`, aligned to 64. BURIN_EFORMAT where one content has two ids. */
enum burin_status burin_added_fill(
        struct burin_added *added,
        const struct burin_vocab *vocab,
        void *region,
        struct burin_error *err);

/* The token of that content, or NULL. */
const struct burin_added_token *burin_added_named(
        const struct burin_added *added, struct burin_span content);

/* A search through a text. */
struct burin_added_walk {
    const struct burin_added *added;
    enum burin_added_pass pass;
    bool with_specials; /* else their names are text */
    struct burin_span text;
    size_t at;   /* where the next match may begin */
    size_t done; /* all before this has been handed on */
    bool has_match;
    const struct burin_added_token *match;
    size_t match_begin;
    size_t match_end;
};

/* The next part of the text: a token, or what lies between them (*token is NULL then). False
 * behind the last. Parts between tokens are not empty. */
bool burin_added_next(
        struct burin_added_walk *walk,
        struct burin_span *part,
        const struct burin_added_token **token);

#endif
