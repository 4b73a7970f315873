-- models/gemma4_decoder.lua -- The decoder of all Gemma 4: its layers see a window or everything,
-- with heads of two widths; queries, keys and values are normed, scores not scaled. E2B and E4B
-- have per-layer embeddings and layers that share keys and values, 26B-A4B has experts beside the
-- dense MLP.   Google 2026, Gemma 4 model card; transformers' models/gemma4/modeling_gemma4.py;
-- Gemma 2 and 3: arXiv:2408.00118, arXiv:2503.19786

local rms_norm, head_norm, rope, linear = nn.rms_norm, nn.head_norm, nn.rope, nn.linear
local gelu_tanh = nn.gelu_tanh

local decoder = {}

-- Of so many layers the last is global.
function decoder.every(n, n_layers)
  local kinds = {}
  for i = 1, n_layers do kinds[i] = i % n == 0 and "full_attention" or "sliding_attention" end
  return kinds
end

-- What a variant's row has beside the sizes that all decoders have, where config.json has it, and
-- what is meant where nothing is said.
decoder.config = {
  layer_types = "layer_types",
  window = "sliding_window",
  n_global_kv_heads = { "num_global_key_value_heads", "none" },   -- then n_kv_heads
  d_global_head = { "global_head_dim", 512 },
  sliding_rope = { "rope_parameters.sliding_attention", { theta = 10000 } },
  global_rope = { "rope_parameters.full_attention",
                  { theta = 1000000, scaling = "proportional", partial = 0.25 } },
  k_eq_v = { "attention_k_eq_v", false },   -- global layers: values are made from what keys are
  n_shared = { "num_kv_shared_layers", 0 }, -- the last so many read the cache of the last layer of
  double_wide = { "use_double_wide_mlp", false }, -- their kind before them; their MLP is so wide
  d_ple = { "hidden_size_per_layer_input", 0 },   -- width of the per-layer embeddings
  has_experts = { "enable_moe_block", false },
  n_experts = { "num_experts", 0 }, n_active_experts = { "top_k_experts", 0 },
  d_expert = { "moe_intermediate_size expert_intermediate_size", 0 },
  bidirectional = { "use_bidirectional_attention", "none" },   -- "vision": tokens of an image see
  cap = { "final_logit_softcapping", 0 },                      -- each other in layers with a window
  "vocab_size_per_layer_input",
}

