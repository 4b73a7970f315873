/* runtime/plan/cards.h -- Memory that a plan is for: cards by name, by size, and how much of
 * one may be used.
 *
 * Units    Bytes, as the driver reports them to a program: less than the box says.
 * Memory   A card is a value.
 * Threads  Pure functions. */
#ifndef BURIN_PLAN_CARDS_H
#define BURIN_PLAN_CARDS_H

#include "runtime/base/status.h"
#include "runtime/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which memory the plan is for. On the CPU it is this machine's. */
struct burin_card {
    char name[32];           /* "" is "the memory" */
    int64_t total_bytes;     /* 0: unknown, everything fits */
    int64_t available_bytes; /* free at this moment; total_bytes where nobody has looked */
    int sm;                  /* compute capability, 0 for a CPU */
    int n_processors;        /* multiprocessors, 0: unknown */
    bool unified;            /* the host's own memory: its owners count, too */
};

/* "rtx5090", "8GiB" or "23.46GiB,sm_120". BURIN_EUSAGE shows the forms and names the cards,
 * or says that no GPU has so much. */
enum burin_status burin_card_parse(
        struct burin_card *card, const char *text, struct burin_error *err);

/* Whether its compute capability is above that of all cards known by name: whether the kernels
 * of an older one run there is not known either. */
bool burin_card_is_newer(const struct burin_card *card);

/* Card number i of those known by name, NULL behind the last. */
const struct burin_card *burin_card_known(int i);

/* Of a model's CUDA families the one for a card: the largest not above its sm. BURIN_EUSAGE
 * names those that there are. */
enum burin_status burin_card_family(
        const struct burin_card *card,
        const struct burin_model *model,
        const struct burin_family **family,
        struct burin_error *err);

/* How much of a card is ours: at most one is given, and never more than is available. */
enum burin_limit {
    /* available - a reserve: 1 GiB of a GPU's, the larger of 8 GiB and a tenth of the total
     * where the host shares it, the smaller of 1 GiB and a sixteenth on a CPU */
    BURIN_LIMIT_RESERVE_DEFAULT,
    BURIN_LIMIT_BYTES,    /* that many */
    BURIN_LIMIT_RESERVE,  /* available - that many */
    BURIN_LIMIT_FRACTION, /* that share of the total */
    BURIN_LIMIT_NONE,     /* plan only, never refuse */
};

/* *limit is INT64_MAX where there is none. `bytes` is of BURIN_LIMIT_BYTES and _RESERVE. */
enum burin_status burin_card_limit(
        const struct burin_card *card,
        enum burin_limit kind,
        int64_t bytes,
        double fraction,
        int64_t *limit,
        struct burin_error *err);

/* What is asked for as a number must be there, on a GPU: BURIN_ENOMEM has both, and says what
 * there is. A card of unknown size is not asked. */
enum burin_status burin_card_check_cap(
        const struct burin_card *card,
        enum burin_limit kind,
        int64_t bytes,
        double fraction,
        struct burin_error *err);

#endif
