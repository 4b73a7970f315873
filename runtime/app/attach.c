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

static enum burin_status read_vision(
        const struct burin_app *app, struct burin_vision *vision, struct burin_error *err)
{
    const struct burin_program *encoder = burin_app_encoder(app->model);
    if (!encoder)
        return burin_fail(
                err, BURIN_EUSAGE, "%s reads text alone: it has no encoder for --%s",
                app->model->name,
                app->settings.attachments.at[0].is_video ? "video" : "image");
    for (int i = 0; i < encoder->n_inputs; i++)
        if (strcmp(encoder->inputs[i].name, "pixels") == 0)
            *vision = burin_vision_of(&encoder->inputs[i], encoder->largest_item);
    return BURIN_OK;
}

static struct burin_vision within(struct burin_vision vision, int max_soft)
{
    if (max_soft < vision.max_soft)
        vision.max_soft = max_soft;
    return vision;
}

static enum burin_status read_picture(
        struct burin_app *app,
        const struct burin_media *media,
        const struct burin_vision *vision,
        const char *path,
        struct burin_clip *clip,
        struct burin_error *err)
{
    const struct burin_vision limited = within(*vision, PICTURE_SOFT);
    *clip = (struct burin_clip){ .n_frames = 1,
                                 .frames =
                                         BURIN_TAKE(&app->arena, 1, struct burin_patches) };
    if (!clip->frames)
        return burin_fail(err, BURIN_ENOMEM, "no memory for a picture");
    return burin_media_picture(media, path, &limited, &app->arena, clip->frames, err);
}

static enum burin_status read_video(
        struct burin_app *app,
        const struct burin_media *media,
        const struct burin_vision *vision,
        const char *path,
        struct burin_clip *clip,
        struct burin_error *err)
{
    const struct burin_vision limited = within(*vision, FRAME_SOFT);
    const int asked = app->settings.n_frames;
    const struct burin_frame_sampling sampling = { .n_frames = asked ? asked : FRAMES };
    const enum burin_status status =
            burin_media_clip(media, path, &limited, sampling, &app->arena, clip, err);
    if (!status && clip->video.n_declared > clip->video.n_frames)
        fprintf(stderr,
                "%s: %s is cut: it has %lld of its %lld frames, and those are seen\n",
                app->program, burin_show(burin_span_of(path)).text,
                (long long)clip->video.n_frames, (long long)clip->video.n_declared);
    return status;
}

/* The next part, of a picture or of the frames of a video. */
static enum burin_status add_part(
        struct burin_app *app,
        struct burin_attached *attached,
        bool is_video,
        const struct burin_clip *clip,
        struct burin_error *err)
{
    int *n_soft = BURIN_TAKE(&app->arena, (size_t)clip->n_frames, int);
    if (!n_soft)
        return burin_fail(err, BURIN_ENOMEM, "no memory for %d frames", clip->n_frames);
    for (int i = 0; i < clip->n_frames; i++) {
        n_soft[i] = burin_grid_soft(clip->frames[i].grid);
        if (n_soft[i] > attached->largest)
            attached->largest = n_soft[i];
    }
    attached->parts[attached->n_parts++] = (struct burin_part){
        .kind = is_video ? BURIN_PART_VIDEO : BURIN_PART_IMAGE,
        .n_items = clip->n_frames,
        .n_soft = n_soft,
        .seconds = clip->seconds,
    };
    attached->n_pictures += clip->n_frames;
    attached->n_frames += is_video ? clip->n_frames : 0;
    return BURIN_OK;
}

/* The pictures of all parts in one list. */
static enum burin_status gather(
        struct burin_app *app,
        struct burin_attached *attached,
        const struct burin_clip *clips,
        struct burin_error *err)
{
    struct burin_patches *pictures =
            BURIN_TAKE(&app->arena, (size_t)attached->n_pictures, struct burin_patches);
    if (!pictures)
        return burin_fail(
                err, BURIN_ENOMEM, "no memory for %d pictures", attached->n_pictures);
    attached->pictures = pictures;
    for (int i = 0; i < attached->n_parts; pictures += clips[i++].n_frames)
        memcpy(pictures, clips[i].frames,
               (size_t)clips[i].n_frames * sizeof *clips[i].frames);
    return BURIN_OK;
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
        struct burin_app *app, struct burin_attached *attached, struct burin_error *err)
{
    static struct burin_clip clips[BURIN_MAX_LIST];
    const struct burin_attachments *given = &app->settings.attachments;
    struct burin_vision vision;
    struct burin_media media;
    *attached = (struct burin_attached){ 0 };
    if (!given->n)
        return BURIN_OK;
    enum burin_status status = read_vision(app, &vision, err);
    if (!status)
        status = blame_file(burin_media_find(&media, err), err);
    for (int i = 0; !status && i < given->n; i++) {
        const bool is_video = given->at[i].is_video;
        status = blame_file(
                (is_video ? read_video : read_picture)(
                        app, &media, &vision, given->at[i].path, &clips[i], err),
                err);
        if (!status)
            status = add_part(app, attached, is_video, &clips[i], err);
    }
    return status ? status : gather(app, attached, clips, err);
}
