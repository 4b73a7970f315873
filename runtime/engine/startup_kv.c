/* runtime/engine/startup_kv.c -- Pages for keys and values: addresses before there are graphs, which
 * bake them in, and memory behind them when all else has been taken. */
#include "runtime/engine/startup.h"

#include "runtime/base/put.h"
#include "runtime/base/round.h"
#include "runtime/base/units.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const int64_t GIB = (int64_t)1 << 30;

static int64_t page_bytes(const struct burin_start *s)
{
    return s->plan->state.page;
}

static int64_t granule(const struct burin_start *s)
{
    return (int64_t)s->gpu->cuda.device.granule;
}

static int64_t whole_granules(const struct burin_start *s, int64_t bytes)
{
    return (int64_t)burin_round_up((size_t)bytes, (size_t)granule(s));
}

/* A pool that is asked for is neither more nor less. */
static bool is_given(const struct burin_start *s)
{
    return s->request->kv_tokens || s->request->kv_bytes;
}

/* ---- What is needed ---------------------------------------------------------------------- */

static int64_t pages_of(const struct burin_start *s, int64_t tokens)
{
    const int page = s->plan->kv->page_tokens;
    return (tokens + page - 1) / page;
}

/* Tokens that one sequence must be able to reach: what is asked for, else the least. */
static int64_t least_context(const struct burin_start *s)
{
    const int model = s->plan->model->n_ctx;
    if (is_given(s) || s->request->n_ctx > 0)
        return s->plan->n_ctx;
    if (s->request->n_ctx < 0)
        return model;
    return model < BURIN_LEAST_CONTEXT ? model : BURIN_LEAST_CONTEXT;
}

/* The others have a page each. */
static int64_t least_pages(const struct burin_start *s)
{
    return is_given(s) ? s->plan->n_pages
                       : pages_of(s, least_context(s)) + s->plan->n_sequences - 1;
}

/* What one sequence reaches with so many pages. */
static int64_t tokens_of(const struct burin_start *s, int64_t n_pages)
{
    const int64_t own = n_pages - (s->plan->n_sequences - 1);
    return own > 0 ? own * s->plan->kv->page_tokens : 0;
}

/* ---- Refusals ---------------------------------------------------------------------------- */

static void list_owners(const struct burin_start *s, char *text, size_t capacity)
{
    struct burin_put put = { text, capacity, 0 };
    text[0] = '\0';
    for (int i = 0; i < s->ledger->n_owners; i++) {
        const struct burin_owner *owner = &s->ledger->owners[i];
        if (owner->obtained && strcmp(owner->name, "kv") != 0)
            burin_put(
                    &put, "%s%s %s", put.used ? ", " : "", owner->name,
                    burin_human_bytes((int64_t)owner->obtained).text);
    }
}

static int64_t graphs_bytes(const struct burin_start *s)
{
    const struct burin_owner *graphs = burin_ledger_owner(s->ledger, "graphs");
    return graphs ? (int64_t)graphs->obtained : 0;
}

static const char *pool_option(const struct burin_start *s)
{
    return s->request->kv_bytes ? "--kv-bytes" : "--kv-tokens";
}

/* A smaller pool; a context that is asked for must be within it. */
static void advise_pool(const struct burin_start *s, int64_t n_pages, struct burin_put *put)
{
    const int64_t tokens = tokens_of(s, n_pages);
    const int64_t each = s->request->kv_bytes ? page_bytes(s) : s->plan->kv->page_tokens;
    const int64_t pool = n_pages * each;
    burin_put(put, "Smallest change: %s %lld", pool_option(s), (long long)pool);
    if (s->request->n_ctx > tokens)
        burin_put(put, " --ctx-size %lld", (long long)tokens);
}

/* The one change that mends it. */
static void advise(const struct burin_start *s, int64_t n_pages, struct burin_put *put)
{
    const int64_t tokens = tokens_of(s, n_pages);
    const int64_t others = n_pages - pages_of(s, least_context(s)) + 1;
    const int64_t lacking = (least_pages(s) - n_pages) * page_bytes(s);
    if (is_given(s) && tokens > 0)
        advise_pool(s, n_pages, put);
    else if (tokens > 0 && (s->request->n_ctx || others < 1))
        burin_put(put, "Smallest change: --ctx-size %lld", (long long)tokens);
    else if (others >= 1)
        burin_put(put, "Smallest change: --parallel %lld", (long long)others);
    else
        burin_put(put, "A smaller recipe or variant takes less");
    if (graphs_bytes(s) >= lacking)
        burin_put(
                put, ", or fewer graphs: without any (--graphs none) there are %s more",
                burin_human_bytes(graphs_bytes(s)).text);
}

