/* What there is to know of a card, and contexts on it. */
#include "runtime/device/virtual/state.h"

#include <stdio.h>
#include <string.h>

enum { DEFAULT_STACK = 1024 };

static const struct burin_virtual_options *options(void)
{
    return &burin_virtual_self()->machine->options;
}

static bool is_card(int device)
{
    return device >= 0 && device < options()->n_cards;
}

/* ---- The driver ---------------------------------------------------------------------------- */

CALL(cuInit, NEEDS_NOTHING, (unsigned flags), (flags))
{
    if (flags)
        return CU_INVALID_VALUE;
    if (!options()->n_cards)
        return CU_NO_DEVICE;
    burin_virtual_self()->started = true;
    return CU_OK;
}

CALL(cuDriverGetVersion, NEEDS_NOTHING, (int *version), (version))
{
    *version = options()->driver_version;
    return CU_OK;
}

/* ---- Cards ------------------------------------------------------------------------------------ */

CALL(cuDeviceGetCount, NEEDS_INIT, (int *n), (n))
{
    *n = options()->n_cards;
    return CU_OK;
}

CALL(cuDeviceGet, NEEDS_INIT, (int *device, int ordinal), (device, ordinal))
{
    if (!is_card(ordinal))
        return CU_INVALID_DEVICE;
    *device = ordinal;
    return CU_OK;
}

CALL(cuDeviceGetName,
     NEEDS_INIT,
     (char *name, int length, int device),
     (name, length, device))
{
    if (!is_card(device) || length < 1)
        return CU_INVALID_DEVICE;
    snprintf(name, (size_t)length, "virtual %s", options()->cards[device].name);
    return CU_OK;
}

CALL(cuDeviceGetUuid_v2,
     NEEDS_INIT,
     (struct burin_cu_uuid * uuid, int device),
     (uuid, device))
{
    if (!is_card(device))
        return CU_INVALID_DEVICE;
    memset(uuid->bytes, 0, sizeof uuid->bytes);
    uuid->bytes[15] = (char)(device + 1);
    return CU_OK;
}

CALL(cuDeviceGetPCIBusId,
     NEEDS_INIT,
     (char *id, int length, int device),
     (id, length, device))
{
    if (!is_card(device) || length < 1)
        return CU_INVALID_DEVICE;
    snprintf(id, (size_t)length, "0000:%02x:00.0", (unsigned)device + 1);
    return CU_OK;
}

CALL(cuDeviceTotalMem_v2, NEEDS_INIT, (size_t * bytes, int device), (bytes, device))
{
    if (!is_card(device))
        return CU_INVALID_DEVICE;
    *bytes = burin_virtual_self()->machine->cards[device].total;
    return CU_OK;
}

static int threads_per_multiprocessor(int sm)
{
    return sm == 80 || (sm >= 90 && sm < 120) ? 2048 : 1536;
}

int burin_virtual_shared_opt_in(int card)
{
    const int sm = options()->cards[card].sm;
    if (sm == 80 || sm == 87)
        return 163 * 1024;
    return sm >= 90 && sm < 120 ? 227 * 1024 : 99 * 1024;
}

/* A card of which nothing is said has as many as the largest. */
static int n_processors(int card)
{
    const int n = options()->cards[card].n_processors;
    return n ? n : 188;
}

size_t burin_virtual_local_bytes(const struct burin_cu_context *context, size_t bytes)
{
    const int card = context->card;
    const size_t threads = (size_t)n_processors(card) *
                           (size_t)threads_per_multiprocessor(options()->cards[card].sm);
    return burin_virtual_rounded(burin_virtual_self()->machine, bytes * threads);
}

CALL(cuDeviceGetAttribute,
     NEEDS_INIT,
     (int *value, int attribute, int device),
     (value, attribute, device))
{
    if (!is_card(device))
        return CU_INVALID_DEVICE;
    const struct burin_card *card = &options()->cards[device];
    switch (attribute) {
    case CU_DEVICE_SM_MAJOR:
        *value = card->sm / 10;
        return CU_OK;
    case CU_DEVICE_SM_MINOR:
        *value = card->sm % 10;
        return CU_OK;
    case CU_DEVICE_MULTIPROCESSORS:
        *value = n_processors(device);
        return CU_OK;
    case CU_DEVICE_THREADS_PER_MULTIPROCESSOR:
        *value = threads_per_multiprocessor(card->sm);
        return CU_OK;
    case CU_DEVICE_MAX_SHARED_PER_BLOCK:
        *value = 48 * 1024;
        return CU_OK;
    case CU_DEVICE_MAX_SHARED_OPT_IN:
        *value = burin_virtual_shared_opt_in(device);
        return CU_OK;
    case CU_DEVICE_INTEGRATED:
        *value = card->unified;
        return CU_OK;
    case CU_DEVICE_HAS_VMM:
        *value = !options()->no_vmm;
        return CU_OK;
    case CU_DEVICE_MEMORY_CLOCK_KHZ: /* of a card that is not there: 1 TB/s, 64 MiB */
        *value = 10 * 1000 * 1000;
        return CU_OK;
    case CU_DEVICE_BUS_BITS:
        *value = 400;
        return CU_OK;
    case CU_DEVICE_L2_BYTES:
        *value = 64 * 1024 * 1024;
        return CU_OK;
    default:
        return CU_INVALID_VALUE;
    }
}

