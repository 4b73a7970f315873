/* tests/gpu/runner.cpp -- Runs kernels of shared objects on given buffers, in several orders, for
 * harness.lua.
 *
 *   runner JOB      a text; the words of its lines:
 *
 *     library PATH NAME         kernel NAME of a shared object, for the launches that follow
 *     data PATH                 where buffers' bytes are
 *     buffer NAME KIND BYTES OFFSET     KIND in: read only; inout; out: poisoned, OFFSET ignored;
 *                               scratch: so is this, and other launches may leave other bytes there
 *     launch FUNCTION THREADS SHARED N  of the library: int FUNCTION(int *ints, unsigned *grid)
 *       buffer NAME | int VALUE | made  ... N arguments; `made` is one that FUNCTION fills
 *     again                     launches that follow are in place of those before
 *     run ORDER COPIES SEED     numbers of fibers.h; each starts from the given buffers
 *     result PATH               where buffers that are not `in` go, in turn
 *
 * A buffer ends, but for less than 16 bytes, at a page that nobody may touch. Every run must
 * leave the same bytes. Exit status: 0; 1 with what is wrong, in words; 3 after a signal. */
#include "tests/gpu/fibers.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#ifdef FIBERS_ASAN
extern "C" void __asan_poison_memory_region(const volatile void *address, size_t bytes);
#endif

struct buffer {
    std::string name;
    bool written, given, scratch;
    size_t bytes, offset;
    char *pages, *begin, *end; /* [begin, begin + bytes) is the kernel's, `end` nobody's */
    std::vector<char> first;   /* what the first run left */
};

struct argument {
    int buffer; /* or -1: an int */
    int value;
};

struct launch {
    const struct fiber_kernel *kernel;
    void (*fill)(int *ints, unsigned *grid);
    unsigned threads;
    size_t shared_bytes;
    std::vector<struct argument> arguments;
};

struct run {
    int order, copies;
    unsigned long long seed;
};

static std::vector<struct buffer> buffers;
static std::vector<std::vector<struct launch>> launches(1); /* the second: after `again` */
static std::vector<struct run> runs;
static std::vector<char> data;
static const size_t page = 4096, front = 4096;

#define FAIL(...) (printf(__VA_ARGS__), putchar('\n'), fflush(stdout), _exit(1))

/* ---- A kernel that crashes --------------------------------------------------------------- */

static void on_signal(int number, siginfo_t *info, void *)
{
    char where[300], text[700];
    const char *address = (const char *)info->si_addr;
    fiber_whereabouts(where, sizeof where);
    int n = snprintf(
            text, sizeof text, "%s: %s", where,
            number == SIGILL ? "an address is not a multiple of what is loaded from it"
                             : "");
    if (number != SIGILL)
        n = snprintf(text, sizeof text, "%s: %s at %p", where, strsignal(number), address);
    for (const struct buffer &b : buffers) {
        if (number == SIGILL || address < b.pages || address >= b.end + page)
            continue;
        if (address >= b.begin && address < b.end)
            n += snprintf(
                    text + n, sizeof text - (size_t)n, ", writes into input %s",
                    b.name.c_str());
        else
            n += snprintf(
                    text + n, sizeof text - (size_t)n, ", byte %ld of %s, which has %zu",
                    (long)(address - b.begin), b.name.c_str(), b.bytes);
    }
    text[n] = '\n';
    if (write(STDOUT_FILENO, text, (size_t)n + 1) < 0)
        _exit(4);
    _exit(3);
}

static void catch_signals(void)
{
    stack_t stack = {};
    stack.ss_size = 256 * 1024;
    stack.ss_sp = malloc(stack.ss_size);
    sigaltstack(&stack, nullptr);
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int number : { SIGSEGV, SIGBUS, SIGILL, SIGFPE })
        sigaction(number, &action, nullptr);
}

/* ---- The job ----------------------------------------------------------------------------- */

