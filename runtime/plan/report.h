/* runtime/plan/report.h -- A plan as text that a person reads, as JSON, as a picture; one
 * buffer of it explained.
 *
 * JSON     One object: model variant quant family exact, card {name total_bytes
 *          available_bytes sm}, elements, weights_bytes, programs [{program n input_bytes
 *          arena_bytes kernel_nodes copy_nodes driver_bytes without}] (graphs; on a CPU, which
 *          has none, the largest run of each), eager [the same: the largest run of each
 *          program without a graph], kv {dtype bytes_per_token bytes_per_sequence bytes tokens
 *          page_tokens window_bytes scan_bytes draft_bytes}, owners [{owner bytes kind, and
 *          derived_bytes where --assume tells bytes, obtained_bytes behind a rehearsal}],
 *          options {threads ctx_size parallel batch_size outputs draft images video_frames
 *          audio_clips}, total_bytes, limit_bytes (null: none), fits, short_by_bytes (of the
 *          limit; within it, what graphs take above a quarter of the card), longest_context,
 *          most_sequences, largest_batch, planned_only [names of programs that lack kernels:
 *          for weights or operations, or, as a binary knows, for the KV's dtype], advice.
 * Errors   The stream's own: see ferror(). */
#ifndef BURIN_PLAN_REPORT_H
#define BURIN_PLAN_REPORT_H

#include "runtime/plan/plan.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

void burin_plan_report(const struct burin_plan *plan, FILE *out);
void burin_plan_json(const struct burin_plan *plan, FILE *out);

/* A line for each program that is planned and can't be run yet, for want of kernels. */
void burin_plan_planned_only(const struct burin_plan *plan, FILE *out);

/* The same with what a start obtained of each owner, in their order. */
void burin_plan_json_obtained(
        const struct burin_plan *plan, const int64_t *obtained, FILE *out);

/* A stacked picture of the card, as SVG. */
void burin_plan_svg(const struct burin_plan *plan, FILE *out);

/* The input, buffer or state of that name in each planned program: the description's line that
 * made it, its shape, what it grows with, what it shares its bytes with. BURIN_EUSAGE where no
 * program has it names what is near. */
enum burin_status burin_plan_explain(
        const struct burin_plan *plan,
        const char *name,
        FILE *out,
        struct burin_error *err);

/* "derived", "assumed", "measured" */
const char *burin_kind_name(enum burin_kind kind);

#endif
