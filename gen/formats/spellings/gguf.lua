-- gen/formats/spellings/gguf.lua -- Names in GGUF, from Hugging Face's: gguf-py's
-- tensor_mapping.py. Where a file holds something else than the release does, that is said
-- here too: llama's q and k rows lie in pairs (2i, 2i + 1) of each head. And the keys of its
-- metadata: gguf-py's constants.py.

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

-- What GGUF calls an architecture, where it isn't Hugging Face's model_type.
local architectures = {
  mistral = "llama", gemma3_text = "gemma3", gemma4_text = "gemma4",
  qwen3_5 = "qwen35", qwen3_5_text = "qwen35",
}

-- Behind the file's own architecture: "llama.rope.freq_base"; of a tensor, its largest element.
-- Sizes that tensors have aren't
-- here, nor context_length, which changes no result.
local keys = {
  { "n_layers", ".block_count" },
  { "n_heads", ".attention.head_count" },
  { "n_kv_heads", ".attention.head_count_kv" },
  { "d_head", ".attention.key_length .attention.value_length" },
  { "d_rope", ".rope.dimension_count" },
  { "rope_theta", ".rope.freq_base" },
  { "rope_scaling", ".rope.scaling.type" }, -- llama3's is a tensor of factors, and no type
  { "rope_slowed", "rope_freqs.weight" },
  { "eps", ".attention.layer_norm_rms_epsilon" },
  { "window", ".attention.sliding_window" },
}

-- What the model knows and a file may say, for binding: { name, keys, value }, as hf.rows.
function gguf.bound_rows(model, facts)
  local rows, words, known = {}, {}, {}
  for _, model_type in ipairs(model.model_type) do
    local word = architectures[model_type] or model_type
    if not known[word] then words[#words + 1] = word end
    known[word] = true
  end
  if #words > 0 then
    rows[1] = { name = "model_type", keys = "general.architecture", value = table.concat(words, " ") }
  end
  for _, row in ipairs(keys) do
    local value = facts[row[1]]
    if row[1] == "rope_scaling" and value then value = "none" end
    if value ~= nil then rows[#rows + 1] = { name = row[1], keys = row[2], value = value } end
  end
  return rows
end

return gguf
