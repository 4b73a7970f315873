-- models/gemma4_unified.lua -- Gemma 4 12B: no encoders. Squares of 48 x 48 pixels and 40 ms of
-- sound are soft tokens after a product or two.   Google 2026, Gemma 4 model card;
-- transformers' models/gemma4_unified/modeling_gemma4_unified.py

local rms_norm, layer_norm, linear = nn.rms_norm, nn.layer_norm, nn.linear

local decoder = nn.include "gemma4_decoder"

local v = nn.variants {
  recipe = "bf16", model_type = { "gemma4_unified", "gemma4_unified_text" },
  config = decoder.config,
  { "12b", n_layers = 48, d_model = 3840, d_ff = 15360, n_heads = 16, n_kv_heads = 8,
    n_global_kv_heads = 1, layer_types = decoder.every(6, 48), window = 1024, n_ctx = 262144,
    k_eq_v = true, bidirectional = "vision", cap = 30.0 },
}

local text = decoder.of(v)

local d = nn.dims { d_square = 48 * 48 * 3, d_sound = 640, d_vision = 3840, n_positions = 1120 }

local weights = {   -- role = name in the checkpoint, shape (out, in)
  square_norm   = nn.weight("model.vision_embedder.patch_ln1.weight", { d.d_square }),
  square_shift  = nn.weight("model.vision_embedder.patch_ln1.bias",   { d.d_square }),
  w_square      = nn.weight("model.vision_embedder.patch_dense.weight", { d.d_vision, d.d_square }),
  square_bias   = nn.weight("model.vision_embedder.patch_dense.bias", { d.d_vision }),
  vision_norm   = nn.weight("model.vision_embedder.patch_ln2.weight", { d.d_vision }),
  vision_shift  = nn.weight("model.vision_embedder.patch_ln2.bias",   { d.d_vision }),
  positions     = nn.weight("model.vision_embedder.pos_embedding",
                            { d.n_positions, 2, d.d_vision }),
  position_norm  = nn.weight("model.vision_embedder.pos_norm.weight", { d.d_vision }),
  position_shift = nn.weight("model.vision_embedder.pos_norm.bias",   { d.d_vision }),
  vision_head = nn.weight("model.embed_vision.embedding_projection.weight",
                          { text.d_model, d.d_vision }),
  audio_head  = nn.weight("model.embed_audio.embedding_projection.weight",
                          { text.d_model, d.d_sound }),
}
for role, x in pairs(text.weights) do weights[role] = x end

local model = nn.model(weights)
model.step = text.step

model.encode_image = nn.encoder({ smallest = 70, largest = 1120, frame = 70 }, function(w)   -- extent: soft
  local squares   = nn.input("pixels",          { nn.soft, d.d_square }, "u8")
  local positions = nn.input("pixel_positions", { nn.soft, 2 }, "i32")   -- column, row

  local x = layer_norm(nn.pixels(squares, { scale = 1 / 255 }), w.square_norm, w.square_shift,
                       { eps = 1e-5 })
  x = nn.add_vector(linear(x, w.w_square), w.square_bias)
  x = layer_norm(x, w.vision_norm, w.vision_shift, { eps = 1e-5 })
  x = nn.position_embedding(x, w.positions, positions)
  x = layer_norm(x, w.position_norm, w.position_shift, { eps = 1e-5 })
  return linear(rms_norm(x, { eps = 1e-6 }), w.vision_head)
end)

model.encode_audio = nn.encoder({ smallest = 25, largest = 750 }, function(w)   -- 1 s ... 30 s
  local sound = nn.input("sound", { nn.soft, d.d_sound }, "f32")   -- samples at 16 kHz
  return linear(rms_norm(sound, { eps = 1e-6 }), w.audio_head)
end)

return model
