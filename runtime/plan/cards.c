#include "runtime/plan/cards.h"

#include "runtime/base/put.h"
#include "runtime/base/units.h"

#include <stdio.h>
#include <string.h>

static const int64_t GIB = (int64_t)1 << 30;

/* A hundred times what there is, and what a rehearsal starts in a second. */
static const int64_t MOST_OF_A_GPU = (int64_t)16 << 40;

#define CARD(name, gib, sm, n_processors, unified)                                         \
    {                                                                                      \
        name, (int64_t)((gib)*1073741824.0), (int64_t)((gib)*1073741824.0), sm,            \
                n_processors, unified                                                      \
    }

/* What CUDA calls the total, the least that was met where reports differ by driver: of two
 * numbers the smaller one fits both. Multiprocessors as NVIDIA's data sheets count them. */
static const struct burin_card cards[] = {
    CARD("rtx3090",
         23.56,
         86,
         82,
         false), /* out-of-memory reports, driver 5xx; older 23.70 */
    CARD("rtx4090", 23.51, 89, 128, false), /* the same; older 23.64 (ali-vilab/VGen#104) */
    CARD("rtx5090", 31.36, 120, 170, false),       /* vllm-project/vllm#61092 */
    CARD("rtx5090-laptop", 23.46, 120, 82, false), /* vllm-project/vllm#57475 */
    CARD("rtxpro6000", 94.97, 120, 188, false),    /* antirez/ds4#431 */
    CARD("l4", 22.03, 89, 58, false),              /* ArcInstitute/evo2#190 */
    CARD("l40s", 44.39, 89, 142, false),    /* out-of-memory reports; 44.53 elsewhere */
    CARD("a100-40", 39.38, 80, 108, false), /* the same; 39.50 elsewhere */
    CARD("a100-80", 79.14, 80, 108, false), /* the same; 79.25 elsewhere */
    CARD("h100", 79.11, 90, 132, false),    /* SXM, vllm-project/vllm#27508 */
    CARD("h200", 139.72, 90, 132, false),   /* out-of-memory reports; 139.81 elsewhere */
    CARD("b200", 178.35, 100, 148, false),  /* pytorch/ao#4002 */
    CARD("gb10", 119.68, 121, 48, true),    /* MemTotal, leptonai/gpud#1170 */
};
enum { N_CARDS = sizeof cards / sizeof *cards };

const struct burin_card *burin_card_known(int i)
{
    return i >= 0 && i < N_CARDS ? &cards[i] : NULL;
}

static enum burin_status no_card(const char *text, struct burin_error *err)
{
    char names[256] = "";
    struct burin_put list = { names, sizeof names, 0 };
    for (int i = 0; i < N_CARDS; i++)
        burin_put(&list, " %s", cards[i].name);
    return burin_fail(
            err, BURIN_EUSAGE,
            "'%.40s' is not a card. Known by name:%s; or a size like 8GiB for a CPU, "
            "23.46GiB,sm_120 for a GPU",
            text, names);
}

/* "sm_" and 2 or 3 digits. */
static enum burin_status read_sm(const char *text, int *sm)
{
    const size_t prefix = strlen("sm_");
    const size_t n =
            strncmp(text, "sm_", prefix) == 0 ? strspn(text + prefix, "0123456789") : 0;
    if (n < 2 || n > 3 || text[prefix + n] || text[prefix] == '0')
        return BURIN_EUSAGE;
    *sm = 0;
    for (size_t i = 0; i < n; i++)
        *sm = *sm * 10 + (text[prefix + i] - '0');
    return BURIN_OK;
}

bool burin_card_is_newer(const struct burin_card *card)
{
    int newest = 0;
    for (int i = 0; i < N_CARDS; i++)
        if (cards[i].sm > newest)
            newest = cards[i].sm;
    return card->sm > newest;
}

enum burin_status burin_card_parse(
        struct burin_card *card, const char *text, struct burin_error *err)
{
    for (int i = 0; i < N_CARDS; i++)
        if (strcmp(cards[i].name, text) == 0) {
            *card = cards[i];
            return BURIN_OK;
        }

