/* tests/gpu/execute.cpp -- A virtual GPU that runs kernels: the body of runtime/device/virtual with
 * memory behind its addresses and fibers for threads. libburin-gpu.so is made of it.
 *
 *   BURIN_CUDA_DRIVER=build/.../libburin-gpu.so.1 BURIN_NVRTC=(the same) BURIN_NVML=(the same)
 *
 * An address of the device is one of this process. Kernels are shared objects, as compiler.cpp
 * makes them. What a GPU would not forgive is written to stderr and answered with
 * CU_LAUNCH_FAILED; a kernel that touches an address that is not there ends the process, with
 * its name and thread.
 *
 *   BURIN_GPU_CARD    "rtx4090", "4GiB,sm_80" (the default): what `plan --card` takes
 *   BURIN_GPU_ORDER   in_order | reverse | random: which thread goes on
 *   BURIN_GPU_COPIES  late | early | any_time: when asynchronous copies to shared memory happen
 *   BURIN_GPU_STREAMS late | early | random: when work on streams happens
 *   BURIN_GPU_SEED    of all that is random
 *   BURIN_GPU_POISON  MiB of memory, the first that is created, that begin as NaN; 64
 *   BURIN_GPU_GUARD   1: the host must not touch the device's memory; else it could
 *   BURIN_GPU_LEAKS   1: what was not given back is told at the end
 *
 * Threads  Under the virtual driver's lock, all of it. */
#include "tests/gpu/fibers.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored                                                             \
        "-Wshadow" /* in C a function may be called as its struct is */
extern "C" {
#include "runtime/device/virtual/virtual.h"
}
#pragma GCC diagnostic pop

#include <dlfcn.h>
#include <map>
#include <memory>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "tests/gpu/image.h"

static const size_t MIB = (size_t)1 << 20;

static struct {
    enum fiber_order order;
    enum fiber_copies copies;
    unsigned long long seed, n_launches;
    size_t poison_left;
    bool guard;
    std::map<uint64_t, size_t> open; /* addresses that may be accessed -> bytes */
    struct burin_virtual *machine;
} gpu;

/* ---- Memory ------------------------------------------------------------------------------- */

static char *at(uint64_t address)
{
    return (char *)(uintptr_t)address;
}

static uint64_t reserve(void *, size_t bytes, size_t align)
{
    char *pages = (char *)mmap(
            nullptr, bytes + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
            -1, 0);
    if (pages == MAP_FAILED)
        return 0;
    const uint64_t first = (uint64_t)(uintptr_t)pages;
    const uint64_t address = (first + align - 1) / align * align;
    if (address > first)
        munmap(pages, address - first);
    if (address + bytes < first + bytes + align)
        munmap(at(address + bytes), first + align - address);
    return address;
}

static void unreserve(void *, uint64_t address, size_t bytes)
{
    munmap(at(address), bytes);
}

/* A handle is a file without a name; 0 is none. */
static uint64_t create(void *, size_t bytes)
{
    const int file = memfd_create("burin-gpu", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)bytes) != 0)
        return 0;
    const size_t poisoned = bytes < gpu.poison_left ? bytes : gpu.poison_left;
    if (poisoned > 0) {
        void *pages = mmap(nullptr, poisoned, PROT_WRITE, MAP_SHARED, file, 0);
        if (pages != MAP_FAILED) {
            memset(pages, 0xff, poisoned);
            munmap(pages, poisoned);
        }
        gpu.poison_left -= poisoned;
    }
    return (uint64_t)file + 1;
}

static void destroy(void *, uint64_t memory, size_t)
{
    close((int)memory - 1);
}

