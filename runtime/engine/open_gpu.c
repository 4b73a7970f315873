#include "runtime/engine/open.h"

#include "runtime/base/clock.h"
#include "runtime/base/put.h"
#include "runtime/device/cuda/compile.h"
#include "runtime/device/cuda/open.h"
#include "runtime/device/cuda/upload.h"
#include "runtime/device/machine.h"
#include "runtime/weights/pack.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Which device ------------------------------------------------------------------------ */

static enum burin_status family_named(
        const struct burin_model *model,
        const struct burin_card *card,
        const char *target,
        const struct burin_family **family,
        struct burin_error *err)
{
    *family = NULL;
    for (int i = 0; i < model->n_families; i++) {
        const struct burin_family *at = &model->families[i];
        if (!at->sm || strcmp(at->name, target) != 0)
            continue;
        if (at->sm > card->sm)
            return burin_fail(
                    err, BURIN_EUSAGE,
                    "--target %s needs compute capability %d.%d, %s has %d.%d", target,
                    at->sm / 10, at->sm % 10, card->name, card->sm / 10, card->sm % 10);
        *family = at;
    }
    return *family ? BURIN_OK
                   : burin_fail(
                             err, BURIN_EUSAGE,
                             "--target %s: %s has no such family for GPUs", target,
                             model->name);
}

/* Whether a step can be run with the keys and values that are asked for. */
static enum burin_status check_kernels(
        const struct burin_model *model,
        const struct burin_family *family,
        const struct burin_options *options,
        struct burin_error *err)
{
    assert(family);
    const struct burin_program *step = &family->programs[0];
    const bool given = options->kv_dtype_given;
    char run[64] = "";
    struct burin_put put = { run, sizeof run, 0 };
    if (!step->enqueue || !family->cuda)
        return burin_fail(
                err, BURIN_EUSAGE,
                "%s has tables for GPUs (%s) and no kernels%s%s: --device cpu runs it",
                model->name, family->name, step->missing ? ", none yet for " : "",
                step->missing ? step->missing : "");
    if (!family->n_kv)
        return BURIN_OK;
    const enum burin_dtype wanted = given ? options->kv_dtype : family->kv[0].dtype;
    for (int kv = 0; kv < family->n_kv; kv++) {
        const enum burin_dtype dtype = family->kv[kv].dtype;
        if (step->enqueue[kv] && dtype == wanted)
            return BURIN_OK;
        if (step->enqueue[kv])
            burin_put(&put, "%s %s", put.used ? " or" : "", burin_dtype_name(dtype));
    }
    return burin_fail(
            err, BURIN_EUSAGE,
            "--kv-cache-dtype %s: there are no kernels for it on a GPU (%s)%s%s%s",
            burin_dtype_name(wanted), family->name, run[0] ? "; --kv-cache-dtype" : "", run,
            run[0] ? " runs" : "");
}

static bool has_gpu_family(const struct burin_model *model)
{
    for (int i = 0; i < model->n_families; i++)
        if (model->families[i].sm)
            return true;
    return false;
}

/* Where the choice is ours, a GPU whose kernels cannot be compiled is none; and where nothing will
 * be started, nothing else tells. */
static enum burin_status check_compiler(struct burin_opening *o, struct burin_error *err)
{
    struct burin_gpu *gpu = &o->engine->gpu;
    struct burin_compiling compiling = { .nvrtc = &gpu->nvrtc };
    if (!o->automatic && !o->looking)
        return BURIN_OK;
    if (gpu->driver.cuDriverGetVersion(&compiling.driver_version))
        compiling.driver_version = 0;
    return burin_compile_check(
            o->engine->gpu_family->cuda, o->options->fast_gemm,
            burin_arch_of(gpu->cuda.found.sm).name, &compiling, err);
}

/* What --fast-gemm multiplies with, opened for the start. */
static enum burin_status open_products(
        const struct burin_opening *o, struct burin_error *err)
{
    struct burin_gpu *gpu = &o->engine->gpu;
    struct burin_error why = { 0 };
    int version = 0;
    if (!o->options->fast_gemm)
        return BURIN_OK;
    if (gpu->driver.cuDriverGetVersion(&version))
        version = 0;
    const enum burin_status status = burin_cublaslt_open(&gpu->cublaslt, version, &why);
    return status ? burin_fail(
                            err, status,
                            "%s.\n(Without --fast-gemm our own kernels multiply.)",
                            why.message)
                  : BURIN_OK;
}

