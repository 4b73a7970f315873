/* runtime/engine/engine.h -- What an engine is made of: shared by engine.c, which opens and
 * closes it, and loop.c, which runs it. The interface is runtime/burin.h. */
#ifndef BURIN_ENGINE_ENGINE_H
#define BURIN_ENGINE_ENGINE_H

#include "runtime/base/arena.h"
#include "runtime/burin.h"
#include "runtime/device/cpu.h"
#include "runtime/device/ledger.h"
#include "runtime/engine/batch.h"
#include "runtime/engine/calls.h"
#include "runtime/engine/encode.h"
#include "runtime/engine/graphs.h"
#include "runtime/engine/kv.h"
#include "runtime/engine/memory.h"
#include "runtime/engine/sampler.h"
#include "runtime/engine/staging.h"
#include "runtime/engine/startup.h"
#include "runtime/plan/plan.h"
#include "runtime/weights/generation.h"

struct burin_engine {
    struct burin_arena host; /* of this struct too, and of all its tables */
    struct burin_plan plan;
    const char *weights_path;
    struct burin_generation generation;
    double load_ms;

    struct burin_tokenizer *tokenizer;

    bool on_gpu;
    char device_name[112]; /* "cpu", "cuda:0, NVIDIA ..." */
    char no_gpu[1024];     /* why not, or not an earlier one, where one was looked for */
    bool passed_gpu;       /* there was one all the same, or a driver was named */
    struct burin_cpu cpu;  /* its threads, where no GPU is used */
    struct burin_gpu gpu;
    const struct burin_family *gpu_family;
    struct burin_plan_request request; /* that the plan on a GPU was made of */
    struct burin_start start;          /* likewise */
    struct burin_device *device;       /* that programs run on: one of the two */
    struct burin_ledger ledger;        /* of its memory */
    struct burin_memory memory;
    struct burin_queue queue;

    const struct burin_program *step;
    int logits; /* index of this output */
    int top;    /* likewise, of what draws tokens without them; -1: there is none */
    struct burin_program_call call;
    struct burin_staging staging;
    struct burin_captures captures;

    struct burin_encoder encoder;
    struct burin_kv kv;
    struct burin_batch batch;
    struct burin_sampler sampler;

    struct burin_sequence *sequences; /* by slot */
    struct burin_request **requests;  /* by slot, NULL where it is free */
    int *order;                       /* slots in use, the oldest first */
    int n_running;
    struct burin_request *first; /* of the queue; NULL: empty */
    struct burin_request *last;
    int n_waiting;
};

#endif
