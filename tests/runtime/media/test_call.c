/* What a helper may do that foreign bytes have taken over. */
#include "runtime/media/media.h"
#include "runtime/media/wire.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct burin_error err;
static char folder[] = "/tmp/burin-call-XXXXXX";

/* A helper that answers with these bytes and then does what `ending` says to a shell. */
static struct burin_media answering(const void *bytes, size_t length, const char *ending)
{
    struct burin_media media;
    char path[64], answer[64];
    static bool is_made;
    if (!is_made)
        assert_non_null(mkdtemp(folder));
    is_made = true;
    snprintf(path, sizeof path, "%s/helper", folder);
    snprintf(answer, sizeof answer, "%s/answer", folder);
    FILE *file = fopen(answer, "wb");
    fwrite(bytes, 1, length, file);
    fclose(file);
    file = fopen(path, "w");
    fprintf(file, "#!/bin/sh\n/bin/cat %s\n%s\n", answer, ending);
    fclose(file);
    assert_int_equal(chmod(path, 0700), 0);
    assert_int_equal(burin_media_at(&media, path, &err), BURIN_OK);
    return media;
}

/* Let it "decode" some file; returns the status, err says why. */
static enum burin_status decode(const struct burin_media *media)
{
    struct burin_arena arena = { 0 };
    struct burin_patches picture;
    const struct burin_vision vision = { .patch = 16, .pool = 3, .max_soft = 70 };
    const enum burin_status status =
            burin_media_picture(media, "README.md", &vision, &arena, &picture, &err);
    burin_arena_close(&arena);
    return status;
}

static struct burin_wire picture_of(uint32_t width, uint32_t height)
{
    return (struct burin_wire){ .magic = BURIN_WIRE_MAGIC,
                                .kind = BURIN_WIRE_PICTURE,
                                .width = width,
                                .height = height };
}

static void assert_told(const struct burin_media *media, const char *says)
{
    assert_int_equal(decode(media), BURIN_EFORMAT);
    if (!strstr(err.message, says) || strncmp(err.message, "README.md: ", 11) != 0)
        fail_msg("\"%s\" should say \"%s\"", err.message, says);
}

SPEC(nonsense_is_told_as_such)
{
    struct burin_wire wire = picture_of(3, 2);
    wire.magic++;
    struct burin_media media = answering(&wire, sizeof wire, "");
    assert_told(&media, "burin-media answers nonsense");

    wire = picture_of(3, 2);
    wire.kind = BURIN_WIRE_VIDEO;
    media = answering(&wire, sizeof wire, "");
    assert_told(&media, "burin-media answers nonsense");

    wire = picture_of(3, 2);
    wire.index = 7;
    media = answering(&wire, sizeof wire, "");
    assert_told(&media, "burin-media answers nonsense");
}

SPEC(a_size_beyond_the_limits_is_not_believed)
{
    static const uint32_t sizes[][2] = {
        { 0, 5 }, { 5, 0 }, { 65536, 1 }, { 0xffffffff, 0xffffffff }, { 60000, 60000 },
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const struct burin_wire wire = picture_of(sizes[i][0], sizes[i][1]);
        const struct burin_media media = answering(&wire, sizeof wire, "");
        assert_told(&media, "burin-media answers nonsense");
    }
}

SPEC(a_refusal_without_end_or_status_is_nonsense)
{
    struct burin_wire wire = { .magic = BURIN_WIRE_MAGIC,
                               .kind = BURIN_WIRE_REFUSED,
                               .status = BURIN_EFORMAT,
                               .n_bytes = 0xffffffff };
    struct burin_media media = answering(&wire, sizeof wire, "");
    assert_told(&media, "burin-media answers nonsense");

    wire.n_bytes = 0;
    wire.status = BURIN_OK;
    media = answering(&wire, sizeof wire, "");
    assert_told(&media, "burin-media answers nonsense");
}

SPEC(an_answer_that_ends_early_is_told_with_its_reason)
{
    const struct burin_wire wire = picture_of(3, 2);
    struct burin_media media = answering(&wire, 20, "exit 3");
    assert_told(&media, "burin-media ended early (exit code 3)");

    media = answering(&wire, sizeof wire, "kill -s SEGV $$");
    assert_told(&media, "its decoder crashed (Segmentation fault)");

    media = answering(&wire, sizeof wire, "kill -s SYS $$");
    assert_told(&media, "its decoder asked for what the sandbox forbids");
}

SPEC(a_helper_that_never_answers_is_ended)
{
    struct burin_media media = answering("", 0, "while :; do :; done");
    media.picture_seconds = 0;

    assert_int_equal(decode(&media), BURIN_ELIMIT);

    assert_non_null(strstr(err.message, "README.md: decoding took longer than 0 seconds"));
}

SPEC(what_a_helper_writes_behind_its_answer_is_not_read)
{
    uint8_t answer[sizeof(struct burin_wire) + 18 + 1000] = { 0 };
    const struct burin_wire wire = picture_of(3, 2);
    memcpy(answer, &wire, sizeof wire);
    const struct burin_media media =
            answering(answer, sizeof answer, "while :; do :; done");

    assert_int_equal(decode(&media), BURIN_OK);
}

/* Last: what the others left. */
SPEC(nothing_is_left_behind)
{
    char path[64];
    snprintf(path, sizeof path, "%s/helper", folder);
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof path, "%s/answer", folder);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}