static bool map(void *, uint64_t address, size_t bytes, uint64_t memory)
{
    return mmap(at(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, (int)memory - 1,
                0) != MAP_FAILED;
}

static void unmap(void *, uint64_t address, size_t bytes)
{
    gpu.open.erase(address);
    mmap(at(address), bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static void set_access(void *, uint64_t address, size_t bytes, bool allowed)
{
    gpu.open.erase(address);
    if (allowed)
        gpu.open[address] = bytes;
    mprotect(
            at(address), bytes, allowed && !gpu.guard ? PROT_READ | PROT_WRITE : PROT_NONE);
}

/* While one of these lives, the device's memory can be touched. */
struct opened {
    opened()
    {
        protect(PROT_READ | PROT_WRITE);
    }
    ~opened()
    {
        protect(PROT_NONE);
    }
    static void protect(int how)
    {
        if (gpu.guard)
            for (const auto &range : gpu.open)
                mprotect(at(range.first), range.second, how);
    }
};

static void copy_in(void *, uint64_t to, const void *from, size_t bytes)
{
    const struct opened memory;
    memcpy(at(to), from, bytes);
}

static void copy_out(void *, void *to, uint64_t from, size_t bytes)
{
    const struct opened memory;
    memcpy(to, at(from), bytes);
}

static void copy(void *, uint64_t to, uint64_t from, size_t bytes)
{
    const struct opened memory;
    memmove(at(to), at(from), bytes);
}

/* Zeros that fill whole pages take no memory of the host's. */
static void fill(void *, uint64_t to, uint32_t value, int width, size_t n)
{
    const struct opened memory;
    const size_t bytes = n * (size_t)width;
    char *begin = at(to), *end = begin + bytes;
    if (value == 0 && bytes >= MIB) {
        char *first = at((to + 4095) & ~4095ULL), *last = at((to + bytes) & ~4095ULL);
        if (madvise(first, (size_t)(last - first), MADV_REMOVE) == 0) {
            memset(begin, 0, (size_t)(first - begin));
            memset(last, 0, (size_t)(end - last));
            return;
        }
    }
    if (width == 1)
        memset(begin, (int)value, n);
    else
        for (size_t i = 0; i < n; i++)
            memcpy(begin + 4 * i, &value, 4);
}

/* ---- Kernels -------------------------------------------------------------------------------- */

struct known_kernel {
    const struct fiber_kernel *fiber;
    std::vector<int> argument_bytes;
};

struct module {
    int file; /* open as long as the library: its path is the name that the loader knows */
    void *library;
    std::map<std::string, std::unique_ptr<struct known_kernel>> kernels;
};

/* Kernels call fiber_*, which this library has: it must be visible to what is opened later. */
static void become_global(void)
{
    static bool done;
    Dl_info info;
    if (!done && dladdr((void *)become_global, &info))
        dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
    done = true;
}

static int load(void *, const void *bytes, void **module)
{
    const struct image *image = (const struct image *)bytes;
    if (memcmp(image->magic, IMAGE_MAGIC, sizeof image->magic) != 0)
        return CU_INVALID_IMAGE;
    become_global();
    struct module *m = new struct module();
    m->file = memfd_create("burin-kernel", MFD_CLOEXEC);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", m->file);
    size_t written = 0;
    while (m->file >= 0 && written < image->bytes) {
        const ssize_t n =
                write(m->file, (const char *)(image + 1) + written, image->bytes - written);
        if (n <= 0)
            break;
        written += (size_t)n;
    }
    m->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!m->library) {
        fprintf(stderr, "burin-gpu: %s\n", dlerror());
        close(m->file);
        delete m;
        return CU_INVALID_IMAGE;
    }
    *module = m;
    return CU_OK;
}

static void unload(void *, void *module)
{
    struct module *m = (struct module *)module;
    dlclose(m->library);
    close(m->file);
    delete m;
}

static int find_kernel(
        void *, void *module, const char *name, struct burin_virtual_kernel *found)
{
    struct module *m = (struct module *)module;
    const std::string symbol = std::string("fiber_kernel_") + name;
    const struct fiber_kernel *fiber =
            (const struct fiber_kernel *)dlsym(m->library, symbol.c_str());
    if (!fiber || fiber->n_args > BURIN_VIRTUAL_ARGUMENTS)
        return CU_NOT_FOUND;
    std::unique_ptr<struct known_kernel> &own = m->kernels[name];
    if (!own) {
        own.reset(new known_kernel());
        own->fiber = fiber;
        own->argument_bytes.assign(fiber->arg_bytes, fiber->arg_bytes + fiber->n_args);
    }
    found->function = own.get();
    found->n_arguments = fiber->n_args;
    found->argument_bytes = own->argument_bytes.data();
    found->static_shared_bytes = (int)(fiber->shared_end - fiber->shared_begin);
    found->registers = 32;
    found->max_threads = fiber->max_threads;
    return CU_OK;
}

static int run(void *, const struct burin_virtual_launch *what)
{
    void *args[BURIN_VIRTUAL_ARGUMENTS];
    char message[900];
    struct fiber_launch launch = {};
    launch.kernel = ((const struct known_kernel *)what->kernel->function)->fiber;
    for (int i = 0; i < what->kernel->n_arguments; i++)
        args[i] = (void *)(uintptr_t)&what->arguments[i];
    launch.args = args;
    memcpy(launch.grid, what->blocks, sizeof launch.grid);
    memcpy(launch.block, what->threads, sizeof launch.block);
    launch.shared_bytes = what->shared_bytes;
    launch.order = gpu.order;
    launch.copies = gpu.copies;
    launch.seed = gpu.seed + gpu.n_launches++;
    const struct opened memory;
    if (fiber_run(&launch, message, sizeof message) == 0)
        return CU_OK;
    fprintf(stderr, "burin-gpu: %s\n", message);
    return CU_LAUNCH_FAILED;
}

/* ---- The machine ---------------------------------------------------------------------------- */

static const struct burin_virtual_body *the_body(void)
{
    static struct burin_virtual_body body;
    body.reserve = reserve;
    body.unreserve = unreserve;
    body.create = create;
    body.destroy = destroy;
    body.map = map;
    body.unmap = unmap;
    body.access = set_access;
    body.load = load;
    body.unload = unload;
    body.kernel = find_kernel;
    body.launch = run;
    body.copy_in = copy_in;
    body.copy_out = copy_out;
    body.copy = copy;
    body.fill = fill;
    return &body;
}

static void on_signal(int number, siginfo_t *info, void *)
{
    char where[300], text[500];
    fiber_whereabouts(where, sizeof where);
    if (where[0]) {
        const int n = snprintf(
                text, sizeof text, "burin-gpu: %s: %s at %p\n", where, strsignal(number),
                info->si_addr);
        if (write(STDERR_FILENO, text, (size_t)n) < 0)
            _exit(1);
    }
    signal(number, SIG_DFL);
    raise(number);
}

/* Where the kernel's own stack may be the one that is full. */
static void tell_signals(void)
{
    static char stack[64 * 1024];
    stack_t other = {};
    other.ss_sp = stack;
    other.ss_size = sizeof stack;
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaltstack(&other, nullptr);
    for (int number : { SIGSEGV, SIGBUS, SIGILL, SIGFPE })
        sigaction(number, &action, nullptr);
}

static const char *setting(const char *name, const char *otherwise)
{
    const char *text = getenv(name);
    return text && *text ? text : otherwise;
}

/* Which of three words a variable says. */
static int choice(const char *name, const char *const words[3])
{
    const char *text = setting(name, words[0]);
    for (int i = 0; i < 3; i++)
        if (!strcmp(text, words[i]))
            return i;
    fprintf(stderr, "burin-gpu: %s=%s: %s, %s or %s\n", name, text, words[0], words[1],
            words[2]);
    exit(2);
}

/* The machine that the tables serve, for tests that ask it (virtual.h). */
extern "C" struct burin_virtual *burin_gpu_machine(void)
{
    return gpu.machine;
}

__attribute__((constructor)) static void open_machine(void)
{
    static const char *const orders[] = { "in_order", "reverse", "random" };
    static const char *const copies[] = { "late", "early", "any_time" };
    static const char *const streams[] = { "late", "early", "random" };
    gpu.order = (enum fiber_order)choice("BURIN_GPU_ORDER", orders);
    gpu.copies = (enum fiber_copies)choice("BURIN_GPU_COPIES", copies);
    gpu.seed = strtoull(setting("BURIN_GPU_SEED", "1"), nullptr, 10);
    gpu.poison_left = strtoull(setting("BURIN_GPU_POISON", "64"), nullptr, 10) * MIB;
    gpu.guard = !strcmp(setting("BURIN_GPU_GUARD", "0"), "1");

    struct burin_card card;
    struct burin_error err = {};
    if (burin_card_parse(&card, setting("BURIN_GPU_CARD", "4GiB,sm_80"), &err)) {
        fprintf(stderr, "burin-gpu: BURIN_GPU_CARD: %s\n", err.message);
        exit(2);
    }
    struct burin_virtual_options options = burin_virtual_default(&card);
    options.order = (enum burin_virtual_order)choice("BURIN_GPU_STREAMS", streams);
    options.seed = gpu.seed;
    options.body = the_body();
    if (burin_virtual_open(&gpu.machine, &options, &err)) {
        fprintf(stderr, "burin-gpu: %s\n", err.message);
        exit(2);
    }
    tell_signals();
}

__attribute__((destructor)) static void tell_leaks(void)
{
    char text[900];
    if (strcmp(setting("BURIN_GPU_LEAKS", "0"), "1") != 0)
        return;
    burin_virtual_held_text(gpu.machine, text, sizeof text);
    if (text[0])
        fprintf(stderr, "burin-gpu: not given back: %s\n", text);
}
