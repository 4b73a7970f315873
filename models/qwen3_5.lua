-- models/qwen3_5.lua -- Qwen3.5, 3.6 and 3.8: three layers of Gated DeltaNet, then one of gated
-- full attention; dense or with experts; a vision encoder; one more layer that drafts (MTP).
-- Yang, Kautz and Hatamizadeh 2024, arXiv:2412.06464 (Gated DeltaNet); Qiu et al. 2025,
-- arXiv:2505.06708 (gated attention); DeepSeek-AI 2024, arXiv:2412.19437, section 2.2 (MTP);
-- transformers' modeling_qwen3_5.py, modeling_qwen3_5_moe.py

local rms_norm, head_norm, mrope = nn.rms_norm, nn.head_norm, nn.mrope
local linear, silu, sigmoid, split_heads = nn.linear, nn.silu, nn.sigmoid, nn.split_heads

local v = nn.variants {
  recipe = "bf16", model_type = { "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text" },
  config = {
    n_key_heads = "linear_num_key_heads", n_value_heads = "linear_num_value_heads",
    n_experts = "num_experts", n_active_experts = "num_experts_per_tok",
    d_expert = "moe_intermediate_size", d_shared = "shared_expert_intermediate_size",
    rotary = "rope_parameters.partial_rotary_factor", sections = "rope_parameters.mrope_section",
    -- The rest is proved by tensors, or about training and drafting.
    "linear_key_head_dim", "linear_value_head_dim", "linear_conv_kernel_dim", "layer_types",
    "full_attention_interval", "attn_output_gate", "output_gate_type", "mamba_ssm_dtype",
    "rope_parameters.mrope_interleaved", "partial_rotary_factor", "router_aux_loss_coef",
    "mtp_num_hidden_layers", "vision_config", "image_token_id", "video_token_id",
    "vision_start_token_id", "vision_end_token_id",
  },
  { "27b", n_layers = 64, d_model = 5120, d_ff = 17408, n_heads = 24, n_kv_heads = 4,
    n_key_heads = 16, n_value_heads = 48, rotary = 0.25, sections = { 11, 11, 10 } },
  { "35b-a3b", n_layers = 40, d_model = 2048, n_heads = 16, n_kv_heads = 2, -- not of 3.8
    n_key_heads = 16, n_value_heads = 32, rotary = 0.25, sections = { 11, 11, 10 },
    n_experts = 256, n_active_experts = 8, d_expert = 512, d_shared = 512 },
}

local d = nn.dims {
  n_layers = v.n_layers, d_model = v.d_model, n_vocab = 248320, n_ctx = 262144,
  n_heads = v.n_heads, n_kv_heads = v.n_kv_heads, d_head = 256,
  n_key_heads = v.n_key_heads, d_key = 128, n_value_heads = v.n_value_heads, d_value = 128,
  n_taps = 4, d_ff = v.d_ff, n_experts = v.n_experts, n_active_experts = v.n_active_experts,
  d_expert = v.d_expert, d_shared = v.d_shared,
}
d.d_q, d.d_kv = d.n_heads * d.d_head, d.n_kv_heads * d.d_head
d.d_keys, d.d_values = d.n_key_heads * d.d_key, d.n_value_heads * d.d_value
d.d_conv = 2 * d.d_keys + d.d_values

local norm = { eps = 1e-6, offset = 1 } -- weights are stored less 1, but for Gated DeltaNet's own
local rope = { theta = 1e7, rotary = v.rotary * nn.value(d.d_head), sections = v.sections,
               interleaved = true }
local query = { part = 1, of = 2, d_head = d.d_head }
local gate  = { part = 2, of = 2, d_head = d.d_head }

-- ---- Feed forward: of both kinds of layers -------------------------------------------------

