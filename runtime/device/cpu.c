#include "runtime/device/cpu.h"

#include "runtime/base/clock.h"
#include "runtime/device/machine.h"
#include "runtime/plan/plan.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

/* Between two steps the sampler works for 10 to 100 us; a thread that sleeps then takes 5 to
 * 50 us to wake. Longer than this nobody spins: idle threads sleep. */
enum { SPIN_NS = 100000 };

/* ---- The team ---------------------------------------------------------------------- */

/* Lies at the top of its thread's stack piece:  [guard page][stack][worker] */
struct worker {
    _Alignas(64) struct burin_team team;
    struct burin_cpu *cpu;
    unsigned begun; /* cpu->begun before the first work that is this thread's */
    pthread_t thread;
};

static struct worker *worker_at(const struct burin_cpu *cpu, int i)
{
    uint8_t *end = cpu->stacks + (size_t)(i + 1) * cpu->stack_bytes;
    return (struct worker *)(void *)(end - sizeof(struct worker));
}

static void *work_until_stopped(void *argument)
{
    const struct worker *self = argument;
    struct burin_cpu *cpu = self->cpu;

    for (unsigned begun = self->begun;; begun++) {
        burin_word_wait(&cpu->begun, begun, SPIN_NS);
        burin_cpu_work *work = cpu->work;
        if (work)
            work(&self->team, cpu->argument);
        if (atomic_fetch_sub(&cpu->busy.value, 1) == 1)
            burin_word_wake(&cpu->busy);
        if (!work)
            return NULL;
    }
}

static void begin(struct burin_cpu *cpu, burin_cpu_work *work, void *argument)
{
    cpu->work = work;
    cpu->argument = argument;
    atomic_store(&cpu->busy.value, (unsigned)cpu->n_started);
    atomic_fetch_add(&cpu->begun.value, 1);
    burin_word_wake(&cpu->begun);
}

static void end(struct burin_cpu *cpu)
{
    unsigned busy;
    while ((busy = atomic_load(&cpu->busy.value)) != 0)
        burin_word_wait(&cpu->busy, busy, SPIN_NS);
}

void burin_cpu_run(struct burin_cpu *cpu, burin_cpu_work *work, void *argument)
{
    const struct burin_team first = { .n_threads = cpu->n_threads, .gate = &cpu->gate };

    if (cpu->n_started > 0)
        begin(cpu, work, argument);
    work(&first, argument);
    if (cpu->n_started > 0)
        end(cpu);
}

static enum burin_status start_worker(
        struct burin_cpu *cpu, int i, int n_threads, struct burin_error *err)
{
    uint8_t *piece = cpu->stacks + (size_t)i * cpu->stack_bytes;
    struct worker *worker = worker_at(cpu, i);
    worker->team = (struct burin_team){
        .thread = i + 1,
        .n_threads = n_threads,
        .gate = &cpu->gate,
    };
    worker->cpu = cpu;
    worker->begun = atomic_load(&cpu->begun.value);
    if (mprotect(piece, BURIN_CPU_PAGE, PROT_NONE))
        return burin_fail(err, BURIN_EIO, "no guard page: %s", strerror(errno));

    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    uint8_t *stack = piece + BURIN_CPU_PAGE;
    int failure =
            pthread_attr_setstack(&attributes, stack, (size_t)((uint8_t *)worker - stack));
    if (!failure)
        failure = pthread_create(&worker->thread, &attributes, work_until_stopped, worker);
    pthread_attr_destroy(&attributes);
    if (failure)
        return burin_fail(
                err, BURIN_EIO, "thread %d of %d does not start: %s", i + 2, n_threads,
                strerror(failure));
    return BURIN_OK;
}

enum burin_status burin_cpu_start(
        struct burin_cpu *cpu,
        struct burin_ledger *ledger,
        int n_threads,
        size_t stack_bytes,
        struct burin_error *err)
{
    if (n_threads < 1 || n_threads > BURIN_MAX_THREADS)
        return burin_fail(
                err, BURIN_EUSAGE, "%d threads are asked for, 1 to %d are possible",
                n_threads, BURIN_MAX_THREADS);
    uint64_t address = 0;
    enum burin_status status = burin_ledger_take(
            ledger, "threads", (size_t)(n_threads - 1) * stack_bytes, &address, err);
    if (status)
        return status;
    cpu->stacks = burin_device_host(&cpu->device, address);
    cpu->stack_bytes = stack_bytes;

    /* Signals are for the caller's thread. */
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (!status && cpu->n_started < n_threads - 1) {
        status = start_worker(cpu, cpu->n_started, n_threads, err);
        cpu->n_started += !status;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);

    if (status)
        burin_cpu_stop(cpu);
    else
        cpu->n_threads = n_threads;
    return status;
}

void burin_cpu_stop(struct burin_cpu *cpu)
{
    if (cpu->n_started > 0) {
        begin(cpu, NULL, NULL);
        for (int i = 0; i < cpu->n_started; i++)
            pthread_join(worker_at(cpu, i)->thread, NULL);
    }
    cpu->n_started = 0;
    cpu->n_threads = 1;
}

/* ---- Memory ------------------------------------------------------------------------ */

static struct burin_cpu *cpu_of(struct burin_device *device)
{
    return (struct burin_cpu *)device; /* its head */
}