/* *there: it is on this machine, of use or not. */
static enum burin_status open_gpu(
        struct burin_opening *o, int index, bool *there, struct burin_error *err)
{
    struct burin_engine *engine = o->engine;
    *there = false;
    const struct burin_options *options = o->options;
    struct burin_card card;
    if (!has_gpu_family(options->model))
        return burin_fail(
                err, BURIN_EUSAGE, "%s was generated without code for GPUs",
                options->model->name);
    enum burin_status status = burin_gpu_open(&engine->gpu, index, err);
    if (status)
        return status;
    *there = true;
    status = burin_gpu_card(&engine->gpu, &card, err);
    if (!status)
        status = options->target ? family_named(
                                           options->model, &card, options->target,
                                           &engine->gpu_family, err)
                                 : burin_card_family(
                                           &card, options->model, &engine->gpu_family, err);
    if (!status)
        status = check_kernels(options->model, engine->gpu_family, options, err);
    if (!status)
        status = check_compiler(o, err);
    if (status) {
        burin_gpu_close(&engine->gpu);
        return status;
    }
    engine->on_gpu = true;
    o->index = index;
    snprintf(
            engine->device_name, sizeof engine->device_name, "cuda:%d, %s", index,
            engine->gpu.cuda.found.name);
    return BURIN_OK;
}

static bool is_target(const struct burin_model *model, bool gpu, const char *target)
{
    for (int i = 0; i < model->n_families && target; i++)
        if ((model->families[i].sm != 0) == gpu &&
            strcmp(model->families[i].name, target) == 0)
            return true;
    return false;
}

static bool runs_on_cpu(const struct burin_options *options)
{
    const struct burin_family *family;
    return !burin_machine_family(
            options->model, options->target, options->exact, &family, NULL);
}

/* Why a GPU is not taken, the first line of it: a plan's others are what it is made of. No full stop:
 * others follow. */
static void pass_over(
        struct burin_engine *engine, int index, bool there, const struct burin_error *why)
{
    enum { MOST = 400 };
    struct burin_put put = { engine->no_gpu, sizeof engine->no_gpu,
                             strlen(engine->no_gpu) };
    int n = (int)strcspn(why->message, "\n");
    n -= n > 0 && why->message[n - 1] == '.';
    if (put.used)
        burin_put(&put, "; ");
    if (there)
        burin_put(&put, "cuda:%d: ", index);
    burin_put(&put, "%.*s", n < MOST ? n : MOST, why->message);
    engine->passed_gpu |= there || burin_driver_is_named();
}

/* The first from `index` on that can run the model; false: there is none. */
static bool take_gpu(struct burin_opening *o, int index)
{
    for (;; index++) {
        struct burin_error why = { 0 };
        bool there;
        if (!open_gpu(o, index, &there, &why))
            return true;
        if (there || index == 0)
            pass_over(o->engine, index, there, &why);
        if (!there)
            return false;
    }
}

static void leave_gpu(struct burin_engine *engine)
{
    burin_gpu_close(&engine->gpu);
    engine->on_gpu = false;
    snprintf(engine->device_name, sizeof engine->device_name, "cpu");
}

enum burin_status burin_opening_device(struct burin_opening *o, struct burin_error *err)
{
    const struct burin_options *options = o->options;
    struct burin_engine *engine = o->engine;
    const char *wish = options->device ? options->device : "auto";
    int index = 0;
    bool there;
    engine->on_gpu = false;
    snprintf(engine->device_name, sizeof engine->device_name, "cpu");
    const enum burin_status named = burin_machine_device("--device", wish, &index, err);
    if (named)
        return named;
    if (index == BURIN_DEVICE_CPU)
        return BURIN_OK;
    o->automatic = index == BURIN_DEVICE_AUTO;
    if (o->automatic) {
        if (!options->exact && !is_target(options->model, false, options->target))
            take_gpu(o, 0);
        return BURIN_OK;
    }
    if (options->exact)
        return burin_fail(
                err, BURIN_EUSAGE, "--exact: %s is exact on CPUs only, --device %s is none",
                options->model->name, wish);
    return open_gpu(o, index, &there, err);
}

