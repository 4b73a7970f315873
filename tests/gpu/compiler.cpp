/* tests/gpu/compiler.cpp -- NVRTC for kernels that fibers run: the same functions, compiled by g++ behind
 * host.h. Its machine code is a shared object (image.h).
 *
 *   BURIN_GPU_CXXFLAGS   how kernels are compiled, -O1 where it isn't set; words between spaces
 *
 * Memory   A program owns its text, its log and its code until it is destroyed.
 * Errors   NVRTC's numbers; what g++ said is the log.
 * Threads  Programs may be compiled side by side: a process of g++ each. */
extern "C" {
#include "runtime/device/cuda/nvrtc.h"
}

#include "tests/gpu/image.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern char **environ;

/* host.h is a part of this library: a kernel needs no tree to be compiled. */
__asm__(".section .rodata\n"
        "host_text: .incbin \"" HOST_H "\"\n"
        "host_text_end: .byte 0\n"
        ".text\n");
extern "C" const char host_text[], host_text_end[];

enum { NVRTC_INVALID_INPUT = 3, NVRTC_INVALID_PROGRAM = 4 };

struct burin_nvrtc_program {
    std::string text, log, code; /* an image */
};

static std::vector<std::string> flags(void)
{
    std::vector<std::string> list = { "g++",
                                      "-std=c++17",
                                      "-w",
                                      "-fPIC",
                                      "-shared",
                                      "-fno-gnu-unique",
                                      "-ffp-contract=off" };
    const char *more = getenv("BURIN_GPU_CXXFLAGS");
    const std::string words = more ? more : "-O1";
    for (size_t begin = 0, end; begin < words.size(); begin = end + 1) {
        end = words.find(' ', begin);
        if (end == std::string::npos)
            end = words.size();
        if (end > begin)
            list.push_back(words.substr(begin, end - begin));
    }
    return list;
}

static std::string read_file(const std::string &path)
{
    std::string text;
    char piece[65536];
    FILE *file = fopen(path.c_str(), "rb");
    for (size_t n; file && (n = fread(piece, 1, sizeof piece, file)) > 0;)
        text.append(piece, n);
    if (file)
        fclose(file);
    return text;
}

static void write_file(const std::string &path, const std::string &text)
{
    FILE *file = fopen(path.c_str(), "wb");
    if (!file || fwrite(text.data(), 1, text.size(), file) != text.size() || fclose(file))
        fprintf(stderr, "burin-gpu: %s can't be written\n", path.c_str());
}

/* HOST_KERNEL(name, threads) for each `__global__ __launch_bounds__(threads) void name(`. */
static std::string kernels_of(const std::string &text)
{
    static const char global[] = "__global__", bounds[] = "__launch_bounds__(";
    std::string made;
    for (size_t i = text.find(global); i != std::string::npos;
         i = text.find(global, i + 1)) {
        const size_t b = text.find(bounds, i), begin = b + strlen(bounds);
        const size_t end = text.find_first_of(",)", begin), type = text.find("void ", end);
        const size_t name = type + strlen("void "), open = text.find('(', name);
        if (b == std::string::npos || type == std::string::npos ||
            open == std::string::npos)
            break;
        made += "HOST_KERNEL(" + text.substr(name, open - name) + ", (" +
                text.substr(begin, end - begin) + "))\n";
    }
    return made;
}