static enum burin_status memory(
        struct burin_device *device,
        size_t *available,
        size_t *total,
        struct burin_error *err)
{
    (void)device;
    return burin_machine_memory(available, total, err);
}

static enum burin_status obtain(
        struct burin_device *device,
        size_t bytes,
        uint64_t *address,
        struct burin_error *err)
{
    (void)device;
    const size_t huge = BURIN_CPU_HUGE_PAGE;
    const size_t slack = bytes >= huge ? huge : 0;
    uint8_t *mapped =
            mmap(NULL, bytes + slack, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
        return burin_fail(
                err, BURIN_ENOMEM, "the system refuses %zu bytes: %s", bytes + slack,
                strerror(errno));

    if (slack) {
        const size_t before = (huge - (uintptr_t)mapped % huge) % huge;
        if (before)
            munmap(mapped, before);
        if (slack - before)
            munmap(mapped + before + bytes, slack - before);
        mapped += before;
        madvise(mapped, bytes, MADV_HUGEPAGE); /* a wish: small pages also work */
    }
    *address = (uintptr_t)mapped;
    return BURIN_OK;
}

static void release(struct burin_device *device, uint64_t address, size_t bytes)
{
    (void)device;
    munmap((void *)(uintptr_t)address, bytes);
}

static void *host(struct burin_device *device, uint64_t address)
{
    (void)device;
    return (void *)(uintptr_t)address;
}

/* ---- The queue: everything is done when it is put there ------------------------------ */

static enum burin_status queue_open(
        struct burin_device *device, struct burin_queue *queue, struct burin_error *err)
{
    (void)device;
    (void)queue;
    (void)err;
    return BURIN_OK;
}

static void queue_close(struct burin_queue *queue)
{
    (void)queue;
}

static enum burin_status copy_in(
        struct burin_queue *queue,
        uint64_t to,
        const void *from,
        size_t bytes,
        struct burin_error *err)
{
    (void)queue;
    (void)err;
    memcpy((void *)(uintptr_t)to, from, bytes);
    return BURIN_OK;
}

static enum burin_status copy_out(
        struct burin_queue *queue,
        void *to,
        uint64_t from,
        size_t bytes,
        struct burin_error *err)
{
    (void)queue;
    (void)err;
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return BURIN_OK;
}

static enum burin_status copy(
        struct burin_queue *queue,
        uint64_t to,
        uint64_t from,
        size_t bytes,
        struct burin_error *err)
{
    return copy_in(queue, to, (const void *)(uintptr_t)from, bytes, err);
}

struct filling {
    uint8_t *to;
    size_t bytes;
    uint8_t byte;
};

/* Each thread a share of the huge pages, so that it is also the one to meet their faults. */
static void fill_share(const struct burin_team *team, void *argument)
{
    const struct filling *f = argument;
    const size_t unit = BURIN_CPU_HUGE_PAGE;
    const struct burin_share share = burin_share(team, (int)((f->bytes + unit - 1) / unit));
    const size_t from = (size_t)share.begin * unit;
    const size_t to =
            (size_t)share.end * unit < f->bytes ? (size_t)share.end * unit : f->bytes;
    if (from < to)
        memset(f->to + from, f->byte, to - from);
}

static enum burin_status fill(
        struct burin_queue *queue,
        uint64_t to,
        uint8_t byte,
        size_t bytes,
        struct burin_error *err)
{
    (void)err;
    struct filling filling = {
        .to = (uint8_t *)(uintptr_t)to,
        .bytes = bytes,
        .byte = byte,
    };
    burin_cpu_run(cpu_of(queue->device), fill_share, &filling);
    return BURIN_OK;
}

struct running {
    burin_run *run;
    const struct burin_call *call;
};

static void run_share(const struct burin_team *team, void *argument)
{
    const struct running *r = argument;
    r->run(team, r->call);
}

static enum burin_status run(
        struct burin_queue *queue,
        const struct burin_program *program,
        int kv,
        const struct burin_call *call,
        struct burin_error *err)
{
    (void)err;
    struct running running = { .run = program->run[kv], .call = call };
    burin_cpu_run(cpu_of(queue->device), run_share, &running);
    return BURIN_OK;
}

static enum burin_status finish(struct burin_queue *queue, struct burin_error *err)
{
    (void)queue;
    (void)err;
    return BURIN_OK;
}

static enum burin_status event_record(
        struct burin_queue *queue, struct burin_event *event, struct burin_error *err)
{
    (void)queue;
    (void)err;
    event->ms = burin_now_ms();
    return BURIN_OK;
}

static enum burin_status event_wait(struct burin_event *event, struct burin_error *err)
{
    (void)event;
    (void)err;
    return BURIN_OK;
}

static void event_close(struct burin_event *event)
{
    (void)event;
}

void burin_cpu_open(struct burin_cpu *cpu)
{
    static const struct burin_device_ops ops = {
        .memory = memory,
        .obtain = obtain,
        .release = release,
        .host = host,
        .queue_open = queue_open,
        .queue_close = queue_close,
        .copy_in = copy_in,
        .copy_out = copy_out,
        .copy = copy,
        .fill = fill,
        .run = run,
        .finish = finish,
        .event_record = event_record,
        .event_wait = event_wait,
        .event_close = event_close,
    };
    *cpu = (struct burin_cpu){
        .device = { .ops = &ops, .name = "cpu", .granule = BURIN_CPU_PAGE },
        .n_threads = 1,
    };
}
