#include "runtime/device/machine.h"

#include "runtime/base/put.h"

#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MAX_CPUS = 4096, MAX_PATH = 512, MAX_FILE = 8192 };

/* A small file as text; false where it cannot be read. */
static bool read_file(const char *path, char *text, size_t capacity)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    size_t length = 0;
    ssize_t got;
    while (length < capacity - 1 &&
           (got = read(fd, text + length, capacity - 1 - length)) > 0)
        length += (size_t)got;
    close(fd);
    text[length] = 0;
    return length > 0;
}

/* The number behind `key` at the begin of a line; false where none stands there. */
static bool find_number(const char *text, const char *key, uint64_t *number)
{
    const size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) != 0)
            continue;
        const char *digits = line + length + strspn(line + length, " ");
        char *end;
        *number = strtoull(digits, &end, 10);
        return *digits >= '0' && *digits <= '9' && end > digits;
    }
    return false;
}

/* ---- cgroups ---------------------------------------------------------------------- */

/* Version 2 has one tree, version 1 one a controller. */
struct cgroup {
    const char *root;
    const char *key; /* of our line in /proc/self/cgroup */
    const char *limit;
    const char *current;
    const char *file; /* in memory.stat: page cache, which the kernel gives up */
};
static const struct cgroup memory_cgroups[] = {
    { "/sys/fs/cgroup", "0::", "memory.max", "memory.current", "file " },
    { "/sys/fs/cgroup/memory", ":memory:", "memory.limit_in_bytes", "memory.usage_in_bytes",
      "total_cache " },
};
static const struct cgroup cpu_cgroups[] = {
    { "/sys/fs/cgroup", "0::", "cpu.max", NULL, NULL },
    { "/sys/fs/cgroup/cpu", ":cpu", "cpu.cfs_quota_us", "cpu.cfs_period_us", NULL },
};

/* Our folder without a slash at its end, the root where the system doesn't say more. */
static void cgroup_folder(const struct cgroup *cgroup, char folder[MAX_PATH])
{
    char text[MAX_FILE];
    snprintf(folder, MAX_PATH, "%s", cgroup->root);
    if (!read_file("/proc/self/cgroup", text, sizeof text))
        return;

    char *found = strstr(text, cgroup->key);
    char *path = found ? strchr(found, '/') : NULL;
    char *end = found ? strchr(found, '\n') : NULL;
    if (!path || (end && path > end))
        return;
    if (end)
        *end = 0;
    const size_t root = strlen(cgroup->root);
    if (path[1] && root + strlen(path) < MAX_PATH)
        memcpy(folder + root, path, strlen(path) + 1);
}

/* From a folder to the one around it; false when it was the root. */
static bool go_up(const struct cgroup *cgroup, char folder[MAX_PATH])
{
    char *slash = strrchr(folder, '/');
    if (strlen(folder) <= strlen(cgroup->root) || !slash)
        return false;
    *slash = 0;
    return true;
}

static bool read_in(const char *folder, const char *name, char *text, size_t capacity)
{
    char path[MAX_PATH + 32];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return read_file(path, text, capacity);
}

/* Lower available and total to what each cgroup from ours to the root allows. */
static void limit_memory(const struct cgroup *cgroup, size_t *available, size_t *total)
{
    char folder[MAX_PATH];
    cgroup_folder(cgroup, folder);
    do {
        char text[64];
        char stat[MAX_FILE];
        uint64_t limit;
        uint64_t current;
        uint64_t file = 0;

        if (!read_in(folder, cgroup->limit, text, sizeof text) ||
            !find_number(text, "", &limit) ||
            !read_in(folder, cgroup->current, text, sizeof text) ||
            !find_number(text, "", &current))
            continue;
        if (read_in(folder, "memory.stat", stat, sizeof stat))
            find_number(stat, cgroup->file, &file);
        const uint64_t held = current > file ? current - file : 0;
        const uint64_t left = limit > held ? limit - held : 0;
        if (*available > left)
            *available = left;
        if (*total > limit)
            *total = limit;
    } while (go_up(cgroup, folder));
}

