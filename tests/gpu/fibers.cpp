/* tests/gpu/fibers.cpp -- CUDA threads as fibers: the switch, the scheduler, barriers and warp
 * collectives, copies that take their time.
 *
 * A thread runs until it must wait. In a collective each lane leaves its operands with its warp;
 * the last to arrive computes for all lanes and makes them ready. Nothing here is instrumented
 * when kernels run under ThreadSanitizer: it hears of fibers, barriers and copies by its own
 * interface, and sees the kernels' loads and stores. */
#include "tests/gpu/fibers.h"

#include <mutex>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef FIBERS_ASAN
extern "C" {
void __sanitizer_start_switch_fiber(void **fake, const void *stack, size_t bytes);
void __sanitizer_finish_switch_fiber(void *fake, const void **stack, size_t *bytes);
void __asan_poison_memory_region(const volatile void *address, size_t bytes);
void __asan_unpoison_memory_region(const volatile void *address, size_t bytes);
void *__asan_region_is_poisoned(void *address, size_t bytes);
}
#endif
#ifdef FIBERS_TSAN
extern "C" {
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void __tsan_acquire(void *address);
void __tsan_release(void *address);
void __tsan_read_range(void *address, size_t bytes);
void __tsan_write_range(void *address, size_t bytes);
}
#endif

/* ---- Fibers ----------------------------------------------------------------------------- */

enum {
    MAX_THREADS = 1024,
    MAX_WARPS = MAX_THREADS / 32,
    MAX_COPIES = 256, /* of a thread, under way at once */
    PAGE = 4096,
#if defined(FIBERS_ASAN) || defined(FIBERS_TSAN)
    STACK = 256 * 1024,
#else
    STACK = 64 * 1024,
#endif
    MAX_STACKS = 2 * MAX_THREADS,
    SHARED_ALIGN = 128, /* of dynamic shared memory */
    MAX_SHARED = 96 * 1024,
};

enum kind { SYNC_WARP, SHUFFLE, BALLOT, MMA };
static const char *const kind_names[] = { "__syncwarp", "a shuffle", "a ballot", "mma" };

struct copy {
    void *shared;
    const void *global;
    int group;
};

struct fiber : fiber_place {
    void *stack_pointer; /* while it doesn't run */
    char *stack;
    bool ended;
    int group; /* that copies begin in now */
    int n_copies;
    void *asan_stack; /* its fake stack, while it doesn't run */
    void *tsan;       /* ThreadSanitizer's fiber */
    struct copy copies[MAX_COPIES];
};

/* Bits are lanes. What lanes say and get in a collective lies side by side: that is where the
 * time goes. */
struct warp {
    u32 exist, alive, ready, at_barrier, waiting; /* in a collective */
    u64 call[32]; /* of which kind, in which line, with which mask: call_of() */
    u32 operands[10][32];
    u32 result[4][32];
};

extern "C" {
struct fiber_place *fiber_current;
uint3 fiber_block, fiber_block_dim, fiber_grid_dim;
}

static struct fiber host; /* the thread that launches */
static struct fiber fibers[MAX_THREADS];
static struct warp warps[MAX_WARPS];
static int n_threads, n_alive, n_at_barrier, barrier_line;
static u32 ready_warps;
static const struct fiber_launch *now; /* NULL between launches */
static char *stacks[MAX_STACKS];
#ifdef FIBERS_ASAN
static const void *host_stack;
static size_t host_stack_bytes;
#endif
static char *shared_end,
        *dynamic_shared; /* where its last page ends, where the kernel's part begins */
static size_t dynamic_bytes;

/* Saves what a callee must save on this stack, goes on with the other. */
extern "C" void fiber_switch(void **save, void *to);
__asm__(".text\n"
        ".globl fiber_switch\n"
        ".hidden fiber_switch\n"
        ".type fiber_switch, @function\n"
        "fiber_switch:\n"
        "    push %rbp\n"
        "    push %rbx\n"
        "    push %r12\n"
        "    push %r13\n"
        "    push %r14\n"
        "    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n"
        "    pop %r14\n"
        "    pop %r13\n"
        "    pop %r12\n"
        "    pop %rbx\n"
        "    pop %rbp\n"
        "    ret\n"
        ".size fiber_switch, . - fiber_switch\n");

static inline struct fiber *me(void)
{
    return (struct fiber *)fiber_current;
}

