/* Serving allocates nothing: not one call of malloc, calloc, realloc or mmap on any thread
 * while an opened engine makes 2,000 tokens, and the resident set stays as it is. */
#include "tests/support/model_weights.h"
#include "tests/support/test.h"

#include "runtime/burin.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

static atomic_bool counting;
static atomic_int n_allocations;

#if !defined(__SANITIZE_ADDRESS__) &&                                                      \
        !defined(__SANITIZE_THREAD__) /* they bring their own */
enum { COUNTED = 1 };

/* This binary's own malloc comes before libc's, for every caller. */
void *__libc_malloc(size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

static void count(void)
{
    if (atomic_load_explicit(&counting, memory_order_relaxed))
        atomic_fetch_add(&n_allocations, 1);
}

void *malloc(size_t bytes)
{
    count();
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    count();
    return __libc_calloc(n, bytes);
}

void *realloc(void *old, size_t bytes)
{
    count();
    return __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
    count();
    return __libc_memalign(align, bytes);
}

void *mmap(void *where, size_t bytes, int protection, int flags, int file, off_t offset)
{
    static void *(*real)(void *, size_t, int, int, int, off_t);
    if (!real)
        real = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
    count();
    return real(where, bytes, protection, flags, file, offset);
}

#else
enum { COUNTED = 0 };
#endif

static long resident_pages(void)
{
    char text[128] = "";
    long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    assert_int_equal(sscanf(text, "%ld %ld", &size, &resident), 2);
    return resident;
}

enum { N_SEQUENCES = 4, TOKENS = 500, PROMPT = 20 };

static void make_tokens(struct burin_engine *engine)
{
    static int32_t ids[N_SEQUENCES][PROMPT];
    struct burin_request requests[N_SEQUENCES] = { 0 };
    for (int s = 0; s < N_SEQUENCES; s++) {
        for (int i = 0; i < PROMPT; i++)
            ids[s][i] = (7 * i + 13 * s) % burin_model.n_vocab;
        requests[s] = (struct burin_request){
            .ids = ids[s],
            .n_ids = PROMPT - s,
            .max_tokens = TOKENS,
            .sampling = { .temperature = 0.8f, .top_k = 40, .top_p = 0.9f, .seed = s }
        };
        assert_int_equal(burin_submit(engine, &requests[s], NULL), BURIN_OK);
    }
    assert_int_equal(burin_engine_run(engine, NULL), BURIN_OK);
    for (int s = 0; s < N_SEQUENCES; s++)
        assert_int_equal(requests[s].n_generated, TOKENS);
}

SPEC(two_thousand_tokens_allocate_nothing_and_the_resident_set_is_flat)
{
    const char *weights = model_weights();
    SKIP_UNLESS(weights && COUNTED);
    const struct burin_options options = { .model = &burin_model,
                                           .weights = weights,
                                           .n_threads = 2,
                                           .n_ctx = 1024,
                                           .n_sequences = N_SEQUENCES };
    struct burin_engine *engine;
    struct burin_error err = { 0 };
    if (burin_engine_open(&engine, &options, &err))
        fail_msg("%s", err.message);
    const long ready = resident_pages();

    atomic_store(&counting, true);
    make_tokens(engine);
    atomic_store(&counting, false);

    assert_int_equal(n_allocations, 0);
    /* Pages of the binary itself may still come in from its file: some hundred of 4 KiB. */
    assert_true(resident_pages() - ready < 256);
    burin_engine_close(engine);
}