/* Cores' worth of time that each cgroup allows, rounded up. */
static int limit_cores(const struct cgroup *cgroup, int cores)
{
    char folder[MAX_PATH];
    cgroup_folder(cgroup, folder);
    do {
        char text[64];
        uint64_t quota;
        uint64_t period;
        if (!read_in(folder, cgroup->limit, text, sizeof text) ||
            !find_number(text, "", &quota))
            continue; /* "max", or -1 */
        if (cgroup->current && !read_in(folder, cgroup->current, text, sizeof text))
            continue;
        const char *space = strchr(text, ' ');
        if (!find_number(cgroup->current || !space ? text : space, "", &period) || !period)
            continue;
        const uint64_t allowed = (quota + period - 1) / period;
        if (allowed < (uint64_t)cores)
            cores = allowed ? (int)allowed : 1;
    } while (go_up(cgroup, folder));
    return cores;
}

/* ---- Cores and memory -------------------------------------------------------------- */

static int topology(int cpu, const char *what)
{
    char path[MAX_PATH];
    char text[32];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, what);
    return read_file(path, text, sizeof text) ? atoi(text) : -1;
}

/* `n` of them, or what the cgroups that we are in allow; at least 1. */
static int limited(int n)
{
    n = n > 0 ? n : 1;
    for (size_t i = 0; i < sizeof cpu_cgroups / sizeof *cpu_cgroups; i++)
        n = limit_cores(&cpu_cgroups[i], n);
    return n;
}

int burin_machine_cores(void)
{
    static const int unknown = -1;
    cpu_set_t allowed[MAX_CPUS / CPU_SETSIZE];
    int package[MAX_CPUS];
    int core[MAX_CPUS];
    int n = 0;

    CPU_ZERO_S(sizeof allowed, allowed);
    if (sched_getaffinity(0, sizeof allowed, allowed))
        return 1;

    for (int cpu = 0; cpu < MAX_CPUS; cpu++) {
        if (!CPU_ISSET_S((size_t)cpu, sizeof allowed, allowed))
            continue;
        package[n] = topology(cpu, "physical_package_id");
        core[n] = topology(cpu, "core_id");
        int twin = 0;
        while (twin < n && (package[twin] != package[n] || core[twin] != core[n]))
            twin++;
        if (twin == n || core[n] == unknown)
            n++;
    }
    return limited(n);
}

int burin_machine_processors(void)
{
    cpu_set_t allowed[MAX_CPUS / CPU_SETSIZE];
    CPU_ZERO_S(sizeof allowed, allowed);
    if (sched_getaffinity(0, sizeof allowed, allowed))
        return 1;
    return limited(CPU_COUNT_S(sizeof allowed, allowed));
}

/* `ulimit -v`: addresses run out, whatever memory is free. */
static void limit_address_space(size_t *available, size_t *total)
{
    char text[64];
    uint64_t pages;
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY ||
        !read_file("/proc/self/statm", text, sizeof text) || !find_number(text, "", &pages))
        return;
    const uint64_t used = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t left = limit.rlim_cur > used ? limit.rlim_cur - used : 0;
    if (*available > left)
        *available = left;
    if (*total > limit.rlim_cur)
        *total = limit.rlim_cur;
}

enum burin_status burin_machine_memory(
        size_t *available, size_t *total, struct burin_error *err)
{
    char text[MAX_FILE];
    uint64_t available_kib;
    uint64_t total_kib;
    if (!read_file("/proc/meminfo", text, sizeof text) ||
        !find_number(text, "MemTotal:", &total_kib) ||
        !find_number(text, "MemAvailable:", &available_kib))
        return burin_fail(
                err, BURIN_EIO, "/proc/meminfo does not say what memory is there");

    *available = available_kib * 1024;
    *total = total_kib * 1024;
    limit_address_space(available, total);
    for (size_t i = 0; i < sizeof memory_cgroups / sizeof *memory_cgroups; i++)
        limit_memory(&memory_cgroups[i], available, total);
    return BURIN_OK;
}

enum burin_status burin_machine_card(struct burin_card *card, struct burin_error *err)
{
    size_t available = 0;
    size_t total = 0;
    const enum burin_status status = burin_machine_memory(&available, &total, err);
    if (status)
        return status;
    *card = (struct burin_card){
        .name = "this machine",
        .total_bytes = (int64_t)total,
        .available_bytes = (int64_t)available,
    };
    return BURIN_OK;
}