static void switch_to(struct fiber *to)
{
    struct fiber *from = me();
    if (to == from)
        return;
    fiber_current = to;
#ifdef FIBERS_ASAN
    __sanitizer_start_switch_fiber(
            from->ended ? nullptr : &from->asan_stack, to == &host ? host_stack : to->stack,
            to == &host ? host_stack_bytes : (size_t)STACK);
#endif
#ifdef FIBERS_TSAN
    __tsan_switch_to_fiber(to->tsan, 1); /* 1: without the order that a switch would make */
#endif
    fiber_switch(&from->stack_pointer, to->stack_pointer);
#ifdef FIBERS_ASAN
    __sanitizer_finish_switch_fiber(from->asan_stack, nullptr, nullptr);
#endif
}

/* ---- Errors ----------------------------------------------------------------------------- */

static int n_errors;
static char *message_text;
static size_t message_size;

extern "C" void fiber_whereabouts(char *text, size_t text_bytes)
{
    text[0] = 0;
    if (!now || !fiber_current)
        return;
    const uint3 t = fiber_current->thread;
    int n = snprintf(
            text, text_bytes, "%s, block (%u, %u, %u)", now->kernel->name, fiber_block.x,
            fiber_block.y, fiber_block.z);
    if (fiber_current != &host && n > 0 && (size_t)n < text_bytes)
        snprintf(text + n, text_bytes - (size_t)n, ", thread (%u, %u, %u)", t.x, t.y, t.z);
}

__attribute__((format(printf, 2, 3))) static void complain(
        int line, const char *format, ...)
{
    if (n_errors++ > 0 || !message_text || message_size < 2)
        return;
    char where[256], what[512];
    fiber_whereabouts(where, sizeof where);
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    if (line > 0)
        snprintf(message_text, message_size, "%s, line %d: %s", where, line, what);
    else
        snprintf(message_text, message_size, "%s: %s", where, what);
}

/* ---- Scheduler -------------------------------------------------------------------------- */

static uint64_t random_state;

static u32 random_below(u32 n) /* xorshift64* */
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (u32)((random_state * 0x2545F4914F6CDD1DULL >> 32) % n);
}

static int lowest(u32 mask)
{
    return __builtin_ctz(mask);
}

static int one_of(u32 mask)
{
    if (now->order == FIBER_IN_ORDER)
        return lowest(mask);
    if (now->order == FIBER_REVERSE)
        return 31 - __builtin_clz(mask);
    for (u32 skip = random_below((u32)__builtin_popcount(mask)); skip > 0; skip--)
        mask &= mask - 1;
    return lowest(mask);
}

static void make_ready(int warp, u32 lanes)
{
    warps[warp].ready |= lanes;
    if (lanes)
        ready_warps |= 1u << warp;
}

/* The next thread to run, taken out of the ready ones; the host when there is none. In order,
 * a warp goes on as long as it can. */
static struct fiber *take_next(void)
{
    if (!ready_warps)
        return &host;
    int warp = me() == &host ? -1 : me()->warp;
    if (warp < 0 || !warps[warp].ready || now->order == FIBER_RANDOM)
        warp = one_of(ready_warps);
    const int lane = one_of(warps[warp].ready);
    warps[warp].ready &= ~(1u << lane);
    if (!warps[warp].ready)
        ready_warps &= ~(1u << warp);
    return &fibers[warp * 32 + lane];
}

/* This thread waits, or has ended. */
static void leave(void)
{
    switch_to(take_next());
}

/* This thread could go on; by chance it does. */
static void stay(void)
{
    if (now->order == FIBER_RANDOM) {
        make_ready(me()->warp, 1u << me()->lane);
        leave();
    }
}

/* ---- Copies ----------------------------------------------------------------------------- */

static bool in_shared(const void *address, size_t bytes)
{
    const char *p = (const char *)address;
    const struct fiber_kernel *k = now->kernel;
    return (p >= k->shared_begin && p + bytes <= k->shared_end) ||
           (p >= dynamic_shared && p + bytes <= dynamic_shared + dynamic_bytes);
}

