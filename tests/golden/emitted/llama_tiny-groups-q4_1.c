/* ---- Programs -------------------------------------------------------------------- */

enum {
    D_QKV = D_Q + D_KV + D_KV,
    BODY_SCRATCH = bytes,   /* bytes a thread */
    LAYER_PAGE_BF16 = 8192, /* bytes of one layer in a page */
    LAYER_PAGE_F32 = 16384, /* bytes of one layer in a page */
};

/* The weights of one layer, in the order in which they are read. */
struct decoder_block_weights {
    const float *attn_norm; /* (D_MODEL) */
    const uint8_t *wq;      /* (D_Q, D_MODEL), q4_1 */
    const uint8_t *wk;      /* (D_KV, D_MODEL), q4_1 */
    const uint8_t *wv;      /* (D_KV, D_MODEL), q4_1 */
    const uint8_t *wo;      /* (D_MODEL, D_Q), q4_1 */
    const float *ffn_norm;  /* (D_MODEL) */
    const uint8_t *w_gate;  /* (D_FF, D_MODEL), q4_1 */
    const uint8_t *w_up;    /* (D_FF, D_MODEL), q4_1 */
    const uint8_t *w_down;  /* (D_MODEL, D_FF), q4_1 */
};

static struct decoder_block_weights decoder_block_weights(const uint8_t *weights, int layer)
{
    const uint8_t *begin = weights + 8960 + (size_t)layer * 29952;

    return (struct decoder_block_weights){
        .attn_norm = (const float *)begin,
        .wq = begin + 256,
        .wk = begin + 4096,
        .wv = begin + 5376,
        .wo = begin + 6656,
        .ffn_norm = (const float *)(begin + 10496),
        .w_gate = begin + 10752,
        .w_up = begin + 12032,
        .w_down = begin + 23552,
    };
}

/* What a step keeps in the arena: planned by gen/passes/place.lua. */
struct step_buffers {
    float *angles;         /* (tokens, 16), 64 B a row, body */
    float *x;              /* (tokens, D_MODEL), 256 B a row, body */
    uint8_t *h;            /* (tokens, D_MODEL) as q8, 128 B a row, body */
    float *qkv;            /* (tokens, D_QKV), 640 B a row, body */
    float *a;              /* (tokens, D_Q), 384 B a row, body */
    uint8_t *convert;      /* (tokens, D_Q) as q8, 128 B a row, body */
    uint8_t *f;            /* (tokens, D_MODEL) as q8, 128 B a row, body */
    uint8_t *g;            /* (tokens, D_FF) as q8, 256 B a row, body */
    float *out;            /* (outputs, D_MODEL), 256 B a row, carried */
    uint8_t *rms_norm;     /* (outputs, D_MODEL) as q8x2, 256 B a row, head */
    float *logits;         /* (outputs, N_VOCAB), 800 B a row, head */
    uint8_t *body_scratch; /* bytes, this thread's own */
};

static struct step_buffers step_buffers(
        const struct burin_team *t, const struct burin_call *call)
{
    const size_t n_tokens = (size_t)call->n[BURIN_TOKENS];
    const size_t n_outputs = (size_t)call->n[BURIN_OUTPUTS];
    const size_t n_threads = (size_t)call->params.value[BURIN_THREADS];
    uint8_t *carried = call->arena;
    uint8_t *phases = carried + 256 * n_outputs;
    uint8_t *body = phases + BODY_SCRATCH * n_threads;
    uint8_t *head = phases;

    return (struct step_buffers){
        .angles = (float *)(body + 1280 * n_tokens),
        .x = (float *)(body + 1024 * n_tokens),
        .h = body + 640 * n_tokens,
        .qkv = (float *)body,
        .a = (float *)(body + 640 * n_tokens),
        .convert = body,
        .f = body + 256 * n_tokens,
        .g = body,
        .out = (float *)carried,
        .rms_norm = head + 832 * n_outputs,
        .logits = (float *)head,
        .body_scratch = phases + (size_t)t->thread * BODY_SCRATCH,
    };
}

/* What a call brings along. */
struct step_batch {
    const int32_t *token_ids;      /* (tokens) */
    const int32_t *positions;      /* (tokens) */
    const int32_t *sequence_of;    /* (tokens) */
    const int32_t *sequence_begin; /* (sequences + 1) */
    const int32_t *page_table;     /* (sequences, MAX_PAGES) */
    const int32_t *output_rows;    /* (outputs) */
    uint8_t *pages;                /* page 0 */
    int max_pages;                 /* a sequence's row of page_table */
    int n_tokens;
    int n_outputs;
};

static struct step_batch step_batch(const struct burin_call *call)
{
    return (struct step_batch){
        .token_ids = call->inputs[0],
        .positions = call->inputs[1],
        .sequence_of = call->inputs[2],
        .sequence_begin = call->inputs[3],
        .page_table = call->inputs[4],
        .output_rows = call->inputs[5],
        .pages = call->states[0],
        .max_pages = (int)call->params.value[BURIN_MAX_PAGES],
        .n_tokens = call->n[BURIN_TOKENS],
        .n_outputs = call->n[BURIN_OUTPUTS],
    };
}

