/* runtime/plan/plan.h -- Who will own how many bytes, whether they fit, and what mends it
 * where they do not.
 *
 * `gen plan`, `NAME plan` and start-up call the same functions: what the plan says is what
 * the ledger is asked for. Everything is read off the emitted tables; nothing here knows a
 * model, touches a device or allocates.
 *
 * On a GPU what is fixed is counted first, then the graphs, and KV gets what is left. Runs
 * follow each other on one stream, so their inputs and their arena are shared: of both the
 * largest run's are needed. Only what the driver keeps for a graph adds up.
 *
 * Units    Bytes, unless a name says tokens or pages.
 * Memory   A plan is a value; it points into the model's tables only.
 * Threads  Pure functions. */
#ifndef BURIN_PLAN_PLAN_H
#define BURIN_PLAN_PLAN_H

#include "runtime/base/status.h"
#include "runtime/model.h"
#include "runtime/plan/cards.h"
#include "runtime/plan/ladder.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BURIN_DEFAULT_CONTEXT = 8192, /* or the model's, where that is smaller; on a CPU */
    BURIN_LEAST_CONTEXT = 4096,   /* or the model's; on a GPU a default is never below it */
    BURIN_DEFAULT_BATCH = 2048,
    BURIN_DEFAULT_SEQUENCES = 64, /* at most, on a GPU */

    /* What may be asked for at most, whatever the memory. */
    BURIN_MAX_THREADS = 1024,
    BURIN_MAX_PARALLEL = 1 << 16,
    BURIN_MAX_BATCH = 1 << 20,
    BURIN_MAX_DRAFT = 32,
    BURIN_MAX_ITEMS = 1 << 16,

    /* The stack of a worker thread. Thread 0 is the caller's own. A sanitizer refuses less. */
    BURIN_THREAD_BYTES = 1024 * 1024,

    BURIN_MAX_PROGRAMS = 8,
};

/* Graphs that are asked for by name. A program that is not named keeps its own ladder; where
 * `none` says so no program has any, and none is named. */
struct burin_graphs {
    bool none;
    int n;
    struct {
        char program[32];
        struct burin_ladder ladder;
    } named[BURIN_MAX_PROGRAMS];
};

/* Add what "none" or "step=1,2,4" asks for. BURIN_EUSAGE where that says a thing twice, or
 * against what was said. */
enum burin_status burin_graphs_parse(
        struct burin_graphs *graphs, const char *text, struct burin_error *err);

/* The list of the program of so many letters, NULL where it is not named. */
const struct burin_ladder *burin_graphs_named(
        const struct burin_graphs *graphs, const char *program, size_t length);

/* What only the device knows. 0 is not known yet: the worst that was met is assumed. */
struct burin_device_costs {
    int64_t context_bytes; /* of a process on the device */
    int64_t modules_bytes; /* the kernels' code */
    int64_t local_bytes;   /* stacks of all threads that may run */
    int64_t node_bytes;    /* of the driver, for each node of a graph */
};

/* A zeroed struct with `model` and n_threads set asks for the defaults. */
struct burin_plan_request {
    const struct burin_model *model;
    const struct burin_family *family; /* NULL: the model's first */
    bool kv_dtype_given;               /* false: the family's first */
    enum burin_dtype kv_dtype;
    int n_threads;     /* at least 1: the caller has counted */
    int n_ctx;         /* tokens a sequence may reach; 0: default, -1: the model's */
    int n_sequences;   /* at once; 0: default */
    int n_batch;       /* tokens a step; 0: BURIN_DEFAULT_BATCH */
    int n_outputs;     /* rows of logits a step; 0: a row for each sequence and draft */
    int64_t kv_tokens; /* the KV pool; both 0: what n_ctx needs, on a GPU all that is left */
    int64_t kv_bytes;
    int n_draft;         /* tokens that the program `draft` drafts a step; 0: none */
    bool images_given;   /* false: one on a GPU, none on a CPU */
    int n_images;        /* whose soft tokens are kept at once */
    int n_frames;        /* of video */
    int n_clips;         /* of sound */
    int largest_picture; /* soft tokens of the largest that will come; 0: the encoder's */
    bool padding_given;
    int graph_padding;     /* percent, else BURIN_GRAPH_PADDING */
    int64_t encoder_arena; /* at most so much arena for an encoder; 0: no cap */
    bool fast_gemm;        /* on a GPU cuBLASLt may do plain dense products */
    struct burin_graphs graphs;
    bool fixed_given; /* --assume: in place of all owners but graphs, state and KV */
    int64_t fixed_bytes;
    bool graphs_given; /* in place of the graphs */
    int64_t graphs_bytes;
    bool weights_at_hand;    /* false: the tokenizer is assumed from n_vocab */
    int64_t tokenizer_bytes; /* of the weights at hand; 0 where they bring none */
    int64_t granule; /* what the device rounds each owner up to; 0: 1, on a GPU 2 MiB */
    struct burin_device_costs costs;
    struct burin_card card;
    enum burin_limit limit;
    int64_t limit_bytes;   /* of BURIN_LIMIT_BYTES and _RESERVE */
    double limit_fraction; /* of BURIN_LIMIT_FRACTION */
};

