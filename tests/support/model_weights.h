/* tests/support/model_weights.h -- Where the weights of the model under test are, from the
 * root of the tree: a golden checkpoint for a tiny model, build/weights for a real one. NULL
 * where they are not (tools/demo-weights fetches the real ones). */
#ifndef BURIN_MODEL_WEIGHTS_H
#define BURIN_MODEL_WEIGHTS_H

#include "runtime/model.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static inline const char *model_weights(void)
{
    static const char *const endings[] = { "safetensors", "gguf" };
    static char path[256];
    if (!strstr(burin_model.architecture, "_tiny")) {
        snprintf(path, sizeof path, "build/weights/SmolLM2-135M-Instruct.Q4_1.gguf");
        return access(path, R_OK) == 0 ? path : NULL;
    }
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        snprintf(
                path, sizeof path, "tests/golden/%s-%s-%s/model.%s",
                burin_model.architecture, burin_model.variant, burin_model.recipe,
                endings[i]);
        if (access(path, R_OK) == 0)
            return path;
    }
    return NULL;
}

#endif