static std::vector<char> read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        FAIL("%s: can't be read", path);
    fseek(file, 0, SEEK_END);
    std::vector<char> bytes((size_t)ftell(file));
    rewind(file);
    if (fread(bytes.data(), 1, bytes.size(), file) != bytes.size())
        FAIL("%s: can't be read", path);
    fclose(file);
    return bytes;
}

static void obtain(struct buffer *b)
{
    const size_t rounded = (b->bytes + 15) & ~(size_t)15;
    const size_t inside = (front + rounded + page - 1) / page * page;
    b->pages = (char *)mmap(
            nullptr, inside + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
            0);
    if (b->pages == MAP_FAILED)
        FAIL("no memory for %s", b->name.c_str());
    b->end = b->pages + inside;
    b->begin = b->end - rounded;
    mprotect(b->end, page, PROT_NONE);
    mprotect(b->pages, page, PROT_NONE);
#ifdef FIBERS_ASAN
    __asan_poison_memory_region(b->begin + b->bytes, rounded - b->bytes);
#endif
}

static int buffer_named(const char *name)
{
    for (size_t i = 0; i < buffers.size(); i++)
        if (buffers[i].name == name)
            return (int)i;
    FAIL("no buffer %s", name);
    return -1;
}

static void check_signature(const struct launch &l)
{
    const struct fiber_kernel *k = l.kernel;
    if (k->n_args != (int)l.arguments.size())
        FAIL("%s takes %d arguments, args names %zu", k->name, k->n_args,
             l.arguments.size());
    for (int i = 0; i < k->n_args; i++) {
        const bool pointer = l.arguments[(size_t)i].buffer >= 0;
        if (k->arg_bytes[i] != (pointer ? 8 : 4))
            FAIL("%s: argument %d has %d bytes, args gives %s", k->name, i + 1,
                 k->arg_bytes[i], pointer ? "an address" : "an int");
    }
}

static const char *read_job(const char *path)
{
    static char result[1024];
    char word[64], name[1024], kind[64];
    void *library = nullptr;
    const struct fiber_kernel *kernel = nullptr;
    FILE *job = fopen(path, "r");
    if (!job)
        FAIL("%s: can't be read", path);
    while (fscanf(job, "%63s", word) == 1) {
        struct buffer b = {};
        struct launch l = {};
        struct run r = {};
        int n = 0;
        if (!strcmp(word, "library") && fscanf(job, "%1023s %63s", name, kind) == 2) {
            library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
            if (!library)
                FAIL("%s", dlerror());
            const std::string symbol = std::string("fiber_kernel_") + kind;
            kernel = (const struct fiber_kernel *)dlsym(library, symbol.c_str());
            if (!kernel)
                FAIL("%s", dlerror());
        } else if (!strcmp(word, "data") && fscanf(job, "%1023s", name) == 1) {
            data = read_file(name);
        } else if (
                !strcmp(word, "buffer") &&
                fscanf(job, "%1023s %63s %zu %zu", name, kind, &b.bytes, &b.offset) == 4) {
            b.name = name;
            b.written = strcmp(kind, "in") != 0;
            b.scratch = strcmp(kind, "scratch") == 0;
            b.given = strcmp(kind, "out") != 0 && !b.scratch;
            obtain(&b);
            buffers.push_back(b);
        } else if (
                !strcmp(word, "launch") && fscanf(job, "%1023s %u %zu %d", name, &l.threads,
                                                  &l.shared_bytes, &n) == 4) {
            l.kernel = kernel;
            l.fill = (void (*)(int *, unsigned *))dlsym(library, name);
            for (int i = 0; i < n; i++) {
                struct argument a = { -1, 0 };
                if (fscanf(job, "%63s", kind) != 1)
                    FAIL("%s: cut short", path);
                if (!strcmp(kind, "buffer") && fscanf(job, "%1023s", name) == 1)
                    a.buffer = buffer_named(name);
                else if (!strcmp(kind, "int") && fscanf(job, "%d", &a.value) != 1)
                    FAIL("%s: an int is missing", path);
                l.arguments.push_back(a);
            }
            check_signature(l);
            launches.back().push_back(l);
        } else if (
                !strcmp(word, "run") &&
                fscanf(job, "%d %d %llu", &r.order, &r.copies, &r.seed) == 3) {
            runs.push_back(r);
        } else if (!strcmp(word, "again")) {
            launches.emplace_back();
        } else if (!strcmp(word, "result") && fscanf(job, "%1023s", result) == 1) {
            continue;
        } else {
            FAIL("%s: '%s' isn't understood", path, word);
        }
    }
    fclose(job);
    return result;
}

