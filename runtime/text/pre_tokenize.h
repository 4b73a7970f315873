/* runtime/text/pre_tokenize.h -- A text falls into pieces, within which bytes are merged.
 *
 * Each split of the vocabulary cuts the pieces of the one before, as in the reference. Patterns
 * run in PCRE2. They are written for Oniguruma: what means something else there is refused when
 * the vocabulary is opened, and characters that the two know differently are looked at through
 * stand-ins (unicode.h).
 *
 * Memory   Compiled patterns lie in a region of the caller's, burin_pieces_bytes() long; a walk
 *          takes a few hundred bytes of an arena. Nothing recurses.
 * Threads  Compiled splits are read-only; each walk is one thread's. */
#ifndef BURIN_TEXT_PRE_TOKENIZE_H
#define BURIN_TEXT_PRE_TOKENIZE_H

#include "runtime/base/arena.h"
#include "runtime/base/span.h"
#include "runtime/base/status.h"
#include "runtime/text/heap.h"
#include "runtime/text/vocab.h"

#include <stdbool.h>
#include <stddef.h>

struct burin_split_code {
    enum burin_split_kind kind;
    void *code; /* a pattern's; owned by burin_splits */
    bool has_jit;
    bool keep_matches;
    bool keep_gaps;
};

struct burin_splits {
    int n;
    struct burin_split_code codes[BURIN_MAX_SPLITS];
    struct burin_heap heap; /* in the caller's region; it must stay where it is */
};

/* Compiling to machine code takes up to 32 KiB for the patterns in use and gives back all but a
 * hundred bytes; the rest is for the heap's rounding. Without enough PCRE2 interprets. */
enum { BURIN_SPLITS_WORK = 96 * 1024 };

size_t burin_splits_bytes(const struct burin_split *splits, int n);

/* BURIN_EMISMATCH where a pattern says what we would read differently, BURIN_EFORMAT where it
 * is no pattern. `region` is burin_splits_bytes() long and aligned to 16. */
enum burin_status burin_splits_open(
        struct burin_splits *codes,
        const struct burin_split *splits,
        int n,
        void *region,
        struct burin_error *err);

void burin_splits_close(struct burin_splits *codes);

/* A pattern of Oniguruma's that PCRE2 reads alike? BURIN_EMISMATCH says what is in the way. */
enum burin_status burin_pattern_check(struct burin_span pattern, struct burin_error *err);

/* One split at work on one piece of the text; places count from the begin of the text. */
struct burin_split_cursor {
    size_t begin;
    size_t end;
    size_t done;        /* all before this has been handed on */
    size_t from;        /* where the next search begins */
    size_t match_begin; /* a match that is still to be handed on, unless empty_handed */
    size_t match_end;
    bool has_match;
    bool has_last; /* an empty match right behind the last one does not count */
    size_t last_end;
    bool at_end;
};

struct burin_walk {
    const struct burin_splits *codes;
    const char *text;
    const char *subject; /* what the patterns see: as long as the text */
    size_t length;
    bool begun;
    int level;
    struct burin_split_cursor cursors[BURIN_MAX_SPLITS];
    struct burin_heap heap; /* private, as the rest: what PCRE2 needs for matching */
    void *match;
    void *limits;
};

/* Begin to walk over well-formed UTF-8. `subject` is the text with stand-ins, or the text. The
 * walk must stay where it is, and its arena must not be rewound below it. */
enum burin_status burin_walk_open(
        struct burin_walk *walk,
        const struct burin_splits *codes,
        struct burin_arena *arena,
        struct burin_error *err);
void burin_walk_text(
        struct burin_walk *walk, const char *text, const char *subject, size_t length);

/* The next piece, never empty; piece->at is NULL behind the last. */
enum burin_status burin_walk_next(
        struct burin_walk *walk, struct burin_span *piece, struct burin_error *err);

#endif
