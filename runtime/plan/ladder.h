/* runtime/plan/ladder.h -- The sizes that a program's graphs are captured for: a run of n is
 * replayed in the smallest that is not below n.
 *
 * Units    n counts sequences for a step, soft tokens for an encoder.
 * Memory   A ladder is a value.
 * Threads  Pure functions. */
#ifndef BURIN_PLAN_LADDER_H
#define BURIN_PLAN_LADDER_H

#include "runtime/base/status.h"

#include <stddef.h>

enum {
    BURIN_MAX_LADDER = 256,
    BURIN_ENCODER_LARGEST =
            1120,             /* soft tokens of an encoder's largest graph, by default */
    BURIN_GRAPH_PADDING = 25, /* percent of a step that may be padding, by default */
};

/* Sizes rise strictly. */
struct burin_ladder {
    int n;
    int sizes[BURIN_MAX_LADDER];
};

/* `smallest` doubled as long as it is not above `largest`, and `largest`. BURIN_EUSAGE names
 * both where smallest < 1 or largest < smallest. */
enum burin_status burin_ladder_double(
        struct burin_ladder *ladder, int smallest, int largest, struct burin_error *err);

/* The fewest sizes from 1 to `most` with which no n from 1 to `most` is padded by more than
 * `percent` of the size it runs in: (size - n) / size. */
enum burin_status burin_ladder_padded(
        struct burin_ladder *ladder, int most, int percent, struct burin_error *err);

/* "1,2,4". BURIN_EUSAGE for what is no list of rising numbers from 1 on. */
enum burin_status burin_ladder_parse(
        struct burin_ladder *ladder,
        const char *text,
        size_t length,
        struct burin_error *err);

/* "...,4" of 1,2,4; "1" of 1: as it was given, in few letters. */
struct burin_ladder_end {
    char text[24];
};
struct burin_ladder_end burin_ladder_end(const struct burin_ladder *ladder);

/* The size that a run of n is replayed in; 0 where n is above all of them. */
int burin_ladder_size(const struct burin_ladder *ladder, int n);

/* The size that runs of sizes[i] would take if it were missing; 0 for the last. */
int burin_ladder_without(const struct burin_ladder *ladder, int i);

#endif
