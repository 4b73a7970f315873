/* runtime/weights/bind.h -- Is this checkpoint the described model? Which tensor is which?
 *
 * Every weight of the model is looked up by its name in the checkpoint's container, and its
 * shape and format are compared. A vector or number that the model wants in f32 may be f16 or
 * bf16 in the file: widening is exact. Adjacent dims count as one where a file has more than
 * the model (a convolution's). A stack of experts may lie in the file one by one.
 *
 * A tensor that the model does not use is a mismatch too (an untied head, a bias, a 31st layer
 * would be dropped silently), unless the model says so (burin_model.unread), it holds the same
 * bytes as one that is used (a tied head stored twice) or what a description computes itself.
 *
 * What the file says of itself besides is compared too: weights/hyperparameters.h.
 *
 * Memory   `tensors` lies in the checkpoint's arena and lives as long as the checkpoint.
 * Threads  One at a time on a checkpoint.
 * Errors   A config.json beside safetensors that can't be read, as hyperparameters.h says.
 *          BURIN_EMISMATCH lists all that does not fit, like ones of several layers in one
 *          line, and ends with the `gen` line that would fit the file, as far as the file
 *          tells. */
#ifndef BURIN_WEIGHTS_BIND_H
#define BURIN_WEIGHTS_BIND_H

#include "runtime/base/status.h"
#include "runtime/model.h"
#include "runtime/weights/checkpoint.h"

/* On success (*tensors)[i] is where model->weights[i] lies. */
enum burin_status burin_bind(
        const struct burin_model *model,
        struct burin_checkpoint *checkpoint,
        const struct burin_tensor *const **tensors,
        struct burin_error *err);

#endif