static void do_copy(const struct copy *copy)
{
#ifdef FIBERS_TSAN
    __tsan_read_range((void *)copy->global, 16);
    __tsan_write_range(copy->shared, 16);
#endif
#ifdef FIBERS_ASAN
    if (__asan_region_is_poisoned((void *)copy->global, 16) ||
        __asan_region_is_poisoned(copy->shared, 16)) {
        complain(0, "copy_async_16 reads or writes beyond a buffer");
        return;
    }
#endif
    memcpy(copy->shared, copy->global, 16);
}

/* Those of groups before `group` happen; of others, some, where the time is left to chance. */
static void do_copies(int group)
{
    struct fiber *t = me();
    int kept = 0;
    for (int i = 0; i < t->n_copies; i++) {
        const struct copy copy = t->copies[i];
        if (copy.group < group || (now->copies == FIBER_ANY_TIME && random_below(4) == 0))
            do_copy(&copy);
        else
            t->copies[kept++] = copy;
    }
    t->n_copies = kept;
}

extern "C" void fiber_copy_16(void *shared, const void *global, int line)
{
    struct fiber *t = me();
    const struct copy copy = { shared, global, t->group };
    if (((uintptr_t)shared | (uintptr_t)global) % 16 != 0) {
        complain(line, "copy_async_16(%p, %p): not multiples of 16", shared, global);
        return;
    }
    if (!in_shared(shared, 16) || in_shared(global, 1)) {
        complain(line, "copy_async_16(%p, %p): not from global to shared", shared, global);
        return;
    }
#ifdef FIBERS_TSAN /* it may happen from here on; do_copy() says so again where it ends */
    __tsan_read_range((void *)global, 16);
    __tsan_write_range(shared, 16);
#endif
    if (now->copies == FIBER_EARLY ||
        (now->copies == FIBER_ANY_TIME && random_below(2) == 0))
        do_copy(&copy);
    else if (t->n_copies == MAX_COPIES)
        complain(line, "more than %d copies of a thread under way", MAX_COPIES);
    else
        t->copies[t->n_copies++] = copy;
}

extern "C" void fiber_copy_commit(void)
{
    me()->group++;
    do_copies(0);
}

extern "C" void fiber_copy_wait(int n_groups_left)
{
    do_copies(me()->group - n_groups_left);
}

extern "C" void *fiber_dynamic_shared(void)
{
    return dynamic_shared;
}

/* ---- Barrier of a block ----------------------------------------------------------------- */

#ifdef FIBERS_TSAN
static char barrier_order, warp_order[MAX_WARPS], start_order, end_order;
static int tsan_turn; /* which set of fibers runs this block */

/* What each of them did happens before what any of them does next. Said for all at once, by the
 * last to come: one that is far ahead must not order what others do in between. */
static void put_in_order(struct fiber *first, u32 mask, char *order)
{
    for (u32 left = mask; left; left &= left - 1) {
        __tsan_switch_to_fiber(first[lowest(left)].tsan, 1);
        __tsan_release(order);
    }
}

static void take_order(struct fiber *first, u32 mask, char *order)
{
    for (u32 left = mask; left; left &= left - 1) {
        __tsan_switch_to_fiber(first[lowest(left)].tsan, 1);
        __tsan_acquire(order);
    }
}
#endif

static void open_barrier(void)
{
    n_at_barrier = 0;
#ifdef FIBERS_TSAN
    for (int w = 0; w * 32 < n_threads; w++)
        put_in_order(&fibers[w * 32], warps[w].alive, &barrier_order);
    for (int w = 0; w * 32 < n_threads; w++)
        take_order(&fibers[w * 32], warps[w].alive, &barrier_order);
    __tsan_switch_to_fiber(me()->tsan, 1);
#endif
    for (int w = 0; w * 32 < n_threads; w++) {
        make_ready(w, warps[w].at_barrier);
        warps[w].at_barrier = 0;
    }
}

extern "C" void fiber_sync_threads(int line)
{
    struct fiber *t = me();
    if (n_at_barrier == 0)
        barrier_line = line;
    else if (line != barrier_line)
        complain(
                line, "others of the block are in the __syncthreads of line %d",
                barrier_line);
    if (n_alive < n_threads)
        complain(line, "__syncthreads, but %d threads have ended", n_threads - n_alive);
    warps[t->warp].at_barrier |= 1u << t->lane;
    if (++n_at_barrier == n_alive)
        open_barrier();
    leave();
}

/* ---- Collectives of a warp -------------------------------------------------------------- */

