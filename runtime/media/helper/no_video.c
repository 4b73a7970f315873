/* runtime/media/helper/no_video.c -- In the place of video.c where FFmpeg's libraries are
 * missing: main.c asks before it calls. */
#include "runtime/media/helper/helper.h"

void burin_video_prepare(void)
{
}

bool burin_video_is_built(void)
{
    return false;
}

enum burin_status burin_video_describe(
        struct burin_helper *helper, enum burin_file file, struct burin_error *err)
{
    (void)helper;
    (void)file;
    return burin_fail(err, BURIN_EUNREADABLE, "built without video");
}

enum burin_status burin_video_frames(
        struct burin_helper *helper,
        enum burin_file file,
        const int64_t *indices,
        size_t n_indices,
        struct burin_error *err)
{
    (void)indices;
    (void)n_indices;
    return burin_video_describe(helper, file, err);
}
