/* runtime/plan/report.h -- A plan as text that a person reads, and as JSON.
 *
 * JSON     One object: model variant quant family, card {name total_bytes available_bytes
 *          sm}, elements, weights_bytes, programs [{program n input_bytes arena_bytes
 *          kernel_nodes copy_nodes driver_bytes}], kv {dtype bytes_per_token
 *          bytes_per_sequence bytes tokens}, owners [{owner bytes kind}], options {threads
 *          ctx_size parallel batch_size outputs}, total_bytes, limit_bytes (null: none),
 *          fits, short_by_bytes, longest_context, most_sequences, advice.
 * Errors   The stream's own: see ferror(). */
#ifndef BURIN_PLAN_REPORT_H
#define BURIN_PLAN_REPORT_H

#include "runtime/plan/plan.h"

#include <stdio.h>

void burin_plan_report(const struct burin_plan *plan, FILE *out);
void burin_plan_json(const struct burin_plan *plan, FILE *out);

#endif
