/* What all functions of the tables have in common: the lock, who calls, and the answers that
 * do not depend on the call. */
#include "runtime/device/virtual/state.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct burin_virtual_process
        *self; /* the driver's functions take no other argument */
static uint64_t lives;

/* A thread's current context, of each process that it may be a part of. */
static _Thread_local struct {
    uint64_t life;
    struct burin_cu_context *context;
} current[BURIN_VIRTUAL_PROCESSES];

void burin_virtual_lock(void)
{
    pthread_mutex_lock(&lock);
}

void burin_virtual_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

struct burin_virtual_process *burin_virtual_self(void)
{
    return self;
}

void burin_virtual_set_self(struct burin_virtual_process *process)
{
    self = process;
}

uint64_t burin_virtual_life(void)
{
    return ++lives;
}

struct burin_cu_context *burin_virtual_current(void)
{
    const ptrdiff_t i = self - self->machine->processes;
    if (current[i].life != self->life)
        return NULL;
    return current[i].context && current[i].context->item.live ? current[i].context : NULL;
}

void burin_virtual_set_current(struct burin_cu_context *context)
{
    const ptrdiff_t i = self - self->machine->processes;
    current[i].life = self->life;
    current[i].context = context;
}

/* What this thread may not call while it captures ends the capture. */
static bool end_captures(void)
{
    bool any = false;
    struct burin_virtual_item *item = self->items[BURIN_VIRTUAL_STREAM];
    for (; item && self->n_capturing; item = item->next) {
        struct burin_cu_stream *stream = (struct burin_cu_stream *)item; /* its head */
        if (!stream->captured || stream->capture_mode == CAPTURE_RELAXED)
            continue;
        if (stream->capture_mode == CU_CAPTURE_THIS_THREAD &&
            !pthread_equal(stream->capture_thread, pthread_self()))
            continue;
        stream->capture_invalid = true;
        any = true;
    }
    return any;
}

/* Some of the work of some stream, which may happen at any moment. */
static void let_time_pass(struct burin_virtual *machine)
{
    machine->random = machine->random * 6364136223846793005u + 1442695040888963407u;
    uint64_t n = machine->random >> 60;
    struct burin_virtual_item *item = self->items[BURIN_VIRTUAL_STREAM];
    for (; item && n; item = item->next, n /= 2) {
        struct burin_cu_stream *stream = (struct burin_cu_stream *)item;
        const uint64_t place = stream->n_done + n;
        burin_virtual_drain(stream, place < stream->n_put ? place : stream->n_put);
    }
}

int burin_virtual_enter(enum burin_virtual_call_id id, int needs, bool *run)
{
    burin_virtual_lock();
    *run = false;
    if (!self)
        return CU_NOT_INITIALIZED;
    struct burin_virtual *machine = self->machine;
    machine->n_calls[id]++;
    if (machine->options.order == BURIN_VIRTUAL_RANDOM)
        let_time_pass(machine);

    const bool driver = !(needs & NO_DRIVER);
    const bool with_context = (needs & NEEDS_CONTEXT) == NEEDS_CONTEXT;
    int error = burin_virtual_due(machine, id, needs);
    if (driver && (needs & NEEDS_INIT) && !self->started)
        return error ? error : CU_NOT_INITIALIZED;
    if (driver && with_context && !burin_virtual_current())
        return error ? error : CU_INVALID_CONTEXT;
    if (!error && (with_context || (needs & NO_CAPTURE)))
        error = self->lost;
    if (!error && (needs & NO_CAPTURE) && end_captures())
        return CU_CAPTURE_UNSUPPORTED;
    *run = !error || (needs & GIVES_BACK);
    machine->answer = error;
    return error;
}

int burin_virtual_leave(int result)
{
    burin_virtual_unlock();
    return result;
}
