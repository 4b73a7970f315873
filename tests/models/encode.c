/* tests/models/encode.c -- Writes what the vision encoder makes of images, for comparing.
 *
 *   encode-NAME WEIGHTS FAMILY exact|default N_THREADS alone|together  < images > rows
 *
 * Each input line is one image: soft tokens in a row of it, and rows. Patches lie in the
 * program's order, soft token after soft token; byte i of all pixels is the highest of
 * i * 2654435761, as tests/golden/gemma4_tiny.py has them. For each soft token in order: a row
 * of f32. `alone`: one run of the program for each image; `together`: one for all. */
#include "runtime/cpu/team.h"
#include "runtime/device/cpu.h"
#include "runtime/plan/size.h"
#include "runtime/weights/bind.h"
#include "runtime/weights/checkpoint.h"
#include "runtime/weights/pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_IMAGES = 32, SIDE = 3, PATCHES = SIDE * SIDE, PATCH_BYTES = 768 };

struct image {
    int columns; /* of soft tokens */
    int rows;
    size_t first_byte; /* of its pixels among all */
};

static struct burin_error err;

static void *obtain(size_t bytes)
{
    void *at = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    if (!at)
        abort();
    return memset(at, 0, bytes);
}

static int fail(const char *why)
{
    fprintf(stderr, "encode: %s\n", why);
    return 1;
}

static const struct burin_family *find_family(const char *name, bool exact)
{
    for (int i = 0; i < burin_model.n_families; i++) {
        const struct burin_family *family = &burin_model.families[i];
        if (strcmp(family->name, name) == 0 && family->exact == exact)
            return family;
    }
    return NULL;
}

static const struct burin_program *find_program(const struct burin_family *family)
{
    for (int i = 0; i < family->n_programs; i++)
        if (strcmp(family->programs[i].name, "encode_image") == 0 &&
            family->programs[i].run)
            return &family->programs[i];
    return NULL;
}

static uint8_t *packed_weights(
        const struct burin_family *family, const char *path, int n_threads)
{
    struct burin_checkpoint checkpoint;
    const struct burin_tensor *const *tensors;
    uint8_t *weights = obtain(family->weights_bytes);
    if (burin_checkpoint_open(&checkpoint, path, &err) ||
        burin_bind(&burin_model, &checkpoint, &tensors, &err) ||
        burin_pack(
                &burin_model, family, &checkpoint, tensors, weights, n_threads, NULL, NULL,
                &err))
        return NULL;
    burin_checkpoint_close(&checkpoint);
    return weights;
}

/* One run of the program for adjacent images; writes its rows. */
static int encode(
        const struct burin_program *program,
        struct burin_cpu *cpu,
        const uint8_t *weights,
        const struct image *images,
        int n_images)
{
    struct burin_call call = { .weights = weights };
    call.params.value[BURIN_THREADS] = cpu->n_threads;
    for (int i = 0; i < n_images; i++)
        call.n[BURIN_SOFT] += images[i].columns * images[i].rows;
    call.arena = obtain(burin_arena_bytes(program, &call.params, call.n));

    const int n_soft = call.n[BURIN_SOFT];
    uint8_t *pixels = NULL;
    int32_t *positions = NULL, *item_begin = NULL;
    const void *inputs[3];
    for (int i = 0; i < program->n_inputs; i++) {
        const struct burin_input *input = &program->inputs[i];
        void *at = obtain(burin_input_bytes(input, &call.params, call.n));
        inputs[i] = at;
        if (strcmp(input->name, "pixels") == 0)
            pixels = at;
        else if (strcmp(input->name, "pixel_positions") == 0)
            positions = at;
        else
            item_begin = at;
    }
    if (program->n_inputs != 3 || !pixels || !positions || !item_begin)
        return fail("the program has other inputs");
    call.inputs = inputs;

    int row = 0; /* of patches */
    for (int i = 0; i < n_images; i++) {
        item_begin[i] = row;
        size_t byte = images[i].first_byte;
        for (int soft = 0; soft < images[i].columns * images[i].rows; soft++)
            for (int patch = 0; patch < PATCHES; patch++, row++) {
                positions[2 * row] = soft % images[i].columns * SIDE + patch % SIDE;
                positions[2 * row + 1] = soft / images[i].columns * SIDE + patch / SIDE;
                for (int k = 0; k < PATCH_BYTES; k++)
                    pixels[(size_t)row * PATCH_BYTES + (size_t)k] =
                            (uint8_t)((uint32_t)byte++ * 2654435761u >> 24);
            }
    }
    for (int i = n_images; i <= n_soft; i++)
        item_begin[i] = row;

    struct burin_queue queue = { 0 };
    if (burin_queue_open(&queue, &cpu->device, &err) ||
        burin_queue_run(&queue, program, 0, &call, &err) ||
        burin_queue_finish(&queue, &err))
        return fail(err.message);
    burin_queue_close(&queue);

    const struct burin_output *output = &program->outputs[0];
    const size_t d = burin_linear_at(&output->dims[1], &call.params, n_soft);
    fwrite(call.arena + burin_output_offset(program, 0, &call.params, call.n),
           sizeof(float) * d, (size_t)n_soft, stdout);
    for (int i = 0; i < program->n_inputs; i++)
        free((void *)(uintptr_t)inputs[i]);
    free(call.arena);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 6)
        return fail("usage: WEIGHTS FAMILY exact|default N_THREADS alone|together");
    const struct burin_family *family = find_family(argv[2], strcmp(argv[3], "exact") == 0);
    const struct burin_program *program = family ? find_program(family) : NULL;
    const int n_threads = atoi(argv[4]);
    const bool together = strcmp(argv[5], "together") == 0;
    if (!program)
        return fail("this family has no encode_image");

    static struct burin_cpu cpu;
    static struct burin_ledger ledger;
    burin_cpu_open(&cpu);
    if (burin_ledger_open(&ledger, &cpu.device, SIZE_MAX, &err) ||
        burin_cpu_start(&cpu, &ledger, n_threads, 1 << 20, &err))
        return fail(err.message);
    uint8_t *weights = packed_weights(family, argv[1], n_threads);
    if (!weights)
        return fail(err.message);

    struct image images[MAX_IMAGES];
    int n_images = 0, status = 0;
    size_t byte = 0;
    while (n_images < MAX_IMAGES &&
           scanf("%d %d", &images[n_images].columns, &images[n_images].rows) == 2) {
        images[n_images].first_byte = byte;
        byte += (size_t)(images[n_images].columns * images[n_images].rows) * PATCHES *
                PATCH_BYTES;
        n_images++;
    }
    if (together)
        status = encode(program, &cpu, weights, images, n_images);
    else
        for (int i = 0; i < n_images && !status; i++)
            status = encode(program, &cpu, weights, images + i, 1);

    free(weights);
    burin_cpu_stop(&cpu);
    burin_ledger_close(&ledger);
    return status || fflush(stdout);
}