/* A moment, in which others may give back memory. False where that has come to an end. */
static bool wait_a_moment(struct burin_opening *o, struct burin_error *why)
{
    const struct timespec quarter = { .tv_nsec = 250000000 };
    const struct burin_options *options = o->options;
    const double now_ms = burin_now_ms();
    if (options->wait_s <= 0 || !o->may_come)
        return false;
    if (o->until_ms == 0)
        o->until_ms = now_ms + 1000.0 * options->wait_s;
    if (now_ms >= o->until_ms)
        return false;
    nanosleep(&quarter, NULL);
    if (!options->on_progress ||
        options->on_progress(options->user, "waiting for memory", 0, 0))
        return true;
    burin_fail(why, BURIN_ESTOPPED, "interrupted while waiting for memory");
    return false;
}

bool burin_opening_next(struct burin_opening *o, struct burin_error *why)
{
    struct burin_engine *engine = o->engine;
    if (!engine->on_gpu || why->status != BURIN_ENOMEM)
        return false;
    if (!o->automatic)
        return wait_a_moment(o, why);
    pass_over(engine, o->index, true, why);
    leave_gpu(engine);
    if (take_gpu(o, o->index + 1))
        return true;
    while (wait_a_moment(o, why)) {
        engine->no_gpu[0] = '\0';
        engine->passed_gpu = false;
        if (take_gpu(o, 0))
            return true;
    }
    if (why->status == BURIN_ENOMEM && runs_on_cpu(o->options)) {
        struct burin_put put = { engine->no_gpu, sizeof engine->no_gpu,
                                 strlen(engine->no_gpu) };
        if (o->until_ms > 0)
            burin_put(&put, "; waited %d s for memory", o->options->wait_s);
        return true;
    }
    engine->no_gpu[0] = '\0'; /* `why` is the error */
    return false;
}

enum burin_status burin_opening_refuse(
        const struct burin_opening *o,
        const struct burin_error *why,
        struct burin_error *err)
{
    const struct burin_engine *engine = o->engine;
    if (!engine->on_gpu && engine->no_gpu[0] &&
        (engine->passed_gpu || !runs_on_cpu(o->options)))
        return burin_fail(
                err, why->status, "%s\n(No GPU is used: %s)", why->message, engine->no_gpu);
    if (why->status == BURIN_ENOMEM && o->until_ms > 0)
        return burin_fail(
                err, why->status, "%s\n(Waited %d s for memory.)", why->message,
                o->options->wait_s);
    if (why->status == BURIN_ENOMEM && o->may_come)
        return burin_fail(err, why->status, "%s\n" BURIN_START_WAITS, why->message);
    if (err)
        *err = *why;
    return why->status;
}

enum burin_status burin_engine_card(
        const struct burin_options *options,
        struct burin_card *card,
        bool *found,
        char *no_gpu,
        size_t capacity,
        struct burin_error *err)
{
    struct burin_arena host = { 0 };
    struct burin_opening o = { .options = options,
                               .looking = true,
                               .engine = BURIN_TAKE(&host, 1, struct burin_engine) };
    *found = false;
    if (!o.engine)
        return burin_fail(err, BURIN_ENOMEM, "no memory to look for a GPU");
    enum burin_status status = burin_opening_device(&o, err);
    if (!status && o.engine->on_gpu) {
        *found = true;
        status = open_products(&o, err);
        if (!status)
            status = burin_gpu_card(&o.engine->gpu, card, err);
    } else if (
            !status && o.engine->no_gpu[0] &&
            is_target(options->model, true, options->target))
        status = burin_fail(
                err, BURIN_EUSAGE,
                "--target %s is of a GPU, and none here runs it (%s); `plan --card` takes "
                "one that is not here",
                options->target, o.engine->no_gpu);
    if (no_gpu)
        snprintf(
                no_gpu, capacity, "%s",
                *found || !o.engine->passed_gpu ? "" : o.engine->no_gpu);
    burin_gpu_close(&o.engine->gpu);
    burin_arena_close(&host);
    return status;
}

/* ---- The plan ---------------------------------------------------------------------------- */

enum burin_status burin_opening_plan_gpu(struct burin_opening *o, struct burin_error *err)
{
    struct burin_engine *engine = o->engine;
    struct burin_plan_request *request = &engine->request;
    bool may_come = false;
    enum burin_status status = burin_opening_request(o, request, err);
    if (!status)
        status = burin_gpu_card(&engine->gpu, &request->card, err);
    if (status)
        return status;
    request->family = engine->gpu_family;
    status = burin_start_plan(&engine->plan, request, &may_come, err);
    if (!status)
        o->until_ms = 0;
    o->may_come = status && (o->may_come || may_come);
    return status;
}

/* ---- Weights ----------------------------------------------------------------------------- */

struct sending {
    struct burin_upload upload;
    uint64_t to;
};

