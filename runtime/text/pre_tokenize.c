#include "runtime/text/pre_tokenize.h"

#include "runtime/base/round.h"
#include "runtime/base/utf8.h"
#include "runtime/text/unicode.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <assert.h>
#include <limits.h>
#include <pcre2.h>
#include <stdint.h>

enum {
    LONGEST_PATTERN = 4096,
    PATTERN_BYTES = 4096,  /* its code, at 16 bytes a byte of text; 0.4 KiB as a rule */
    MATCH_BYTES = 2048,    /* what matching takes, unless it is interpreted */
    MATCH_LIMIT = 10000000 /* backtracks from one place, where machine code does not run */
};

/* ---- Patterns -------------------------------------------------------------------- */

static void *take(PCRE2_SIZE bytes, void *heap)
{
    return burin_heap_take(heap, bytes);
}

static void give(void *piece, void *heap)
{
    burin_heap_give(heap, piece);
}

size_t burin_splits_bytes(const struct burin_split *splits, int n)
{
    size_t bytes = BURIN_SPLITS_WORK;
    for (int i = 0; i < n; i++)
        if (splits[i].kind == BURIN_SPLIT_PATTERN)
            bytes += PATTERN_BYTES + 16 * splits[i].pattern.length;
    return burin_round_up(bytes, 64);
}

static enum burin_status open_pattern(
        struct burin_split_code *code,
        struct burin_span pattern,
        pcre2_general_context *memory,
        struct burin_error *err)
{
    const enum burin_status status = burin_pattern_check(pattern, err);
    if (status)
        return status;
    if (pattern.length > LONGEST_PATTERN)
        return burin_fail(
                err, BURIN_ELIMIT, "the tokenizer's pattern has %zu bytes, the limit is %d",
                pattern.length, LONGEST_PATTERN);

    pcre2_compile_context *how = pcre2_compile_context_create(memory);
    if (!how)
        return burin_fail(err, BURIN_ENOMEM, "no memory for the tokenizer's patterns");
    pcre2_set_newline(how, PCRE2_NEWLINE_LF);

    int code_of_error = 0;
    PCRE2_SIZE place = 0;
    code->code = pcre2_compile(
            (PCRE2_SPTR)pattern.at, pattern.length, PCRE2_UTF | PCRE2_UCP, &code_of_error,
            &place, how);
    pcre2_compile_context_free(how);
    if (!code->code) {
        PCRE2_UCHAR why[128] = "";
        pcre2_get_error_message(code_of_error, why, sizeof why);
        return burin_fail(
                err, BURIN_EFORMAT, "the tokenizer's pattern %s is wrong at byte %zu: %s",
                burin_quote(pattern).text, (size_t)place, (const char *)why);
    }
    code->has_jit = pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE) == 0;
    return BURIN_OK;
}

enum burin_status burin_splits_open(
        struct burin_splits *codes,
        const struct burin_split *splits,
        int n,
        void *region,
        struct burin_error *err)
{
    const size_t bytes = burin_splits_bytes(splits, n);
    assert(n <= BURIN_MAX_SPLITS);
    *codes = (struct burin_splits){
        .heap = { .at = region, .end = (char *)region + bytes, .limit = bytes },
    };
    pcre2_general_context *memory = pcre2_general_context_create(take, give, &codes->heap);
    enum burin_status status = BURIN_OK;
    if (!memory)
        return burin_fail(err, BURIN_ENOMEM, "no memory for the tokenizer's patterns");

    for (int i = 0; i < n && !status; i++) {
        struct burin_split_code *code = &codes->codes[codes->n++];
        *code = (struct burin_split_code){
            .kind = splits[i].kind,
            .keep_matches = splits[i].keep_matches,
            .keep_gaps = splits[i].keep_gaps,
        };
        if (code->kind == BURIN_SPLIT_PATTERN)
            status = open_pattern(code, splits[i].pattern, memory, err);
    }
    pcre2_general_context_free(memory);
    if (status)
        burin_splits_close(codes);
    return status;
}

void burin_splits_close(struct burin_splits *codes)
{
    for (int i = 0; i < codes->n; i++)
        pcre2_code_free(codes->codes[i].code);
    *codes = (struct burin_splits){ 0 };
}

/* ---- Walking --------------------------------------------------------------------- */

enum burin_status burin_walk_open(
        struct burin_walk *walk,
        const struct burin_splits *codes,
        struct burin_arena *arena,
        struct burin_error *err)
{
    *walk = (struct burin_walk){
        .codes = codes,
        .heap = { .arena = arena, .region = MATCH_BYTES, .limit = SIZE_MAX },
    };
    pcre2_general_context *memory = pcre2_general_context_create(take, give, &walk->heap);
    if (memory) {
        walk->match = pcre2_match_data_create(1, memory);
        walk->limits = pcre2_match_context_create(memory);
    }
    if (!walk->match || !walk->limits)
        return burin_fail(err, BURIN_ENOMEM, "no memory to split a text into pieces");
    pcre2_set_match_limit(walk->limits, MATCH_LIMIT);
    return BURIN_OK;
}

void burin_walk_text(
        struct burin_walk *walk, const char *text, const char *subject, size_t length)
{
    walk->text = text;
    walk->subject = subject;
    walk->length = length;
    walk->level = 0;
    walk->cursors[0] = (struct burin_split_cursor){ .end = length };
    walk->begun = true;
}

