-- gen/formats/spellings/gguf.lua -- Names in GGUF, from Hugging Face's: gguf-py's
-- tensor_mapping.py. Where a file holds something else than the release does, that is said
-- here too: llama's q and k rows lie in pairs (2i, 2i + 1) of each head.

local gguf = {}

local outside = {
  ["model.embed_tokens.weight"] = "token_embd.weight",
  ["model.norm.weight"] = "output_norm.weight",
  ["lm_head.weight"] = "output.weight",
}

local in_layer = {
  ["input_layernorm"] = "attn_norm",
  ["self_attn.q_proj"] = "attn_q",
  ["self_attn.k_proj"] = "attn_k",
  ["self_attn.v_proj"] = "attn_v",
  ["self_attn.o_proj"] = "attn_output",
  ["self_attn.q_norm"] = "attn_q_norm",
  ["self_attn.k_norm"] = "attn_k_norm",
  ["post_attention_layernorm"] = "ffn_norm",
  ["mlp.gate_proj"] = "ffn_gate",
  ["mlp.up_proj"] = "ffn_up",
  ["mlp.down_proj"] = "ffn_down",
}

function gguf.name(_, weight, layer)
  if not layer then return outside[weight.hf] end
  local stem, kind = weight.hf:match "^(.*)%.([a-z]+)$"
  local name = stem and in_layer[stem]
  return name and ("blk.%d.%s.%s"):format(layer, name, kind) or nil
end

-- Heads whose rows lie in pairs where the file's architecture has it so, or 0.
function gguf.rope_heads(_, weight)
  if not weight.hf:find "^self_attn%.[qk]_proj%.weight$" then return 0 end
  local factors = weight.shape[1].factors
  return factors and factors[1]:value() or 0
end

return gguf
