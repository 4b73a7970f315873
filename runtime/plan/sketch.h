/* runtime/plan/sketch.h -- The halves of burin_plan_make(), for plan.c, knobs.c, advice.c
 * and loosen.c.
 *
 * Threads  Pure functions. */
#ifndef BURIN_PLAN_SKETCH_H
#define BURIN_PLAN_SKETCH_H

#include "runtime/plan/plan.h"

enum {
    BURIN_GRANULE = 2 * 1024 * 1024
}; /* of every discrete GPU so far; the device is asked */

/* settle.c: what is asked for, in numbers, and the account of it. Without `widen` a context
 * that is left to its default is the least that will do: enough to know whether it fits. */
enum burin_status burin_plan_sketch(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        bool widen,
        struct burin_error *err);

/* Whether it makes a plan that fits. */
bool burin_plan_sketch_fits(const struct burin_plan_request *request);

/* Tokens of a page; 1 where there are no keys and values. Pages that so many tokens need. */
int burin_plan_page_tokens(const struct burin_plan *plan);
int burin_plan_pages_of(const struct burin_plan *plan, int64_t tokens);

/* Whether the KV pool's size is asked for. */
bool burin_plan_pool_given(
        const struct burin_plan *plan, const struct burin_plan_request *request);

/* programs.c: which programs are planned. BURIN_EFORMAT for a graph without nodes. */
enum burin_status burin_plan_choose_programs(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err);

/* Their largest runs and their graphs, for the sequences and tokens that have been settled. */
enum burin_status burin_plan_programs(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err);

/* Whether a program that is planned runs with keys and values of other layouts, and not with those
 * of the family's layout `kv`. Tables that nothing runs say how any would lie. */
bool burin_plan_lacks_kv(const struct burin_plan *plan, int program, int kv);

/* Whether a program is planned and can't be run yet, for want of kernels. */
bool burin_plan_only_planned(const struct burin_plan *plan, int program);

/* Soft tokens of the longest item of an encoder, and of a frame of video. */
int burin_plan_longest_item(const struct burin_plan *plan, int program);
int burin_plan_longest_frame(const struct burin_plan *plan, int program);

/* Rows of the encoder cache, for the runs that have been planned. */
int64_t burin_plan_cache_rows(const struct burin_plan *plan);

/* Where a step reads `spans`, the tokens of a picture see each other: so many belong into one
 * step, and into a sequence's context. 0 where it does not. */
int burin_plan_spanned(const struct burin_plan *plan);

/* Graphs of more than a quarter of the card are no plan but a mistake: how many bytes more.
 * What --assume tells of them was weighed by who tells it. */
int64_t burin_plan_graphs_over(const struct burin_plan *plan);

/* That they are, and the three largest; "" where they are not. */
void burin_plan_graphs_text(const struct burin_plan *plan, char *text, size_t capacity);

/* account.c: the owners, from the numbers that have been settled. */
void burin_plan_account(struct burin_plan *plan, const struct burin_plan_request *request);

/* What each sequence's state takes in all. */
int64_t burin_plan_slot_bytes(const struct burin_plan *plan);

/* Bytes of the graphs without those that --assume tells. */
int64_t burin_plan_graphs_bytes(const struct burin_plan *plan);

/* knobs.c: what else would fit: one number larger, the others as planned. */
void burin_plan_find_largest(
        struct burin_plan *plan, const struct burin_plan_request *request);

/* advice.c: what mends a plan that does not fit. */
enum burin_status burin_plan_advise(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err);

/* loosen.c: the smallest change of the limit that makes a plan of it, or all of the card: the
 * request with it, and its option with the value. False where the card has not enough, or where
 * nothing is held back. */
bool burin_plan_loosen(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        bool all,
        struct burin_plan_request *loose,
        char *option,
        size_t capacity);

/* plan.c: the largest run, and its largest inputs and buffers with shapes and bytes. */
void burin_plan_largest_text(const struct burin_plan *plan, char *text, size_t capacity);

#endif