/* ---- Contexts ------------------------------------------------------------------------------------ */

static struct burin_cu_context *new_context(int card)
{
    struct burin_cu_context *context =
            burin_virtual_new(BURIN_VIRTUAL_CONTEXT, sizeof *context, NULL);
    if (!context)
        return NULL;
    context->card = card;
    context->limits[CU_LIMIT_STACK] = DEFAULT_STACK;
    context->limits[CU_LIMIT_PRINTF] = (size_t)1024 * 1024;
    context->limits[CU_LIMIT_HEAP] = (size_t)8 * 1024 * 1024;
    context->stream =
            burin_virtual_new(BURIN_VIRTUAL_STREAM, sizeof *context->stream, context);
    if (context->stream)
        return context;
    burin_virtual_drop(&context->item);
    return NULL;
}

CALL(cuDevicePrimaryCtxRetain,
     NEEDS_INIT | NO_CAPTURE,
     (struct burin_cu_context * *context, int device),
     (context, device))
{
    struct burin_virtual_process *self = burin_virtual_self();
    const size_t bytes = burin_virtual_rounded(self->machine, options()->context_bytes);
    if (!is_card(device))
        return CU_INVALID_DEVICE;
    struct burin_cu_context *own = self->contexts[device];
    if (!own) {
        if (burin_virtual_take(device, bytes))
            return CU_OUT_OF_MEMORY;
        own = new_context(device);
        if (!own) {
            burin_virtual_give(device, bytes);
            return CU_OUT_OF_MEMORY;
        }
        own->item.bytes = bytes;
        self->contexts[device] = own;
    }
    own->n_retained++;
    *context = own;
    return CU_OK;
}

CALL(cuDevicePrimaryCtxRelease_v2, NEEDS_INIT | GIVES_BACK, (int device), (device))
{
    if (!is_card(device))
        return CU_INVALID_DEVICE;
    struct burin_cu_context *context = burin_virtual_self()->contexts[device];
    if (!context)
        return CU_INVALID_CONTEXT;
    if (--context->n_retained == 0)
        burin_virtual_destroy_context(context);
    return CU_OK;
}

CALL(cuCtxSetCurrent, NEEDS_INIT, (struct burin_cu_context * context), (context))
{
    if (context && !burin_virtual_is(&context->item, BURIN_VIRTUAL_CONTEXT))
        return CU_INVALID_CONTEXT;
    burin_virtual_set_current(context);
    return CU_OK;
}

static bool is_limit(int limit)
{
    return limit >= CU_LIMIT_STACK && limit <= CU_LIMIT_HEAP;
}

/* Room for printf and malloc is a part of what a context takes; stacks are not. */
CALL(cuCtxSetLimit, NEEDS_CONTEXT | NO_CAPTURE, (int limit, size_t value), (limit, value))
{
    struct burin_cu_context *context = burin_virtual_current();
    if (!is_limit(limit))
        return CU_INVALID_VALUE;
    if (limit == CU_LIMIT_STACK) {
        value = (value + 15) / 16 * 16;
        const size_t all = burin_virtual_local_bytes(context, value);
        if (all < context->local_taken) {
            burin_virtual_give(context->card, context->local_taken - all);
            context->local_taken = all;
        } else if (burin_virtual_need_local(context, value)) {
            return CU_OUT_OF_MEMORY;
        }
    }
    context->limits[limit] = value;
    return CU_OK;
}

CALL(cuCtxGetLimit, NEEDS_CONTEXT, (size_t * value, int limit), (value, limit))
{
    if (!is_limit(limit))
        return CU_INVALID_VALUE;
    *value = burin_virtual_current()->limits[limit];
    return CU_OK;
}
