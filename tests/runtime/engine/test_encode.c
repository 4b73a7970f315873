/* Pictures of prompts, on a model of a few lines (fake_vision.h). */
#include "runtime/burin.h"
#include "runtime/engine/engine.h"
#include "tests/runtime/engine/fake_scene.h"
#include "tests/support/test.h"

#include <stdlib.h>

static struct burin_engine *open_engine(struct burin_options options)
{
    struct burin_engine *engine = NULL;
    struct burin_error err = { 0 };
    options.model = &fake_seeing_model;
    options.n_threads = 2;
    options.strict = true;
    fake_sees = true;
    fake_faults = fake_encoded = fake_encoder_runs = fake_most_soft = 0;
    if (burin_engine_open(&engine, &options, &err))
        fail_msg("%s", err.message);
    return engine;
}

static void close_engine(struct burin_engine *engine)
{
    assert_int_equal(engine->encoder.n_free, engine->encoder.n_rows);
    assert_int_equal(fake_faults, 0);
    burin_engine_close(engine);
}

static void run_all(struct burin_engine *engine, struct scene *scenes, int n)
{
    struct burin_error err = { 0 };
    for (int i = 0; i < n; i++)
        if (burin_submit(engine, &scenes[i].request, &err))
            fail_msg("%s", err.message);
    if (burin_engine_run(engine, &err))
        fail_msg("%s", err.message);
    for (int i = 0; i < n; i++)
        assert_text_is_right(&scenes[i]);
}

static const char *refusal_of(struct burin_engine *engine, struct scene *scene)
{
    static struct burin_error err;
    err = (struct burin_error){ 0 };
    assert_int_not_equal(burin_submit(engine, &scene->request, &err), BURIN_OK);
    return err.message;
}

/* ---- Text ------------------------------------------------------------------------------ */

SPEC(soft_tokens_stand_where_the_prompt_has_its_pictures)
{
    struct burin_engine *engine = open_engine((struct burin_options){ .n_images = 2 });
    struct scene scene;
    set_text(&scene, 1, 17, 4);
    add_picture(&scene, 2, 2, 3);
    add_picture(&scene, 11, 1, 4);

    run_all(engine, &scene, 1);

    assert_int_equal(fake_encoded, 10);
    close_engine(engine);
}

SPEC(pictures_and_text_run_beside_each_other)
{
    struct burin_engine *engine =
            open_engine((struct burin_options){ .n_images = 3, .n_sequences = 3 });
    struct scene scenes[3];
    set_text(&scenes[0], 1, 17, 4);
    add_picture(&scenes[0], 0, 2, 3);
    set_text(&scenes[1], 2, 9, 5);
    set_text(&scenes[2], 3, 14, 3);
    add_picture(&scenes[2], 1, 1, 2);
    add_picture(&scenes[2], 3, 3, 2); /* right behind it */

    run_all(engine, scenes, 3);
    close_engine(engine);
}

SPEC(the_text_is_the_same_however_small_steps_runs_and_cache_are)
{
    for (int n_batch = 1; n_batch <= 20; n_batch++)
        for (int64_t arena = FAKE_LARGEST * 64; arena >= 3 * 64; arena -= 64)
            for (int n_images = 1; n_images <= 3; n_images++) {
                struct burin_engine *engine = open_engine((struct burin_options){
                        .n_batch = n_batch < 2 ? 2 : n_batch,
                        .n_sequences = 2,
                        .n_images = n_images,
                        .encoder_arena = arena,
                });
                struct scene scenes[2];
                set_text(&scenes[0], 1, 19, 3);
                add_picture(&scenes[0], 1, 1, 3);
                add_picture(&scenes[0], 5, 3, 1);
                add_picture(&scenes[0], 8, 1, 2);
                add_picture(&scenes[0], 16, 3, 1);
                set_text(&scenes[1], 5, 12, 4);
                add_picture(&scenes[1], 7, 1, 3);

                run_all(engine, scenes, 2);

                assert_int_equal(fake_encoded, 14);
                assert_true(fake_most_soft * 64 <= arena);
                close_engine(engine);
            }
}