local function with_ffn(w)
  w.ffn_norm = nn.weight("post_attention_layernorm.weight", { d.d_model })
  if v.n_experts then
    local n = d.n_experts
    w.router       = nn.weight("mlp.gate.weight",          { n, d.d_model })
    w.experts_up   = nn.weight("mlp.experts.gate_up_proj", { n, 2 * d.d_expert, d.d_model })
    w.experts_down = nn.weight("mlp.experts.down_proj",    { n, d.d_model, d.d_expert })
    w.shared_gate  = nn.weight("mlp.shared_expert.gate_proj.weight", { d.d_shared, d.d_model })
    w.shared_up    = nn.weight("mlp.shared_expert.up_proj.weight",   { d.d_shared, d.d_model })
    w.shared_down  = nn.weight("mlp.shared_expert.down_proj.weight", { d.d_model, d.d_shared })
    w.shared_scale = nn.weight("mlp.shared_expert_gate.weight",      { 1, d.d_model })
  else
    w.w_gate = nn.weight("mlp.gate_proj.weight", { d.d_ff, d.d_model })
    w.w_up   = nn.weight("mlp.up_proj.weight",   { d.d_ff, d.d_model })
    w.w_down = nn.weight("mlp.down_proj.weight", { d.d_model, d.d_ff })
  end
  return w
end

local function experts(w, f)
  local logits = linear(f, w.router, { wide = true })
  local chosen = nn.top_k(logits, { k = d.n_active_experts })
  local begin = nn.expert_begin(chosen, { n_experts = d.n_experts })
  local rows = nn.expert_rows(chosen, begin)
  local h = nn.experts_glu(f, w.experts_up, rows, begin, { activation = "silu" })
  local y = nn.experts_down(h, w.experts_down, rows, begin)
  return nn.experts_sum(y, nn.route_weights(logits, chosen))
end

local function feed_forward(w, x)
  local f = rms_norm(x, w.ffn_norm, norm)
  if v.n_experts then
    local s = linear(silu(linear(f, w.shared_gate)) * linear(f, w.shared_up), w.shared_down)
    return x + (experts(w, f) + nn.scale_rows(s, sigmoid(linear(f, w.shared_scale))))
  end
  return x + linear(silu(linear(f, w.w_gate)) * linear(f, w.w_up), w.w_down)
end

-- ---- The kinds of layers -------------------------------------------------------------------

local gdn = nn.block(with_ffn {
  attn_norm = nn.weight("input_layernorm.weight",         { d.d_model }),
  w_qkv     = nn.weight("linear_attn.in_proj_qkv.weight", { d.d_conv, d.d_model }),
  w_z       = nn.weight("linear_attn.in_proj_z.weight",   { d.d_values, d.d_model }),
  w_b       = nn.weight("linear_attn.in_proj_b.weight",   { d.n_value_heads, d.d_model }),
  w_a       = nn.weight("linear_attn.in_proj_a.weight",   { d.n_value_heads, d.d_model }),
  w_conv    = nn.weight("linear_attn.conv1d.weight",      { d.d_conv, 1, d.n_taps }),
  a_log     = nn.weight("linear_attn.A_log",              { d.n_value_heads }),
  dt_bias   = nn.weight("linear_attn.dt_bias",            { d.n_value_heads }),
  gdn_norm  = nn.weight("linear_attn.norm.weight",        { d.d_value }),
  w_out     = nn.weight("linear_attn.out_proj.weight",    { d.d_model, d.d_values }),
  conv = nn.state { shape = { d.n_taps - 1, d.d_conv }, dtype = "bf16", per = "sequence",
                    per_draft = true },
  memory = nn.state { shape = { d.n_value_heads, d.d_key, d.d_value }, dtype = "f32",
                      per = "sequence", per_draft = true },
})

function gdn.forward(w, x)   -- x (tokens, d_model)
  local h = rms_norm(x, w.attn_norm, norm)
  local qkv = nn.causal_conv(linear(h, w.w_qkv), w.w_conv, w.conv)
  local a, b = linear(h, w.w_a), linear(h, w.w_b)   -- of the decay and of the writing strength
  local o = nn.gdn_scan(qkv, a, b, w.a_log, w.dt_bias, w.memory)
  o = nn.gated_norm(o, w.gdn_norm, linear(h, w.w_z), { eps = 1e-6 })
  return feed_forward(w, x + linear(o, w.w_out))
