/* What Pillow and transformers make of awkward pictures: tests/golden/media/pictures.py. */
#include "tests/runtime/media/helper.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define FOLDER "tests/golden/media/"

enum { SAMPLES = 6, SAMPLE_BYTES = 48, LINE = 2048 };

struct seen {
    int width, height;
    uint32_t crc;
};

static enum burin_status begin(
        void *context, int64_t index, int width, int height, struct burin_error *err)
{
    (void)index;
    (void)err;
    *(struct seen *)context = (struct seen){ width, height, 0 };
    return BURIN_OK;
}

static void row(void *context, const uint8_t *rgb)
{
    struct seen *seen = context;
    seen->crc = crc_of(seen->crc, rgb, (size_t)seen->width * 3);
}

/* Levels between a few pixels of the patches and the golden ones, at most. */
static int worst_level(const struct burin_patches *item, const char *samples)
{
    const int last = burin_grid_soft(item->grid) * 9 - 1;
    int worst = 0;
    for (int i = 0; i < SAMPLES; i++)
        for (int k = 0; k < SAMPLE_BYTES; k++) {
            const int is = item->pixels[(size_t)(i * last / 5) * 768 + (size_t)k];
            const int level = abs(is - byte_of(samples + 2 * (i * SAMPLE_BYTES + k)));
            if (level > worst)
                worst = level;
        }
    return worst;
}

static void check_seen(const char *path, const char *rest, const char *samples)
{
    static struct burin_error err;
    int budget, width, height, rows, columns;
    uint32_t decoded, patches;
    struct burin_arena arena = { 0 };
    struct burin_patches item;
    struct seen seen;
    if (sscanf(rest, "%d %d %d %x %d %d %x", &budget, &width, &height, &decoded, &rows,
               &columns, &patches) != 7)
        fail_msg("%s: a line of golden data that can't be read", path);

    const struct burin_media_sink sink = { begin, row, &seen };
    if (burin_media_pixels(the_helper(), path, NULL, 0, &sink, &arena, &err))
        fail_msg("%s", err.message);
    if (seen.width != width || seen.height != height)
        fail_msg("%s: %d x %d, not %d x %d", path, seen.width, seen.height, width, height);

    const struct burin_vision vision = { .patch = 16, .pool = 3, .max_soft = budget };
    if (burin_media_picture(the_helper(), path, &vision, &arena, &item, &err))
        fail_msg("%s", err.message);
    if (item.grid.rows != rows || item.grid.columns != columns)
        fail_msg(
                "%s: %d x %d soft tokens, not %d x %d", path, item.grid.columns,
                item.grid.rows, columns, rows);

    /* Another release of a lossy format's library may round otherwise: one level is let pass
     * there. The same pixels must become the same patches. */
    const uint32_t crc =
            crc_of(0, item.pixels, (size_t)burin_grid_soft(item.grid) * 9 * 768);
    const bool is_lossy = strstr(path, ".jpg") || strstr(path, "lossy.webp");
    if (seen.crc != decoded && !is_lossy)
        fail_msg("%s: other pixels than Pillow's", path);
    if (seen.crc == decoded && crc != patches)
        fail_msg("%s: the same pixels, other patches than the reference's", path);
    if (worst_level(&item, samples) > 1)
        fail_msg("%s: %d levels from the reference", path, worst_level(&item, samples));
    burin_arena_close(&arena);
}

static void check_refused(const char *path, const char *words)
{
    static struct burin_error err;
    struct burin_arena arena = { 0 };
    struct burin_patches item;
    const struct burin_vision vision = { .patch = 16, .pool = 3, .max_soft = 280 };
    const enum burin_status status =
            burin_media_picture(the_helper(), path, &vision, &arena, &item, &err);
    if (status != BURIN_EFORMAT && status != BURIN_ELIMIT)
        fail_msg("%s: status %d: %s", path, status, err.message);
    if (!strstr(err.message, words) || !strstr(err.message, path))
        fail_msg("%s: \"%s\" should say \"%s\"", path, err.message, words);
    assert_int_equal(arena.obtained, 0); /* refused before anything is kept */
    burin_arena_close(&arena);
}

