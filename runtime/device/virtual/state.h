/* runtime/device/virtual/state.h -- What a virtual GPU knows; for the files of this folder.
 *
 * Handles  The driver's own types are ours here: a handle is a pointer to one of these structs.
 *          What was given back keeps its struct until the machine is closed, marked dead, so
 *          that a late use is found.
 * Memory   Structs come from the machine's arena. Nodes that are done are used again.
 * Threads  Everything is touched under the one lock that enter.c takes. */
#ifndef BURIN_DEVICE_VIRTUAL_STATE_H
#define BURIN_DEVICE_VIRTUAL_STATE_H

#include "runtime/base/arena.h"
#include "runtime/device/virtual/virtual.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Results that only the driver itself names. */
enum {
    CU_ILLEGAL_STATE = 401,
    CU_CAPTURED_EVENT = 907,
};

/* ---- Calls -------------------------------------------------------------------------- */

#define BURIN_ID(name, ...) CALL_##name,
enum burin_virtual_call_id {
    BURIN_DRIVER_CALLS(BURIN_ID) BURIN_NVRTC_CALLS(BURIN_ID) BURIN_NVML_CALLS(BURIN_ID)
            N_CALLS
};
#undef BURIN_ID

/* Alone in a library of our own they have the driver's names. */
#ifdef BURIN_VIRTUAL_LIBRARY
#define BURIN_VIRTUAL(name) name
#else
#define BURIN_VIRTUAL(name) burin_virtual_##name
#endif

#define BURIN_DECLARE(name, arguments) int BURIN_VIRTUAL(name) arguments;
BURIN_DRIVER_CALLS(BURIN_DECLARE)
#undef BURIN_DECLARE
#define BURIN_DECLARE(name, result, arguments) result BURIN_VIRTUAL(name) arguments;
BURIN_NVRTC_CALLS(BURIN_DECLARE)
BURIN_NVML_CALLS(BURIN_DECLARE)
#undef BURIN_DECLARE

enum { CAPTURE_RELAXED = 2 }; /* nothing is forbidden */

/* What a call needs, and how it behaves. */
enum burin_virtual_needs {
    NEEDS_NOTHING = 0,
    NEEDS_INIT = 1,
    NEEDS_CONTEXT = 2 | NEEDS_INIT, /* a current one */
    NO_CAPTURE = 4,                 /* forbidden while this thread captures */
    GIVES_BACK = 8,                 /* does so even if it answers an error */
    NO_DRIVER = 16,                 /* NVRTC, NVML: errors of the driver are not theirs */
};

/* A function of the tables. What follows is its body, which runs under the lock, unless the
 * call was answered by what all have in common: CALL(cuMemFree_v2, NEEDS_CONTEXT,
 * (uint64_t address), (address)) { ... } */