end

local function attention_block()
  local full = nn.block(with_ffn {
    attn_norm = nn.weight("input_layernorm.weight",  { d.d_model }),
    wq        = nn.weight("self_attn.q_proj.weight", { 2 * d.d_q, d.d_model }), -- head by head
    wk        = nn.weight("self_attn.k_proj.weight", { d.d_kv, d.d_model }),
    wv        = nn.weight("self_attn.v_proj.weight", { d.d_kv, d.d_model }),
    q_norm    = nn.weight("self_attn.q_norm.weight", { d.d_head }),
    k_norm    = nn.weight("self_attn.k_norm.weight", { d.d_head }),
    wo        = nn.weight("self_attn.o_proj.weight", { d.d_model, d.d_q }),
  })

  function full.forward(w, x, batch, positions, kv)
    local h = rms_norm(x, w.attn_norm, norm)
    local qg = linear(h, w.wq)
    local q = mrope(head_norm(split_heads(qg, query), w.q_norm, norm), positions, rope)
    local k = mrope(head_norm(linear(h, w.wk), w.k_norm, norm), positions, rope)
    local a = nn.attention(q, kv:append(k, linear(h, w.wv)))
    a = a * sigmoid(split_heads(qg, gate))
    return feed_forward(w, x + linear(a, w.wo))
  end

  return full
end

local full, kinds = attention_block(), {}
for layer = 1, v.n_layers do kinds[layer] = { 1, layer % 4 == 0 and full or gdn } end

-- ---- The model -----------------------------------------------------------------------------

local vision = nn.include "qwen_vision" (27, d.d_model)

local members = {
  embed           = nn.weight("model.language_model.embed_tokens.weight", { d.n_vocab, d.d_model }),
  layers          = nn.layers("model.language_model.layers.%d.", kinds),
  norm            = nn.weight("model.language_model.norm.weight", { d.d_model }),
  head            = nn.weight("lm_head.weight", { d.n_vocab, d.d_model }),
  mtp_embed_norm  = nn.weight("mtp.pre_fc_norm_embedding.weight", { d.d_model }),
  mtp_hidden_norm = nn.weight("mtp.pre_fc_norm_hidden.weight", { d.d_model }),
  mtp_fc          = nn.weight("mtp.fc.weight", { d.d_model, 2 * d.d_model }),
  mtp_layers      = nn.layers("mtp.layers.%d.", { { 1, attention_block() } }),
  mtp_norm        = nn.weight("mtp.norm.weight", { d.d_model }),
}
for role, part in pairs(vision.members) do members[role] = part end

local model = nn.model(members)

-- Token embeddings, in whose place soft tokens stand; and by which positions a head is turned.
local function embed(w, batch)
  local rows = nn.input("soft_rows", { nn.max_soft, d.d_model })
  local index = nn.input("soft_index", { nn.tokens }, "i32")
  return nn.insert_rows(nn.embedding(batch.token_ids, w.embed), rows, index)
end

local function positions() return nn.input("positions3", { nn.tokens, 3 }, "i32") end

function model.step(w, batch)   -- extents: tokens, sequences, outputs
  local x = w.layers(embed(w, batch), batch, positions())
  local h = rms_norm(x, w.norm, norm)
  return { hidden = h, logits = linear(nn.rows(h, batch.output_rows), w.head) }
end

-- The token after the next, from the next one and what `step` thought before it.
function model.draft(w, batch)
  local e = rms_norm(embed(w, batch), w.mtp_embed_norm, norm)
  local h = rms_norm(nn.input("hidden", { nn.tokens, d.d_model }), w.mtp_hidden_norm, norm)
  local x = w.mtp_layers(linear(nn.concat(e, h), w.mtp_fc), batch, positions())
  h = rms_norm(x, w.mtp_norm, norm)
  return { hidden = h, logits = linear(nn.rows(h, batch.output_rows), w.head) }
end

model.encode_image = vision.encode

return model
