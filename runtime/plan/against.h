/* runtime/plan/against.h -- What changed from one plan to another, read off their JSON.
 *
 * Memory   The facts are the caller's: some 100 KB each.
 * Threads  One at a time on the facts. */
#ifndef BURIN_PLAN_AGAINST_H
#define BURIN_PLAN_AGAINST_H

#include "runtime/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Everything that a plan says, one value each: "total_bytes", "owner weights",
 * "graph step 64 driver_bytes". */
enum { BURIN_MAX_FACTS = 1024, BURIN_FACT_NAME = 72, BURIN_FACT_TEXT = 40 };
struct burin_plan_facts {
    int n;
    struct {
        char name[BURIN_FACT_NAME];
        char text[BURIN_FACT_TEXT]; /* "" of a number */
        int64_t number;
    } facts[BURIN_MAX_FACTS];
};

/* The facts of a plan's JSON, `length` bytes, which are written to. BURIN_EFORMAT where they
 * are not JSON, or no plan. */
enum burin_status burin_plan_facts_read(
        struct burin_plan_facts *facts,
        const char *source,
        char *bytes,
        size_t length,
        struct burin_error *err);

/* A line for each that differs, is new or is gone. Advice is left out: it follows. */
void burin_plan_facts_compare(
        const struct burin_plan_facts *before,
        const struct burin_plan_facts *after,
        FILE *out);

#endif
