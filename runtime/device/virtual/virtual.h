/* runtime/device/virtual/virtual.h -- A GPU that is not there: NVIDIA's driver, NVRTC and NVML
 * as far as we call them, over cards with a set amount of memory.
 *
 * Rehearse  Memory is counted and no byte lies behind an address, kernels are not run, copies
 *           to the host bring zeros, compiling takes no time. `NAME plan --rehearse` runs the
 *           real start-up code on it.
 * Execute   The same with a body (below) that has memory and runs kernels: tests/gpu.
 * Strict    What the driver forbids is answered with its error: memory mapped twice, a wait
 *           while a stream is captured, a handle that was given back. Where it leaves open when
 *           work happens, options say: by default as late as it may. Destroying a stream, freeing
 *           the host's memory and unmapping wait for nothing: work comes right behind them then,
 *           and finds its memory gone.
 *
 * Units     Bytes.
 * Memory    Of its own arena, back in burin_virtual_close(). A handle is never given twice.
 * Threads   The tables may be called from any thread, also at once. The functions here are for
 *           one thread, while no other is in a call of a table.
 * Why       Running out of memory, a neighbour that takes some at the wrong moment, a call that
 *           fails for once: on a real card these come when they like. */
#ifndef BURIN_DEVICE_VIRTUAL_VIRTUAL_H
#define BURIN_DEVICE_VIRTUAL_VIRTUAL_H

#include "runtime/base/status.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/nvml.h"
#include "runtime/device/cuda/nvrtc.h"
#include "runtime/device/virtual/body.h"
#include "runtime/plan/cards.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct burin_virtual; /* private */

enum {
    BURIN_VIRTUAL_CARDS = 4,     /* of a machine, at most */
    BURIN_VIRTUAL_PROCESSES = 2, /* of ours, that share its cards */
    BURIN_VIRTUAL_SCRIPTS = 16,  /* faults, and neighbours' moves, not yet over: of each */
};

/* When work that was put on a stream happens. */
enum burin_virtual_order {
    BURIN_VIRTUAL_LATE,   /* when somebody waits for it */
    BURIN_VIRTUAL_EARLY,  /* at once */
    BURIN_VIRTUAL_RANDOM, /* some of it, of any stream, at every call */
};

struct burin_virtual_options {
    int n_cards; /* 0: a machine with a driver and without a GPU */
    struct burin_card cards[BURIN_VIRTUAL_CARDS];
    int driver_version;   /* as cuDriverGetVersion() says it */
    size_t granule;       /* a power of two; everything on a card takes whole ones */
    bool no_vmm;          /* a platform without virtual memory management */
    bool foreign_pids;    /* NVML numbers processes as we do not, as in a container */
    size_t address_bytes; /* that can be reserved in all; 0: no limit */

    /* What the driver takes by itself. */
    size_t context_bytes; /* of a process on a card */
    size_t module_bytes;  /* of each module that is loaded */
    size_t graph_bytes;   /* of each graph that is instantiated, and more for... */
    size_t node_bytes;    /* ...each of its nodes */
    int local_bytes;      /* of stack that a kernel says it needs; without a body */

    enum burin_virtual_order order;
    uint64_t seed;                         /* of BURIN_VIRTUAL_RANDOM */
    const struct burin_virtual_body *body; /* NULL: rehearse. It outlives the machine. */
};

/* One such card, and of what the driver takes the worst that was met (plan/account.c). */
struct burin_virtual_options burin_virtual_default(const struct burin_card *card);

/* The machine as it is after a boot, selected with its process 0. BURIN_ENOMEM where the host
 * has no memory for the tables, BURIN_EUSAGE for a granule that is no power of two. */
enum burin_status burin_virtual_open(
        struct burin_virtual **machine,
        const struct burin_virtual_options *options,
        struct burin_error *err);

/* Closing NULL does nothing. */
void burin_virtual_close(struct burin_virtual *machine);

/* Whom the tables serve from here on: process number `process` of ours on this machine. */
void burin_virtual_select(struct burin_virtual *machine, int process);

/* The process dies: its memory is free for others. The next call of it is that of a new one. */
void burin_virtual_end(struct burin_virtual *machine, int process);

/* Fill the tables; NULL for those not wanted. Nothing is called: cuInit() and nvmlInit_v2()
 * come behind it. */
