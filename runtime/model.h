/* runtime/model.h -- The contract that emitted code fulfils: one struct burin_model, its
 * tables and its programs. The runtime knows a model through this file alone.
 *
 * Units    Bytes, unless a name says tokens, rows or elements.
 * Memory   Everything here is emitted `static const`; it lives as long as the binary.
 * Threads  Read-only, free to share.
 * Source   gen/tables.lua derives each row from the graph that the code is emitted from. */
#ifndef BURIN_MODEL_H
#define BURIN_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What varies from one call of a program to the next. */
enum burin_extent {
    BURIN_TOKENS,    /* rows of a step */
    BURIN_SEQUENCES, /* sequences that these rows belong to */
    BURIN_OUTPUTS,   /* rows whose logits are wanted */
    BURIN_SOFT,      /* soft tokens of an encoder; its patches or frames are a multiple */
    BURIN_N_EXTENTS
};

/* What is bound once, at start-up or by `plan`. */
enum burin_param {
    BURIN_MAX_CONTEXT,   /* tokens a sequence may reach */
    BURIN_MAX_PAGES,     /* pages a sequence may hold: max_context in pages, rounded up */
    BURIN_MAX_SEQUENCES, /* sequences at once */
    BURIN_THREADS,
    BURIN_DRAFT,     /* tokens drafted a step, 0 for none */
    BURIN_MAX_SOFT,  /* rows of the encoder cache */
    BURIN_FAST_GEMM, /* 1: cuBLASLt may do plain dense products of many rows, else 0 */
    BURIN_N_PARAMS
};

struct burin_params {
    int64_t value[BURIN_N_PARAMS];
};

/* sum over terms of factor * product of params[i]^power[i] */
enum { BURIN_MAX_TERMS = 4 };
struct burin_size {
    struct {
        int64_t factor; /* a zero factor ends the list */
        uint8_t power[BURIN_N_PARAMS];
    } terms[BURIN_MAX_TERMS];
};

/* fixed + slope * extent */
struct burin_linear {
    struct burin_size fixed;
    struct burin_size slope;
    enum burin_extent extent;
};

/* Element types of buffers and inputs, and of the KV cache. */
enum burin_dtype {
    BURIN_F32,
    BURIN_F16,
    BURIN_BF16,
    BURIN_I32,
    BURIN_U8,
    BURIN_Q8,  /* activations: int8 with a scale and a sum per 32, gen/formats/act_q8.lua */
    BURIN_FP8, /* e4m3; an activation's rows have a scale each */
    BURIN_NVFP4, /* e2m1 with an e4m3 scale per 16 */
    BURIN_N_DTYPES
};

/* Formats of weights, as a file holds them. */
enum burin_format {
    BURIN_FORMAT_F32,
    BURIN_FORMAT_F16,
    BURIN_FORMAT_BF16,
    BURIN_FORMAT_Q4_0,
    BURIN_FORMAT_Q4_1,
    BURIN_FORMAT_Q8_0,
    BURIN_FORMAT_FP8,       /* e4m3, a scale an output row */
    BURIN_FORMAT_FP8_BLOCK, /* e4m3, a scale per 128 x 128 */
    BURIN_FORMAT_NVFP4,
    BURIN_FORMAT_INT4_G32,
    BURIN_FORMAT_INT4_G128,
    BURIN_N_FORMATS
};

/* ---- Tables ---------------------------------------------------------------------- */

/* capture_inputs: what must stand at a fixed address before a program runs, in the order
 * of burin_call.inputs. */
struct burin_input {
    const char *name; /* "token_ids", "positions", ... : a role that the engine fills */
    enum burin_dtype dtype;
    int n_dims;
    struct burin_linear dims[3];
};

/* outputs: what a program leaves in the arena until its next run. */
struct burin_output {
    const char *name; /* "logits" */
    enum burin_dtype dtype;
    int n_dims;
    struct burin_linear dims[3];
    int phase;                  /* index into costs: where in the arena it lies */
    struct burin_linear offset; /* from the begin of that phase's region */
};

/* chunk_costs. The first rows are what is carried from phase to phase, one for each extent
 * that it has and at least one, and lie one behind another. The others are phases in order,
 * and all begin where the carried end:
 * arena(n) = sum over the carried + max over the phases. */
struct burin_chunk_cost {
    const char *phase; /* "carried", "body", "head" */
    struct burin_linear bytes;
    int quantum; /* prompts are cut at multiples of this only */
};

/* graph_budgets, as far as it does not depend on n. What n costs in inputs and arena the
 * planner reads off the two tables above; what a node costs the driver is the device's. */
struct burin_graph_cost {
    int kernel_nodes;
    int copy_nodes;
};

/* A buffer of the arena, for the test that kernels agree with the table. Live from the end
 * of op first-1 to the end of op last, both counted from 0 in the program's order. */
struct burin_buffer {
    const char *name;
    const char *shape; /* "(9 * soft, D_VISION)" */
    const char *where; /* the description's line that made it: "models/gemma4.lua:57" */
    int phase;         /* index into costs */
    enum burin_dtype dtype;
    struct burin_linear offset; /* from the begin of the phase's region */
    struct burin_linear bytes;
    int first_op;
    int last_op;
};

