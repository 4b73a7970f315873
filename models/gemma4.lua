-- models/gemma4.lua -- Gemma 4 with its encoders of images, video and audio.
-- Google 2026, Gemma 4 model card; transformers' models/gemma4/modeling_gemma4.py

local v = nn.variants {
  recipe = "bf16", model_type = "gemma4",
  { "e2b", n_layers = 35, d_model = 1536, d_ff = 6144, n_heads = 8, n_kv_heads = 1,
    n_global_kv_heads = 1, pattern = 5, window = 512, n_ctx = 131072,
    n_shared = 20, d_shared_ff = 12288, d_ple = 256, vision = "small", audio = true },
  { "e4b", n_layers = 42, d_model = 2560, d_ff = 10240, n_heads = 8, n_kv_heads = 2,
    n_global_kv_heads = 2, pattern = 6, window = 512, n_ctx = 131072,
    n_shared = 18, d_shared_ff = 10240, d_ple = 256, vision = "small", audio = true },
  { "26b-a4b", n_layers = 30, d_model = 2816, d_ff = 2112, n_heads = 16, n_kv_heads = 8,
    n_global_kv_heads = 2, pattern = 6, window = 1024, n_ctx = 262144, k_eq_v = true,
    n_experts = 128, n_active_experts = 8, d_expert = 704, vision = "large", spans = true },
  { "31b", n_layers = 60, d_model = 5376, d_ff = 21504, n_heads = 32, n_kv_heads = 16,
    n_global_kv_heads = 4, pattern = 6, window = 1024, n_ctx = 262144, k_eq_v = true,
    vision = "large", spans = true },
}

local decoder = nn.include "gemma4_decoder" (v)
local vision  = nn.include "gemma4_vision" (v.vision, decoder.d_model)
local audio   = v.audio and nn.include "gemma4_audio" (decoder.d_model)

local weights = {}
for _, part in ipairs { decoder, vision, audio } do
  for role, x in pairs(part.weights) do weights[role] = x end
end

local model = nn.model(weights)
model.step, model.encode_image = decoder.step, vision.encode_image
if audio then model.encode_audio = audio.encode_audio end

return model