void burin_virtual_tables(
        struct burin_driver *driver, struct burin_nvrtc *nvrtc, struct burin_nvml *nvml);

/* ---- Scripts ------------------------------------------------------------------------ */

/* `call` is a name of the tables, "cuMemCreate"; nth counts its calls from here on, from 1. */

enum burin_virtual_fault {
    BURIN_FAULT_ONCE,   /* this call is answered with the error and does nothing */
    BURIN_FAULT_STICKY, /* and so is every later one: the context is lost */
    BURIN_FAULT_LATER, /* the call is answered with 0, its work fails: sticky from then on */
};

/* A call that gives something back has given it back, whatever it answers: the driver's errors
 * there are those of earlier work. */
void burin_virtual_fail(
        struct burin_virtual *machine,
        const char *call,
        int nth,
        int error,
        enum burin_virtual_fault fault);

/* Another process takes so much of card number `card`, at most what is free, just before that
 * call; below 0 it gives back, at most what it has. `call` NULL: any; nth 0: at this moment. */
void burin_virtual_neighbour(
        struct burin_virtual *machine, int card, const char *call, int nth, int64_t bytes);

/* So many bytes of stack for the kernels of this name, from cuModuleGetFunction() on. */
void burin_virtual_set_local(struct burin_virtual *machine, const char *kernel, int bytes);

/* ---- What happened -------------------------------------------------------------------- */

struct burin_virtual_call {
    const char *name; /* "cuMemCreate"; NULL behind the last */
    int n;            /* how often it was called */
};

/* Call number i of the driver's, NVRTC's and NVML's, in the order of the tables. */
struct burin_virtual_call burin_virtual_call(const struct burin_virtual *machine, int i);
int burin_virtual_n_calls(const struct burin_virtual *machine, const char *name);

/* Since the machine was opened. Differences tell what happened in between. */
struct burin_virtual_counts {
    int64_t obtained;     /* calls that obtained memory, addresses or any handle, and memory
                             that the driver took by itself in others */
    int64_t launches;     /* cuLaunchKernel(), captured ones too */
    int64_t graphs;       /* cuGraphLaunch() */
    int64_t kernels;      /* that were run, those of graphs too */
    int64_t copies;       /* that were made, and fills */
    int64_t copied_bytes; /* by copies */
    int64_t torn;         /* copies and fills whose memory was gone when they were due */
};
struct burin_virtual_counts burin_virtual_counts(const struct burin_virtual *machine);

/* What can be created, and must be destroyed. */
enum burin_virtual_kind {
    BURIN_VIRTUAL_CONTEXT,
    BURIN_VIRTUAL_MODULE,
    BURIN_VIRTUAL_STREAM,
    BURIN_VIRTUAL_EVENT,
    BURIN_VIRTUAL_GRAPH,
    BURIN_VIRTUAL_EXEC,      /* a graph that can be launched */
    BURIN_VIRTUAL_MEMORY,    /* of cuMemAlloc() */
    BURIN_VIRTUAL_HANDLE,    /* of cuMemCreate() */
    BURIN_VIRTUAL_ADDRESSES, /* of cuMemAddressReserve() */
    BURIN_VIRTUAL_MAPPING,
    BURIN_VIRTUAL_HOST,    /* pinned memory */
    BURIN_VIRTUAL_PROGRAM, /* of NVRTC */
    BURIN_VIRTUAL_NVML,    /* nvmlInit_v2() without its nvmlShutdown() */
    BURIN_VIRTUAL_N_KINDS
};

struct burin_virtual_held {
    int n;
    size_t bytes;
};

/* What a process has not given back, also what went down with its context. A handle that was
 * released lives on while it is mapped. */
struct burin_virtual_held burin_virtual_held(
        const struct burin_virtual *machine, int process, enum burin_virtual_kind kind);

/* "2 x stream, 1 x handle of 4194304 bytes": of all processes and kinds; "" where there is none.
 * Cut where `capacity` is too small. */
void burin_virtual_held_text(
        const struct burin_virtual *machine, char *text, size_t capacity);

struct burin_virtual_memory {
    size_t total;
    size_t used;      /* by all */
    size_t most_used; /* that it ever was */
    size_t others;    /* by neighbours */
    size_t ours[BURIN_VIRTUAL_PROCESSES];
};
struct burin_virtual_memory burin_virtual_memory(
        const struct burin_virtual *machine, int card);

#endif
