/* runtime/app/attach.h -- What --image and --video gave: decoded, resized, ready for an encoder.
 *
 * Memory   In the app's arena.
 * Threads  One.
 * Errors   A file that isn't there, damaged or of another kind is BURIN_EUSAGE, as every
 *          mistake of a command line. */
#ifndef BURIN_APP_ATTACH_H
#define BURIN_APP_ATTACH_H

#include "runtime/app/app.h"
#include "runtime/media/media.h"

/* One picture, or the sampled frames of one video. */
struct burin_attached {
    bool is_video;
    int n_items;
    const struct burin_patches *items; /* (n_items) */
    const double *seconds; /* (n_items) when each frame is; NULL for a picture */
};

struct burin_attached_list {
    struct burin_vision vision; /* patch and pool of the model's encoder */
    int n;
    struct burin_attached at[BURIN_MAX_LIST]; /* in prompt order */
};

/* The program that encodes pictures and frames, or NULL for a model that reads text alone. Where
 * a family has no kernels for it, it is another family's. */
const struct burin_program *burin_app_encoder(const struct burin_model *model);

/* Read all of settings->attachments. BURIN_EUSAGE for a model that takes none. */
enum burin_status burin_app_attach(
        struct burin_app *app, struct burin_attached_list *list, struct burin_error *err);

#endif