static enum burin_status find_pattern(
        struct burin_walk *walk,
        const struct burin_split_code *code,
        struct burin_split_cursor *c,
        struct burin_error *err)
{
    /* The pattern sees this piece and nothing around it. */
    PCRE2_SPTR subject = (PCRE2_SPTR)walk->subject + c->begin;
    const size_t length = c->end - c->begin;
    const size_t from = c->from - c->begin;
    int found = PCRE2_ERROR_JIT_STACKLIMIT;

    if (code->has_jit)
        found = pcre2_jit_match(
                code->code, subject, length, from, PCRE2_NO_UTF_CHECK, walk->match,
                walk->limits);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)
        found = pcre2_match(
                code->code, subject, length, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                walk->match, walk->limits);
    if (found == PCRE2_ERROR_NOMATCH) {
        c->at_end = true;
        return BURIN_OK;
    }
    if (found < 0) {
        PCRE2_UCHAR why[128] = "";
        pcre2_get_error_message(found, why, sizeof why);
        return burin_fail(
                err, BURIN_ELIMIT, "the tokenizer's pattern gives up at byte %zu: %s",
                c->from, (const char *)why);
    }
    const PCRE2_SIZE *place = pcre2_get_ovector_pointer(walk->match);
    c->match_begin = c->begin + place[0];
    c->match_end = c->begin + place[1];
    c->has_match = true;
    return BURIN_OK;
}

static void find_digits(
        const struct burin_walk *walk, bool runs, struct burin_split_cursor *c)
{
    const char *const end = walk->text + c->end;
    const char *at = walk->text + c->from;

    while (at < end) {
        const char *next = at;
        if (!burin_is_numeric(burin_utf8_next(&next))) {
            at = next;
            continue;
        }
        const char *behind = next;
        while (runs && behind < end && burin_is_numeric(burin_utf8_next(&next)))
            behind = next;
        c->match_begin = (size_t)(at - walk->text);
        c->match_end = (size_t)(behind - walk->text);
        c->has_match = true;
        return;
    }
    c->at_end = true;
}

/* The next match behind c->from, as the reference's find_iter: an empty match counts unless it
 * follows the last one immediately. */
static enum burin_status find(
        struct burin_walk *walk,
        const struct burin_split_code *code,
        struct burin_split_cursor *c,
        struct burin_error *err)
{
    while (!c->has_match && !c->at_end) {
        if (code->kind == BURIN_SPLIT_PATTERN) {
            const enum burin_status status = find_pattern(walk, code, c, err);
            if (status)
                return status;
        } else {
            find_digits(walk, code->kind == BURIN_SPLIT_DIGITS, c);
        }
        if (!c->has_match)
            break;
        if (c->match_begin == c->match_end && c->has_last && c->last_end == c->match_end) {
            c->has_match = false;
            if (c->from == c->end) {
                c->at_end = true;
                break;
            }
            const char *at = walk->text + c->from;
            burin_utf8_next(&at);
            c->from = (size_t)(at - walk->text);
        } else {
            c->from = c->match_end;
            c->last_end = c->match_end;
            c->has_last = true;
        }
    }
    return BURIN_OK;
}

/* The next piece of one split; *end is 0 behind its last. */
static enum burin_status next_of_split(
        struct burin_walk *walk,
        const struct burin_split_code *code,
        struct burin_split_cursor *c,
        size_t *begin,
        size_t *end,
        struct burin_error *err)
{
    *end = 0;
    while (c->done < c->end) {
        const enum burin_status status = find(walk, code, c, err);
        if (status)
            return status;

        const size_t gap_end = c->has_match ? c->match_begin : c->end;
        *begin = c->done;
        if (c->done < gap_end) {
            c->done = gap_end;
            if (code->keep_gaps) {
                *end = gap_end;
                return BURIN_OK;
            }
            continue;
        }
        c->done = c->match_end;
        c->has_match = false;
        if (code->keep_matches && c->match_begin < c->match_end) {
            *end = c->match_end;
            return BURIN_OK;
        }
    }
    return BURIN_OK;
}

enum burin_status burin_walk_next(
        struct burin_walk *walk, struct burin_span *piece, struct burin_error *err)
{
    *piece = (struct burin_span){ 0 };
    if (walk->codes->n == 0) {
        if (walk->begun && walk->length)
            *piece = (struct burin_span){ walk->text, walk->length };
        walk->begun = false;
        return BURIN_OK;
    }
    while (walk->level >= 0) {
        size_t begin;
        size_t end;
        const enum burin_status status = next_of_split(
                walk, &walk->codes->codes[walk->level], &walk->cursors[walk->level], &begin,
                &end, err);
        if (status)
            return status;
        if (end == 0) {
            walk->level--;
        } else if (walk->level + 1 < walk->codes->n) {
            walk->cursors[++walk->level] = (struct burin_split_cursor){
                .begin = begin,
                .end = end,
                .done = begin,
                .from = begin,
            };
        } else {
            *piece = (struct burin_span){ walk->text + begin, end - begin };
            return BURIN_OK;
        }
    }
    return BURIN_OK;
}
