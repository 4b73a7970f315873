-- models/gemma4.lua -- Gemma 4 with its encoders of images, video and audio.
-- Google 2026, Gemma 4 model card; transformers' models/gemma4/modeling_gemma4.py

local decoder = nn.include "gemma4_decoder"
local every   = decoder.every   -- kinds of layers: of so many the last is global

local small = { n_layers = 16, d_model = 768,  n_heads = 12, n_kv_heads = 12, d_head = 64,
                d_ff = 3072, clips = true }
local large = { n_layers = 27, d_model = 1152, n_heads = 16, n_kv_heads = 16, d_head = 72,
                d_ff = 4304, standardizes = true }
local conformer = { n_layers = 12, d_model = 1024, n_heads = 8, d_out = 1536, n_taps = 5,
                    n_channels = { 128, 32 } }

local v = nn.variants {
  recipe = "bf16", model_type = { "gemma4", "gemma4_text" },
  config = {   -- where config.json has what rows have
    decoder.config,
    vision = { object = "vision_config",
      n_layers = "num_hidden_layers", d_model = "hidden_size", n_heads = "num_attention_heads",
      n_kv_heads = "num_key_value_heads", d_head = "head_dim", d_ff = "intermediate_size",
      n_positions = { "position_embedding_size", 10240 }, eps = { "rms_norm_eps", 1e-6 },
      theta = { "rope_parameters.rope_theta", 100 }, clips = { "use_clipped_linears", false },
      standardizes = { "standardize", false },
      is = { hidden_activation = "gelu_pytorch_tanh", patch_size = 16, pooling_kernel_size = 3,
             ["rope_parameters.rope_type"] = "axial" },
      "model_type", "max_position_embeddings",
    },
    audio = { object = "audio_config",
      n_layers = "num_hidden_layers", d_model = "hidden_size", n_heads = "num_attention_heads",
      d_out = "output_proj_dims", n_taps = "conv_kernel_size",
      n_channels = "subsampling_conv_channels", eps = { "rms_norm_eps", 1e-6 },
      is = { hidden_act = "silu", use_clipped_linears = true, residual_weight = 0.5,
             attention_logit_cap = 50.0, attention_chunk_size = 12, attention_context_left = 13,
             attention_context_right = 0 },
      "model_type", "attention_invalid_logits_value", "gradient_clipping",
    },
    "image_token_id video_token_id audio_token_id boi_token_id eoi_token_id boa_token_id",
    "eoa_token_id eoa_token_index vision_soft_tokens_per_image",
  },
  { "e2b", n_layers = 35, d_model = 1536, d_ff = 6144, n_heads = 8, n_kv_heads = 1,
    layer_types = every(5, 35), window = 512, n_ctx = 131072, n_shared = 20, double_wide = true,
    d_ple = 256, cap = 30.0, vision = small, audio = conformer },
  { "e4b", n_layers = 42, d_model = 2560, d_ff = 10240, n_heads = 8, n_kv_heads = 2,
    layer_types = every(6, 42), window = 512, n_ctx = 131072, n_shared = 18,
    d_ple = 256, cap = 30.0, vision = small, audio = conformer },
  { "26b-a4b", n_layers = 30, d_model = 2816, d_ff = 2112, n_heads = 16, n_kv_heads = 8,
    n_global_kv_heads = 2, layer_types = every(6, 30), window = 1024, n_ctx = 262144,
    k_eq_v = true, bidirectional = "vision", cap = 30.0, vision = large,
    has_experts = true, n_experts = 128, n_active_experts = 8, d_expert = 704 },
  { "31b", n_layers = 60, d_model = 5376, d_ff = 21504, n_heads = 32, n_kv_heads = 16,
    n_global_kv_heads = 4, layer_types = every(6, 60), window = 1024, n_ctx = 262144,
    k_eq_v = true, bidirectional = "vision", cap = 30.0, vision = large },
}

local text   = decoder.of(v)
local vision = v.vision and nn.include "gemma4_vision" (v.vision, text.d_model)
local audio  = v.audio and nn.include "gemma4_audio" (v.audio, text.d_model)

local weights = {}
for _, part in pairs { text, vision or nil, audio or nil } do
  for role, x in pairs(part.weights) do weights[role] = x end
end

local model = nn.model(weights)
model.step = text.step
if vision then model.encode_image = vision.encode_image end
if audio then model.encode_audio = audio.encode_audio end

return model
