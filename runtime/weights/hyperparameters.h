/* runtime/weights/hyperparameters.h -- Does what a checkpoint says of itself, besides its
 * tensors, agree with what the model computes?
 *
 * A GGUF file says it in its metadata, a folder of safetensors in the config.json beside them.
 * Two models with equal shapes may differ in a theta or an epsilon alone: without this a file
 * of one binds to the other, and answers rubbish.
 *
 * Memory   The report is the caller's and holds its texts itself. config.json is read into the
 *          checkpoint's arena and given back.
 * Threads  One at a time on a checkpoint.
 * Errors   BURIN_EFORMAT a config.json that is no JSON object or is longer than 1 MiB,
 *          BURIN_EIO, BURIN_ENOMEM. That there is none is no error, nor is a missing key. */
#ifndef BURIN_WEIGHTS_HYPERPARAMETERS_H
#define BURIN_WEIGHTS_HYPERPARAMETERS_H

#include "runtime/base/status.h"
#include "runtime/model.h"
#include "runtime/weights/checkpoint.h"

#include <stddef.h>

enum { BURIN_MAX_DISAGREEMENTS = 16 };

struct burin_disagreement {
    const struct burin_hyperparameter *wanted;
    char key[100];   /* as the file has it */
    char found[120]; /* fit for a message */
};

struct burin_self_report {
    char config[1024];   /* where config.json is; empty without one */
    char model_type[64]; /* config.json's own, any bytes; empty without one */
    size_t n;            /* disagreements, those beyond the limit as well */
    struct burin_disagreement rows[BURIN_MAX_DISAGREEMENTS];
};

enum burin_status burin_hyperparameters_compare(
        const struct burin_model *model,
        struct burin_checkpoint *checkpoint,
        struct burin_self_report *report,
        struct burin_error *err);

#endif
