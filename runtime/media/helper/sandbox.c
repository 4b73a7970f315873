#include "runtime/media/helper/sandbox.h"

#include "runtime/media/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { SANITIZED = 1 }; /* its shadow is terabytes of address space */
#else
enum { SANITIZED = 0 };
#endif

#if defined __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "which AUDIT_ARCH is this? the sandbox needs its name"
#endif

/* ---- Limits and privileges --------------------------------------------------------- */

static bool limit(int what, size_t most)
{
    const struct rlimit both = { most, most };
    return setrlimit((__rlimit_resource_t)what, &both) == 0;
}

static bool set_limits(const struct burin_sandbox *sandbox)
{
    bool held = limit(RLIMIT_CORE, 0) && limit(RLIMIT_FSIZE, 0) &&
                limit(RLIMIT_NOFILE, 0) && limit(RLIMIT_NPROC, 0) &&
                limit(RLIMIT_CPU, (size_t)sandbox->seconds);
    if (!SANITIZED)
        held = limit(RLIMIT_AS, sandbox->memory) && held;
    return held;
}

static bool drop_privileges(void)
{
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

/* ---- Landlock ------------------------------------------------------------------------ */

static bool lock_paths(void)
{
    /* All that its first version can forbid: 13 rights, and no rule that grants any. */
    const struct landlock_ruleset_attr rules = { .handled_access_fs = (1u << 13) - 1 };
    const long set = syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);
    if (set < 0)
        return false;
    const bool held = syscall(SYS_landlock_restrict_self, (int)set, 0) == 0;
    close((int)set);
    return held;
}

/* ---- Seccomp ------------------------------------------------------------------------- */

/* What decoding takes: bytes in and out, memory, the clock, an end. */
static const int allowed[] = {
    SYS_read,         SYS_pread64,
    SYS_write,        SYS_lseek,
    SYS_close,        SYS_fstat,
    SYS_munmap,       SYS_mremap,
    SYS_madvise,      SYS_brk,
    SYS_exit,         SYS_exit_group,
    SYS_futex,        SYS_clock_gettime,
    SYS_gettimeofday, SYS_getrandom,
    SYS_rt_sigreturn, SYS_rt_sigprocmask,
    SYS_sched_yield,  SYS_sched_getaffinity,
    SYS_getpid,       SYS_gettid,
#ifdef SYS_time
    SYS_time,
#endif
#ifdef __SANITIZE_ADDRESS__
    SYS_sigaltstack,
#endif
};

/* What a library may ask for in good faith, and can do without. */
static const int refused[] = {
    SYS_openat, SYS_newfstatat, SYS_statx,     SYS_readlinkat,   SYS_faccessat,
    SYS_ioctl,  SYS_fcntl,      SYS_prlimit64, SYS_sysinfo,      SYS_uname,
    SYS_clone,  SYS_clone3,     SYS_getcwd,    SYS_rt_sigaction, SYS_getdents64,
#ifdef SYS_open
    SYS_open,   SYS_stat,       SYS_lstat,     SYS_readlink,     SYS_access,
#endif
};

/* Memory may be had and protected, unless it could be executed. */
static const int mapping[] = { SYS_mmap, SYS_mprotect };

#define LENGTH(array) (sizeof(array) / sizeof *(array))
enum { MOST_LINES = 16 + 2 * (LENGTH(allowed) + LENGTH(refused)) + 5 * LENGTH(mapping) };

struct program {
    struct sock_filter lines[MOST_LINES];
    unsigned short n;
};

static void statement(struct program *program, unsigned code, uint32_t value)
{
    program->lines[program->n++] = (struct sock_filter)BPF_STMT((uint16_t)code, value);
}

static void jump(
        struct program *program, unsigned code, uint32_t value, int if_true, int if_false)
{
    program->lines[program->n++] = (struct sock_filter)BPF_JUMP(
            (uint16_t)code, value, (uint8_t)if_true, (uint8_t)if_false);
}

static void load(struct program *program, size_t offset)
{
    statement(program, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset);
}

static void decide(struct program *program, const int *calls, size_t n, uint32_t action)
{
    for (size_t i = 0; i < n; i++) {
        jump(program, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], 0, 1);
        statement(program, BPF_RET | BPF_K, action);
    }
}

static void write_filter(struct program *program)
{
    load(program, offsetof(struct seccomp_data, arch));
    jump(program, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    statement(program, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    load(program, offsetof(struct seccomp_data, nr));
    decide(program, allowed, LENGTH(allowed), SECCOMP_RET_ALLOW);
    decide(program, refused, LENGTH(refused), SECCOMP_RET_ERRNO | EPERM);
    for (size_t i = 0; i < LENGTH(mapping); i++) {
        jump(program, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)mapping[i], 0, 4);
        load(program,
             offsetof(struct seccomp_data, args[2])); /* its low half: protection */
        jump(program, BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0);
        statement(program, BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        statement(program, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    }
    statement(program, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
}

static bool filter_calls(void)
{
    static struct program program;
    write_filter(&program);
    const struct sock_fprog filter = { program.n, program.lines };
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}

enum burin_status burin_sandbox_enter(
        const struct burin_sandbox *sandbox, unsigned *layers, struct burin_error *err)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    *layers = 0;
    if (drop_privileges())
        *layers |= BURIN_LAYER_PRIVILEGES;
    if (lock_paths())
        *layers |= BURIN_LAYER_LANDLOCK;
    if (set_limits(sandbox)) /* after Landlock: that needs a file descriptor */
        *layers |= BURIN_LAYER_LIMITS;
    if (!filter_calls())
        return burin_fail(
                err, BURIN_EIO,
                "this system filters no system calls (seccomp: %s), and without that "
                "nothing foreign is decoded",
                strerror(errno));
    *layers |= BURIN_LAYER_SECCOMP;
    return BURIN_OK;
}

/* ---- For tests ----------------------------------------------------------------------- */

static long try_open(void)
{
    return open("/etc/passwd", O_RDONLY | O_CLOEXEC);
}
static long try_create(void)
{
    return open("/tmp/burin-media-escaped", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}
static long try_stat(void)
{
    struct stat found;
    return stat("/etc/passwd", &found);
}
static long try_socket(void)
{
    return socket(AF_INET, SOCK_STREAM, 0);
}
static long try_fork(void)
{
    return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}
static long try_exec(void)
{
    char *const words[] = { (char *)"/bin/true", NULL };
    return execve(words[0], words, words + 1);
}
static long try_kill(void)
{
    return kill(getppid(), 0);
}
static long try_trace(void)
{
    return ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}
static long try_unlink(void)
{
    return unlink("/tmp/burin-media-escaped");
}
static long try_execute(void)
{
    void *page =
            mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? -1 : 0;
}
static long try_unlimit(void)
{
    const struct rlimit both = { RLIM_INFINITY, RLIM_INFINITY };
    return setrlimit(RLIMIT_AS, &both);
}

static const struct {
    const char *name;
    long (*run)(void);
} attempts[] = {
    { "open", try_open },       { "create", try_create },   { "stat", try_stat },
    { "socket", try_socket },   { "fork", try_fork },       { "exec", try_exec },
    { "kill", try_kill },       { "trace", try_trace },     { "unlink", try_unlink },
    { "execute", try_execute }, { "unlimit", try_unlimit },
};

int burin_sandbox_try(const char *what)
{
    for (size_t i = 0; i < LENGTH(attempts); i++)
        if (strcmp(attempts[i].name, what) == 0)
            return attempts[i].run() < 0 ? 0 : 1;
    return -1;
}