/* ---- Runs ---------------------------------------------------------------------------------- */

static void prepare_buffers(void)
{
    for (struct buffer &b : buffers) {
        mprotect(b.pages + page, (size_t)(b.end - b.pages) - page, PROT_READ | PROT_WRITE);
        if (b.given)
            memcpy(b.begin, data.data() + b.offset, b.bytes);
        else
            memset(b.begin, 0xff, b.bytes); /* NaN in every format, and no index */
#ifndef FIBERS_ASAN
        memset(b.begin + b.bytes, 0xa5, (size_t)(b.end - b.begin) - b.bytes);
#endif
        if (!b.written)
            mprotect(b.pages + page, (size_t)(b.end - b.pages) - page, PROT_READ);
    }
}

static void check_buffers(const std::vector<struct launch> &all, const struct run &r)
{
    for (struct buffer &b : buffers) {
#ifndef FIBERS_ASAN
        for (const char *p = b.begin + b.bytes; p < b.end; p++)
            if (*p != (char)0xa5)
                FAIL("%s has %zu bytes, something was written to byte %ld", b.name.c_str(),
                     b.bytes, (long)(p - b.begin));
#endif
        if (!b.written)
            continue;
        if (b.first.empty())
            b.first.assign(b.begin, b.begin + b.bytes);
        for (size_t i = 0; i < b.bytes; i++)
            if (b.first[i] != b.begin[i])
                FAIL("byte %zu of %s, behind %s, isn't what it was in the first run: "
                     "order %d, copies %d, seed %llu",
                     i, b.name.c_str(), all.back().kernel->name, r.order, r.copies, r.seed);
    }
}

static void run_launch(const struct launch &l, const struct run &r)
{
    const size_t n = l.arguments.size();
    std::vector<int> ints(n);
    std::vector<void *> pointers(n), args(n);
    struct fiber_launch launch = {};
    char message[900];
    for (size_t i = 0; i < n; i++) {
        const struct argument &a = l.arguments[i];
        ints[i] = a.value;
        pointers[i] = a.buffer < 0 ? nullptr : buffers[(size_t)a.buffer].begin;
        args[i] = a.buffer < 0 ? (void *)&ints[i] : (void *)&pointers[i];
    }
    l.fill(ints.data(), launch.grid);
    launch.kernel = l.kernel;
    launch.args = args.data();
    launch.block[0] = l.threads;
    launch.block[1] = launch.block[2] = 1;
    launch.shared_bytes = l.shared_bytes;
    launch.order = (enum fiber_order)r.order;
    launch.copies = (enum fiber_copies)r.copies;
    launch.seed = r.seed;
    if (fiber_run(&launch, message, sizeof message) != 0)
        FAIL("%s\n(order %d, copies %d, seed %llu)", message, r.order, r.copies, r.seed);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        FAIL("usage: runner JOB");
    const char *result = read_job(argv[1]);
    catch_signals();
    for (const std::vector<struct launch> &all : launches) {
        for (struct buffer &b : buffers)
            if (b.scratch)
                b.first.clear();
        for (const struct run &r : runs) {
            prepare_buffers();
            for (const struct launch &l : all)
                run_launch(l, r);
            check_buffers(all, r);
        }
    }
    FILE *file = fopen(result, "wb");
    if (!file)
        FAIL("%s: can't be written", result);
    for (const struct buffer &b : buffers)
        if (b.written)
            fwrite(b.begin, 1, b.bytes, file);
    return fclose(file) ? 1 : 0;
}
