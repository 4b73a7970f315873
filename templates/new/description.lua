-- models/@NAME@.lua -- What it is, in a line.   Who, year, arXiv:number

local rms_norm, linear, attention, silu = nn.rms_norm, nn.linear, nn.attention, nn.silu

local v = nn.variants {     -- the first is the default
  recipe = "bf16", model_type = "@NAME@", -- as config.json calls it
  { "small", n_layers = 2, d_model = 64, n_heads = 4, n_kv_heads = 2, d_head = 16, d_ff = 96,
    n_vocab = 160, n_ctx = 1024 },
}

local d = nn.dims {
  n_layers = v.n_layers, d_model = v.d_model, d_ff = v.d_ff, n_vocab = v.n_vocab, n_ctx = v.n_ctx,
  n_heads = v.n_heads, n_kv_heads = v.n_kv_heads, d_head = v.d_head,
}
d.d_q, d.d_kv = d.n_heads * d.d_head, d.n_kv_heads * d.d_head

local block = nn.block {    -- role = name in the checkpoint, shape (out, in)
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
  local h = rms_norm(x, w.attn_norm, { eps = 1e-5 })
  local q = nn.rope(linear(h, w.wq), batch.positions, { theta = 10000 })
  local k = nn.rope(linear(h, w.wk), batch.positions, { theta = 10000 })
  local a = attention(q, kv:append(k, linear(h, w.wv)))
  x = x + linear(a, w.wo)

  local f = rms_norm(x, w.ffn_norm, { eps = 1e-5 })
  local g = silu(linear(f, w.w_gate)) * linear(f, w.w_up)
  return x + linear(g, w.w_down)
end

local model = nn.model {
  embed  = nn.weight("model.embed_tokens.weight", { d.n_vocab, d.d_model }),
  layers = nn.layers("model.layers.%d.", { { d.n_layers, block } }),
  norm   = nn.weight("model.norm.weight", { d.d_model }),
  head   = nn.weight("lm_head.weight", { d.n_vocab, d.d_model }),
}

function model.step(w, batch)   -- extents: tokens, sequences, outputs
  local x = w.layers(nn.embedding(batch.token_ids, w.embed), batch)
  local out = rms_norm(nn.rows(x, batch.output_rows), w.norm, { eps = 1e-5 })
  return linear(out, w.head)
end

return model