static u64 call_of(enum kind kind, u32 mask, int line)
{
    return mask | (u64)(line & 0xffffff) << 32 | (u64)kind << 56;
}

static u32 mask_in(u64 call)
{
    return (u32)call;
}

static int line_in(u64 call)
{
    return (int)(call >> 32 & 0xffffff);
}

static const char *kind_in(u64 call)
{
    return kind_names[call >> 56];
}

static void shuffle(struct warp *warp, u32 mask)
{
    for (u32 left = mask; left; left &= left - 1) {
        const int lane = lowest(left);
        const u32 from = warp->operands[1][lane];
        if (from < 32 && mask >> from & 1) {
            warp->result[0][lane] = warp->operands[0][from];
            continue;
        }
        complain(
                line_in(warp->call[lane]),
                "lane %d shuffles from lane %u, which isn't there", lane, from);
        warp->result[0][lane] = 0x7fffdead;
    }
}

static void ballot(struct warp *warp, u32 mask)
{
    u32 votes = 0;
    for (u32 left = mask; left; left &= left - 1)
        if (warp->operands[0][lowest(left)])
            votes |= 1u << lowest(left);
    for (u32 left = mask; left; left &= left - 1)
        warp->result[0][lowest(left)] = votes;
}

/* Products are exact, sums in floats in the order of k; half a row of d at a time. A quarter of the
 * time of a model goes here. */
static void mma(struct warp *warp)
{
    typedef float half_row __attribute__((vector_size(16)));
    float a[16][16];
    union {
        float at[16][8];
        half_row halves[16][2];
    } b, d;
    for (int l = 0; l < 32; l++) {
        const int g = l / 4, c = 2 * (l % 4);
        for (int i = 0; i < 4; i++) {
            float *pair = &a[g + 8 * (i % 2)][c + 8 * (i / 2)];
            pair[0] = __uint_as_float(warp->operands[i][l] << 16);
            pair[1] = __uint_as_float(warp->operands[i][l] & 0xffff0000u);
        }
        for (int i = 0; i < 2; i++) {
            b.at[c + 8 * i][g] = __uint_as_float(warp->operands[4 + i][l] << 16);
            b.at[c + 8 * i + 1][g] =
                    __uint_as_float(warp->operands[4 + i][l] & 0xffff0000u);
        }
        for (int i = 0; i < 4; i++)
            d.at[g + 8 * (i / 2)][c + i % 2] = __uint_as_float(warp->operands[6 + i][l]);
    }
    for (int m = 0; m < 16; m++) {
        half_row left = d.halves[m][0], right = d.halves[m][1];
        for (int k = 0; k < 16; k++) {
            left += a[m][k] * b.halves[k][0];
            right += a[m][k] * b.halves[k][1];
        }
        d.halves[m][0] = left;
        d.halves[m][1] = right;
    }
    for (int l = 0; l < 32; l++) {
        const int g = l / 4, c = 2 * (l % 4);
        for (int i = 0; i < 4; i++)
            warp->result[i][l] = __float_as_uint(d.at[g + 8 * (i / 2)][c + i % 2]);
    }
}

/* Lanes that came must have come for the same thing. */
static bool agree(const struct warp *warp, u32 mask)
{
    const int first = lowest(mask);
    const u64 call = warp->call[first];
    for (u32 left = mask; left; left &= left - 1) {
        const int lane = lowest(left);
        const u64 other = warp->call[lane];
        if (other == call)
            continue;
        complain(
                line_in(call),
                "lane %d is in %s with mask %08x, lane %d in %s of line %d with mask %08x",
                first, kind_in(call), mask_in(call), lane, kind_in(other), line_in(other),
                mask_in(other));
        return false;
    }
    return true;
}

static void do_collective(struct warp *warp, enum kind kind, u32 lanes)
{
#ifdef FIBERS_TSAN
    if (kind == SYNC_WARP) {
        struct fiber *first = &fibers[me()->warp * 32];
        put_in_order(first, lanes, &warp_order[me()->warp]);
        take_order(first, lanes, &warp_order[me()->warp]);
        __tsan_switch_to_fiber(me()->tsan, 1);
    }
#endif
    if (kind == SHUFFLE)
        shuffle(warp, lanes);
    else if (kind == BALLOT)
        ballot(warp, lanes);
    else if (kind == MMA && lanes == 0xffffffffu)
        mma(warp);
    else if (kind == MMA)
        complain(line_in(warp->call[me()->lane]), "mma with lanes %08x only", lanes);
}

