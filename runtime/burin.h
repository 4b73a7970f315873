/* runtime/burin.h -- The public interface: open an engine, give it requests, step it.
 *
 *     struct burin_engine *engine;
 *     enum burin_status status = burin_engine_open(&engine, &options, &err);
 *     struct burin_request request = { .ids = ids, .n_ids = n, .max_tokens = 64,
 *                                      .sampling = burin_greedy, .on_token = print };
 *     status = burin_submit(engine, &request, &err);
 *     status = burin_engine_run(engine, &err);        // or burin_engine_step() in a loop
 *     ... request.finish, request.n_generated ...
 *     burin_engine_close(engine);
 *
 * Memory   Everything is obtained in burin_engine_open(), through one ledger; nothing is
 *          allocated after it has returned. A request is the caller's, and so are its ids:
 *          all of it stays in place until request.finish is no longer BURIN_WAITING or
 *          BURIN_RUNNING. Pointers given to a callback hold until it returns.
 * Threads  One thread opens, submits, steps and closes; callbacks run on it. burin_cancel()
 *          may be called from any thread and from a signal handler.
 * Bits     What a request gets does not depend on the others, on chunking or on threads: a row
 *          computes the same sums in the same order in whatever step it is. */
#ifndef BURIN_BURIN_H
#define BURIN_BURIN_H

#include "runtime/base/status.h"
#include "runtime/device/ledger.h"
#include "runtime/media/patches.h"
#include "runtime/model.h"
#include "runtime/plan/cards.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct burin_engine;
struct burin_graphs;

/* ---- Opening --------------------------------------------------------------------- */

enum {
    BURIN_CONTEXT_DEFAULT = 0, /* the smaller of the model's and 8192 */
    BURIN_CONTEXT_MODEL = -1,  /* the model's own */
    BURIN_THREADS_PHYSICAL = -1,
};

/* A zeroed struct with `model` set asks for the defaults. */
struct burin_options {
    const struct burin_model *model;
    const char *weights; /* file or folder; NULL: looked for, runtime/weights/locate.h */
    const char *device; /* "cpu", "cuda" or "cuda:1"; NULL or "auto": a GPU that can run the
                            model, else the CPU */
    const char *target; /* a family's name; NULL: the best that the device runs */
    int n_threads;      /* 0 or BURIN_THREADS_PHYSICAL: the physical cores we may use */
    int n_ctx;          /* tokens a sequence may reach, or one of the two above */
    int n_sequences;    /* requests running at once; 0: 1, on a GPU what it carries */
    int n_batch;        /* tokens a step, at most; 0: 2048, never above what n_ctx needs */
    int n_outputs;      /* rows of logits a step, at most; 0: n_sequences. Scoring every
                            row of a prompt is cut into chunks of this many */
    bool exact;         /* everything in f32 */
    bool kv_dtype_given; /* false: the family's first */
    enum burin_dtype kv_dtype;
    int64_t kv_tokens; /* the KV pool; both 0: n_ctx for each of n_sequences */
    int64_t kv_bytes;
    int n_images; /* pictures and frames whose soft tokens are kept at once; both 0: text */
    int n_frames;
    int64_t encoder_arena; /* at most so much of the arena for a run of pictures; 0: no cap */
    int largest_picture;   /* soft tokens of the largest that will come; 0: any */
    bool strict; /* taking memory after ready aborts, for tests; else it is refused */

    /* How much of the device's memory may be taken; what is available but for a reserve where none
     * is given (runtime/plan/cards.h). */
    enum burin_limit limit;
    int64_t limit_bytes;
    double limit_fraction;
    int wait_s; /* wait so long for a GPU's memory to become free */

    const struct burin_graphs
            *graphs; /* of a GPU, runtime/plan/plan.h; NULL: as a plan has them */
    bool padding_given;
    int graph_padding; /* percent */
    bool fast_gemm; /* cuBLASLt may do plain dense products; bits may depend on the batch */

    /* Where opening is, called from burin_engine_open(): "weights" counts bytes of the checkpoint
     * that are packed, on a GPU other steps come before and behind (engine/startup.h); with a
     * total of 0 a step begins. False ends it with BURIN_ESTOPPED. May be NULL. */
    bool (*on_progress)(void *user, const char *step, size_t done, size_t total);
    void *user;
};

/* Locate, plan, obtain, pack, seal. Fails with what does not fit and the option that mends
 * it (BURIN_ENOMEM), with every mismatch of the checkpoint (BURIN_EMISMATCH), or with an
 * option that makes no sense (BURIN_EUSAGE); nothing is left behind then. */
enum burin_status burin_engine_open(
        struct burin_engine **engine,
        const struct burin_options *options,
        struct burin_error *err);

/* The first GPU that an engine may be opened on, as the card of a plan, whether it holds the model
 * or not; *found is false where it would be the CPU, and no_gpu then says why a GPU that is there is
 * not taken, "" where there is none; it may be NULL. Fails as burin_engine_open() does where that
 * GPU can't be had: for want of NVRTC, of kernels for these keys and values, of cuBLASLt. And where
 * the target is of a GPU and none here runs it (BURIN_EUSAGE). */
enum burin_status burin_engine_card(
        const struct burin_options *options,
        struct burin_card *card,
        bool *found,
        char *no_gpu,
        size_t capacity,
        struct burin_error *err);

/* Ends the threads and gives everything back. NULL is allowed. */
void burin_engine_close(struct burin_engine *engine);