/* ---- The processor ----------------------------------------------------------------- */

bool burin_machine_has(enum burin_cpu_feature feature)
{
    switch (feature) {
    case BURIN_CPU_ANY:
        return true;
    case BURIN_CPU_AVX512:
#if defined(__x86_64__)
        /* F16C is there wherever AVX-512 is; clang 14 has no word for it. */
        __builtin_cpu_init();
        return __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni") &&
               __builtin_cpu_supports("avx512bf16");
#else
        return false;
#endif
    }
    return false;
}

/* "portable, avx512": the names of all families of processors or of GPUs, each once. */
static void put_families(const struct burin_model *model, bool gpus, struct burin_put *text)
{
    const size_t begin = text->used;
    for (int i = 0; i < model->n_families; i++) {
        if ((model->families[i].sm != 0) != gpus)
            continue;
        int first = 0;
        while (strcmp(model->families[first].name, model->families[i].name) != 0)
            first++;
        if (first == i)
            burin_put(
                    text, "%s%s", text->used > begin ? ", " : "", model->families[i].name);
    }
}

/* The family is another's, or nobody's: what there is, and for whom. */
static enum burin_status no_family(
        const struct burin_model *model,
        const char *target,
        bool exact,
        struct burin_error *err)
{
    bool gpu = false;
    char names[256] = "";
    struct burin_put text = { names, sizeof names, 0 };
    for (int i = 0; i < model->n_families && target; i++)
        gpu |= model->families[i].sm && strcmp(model->families[i].name, target) == 0;
    put_families(model, false, &text);
    burin_put(&text, "%s", text.used ? "" : "none");
    const size_t cpus = text.used;
    burin_put(&text, "; for GPUs: ");
    const size_t begin = text.used;
    put_families(model, true, &text);
    if (text.used == begin)
        names[cpus] = '\0';
    if (gpu)
        return burin_fail(
                err, BURIN_EUSAGE,
                "--target %s is of a GPU, and %s a processor's; %s has: %s", target,
                exact ? "--exact is" : "this is to be", model->name, names);
    return burin_fail(
            err, BURIN_EUSAGE, "%s has no family %s%s, it has: %s", model->name,
            target ? target : "for this machine", exact ? " with --exact" : "", names);
}

enum burin_status burin_machine_family(
        const struct burin_model *model,
        const char *target,
        bool exact,
        const struct burin_family **family,
        struct burin_error *err)
{
    const struct burin_family *lacking = NULL;
    for (int i = 0; i < model->n_families; i++) {
        const struct burin_family *at = &model->families[i];
        if (at->sm || at->exact != exact || (target && strcmp(target, at->name) != 0))
            continue;
        if (burin_machine_has(at->cpu_feature)) {
            *family = at;
            return BURIN_OK;
        }
        lacking = at;
    }

    if (lacking)
        return burin_fail(
                err, BURIN_EUSAGE,
                "%s was built for %s, which this processor lacks: generate it with "
                "`gen --target any` or `--target portable`",
                model->name, lacking->name);
    return no_family(model, target, exact, err);
}

static bool is_device(const char *text, int *device)
{
    *device = strcmp(text, "cpu") == 0 ? BURIN_DEVICE_CPU : BURIN_DEVICE_AUTO;
    if (*device == BURIN_DEVICE_CPU || strcmp(text, "auto") == 0)
        return true;
    if (strncmp(text, "cuda", 4) != 0)
        return false;
    *device = 0;
    if (!text[4])
        return true;
    char *end;
    const long n = strtol(text + 5, &end, 10);
    *device = (int)n;
    return text[4] == ':' && text[5] >= '0' && text[5] <= '9' && !*end && n < 1024;
}

enum burin_status burin_machine_device(
        const char *option, const char *text, int *device, struct burin_error *err)
{
    return is_device(text, device)
                   ? BURIN_OK
                   : burin_fail(
                             err, BURIN_EUSAGE,
                             "%s is auto, cpu, cuda or cuda:1, not '%.40s'", option, text);
}