SPEC(pictures_of_a_prompt_share_runs_as_far_as_the_arena_holds_them)
{
    struct burin_engine *engine = open_engine((struct burin_options){ .n_images = 4 });
    struct scene scene;
    set_text(&scene, 1, 16, 1);
    for (int i = 0; i < 5; i++)
        add_picture(&scene, 3 * i, 1, 2);

    run_all(engine, &scene, 1);

    assert_int_equal(fake_encoder_runs, 2); /* 3 of 2 soft tokens each, then 2 */
    close_engine(engine);
}

SPEC(an_arena_that_is_given_holds_runs_of_all_that_are_kept)
{
    struct burin_engine *engine = open_engine((struct burin_options){
            .n_images = 4, .encoder_arena = 100 * 64, .n_batch = 4 });
    struct scene scene;
    set_text(&scene, 1, 16, 1);
    for (int i = 0; i < 5; i++)
        add_picture(&scene, 3 * i, 1, 2);

    run_all(engine, &scene, 1);

    assert_int_equal(fake_encoder_runs, 1);
    close_engine(engine);
}

SPEC(a_cancelled_request_gives_its_rows_back)
{
    struct burin_engine *engine =
            open_engine((struct burin_options){ .n_images = 1, .n_batch = 4 });
    struct scene scene;
    int n_left;
    set_text(&scene, 1, 17, 4);
    add_picture(&scene, 2, 2, 3);
    assert_int_equal(burin_submit(engine, &scene.request, NULL), BURIN_OK);
    assert_int_equal(burin_engine_step(engine, &n_left, NULL), BURIN_OK);
    assert_true(engine->encoder.n_free < engine->encoder.n_rows);

    burin_cancel(&scene.request);
    assert_int_equal(burin_engine_step(engine, &n_left, NULL), BURIN_OK);

    assert_int_equal(scene.request.finish, BURIN_CANCELLED);
    close_engine(engine);
}

/* ---- Refusals -------------------------------------------------------------------------- */

SPEC(pictures_that_cannot_stand_in_the_prompt_are_refused)
{
    struct burin_engine *engine = open_engine((struct burin_options){ .n_images = 2 });
    struct scene scene;

    set_text(&scene, 1, 9, 1);
    add_picture(&scene, 4, 1, 3);
    scene.pictures[0].begin = 7;
    assert_non_null(strstr(refusal_of(engine, &scene), "within the prompt of 9"));

    set_text(&scene, 1, 9, 1);
    add_picture(&scene, 1, 1, 3);
    add_picture(&scene, 4, 1, 3);
    scene.pictures[1].begin = 3;
    assert_non_null(strstr(refusal_of(engine, &scene), "which ends at 4"));
    close_engine(engine);
}

SPEC(a_picture_larger_than_a_run_is_refused_with_both_numbers)
{
    struct burin_engine *engine =
            open_engine((struct burin_options){ .n_images = 2, .encoder_arena = 4 * 64 });
    struct scene scene;
    set_text(&scene, 1, 9, 1);
    add_picture(&scene, 1, 1, 5);

    assert_non_null(strstr(refusal_of(engine, &scene), "a run of the encoder holds 4"));
    close_engine(engine);
}

SPEC(a_picture_that_will_come_is_refused_before_anything_is_loaded)
{
    const struct burin_options options = {
        .model = &fake_seeing_model,
        .n_threads = 1,
        .n_images = 1,
        .encoder_arena = 4 * 64,
        .largest_picture = 5,
    };
    struct burin_engine *engine = NULL;
    struct burin_error err = { 0 };

    assert_int_equal(burin_engine_open(&engine, &options, &err), BURIN_ENOMEM);

    assert_non_null(strstr(err.message, "--encoder-arena 320"));
}

SPEC(an_engine_for_text_refuses_pictures)
{
    struct burin_engine *engine = open_engine((struct burin_options){ .n_sequences = 1 });
    struct scene scene;
    set_text(&scene, 1, 9, 1);
    add_picture(&scene, 1, 1, 3);

    assert_non_null(strstr(refusal_of(engine, &scene), "open for none"));
    close_engine(engine);
}
