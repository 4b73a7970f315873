-- models/gemma4_audio.lua -- The audio encoder of Gemma 4 E2B and E4B, a Conformer: 4 frames of
-- 10 ms become one soft token. Items lie one behind the other; each begins at a multiple of 4 rows.
-- Zhang et al. 2023, arXiv:2303.01037; Gulati et al. 2020, arXiv:2005.08100;
-- transformers' models/gemma4/modeling_gemma4.py. Its clamps to 1e10, for training, are left out.

local clipped = nn.include "gemma4_clipped"
local rms_norm, silu = nn.rms_norm, nn.silu

local n_seen = 12   -- frames that one sees: itself and 11 before it

-- As in gemma4_vision.lua, for a row's `audio`.
return function(v, d_decoder)
  local norm = { eps = v.eps }
  assert(v.d_model % v.n_heads == 0, "the audio encoder's heads must share its width")
  local d = nn.dims {
    n_audio_layers = v.n_layers, n_audio_heads = v.n_heads, d_audio_head = v.d_model // v.n_heads,
    d_audio_out = v.d_out, d_mel = 128, n_channels = v.n_channels[1],
    n_channels_2 = v.n_channels[2], n_conv = v.n_taps,
  }
  d.d_audio = d.n_audio_heads * d.d_audio_head
  d.d_audio_ff, d.d_audio_glu = 4 * d.d_audio, 2 * d.d_audio

  local weights = {}
  local function declare_linear(role, name, shape)
    clipped.weights(weights, role, name, shape, true)
  end
  local function declare_norm(role, name) weights[role] = nn.weight(name, { d.d_audio }) end
  for i = 1, 2 do
    local name = ("feed_forward%d."):format(i)
    declare_norm("ffn_norm_" .. i,      name .. "pre_layer_norm.weight")
    declare_linear("w_up_" .. i,        name .. "ffw_layer_1", { d.d_audio_ff, d.d_audio })
    declare_linear("w_down_" .. i,      name .. "ffw_layer_2", { d.d_audio, d.d_audio_ff })
    declare_norm("post_ffn_norm_" .. i, name .. "post_layer_norm.weight")
  end
  declare_norm("attn_norm", "norm_pre_attn.weight")
  declare_linear("wq", "self_attn.q_proj", { d.d_audio, d.d_audio })
  declare_linear("wk", "self_attn.k_proj", { d.d_audio, d.d_audio })
  declare_linear("wv", "self_attn.v_proj", { d.d_audio, d.d_audio })
  declare_linear("wo", "self_attn.post",   { d.d_audio, d.d_audio })
  weights.w_distance = nn.weight("self_attn.relative_k_proj.weight", { d.d_audio, d.d_audio })
  weights.per_dim_scale = nn.weight("self_attn.per_dim_scale", { d.d_audio_head })
  declare_norm("post_attn_norm", "norm_post_attn.weight")
  declare_norm("conv_norm", "lconv1d.pre_layer_norm.weight")
  declare_linear("w_glu", "lconv1d.linear_start", { d.d_audio_glu, d.d_audio })
  weights.conv = nn.weight("lconv1d.depthwise_conv1d.weight", { d.d_audio, 1, d.n_conv })
  declare_norm("post_conv_norm", "lconv1d.conv_norm.weight")
  declare_linear("w_conv", "lconv1d.linear_end", { d.d_audio, d.d_audio })
  declare_norm("out_norm", "norm_out.weight")

  local audio_block = nn.block(weights)

  local q_scale = nn.value(d.d_audio_head) ^ -0.5 / math.log(2)
  local k_scale = math.log(1 + math.exp(1)) / math.log(2)

  function audio_block.forward(w, x, distances, frames)   -- x (soft, d_audio)
    local function linear(h, role) return clipped.linear(h, w, role, true) end

    local function half_ffn(h, i)
      h = silu(linear(rms_norm(h, w["ffn_norm_" .. i], norm), "w_up_" .. i))
      return rms_norm(linear(h, "w_down_" .. i), w["post_ffn_norm_" .. i], norm) * 0.5
    end

    x = x + half_ffn(x, 1)

    local h = rms_norm(x, w.attn_norm, norm)
    local q = nn.mul_softplus(linear(h, "wq"), w.per_dim_scale, { factor = q_scale })
    local k = linear(h, "wk") * k_scale
    local r = nn.linear(distances, w.w_distance)
    local a = nn.relative_attention(q, k, linear(h, "wv"), r, frames, { cap = 50 })
    x = x + rms_norm(linear(a, "wo"), w.post_attn_norm, norm)

    local c = nn.glu(linear(rms_norm(x, w.conv_norm, norm), "w_glu"))
    c = silu(rms_norm(nn.depthwise_conv(c, w.conv, frames), w.post_conv_norm, norm))
    x = x + linear(c, "w_conv")

    x = x + half_ffn(x, 2)
    return rms_norm(x, w.out_norm, norm)
  end

  local tower = "model.audio_tower."
  local part = { weights = {
    audio_conv_1 = nn.weight(tower .. "subsample_conv_projection.layer0.conv.weight",
                             { d.n_channels, 1, 3, 3 }),
    audio_norm_1 = nn.weight(tower .. "subsample_conv_projection.layer0.norm.weight",
                             { d.n_channels }),
    audio_conv_2 = nn.weight(tower .. "subsample_conv_projection.layer1.conv.weight",
                             { d.n_channels_2, d.n_channels, 3, 3 }),
    audio_norm_2 = nn.weight(tower .. "subsample_conv_projection.layer1.norm.weight",
                             { d.n_channels_2 }),
    audio_in     = nn.weight(tower .. "subsample_conv_projection.input_proj_linear.weight",
                             { d.d_audio, d.d_mel / 4 * d.n_channels_2 }),
    audio_layers = nn.layers(tower .. "layers.%d.", { { d.n_audio_layers, audio_block } }),
    audio_out    = nn.weight(tower .. "output_proj.weight", { d.d_audio_out, d.d_audio }),
    audio_bias   = nn.weight(tower .. "output_proj.bias", { d.d_audio_out }),
    audio_head   = nn.weight("model.embed_audio.embedding_projection.weight",
                             { d_decoder, d.d_audio_out }),
  } }

  part.encode_audio = nn.encoder({ smallest = 25, largest = 750 }, function(w)   -- 1 s ... 30 s
    local mel    = nn.input("mel",    { 4 * nn.soft, d.d_mel }, "f32")
    local frames = nn.input("frames", { 4 * nn.soft }, "i32")   -- its number in the item, or -1

    local x = nn.audio_conv(mel, w.audio_conv_1, w.audio_norm_1, frames, norm)   -- (2 soft, ...)
    x = nn.audio_conv(x, w.audio_conv_2, w.audio_norm_2, frames, norm)           -- (soft, ...)
    local distances = nn.sinusoids { n = n_seen, d = d.d_audio, longest = 10000 }
    x = w.audio_layers(nn.linear(x, w.audio_in), distances, frames)

    x = nn.add_vector(nn.linear(x, w.audio_out), w.audio_bias)
    return nn.linear(rms_norm(x, norm), w.audio_head)
  end)
  return part
end
