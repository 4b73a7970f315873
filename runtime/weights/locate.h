/* runtime/weights/locate.h -- Where the weights are when nobody said.
 *
 * In order: $BURIN_MODEL; beside the binary; the binary's ../weights; build/weights under the
 * current folder; the Hugging Face cache ($HF_HUB_CACHE, $HF_HOME/hub,
 * $XDG_CACHE_HOME/huggingface/hub, ~/.cache/huggingface/hub: the first of these that is set).
 * A folder is searched for checkpoints in it and one level below. The first that binds to the
 * model is taken, in the order of names, so that a folder may hold the weights of many models.
 * No network, no question.
 *
 * Memory   The checkpoint is the caller's to close.
 * Threads  One at a time (it reads the environment).
 * Errors   A path that was given, by option or by $BURIN_MODEL, is the only candidate, and the
 *          error is its own. Else BURIN_EMISSING lists the places looked, what was found there
 *          and why it does not fit, and the tools/demo-weights line. */
#ifndef BURIN_WEIGHTS_LOCATE_H
#define BURIN_WEIGHTS_LOCATE_H

#include "runtime/base/status.h"
#include "runtime/model.h"
#include "runtime/weights/checkpoint.h"

/* Open the checkpoint and bind the model to it (runtime/weights/bind.h). `given` is what -m
 * says, or NULL. `binary` is the folder of the binary; NULL asks the system. */
enum burin_status burin_locate(
        const struct burin_model *model,
        const char *given,
        const char *binary,
        struct burin_checkpoint *checkpoint,
        const struct burin_tensor *const **tensors,
        struct burin_error *err);

#endif