enum burin_kind {
    BURIN_DERIVED,  /* follows from the graph and the options */
    BURIN_ASSUMED,  /* the worst known, or told by --assume */
    BURIN_MEASURED, /* read from the device */
};

/* On a CPU "weights", "arena", "inputs", "slots" (of sequences), "kv", "tokenizer", "threads",
 * "rounding" where the device has a granule, and "host". On a GPU "context", "modules", "local
 * memory", "weights", "arena", "inputs" (or "fixed" in place of all these), "windows", "scans"
 * and "drafts" (which slots are made of), "graphs", "kv" and "rounding". On both "encoder cache".
 * A name without bytes has no row. */
struct burin_plan_owner {
    const char *name;
    const char *what; /* in a few words, for the report */
    int64_t bytes;
    enum burin_kind kind;
    bool told;             /* by --assume, in place of... */
    int64_t derived_bytes; /* ...so many */
};
enum { BURIN_MAX_OWNERS = 20 };

struct burin_planned_program {
    bool active; /* the others' weights, state and runs are not in the plan */
    bool unused; /* it is not, and graphs were asked for */
    int n_eager; /* what its largest run counts: tokens of a step, soft tokens of an encoder */
    struct burin_ladder graphs;
};

/* Of keys, values and states, with those that only a program in the plan writes. */
struct burin_state_bytes {
    int64_t token; /* of a token in pages */
    int64_t page;
    int64_t windows; /* of a sequence */
    int64_t scans;   /* of a sequence */
    int64_t drafts;  /* more, of a sequence, for all the tokens that are drafted */
};

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
    int n_draft;
    int n_images, n_frames, n_clips;
    int largest_picture;    /* 0: the encoder's */
    int n_pages;            /* of the KV pool */
    int n[BURIN_N_EXTENTS]; /* the largest of each extent, for burin_arena_bytes() */
    struct burin_planned_program programs[BURIN_MAX_PROGRAMS]; /* as the family's */
    struct burin_state_bytes state;
    int64_t node_bytes; /* 0 on a CPU, which has no graphs */
    bool graphs_assumed;

    int n_owners;
    struct burin_plan_owner owners[BURIN_MAX_OWNERS];
    int64_t total_bytes;
    int64_t kv_tokens; /* that the pool holds */

    struct burin_card card;
    int64_t limit_bytes; /* INT64_MAX: none */
    bool fits;
    int64_t short_by_bytes; /* of the limit; within it, what graphs take above their share */
    int largest;            /* index of the largest owner */

    /* What would fit if it were asked for, all else as in the plan; where that does not fit,
     * as in the request. 0: nothing. */
    int longest_context;
    int most_sequences;
    int largest_batch;   /* tokens a step */
    int fewer_sequences; /* that would leave more to KV, where the plan chose; 0 */
    int64_t fewer_kv_tokens;
    char advice[BURIN_ADVICE_TEXT]; /* the one change that mends it, "" where it fits */
};

/* BURIN_EUSAGE for a request that makes no sense (the message names the option), a context
 * beyond the model's among them; BURIN_EFORMAT for tables that lack a row that the plan
 * stands on, a graph without nodes among them; BURIN_ENOMEM for an encoder arena below the smallest
 * item. A plan that does not fit, or whose graphs take more than a quarter of the card, is
 * BURIN_OK: see plan->fits. */
enum burin_status burin_plan_make(
        struct burin_plan *plan,
        const struct burin_plan_request *request,
        struct burin_error *err);

/* BURIN_OK where the plan fits, else BURIN_ENOMEM with the numbers, who is largest, and the
 * advice. */
enum burin_status burin_plan_check(const struct burin_plan *plan, struct burin_error *err);

/* Bytes planned for an owner, 0 for a name without a row. */
int64_t burin_plan_owner_bytes(const struct burin_plan *plan, const char *name);

/* What the host has of a step's results on a GPU: for each output its logits, and no more than
 * BURIN_TOP_BYTES of the largest (engine/sampler.h). */
enum { BURIN_TOP_BYTES = 1024 };
int64_t burin_plan_result_bytes(const struct burin_plan *plan);

/* Whether the device took so much more for graphs than was planned that a person should know:
 * more than the larger of 64 MiB and a tenth. `text` then has both numbers and the nodes. */
bool burin_plan_drift(
        int64_t planned, int64_t obtained, int n_nodes, char *text, size_t capacity);

/* A tokenizer of n_vocab tokens before its file is known: the worst known, and never less than
 * what one obtains (runtime/text/tokenizer.h). */
int64_t burin_plan_tokenizer_bytes(int64_t n_vocab);

/* "f32", "bf16", ...; the KV dtype of a family by that name, or -1. */
const char *burin_dtype_name(enum burin_dtype dtype);
int burin_dtype_by_name(const char *name);

#endif