/* With the numbers. */
static enum burin_status refuse(
        const struct burin_start *s, int64_t n_pages, struct burin_error *err)
{
    const int page = s->plan->kv->page_tokens;
    const int64_t tokens = is_given(s) ? n_pages * page : tokens_of(s, n_pages);
    const int64_t lacking = (least_pages(s) - n_pages) * page_bytes(s);
    const int64_t limit = s->plan->limit_bytes;
    char owners[600], mend[200] = "", needed[100];
    struct burin_put put = { mend, sizeof mend, 0 };
    list_owners(s, owners, sizeof owners);
    advise(s, n_pages, &put);
    if (is_given(s))
        snprintf(
                needed, sizeof needed, "%lld are asked for (%s)",
                (long long)least_pages(s) * page, pool_option(s));
    else
        snprintf(
                needed, sizeof needed, "one request may need %lld",
                (long long)least_context(s));
    return burin_fail(
            err, BURIN_ENOMEM,
            "room for %lld tokens, %s: %lld bytes are missing "
            "before the KV cache is made.\nTaken so far: %s; %s of it may be used.\n%s.",
            (long long)tokens, needed, (long long)lacking, owners,
            limit == INT64_MAX ? "all" : burin_human_bytes(limit).text, mend);
}

/* ---- Addresses --------------------------------------------------------------------------- */

/* All that could ever become pages. */
static int64_t most_bytes(const struct burin_start *s)
{
    const int64_t planned = whole_granules(s, (int64_t)s->plan->n_pages * page_bytes(s));
    const int64_t card = (int64_t)s->gpu->cuda.found.total / granule(s) * granule(s);
    return is_given(s) || card < planned ? planned : card;
}

/* Without addresses ahead of memory the first page stands for all until graphs have been made. */
static enum burin_status take_probe(struct burin_start *s, struct burin_error *err)
{
    burin_start_note(
            s, "no addresses without memory on this platform: graphs are made once to see "
               "what they take, and again when the pages have their place");
    s->memory->kv.bytes = (size_t)page_bytes(s);
    return burin_ledger_take(
            s->ledger, "kv", s->memory->kv.bytes, &s->memory->kv.address, err);
}

enum burin_status burin_start_addresses(struct burin_start *s, struct burin_error *err)
{
    if (!page_bytes(s))
        return BURIN_OK;
    if (!burin_device_can_reserve(&s->gpu->cuda.device))
        return take_probe(s, err);
    const int64_t planned = whole_granules(s, (int64_t)s->plan->n_pages * page_bytes(s));
    int64_t bytes = most_bytes(s);
    enum burin_status status;
    while ((status = burin_ledger_reserve(
                    s->ledger, "kv", (size_t)bytes, &s->memory->kv.address, err)) &&
           bytes > planned)
        bytes = bytes / 2 > planned ? whole_granules(s, bytes / 2) : planned;
    if (status)
        return status;
    s->memory->kv.bytes = (size_t)bytes;
    const int64_t first = whole_granules(s, page_bytes(s));
    status = burin_ledger_back(s->ledger, "kv", s->memory->kv.address, (size_t)first, err);
    s->kv_bytes = status ? 0 : first;
    return status;
}

/* ---- Pages ------------------------------------------------------------------------------- */

static bool is_reserve(const struct burin_start *s)
{
    return s->request->limit == BURIN_LIMIT_RESERVE_DEFAULT ||
           s->request->limit == BURIN_LIMIT_RESERVE;
}

/* Where others are to be left so much, what they have given back since is ours, too; and what they
 * have taken is not. Other limits are of what we take alone. */
static enum burin_status look_again(struct burin_start *s, struct burin_error *err)
{
    int64_t available = 0;
    if (!is_reserve(s) || s->plan->limit_bytes == INT64_MAX)
        return BURIN_OK;
    const enum burin_status status = burin_gpu_free(s->gpu, &available, err);
    const int64_t reserve =
            s->plan->card.available_bytes - s->plan->limit_bytes + s->host_bytes;
    const int64_t left = available > reserve ? available - reserve : 0;
    if (!status)
        s->ledger->left = (size_t)(left / granule(s) * granule(s));
    return status;
}

/* What pages may have in all. */
static int64_t room_for_pages(const struct burin_start *s)
{
    const int64_t left = (int64_t)s->ledger->left + s->kv_bytes;
    const int64_t most =
            is_given(s) ? whole_granules(s, (int64_t)s->plan->n_pages * page_bytes(s))
                        : (int64_t)s->memory->kv.bytes;
    return left < most ? left : most;
}