/* All lanes of `mask` meet; operands are in place. */
static void meet(enum kind kind, u32 mask, int line)
{
    const struct fiber *t = me();
    struct warp *warp = &warps[t->warp];
    const u32 own = 1u << t->lane;
    warp->call[t->lane] = call_of(kind, mask, line);
    if (!(mask & own))
        complain(line, "lane %d calls %s with mask %08x", t->lane, kind_names[kind], mask);
    if (mask & warp->exist & ~warp->alive)
        complain(line, "%s, but lanes of mask %08x have ended", kind_names[kind], mask);
    const u32 needed = (mask & warp->alive) | own;
    warp->waiting |= own;
    if ((warp->waiting & needed) != needed) {
        leave();
        return;
    }
    warp->waiting &= ~needed;
    if (agree(warp, needed))
        do_collective(warp, kind, needed);
    make_ready(t->warp, needed & ~own);
    stay();
}

extern "C" void fiber_sync_warp(u32 mask, int line)
{
    meet(SYNC_WARP, mask, line);
}

extern "C" u32 fiber_shuffle(u32 mask, u32 value, int from_lane, int line)
{
    struct warp *warp = &warps[me()->warp];
    const int lane = me()->lane;
    warp->operands[0][lane] = value;
    warp->operands[1][lane] = (u32)from_lane;
    meet(SHUFFLE, mask, line);
    return warp->result[0][lane];
}

extern "C" u32 fiber_ballot(u32 mask, int predicate, int line)
{
    struct warp *warp = &warps[me()->warp];
    const int lane = me()->lane;
    warp->operands[0][lane] = predicate != 0;
    meet(BALLOT, mask, line);
    return warp->result[0][lane];
}

extern "C" void fiber_mma_bf16(float d[4], const u32 a[4], const u32 b[2], int line)
{
    struct warp *warp = &warps[me()->warp];
    const int lane = me()->lane;
    for (int i = 0; i < 4; i++)
        warp->operands[i][lane] = a[i];
    for (int i = 0; i < 2; i++)
        warp->operands[4 + i][lane] = b[i];
    for (int i = 0; i < 4; i++)
        warp->operands[6 + i][lane] = __float_as_uint(d[i]);
    meet(MMA, 0xffffffffu, line);
    for (int i = 0; i < 4; i++)
        d[i] = __uint_as_float(warp->result[i][lane]);
}

/* ---- A block's life --------------------------------------------------------------------- */

/* Not memset: under ASan that would see the room between variables. */
static void fill(char *begin, size_t bytes, int value)
{
    __asm__ volatile("rep stosb" : "+D"(begin), "+c"(bytes) : "a"(value) : "memory");
}

static void thread_ends(void)
{
    struct fiber *t = me();
    if (t->n_copies > 0)
        complain(0, "ends with %d copies that nobody waited for", t->n_copies);
    t->ended = true;
    warps[t->warp].alive &= ~(1u << t->lane);
    n_alive--;
    if (n_alive > 0 && n_at_barrier == n_alive) {
        complain(
                0, "ends while the others are in the __syncthreads of line %d",
                barrier_line);
        open_barrier();
    }
}

static void entry(void)
{
#ifdef FIBERS_ASAN
    const void *stack;
    size_t bytes;
    __sanitizer_finish_switch_fiber(nullptr, &stack, &bytes);
    if (!host_stack) { /* the first fiber comes from the host */
        host_stack = stack;
        host_stack_bytes = bytes;
    }
#endif
    now->kernel->call(now->args);
#ifdef FIBERS_TSAN
    __tsan_release(&end_order);
#endif
    thread_ends();
    leave();
    abort(); /* nobody goes on with what has ended */
}