#define CALL(name, needs, parameters, arguments)                                           \
    static int do_##name parameters;                                                       \
    int BURIN_VIRTUAL(name) parameters                                                     \
    {                                                                                      \
        bool run;                                                                          \
        const int early = burin_virtual_enter(CALL_##name, (needs), &run);                 \
        const int late = run ? do_##name arguments : 0;                                    \
        return burin_virtual_leave(early ? early : late);                                  \
    }                                                                                      \
    static int do_##name parameters

int burin_virtual_enter(enum burin_virtual_call_id id, int needs, bool *run);
int burin_virtual_leave(int result);

/* ---- Things with handles ------------------------------------------------------------- */

/* The head of each. */
struct burin_virtual_item {
    enum burin_virtual_kind kind;
    bool live;
    size_t bytes;                     /* of the card or, pinned, of the host */
    struct burin_cu_context *context; /* that it goes down with; NULL: with the process */
    struct burin_virtual_item *next, *previous;
};

struct burin_virtual_nodes; /* what a graph is made of, shared with those instantiated */

struct burin_cu_stream {
    struct burin_virtual_item item;
    struct burin_cu_node *first, *last; /* not yet done */
    uint64_t n_put, n_done;
    struct burin_virtual_nodes *captured; /* NULL: not capturing */
    int capture_mode;
    bool capture_invalid;
    pthread_t capture_thread;
    struct burin_cu_stream *next_leaving;
};

struct burin_cu_event {
    struct burin_virtual_item item;
    struct burin_cu_stream *stream; /* NULL: never recorded */
    uint64_t place;                 /* in the stream: done when n_done has reached it */
    bool untimed;
    bool captured; /* recorded while its stream captured: nothing to wait for */
    double ms;
};

struct burin_cu_context {
    struct burin_virtual_item item;
    int card;
    int n_retained;
    size_t limits[3];               /* by enum burin_cu_limit */
    size_t code_bytes;              /* of modules */
    size_t code_taken;              /* for these, in granules */
    size_t local_taken;             /* for stacks */
    struct burin_cu_stream *stream; /* the default one */
};

struct burin_cu_module {
    struct burin_virtual_item item;
    void *loaded; /* the body's */
};

struct burin_cu_function {
    struct burin_cu_module *module;
    struct burin_virtual_kernel kernel;
    int max_dynamic_shared;
};

struct burin_cu_graph {
    struct burin_virtual_item item;
    struct burin_virtual_nodes *nodes;
};

struct burin_cu_exec {
    struct burin_virtual_item item;
    struct burin_virtual_nodes *nodes;
};

/* cuMemAlloc, cuMemCreate, cuMemAddressReserve, cuMemMap and cuMemHostAlloc. */
struct burin_virtual_piece {
    struct burin_virtual_item item;
    int card;
    uint64_t address;
    uint64_t memory; /* the body's */
    /* A handle's. */
    int n_mapped;
    bool released;
    /* A mapping's. */
    struct burin_virtual_piece *handle;
    bool may_access;
};

struct burin_nvrtc_program {
    struct burin_virtual_item item;
    const char *name;
    int arch; /* as asked for, 90; 0: not compiled */
    char cubin[128];
    char log[512];
};

struct burin_nvml_device {
    int card;
};

/* ---- Work on streams -------------------------------------------------------------------- */

enum burin_virtual_work {
    WORK_LAUNCH,
    WORK_COPY_IN,
    WORK_COPY_OUT,
    WORK_COPY,
    WORK_FILL,
    WORK_RECORD, /* an event */
    WORK_WAIT,   /* for one */
    WORK_GRAPH,
};

struct burin_cu_node {
    struct burin_cu_node *next;
    enum burin_virtual_work work;
    int error; /* of a fault: what it ends with */
    union {
        struct {
            struct burin_virtual_launch launch;
            struct burin_virtual_kernel kernel;
        } run;
        struct {
            uint64_t to;
            uint64_t from;
            void *host; /* where one of the two is the host's */
            bool pinned;
            size_t bytes;
        } copy;
        struct {
            uint64_t to;
            uint32_t value;
            int width;
            size_t n;
        } fill;
        struct {
            struct burin_cu_event *event;   /* to be recorded */
            struct burin_cu_stream *stream; /* to be waited for, until... */
            uint64_t place;                 /* ...there */
        } mark;
        struct burin_cu_exec *exec;
    };
};

struct burin_virtual_nodes {
    int n_owners;
    size_t n;
    struct burin_cu_node *first, *last;
};

/* ---- The machine -------------------------------------------------------------------------- */

struct burin_virtual_process {
    struct burin_virtual *machine;
    uint64_t
            life; /* other than that of every process before: a thread's context is of one */
    bool started;    /* cuInit() */
    int n_nvml;      /* nvmlInit_v2() without nvmlShutdown() */
    int n_capturing; /* streams */
    int lost;        /* the sticky error that its contexts died of, or 0 */
    struct burin_cu_context *contexts[BURIN_VIRTUAL_CARDS];
    struct burin_cu_stream *leaving; /* destroyed, with work that is not done */
    size_t addresses;                /* bytes of them that are reserved */
    struct burin_virtual_item *items[BURIN_VIRTUAL_N_KINDS];
    struct burin_virtual_held
            abandoned[BURIN_VIRTUAL_N_KINDS]; /* down with their context */
};

struct burin_virtual_script {
    int n_left;                      /* calls until it happens; 0: over */
    enum burin_virtual_call_id call; /* N_CALLS: any */
    int error;
    enum burin_virtual_fault fault;
    int card;
    int64_t bytes;
};

struct burin_virtual_local {
    struct burin_virtual_local *next;
    const char *kernel;
    int bytes;
};

struct burin_virtual {
    struct burin_arena arena;
    struct burin_virtual_options options;
    const struct burin_virtual_body *body; /* or NULL */
    struct burin_virtual_process processes[BURIN_VIRTUAL_PROCESSES];
    struct burin_virtual_memory cards[BURIN_VIRTUAL_CARDS];
    struct burin_nvml_device nvml[BURIN_VIRTUAL_CARDS];
    uint64_t next_address; /* where no body gives them */
    int n_calls[N_CALLS];
    struct burin_virtual_counts counts;
    struct burin_virtual_script faults[BURIN_VIRTUAL_SCRIPTS];
    struct burin_virtual_script moves[BURIN_VIRTUAL_SCRIPTS];
    int next_work_fails; /* with this error */
    int answer;          /* of a call whose body runs all the same */
    struct burin_virtual_local *locals;
    struct burin_cu_node *spare; /* nodes that are done */
    uint64_t random;
    double ms; /* the card's clock: each piece of work takes a hundredth */
};

/* Whom the tables serve at this moment, and the context that is current to this thread, or
 * NULL: enter.c. */
struct burin_virtual_process *burin_virtual_self(void);
void burin_virtual_set_self(struct burin_virtual_process *process);
struct burin_cu_context *burin_virtual_current(void);
void burin_virtual_set_current(struct burin_cu_context *context);
void burin_virtual_lock(void);
void burin_virtual_unlock(void);
/* A number that no process had. */
uint64_t burin_virtual_life(void);

/* script.c: let happen what is due at this call. The error it is to be answered with, or 0. */
int burin_virtual_due(
        struct burin_virtual *machine, enum burin_virtual_call_id id, int needs);
/* N_CALLS for a name that is in no table. */
enum burin_virtual_call_id burin_virtual_call_id(const char *name);
const char *burin_virtual_call_name(int id);

/* ---- Items and bytes: item.c --------------------------------------------------------- */

/* A new item of its kind, zeroed but for its head, or NULL. `size` is of the whole struct. */
void *burin_virtual_new(
        enum burin_virtual_kind kind, size_t size, struct burin_cu_context *context);
/* It is dead from here on. */
void burin_virtual_drop(struct burin_virtual_item *item);
/* Whether a handle is one, of that kind, of this process. */
bool burin_virtual_is(const struct burin_virtual_item *item, enum burin_virtual_kind kind);

/* What is left of a card. Taking and giving are in whole granules: what was really taken is
 * the result of burin_virtual_rounded(). CU_OUT_OF_MEMORY leaves all as it was. */
size_t burin_virtual_left(const struct burin_virtual *machine, int card);
size_t burin_virtual_rounded(const struct burin_virtual *machine, size_t bytes);
int burin_virtual_take(int card, size_t bytes);
void burin_virtual_give(int card, size_t bytes);

/* Whether all of it may be read and written: memory.c. */
bool burin_virtual_accessible(uint64_t address, size_t bytes);
/* The piece that the address lies in, or NULL. */
struct burin_virtual_piece *burin_virtual_piece_at(
        enum burin_virtual_kind kind, uint64_t address);
/* Addresses, of a body or counted up; 0 where there are none. */
uint64_t burin_virtual_reserve(size_t bytes, size_t align);
/* Whether it is pinned. */
bool burin_virtual_pinned(const void *memory, size_t bytes);
/* Give back a piece of any kind. */
void burin_virtual_free_piece(struct burin_virtual_piece *piece);

/* stream.c */
struct burin_cu_node *burin_virtual_node(enum burin_virtual_work work);
int burin_virtual_put(struct burin_cu_stream *stream, struct burin_cu_node *node);
/* NULL: the context's own; CU_INVALID_HANDLE where it is none. */
int burin_virtual_stream(struct burin_cu_stream **stream);
void burin_virtual_do(struct burin_cu_node *node);
void burin_virtual_drain(struct burin_cu_stream *stream, uint64_t place);
void burin_virtual_drain_all(void);
/* CU_CAPTURE_UNSUPPORTED where it captures, which is invalid then. */
int burin_virtual_no_capture(struct burin_cu_stream *stream);

/* module.c: at least so many bytes of stack for each thread of a context. */
int burin_virtual_need_local(struct burin_cu_context *context, size_t bytes);

/* device.c: that stack, of all threads that run at once; shared memory of a block, at most. */
size_t burin_virtual_local_bytes(const struct burin_cu_context *context, size_t bytes);
int burin_virtual_shared_opt_in(int card);

/* graph.c */
void burin_virtual_release_nodes(struct burin_virtual_nodes *nodes);

/* Everything that a context, or the process that is served, still has: destroy.c. */
void burin_virtual_destroy_context(struct burin_cu_context *context);
void burin_virtual_destroy_process(void);

#endif
