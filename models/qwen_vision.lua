-- models/qwen_vision.lua -- The vision encoder of Qwen3.5, 3.6 and 3.8, and of Qwen3-VL without its
-- deepstack: pictures of any size as patches, four of which become one soft token.
-- Bai et al. 2025, arXiv:2511.21631; transformers' modeling_qwen3_5.py
--
-- A patch is 16 x 16 pixels of two frames, by channel, frame, row and column; a picture is both
-- frames of its own. The four patches of a soft token are adjacent rows.

local linear, layer_norm, columns = nn.linear, nn.layer_norm, nn.columns

local MERGE = 4 -- patches of a soft token, 2 x 2

local eps = { eps = 1e-6 }

local function affine(x, weight, bias) return nn.add_vector(linear(x, weight), bias) end

-- A tower of n_layers for a decoder of width d_out: the model's members, and its program.
return function(n_layers, d_out)
  local d = nn.dims {
    n_vision_layers = n_layers, d_vision = 1152, n_vision_heads = 16, d_vision_ff = 4304,
    n_positions = 48 * 48, d_patch = 3 * 2 * 16 * 16,
  }
  d.d_vision_head = d.d_vision / d.n_vision_heads
  d.d_vision_qkv, d.d_merged = 3 * d.d_vision, MERGE * d.d_vision
  local rope = { theta = 10000, d_head = d.d_vision_head, layout = "joined" }

  local vision_block = nn.block {
    norm1      = nn.weight("norm1.weight",           { d.d_vision }),
    norm1_bias = nn.weight("norm1.bias",             { d.d_vision }),
    w_qkv      = nn.weight("attn.qkv.weight",        { d.d_vision_qkv, d.d_vision }),
    b_qkv      = nn.weight("attn.qkv.bias",          { d.d_vision_qkv }),
    wo         = nn.weight("attn.proj.weight",       { d.d_vision, d.d_vision }),
    bo         = nn.weight("attn.proj.bias",         { d.d_vision }),
    norm2      = nn.weight("norm2.weight",           { d.d_vision }),
    norm2_bias = nn.weight("norm2.bias",             { d.d_vision }),
    w_up       = nn.weight("mlp.linear_fc1.weight",  { d.d_vision_ff, d.d_vision }),
    b_up       = nn.weight("mlp.linear_fc1.bias",    { d.d_vision_ff }),
    w_down     = nn.weight("mlp.linear_fc2.weight",  { d.d_vision, d.d_vision_ff }),
    b_down     = nn.weight("mlp.linear_fc2.bias",    { d.d_vision }),
  }

  function vision_block.forward(w, x, positions, item_begin)   -- x (4 * soft, d_vision)
    local qkv = affine(layer_norm(x, w.norm1, w.norm1_bias, eps), w.w_qkv, w.b_qkv)
    local q = nn.rope_2d(columns(qkv, { part = 1, of = 3 }), positions, rope)
    local k = nn.rope_2d(columns(qkv, { part = 2, of = 3 }), positions, rope)
    local v = columns(qkv, { part = 3, of = 3 })
    local a = nn.packed_attention(q, k, v, item_begin, { d_head = d.d_vision_head })
    x = x + affine(a, w.wo, w.bo)

    local f = layer_norm(x, w.norm2, w.norm2_bias, eps)
    return x + affine(nn.gelu_tanh(affine(f, w.w_up, w.b_up)), w.w_down, w.b_down)
  end

  local function weight(name, shape) return nn.weight("model.visual." .. name, shape) end
  local members = {
    patch_embed     = weight("patch_embed.proj.weight",  { d.d_vision, d.d_patch }),
    patch_bias      = weight("patch_embed.proj.bias",    { d.d_vision }),
    pos_embed       = weight("pos_embed.weight",         { d.n_positions, d.d_vision }),
    vision_layers   = nn.layers("model.visual.blocks.%d.", { { d.n_vision_layers, vision_block } }),
    merge_norm      = weight("merger.norm.weight",       { d.d_vision }),
    merge_norm_bias = weight("merger.norm.bias",         { d.d_vision }),
    merge_up        = weight("merger.linear_fc1.weight", { d.d_merged, d.d_merged }),
    merge_up_bias   = weight("merger.linear_fc1.bias",   { d.d_merged }),
    merge_down      = weight("merger.linear_fc2.weight", { d_out, d.d_merged }),
    merge_down_bias = weight("merger.linear_fc2.bias",   { d_out }),
  }

  -- From 256 x 256 to 4096 x 4096 pixels of 32 x 32 a soft token: the releases' preprocessing.
  local encode = nn.encoder({ smallest = 64, largest = 16384 }, function(w)
    local patches = MERGE * nn.soft
    local pixels    = nn.input("pixels",          { patches, d.d_patch }, "u8")
    local positions = nn.input("patch_positions", { patches, 2 }, "i32") -- column, row
    local grids     = nn.input("patch_grids",     { patches, 2 }, "i32") -- its picture's
    local begin     = nn.input("item_begin",      { nn.soft + 1 }, "i32")

    local x = nn.patch_embed(pixels, w.patch_embed, w.patch_bias, { scale = 2 / 255, shift = -1 })
    x = nn.pos_embed_bilinear(x, w.pos_embed, positions, grids)
    x = w.vision_layers(x, positions, begin)

    local m = nn.merge_rows(layer_norm(x, w.merge_norm, w.merge_norm_bias, eps), { n = MERGE })
    return affine(nn.gelu(affine(m, w.merge_up, w.merge_up_bias)), w.merge_down, w.merge_down_bias)
  end)

  return { members = members, encode = encode }
end