static enum burin_status free_buffer(void *user, uint8_t **buffer, struct burin_error *err)
{
    struct sending *sending = user;
    void *memory = NULL;
    const enum burin_status status = burin_upload_buffer(&sending->upload, &memory, err);
    *buffer = memory;
    return status;
}

static enum burin_status send_buffer(
        void *user, size_t offset, size_t n, struct burin_error *err)
{
    struct sending *sending = user;
    return burin_upload_send(&sending->upload, sending->to + offset, n, err);
}

static enum burin_status finish_sending(void *user, struct burin_error *err)
{
    struct sending *sending = user;
    return burin_upload_finish(&sending->upload, err);
}

static bool packed(void *user, size_t done, size_t total)
{
    const struct burin_options *options = user;
    return options->on_progress(options->user, "weights", done, total);
}

static enum burin_status send_weights(void *user, struct burin_error *err)
{
    enum { BUFFER_BYTES = 32 * 1024 * 1024 };
    struct burin_opening *o = user;
    struct burin_engine *engine = o->engine;
    struct burin_options options = *o->options;
    struct sending sending = { .to = engine->memory.weights.address };
    if (!options.model->n_weights)
        return BURIN_OK;
    enum burin_status status = burin_upload_open(
            &sending.upload, &engine->gpu.cuda, &engine->queue, BUFFER_BYTES, err);
    const struct burin_pack_sink sink = {
        .buffer_bytes = BUFFER_BYTES,
        .buffer = free_buffer,
        .send = send_buffer,
        .finish = finish_sending,
        .user = &sending,
    };
    if (!status)
        status = burin_pack_stream(
                options.model, engine->plan.family, &o->checkpoint, o->tensors,
                engine->memory.weights.bytes, &sink, engine->plan.n_threads,
                options.on_progress ? packed : NULL, &options, err);
    burin_upload_close(&sending.upload);
    /* Where the card's memory is the host's, cached pages of files are in the way of the rest. */
    for (int i = 0; i < o->checkpoint.n_files && engine->gpu.cuda.found.integrated; i++)
        burin_file_forget(&o->checkpoint.files[i]);
    return status;
}

/* ---- Start ------------------------------------------------------------------------------- */

static bool on_step(void *user, enum burin_start_step step, size_t done, size_t total)
{
    const struct burin_opening *o = user;
    const struct burin_options *options = o->options;
    return !options->on_progress ||
           options->on_progress(options->user, burin_start_names[step], done, total);
}

/* Programs' weights lie in the family's order: those in the plan must be the first. */
static enum burin_status check_programs(
        const struct burin_plan *plan, struct burin_error *err)
{
    bool left_out = false;
    for (int p = 0; p < plan->family->n_programs; p++) {
        const struct burin_program *program = &plan->family->programs[p];
        if (!plan->programs[p].active) {
            left_out |= program->weights_bytes > 0;
            continue;
        }
        if (!burin_program_runs(program, plan->kv_index))
            return burin_fail(
                    err, BURIN_EUSAGE, "%s can't be run yet: no kernels for %s",
                    program->name, program->missing ? program->missing : "this GPU");
        if (left_out && program->weights_bytes)
            return burin_fail(
                    err, BURIN_EUSAGE,
                    "%s needs the weights of a program that is not planned", program->name);
    }
    return BURIN_OK;
}

enum burin_status burin_opening_start_gpu(struct burin_opening *o, struct burin_error *err)
{
    struct burin_engine *engine = o->engine;
    enum burin_status status = check_programs(&engine->plan, err);
    if (!status)
        status = open_products(o, err);
    if (status)
        return status;
    engine->start = (struct burin_start){
        .plan = &engine->plan,
        .request = &engine->request,
        .gpu = &engine->gpu,
        .keep_kernels = true,
        .n_threads = engine->plan.n_threads,
        .send_weights = send_weights,
        .on_step = on_step,
        .user = o,
        .ledger = &engine->ledger,
        .memory = &engine->memory,
        .queue = &engine->queue,
        .staging = &engine->staging,
        .captures = &engine->captures,
    };
    engine->device = &engine->gpu.cuda.device;
    struct burin_error why = { 0 };
    status = burin_start_run(&engine->start, &why);
    if (!status)
        return BURIN_OK;
    if (o->automatic && status != BURIN_ESTOPPED && runs_on_cpu(o->options))
        return burin_fail(err, status, "%s\n(--device cpu does without it.)", why.message);
    if (err)
        *err = why;
    return status;
}