/* Its exit status; what it says is in the file `log`. */
static int run_compiler(
        const std::string &source, const std::string &object, const std::string &log)
{
    std::vector<std::string> words = flags();
    for (const char *word : { "-o", object.c_str(), source.c_str() })
        words.push_back(word);
    std::vector<char *> argv;
    for (std::string &word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t child;
    int status = 0;
    const int failed = posix_spawnp(&child, "g++", &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed)
        return -1;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return status;
}

/* ---- NVRTC's functions ------------------------------------------------------------------------ */

extern "C" {

/* Other code, another version: what the caller keeps depends on it. */
int nvrtcVersion(int *major, int *minor)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (const char *p = host_text; p < host_text_end; p++)
        hash = (hash ^ (unsigned char)*p) * 16777619u;
    for (const std::string &flag : flags())
        for (char c : flag)
            hash = (hash ^ (unsigned char)c) * 16777619u;
    *major = 13;
    *minor = 1000 + (int)(hash % 1000000000u);
    return NVRTC_OK;
}

const char *nvrtcGetErrorString(int result)
{
    return result == NVRTC_OK            ? "NVRTC_SUCCESS"
           : result == NVRTC_COMPILATION ? "NVRTC_ERROR_COMPILATION"
                                         : "NVRTC_ERROR unknown";
}

static const int archs[] = { 75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121 };

int nvrtcGetNumSupportedArchs(int *n)
{
    *n = (int)(sizeof archs / sizeof *archs);
    return NVRTC_OK;
}

int nvrtcGetSupportedArchs(int *list)
{
    memcpy(list, archs, sizeof archs);
    return NVRTC_OK;
}

int nvrtcCreateProgram(
        struct burin_nvrtc_program **program,
        const char *text,
        const char *,
        int n_headers,
        const char *const *,
        const char *const *)
{
    if (!text || n_headers != 0)
        return NVRTC_INVALID_INPUT;
    *program = new struct burin_nvrtc_program();
    (*program)->text = text;
    return NVRTC_OK;
}

int nvrtcCompileProgram(struct burin_nvrtc_program *program, int, const char *const *)
{
    const char *temporary = getenv("TMPDIR");
    std::string folder = std::string(temporary ? temporary : "/tmp") + "/burin-gpu-XXXXXX";
    if (!program || !mkdtemp(folder.data()))
        return NVRTC_INVALID_PROGRAM;
    const std::string source = folder + "/kernel.cpp", object = folder + "/kernel.so",
                      log = folder + "/log", kernels = kernels_of(program->text);
    write_file(
            source, std::string("#line 1 \"host.h\"\n") + host_text +
                            "\n#line 1 \"kernel.cu\"\n" + program->text + "\n" + kernels);
    const int status = run_compiler(source, object, log);
    const std::string library = read_file(object);
    program->log = read_file(log);
    for (const std::string &path : { source, object, log })
        unlink(path.c_str());
    rmdir(folder.c_str());
    if (status != 0 || library.empty())
        return NVRTC_COMPILATION;

    struct image image;
    memcpy(image.magic, IMAGE_MAGIC, sizeof image.magic);
    image.bytes = library.size();
    program->code.assign((const char *)&image, sizeof image);
    program->code += library;
    program->log += "ptxas info    : Compiling entry function 'kernel' for 'sm_80'\n"
                    "ptxas info    : Function properties for kernel\n"
                    "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                    "ptxas info    : Used 32 registers\n";
    return NVRTC_OK;
}

int nvrtcGetCUBINSize(struct burin_nvrtc_program *program, size_t *bytes)
{
    *bytes = program->code.size();
    return program->code.empty() ? (int)NVRTC_INVALID_PROGRAM : (int)NVRTC_OK;
}

int nvrtcGetCUBIN(struct burin_nvrtc_program *program, char *cubin)
{
    memcpy(cubin, program->code.data(), program->code.size());
    return program->code.empty() ? (int)NVRTC_INVALID_PROGRAM : (int)NVRTC_OK;
}

int nvrtcGetProgramLogSize(struct burin_nvrtc_program *program, size_t *bytes)
{
    *bytes = program->log.size() + 1;
    return NVRTC_OK;
}

int nvrtcGetProgramLog(struct burin_nvrtc_program *program, char *log)
{
    memcpy(log, program->log.c_str(), program->log.size() + 1);
    return NVRTC_OK;
}

int nvrtcDestroyProgram(struct burin_nvrtc_program **program)
{
    delete *program;
    *program = nullptr;
    return NVRTC_OK;
}
}
