/* tests/runtime/engine/fake_scene.h -- Prompts with pictures for the fake model with eyes, and what
 * text is right behind them. */
#ifndef BURIN_TEST_FAKE_SCENE_H
#define BURIN_TEST_FAKE_SCENE_H

#include "runtime/burin.h"
#include "tests/runtime/engine/fake_vision.h"
#include "tests/support/test.h"

enum { MOST_TEXT = 8, MOST_PICTURES = 8 };

/* A prompt with pictures, and what came of it. */
struct scene {
    struct burin_request request;
    int32_t ids[FAKE_CONTEXT];
    int32_t seen[FAKE_CONTEXT]; /* with soft tokens in their places */
    struct burin_picture pictures[MOST_PICTURES];
    uint8_t pixels[MOST_PICTURES][FAKE_LARGEST * FAKE_PATCHES * FAKE_PATCH_BYTES];
    int32_t text[MOST_TEXT];
    int n_text;
};

static bool on_token(struct burin_request *request, int32_t token)
{
    struct scene *scene = request->user;
    scene->text[scene->n_text++] = token;
    return true;
}

static void set_text(struct scene *scene, int kind, int n_ids, int max_tokens)
{
    *scene = (struct scene){ .request = { .n_ids = n_ids,
                                          .max_tokens = max_tokens,
                                          .sampling = burin_greedy,
                                          .on_token = on_token } };
    for (int i = 0; i < n_ids; i++)
        scene->ids[i] = scene->seen[i] = (kind * 11 + i * 7 + i * i) % FAKE_NAN;
    scene->request.ids = scene->ids;
    scene->request.pictures = scene->pictures;
    scene->request.user = scene;
}

/* Soft tokens stand row by row, the first patch of each in the upper left. */
static void add_picture(struct scene *scene, int begin, int rows, int columns)
{
    const int p = scene->request.n_pictures++;
    uint8_t *pixels = scene->pixels[p];
    scene->pictures[p] = (struct burin_picture){
        .begin = begin,
        .patches = { .grid = { rows, columns }, .pixels = pixels },
    };
    for (int i = 0; i < rows * columns; i++) {
        uint8_t *soft = pixels + i * FAKE_PATCHES * FAKE_PATCH_BYTES;
        for (int k = 0; k < FAKE_PATCHES * FAKE_PATCH_BYTES; k++)
            soft[k] = (uint8_t)(begin * 31 + p * 17 + i * 7 + k);
        scene->ids[begin + i] = 0;
        scene->seen[begin + i] = fake_soft(soft, i % columns * 2, i / columns * 2);
    }
}

static void assert_text_is_right(const struct scene *scene)
{
    int32_t right[MOST_TEXT];
    fake_text(scene->seen, scene->request.n_ids, right, scene->n_text);
    assert_int_equal(scene->n_text, scene->request.max_tokens);
    assert_memory_equal(scene->text, right, (size_t)scene->n_text * sizeof *right);
}

#endif
