#include "runtime/device/cuda/open.h"

#include "runtime/base/span.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Libraries stay once they are opened, closed or not: NVIDIA's have threads of their own,
 * and leave memory behind. */
enum { HOW = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE };

/* A variable's value, or NULL where it is not set or empty. */
static const char *set(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* dlsym() gives an object's pointer where we want a function's, which C cannot convert. */
static int resolve(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* Open what `variable` names, or the library of that name from the loader's path. */
static void *open_library(
        const char *variable, const char *name, const char **found, const char **why)
{
    const char *path = set(variable);
    *found = path ? path : name;
    void *library = dlopen(*found, HOW);
    if (!library)
        *why = dlerror();
    return library;
}

/* ---- The driver ---------------------------------------------------------------------- */

static enum burin_status refuse_driver(
        const struct burin_driver *driver, int result, struct burin_error *err)
{
    switch (result) {
    case CU_STUB_LIBRARY:
        return burin_fail(
                err, BURIN_EMISSING,
                "%s is the CUDA toolkit's stub, which programs are linked with: the "
                "driver's own library is missing. Install NVIDIA's driver, or take the "
                "stub's folder out of LD_LIBRARY_PATH",
                driver->found);
    case CU_NO_DEVICE:
        return burin_fail(
                err, BURIN_EMISSING,
                "cuInit, of %s: the driver is there, but no GPU that we may use (of a "
                "container, see that it was started with GPUs; CUDA_VISIBLE_DEVICES is %s)",
                driver->found,
                set("CUDA_VISIBLE_DEVICES") ? set("CUDA_VISIBLE_DEVICES") : "not set");
    case CU_DRIVER_MISMATCH:
        return burin_fail(
                err, BURIN_EMISSING,
                "cuInit, of %s: the driver's library and its kernel module are of "
                "different "
                "versions, as after an update: load the new module, or restart the machine",
                driver->found);
    default:
        break;
    }
    const char *name = NULL;
    if (!driver->cuGetErrorName || driver->cuGetErrorName(result, &name) || !name)
        name = "a result that the driver has no name for";
    return burin_fail(
            err, BURIN_EMISSING, "cuInit, of %s: %s (%d)", driver->found, name, result);
}

static enum burin_status check_driver_version(
        const struct burin_driver *driver, struct burin_error *err)
{
    int version = 0;
    if (!driver->cuDriverGetVersion || driver->cuDriverGetVersion(&version))
        return burin_fail(
                err, BURIN_EMISSING, "%s does not tell its version: it is no CUDA driver",
                driver->found);
    if (version >= BURIN_LEAST_DRIVER)
        return BURIN_OK;
    return burin_fail(
            err, BURIN_EMISSING,
            "%s is of CUDA %d.%d, %d.%d or later is needed: update NVIDIA's driver",
            driver->found, version / 1000, version % 1000 / 10, BURIN_LEAST_DRIVER / 1000,
            BURIN_LEAST_DRIVER % 1000 / 10);
}

static enum burin_status fill_driver(struct burin_driver *driver, struct burin_error *err)
{
    const char *missing = NULL;
#define BURIN_CALL(name, arguments)                                                        \
    if (!resolve(driver->library, #name, &driver->name) && !missing)                       \
        missing = #name;
    BURIN_DRIVER_CALLS(BURIN_CALL)
#undef BURIN_CALL

    /* The stub has no version, and an old driver not every function. */
    const int result = driver->cuInit ? driver->cuInit(0) : CU_OK;
    if (result == CU_STUB_LIBRARY)
        return refuse_driver(driver, result, err);
    const enum burin_status status = check_driver_version(driver, err);
    if (status)
        return status;
    if (missing)
        return burin_fail(
                err, BURIN_EMISSING, "%s has no %s: it is no CUDA driver", driver->found,
                missing);
    return result ? refuse_driver(driver, result, err) : BURIN_OK;
}

bool burin_driver_is_named(void)
{
    return set("BURIN_CUDA_DRIVER") != NULL;
}

enum burin_status burin_driver_open(struct burin_driver *driver, struct burin_error *err)
{
    *driver = (struct burin_driver){ 0 };
    const char *found = NULL;
    const char *why = NULL;
    driver->library = open_library("BURIN_CUDA_DRIVER", "libcuda.so.1", &found, &why);
    if (!driver->library && burin_driver_is_named())
        return burin_fail(
                err, BURIN_EMISSING, "BURIN_CUDA_DRIVER names %s, which does not open: %s",
                burin_show(burin_span_of(found)).text, why);
    if (!driver->library)
        return burin_fail(
                err, BURIN_EMISSING, "NVIDIA's driver is not there (%s): install it", why);
    snprintf(driver->found, sizeof driver->found, "%s", found);

    const enum burin_status status = fill_driver(driver, err);
    if (status)
        burin_driver_close(driver);
    return status;
}

void burin_driver_close(struct burin_driver *driver)
{
    if (driver->library)
        dlclose(driver->library);
    *driver = (struct burin_driver){ 0 };
}

/* ---- Libraries of the toolkit ---------------------------------------------------------- */

/* Releases of CUDA by their first number; a driver runs what its own and older ones made.
 * */
enum { OLDEST_TOOLKIT = 12, NEWEST_TOOLKIT = 13 };

static int newest_for(int driver_major)
{
    return driver_major && driver_major < NEWEST_TOOLKIT ? driver_major : NEWEST_TOOLKIT;
}

/* Folders that may hold them, as patterns, behind what an environment variable says; each
 * library's own in PyPI's packages of CUDA 12 is `package`. */
static const struct {
    const char *variable; /* NULL: none */
    const char *pattern;
} toolkit_folders[] = {
    { NULL, "/usr/local/cuda/lib64" },
    { NULL, "/usr/local/cuda-*/lib64" },
    { "CUDA_HOME", "/lib64" },
    { "VIRTUAL_ENV", "/lib/python3*/site-packages/nvidia/cu[0-9]*/lib" },
    { "VIRTUAL_ENV", "/lib/python3*/site-packages/nvidia/PACKAGE/lib" },
    { "CONDA_PREFIX", "/lib" },
    { NULL, "/usr/local/lib/python3*/*-packages/nvidia/cu[0-9]*/lib" },
    { NULL, "/usr/local/lib/python3*/*-packages/nvidia/PACKAGE/lib" },
};

struct toolkit_library {
    const char *name;    /* "libnvrtc.so" */
    const char *package; /* "cuda_nvrtc" */
    bool (*open)(void *table, const char *path);
};

/* In the folders of a pattern, where PACKAGE stands for the library's. */
static bool open_in(
        const struct toolkit_library *library,
        void *table,
        const char *begin,
        const char *pattern,
        int major)
{
    char file[640];
    const char *mark = strstr(pattern, "PACKAGE");
    const int before = mark ? (int)(mark - pattern) : (int)strlen(pattern);
    snprintf(
            file, sizeof file, "%s%.*s%s%s/%s.%d", begin, before, pattern,
            mark ? library->package : "", mark ? mark + strlen("PACKAGE") : "",
            library->name, major);
    glob_t paths = { 0 };
    bool opened = false;
    if (glob(file, 0, NULL, &paths) == 0)
        for (size_t i = 0; i < paths.gl_pathc && !opened; i++)
            opened = library->open(table, paths.gl_pathv[i]);
    globfree(&paths);
    return opened;
}

/* The newest, of the loader's path before the folders. */
static bool find_library(const struct toolkit_library *library, void *table, int newest)
{
    const size_t n_folders = sizeof toolkit_folders / sizeof toolkit_folders[0];
    for (int major = newest; major >= OLDEST_TOOLKIT; major--) {
        char name[64];
        snprintf(name, sizeof name, "%s.%d", library->name, major);
        if (library->open(table, name))
            return true;
        for (size_t i = 0; i < n_folders; i++) {
            const char *variable = toolkit_folders[i].variable;
            const char *begin = variable ? set(variable) : "";
            if (begin && open_in(library, table, begin, toolkit_folders[i].pattern, major))
                return true;
        }
    }
    return false;
}

/* ---- NVRTC --------------------------------------------------------------------------- */

/* NVRTC opens its builtins by bare name when it compiles, which succeeds where they are
 * open already: without this, a folder that the loader does not know is of no use. */
static void *open_builtins(const char *folder)
{
    char pattern[600];
    snprintf(pattern, sizeof pattern, "%s/libnvrtc-builtins.so.*", folder);
    glob_t paths = { 0 };
    void *builtins = NULL;
    if (glob(pattern, 0, NULL, &paths) == 0)
        for (size_t i = 0; i < paths.gl_pathc && !builtins; i++)
            builtins = dlopen(paths.gl_pathv[i], HOW);
    globfree(&paths);
    return builtins;
}

/* Whether the library at `path` was opened; a bare name is of the loader's path. */
static bool open_nvrtc_at(void *table, const char *path)
{
    struct burin_nvrtc *nvrtc = table;
    nvrtc->library = dlopen(path, HOW);
    if (!nvrtc->library)
        return false;
    snprintf(nvrtc->found, sizeof nvrtc->found, "%s", path);

    const char *slash = strrchr(path, '/');
    if (slash) {
        char folder[512];
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        nvrtc->builtins = open_builtins(folder);
    }
    return true;
}

static const struct toolkit_library nvrtc_library = {
    .name = "libnvrtc.so",
    .package = "cuda_nvrtc",
    .open = open_nvrtc_at,
};

static enum burin_status fill_nvrtc(
        struct burin_nvrtc *nvrtc, int driver_major, struct burin_error *err)
{
    const char *missing = NULL;
#define BURIN_CALL(name, result, arguments)                                                \
    if (!resolve(nvrtc->library, #name, &nvrtc->name) && !missing)                         \
        missing = #name;
    BURIN_NVRTC_CALLS(BURIN_CALL)
#undef BURIN_CALL
    if (missing)
        return burin_fail(
                err, BURIN_EMISSING, "%s has no %s: it is no NVRTC of CUDA %d or later",
                nvrtc->found, missing, OLDEST_TOOLKIT);

    int major = 0;
    int minor = 0;
    if (nvrtc->nvrtcVersion(&major, &minor))
        return burin_fail(
                err, BURIN_EMISSING, "nvrtcVersion, of %s: it does not answer",
                nvrtc->found);
    if (driver_major && major > driver_major)
        return burin_fail(
                err, BURIN_EMISSING,
                "%s is NVRTC %d.%d, whose code a driver of CUDA %d does not load: update "
                "NVIDIA's driver, or install NVRTC %d",
                nvrtc->found, major, minor, driver_major, driver_major);
    return BURIN_OK;
}

enum burin_status burin_nvrtc_open(
        struct burin_nvrtc *nvrtc, int driver_version, struct burin_error *err)
{
    *nvrtc = (struct burin_nvrtc){ 0 };
    const int driver_major = driver_version / 1000;
    const int newest = newest_for(driver_major);
    const char *path = set("BURIN_NVRTC");
    if (path && !open_nvrtc_at(nvrtc, path))
        return burin_fail(
                err, BURIN_EMISSING, "BURIN_NVRTC names %s, which does not open: %s",
                burin_show(burin_span_of(path)).text, dlerror());
    if (!path && !find_library(&nvrtc_library, nvrtc, newest))
        return burin_fail(
                err, BURIN_EMISSING,
                "NVRTC, which compiles the kernels for this GPU, is not there: install "
                "libnvrtc.so.%d (of CUDA's toolkit, or `pip install nvidia-cuda-nvrtc` in "
                "an active environment), or name it in BURIN_NVRTC",
                newest);

    const enum burin_status status = fill_nvrtc(nvrtc, driver_major, err);
    if (status)
        burin_nvrtc_close(nvrtc);
    return status;
}

void burin_nvrtc_close(struct burin_nvrtc *nvrtc)
{
    if (nvrtc->library)
        dlclose(nvrtc->library);
    if (nvrtc->builtins)
        dlclose(nvrtc->builtins);
    *nvrtc = (struct burin_nvrtc){ 0 };
}

/* ---- cuBLASLt ------------------------------------------------------------------------ */

static bool open_cublaslt_at(void *table, const char *path)
{
    struct burin_cublaslt *cublaslt = table;
    cublaslt->library = dlopen(path, HOW);
    if (cublaslt->library)
        snprintf(cublaslt->found, sizeof cublaslt->found, "%s", path);
    return cublaslt->library != NULL;
}

static const struct toolkit_library cublaslt_library = {
    .name = "libcublasLt.so",
    .package = "cublas",
    .open = open_cublaslt_at,
};

static enum burin_status fill_cublaslt(
        struct burin_cublaslt *cublaslt, int driver_major, struct burin_error *err)
{
    const char *missing = NULL;
#define BURIN_CALL(name, result, arguments)                                                \
    if (!resolve(cublaslt->library, #name, &cublaslt->name) && !missing)                   \
        missing = #name;
    BURIN_CUBLASLT_CALLS(BURIN_CALL)
#undef BURIN_CALL
    if (missing)
        return burin_fail(
                err, BURIN_EMISSING, "%s has no %s: it is no cuBLASLt of CUDA %d or later",
                cublaslt->found, missing, OLDEST_TOOLKIT);
    const int major = (int)(cublaslt->cublasLtGetVersion() / 10000);
    if (driver_major && major > driver_major)
        return burin_fail(
                err, BURIN_EMISSING,
                "%s is cuBLASLt %d, which a driver of CUDA %d does not run: update "
                "NVIDIA's driver, or install cuBLASLt %d",
                cublaslt->found, major, driver_major, driver_major);
    return BURIN_OK;
}

enum burin_status burin_cublaslt_open(
        struct burin_cublaslt *cublaslt, int driver_version, struct burin_error *err)
{
    *cublaslt = (struct burin_cublaslt){ 0 };
    const int driver_major = driver_version / 1000;
    const int newest = newest_for(driver_major);
    const char *path = set("BURIN_CUBLASLT");
    if (path && !open_cublaslt_at(cublaslt, path))
        return burin_fail(
                err, BURIN_EMISSING, "BURIN_CUBLASLT names %s, which does not open: %s",
                burin_show(burin_span_of(path)).text, dlerror());
    if (!path && !find_library(&cublaslt_library, cublaslt, newest))
        return burin_fail(
                err, BURIN_EMISSING,
                "cuBLASLt, which --fast-gemm multiplies with, is not there: install "
                "libcublasLt.so.%d (of CUDA's toolkit, or `pip install nvidia-cublas` in "
                "an active environment), or name it in BURIN_CUBLASLT",
                newest);

    const enum burin_status status = fill_cublaslt(cublaslt, driver_major, err);
    if (status)
        burin_cublaslt_close(cublaslt);
    return status;
}

void burin_cublaslt_close(struct burin_cublaslt *cublaslt)
{
    if (cublaslt->library)
        dlclose(cublaslt->library);
    *cublaslt = (struct burin_cublaslt){ 0 };
}

/* ---- NVML ---------------------------------------------------------------------------- */

static enum burin_status fill_nvml(
        struct burin_nvml *nvml, const char *found, struct burin_error *err)
{
#define BURIN_CALL(name, result, arguments)                                                \
    if (!resolve(nvml->library, #name, &nvml->name))                                       \
        return burin_fail(err, BURIN_EMISSING, "%s has no " #name, found);
    BURIN_NVML_CALLS(BURIN_CALL)
#undef BURIN_CALL
    const int result = nvml->nvmlInit_v2();
    if (result)
        return burin_fail(
                err, BURIN_EMISSING, "nvmlInit_v2, of %s: %s (%d)", found,
                nvml->nvmlErrorString(result), result);
    return BURIN_OK;
}

enum burin_status burin_nvml_open(struct burin_nvml *nvml, struct burin_error *err)
{
    *nvml = (struct burin_nvml){ 0 };
    const char *found = NULL;
    const char *why = NULL;
    nvml->library = open_library("BURIN_NVML", "libnvidia-ml.so.1", &found, &why);
    if (!nvml->library)
        return burin_fail(
                err, BURIN_EMISSING, "NVIDIA's management library is not there (%s)", why);

    const enum burin_status status = fill_nvml(nvml, found, err);
    if (status) {
        dlclose(nvml->library);
        *nvml = (struct burin_nvml){ 0 };
    }
    return status;
}

void burin_nvml_close(struct burin_nvml *nvml)
{
    if (nvml->library) {
        nvml->nvmlShutdown();
        dlclose(nvml->library);
    }
    *nvml = (struct burin_nvml){ 0 };
}
