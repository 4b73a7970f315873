-- models/llama.lua -- The Llama decoder, as Llama 3.2 and SmolLM2 have it.
-- Touvron et al. 2023, arXiv:2302.13971; Llama Team 2024, arXiv:2407.21783;
-- Allal et al. 2025, arXiv:2502.02737 (SmolLM2)

local rms_norm, linear, attention, silu = nn.rms_norm, nn.linear, nn.attention, nn.silu

local llama3 = { theta = 500000, scaling = "llama3", factor = 32, low_factor = 1, high_factor = 4,
                 original = 8192 }

local v = nn.variants {
  recipe = "q4_1", model_type = "llama",
  { "smollm2-135m", n_layers = 30, d_model = 576, n_heads = 9, n_kv_heads = 3, d_head = 64,
    d_ff = 1536, n_vocab = 49152, n_ctx = 8192, rope = { theta = 100000 },
    demo_weights = "smollm2-135m" },
  { "smollm2-360m", n_layers = 32, d_model = 960, n_heads = 15, n_kv_heads = 5, d_head = 64,
    d_ff = 2560, n_vocab = 49152, n_ctx = 8192, rope = { theta = 100000 } },
  { "smollm2-1.7b", n_layers = 24, d_model = 2048, n_heads = 32, n_kv_heads = 32, d_head = 64,
    d_ff = 8192, n_vocab = 49152, n_ctx = 8192, rope = { theta = 130000 } },
  { "llama-3.2-1b", n_layers = 16, d_model = 2048, n_heads = 32, n_kv_heads = 8, d_head = 64,
    d_ff = 8192, n_vocab = 128256, n_ctx = 131072, rope = llama3 },
  { "llama-3.2-3b", n_layers = 28, d_model = 3072, n_heads = 24, n_kv_heads = 8, d_head = 128,
    d_ff = 8192, n_vocab = 128256, n_ctx = 131072, rope = llama3 },
}

local eps = v.eps or 1e-5
local d = nn.dims {
  n_layers = v.n_layers, d_model = v.d_model, d_ff = v.d_ff, n_vocab = v.n_vocab, n_ctx = v.n_ctx,
  n_heads = v.n_heads, n_kv_heads = v.n_kv_heads, d_head = v.d_head,
}
d.d_q, d.d_kv = d.n_heads * d.d_head, d.n_kv_heads * d.d_head

local block = nn.block {   -- role = name in the checkpoint, shape (out, in)
  attn_norm = nn.weight("input_layernorm.weight",          { d.d_model }),
  wq        = nn.weight("self_attn.q_proj.weight",         { d.d_q, d.d_model }),
  wk        = nn.weight("self_attn.k_proj.weight",         { d.d_kv, d.d_model }),
  wv        = nn.weight("self_attn.v_proj.weight",         { d.d_kv, d.d_model }),
  wo        = nn.weight("self_attn.o_proj.weight",         { d.d_model, d.d_q }),
  ffn_norm  = nn.weight("post_attention_layernorm.weight", { d.d_model }),
  w_gate    = nn.weight("mlp.gate_proj.weight",            { d.d_ff, d.d_model }),
  w_up      = nn.weight("mlp.up_proj.weight",              { d.d_ff, d.d_model }),
  w_down    = nn.weight("mlp.down_proj.weight",            { d.d_model, d.d_ff }),
}

function block.forward(w, x, batch, kv)   -- x (tokens, d_model)
  local h = rms_norm(x, w.attn_norm, { eps = eps })
  local q = nn.rope(linear(h, w.wq), batch.positions, v.rope)
  local k = nn.rope(linear(h, w.wk), batch.positions, v.rope)
  local a = attention(q, kv:append(k, linear(h, w.wv)))
  x = x + linear(a, w.wo)

  local f = rms_norm(x, w.ffn_norm, { eps = eps })
  local g = silu(linear(f, w.w_gate)) * linear(f, w.w_up)
  return x + linear(g, w.w_down)
end

local embed = nn.weight("model.embed_tokens.weight", { d.n_vocab, d.d_model })

local model = nn.model {
  embed  = embed,
  layers = nn.layers("model.layers.%d.", { { d.n_layers, block } }),
  norm   = nn.weight("model.norm.weight", { d.d_model }),
  head   = v.untied and nn.weight("lm_head.weight", { d.n_vocab, d.d_model }) or embed,
}

function model.step(w, batch)   -- extents: tokens, sequences, outputs
  local x = w.layers(nn.embedding(batch.token_ids, w.embed), batch)
  local out = rms_norm(nn.rows(x, batch.output_rows), w.norm, { eps = eps })
  return linear(out, w.head)
end

return model
