/* What transformers makes of short videos: tests/golden/media/clips.py. */
#include "tests/runtime/media/helper.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FOLDER "tests/golden/media/"

enum {
    LINE = 16384,
    SAMPLE_BYTES = 48,
    LEVELS = 2
}; /* swscale rounds as its processor does */

static struct burin_error err;

static const struct burin_media *with_video(void)
{
    const struct burin_media *media = the_helper();
    struct burin_media_layers layers;
    assert_int_equal(burin_media_layers(media, &layers, NULL), BURIN_OK);
    SKIP_UNLESS(layers.video);
    return media;
}

static enum burin_status read_clip(
        const char *name, int n_frames, struct burin_arena *arena, struct burin_clip *clip)
{
    static char path[512];
    const struct burin_vision vision = { .patch = 16, .pool = 3, .max_soft = 70 };
    const struct burin_frame_sampling sampling = { .n_frames = n_frames };
    snprintf(path, sizeof path, FOLDER "clips/%s", name);
    return burin_media_clip(the_helper(), path, &vision, sampling, arena, clip, &err);
}

static int worst_level(const struct burin_patches *item, const char *samples)
{
    const size_t last = (size_t)burin_grid_soft(item->grid) * 9 - 1;
    int worst = 0;
    for (size_t i = 0; i < 2 * SAMPLE_BYTES; i++) {
        const size_t at = i < SAMPLE_BYTES ? i : last * 768 + i - SAMPLE_BYTES;
        const int level = abs(item->pixels[at] - byte_of(samples + 2 * i));
        if (level > worst)
            worst = level;
    }
    return worst;
}

/* The next word of a line; *rest goes behind it. */
static char *word(char **rest)
{
    char *begin = *rest;
    *rest += strcspn(*rest, " ");
    if (**rest)
        *(*rest)++ = '\0';
    return begin;
}

static void check_seen(const char *name, char *rest)
{
    static char indices[4096], stamps[4096];
    struct burin_arena arena = { 0 };
    struct burin_clip clip;
    const int asked = atoi(word(&rest));
    const int n_frames = atoi(word(&rest));
    const double fps = atof(word(&rest));
    const int width = atoi(word(&rest)), height = atoi(word(&rest));
    const int rows = atoi(word(&rest)), columns = atoi(word(&rest));
    const char *golden_indices = word(&rest), *golden_stamps = word(&rest);

    if (read_clip(name, asked, &arena, &clip))
        fail_msg("%s", err.message);

    size_t i_used = 0, s_used = 0;
    for (int i = 0; i < clip.n_frames; i++) {
        const char *comma = i ? "," : "";
        i_used += (size_t)snprintf(
                indices + i_used, sizeof indices - i_used, "%s%lld", comma,
                (long long)clip.indices[i]);
        s_used += (size_t)snprintf(
                stamps + s_used, sizeof stamps - s_used, "%s%02d:%02d", comma,
                (int)(clip.seconds[i] / 60), (int)fmod(clip.seconds[i], 60));
    }
    if (strcmp(indices, golden_indices) != 0 || strcmp(stamps, golden_stamps) != 0)
        fail_msg(
                "%s: frames %s at %s, not %s at %s", name, indices, stamps, golden_indices,
                golden_stamps);
    assert_int_equal(clip.video.n_frames, n_frames);
    assert_int_equal(clip.video.width, width);
    assert_int_equal(clip.video.height, height);
    if (fabs(clip.video.fps / fps - 1) > 1e-9)
        fail_msg("%s: %.12g frames a second, not %.12g", name, clip.video.fps, fps);
    for (int i = 0; i < clip.n_frames; i++, rest += 4 * SAMPLE_BYTES) {
        assert_int_equal(clip.frames[i].grid.rows, rows);
        assert_int_equal(clip.frames[i].grid.columns, columns);
        if (worst_level(&clip.frames[i], rest) > LEVELS)
            fail_msg(
                    "%s: frame %lld is %d levels from the reference", name,
                    (long long)clip.indices[i], worst_level(&clip.frames[i], rest));
    }
    burin_arena_close(&arena);
}

SPEC(clips_are_what_the_reference_makes_of_them_or_refused_by_name)
{
    static char line[LINE];
    int n_seen = 0, n_refused = 0;
    (void)with_video();
    FILE *golden = fopen(FOLDER "clips.txt", "r");
    assert_non_null(golden);
    while (fgets(line, sizeof line, golden)) {
        char *rest = line;
        line[strcspn(line, "\n")] = '\0';
        const char *name = word(&rest);
        if (strncmp(rest, "refused ", 8) != 0) {
            check_seen(name, rest);
            n_seen++;
            continue;
        }
        struct burin_arena arena = { 0 };
        struct burin_clip clip;
        assert_int_equal(read_clip(name, 32, &arena, &clip), BURIN_EFORMAT);
        if (!strstr(err.message, rest + 8) || !strstr(err.message, name))
            fail_msg("%s: \"%s\" should say \"%s\"", name, err.message, rest + 8);
        burin_arena_close(&arena);
        n_refused++;
    }
    fclose(golden);
    assert_int_equal(n_seen, 14);
    assert_int_equal(n_refused, 7);
}

SPEC(a_truncated_video_gives_the_frames_that_are_there_and_tells_how_many_are_not)
{
    struct burin_arena arena = { 0 };
    struct burin_clip clip;
    (void)with_video();

    assert_int_equal(read_clip("truncated.mp4", 32, &arena, &clip), BURIN_OK);

    assert_int_equal(clip.video.n_declared, 20);
    assert_in_range(clip.video.n_frames, 1, 19);
    assert_int_equal(clip.n_frames, clip.video.n_frames);
    burin_arena_close(&arena);
}

SPEC(a_video_of_more_frames_than_its_caller_allows_is_refused)
{
    struct burin_media media = *with_video();
    struct burin_video video;
    media.max_frames = 9;

    assert_int_equal(
            burin_media_video(&media, FOLDER "clips/ten.mp4", &video, &err), BURIN_ELIMIT);

    assert_non_null(strstr(err.message, "a video of more than 9 frames"));
}

SPEC(a_video_given_as_a_picture_is_told_the_option_for_it)
{
    struct burin_arena arena = { 0 };
    struct burin_patches item;
    const struct burin_vision vision = { .patch = 16, .pool = 3, .max_soft = 280 };

    assert_int_equal(
            burin_media_picture(
                    the_helper(), FOLDER "clips/ten.mp4", &vision, &arena, &item, &err),
            BURIN_EFORMAT);

    assert_non_null(strstr(err.message, "an MP4 video, no picture: give it with --video"));
}
