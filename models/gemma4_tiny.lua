-- models/gemma4_tiny.lua -- Gemma 4's decoders with random weights, for tests: a variant for each
-- of the published ones, with all that is odd about it. No two sizes of one are equal, so a swapped
-- dimension cannot pass; windows are shorter than prompts.

local v = nn.variants {
  recipe = "f32", model_type = "gemma4",
  { "e2b", n_layers = 9, d_model = 48, d_ff = 72, n_heads = 3, n_kv_heads = 1,
    n_global_kv_heads = 1, d_head = 16, d_global_head = 24, pattern = 3, window = 20, n_ctx = 1024,
    n_vocab = 136, n_shared = 4, d_shared_ff = 144, d_ple = 8 },
  { "e4b", n_layers = 8, d_model = 56, d_ff = 104, n_heads = 4, n_kv_heads = 2, -- q | k | v in 32s
    n_global_kv_heads = 2, d_head = 16, d_global_head = 32, pattern = 4, window = 67, n_ctx = 1024,
    n_vocab = 152, n_shared = 2, d_shared_ff = 104, d_ple = 24 },
  { "26b-a4b", n_layers = 6, d_model = 64, d_ff = 88, n_heads = 8, n_kv_heads = 4,
    n_global_kv_heads = 2, d_head = 8, d_global_head = 40, pattern = 3, window = 25, n_ctx = 1024,
    n_vocab = 160, k_eq_v = true, n_experts = 10, n_active_experts = 3, d_expert = 32,
    spans = true },
  { "31b", n_layers = 8, d_model = 72, d_ff = 112, n_heads = 12, n_kv_heads = 6,
    n_global_kv_heads = 3, d_head = 8, d_global_head = 16, pattern = 4, window = 33, n_ctx = 1024,
    n_vocab = 168, k_eq_v = true, spans = true },
}

local decoder = nn.include "gemma4_decoder" (v)
local model = nn.model(decoder.weights)
model.step = decoder.step

return model
