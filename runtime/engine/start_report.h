/* runtime/engine/start_report.h -- What a start on a GPU planned and what it obtained: as text that
 * a person reads, and owner by owner.
 *
 * Errors   The stream's own: see ferror(). */
#ifndef BURIN_ENGINE_START_REPORT_H
#define BURIN_ENGINE_START_REPORT_H

#include "runtime/device/ledger.h"
#include "runtime/engine/startup.h"
#include "runtime/plan/plan.h"

#include <stdint.h>
#include <stdio.h>

void burin_start_report(
        const struct burin_plan *plan,
        const struct burin_ledger *ledger,
        const struct burin_start_facts *facts,
        FILE *out);

/* What each of the plan's owners obtained, in its order. */
void burin_start_obtained(
        const struct burin_plan *plan,
        const struct burin_ledger *ledger,
        int64_t obtained[BURIN_MAX_OWNERS]);

#endif