/* What was chosen. */
struct burin_engine_info {
    const char *device; /* "cpu", "cuda:0, NVIDIA GeForce RTX 5090" */
    const char
            *no_gpu; /* why it is the CPU, or not an earlier GPU, where one was looked for;
                           else "" */
    bool passed_gpu; /* a GPU was there or its driver was named, and not taken because of that */
    const struct burin_model *model;
    const struct burin_family *family;
    const struct burin_kv_layout *kv;
    int n_threads;
    int n_ctx;
    int n_sequences;
    int n_batch;
    int n_outputs;
    int n_pages;         /* of the KV pool */
    int n_pages_free;    /* at this moment */
    int n_encoder_runs;  /* so far */
    double load_ms;      /* burin_engine_open(), all of it */
    const char *weights; /* the file or folder, as given */
};
struct burin_engine_info burin_engine_info(const struct burin_engine *engine);

/* The rows of the ledger, in the order of the plan: "weights", "arena", "inputs", where the
 * model has them "encoder cache" and "slots", "kv", "tokenizer", "threads", "rounding",
 * "host". */
int burin_engine_owners(
        const struct burin_engine *engine, const struct burin_owner **owners);

/* On a GPU what start-up planned and obtained, as text that a person reads. False on a CPU. */
bool burin_engine_start_report(const struct burin_engine *engine, FILE *out);

/* What that start-up took from the user beside the plan, a line each: graphs, context, memory, time.
 * NULL behind the last one. */
const char *burin_engine_start_note(const struct burin_engine *engine, int i);

/* The tokenizer of the weights (runtime/text/tokenizer.h), or NULL where they bring none. */
struct burin_tokenizer;
const struct burin_tokenizer *burin_engine_tokenizer(const struct burin_engine *engine);

/* How the weights' authors mean it to be sampled (runtime/weights/generation.h). */
struct burin_generation;
const struct burin_generation *burin_engine_generation(const struct burin_engine *engine);

/* ---- Requests -------------------------------------------------------------------- */

/* Filters apply in the order top_k, top_p, min_p, on the probabilities at temperature 1; one
 * is drawn of what they leave. */
struct burin_sampling {
    float temperature; /* 0: the largest logit, the first of equals */
    int top_k;         /* 0 and -1: off */
    float top_p;       /* 1: off */
    float min_p;       /* 0: off; relative to the largest probability */
    int64_t seed;      /* -1: random; request.seed tells which was used */
};
static const struct burin_sampling burin_greedy = { .top_p = 1.0f };

enum burin_finish {
    BURIN_WAITING,   /* in the queue */
    BURIN_RUNNING,   /* has a slot */
    BURIN_STOPPED,   /* made one of its stop ids; that one was not given to on_token */
    BURIN_LENGTH,    /* made max_tokens */
    BURIN_CONTEXT,   /* reached the context limit */
    BURIN_CANCELLED, /* burin_cancel(), or on_token returned false */
    BURIN_FAILED,    /* request.error says why */
};

/* A picture or a frame of video within a prompt, as its encoder takes it. */
struct burin_picture {
    int begin; /* the place in ids of its first soft token: as many ids as it has soft tokens
                  stand there, of the token that the model pads with */
    struct burin_patches patches;
};

struct burin_request {
    /* The caller's. */
    const int32_t *ids; /* the prompt, at least one */
    int n_ids;
    const struct burin_picture
            *pictures; /* in prompt order; they stay until the end, too */
    int n_pictures;
    int max_tokens; /* to make; 0: run the prompt only; negative: until something else ends it */
    const int32_t *stop_ids;
    int n_stop_ids;
    struct burin_sampling sampling;

    /* A new token. Return false to end the request. May be NULL. */
    bool (*on_token)(struct burin_request *request, int32_t token);

    /* The logits (n_vocab) that follow the token at `position`: of each prompt row from
     * logits_from on, and of every row that a token is drawn from. May be NULL. */
    void (*on_logits)(struct burin_request *request, int position, const float *logits);
    int logits_from;

    /* Called once, when `finish` says how it ended; the request is the caller's again. May
     * be NULL. */
    void (*on_end)(struct burin_request *request);

    void *user;

    /* The engine's: read only, and complete when the request has ended. */
    enum burin_finish finish;
    struct burin_error error; /* of BURIN_FAILED */
    uint64_t seed;
    int n_prompt_done; /* prompt tokens in the cache */
    int n_generated;
    double queued_ms;  /* from submit to the first step */
    double prefill_ms; /* from there to the first token, or the end of the prompt */
    double decode_ms;  /* from there to the end */

    /* The engine's: private. */
    struct burin_request *next;
    atomic_bool cancelled;
    uint64_t random[4];
    double mark_ms; /* when the time began that is counted at the moment */
};

/* Put a request into the queue: first come, first served. Callbacks may do it too. BURIN_ELIMIT
 * where the prompt is longer than the context (both numbers in the message), BURIN_EUSAGE for an
 * empty prompt, an id outside the vocabulary or sampling parameters that make no sense; the
 * request is untouched then. */
enum burin_status burin_submit(
        struct burin_engine *engine,
        struct burin_request *request,
        struct burin_error *err);

/* Let it end at the next step, with BURIN_CANCELLED. */
void burin_cancel(struct burin_request *request);

/* Run one step: prompt chunks and new tokens of all running requests together. *n_left is
 * the number of requests that have not ended; with none, nothing happens. A request that
 * fails ends by itself; the status is about the engine. */
enum burin_status burin_engine_step(
        struct burin_engine *engine, int *n_left, struct burin_error *err);

/* Step until no request is left. */
enum burin_status burin_engine_run(struct burin_engine *engine, struct burin_error *err);

/* ---- Logits ---------------------------------------------------------------------- */

/* The place of the largest, the first of equals; -1 where any is NaN or +Inf, or all are
 * -Inf. */
int32_t burin_argmax(const float *logits, int n);

/* log softmax(logits)[target], in nats; NaN where the logits are not finite. */
double burin_log_prob(const float *logits, int n, int32_t target);

#endif
