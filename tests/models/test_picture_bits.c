/* A sequence with pictures has the same bits however many of them go into a run of the encoder,
 * however few the cache keeps, alone and beside others; in default mode and with --exact. */
#include "tests/support/model_weights.h"
#include "tests/support/pictures.h"
#include "tests/support/test.h"

#include "runtime/engine/engine.h"
#include "runtime/plan/runs.h"
#include "runtime/plan/size.h"

/* Frames of 2 x 3 soft tokens with two ids of text behind each. */
enum {
    FRAMES = 58,
    COLUMNS = 2,
    ROWS_EACH = 3,
    SOFT = COLUMNS * ROWS_EACH,
    PROMPT = FRAMES * (SOFT + 2) + 1,
    NEW = 6,
    LOOKED_AT = 30,
    ROWS = PROMPT + NEW,
    SCENES = 4,
    ALL_SCENES = (1 << SCENES) - 1
};

struct run {
    int n_threads;
    int n_batch;
    int n_items; /* of a run of the encoder */
    int n_kept;  /* frames that the cache has room for, of the largest */
    int scenes;  /* a bit for each that runs */
    bool exact;
};

struct scene {
    int32_t ids[PROMPT];
    struct burin_picture pictures[FRAMES];
    uint64_t bits[ROWS]; /* a hash of each position's logits; 0 where not looked at */
    struct burin_request request;
};
static struct scene scenes[SCENES];

static void keep_bits(struct burin_request *request, int position, const float *logits)
{
    struct scene *scene = request->user;
    const unsigned char *bytes = (const unsigned char *)logits;
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < (size_t)burin_model.n_vocab * sizeof *logits; i++)
        hash = (hash ^ bytes[i]) * 1099511628211u;
    scene->bits[position] = hash;
}

/* The first has all frames, the others fewer, and the last none. */
static void set_scene(struct scene *scene, int number)
{
    const int n_frames = number == 0 ? FRAMES : number == SCENES - 1 ? 0 : 4 + number;
    const int n_ids = n_frames ? n_frames * (SOFT + 2) + 1 : 37;
    size_t byte = (size_t)number * 1000;
    memset(scene, 0, sizeof *scene);
    for (int i = 0; i < n_ids; i++)
        scene->ids[i] = (i * 17 + number * 29 + i / 3) % burin_model.n_vocab;
    for (int f = 0; f < n_frames; f++) {
        const int begin = 1 + f * (SOFT + 2);
        scene->pictures[f] = (struct burin_picture){
            .begin = begin, .patches = test_picture(COLUMNS, ROWS_EACH, &byte)
        };
        for (int i = 0; i < SOFT; i++)
            scene->ids[begin + i] = 0;
    }
    scene->request = (struct burin_request){
        .ids = scene->ids,
        .n_ids = n_ids,
        .pictures = scene->pictures,
        .n_pictures = n_frames,
        .max_tokens = NEW,
        .sampling = burin_greedy,
        .on_logits = keep_bits,
        .logits_from = n_ids > LOOKED_AT ? n_ids - LOOKED_AT : 0,
        .user = scene,
    };
}

static void free_scene(struct scene *scene)
{
    for (int f = 0; f < scene->request.n_pictures; f++)
        free(scene->pictures[f].patches.pixels);
}

static const struct burin_program *encoder_of(const struct burin_family *family)
{
    for (int i = 0; i < family->n_programs; i++)
        if (burin_is_encoder(&family->programs[i]) && family->programs[i].run)
            return &family->programs[i];
    return NULL;
}

static bool encodes(void)
{
    return model_weights() && encoder_of(&burin_model.families[0]);
}

static const struct burin_family *family_of(bool exact)
{
    const struct burin_family *family = burin_model.families;
    while (family->exact != exact)
        family++;
    return family;
}

/* --encoder-arena for so many items. */
static int64_t arena_of(const struct run *run)
{
    const struct burin_program *program = encoder_of(family_of(run->exact));
    const struct burin_params params = { .value = { [BURIN_THREADS] = run->n_threads } };
    const int n[BURIN_N_EXTENTS] = { [BURIN_SOFT] = run->n_items * program->smallest_item };
    return (int64_t)burin_arena_bytes(program, &params, n);
}

