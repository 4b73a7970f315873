-- models/gemma4_tiny.lua -- Gemma 4's decoders with random weights, for tests: a variant for each
-- of the published ones, with all that is odd about it. No two sizes of one are equal, so a swapped
-- dimension cannot pass; windows are shorter than prompts.

local decoder = nn.include "gemma4_decoder"
local every   = decoder.every

local small = { n_layers = 2, d_model = 60, n_heads = 2, n_kv_heads = 2, d_head = 40, d_ff = 92,
                n_positions = 22, eps = 1e-6, theta = 100, clips = true }
local large = { n_layers = 3, d_model = 52, n_heads = 5, n_kv_heads = 5, d_head = 24, d_ff = 76,
                n_positions = 26, eps = 1e-6, theta = 100, standardizes = true }

local v = nn.variants {
  recipe = "bf16", model_type = "gemma4", config = decoder.config,
  { "e2b", n_layers = 9, d_model = 48, d_ff = 72, n_heads = 3, n_kv_heads = 1,
    n_global_kv_heads = 1, d_head = 16, d_global_head = 24, layer_types = every(3, 9),
    window = 20, n_ctx = 1024, n_vocab = 136, n_shared = 4, double_wide = true,
    d_ple = 8, cap = 30, vision = small },
  -- q | k | v in 32s
  { "e4b", n_layers = 8, d_model = 56, d_ff = 104, n_heads = 4, n_kv_heads = 2,
    n_global_kv_heads = 2, d_head = 16, d_global_head = 32, layer_types = every(4, 8),
    window = 67, n_ctx = 1024, n_vocab = 152, n_shared = 2, d_ple = 24, cap = 30,
    vision = small },
  { "26b-a4b", n_layers = 6, d_model = 64, d_ff = 88, n_heads = 8, n_kv_heads = 4,
    n_global_kv_heads = 2, d_head = 8, d_global_head = 40, layer_types = every(3, 6),
    window = 25, n_ctx = 1024, n_vocab = 160, k_eq_v = true, n_experts = 10,
    n_active_experts = 3, d_expert = 32, bidirectional = "vision", cap = 30,
    vision = large },
  { "31b", n_layers = 6, d_model = 72, d_ff = 112, n_heads = 12, n_kv_heads = 6,
    n_global_kv_heads = 3, d_head = 8, d_global_head = 16, layer_types = every(3, 6),
    window = 33, n_ctx = 1024, n_vocab = 168, k_eq_v = true, bidirectional = "vision",
    cap = 30, vision = large },
}

local text   = decoder.of(v)
local vision = nn.include "gemma4_vision" (v.vision, text.d_model)

local weights = {}
for _, part in ipairs { text, vision } do
  for role, x in pairs(part.weights) do weights[role] = x end
end

local model = nn.model(weights)
model.step, model.encode_image = text.step, vision.encode_image

return model
