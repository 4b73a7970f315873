/* tests/fuzz/fuzz_plan.c -- The text options of a plan and another plan's JSON, of any bytes,
 * are read or refused. */
#include "runtime/plan/against.h"
#include "runtime/plan/cards.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/shape.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static void read_words(const char *text)
{
    static const struct burin_dim dim = { "d_model", 1 << 20 };
    static const struct burin_model model = { .n_dims = 1, .dims = &dim };
    static const struct burin_params params = { .value = { INT64_MAX, 2, 3 } };
    static const int n[BURIN_N_EXTENTS] = { 1 << 30, 2, 3, 4 };
    struct burin_graphs graphs = { 0 };
    struct burin_card card;
    char shape[40];
    if (!burin_graphs_parse(&graphs, text, NULL))
        PROMISE(graphs.n <= 1 && (graphs.none || graphs.named[0].ladder.n > 0));
    if (!burin_card_parse(&card, text, NULL))
        PROMISE(card.total_bytes > 0 && card.sm >= 0);
    burin_shape_numbers(text, &model, &params, n, shape, sizeof shape);
    PROMISE(memchr(shape, 0, sizeof shape));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static struct burin_plan_facts facts;
    static char copy[1 << 16];
    if (n >= sizeof copy)
        return 0;
    memcpy(copy, bytes, n);
    copy[n] = '\0';
    read_words(copy);

    const enum burin_status status = burin_plan_facts_read(&facts, "x", copy, n, NULL);
    PROMISE(status == BURIN_OK || status == BURIN_EFORMAT);
    PROMISE(facts.n >= 0 && facts.n <= BURIN_MAX_FACTS);
    FILE *out = fopen("/dev/null", "w");
    PROMISE(out);
    if (!status)
        burin_plan_facts_compare(&facts, &facts, out);
    fclose(out);
    return 0;
}