static void run_into_bits(struct run run)
{
    const struct burin_options options = { .model = &burin_model,
                                           .weights = model_weights(),
                                           .target = family_of(run.exact)->name,
                                           .n_threads = run.n_threads,
                                           .n_batch = run.n_batch,
                                           .n_ctx = 640,
                                           .n_sequences = SCENES,
                                           .n_outputs = 16,
                                           .n_frames = run.n_kept,
                                           .encoder_arena = arena_of(&run),
                                           .exact = run.exact,
                                           .strict = true };
    struct burin_engine *engine;
    struct burin_error err = { 0 };
    if (burin_engine_open(&engine, &options, &err))
        fail_msg("%s", err.message);
    if (run.n_kept == FRAMES)
        assert_int_equal(engine->encoder.limits.n_items, run.n_items);

    /* The one that is looked at most comes second, so that its rows begin within a step. */
    static const int order[SCENES] = { 1, 0, 2, 3 };
    for (int i = 0; i < SCENES; i++)
        if (run.scenes >> i & 1)
            set_scene(&scenes[i], i);
    for (int i = 0; i < SCENES; i++)
        if (run.scenes >> order[i] & 1 &&
            burin_submit(engine, &scenes[order[i]].request, &err))
            fail_msg("%s", err.message);
    assert_int_equal(burin_engine_run(engine, NULL), BURIN_OK);
    if (run.n_kept == FRAMES && run.scenes == 1)
        assert_int_equal(engine->encoder.n_runs, (FRAMES + run.n_items - 1) / run.n_items);
    burin_engine_close(engine);
    for (int i = 0; i < SCENES; i++)
        if (run.scenes >> i & 1) {
            assert_int_equal(scenes[i].request.finish, BURIN_LENGTH);
            free_scene(&scenes[i]);
        }
}

static void assert_same_bits_whatever_the_way(bool exact)
{
    static const struct run runs[] = {
        /* threads, tokens a step, frames a run, frames kept, prompts */
        { 2, 512, 7, FRAMES, 1, false },
        { 1, 100, 1, FRAMES, 1, false },
        { 2, 512, 7, 1, 1, false },
        { 2, 512, 58, FRAMES, ALL_SCENES, false },
        { 1, 100, 7, FRAMES, ALL_SCENES, false },
        { 2, 90, 1, 1, ALL_SCENES, false },
    };
    static uint64_t alone[SCENES][ROWS];
    for (int i = 0; i < SCENES; i++) {
        run_into_bits((struct run){ 1, 512, 58, FRAMES, 1 << i, exact });
        memcpy(alone[i], scenes[i].bits, sizeof alone[i]);
        assert_true(alone[i][scenes[i].request.n_ids - 1]);
    }
    assert_true(alone[0][PROMPT - LOOKED_AT] && alone[0][ROWS - 2]);

    for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
        struct run run = runs[r];
        run.exact = exact;
        run_into_bits(run);
        for (int i = 0; i < SCENES; i++)
            for (int row = 0; row < ROWS && run.scenes >> i & 1; row++)
                if (scenes[i].bits[row] != alone[i][row])
                    fail_msg(
                            "prompt %d, position %d: %d threads, steps of %d, %d frames a "
                            "run, %d kept, prompts %x",
                            i, row, run.n_threads, run.n_batch, run.n_items, run.n_kept,
                            (unsigned)run.scenes);
    }
}

SPEC(logits_behind_58_frames_have_the_same_bits_in_one_run_and_in_many_and_beside_others)
{
    SKIP_UNLESS(encodes());
    assert_same_bits_whatever_the_way(false);
}

SPEC(exact_logits_behind_58_frames_have_the_same_bits_in_one_run_and_in_many_and_beside_others)
{
    SKIP_UNLESS(encodes());
    assert_same_bits_whatever_the_way(true);
}

SPEC(where_pictures_are_never_cut_logits_of_their_tokens_need_as_many_rows)
{
    SKIP_UNLESS(encodes());
    const struct burin_options options = { .model = &burin_model,
                                           .weights = model_weights(),
                                           .n_threads = 1,
                                           .n_ctx = 640,
                                           .n_outputs = SOFT - 1,
                                           .n_frames = FRAMES };
    struct burin_engine *engine;
    struct burin_error err = { 0 };
    if (burin_engine_open(&engine, &options, &err))
        fail_msg("%s", err.message);
    struct scene *scene = &scenes[1];
    set_scene(scene, 1);
    scene->request.logits_from = scene->request.n_ids - SOFT;

    const enum burin_status status = burin_submit(engine, &scene->request, &err);

    assert_int_equal(status, engine->encoder.spans ? BURIN_EUSAGE : BURIN_OK);
    if (status)
        assert_non_null(strstr(err.message, "open the engine with n_outputs 6"));
    free_scene(scene);
    burin_engine_close(engine);
}
