-- models/gemma4_vision.lua -- Gemma 4's vision encoder: patches of 16 x 16 pixels, of which 3 x 3
-- become one soft token. Images and frames of any size lie one behind the other; a soft token's
-- nine patches are adjacent rows.   transformers' models/gemma4/modeling_gemma4.py

local clipped = nn.include "gemma4_clipped"
local rms_norm, head_norm, rope_2d = nn.rms_norm, nn.head_norm, nn.rope_2d

-- Weights for nn.model, by role, and the program that reads them, for a row's `vision`. The
-- decoder's d_model is `d_decoder` wide.
return function(v, d_decoder)
  local norm = { eps = v.eps }
  local rope = { theta = v.theta }
  assert(v.n_kv_heads == v.n_heads, "the vision encoder has as many heads of keys as of queries")
  local d = nn.dims {
    n_vision_layers = v.n_layers, n_vision_heads = v.n_heads, d_vision_head = v.d_head,
    d_vision = v.d_model, d_vision_ff = v.d_ff, d_patch = 16 * 16 * 3, n_positions = v.n_positions,
  }
  d.d_vision_q = d.n_vision_heads * d.d_vision_head

  local weights = {}
  local function declare_linear(role, name, shape)
    clipped.weights(weights, role, name, shape, v.clips)
  end
  weights.attn_norm = nn.weight("input_layernorm.weight", { d.d_vision })
  declare_linear("wq", "self_attn.q_proj", { d.d_vision_q, d.d_vision })
  declare_linear("wk", "self_attn.k_proj", { d.d_vision_q, d.d_vision })
  declare_linear("wv", "self_attn.v_proj", { d.d_vision_q, d.d_vision })
  declare_linear("wo", "self_attn.o_proj", { d.d_vision, d.d_vision_q })
  weights.q_norm         = nn.weight("self_attn.q_norm.weight",           { d.d_vision_head })
  weights.k_norm         = nn.weight("self_attn.k_norm.weight",           { d.d_vision_head })
  weights.post_attn_norm = nn.weight("post_attention_layernorm.weight",   { d.d_vision })
  weights.ffn_norm       = nn.weight("pre_feedforward_layernorm.weight",  { d.d_vision })
  declare_linear("w_gate", "mlp.gate_proj", { d.d_vision_ff, d.d_vision })
  declare_linear("w_up",   "mlp.up_proj",   { d.d_vision_ff, d.d_vision })
  declare_linear("w_down", "mlp.down_proj", { d.d_vision, d.d_vision_ff })
  weights.post_ffn_norm  = nn.weight("post_feedforward_layernorm.weight", { d.d_vision })

  local vision_block = nn.block(weights)

  function vision_block.forward(w, x, positions, item_begin)   -- x (9 soft, d_vision)
    local function linear(h, role) return clipped.linear(h, w, role, v.clips) end

    local h = rms_norm(x, w.attn_norm, norm)
    local q = rope_2d(head_norm(linear(h, "wq"), w.q_norm, norm), positions, rope)
    local k = rope_2d(head_norm(linear(h, "wk"), w.k_norm, norm), positions, rope)
    local a = nn.packed_attention(q, k, head_norm(linear(h, "wv"), norm), item_begin, { scale = 1 })
    x = x + rms_norm(linear(a, "wo"), w.post_attn_norm, norm)

    local f = rms_norm(x, w.ffn_norm, norm)
    local g = nn.gelu_tanh(linear(f, "w_gate")) * linear(f, "w_up")
    return x + rms_norm(linear(g, "w_down"), w.post_ffn_norm, norm)
  end

  local part = { weights = {
    patches         = nn.weight("model.vision_tower.patch_embedder.input_proj.weight",
                                { d.d_vision, d.d_patch }),
    patch_positions = nn.weight("model.vision_tower.patch_embedder.position_embedding_table",
                                { 2, d.n_positions, d.d_vision }),
    vision_layers   = nn.layers("model.vision_tower.encoder.layers.%d.",
                                { { d.n_vision_layers, vision_block } }),
    vision_head     = nn.weight("model.embed_vision.embedding_projection.weight",
                                { d_decoder, d.d_vision }),
  } }
  if v.standardizes then
    part.weights.std_bias  = nn.weight("model.vision_tower.std_bias",  { d.d_vision })
    part.weights.std_scale = nn.weight("model.vision_tower.std_scale", { d.d_vision })
  end

  local d_root = nn.value(d.d_vision) ^ 0.5
  part.encode_image = nn.encoder({ smallest = 70, largest = 1120, frame = 70 }, function(w)   -- extent: soft
    local pixels     = nn.input("pixels",         { 9 * nn.soft, d.d_patch }, "u8")
    local positions  = nn.input("pixel_positions", { 9 * nn.soft, 2 }, "i32")   -- column, row
    local item_begin = nn.input("item_begin",      { nn.soft + 1 }, "i32")

    -- Pixels are 0 ... 255; the encoder wants -1 ... 1.
    local x = nn.patch_embed(pixels, w.patches, { scale = 2 / 255, shift = -1 })
    x = nn.position_embedding(x, w.patch_positions, positions)
    x = w.vision_layers(x, positions, item_begin)

    x = nn.pool(x, { size = 9, scale = d_root })   -- (soft, d_vision)
    if v.standardizes then x = nn.standardize(x, w.std_bias, w.std_scale) end
    return nn.linear(rms_norm(x, norm), w.vision_head)
  end)
  return part
end