/* Pieces of 1 GiB, then smaller ones. Once the device has refused one, small rests are left to it:
 * it may need them. */
static enum burin_status back_pages(
        struct burin_start *s, int64_t wanted, struct burin_error *err)
{
    int64_t piece = whole_granules(s, GIB);
    int64_t least = granule(s);
    while (s->kv_bytes < wanted && piece >= least) {
        const int64_t rest = wanted - s->kv_bytes;
        const int64_t bytes = piece < rest ? piece : rest;
        struct burin_error why = { 0 };
        enum burin_status status = BURIN_OK;
        if (s->gpu->cuda.found
                    .integrated) { /* too much taken wedges the host: look each time */
            status = look_again(s, err);
            if (status)
                return status;
            if ((int64_t)s->ledger->left < bytes)
                status = BURIN_ENOMEM;
        }
        if (!status)
            status = burin_ledger_back(
                    s->ledger, "kv", s->memory->kv.address, (size_t)bytes, &why);
        if (!status) {
            s->kv_bytes += bytes;
        } else if (status == BURIN_ENOMEM) {
            least = 8 * granule(s);
            piece = (bytes / 4) / granule(s) * granule(s);
        } else {
            if (err)
                *err = why;
            return status;
        }
    }
    return BURIN_OK;
}

/* As one piece, as large as the device gives it. What is too small is no reason for graphs. */
static enum burin_status take_pages(
        struct burin_start *s, int64_t wanted, struct burin_error *err)
{
    int64_t bytes = wanted;
    enum burin_status status = BURIN_ENOMEM;
    burin_captures_close(s->captures);
    burin_ledger_return(s->ledger, "kv", s->memory->kv.address, s->memory->kv.bytes);
    for (; bytes > 0; bytes = (bytes - bytes / 16 - 1) / granule(s) * granule(s)) {
        status = burin_ledger_take(
                s->ledger, "kv", (size_t)bytes, &s->memory->kv.address, err);
        if (status != BURIN_ENOMEM)
            break;
    }
    if (status && status != BURIN_ENOMEM)
        return status;
    s->kv_bytes = status ? 0 : bytes;
    s->memory->kv.bytes = (size_t)s->kv_bytes;
    if (s->kv_bytes / page_bytes(s) < least_pages(s))
        return refuse(s, s->kv_bytes / page_bytes(s), err);
    return burin_start_capture(s, err);
}

/* Whole pages; the context that they hold, where nobody has asked for one. */
static enum burin_status settle(struct burin_start *s, struct burin_error *err)
{
    struct burin_plan *plan = s->plan;
    int64_t n_pages = s->kv_bytes / page_bytes(s);
    const int64_t most = is_given(s) ? plan->n_pages : INT_MAX;
    if (n_pages > most)
        n_pages = most;
    if (n_pages < least_pages(s))
        return refuse(s, n_pages, err);
    plan->n_pages = (int)n_pages;
    plan->kv_tokens = n_pages * plan->kv->page_tokens;
    s->memory->kv.bytes = (size_t)(n_pages * page_bytes(s));
    if (tokens_of(s, n_pages) < plan->n_ctx) {
        burin_start_note(
                s,
                "a sequence reaches %lld tokens in place of %d: the pages have room for no "
                "more",
                (long long)tokens_of(s, n_pages), plan->n_ctx);
        plan->n_ctx = (int)tokens_of(s, n_pages);
    }
    return burin_ledger_unused(
            s->ledger, "kv", (size_t)(s->kv_bytes - n_pages * page_bytes(s)), err);
}

enum burin_status burin_start_pages(struct burin_start *s, struct burin_error *err)
{
    if (!page_bytes(s))
        return BURIN_OK;
    const bool plain = !burin_device_can_reserve(&s->gpu->cuda.device);
    enum burin_status status = look_again(s, err);
    if (status)
        return status;
    if (plain)
        s->kv_bytes = whole_granules(s, page_bytes(s)); /* the probe, given back for it */
    int64_t wanted = room_for_pages(s);
    if (plain && !is_given(s))
        wanted = (int64_t)s->ledger->left + s->kv_bytes;
    if (wanted / page_bytes(s) < least_pages(s))
        return refuse(s, wanted / page_bytes(s), err);
    wanted = whole_granules(s, wanted / page_bytes(s) * page_bytes(s));
    status = plain ? take_pages(s, wanted, err) : back_pages(s, wanted, err);
    if (!status && s->kv_bytes < wanted)
        burin_start_note(
                s, "pages have %s less than seemed left: the device had no more to give",
                burin_human_bytes(wanted - s->kv_bytes).text);
    return status ? status : settle(s, err);
}