SPEC(awkward_pictures_are_what_the_reference_makes_of_them_or_refused_by_name)
{
    static char line[LINE], path[LINE + 64];
    int n_seen = 0, n_refused = 0;
    (void)the_helper();
    FILE *golden = fopen(FOLDER "pictures.txt", "r");
    assert_non_null(golden);
    while (fgets(line, sizeof line, golden)) {
        line[strcspn(line, "\n")] = '\0';
        char *rest = strchr(line, ' ');
        *rest++ = '\0';
        snprintf(path, sizeof path, FOLDER "pictures/%s", line);
        if (strncmp(rest, "refused ", 8) == 0) {
            check_refused(path, rest + 8);
            n_refused++;
        } else {
            check_seen(path, rest, strrchr(rest, ' ') + 1);
            n_seen++;
        }
    }
    fclose(golden);
    assert_int_equal(n_seen, 46);
    assert_int_equal(n_refused, 11);
}

SPEC(what_is_no_file_is_told_from_what_is_not_there)
{
    static struct burin_error err;
    struct burin_arena arena = { 0 };
    struct burin_patches item;
    const struct burin_vision vision = { .patch = 16, .pool = 3, .max_soft = 280 };
    const struct burin_media *media = the_helper();

    assert_int_equal(
            burin_media_picture(media, "tests/no-such.png", &vision, &arena, &item, &err),
            BURIN_EMISSING);
    assert_string_equal(err.message, "tests/no-such.png: No such file or directory");
    assert_int_equal(
            burin_media_picture(media, "tests", &vision, &arena, &item, &err),
            BURIN_EUNREADABLE);
    assert_string_equal(err.message, "tests is no file");
    assert_int_equal(
            burin_media_picture(media, "/dev/zero", &vision, &arena, &item, &err),
            BURIN_EUNREADABLE);
}

SPEC(without_its_helper_a_binary_says_what_brings_it)
{
    struct burin_media media;
    static struct burin_error err;
    assert_int_equal(burin_media_at(&media, "build/no/burin-media", &err), BURIN_EMISSING);
    assert_non_null(strstr(err.message, "tools/packages installs its libraries"));
}

SPEC(a_picture_beyond_the_limits_of_its_caller_is_refused)
{
    static struct burin_error err;
    struct burin_arena arena = { 0 };
    struct burin_patches item;
    const struct burin_vision vision = { .patch = 16, .pool = 3, .max_soft = 280 };
    struct burin_media media = *the_helper();
    media.max_pixels = 333 * 250 - 1;

    assert_int_equal(
            burin_media_picture(
                    &media, FOLDER "pictures/photo.jpg", &vision, &arena, &item, &err),
            BURIN_ELIMIT);
    assert_non_null(
            strstr(err.message, "333 x 250 pixels; at most 65535 a side and 83249"));
    assert_int_equal(arena.obtained, 0);
}

static long most_kib(int whose)
{
    struct rusage used;
    getrusage(whose, &used);
    return used.ru_maxrss;
}

SPEC(a_picture_of_100_million_pixels_passes_through_a_few_rows)
{
    static struct burin_error err;
    struct burin_arena arena = { 0 };
    struct burin_patches picture;
    const struct burin_vision vision = { .patch = 16, .pool = 3, .max_soft = 280 };
    const struct burin_media *media = the_helper();
    const long before = most_kib(RUSAGE_SELF);

    assert_int_equal(
            burin_media_picture(
                    media, FOLDER "pictures/large.png", &vision, &arena, &picture, &err),
            BURIN_OK);

    assert_in_range(most_kib(RUSAGE_SELF) - before, 0, 16 << 10);
    assert_in_range(most_kib(RUSAGE_CHILDREN), 1, 400 << 10); /* 286 MiB of pixels */
    burin_arena_close(&arena);
}
