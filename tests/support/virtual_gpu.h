/* tests/support/virtual_gpu.h -- A small virtual GPU for a test: 64 granules of 2 MiB, and what
 * the driver takes is counted in granules, too. Include it once. */
#ifndef BURIN_TEST_VIRTUAL_GPU_H
#define BURIN_TEST_VIRTUAL_GPU_H

#include "runtime/device/virtual/virtual.h"
#include "tests/support/test.h"

#include <stdint.h>

static const size_t GRANULE = 2 * 1024 * 1024;
enum { N_GRANULES = 64 };

static struct burin_virtual *machine;
static struct burin_driver cu;
static struct burin_nvrtc rtc;
static struct burin_nvml nvml;

static inline struct burin_virtual_options small_gpu(void)
{
    const struct burin_card card = { .name = "small",
                                     .total_bytes = N_GRANULES * (int64_t)GRANULE,
                                     .available_bytes = N_GRANULES * (int64_t)GRANULE,
                                     .sm = 90,
                                     .n_processors = 1 };
    struct burin_virtual_options options = burin_virtual_default(&card);
    options.context_bytes = 3 * GRANULE;
    options.module_bytes = GRANULE / 4;
    options.node_bytes = GRANULE / 8;
    return options;
}

static inline void boot(const struct burin_virtual_options *options)
{
    assert_int_equal(burin_virtual_open(&machine, options, NULL), BURIN_OK);
    burin_virtual_tables(&cu, &rtc, &nvml);
}

static inline struct burin_cu_context *with_context(void)
{
    struct burin_cu_context *context;
    assert_int_equal(cu.cuInit(0), CU_OK);
    assert_int_equal(cu.cuDevicePrimaryCtxRetain(&context, 0), CU_OK);
    assert_int_equal(cu.cuCtxSetCurrent(context), CU_OK);
    return context;
}

/* A machine with such a GPU, and a context on it. */
static inline void on_a_small_gpu(void)
{
    const struct burin_virtual_options options = small_gpu();
    boot(&options);
    with_context();
}

/* Nothing is left but what the test means to leave. */
static inline void close_gpu(void)
{
    burin_virtual_close(machine);
    machine = NULL;
}

static inline struct burin_cu_memory on_card_0(void)
{
    return (struct burin_cu_memory){ .type = CU_MEMORY_PINNED,
                                     .location = { CU_LOCATION_DEVICE, 0 } };
}

static inline size_t granules_used(void)
{
    return burin_virtual_memory(machine, 0).used / GRANULE;
}

#endif
