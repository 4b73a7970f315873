/* Steps of a real model on a virtual GPU that executes (execute.cpp): a hundred of all kinds, prompts
 * and new tokens and pictures, and the driver has obtained nothing since the engine was ready. */
#include "tests/support/model_weights.h"
#include "tests/support/pictures.h"
#include "tests/support/test.h"

#include "runtime/burin.h"
#include "runtime/device/virtual/virtual.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/runs.h"
#include "runtime/plan/size.h"

#include <dlfcn.h>
#include <stdlib.h>

enum {
    SCENES = 4,
    PROMPT = 33,
    COLUMNS = 2,
    LINES = 2,
    SOFT = COLUMNS * LINES,
    STEPS = 100
};

struct scene {
    int32_t ids[PROMPT];
    struct burin_picture picture;
    struct burin_request request;
};
static struct scene scenes[SCENES];

/* What libburin-gpu.so has of virtual.h. It is open already, as the driver. */
static struct burin_virtual_counts counts(void)
{
    struct burin_virtual *(*machine)(void);
    struct burin_virtual_counts (*of)(const struct burin_virtual *machine);
    void *library = dlopen(getenv("BURIN_CUDA_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(library);
    *(void **)&machine = dlsym(library, "burin_gpu_machine");
    *(void **)&of = dlsym(library, "burin_virtual_counts");
    assert_non_null(machine);
    assert_non_null(of);
    const struct burin_virtual_counts found = of(machine());
    dlclose(library);
    return found;
}

static void look(struct burin_request *request, int position, const float *logits)
{
    (void)request;
    (void)position;
    assert_true(burin_argmax(logits, burin_model.n_vocab) >= 0);
}

/* Every other one has a picture, every third is drawn, every fifth wants to see its logits. */
static void submit_scene(struct burin_engine *engine, struct scene *scene, int number)
{
    struct burin_error err = { 0 };
    size_t byte = (size_t)number * 1000;
    free(scene->picture.patches.pixels);
    *scene = (struct scene){ .ids = { 0 } };
    const int n_ids = 3 + number * 7 % (PROMPT - 3);
    const bool sees = number % 2 == 0 && n_ids > SOFT + 2;
    for (int i = 0; i < n_ids; i++)
        scene->ids[i] = (i * 17 + number * 29 + i / 3) % burin_model.n_vocab;
    if (sees) {
        scene->picture =
                (struct burin_picture){ .begin = 1,
                                        .patches = test_picture(COLUMNS, LINES, &byte) };
        memset(scene->ids + 1, 0, SOFT * sizeof *scene->ids);
    }
    scene->request = (struct burin_request){ .ids = scene->ids,
                                             .n_ids = n_ids,
                                             .pictures = &scene->picture,
                                             .n_pictures = sees,
                                             .max_tokens = 3 + number % 5,
                                             .sampling = burin_greedy };
    if (number % 3 == 0)
        scene->request.sampling = (struct burin_sampling){
            .temperature = 0.8f, .top_k = 40, .top_p = 0.9f, .seed = number
        };
    if (number % 5 == 0)
        scene->request.on_logits = look;
    if (burin_submit(engine, &scene->request, &err))
        fail_msg("%s", err.message);
}

/* Start-up runs what is largest: let that be the smallest picture. */
static const struct burin_program *encoder(void)
{
    const struct burin_family *family = burin_model.families;
    while (!family->sm)
        family++;
    const struct burin_program *program = family->programs;
    while (!burin_is_encoder(program))
        program++;
    return program;
}

static int64_t least_arena(void)
{
    const struct burin_params params = { .value = { [BURIN_THREADS] = 1 } };
    const int n[BURIN_N_EXTENTS] = { [BURIN_SOFT] = encoder()->smallest_item };
    return (int64_t)burin_arena_bytes(encoder(), &params, n);
}

SPEC(a_hundred_steps_of_all_kinds_obtain_nothing)
{
    struct burin_graphs graphs = { .n = 0 };
    assert_int_equal(burin_graphs_parse(&graphs, "step=1,2,3", NULL), BURIN_OK);
    assert_int_equal(burin_graphs_parse(&graphs, "encode_image=70", NULL), BURIN_OK);
    const struct burin_options options = { .model = &burin_model,
                                           .weights = model_weights(),
                                           .device = "cuda",
                                           .n_threads = 2,
                                           .n_ctx = 64,
                                           .n_sequences = 3,
                                           .n_batch = 16,
                                           .n_images = 2,
                                           .largest_picture = SOFT,
                                           .encoder_arena = least_arena(),
                                           .graphs = &graphs,
                                           .kv_tokens = 3 * 64,
                                           .strict = true };
    struct burin_engine *engine;
    struct burin_error err = { 0 };
    SKIP_UNLESS(options.weights);
    if (burin_engine_open(&engine, &options, &err))
        fail_msg("%s", err.message);
    int n_submitted = 0;
    const struct burin_virtual_counts before = counts();

    for (int step = 0; step < STEPS; step++) {
        int n_left;
        for (int i = 0; i < SCENES; i++)
            if (step == 0 || scenes[i].request.finish == BURIN_LENGTH)
                submit_scene(engine, &scenes[i], n_submitted++);
        if (burin_engine_step(engine, &n_left, &err))
            fail_msg("%s", err.message);
    }

    const struct burin_virtual_counts after = counts();
    assert_int_equal(after.obtained - before.obtained, 0);
    assert_true(after.graphs > before.graphs && after.launches > before.launches);
    assert_true(burin_engine_info(engine).n_encoder_runs > 5);
    assert_int_equal(burin_engine_run(engine, NULL), BURIN_OK);
    burin_engine_close(engine);
    for (int i = 0; i < SCENES; i++)
        free(scenes[i].picture.patches.pixels);
}
