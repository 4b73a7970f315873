/* tests/gpu/check_times.c -- How long our kernels take at the shapes of Gemma 4 26B-A4B, alone: what
 * tools/gpu_check.py sets beside PyTorch's. Compiled together with the model's launches, once for each
 * recipe: SOURCE is its sm80.c, FORMAT what its matrices are in.
 *
 *   check-times [MIB] < questions        MIB: how much memory has random weights; 4096
 *
 * A question is a line "CASE ROWS CONTEXT REPEATS"; the answer to it is a line with the milliseconds
 * that one call took, each time anew. Weights are other ones at each call, so that they come from
 * memory as they do between two tokens. Numbers are random, between -1 and 1.
 *
 *   linear_d_model linear_d_ff linear_d_q linear_d_global_q      ROWS rows by a matrix
 *   experts              the products of ROWS tokens with 8 of 128 experts each
 *   attention            heads of 512: ROWS sequences, a new token each, behind CONTEXT others;
 *                        with CONTEXT 0 one sequence of ROWS tokens
 *   attention_window     heads of 256, the last 1024 tokens: likewise */
#include SOURCE

#include "runtime/device/cuda/cuda.h"
#include "runtime/device/cuda/open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOIN_(a, b, c) a##b##c
#define JOIN(a, b, c) JOIN_(a, b, c)
#define LINEAR(k) JOIN(JOIN(linear_, FORMAT, _), k, )
#define OUR_OWN NULL, 0 /* no scratch for cuBLASLt, which does nothing here */
#define EXPERTS_GLU JOIN(experts_gelu_tanh_, FORMAT, _d_model)
#define EXPERTS_DOWN JOIN(experts_down_, FORMAT, _d_expert)

enum { MAX_ROWS = 4096, PER_MEASUREMENT = 10, MAX_REPEATS = 100 };

static struct burin_error err;
static struct burin_driver driver;
static struct burin_nvrtc nvrtc;
static struct burin_cuda cuda;
static struct burin_stream_failure failure;
static struct burin_stream stream = { .cuda = &cuda, .failure = &failure };
static struct burin_cu_stream *handle;

/* Device memory. */
static uint64_t pool;    /* weights and keys: random numbers */
static size_t n_pool;    /* bytes of it */
static size_t pool_next; /* where the next weight begins */
static uint64_t x, y, scratch, chosen, begin, rows, ints;
static const size_t N_SCRATCH = (size_t)1 << 28;

static void stop(const char *what)
{
    fprintf(stderr, "check-times: %s: %s\n", what, err.message);
    exit(1);
}