enum burin_state {
    BURIN_STATE_PAGED, /* keys and values of all tokens, in pages */
    BURIN_STATE_RING,  /* of the last `window` tokens and of those drafted, a sequence */
    BURIN_STATE_FIXED, /* what a scan carries on, a sequence */
};

struct burin_layer_state {
    const char *name; /* "kv", or the block member's */
    enum burin_state state;
    const char *group; /* "layers" */
    int layer;         /* the layer that writes it */
    int program;       /* index of the first program that writes it: without it, no bytes */
    int n_readers;     /* layers that read it */
    int n_heads;
    int d_key;
    int d_value;
    int window;                /* tokens kept, 0 for all */
    size_t bytes_per_token;    /* of pages */
    size_t bytes_per_sequence; /* of rings without drafts, and of what is fixed */
    size_t bytes_per_draft;    /* more, a sequence and drafted token */
    size_t page_offset;        /* where in a page this layer's keys and values begin */
    size_t slot_offset;        /* on a CPU: where in a slot this ring or state begins */
};

/* kv_layout, one for each dtype that the family has. A page holds page_tokens tokens of
 * every layer whose cache is paged: page p lies at states[0] + p * page_bytes. On a CPU a slot
 * holds a sequence's rings and fixed states: slot s lies at states[1] + s * slot_bytes. The
 * sums are those of the rows that `step` writes; a `draft` program's come on top. */
struct burin_kv_layout {
    enum burin_dtype dtype;
    int page_tokens;
    size_t page_bytes;
    size_t slot_bytes;
    size_t bytes_per_token;
    size_t bytes_per_sequence;
    size_t bytes_per_draft;
    int n_rows;
    const struct burin_layer_state *rows;
};

enum burin_container { BURIN_SAFETENSORS, BURIN_GGUF, BURIN_N_CONTAINERS };

/* weights. A matrix is packed in tiles of BURIN_TILE_ROWS rows: tile i begins at
 * offset + i * tile_stride. Rows missing in the last tile are zeros. Of a stack of experts, part p
 * of matrix m begins at offset + m * n * tile_stride + p * tile_bytes, with n tiles a part. */
enum { BURIN_TILE_ROWS = 32 };
struct burin_weight {
    const char *role;  /* "wq" */
    const char *group; /* "layers", NULL outside */
    int layer;         /* -1 outside */
    const char *names[BURIN_N_CONTAINERS];
    int64_t n_rows; /* outputs, of all matrices of a stack; 1 for a vector */
    int64_t n_cols; /* inputs, contiguous in the file */
    enum burin_format format;
    /* GGUF only: rows lie in pairs within each head of n_rows / this; 0 where they don't.
     * The loader gives rows to pack() in Hugging Face's order. */
    int gguf_rope_heads;
    /* As a safetensors file has it: n_cols last, what is before it makes n_rows. A number has
     * no dims. */
    int n_dims;
    int64_t dims[4];
    float around; /* what trained values lie around, for tools/synth: 1 for most norms */
    /* Of a stack of experts, which have tiles of their own: how many, and the parts of equal
     * rows that each is (gate and up), whose tiles lie in turn. 0 for all else. */
    int n_matrices;
    int n_parts;
    /* What safetensors call the parts where each is a tensor, "...experts.%d.up_proj.weight" */
    const char *pieces[2];
};

/* Matrices, or parts of matrices, that each have tiles of their own. */
static inline int64_t burin_weight_pieces(const struct burin_weight *weight)
{
    return weight->n_matrices ? (int64_t)weight->n_matrices * weight->n_parts : 1;
}

static inline int64_t burin_weight_tiles(const struct burin_weight *weight)
{
    const int64_t n = burin_weight_pieces(weight);
    return n * ((weight->n_rows / n + BURIN_TILE_ROWS - 1) / BURIN_TILE_ROWS);
}

/* hyperparameters: what a checkpoint may say of itself besides its tensors, read off the traced
 * operations. Only what is the same in all layers has a row; a list in a file says a value for
 * each layer. A file that hasn't the key is not compared. */
struct burin_hyperparameter {
    enum burin_container container;
    double number; /* within 1e-6 of it, since files hold floats; a bool is 0 or 1 */
    const char
            *text; /* words that it may be instead, with spaces between; NULL: a number */
    /* All that may hold it, with spaces between. GGUF: ".rope.freq_base" follows the file's own
     * architecture; of a tensor in f32 the largest element is meant. safetensors: a path in config.json, "rope_parameters.rope_theta"; what
     * stands in text_config counts as if it stood outside. */
    const char *keys;
};

struct burin_packed {
    size_t offset; /* from the begin of the weight arena */
    size_t tile_bytes;
    size_t tile_stride;
    /* Pack up to BURIN_TILE_ROWS rows of `n_cols` elements, as the file holds them, into
     * one tile. rows[i] need not be aligned. */
    void (*pack)(uint8_t *tile, const uint8_t *const *rows, int n_rows, int64_t n_cols);
};

