/* runtime/plan/plan.h -- Who will own how many bytes, whether they fit, and what mends it
 * where they do not.
 *
 * `gen plan`, `NAME plan` and start-up call the same functions: what the plan says is what
 * the ledger is asked for. Everything is read off the emitted tables; nothing here knows a
 * model, touches a device or allocates.
 *
 * Units    Bytes, unless a name says tokens or pages.
 * Memory   A plan is a value; it points into the model's tables only.
 * Threads  Pure functions. */
#ifndef BURIN_PLAN_PLAN_H
#define BURIN_PLAN_PLAN_H

#include "runtime/base/status.h"
#include "runtime/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BURIN_DEFAULT_CONTEXT = 8192, /* or the model's, where that is smaller */
    BURIN_DEFAULT_BATCH = 2048,

    /* What may be asked for at most, whatever the memory. */
    BURIN_MAX_THREADS = 1024,
    BURIN_MAX_PARALLEL = 1 << 16,
    BURIN_MAX_BATCH = 1 << 20,

    /* The stack of a worker thread. Thread 0 is the caller's own. A sanitizer refuses less. */
    BURIN_THREAD_BYTES = 1024 * 1024,
};

/* Which memory the plan is for. On the CPU it is this machine's. */
struct burin_card {
    char name[32];           /* "" is "the memory" */
    int64_t total_bytes;     /* 0: unknown, everything fits */
    int64_t available_bytes; /* free at this moment; total_bytes where nobody has looked */
    int sm;                  /* compute capability, 0 for a CPU */
};

/* "8GiB" or "23.46GiB,sm_120". BURIN_EUSAGE shows the forms. */
enum burin_status burin_card_parse(
        struct burin_card *card, const char *text, struct burin_error *err);

/* How much of the card is ours: at most one is given, and never more than is available. */
enum burin_limit {
    BURIN_LIMIT_RESERVE_DEFAULT, /* available - the smaller of 1 GiB and 1/16 of the total */
    BURIN_LIMIT_BYTES,           /* that many */
    BURIN_LIMIT_RESERVE,         /* available - that many */
    BURIN_LIMIT_FRACTION,        /* that share of the total */
    BURIN_LIMIT_NONE,            /* plan only, never refuse */
};

/* A zeroed struct with `model` and n_threads set asks for the defaults. */
struct burin_plan_request {
    const struct burin_model *model;
    const struct burin_family *family; /* NULL: the model's first */
    bool kv_dtype_given;               /* false: the family's first */
    enum burin_dtype kv_dtype;
    int n_threads;     /* at least 1: the caller has counted */
    int n_ctx;         /* tokens a sequence may reach; 0: default, -1: the model's */
    int n_sequences;   /* at once; 0: 1 */
    int n_batch;       /* tokens a step; 0: BURIN_DEFAULT_BATCH */
    int n_outputs;     /* rows of logits a step; 0: n_sequences */
    int64_t kv_tokens; /* the KV pool; both 0: n_ctx x n_sequences */
    int64_t kv_bytes;
    bool weights_at_hand;    /* false: the tokenizer is assumed from n_vocab */
    int64_t tokenizer_bytes; /* of the weights at hand; 0 where they bring none */
    int64_t granule;         /* what the device rounds each owner up to; 0: 1 */
    struct burin_card card;
    enum burin_limit limit;
    int64_t limit_bytes;   /* of BURIN_LIMIT_BYTES and _RESERVE */
    double limit_fraction; /* of BURIN_LIMIT_FRACTION */
};

enum burin_kind {
    BURIN_DERIVED,  /* follows from the graph and the options */
    BURIN_ASSUMED,  /* the worst known */
    BURIN_MEASURED, /* read from the device */
};

/* "weights", "arena", "inputs", "kv", "tokenizer", "threads", "rounding" where the device has
 * a granule (what it adds to those before it), and "host". */
struct burin_plan_owner {
    const char *name;
    const char *what; /* in a few words, for the report */
    int64_t bytes;
    enum burin_kind kind;
};
enum { BURIN_MAX_OWNERS = 16 };

enum { BURIN_ADVICE_TEXT = 512 };

struct burin_plan {
    const struct burin_model *model;
    const struct burin_family *family;
    const struct burin_kv_layout *kv;
    int kv_index; /* of `kv` in the family, and of the program's run */
    struct burin_params params;
    int n_threads;
    int n_ctx; /* tokens a sequence may reach */
    int n_sequences;
    int n_batch;
    int n_outputs;
    int n_pages;            /* of the KV pool */
    int n[BURIN_N_EXTENTS]; /* the largest of each extent, for burin_arena_bytes() */

    int n_owners;
    struct burin_plan_owner owners[BURIN_MAX_OWNERS];
    int64_t total_bytes;
    int64_t kv_tokens; /* that the pool holds */

    struct burin_card card;
    int64_t limit_bytes; /* INT64_MAX: none */
    bool fits;
    int64_t short_by_bytes;
    int largest; /* index of the largest owner */

    /* What would fit if it were asked for, all else as in the request: what the request leaves
     * to its default follows. */
    int longest_context;            /* for n_sequences of them; 0: not one page */
    int most_sequences;             /* with this request's n_ctx; 0: not one */
    char advice[BURIN_ADVICE_TEXT]; /* the one change that mends it, "" where it fits */
};

/* BURIN_EUSAGE for a request that makes no sense (the message names the option),
 * a context beyond the model's among them, BURIN_EFORMAT for tables that lack a row that the
 * plan stands on. A plan that does not fit is BURIN_OK: see plan->fits. */
enum burin_status burin_plan_make(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err);

/* BURIN_OK where the plan fits, else BURIN_ENOMEM with the numbers, who is largest, and the
 * advice. */
enum burin_status burin_plan_check(const struct burin_plan *plan, struct burin_error *err);

/* Bytes planned for an owner, 0 for a name without a row. */
int64_t burin_plan_owner_bytes(const struct burin_plan *plan, const char *name);

/* A tokenizer of n_vocab tokens before its file is known: the worst known, and never less than
 * what one obtains (runtime/text/tokenizer.h). */
int64_t burin_plan_tokenizer_bytes(int64_t n_vocab);

/* "f32", "bf16", ...; the KV dtype of a family by that name, or -1. */
const char *burin_dtype_name(enum burin_dtype dtype);
int burin_dtype_by_name(const char *name);

#endif
