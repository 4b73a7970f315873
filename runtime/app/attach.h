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
#include "runtime/text/chat.h"

struct burin_attached {
    int n_parts;
    struct burin_part
            parts[BURIN_MAX_LIST + 1];    /* in prompt order; room for a text behind */
    int n_pictures;                       /* frames of video are some, too */
    const struct burin_patches *pictures; /* (n_pictures) of all parts, in order */
    int n_frames;                         /* of them */
    int largest;                          /* soft tokens of one */
};

/* The program that encodes pictures and frames, or NULL for a model that reads text alone. Where
 * a family has no kernels for it, it is another family's. */
const struct burin_program *burin_app_encoder(const struct burin_model *model);

/* Read all of settings->attachments. BURIN_EUSAGE for a model that takes none. */
enum burin_status burin_app_attach(
        struct burin_app *app, struct burin_attached *attached, struct burin_error *err);

#endif