/* ---- step, with keys and values in bf16 ------------------------------------------ */

/* Layers 0 ... 2; s->x is updated in place.   models/llama_tiny.lua:line block.forward */
static void decoder_block_bf16(
        const struct burin_team *t, /* every thread runs this and takes its share */
        const struct decoder_block_weights *w,
        const struct step_buffers *s,
        const struct step_batch *b,
        uint8_t *pages) /* this layer's part of page 0 */
{
    /* line  local h = rms_norm(x, w.attn_norm, { eps = 1e-5 }) */
    rms_norm_d_model_q8(t, s->h, s->x, w->attn_norm, b->n_tokens);
    burin_barrier(t); /* h complete */

    /* line  local q = rope(linear(h, w.wq), batch.positions, { theta = 10000 })
     * line  local k = rope(linear(h, w.wk), batch.positions, { theta = 10000 })
     * line  local v = linear(h, w.wv) */
    linear_q4_1_d_model(t, s->qkv, D_QKV, s->h, w->wq, D_FF, b->n_tokens);
    burin_barrier(t); /* qkv complete */
    rope_d_head(t, s->qkv, D_QKV, N_HEADS, s->angles, b->n_tokens);
    rope_d_head(t, s->qkv + D_Q, D_QKV, N_KV_HEADS, s->angles, b->n_tokens);

    /* line  local a = attention(q, kv:append(k, v)) */
    kv_append_bf16_2x16(
            t, pages, s->qkv + D_Q, D_QKV, s->qkv + D_Q + D_KV, D_QKV, b->positions,
            b->sequence_of, b->page_table, b->max_pages, b->n_tokens);
    burin_barrier(t); /* qkv complete */
    attention_bf16_6x2x16_f32(
            t, s->a, s->qkv, D_QKV, pages, b->positions, b->sequence_of, b->sequence_begin,
            b->page_table, b->max_pages, b->n_tokens, s->body_scratch, BODY_SCRATCH);
    burin_barrier(t); /* convert lies where qkv did */

    /* line  x = x + linear(a, w.wo) */
    convert_d_q_q8(t, s->convert, s->a, b->n_tokens);
    burin_barrier(t); /* convert complete */
    linear_add_q4_1_d_q(t, s->x, D_MODEL, s->convert, w->wo, D_MODEL, b->n_tokens);
    burin_barrier(t); /* x complete */

    /* line  local f = rms_norm(x, w.ffn_norm, { eps = 1e-5 }) */
    rms_norm_d_model_q8(t, s->f, s->x, w->ffn_norm, b->n_tokens);
    burin_barrier(t); /* f complete */

    /* line  local g = silu(linear(f, w.w_gate)) * linear(f, w.w_up) */
    linear_silu_q4_1_d_model_q8(t, s->g, s->f, w->w_gate, D_FF, b->n_tokens);
    burin_barrier(t); /* g complete */

    /* line  return x + linear(g, w.w_down) */
    linear_add_q4_1_d_ff(t, s->x, D_MODEL, s->g, w->w_down, D_MODEL, b->n_tokens);
    burin_barrier(t); /* x complete */
}

void portable_step_bf16(const struct burin_team *t, const struct burin_call *call)
{
    const struct step_buffers s = step_buffers(t, call);
    const struct step_batch b = step_batch(call);
    const struct {
        const uint8_t *embed; /* (N_VOCAB, D_MODEL), q4_1 */
        const float *norm;    /* (D_MODEL) */
        const uint8_t *head;  /* (N_VOCAB, D_MODEL), q8_0 */
    } w = {
        .embed = call->weights,
        .norm = (const float *)(call->weights + 98816),
        .head = call->weights + 99072,
    };

    /* line  local q = rope(linear(h, w.wq), batch.positions, { theta = 10000 }) */
    rope_angles_step(t, s.angles, b.positions, b.n_tokens);

    /* line  local x = w.layers(nn.embedding(batch.token_ids, w.embed), batch) */
    embedding_q4_1_d_model(t, s.x, b.token_ids, w.embed, b.n_tokens);
    burin_barrier(t); /* x complete */
    for (int layer = 0; layer < N_LAYERS; layer++) {
        const struct decoder_block_weights block =
                decoder_block_weights(call->weights, layer);
        decoder_block_bf16(t, &block, &s, &b, b.pages + (size_t)layer * LAYER_PAGE_BF16);
    }

    /* line  local out = nn.rows(x, batch.output_rows)   -- (outputs, d_model): the head is its own phase */
    rows_d_model(t, s.out, s.x, b.output_rows, b.n_outputs);
    burin_barrier(t); /* rms_norm lies where x did */

    /* line  return linear(rms_norm(out, w.norm, { eps = 1e-5 }), w.head) */
    rms_norm_d_model_q8x2(t, s.rms_norm, s.out, w.norm, b.n_outputs);
    burin_barrier(t); /* rms_norm complete */
    linear_q8_0_q8x2_d_model(
            t, s.logits, N_VOCAB, s.rms_norm, w.head, N_VOCAB, b.n_outputs);
    burin_barrier(t); /* all threads are done when the first returns */
}