-- Weights for nn.model, by role, and step, for a variant's row.
function decoder.of(v)
  local norm = { eps = v.eps or 1e-6 }
  local has_ple, has_experts, shares = v.d_ple > 0, v.n_experts > 0, v.n_shared > 0
  assert(#v.layer_types == v.n_layers, "layer_types must have n_layers kinds")
  assert(v.bidirectional == "vision" or v.bidirectional == "none",
         "of the tokens that see each other only those of images are known")

  local d = nn.dims {
    n_layers = v.n_layers, d_model = v.d_model, d_ff = v.d_ff, n_vocab = v.n_vocab or 262144,
    n_ctx = v.n_ctx, n_heads = v.n_heads, n_kv_heads = v.n_kv_heads, d_head = v.d_head or 256,
    n_global_kv_heads = v.n_global_kv_heads == "none" and v.n_kv_heads or v.n_global_kv_heads,
    d_global_head = v.d_global_head,
  }
  d.d_q, d.d_kv = d.n_heads * d.d_head, d.n_kv_heads * d.d_head
  d.d_global_q, d.d_global_kv = d.n_heads * d.d_global_head, d.n_global_kv_heads * d.d_global_head
  if shares then d.d_shared_ff = v.double_wide and 2 * d.d_ff or d.d_ff end
  if has_ple then
    d.d_ple = v.d_ple
    d.d_ples = d.n_layers * d.d_ple
  end
  if has_experts then
    d.n_experts, d.n_active_experts, d.d_expert = v.n_experts, v.n_active_experts, v.d_expert
    d.d_expert_glu = 2 * d.d_expert
  end

  -- ---- Layers -------------------------------------------------------------------------------
  -- What differs between them: attention is sliding or global, layers own their cache or share one.

  local sliding = {
    d_head = d.d_head, d_q = d.d_q, d_kv = d.d_kv, d_ff = d.d_ff, window = v.window,
    spans = v.bidirectional == "vision",   -- tokens of an image see each other
    rope = v.sliding_rope,
  }
  local global = {
    d_head = d.d_global_head, d_q = d.d_global_q, d_kv = d.d_global_kv, d_ff = d.d_ff,
    k_eq_v = v.k_eq_v,   -- values are made from what keys are made from
    rope = v.global_rope,
  }

  local n_owners = v.n_layers - v.n_shared   -- layers with keys and values of their own
  local function is_global(layer)
    local kind = v.layer_types[layer + 1]
    assert(kind == "full_attention" or kind == "sliding_attention",
           "layer_types: a kind that isn't known")
    return kind == "full_attention" or layer == v.n_layers - 1
  end

  -- The same kind of layer, reading the cache of the last owner of that kind.
  local function sharing(kind, wants_global)
    local shared = {}
    for name, value in pairs(kind) do shared[name] = value end
    for layer = 0, n_owners - 1 do
      if is_global(layer) == wants_global then shared.source = layer end
    end
    assert(shared.source, "layers share a cache that none of their kind has")
    shared.d_ff = d.d_shared_ff
    return shared
  end

  local function weights(a)   -- role = name in the checkpoint, shape (out, in)
    local list = {
      attn_norm      = nn.weight("input_layernorm.weight",            { d.d_model }),
      wq             = nn.weight("self_attn.q_proj.weight",           { a.d_q, d.d_model }),
      q_norm         = nn.weight("self_attn.q_norm.weight",           { a.d_head }),
      wo             = nn.weight("self_attn.o_proj.weight",           { d.d_model, a.d_q }),
      post_attn_norm = nn.weight("post_attention_layernorm.weight",   { d.d_model }),
      ffn_norm       = nn.weight("pre_feedforward_layernorm.weight",  { d.d_model }),
      w_gate         = nn.weight("mlp.gate_proj.weight",              { a.d_ff, d.d_model }),
      w_up           = nn.weight("mlp.up_proj.weight",                { a.d_ff, d.d_model }),
      w_down         = nn.weight("mlp.down_proj.weight",              { d.d_model, a.d_ff }),
      post_ffn_norm  = nn.weight("post_feedforward_layernorm.weight", { d.d_model }),
      layer_scalar   = nn.weight("layer_scalar", { 1 }),
    }
    local own = a.source and nn.unused or nn.weight   -- files hold what sharing layers don't need
    list.wk     = own("self_attn.k_proj.weight", { a.d_kv, d.d_model })
    list.k_norm = own("self_attn.k_norm.weight", { a.d_head })
    if not a.k_eq_v then list.wv = own("self_attn.v_proj.weight", { a.d_kv, d.d_model }) end
    if a.window and not a.source then list.kv = nn.kv { window = a.window } end

    if has_ple then
      list.ple_gate = nn.weight("per_layer_input_gate.weight",      { d.d_ple, d.d_model })
      list.ple_proj = nn.weight("per_layer_projection.weight",      { d.d_model, d.d_ple })
      list.ple_norm = nn.weight("post_per_layer_input_norm.weight", { d.d_model })
    end
    if has_experts then
      list.router_norm  = nn.weight("router.scale",            { d.d_model })
      list.router       = nn.weight("router.proj.weight",      { d.n_experts, d.d_model })
      list.expert_scale = nn.weight("router.per_expert_scale", { d.n_experts })
      list.experts_glu  = nn.weight("experts.gate_up_proj",
                                    { d.n_experts, d.d_expert_glu, d.d_model })
      list.experts_down = nn.weight("experts.down_proj", { d.n_experts, d.d_model, d.d_expert })
      list.experts_norm      = nn.weight("pre_feedforward_layernorm_2.weight",  { d.d_model })
      list.post_dense_norm   = nn.weight("post_feedforward_layernorm_1.weight", { d.d_model })
      list.post_experts_norm = nn.weight("post_feedforward_layernorm_2.weight", { d.d_model })
    end
    return list
  end

  local function attention(a, w, x, batch, kv)
    local positions = a.source and batch.output_positions or batch.positions
    local q = rope(head_norm(linear(x, w.wq), w.q_norm, norm), positions, a.rope)
    if a.source then
      kv = nn.kv_of(a.source)
    else
      local k = linear(x, w.wk)
      local values = a.k_eq_v and k or linear(x, w.wv)
      k = rope(head_norm(k, w.k_norm, norm), batch.positions, a.rope)
      kv = kv:append(k, head_norm(values, norm))
    end
    local spans = a.spans and batch.spans or nil
    return linear(nn.attention(q, kv, spans, { scale = 1 }), w.wo)
  end

  local function mlp(w, x)
    return linear(gelu_tanh(linear(x, w.w_gate)) * linear(x, w.w_up), w.w_down)
  end

  local function experts(w, x)   -- the router sees the stream itself
    local u = rms_norm(x, w.router_norm, norm) * v.d_model ^ -0.5
    local logits = linear(u, w.router, { wide = true })
    local chosen = nn.top_k(logits, { k = d.n_active_experts })
    local begin = nn.expert_begin(chosen, { n_experts = d.n_experts })
    local rows = nn.expert_rows(chosen, begin)

    local e = rms_norm(x, w.experts_norm, norm)
    local g = nn.experts_glu(e, w.experts_glu, rows, begin, { activation = "gelu_tanh" })
    local y = nn.experts_down(g, w.experts_down, rows, begin)
    return nn.experts_sum(y, nn.route_weights(logits, chosen, w.expert_scale))
  end

  local function forward(a)
    return function(w, x, batch, ple, kv)   -- x (rows, d_model), ple (rows, n_layers * d_ple)
      local h = attention(a, w, rms_norm(x, w.attn_norm, norm), batch, kv)
      x = x + rms_norm(h, w.post_attn_norm, norm)

      local m = mlp(w, rms_norm(x, w.ffn_norm, norm))
      if has_experts then
        m = rms_norm(m, w.post_dense_norm, norm)
          + rms_norm(experts(w, x), w.post_experts_norm, norm)
      end
      x = x + rms_norm(m, w.post_ffn_norm, norm)

      if has_ple then
        local g = gelu_tanh(linear(x, w.ple_gate)) * nn.layer_columns(ple, { width = d.d_ple })
        x = x + rms_norm(linear(g, w.ple_proj), w.ple_norm, norm)
      end
      return nn.scale_by(x, w.layer_scalar)
    end
  end

  local sliding_block = nn.block(weights(sliding))
  local global_block  = nn.block(weights(global))
  sliding_block.forward, global_block.forward = forward(sliding), forward(global)

  local sliding_reader, global_reader
  if shares then
    local s, g = sharing(sliding, false), sharing(global, true)
    sliding_reader = nn.block(weights(s))
    global_reader  = nn.block(weights(g))
    sliding_reader.forward, global_reader.forward = forward(s), forward(g)
  end

  local schedule = {}
  for layer = 0, v.n_layers - 1 do
    local block
    if layer < n_owners then block = is_global(layer) and global_block or sliding_block
    else block = is_global(layer) and global_reader or sliding_reader end
    schedule[layer + 1] = { 1, block }
  end

  local text = "model.language_model."
  local part = { d_model = d.d_model, weights = {
    embed  = nn.weight(text .. "embed_tokens.weight", { d.n_vocab, d.d_model }),   -- and the head
    layers = nn.layers(text .. "layers.%d.", schedule),
    norm   = nn.weight(text .. "norm.weight", { d.d_model }),
  } }
  if has_ple then
    part.weights.ple_embed = nn.weight(text .. "embed_tokens_per_layer.weight",
                                       { d.n_vocab, d.d_ples })
    part.weights.ple_in    = nn.weight(text .. "per_layer_model_projection.weight",
                                       { d.d_ples, d.d_model })
    part.weights.ple_norm  = nn.weight(text .. "per_layer_projection_norm.weight", { d.d_ple })
  end

  -- sqrt(d_model), rounded to the 8 bits of bf16 as the reference does.
  local embed_scale = v.d_model ^ 0.5
  local ulp = 2 ^ (math.floor(math.log(embed_scale, 2)) - 7)
  embed_scale = math.floor(embed_scale / ulp + 0.5) * ulp

  -- What each layer is told of a token: of its id, and of its first vector x.
  local function per_layer(w, x, batch)
    local told = nn.embedding(batch.token_ids, w.ple_embed) * v.d_ple ^ 0.5
    local seen = head_norm(linear(x, w.ple_in) * v.d_model ^ -0.5, w.ple_norm, norm)
    return (seen + told) * 2 ^ -0.5
  end

  -- Where a soft token stands, token_ids holds <pad>, soft_index its row in soft_rows; else -1.
  function part.step(w, batch)   -- extents: tokens, sequences, outputs
    local soft_rows  = nn.input("soft_rows", { nn.max_soft, d.d_model })
    local soft_index = nn.input("soft_index", { nn.tokens }, "i32")

    local x = nn.embedding(batch.token_ids, w.embed) * embed_scale
    x = nn.insert_rows(x, soft_rows, soft_index)
    local ple = has_ple and per_layer(w, x, batch) or nil
    if shares then   -- layers that write no cache see the rows alone that are wanted
      x = w.layers:range(0, n_owners - 1)(x, batch, ple)
      x = nn.rows(x, batch.output_rows)
      if ple then ple = nn.rows(ple, batch.output_rows) end
      x = w.layers:range(n_owners, v.n_layers - 1)(x, batch, ple)
    else
      x = nn.rows(w.layers(x, batch, ple), batch.output_rows)
    end
    local out = rms_norm(x, w.norm, norm)
    local logits = linear(out, w.embed)
    return v.cap > 0 and nn.softcap(logits, { cap = v.cap }) or logits
  end

  return part
end

return decoder
