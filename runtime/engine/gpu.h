/* runtime/engine/gpu.h -- A GPU that an engine uses: NVIDIA's libraries, the device, and what its
 * memory looks like from outside.
 *
 * Numbers  Before there is a context NVML tells what is free, and at any time what a process has
 *          of a GPU. Where it is missing, refuses (MIG) or knows us by another number
 *          (containers), the device's own number is all there is: it changes with every process
 *          that uses it.
 * Units    Bytes.
 * Memory   The struct holds the tables of functions and must not be moved.
 * Threads  One at a time. */
#ifndef BURIN_ENGINE_GPU_H
#define BURIN_ENGINE_GPU_H

#include "runtime/base/status.h"
#include "runtime/device/cuda/cublaslt.h"
#include "runtime/device/cuda/cuda.h"
#include "runtime/device/cuda/nvml.h"
#include "runtime/device/cuda/nvrtc.h"
#include "runtime/plan/cards.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct burin_gpu {
    struct burin_driver driver;
    struct burin_nvrtc nvrtc;       /* opened when a kernel must be compiled */
    struct burin_cublaslt cublaslt; /* under --fast-gemm, until the device takes it over */
    struct burin_nvml nvml;
    bool nvml_open;
    struct burin_nvml_device *nvml_device; /* NULL: it tells nothing... */
    char nvml_missing[160];                /* ...because */
    struct burin_cuda cuda;
    bool has_context;
    bool not_here; /* a virtual one: this machine's memory is not its */
};

/* Open NVIDIA's libraries on this machine, and its device number `index`. BURIN_EMISSING where
 * there is no driver or no GPU. */
enum burin_status burin_gpu_open(struct burin_gpu *gpu, int index, struct burin_error *err);

/* The same over tables that are filled: a virtual GPU's. */
enum burin_status burin_gpu_open_tables(
        struct burin_gpu *gpu, int index, struct burin_error *err);

/* Closing a zeroed one does nothing. */
void burin_gpu_close(struct burin_gpu *gpu);

/* What the device is, as the card of a plan; its name is the driver's. */
enum burin_status burin_gpu_card(
        struct burin_gpu *gpu, struct burin_card *card, struct burin_error *err);

/* What is free at this moment; before there is a context only NVML knows, and *available is
 * -1 without it. */
enum burin_status burin_gpu_free(
        struct burin_gpu *gpu, int64_t *available, struct burin_error *err);

/* What this process has of it; false where nobody tells. */
bool burin_gpu_used(struct burin_gpu *gpu, int64_t *bytes);

/* "pid 4711, python, 2.10 GiB": the other processes, the largest first; "" where nobody tells,
 * or tells us from them. */
void burin_gpu_others(struct burin_gpu *gpu, char *text, size_t capacity);

#endif