#define MUST(call, ...)                                                                    \
    do {                                                                                   \
        const int result_ = driver.call(__VA_ARGS__);                                      \
        if (result_) {                                                                     \
            fprintf(stderr, "check-times: %s: error %d\n", #call, result_);                \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

static uint64_t take(size_t bytes)
{
    uint64_t address;
    MUST(cuMemAlloc_v2, &address, bytes);
    return address;
}

/* bf16 numbers between -1 and 1. */
static void fill(uint64_t address, size_t bytes)
{
    enum { N = 1 << 24 };
    static uint16_t numbers[N];
    uint64_t state = 1;
    for (int i = 0; numbers[N - 1] == 0 && i < N; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const float value = (float)(int32_t)(state >> 32) / 2147483648.0f;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        numbers[i] = (uint16_t)(bits >> 16) | 1;
    }
    for (size_t at = 0; at < bytes; at += sizeof numbers) {
        const size_t n = bytes - at < sizeof numbers ? bytes - at : sizeof numbers;
        MUST(cuMemcpyHtoDAsync_v2, address + at, numbers, n, handle);
        MUST(cuStreamSynchronize, handle);
    }
}

static const void *at(uint64_t address)
{
    return (const void *)(uintptr_t)address;
}

/* `bytes` of the pool that the calls before it have not read. */
static const void *next_weights(size_t bytes)
{
    bytes = (bytes + 255) / 256 * 256;
    if (bytes > n_pool) {
        fprintf(stderr, "check-times: %zu bytes of weights, there are %zu\n", bytes,
                n_pool);
        exit(1);
    }
    if (pool_next + bytes > n_pool)
        pool_next = 0;
    pool_next += bytes;
    return at(pool + pool_next - bytes);
}

/* ---- Cases ------------------------------------------------------------------------------- */

/* What ints holds, in this order. */
struct inputs {
    int positions[MAX_ROWS];
    int sequence_begin[MAX_ROWS + 1];
    int state_of[MAX_ROWS];
    int spans[MAX_ROWS];
    int page_table[1 << 16];
};

static const struct burin_kv_layout *layout;
static int max_pages;

static const void *int_array(size_t offset)
{
    return at(ints + offset);
}

#define INTS(member) int_array(offsetof(struct inputs, member))

/* ROWS sequences of one new token each, behind `context` others; or one of ROWS tokens. */
static void put_inputs(int n_rows, int context)
{
    static struct inputs in;
    const int page = layout->page_tokens;
    const int n_pages = (int)(n_pool / layout->page_bytes);
    max_pages = (context ? context + 1 : n_rows) / page + 1;
    for (int i = 0; i < n_rows; i++) {
        in.positions[i] = context ? context : i;
        in.sequence_begin[i + 1] = context ? i + 1 : n_rows;
        in.state_of[i] = 0;
        in.spans[i] = in.positions[i] + 1;
    }
    const int n = (context ? n_rows : 1) * max_pages;
    for (int i = 0; i < n && i < (int)(sizeof in.page_table / sizeof(int)); i++)
        in.page_table[i] = i % n_pages;
    MUST(cuMemcpyHtoDAsync_v2, ints, &in, sizeof in, handle);
    MUST(cuStreamSynchronize, handle);
}

#define N_BYTES(n, k)                                                                      \
    ((size_t)(n) * (size_t)(k)*2) /* a matrix in bf16: no format takes more */

static void linear_d_model(int n_rows, int context)
{
    (void)context;
    LINEAR(d_model)
    (&stream, at(y), D_Q, at(x), next_weights(N_BYTES(D_Q, D_MODEL)), D_Q, n_rows, OUR_OWN);
}

static void linear_d_ff(int n_rows, int context)
{
    (void)context;
    LINEAR(d_ff)
    (&stream, at(y), D_MODEL, at(x), next_weights(N_BYTES(D_MODEL, D_FF)), D_MODEL, n_rows,
     OUR_OWN);
}

static void linear_d_q(int n_rows, int context)
{
    (void)context;
    LINEAR(d_q)
    (&stream, at(y), D_MODEL, at(x), next_weights(N_BYTES(D_MODEL, D_Q)), D_MODEL, n_rows,
     OUR_OWN);
}

static void linear_d_global_q(int n_rows, int context)
{
    (void)context;
    LINEAR(d_global_q)
    (&stream, at(y), D_MODEL, at(x), next_weights(N_BYTES(D_MODEL, D_GLOBAL_Q)), D_MODEL,
     n_rows, OUR_OWN);
}

static void experts(int n_rows, int context)
{
    (void)context;
    const size_t bytes = N_EXPERTS * N_BYTES(D_EXPERT, D_MODEL);
    EXPERTS_GLU(
            &stream, at(scratch), at(x), next_weights(2 * bytes), at(rows), at(begin),
            D_EXPERT, n_rows);
    EXPERTS_DOWN(
            &stream, at(y), at(scratch), next_weights(bytes), at(rows), at(begin), D_MODEL,
            n_rows);
}

static void attention(int n_rows, int context)
{
    attention_16x2x512_bf16(
            &stream, at(y), at(x), D_GLOBAL_Q, at(pool), INTS(positions),
            INTS(sequence_begin), INTS(page_table), max_pages, context ? n_rows : 1, n_rows,
            at(scratch));
    attention_merged_u16(&stream, at(y), at(scratch), INTS(positions), n_rows);
}

static void attention_window(int n_rows, int context)
{
    attention_window_1024_spans_16x8x256_bf16(
            &stream, at(y), at(x), D_Q, at(pool), INTS(state_of), at(pool + n_pool / 2),
            D_KV, at(pool + n_pool / 2 + 2 * MAX_ROWS * D_KV), D_KV, INTS(positions),
            INTS(sequence_begin), INTS(spans), context ? n_rows : 1, n_rows, at(scratch));
    attention_merged_spans_u16(
            &stream, at(y), at(scratch), INTS(positions), INTS(spans), n_rows);
}

static const struct {
    const char *name;
    void (*run)(int n_rows, int context);
} cases[] = {
    { "linear_d_model", linear_d_model },
    { "linear_d_ff", linear_d_ff },
    { "linear_d_q", linear_d_q },
    { "linear_d_global_q", linear_d_global_q },
    { "experts", experts },
    { "attention", attention },
    { "attention_window", attention_window },
};
enum { N_CASES = sizeof cases / sizeof *cases };

/* ---- The command --------------------------------------------------------------------------- */

static void start(size_t mib)
{
    struct burin_compiling how = { .nvrtc = &nvrtc, .n_threads = 16 };
    struct burin_compile_counts counts;
    size_t local;
    if (burin_driver_open(&driver, &err) || burin_cuda_open(&cuda, &driver, 0, &err))
        stop("open");
    int family = 0;
    while (!burin_model.families[family].cuda)
        family++;
    layout = burin_model.families[family].kv;
    if (burin_cuda_context(&cuda, &err) ||
        burin_cuda_load(&cuda, burin_model.families[family].cuda, &how, &counts, &err) ||
        burin_cuda_local(&cuda, &local, &err))
        stop("load");
    MUST(cuStreamCreate, &handle, CU_STREAM_NON_BLOCKING);
    stream.handle = handle;
    stream.functions = cuda.functions;

    n_pool = mib << 20;
    pool = take(n_pool);
    x = take((size_t)MAX_ROWS * D_GLOBAL_Q * 4);
    y = take((size_t)MAX_ROWS * D_GLOBAL_Q * 4 * 2);
    scratch = take(N_SCRATCH);
    chosen = take((size_t)MAX_ROWS * 64);
    begin = take((size_t)N_EXPERTS * 64);
    rows = take((size_t)MAX_ROWS * 64);
    ints = take(sizeof(struct inputs));
    fill(pool, n_pool);
    fill(x, (size_t)MAX_ROWS * D_GLOBAL_Q * 4);
}

static int by_size(const void *a, const void *b)
{
    const float p = *(const float *)a, q = *(const float *)b;
    return (p > q) - (p < q);
}

static void answer(int number, int n_rows, int context, int n_repeats)
{
    static float ms[MAX_REPEATS];
    struct burin_cu_event *first, *last;
    MUST(cuEventCreate, &first, CU_EVENT_TIMED);
    MUST(cuEventCreate, &last, CU_EVENT_TIMED);
    put_inputs(n_rows, context);
    top_8_of_n_experts_f32(&stream, at(chosen), at(x), n_rows);
    expert_begin_n_experts(&stream, at(begin), at(chosen), n_rows);
    expert_rows_n_experts(&stream, at(rows), at(chosen), at(begin), n_rows);
    cases[number].run(n_rows, context);
    for (int i = 0; i < n_repeats; i++) {
        MUST(cuEventRecord, first, handle);
        for (int k = 0; k < PER_MEASUREMENT; k++)
            cases[number].run(n_rows, context);
        MUST(cuEventRecord, last, handle);
        MUST(cuEventSynchronize, last);
        MUST(cuEventElapsedTime, &ms[i], first, last);
    }
    if (burin_stream_status(&stream, &err))
        stop(cases[number].name);
    qsort(ms, (size_t)n_repeats, sizeof *ms, by_size);
    for (int i = 0; i < n_repeats; i++)
        printf("%.6f%c", (double)ms[i] / PER_MEASUREMENT, i == n_repeats - 1 ? '\n' : ' ');
    fflush(stdout);
    MUST(cuEventDestroy_v2, first);
    MUST(cuEventDestroy_v2, last);
}

int main(int argc, char **argv)
{
    char line[256], name[64];
    int n_rows, context, n_repeats;
    start(argc > 1 ? (size_t)atoi(argv[1]) : 4096);
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "%63s %d %d %d", name, &n_rows, &context, &n_repeats) != 4 ||
            n_rows < 1 || n_rows > MAX_ROWS || n_repeats < 1 || n_repeats > MAX_REPEATS) {
            fprintf(stderr, "check-times: no question: %s", line);
            return 2;
        }
        int number = 0;
        while (number < N_CASES && strcmp(cases[number].name, name) != 0)
            number++;
        if (number == N_CASES) {
            fprintf(stderr, "check-times: there is no case %s\n", name);
            return 2;
        }
        answer(number, n_rows, context, n_repeats);
    }
    MUST(cuStreamDestroy_v2, handle);
    burin_cuda_close(&cuda);
    return 0;
}