/* ---- step, with keys and values in f32 ------------------------------------------- */

/* Layers 0 ... 2; s->x is updated in place.   models/llama_tiny.lua:line block.forward */
static void decoder_block_f32(
        const struct burin_team *t, /* every thread runs this and takes its share */
        const struct decoder_block_weights *w,
        const struct step_buffers *s,
        const struct step_batch *b,
        uint8_t *pages) /* this layer's part of page 0 */
{
    /* line  local h = rms_norm(x, w.attn_norm, { eps = 1e-5 }) */
    rms_norm_d_model_q8(t, s->h, s->x, w->attn_norm, b->n_tokens);
    burin_barrier(t); /* h complete */

    /* line  local q = rope(linear(h, w.wq), batch.positions, { theta = 10000 })
     * line  local k = rope(linear(h, w.wk), batch.positions, { theta = 10000 })
     * line  local v = linear(h, w.wv) */
    linear_q4_1_d_model(t, s->qkv, D_QKV, s->h, w->wq, D_FF, b->n_tokens);
    burin_barrier(t); /* qkv complete */
    rope_d_head(t, s->qkv, D_QKV, N_HEADS, s->angles, b->n_tokens);
    rope_d_head(t, s->qkv + D_Q, D_QKV, N_KV_HEADS, s->angles, b->n_tokens);

    /* line  local a = attention(q, kv:append(k, v)) */
    kv_append_f32_2x16(
            t, pages, s->qkv + D_Q, D_QKV, s->qkv + D_Q + D_KV, D_QKV, b->positions,
            b->sequence_of, b->page_table, b->max_pages, b->n_tokens);
    burin_barrier(t); /* qkv complete */
    attention_f32_6x2x16_f32(
            t, s->a, s->qkv, D_QKV, pages, b->positions, b->sequence_of, b->sequence_begin,
            b->page_table, b->max_pages, b->n_tokens, s->body_scratch, BODY_SCRATCH);
    burin_barrier(t); /* convert lies where qkv did */

    /* line  x = x + linear(a, w.wo) */
    convert_d_q_q8(t, s->convert, s->a, b->n_tokens);
    burin_barrier(t); /* convert complete */
    linear_add_q4_1_d_q(t, s->x, D_MODEL, s->convert, w->wo, D_MODEL, b->n_tokens);
    burin_barrier(t); /* x complete */

    /* line  local f = rms_norm(x, w.ffn_norm, { eps = 1e-5 }) */
    rms_norm_d_model_q8(t, s->f, s->x, w->ffn_norm, b->n_tokens);
    burin_barrier(t); /* f complete */

    /* line  local g = silu(linear(f, w.w_gate)) * linear(f, w.w_up) */
    linear_silu_q4_1_d_model_q8(t, s->g, s->f, w->w_gate, D_FF, b->n_tokens);
    burin_barrier(t); /* g complete */

    /* line  return x + linear(g, w.w_down) */
    linear_add_q4_1_d_ff(t, s->x, D_MODEL, s->g, w->w_down, D_MODEL, b->n_tokens);
    burin_barrier(t); /* x complete */
}

void portable_step_f32(const struct burin_team *t, const struct burin_call *call)
{
    const struct step_buffers s = step_buffers(t, call);
    const struct step_batch b = step_batch(call);
    const struct {
        const uint8_t *embed; /* (N_VOCAB, D_MODEL), q4_1 */
        const float *norm;    /* (D_MODEL) */
        const uint8_t *head;  /* (N_VOCAB, D_MODEL), q8_0 */
    } w = {
        .embed = call->weights,
        .norm = (const float *)(call->weights + 98816),
        .head = call->weights + 99072,
    };

    /* line  local q = rope(linear(h, w.wq), batch.positions, { theta = 10000 }) */
    rope_angles_step(t, s.angles, b.positions, b.n_tokens);

    /* line  local x = w.layers(nn.embedding(batch.token_ids, w.embed), batch) */
    embedding_q4_1_d_model(t, s.x, b.token_ids, w.embed, b.n_tokens);
    burin_barrier(t); /* x complete */
    for (int layer = 0; layer < N_LAYERS; layer++) {
        const struct decoder_block_weights block =
                decoder_block_weights(call->weights, layer);
        decoder_block_f32(t, &block, &s, &b, b.pages + (size_t)layer * LAYER_PAGE_F32);
    }

    /* line  local out = nn.rows(x, batch.output_rows)   -- (outputs, d_model): the head is its own phase */
    rows_d_model(t, s.out, s.x, b.output_rows, b.n_outputs);
    burin_barrier(t); /* rms_norm lies where x did */

    /* line  return linear(rms_norm(out, w.norm, { eps = 1e-5 }), w.head) */
    rms_norm_d_model_q8x2(t, s.rms_norm, s.out, w.norm, b.n_outputs);
    burin_barrier(t); /* rms_norm complete */
    linear_q8_0_q8x2_d_model(
            t, s.logits, N_VOCAB, s.rms_norm, w.head, N_VOCAB, b.n_outputs);
    burin_barrier(t); /* all threads are done when the first returns */
}