/* ---- Programs -------------------------------------------------------------------- */

struct burin_team; /* runtime/cpu/team.h */

struct burin_call {
    const uint8_t *weights;     /* the packed arena */
    uint8_t *arena;             /* at least arena(n) bytes, aligned to 64 */
    const void *const *inputs;  /* in the order of burin_program.inputs */
    uint8_t *const *states;     /* [0] the KV pages, [1] the slots */
    int n[BURIN_N_EXTENTS];     /* e.g. n[BURIN_TOKENS] */
    struct burin_params params; /* as bound at start-up */
};

/* Every thread of the team calls it with the same arguments; it returns when all are done. */
typedef void burin_run(const struct burin_team *team, const struct burin_call *call);

/* ---- CUDA ------------------------------------------------------------------------- */

/* One kernel of a CUDA family, as NVRTC compiles it behind the prelude. */
struct burin_kernel {
    const char *name; /* of its function, extern "C" */
    const char *text;
    int threads;      /* of a block */
    int shared_bytes; /* of dynamic shared memory, at most */
    bool fast_gemm;   /* needed under --fast-gemm only */
};

/* A kernel compiled when the binary was built. */
struct burin_cubin {
    const char *arch; /* "sm_90a" */
    int kernel;       /* index into burin_cuda_code.kernels */
    const uint8_t *bytes;
    size_t n_bytes;
};

struct burin_cuda_code {
    const char *prelude;
    int n_kernels;
    const struct burin_kernel *kernels;
    const struct burin_cubin *cubins; /* NULL, or up to one without an arch: gen --aot */
};

struct burin_stream; /* runtime/device/cuda/launch.h */

/* Puts all kernels of a program on a stream. What went wrong is kept in the stream. */
typedef void burin_enqueue(
        const struct burin_stream *stream, const struct burin_call *call);

struct burin_program {
    const char *name;         /* "step", "draft", "encode_image" */
    enum burin_extent extent; /* what n of its graphs counts: sequences, or soft tokens */
    int smallest_item;        /* soft tokens of an encoder's smallest and largest item; 0 */
    int largest_item;
    int frame_item;       /* of a frame of video, at most; 0: as any item */
    size_t weights_bytes; /* of what no program before it reads */
    int n_inputs;
    const struct burin_input *inputs;
    int n_outputs;
    const struct burin_output *outputs;
    int n_carried; /* of the costs */
    int n_costs;
    const struct burin_chunk_cost *costs;
    struct burin_graph_cost graph;
    int n_buffers;
    const struct burin_buffer *buffers;
    /* One for each of the family's kv layouts: run on a CPU, enqueue on a GPU, where an entry may
     * be NULL. Both NULL: tables only. */
    burin_run *const *run;
    burin_enqueue *const *enqueue;
    const char *missing; /* what this family has no kernels for, or NULL: why both are */
};

/* Whether there are kernels for it, with keys and values in the family's kv layout `kv`. */
static inline bool burin_program_runs(const struct burin_program *program, int kv)
{
    return program->run || (program->enqueue && program->enqueue[kv]);
}

/* One lowering of the model for one kind of machine. */
enum burin_cpu_feature { BURIN_CPU_ANY = 0, BURIN_CPU_AVX512 = 1 };
struct burin_family {
    const char *name;                   /* "portable", "avx512", "sm80" */
    bool exact;                         /* everything in f32 */
    int sm;                             /* 0 for a CPU; the least compute capability: 80 */
    enum burin_cpu_feature cpu_feature; /* what the processor must have */
    size_t weights_bytes;               /* what lies behind them no program here reads */
    size_t token_bytes; /* of these, what a step of one token reads: of tables the row, of
                           experts those chosen */
    const struct burin_packed *packed; /* parallel to burin_model.weights */
    int n_kv;
    const struct burin_kv_layout *kv; /* [0] is the default */
    int n_programs;
    const struct burin_program *programs;
    const struct burin_cuda_code *cuda; /* what its programs enqueue; NULL on a CPU */
};

struct burin_dim {
    const char *name;
    int64_t value;
};

struct burin_model {
    const char *name;         /* "llama-smollm2-135m-q4_1" */
    const char *architecture; /* the description's file, "llama" */
    const char *variant;      /* "smollm2-135m" */
    const char *recipe;       /* "q4_1" */
    const char *demo_weights; /* what tools/demo-weights calls it, or NULL */
    const char *chat;         /* the chat function's Lua source, or NULL */
    int64_t n_elements;       /* of all weights, tied ones once */
    int n_layers;
    int n_vocab;
    int n_ctx;
    int n_dims;
    const struct burin_dim *dims;
    int n_hyperparameters;
    const struct burin_hyperparameter *hyperparameters;
    int n_weights;
    const struct burin_weight *weights;
    int n_unread; /* what a checkpoint holds besides and no program reads */
    const struct burin_weight *unread;
    int n_families;
    const struct burin_family *families; /* best first: a default and an exact one each */
};

/* The model that this binary was built for. */
extern const struct burin_model burin_model;

#endif
