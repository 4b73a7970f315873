#include "runtime/app/attach.h"

#include <stdio.h>
#include <string.h>

/* What transformers' processors of Gemma 4 take by default: soft tokens of a picture and of a
 * frame, and frames of a video. */
enum { PICTURE_SOFT = 280, FRAME_SOFT = 70, FRAMES = 32 };

const struct burin_program *burin_app_encoder(const struct burin_model *model)
{
    for (int f = 0; f < model->n_families; f++)
        for (int i = 0; i < model->families[f].n_programs; i++)
            if (strcmp(model->families[f].programs[i].name, "encode_image") == 0)
                return &model->families[f].programs[i];
    return NULL;
}

static int root(int64_t square)
{
    int side = 1;
    while ((int64_t)side * side < square)
        side++;
    return side;
}

/* Patch and pool, read off the shape of the encoder's input: pixels (pool^2 soft, 3 patch^2). */
static enum burin_status read_vision(
        const struct burin_app *app, struct burin_vision *vision, struct burin_error *err)
{
    const struct burin_program *encoder = burin_app_encoder(app->model);
    if (!encoder)
        return burin_fail(
                err, BURIN_EUSAGE, "%s reads text alone: it has no encoder for --%s",
                app->model->name,
                app->settings.attachments.at[0].is_video ? "video" : "image");
    for (int i = 0; i < encoder->n_inputs; i++) {
        const struct burin_input *input = &encoder->inputs[i];
        if (strcmp(input->name, "pixels") != 0)
            continue;
        vision->pool = root(input->dims[0].slope.terms[0].factor);
        vision->patch = root(input->dims[1].fixed.terms[0].factor / 3);
        vision->max_soft = encoder->largest_item;
    }
    return BURIN_OK;
}

static struct burin_vision within(struct burin_vision vision, int max_soft)
{
    if (max_soft < vision.max_soft)
        vision.max_soft = max_soft;
    return vision;
}

static enum burin_status attach_picture(
        struct burin_app *app,
        const struct burin_media *media,
        const struct burin_vision *vision,
        const char *path,
        struct burin_attached *attached,
        struct burin_error *err)
{
    const struct burin_vision limited = within(*vision, PICTURE_SOFT);
    struct burin_patches *picture = BURIN_TAKE(&app->arena, 1, struct burin_patches);
    if (!picture)
        return burin_fail(err, BURIN_ENOMEM, "no memory for a picture");
    *attached = (struct burin_attached){ .n_items = 1, .items = picture };
    return burin_media_picture(media, path, &limited, &app->arena, picture, err);
}

static enum burin_status attach_video(
        struct burin_app *app,
        const struct burin_media *media,
        const struct burin_vision *vision,
        const char *path,
        struct burin_attached *attached,
        struct burin_error *err)
{
    const struct burin_vision limited = within(*vision, FRAME_SOFT);
    const struct burin_frame_sampling sampling = { .n_frames = FRAMES };
    struct burin_clip clip = { 0 };
    const enum burin_status status =
            burin_media_clip(media, path, &limited, sampling, &app->arena, &clip, err);
    if (!status && clip.video.n_declared > clip.video.n_frames)
        fprintf(stderr,
                "%s: %s is cut: it has %lld of its %lld frames, and those are seen\n",
                app->program, burin_show(burin_span_of(path)).text,
                (long long)clip.video.n_frames, (long long)clip.video.n_declared);
    *attached = (struct burin_attached){ .is_video = true,
                                         .n_items = clip.n_frames,
                                         .items = clip.frames,
                                         .seconds = clip.seconds };
    return status;
}

/* A file that can't be used is a mistake of the command line, not of the weights. */
static enum burin_status blame_file(enum burin_status status, struct burin_error *err)
{
    static char said[BURIN_ERROR_TEXT];
    if (status != BURIN_EMISSING && status != BURIN_EUNREADABLE && status != BURIN_EFORMAT)
        return status;
    snprintf(said, sizeof said, "%s", err->message);
    return burin_fail(err, BURIN_EUSAGE, "%s", said);
}

enum burin_status burin_app_attach(
        struct burin_app *app, struct burin_attached_list *list, struct burin_error *err)
{
    const struct burin_attachments *given = &app->settings.attachments;
    struct burin_media media;
    *list = (struct burin_attached_list){ 0 };
    if (!given->n)
        return BURIN_OK;
    enum burin_status status = read_vision(app, &list->vision, err);
    if (!status)
        status = blame_file(burin_media_find(&media, err), err);
    for (int i = 0; !status && i < given->n; i++) {
        const char *path = given->at[i].path;
        struct burin_attached *attached = &list->at[list->n++];
        status = blame_file(
                given->at[i].is_video
                        ? attach_video(app, &media, &list->vision, path, attached, err)
                        : attach_picture(app, &media, &list->vision, path, attached, err),
                err);
    }
    return status;
}
