/* A compiler that takes every text, at once: its machine code is a line that names it. */
#include "runtime/device/virtual/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NVRTC_INVALID_INPUT = 3, NVRTC_INVALID_PROGRAM = 4, NVRTC_INVALID_OPTION = 5 };

static const int archs[] = { 80, 86, 87, 89, 90, 100, 103, 110, 120, 121 };
enum { N_ARCHS = sizeof archs / sizeof *archs };

const char *BURIN_VIRTUAL(nvrtcGetErrorString)(int result)
{
    switch (result) {
    case NVRTC_OK:
        return "NVRTC_SUCCESS";
    case NVRTC_OUT_OF_MEMORY:
        return "NVRTC_ERROR_OUT_OF_MEMORY";
    case NVRTC_INVALID_OPTION:
        return "NVRTC_ERROR_INVALID_OPTION";
    case NVRTC_COMPILATION:
        return "NVRTC_ERROR_COMPILATION";
    default:
        return "NVRTC_ERROR unknown";
    }
}

/* Its own, so that nobody takes its code for that of the real one. */
CALL(nvrtcVersion, NO_DRIVER, (int *major, int *minor), (major, minor))
{
    *major = 13;
    *minor = 999;
    return NVRTC_OK;
}

CALL(nvrtcGetNumSupportedArchs, NO_DRIVER, (int *n), (n))
{
    *n = N_ARCHS;
    return NVRTC_OK;
}

CALL(nvrtcGetSupportedArchs, NO_DRIVER, (int *list), (list))
{
    memcpy(list, archs, sizeof archs);
    return NVRTC_OK;
}

static bool is_program(const struct burin_nvrtc_program *program)
{
    return program && burin_virtual_is(&program->item, BURIN_VIRTUAL_PROGRAM);
}

CALL(nvrtcCreateProgram,
     NO_DRIVER,
     (struct burin_nvrtc_program * *program,
      const char *text,
      const char *name,
      int n_headers,
      const char *const *headers,
      const char *const *names),
     (program, text, name, n_headers, headers, names))
{
    (void)headers;
    (void)names;
    if (!text || n_headers < 0)
        return NVRTC_INVALID_INPUT;
    *program = burin_virtual_new(BURIN_VIRTUAL_PROGRAM, sizeof **program, NULL);
    if (!*program)
        return NVRTC_OUT_OF_MEMORY;
    struct burin_arena *arena = &burin_virtual_self()->machine->arena;
    const char *given = name ? name : "default_program";
    (*program)->name = burin_arena_text(arena, given, strlen(given));
    return (*program)->name ? NVRTC_OK : NVRTC_OUT_OF_MEMORY;
}

/* 90 of "--gpu-architecture=sm_90a" or "-arch=sm_90a", 0 for another option. */
static int arch_of(const char *option)
{
    static const char *const prefixes[] = { "--gpu-architecture=sm_", "-arch=sm_" };
    for (int i = 0; i < 2; i++) {
        const size_t n = strlen(prefixes[i]);
        if (strncmp(option, prefixes[i], n) == 0)
            return (int)strtol(option + n, NULL, 10);
    }
    return 0;
}

CALL(nvrtcCompileProgram,
     NO_DRIVER,
     (struct burin_nvrtc_program * program, int n_options, const char *const *options),
     (program, n_options, options))
{
    if (!is_program(program))
        return NVRTC_INVALID_PROGRAM;
    int arch = 0;
    for (int i = 0; i < n_options; i++)
        if (arch_of(options[i]))
            arch = arch_of(options[i]);
    int i = 0;
    while (i < N_ARCHS && archs[i] != arch)
        i++;
    if (i == N_ARCHS)
        return NVRTC_INVALID_OPTION;
    program->arch = arch;
    snprintf(
            program->cubin, sizeof program->cubin, "virtual code of %s for sm_%d",
            program->name, arch);
    snprintf(
            program->log, sizeof program->log,
            "ptxas info    : Compiling entry function '%s' for 'sm_%d'\n"
            "ptxas info    : Function properties for %s\n"
            "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
            "ptxas info    : Used 32 registers\n",
            program->name, arch, program->name);
    return NVRTC_OK;
}

CALL(nvrtcGetCUBINSize,
     NO_DRIVER,
     (struct burin_nvrtc_program * program, size_t *bytes),
     (program, bytes))
{
    if (!is_program(program) || !program->arch)
        return NVRTC_INVALID_PROGRAM;
    *bytes = strlen(program->cubin) + 1;
    return NVRTC_OK;
}

CALL(nvrtcGetCUBIN,
     NO_DRIVER,
     (struct burin_nvrtc_program * program, char *cubin),
     (program, cubin))
{
    if (!is_program(program) || !program->arch)
        return NVRTC_INVALID_PROGRAM;
    memcpy(cubin, program->cubin, strlen(program->cubin) + 1);
    return NVRTC_OK;
}

CALL(nvrtcGetProgramLogSize,
     NO_DRIVER,
     (struct burin_nvrtc_program * program, size_t *bytes),
     (program, bytes))
{
    if (!is_program(program))
        return NVRTC_INVALID_PROGRAM;
    *bytes = strlen(program->log) + 1;
    return NVRTC_OK;
}

CALL(nvrtcGetProgramLog,
     NO_DRIVER,
     (struct burin_nvrtc_program * program, char *log),
     (program, log))
{
    if (!is_program(program))
        return NVRTC_INVALID_PROGRAM;
    memcpy(log, program->log, strlen(program->log) + 1);
    return NVRTC_OK;
}

CALL(nvrtcDestroyProgram,
     NO_DRIVER | GIVES_BACK,
     (struct burin_nvrtc_program * *program),
     (program))
{
    if (!program || !is_program(*program))
        return NVRTC_INVALID_PROGRAM;
    burin_virtual_drop(&(*program)->item);
    *program = NULL;
    return NVRTC_OK;
}