    const size_t length = strcspn(text, ",");
    struct burin_card found = { .sm = 0 };
    enum burin_status status = burin_parse_bytes(text, length, &found.total_bytes, NULL);
    if (!status && text[length] == ',')
        status = read_sm(text + length + 1, &found.sm);
    if (status || found.total_bytes <= 0 || strlen(text) >= sizeof found.name)
        return no_card(text, err);
    if (found.sm && found.total_bytes > MOST_OF_A_GPU)
        return burin_fail(
                err, BURIN_EUSAGE, "'%s' is not a card: a GPU has at most %s", text,
                burin_exact_bytes(MOST_OF_A_GPU).text);
    found.available_bytes = found.total_bytes;
    snprintf(found.name, sizeof found.name, "%s", text);
    *card = found;
    return BURIN_OK;
}

enum burin_status burin_card_family(
        const struct burin_card *card,
        const struct burin_model *model,
        const struct burin_family **family,
        struct burin_error *err)
{
    char names[128] = "";
    struct burin_put list = { names, sizeof names, 0 };
    *family = NULL;
    for (int i = 0; i < model->n_families; i++) {
        const struct burin_family *at = &model->families[i];
        if (!at->sm)
            continue;
        burin_put(&list, " %s", at->name);
        if (at->sm <= card->sm && (!*family || at->sm > (*family)->sm))
            *family = at;
    }
    if (*family)
        return BURIN_OK;
    if (!names[0])
        return burin_fail(
                err, BURIN_EUSAGE, "%s has no tables for a GPU, so none for %s",
                model->name, card->name);
    return burin_fail(
            err, BURIN_EUSAGE, "%s (sm_%d) is older than what %s has tables for:%s",
            card->name, card->sm, model->name, names);
}

/* On a machine whose GPU shares the host's memory, taking too much of it is no error of an
 * allocation: the machine stops answering. */
static int64_t default_reserve(const struct burin_card *card)
{
    if (card->unified) {
        const int64_t tenth = card->total_bytes / 10;
        return tenth > 8 * GIB ? tenth : 8 * GIB;
    }
    const int64_t sixteenth = card->total_bytes / 16;
    return card->sm || sixteenth > GIB ? GIB : sixteenth;
}

enum burin_status burin_card_limit(
        const struct burin_card *card,
        enum burin_limit kind,
        int64_t bytes,
        double fraction,
        int64_t *limit,
        struct burin_error *err)
{
    const bool known = card->total_bytes != 0;
    *limit = INT64_MAX;
    switch (kind) {
    case BURIN_LIMIT_NONE:
        return BURIN_OK;
    case BURIN_LIMIT_BYTES:
        *limit = bytes;
        break;
    case BURIN_LIMIT_RESERVE_DEFAULT:
        if (known)
            *limit = card->available_bytes - default_reserve(card);
        break;
    case BURIN_LIMIT_RESERVE:
        if (known)
            *limit = card->available_bytes - bytes;
        break;
    case BURIN_LIMIT_FRACTION:
        if (!(fraction > 0 && fraction <= 1))
            return burin_fail(
                    err, BURIN_EUSAGE, "--vram-fraction %g is not above 0 and at most 1",
                    fraction);
        if (known)
            *limit = (int64_t)((double)card->total_bytes * fraction);
        break;
    }
    if (*limit < 0)
        *limit = 0;
    if (known && *limit > card->available_bytes)
        *limit = card->available_bytes;
    return BURIN_OK;
}

enum burin_status burin_card_check_cap(
        const struct burin_card *card,
        enum burin_limit kind,
        int64_t bytes,
        double fraction,
        struct burin_error *err)
{
    double cap = 0;
    if (kind == BURIN_LIMIT_BYTES)
        cap = (double)bytes;
    if (kind == BURIN_LIMIT_FRACTION && fraction <= 1)
        cap = fraction * (double)card->total_bytes;
    if (!card->total_bytes || cap <= (double)card->available_bytes)
        return BURIN_OK;
    return burin_fail(
            err, BURIN_ENOMEM,
            "%s may be used (--vram-%s), and %s has %s free of %s: --vram-limit %lld is "
            "what there is",
            burin_human_bytes((int64_t)cap).text,
            kind == BURIN_LIMIT_BYTES ? "limit" : "fraction", card->name,
            burin_human_bytes(card->available_bytes).text,
            burin_human_bytes(card->total_bytes).text, (long long)card->available_bytes);
}