static char *take_stack(int i)
{
    if (!stacks[i]) {
        char *pages = (char *)mmap(
                nullptr, PAGE + STACK, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (pages == MAP_FAILED || mprotect(pages, PAGE, PROT_NONE) != 0)
            abort();
        stacks[i] = pages + PAGE;
    }
    return stacks[i];
}

#ifdef FIBERS_TSAN
/* ThreadSanitizer forgets who touched the memory before: what is mapped is new to it. Pages
 * at the ends may hold other things, which stay. */
static void forget(char *begin, char *end)
{
    static char kept[1 << 20];
    char *const first = (char *)((uintptr_t)begin & ~(uintptr_t)(PAGE - 1));
    const size_t bytes =
            ((uintptr_t)end - (uintptr_t)first + PAGE - 1) & ~(size_t)(PAGE - 1);
    if ((size_t)(end - begin) <= sizeof(void *) || bytes > sizeof kept)
        return;                        /* a word of the C library's is always there */
    for (size_t i = 0; i < bytes; i++) /* it watches memcpy, whoever calls it */
        kept[i] = ((volatile char *)first)[i];
    if (mmap(first, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
             -1, 0) == MAP_FAILED)
        abort();
    for (size_t i = 0; i < bytes; i++)
        ((volatile char *)first)[i] = kept[i];
}

/* Blocks that run one after another here may run beside each other on a GPU: two sets of fibers
 * take turns, and nothing orders one block's fibers behind the other's. What the host did comes
 * before. (Fibers that live for one block alone would take a millisecond each.) */
static void start_tsan_fibers(void)
{
    static void *sets[2][MAX_THREADS];
    tsan_turn = 1 - tsan_turn;
    __tsan_release(&start_order);
    for (int i = 0; i < n_threads; i++) {
        if (!sets[tsan_turn][i])
            sets[tsan_turn][i] = __tsan_create_fiber(0);
        fibers[i].stack = take_stack(tsan_turn * MAX_THREADS + i);
        fibers[i].tsan = sets[tsan_turn][i];
        __tsan_switch_to_fiber(fibers[i].tsan, 1);
        __tsan_acquire(&start_order);
    }
    __tsan_switch_to_fiber(host.tsan, 1);
}
#endif

static void prepare_shared(void)
{
    const struct fiber_kernel *k = now->kernel;
#ifdef FIBERS_TSAN
    forget(k->shared_begin, k->shared_end);
    forget(dynamic_shared, shared_end);
#endif
    fill(k->shared_begin, (size_t)(k->shared_end - k->shared_begin), 0xff);
    fill(dynamic_shared - SHARED_ALIGN,
         (size_t)(shared_end - dynamic_shared) + SHARED_ALIGN, 0xa5);
    fill(dynamic_shared, dynamic_bytes, 0xff);
}

static void check_around_shared(void)
{
    for (const char *p = dynamic_shared - SHARED_ALIGN; p < shared_end; p++)
        if ((p < dynamic_shared || p >= dynamic_shared + dynamic_bytes) &&
            *p != (char)0xa5) {
            complain(
                    0,
                    "something was written %d bytes from the start of dynamic shared "
                    "memory, "
                    "which has %zu",
                    (int)(p - dynamic_shared), dynamic_bytes);
            return;
        }
}

static void start_threads(void)
{
    const uint3 dim = fiber_block_dim;
    ready_warps = 0;
    n_alive = n_threads;
    n_at_barrier = 0;
#ifdef FIBERS_TSAN
    start_tsan_fibers();
#endif
    for (int i = 0; i < n_threads; i++) {
        struct fiber *t = &fibers[i];
        const u32 n = (u32)i;
        t->thread = uint3{ n % dim.x, n / dim.x % dim.y, n / (dim.x * dim.y) };
        t->lane = i % 32;
        t->warp = i / 32;
        t->n_copies = t->group = 0;
        t->ended = false;
#ifndef FIBERS_TSAN
        t->stack = take_stack(i);
#endif
#ifdef FIBERS_ASAN
        __asan_unpoison_memory_region(t->stack, STACK);
#endif
        void **top = (void **)(t->stack + STACK - 64);
        *--top = nullptr; /* the address that entry would return to */
        *--top = (void *)entry;
        for (int saved = 0; saved < 6; saved++)
            *--top = nullptr;
        t->stack_pointer = top;
    }
    for (int w = 0; w * 32 < n_threads; w++) {
        const int left = n_threads - w * 32;
        const u32 lanes = left >= 32 ? 0xffffffffu : (1u << left) - 1;
        warps[w].exist = warps[w].alive = lanes;
        warps[w].ready = warps[w].at_barrier = warps[w].waiting = 0;
        make_ready(w, lanes);
    }
}

/* Threads wait, and none of them can go on. */
static void report_stuck(void)
{
    for (int i = 0; i < n_threads; i++) {
        const struct warp *warp = &warps[i / 32];
        const u32 own = 1u << i % 32;
        const u64 call = warp->call[i % 32];
        if (!(warp->alive & own))
            continue;
        const bool at_barrier = warp->at_barrier & own;
        complain(
                at_barrier ? barrier_line : line_in(call),
                "thread %d waits in %s for ever; %d of %d threads have ended, %d are in "
                "__syncthreads",
                i, at_barrier ? "__syncthreads" : kind_in(call), n_threads - n_alive,
                n_threads, n_at_barrier);
        return;
    }
}

static void run_block(void)
{
    prepare_shared();
    start_threads();
    switch_to(take_next());
    if (n_alive > 0)
        report_stuck();
    check_around_shared();
}

/* ---- Launches --------------------------------------------------------------------------- */

static u64 greatest_divisor(u64 a, u64 b)
{
    return b ? greatest_divisor(b, a % b) : a;
}

/* Which block comes i-th: a walk through all of them by a step that has no divisor in common
 * with their number. */
static u64 nth_block(u64 i, u64 n, u64 first, u64 step)
{
    if (now->order == FIBER_REVERSE)
        return n - 1 - i;
    return now->order == FIBER_RANDOM ? (u64)(((__uint128_t)i * step + first) % n) : i;
}

static bool can_run(const struct fiber_launch *l)
{
    const u64 threads = (u64)l->block[0] * l->block[1] * l->block[2];
    if (l->grid[0] == 0 || l->grid[1] == 0 || l->grid[2] == 0 || threads == 0)
        complain(0, "an empty launch");
    else if (threads > MAX_THREADS || threads > (u64)l->kernel->max_threads)
        complain(
                0, "%llu threads, but __launch_bounds__ says at most %d", threads,
                l->kernel->max_threads);
    else if (l->shared_bytes > MAX_SHARED)
        complain(0, "%zu bytes of dynamic shared memory", l->shared_bytes);
    else
        return true;
    return false;
}

static void obtain_shared(size_t bytes)
{
    if (!shared_end) {
        char *pages = (char *)mmap(
                nullptr, 2 * PAGE + MAX_SHARED, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED)
            abort();
        shared_end = pages + PAGE + MAX_SHARED;
        if (mprotect(shared_end, PAGE, PROT_NONE) != 0)
            abort();
    }
    dynamic_bytes = bytes;
    dynamic_shared =
            shared_end - (bytes + SHARED_ALIGN - 1) / SHARED_ALIGN * (size_t)SHARED_ALIGN;
}

static void run_blocks(void)
{
    const uint3 grid = fiber_grid_dim;
    const u64 n = (u64)grid.x * grid.y * grid.z;
    const u64 first = random_below((u32)n);
    u64 step = 1 + random_below((u32)n);
    while (greatest_divisor(step, n) != 1)
        step++;
    for (u64 i = 0; i < n; i++) {
        const u64 block = nth_block(i, n, first, step);
        fiber_block = uint3{ (u32)(block % grid.x), (u32)(block / grid.x % grid.y),
                             (u32)(block / grid.x / grid.y) };
        run_block();
        if (n_alive > 0)
            return; /* threads of it hang */
    }
}

extern "C" int fiber_run(
        const struct fiber_launch *launch, char *message, size_t message_bytes)
{
    static std::mutex one_at_a_time;
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    now = launch;
    n_errors = 0;
    message_text = message;
    message_size = message_bytes;
    if (message && message_bytes > 0)
        message[0] = 0;
    random_state = launch->seed * 0x9E3779B97F4A7C15ULL + 0x853C49E6748FEA9BULL;
    fiber_current = &host;
    fiber_grid_dim = uint3{ launch->grid[0], launch->grid[1], launch->grid[2] };
    fiber_block_dim = uint3{ launch->block[0], launch->block[1], launch->block[2] };
#ifdef FIBERS_TSAN
    host.tsan = __tsan_get_current_fiber();
    tsan_turn = 1;
#endif
#ifdef FIBERS_ASAN
    host_stack = nullptr;
#endif
    if (can_run(launch)) {
        n_threads = (int)(launch->block[0] * launch->block[1] * launch->block[2]);
        obtain_shared(launch->shared_bytes);
        run_blocks();
    }
#ifdef FIBERS_TSAN
    __tsan_acquire(&end_order);
#endif
    now = nullptr;
    return n_errors;
}
