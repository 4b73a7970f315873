/* runtime/engine/open.h -- While an engine opens: what is needed until it is ready, and the part of
 * it that only a GPU has. For engine.c and open_gpu.c.
 *
 * Threads  One. */
#ifndef BURIN_ENGINE_OPEN_H
#define BURIN_ENGINE_OPEN_H

#include "runtime/engine/engine.h"
#include "runtime/text/vocab.h"
#include "runtime/weights/checkpoint.h"

#include <stdbool.h>

struct burin_opening {
    const struct burin_options *options;
    struct burin_engine *engine;
    struct burin_checkpoint checkpoint;
    const struct burin_tensor *const *tensors;
    struct burin_vocab vocab;
    bool has_vocab;

    bool automatic; /* the device is ours to choose */
    bool looking;   /* for the card alone: nothing will run on it */
    int index;      /* of the GPU that is open */
    bool may_come;  /* a GPU that was refused would do if others gave back what they have */
    double until_ms; /* memory is waited for; 0: nobody has waited */
};

/* What is asked for, without card, family and limit. */
enum burin_status burin_opening_request(
        const struct burin_opening *opening,
        struct burin_plan_request *request,
        struct burin_error *err);

/* ---- open_gpu.c ------------------------------------------------------------------------ */

/* The device that the options mean; with "auto" a GPU if there is one that can run the model.
 * BURIN_EUSAGE for a GPU that cannot, BURIN_EMISSING where one is asked for and there is none. */
enum burin_status burin_opening_device(
        struct burin_opening *opening, struct burin_error *err);

/* A plan for the GPU. */
enum burin_status burin_opening_plan_gpu(
        struct burin_opening *opening, struct burin_error *err);

/* After such a plan was refused, with "auto": the next GPU, or the CPU if none holds the model.
 * Where the options say so all of them are asked again and again until there is memory. False where
 * the refusal stands; `why` is another where waiting was interrupted. */
bool burin_opening_next(struct burin_opening *opening, struct burin_error *why);

/* `why` as the engine's error, with the reason against the GPU where it is the CPU's no, and with
 * what waiting would do, or did. */
enum burin_status burin_opening_refuse(
        const struct burin_opening *opening,
        const struct burin_error *why,
        struct burin_error *err);

/* Start it: from the context to the pages, the weights on the way. */
enum burin_status burin_opening_start_gpu(
        struct burin_opening *opening, struct burin_error *err);

#endif
