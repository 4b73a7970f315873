-- gen/formats/spellings/hf.lua -- A release of Hugging Face's: names in safetensors, which are
-- nn.weight's own, behind the group's prefix; and keys of config.json.
--
-- A key may be a path, "rope_parameters.rope_theta". What stands in text_config counts as if it
-- stood outside. Transformers 4 writes rope_theta and rope_scaling, 5 writes rope_parameters.

local json = require "gen.json"

local hf = {}

function hf.name(_, weight, layer, group)
  if not layer then return weight.hf end
  local before, after = group.prefix:match "^(.-)%%d(.*)$"
  return before .. layer .. after .. weight.hf
end

-- Of a stack of experts, names of the parts of one expert's matrix where a release holds each by
-- itself, %d for the expert.
local pieces = {
  ["experts.gate_up_proj"] = { "experts.%d.gate_proj.weight", "experts.%d.up_proj.weight" },
  ["experts.down_proj"] = { "experts.%d.down_proj.weight" },
}

function hf.pieces(weight, layer, group)
  local names = {}
  for fused, parts in pairs(pieces) do
    if weight.hf:sub(-#fused) == fused then
      local before = hf.name(nil, weight, layer, group):sub(1, -#fused - 1)
      for i, part in ipairs(parts) do names[i] = before .. part end
    end
  end
  return names
end

-- ---- config.json ---------------------------------------------------------------------------

-- Ours, and all keys that may hold it. Ours are the names of nn.dims, of a variant's row and of
-- gen/hyperparameters.lua. What tensors prove isn't compared once more when they are bound.
-- `absent` is what a file means that hasn't the key, where all releases mean the same by it;
-- told(name) is what the file says of another. A key that is `switched` may say something while
-- hf.switches has it off.
hf.keys = {
  { "model_type", "model_type" },
  { "n_layers", "num_hidden_layers" },
  { "d_model", "hidden_size", proved = true },
  { "n_heads", "num_attention_heads" },
  { "n_kv_heads", "num_key_value_heads", absent = function(told) return told "n_heads" end },
  { "d_head", "head_dim", absent = function(told)
    local d_model, n_heads = told "d_model", told "n_heads"
    return d_model and n_heads and n_heads > 0 and d_model // n_heads or nil
  end },
  { "d_ff", "intermediate_size", proved = true },
  { "n_vocab", "vocab_size", proved = true },
  { "n_ctx", "max_position_embeddings", proved = true }, -- not so, but it changes no result
  { "tied", "tie_word_embeddings", proved = true },
  { "attention_bias", "attention_bias", proved = true, absent = function() return false end },
  { "mlp_bias", "mlp_bias", proved = true, absent = function() return false end },
  { "activation", "hidden_act hidden_activation" },
  { "eps", "rms_norm_eps" },
  { "window", "sliding_window", switched = true, absent = function() return 0 end },
  { "rope_theta", "rope_theta rope_parameters.rope_theta" },
  { "rope_scaling", "rope_scaling rope_scaling.rope_type rope_scaling.type"
    .. " rope_parameters.rope_type rope_parameters.type", absent = function() return "default" end },
  { "rope_factor", "rope_scaling.factor rope_parameters.factor" },
  { "rope_low_factor", "rope_scaling.low_freq_factor rope_parameters.low_freq_factor" },
  { "rope_high_factor", "rope_scaling.high_freq_factor rope_parameters.high_freq_factor" },
  { "rope_original", "rope_scaling.original_max_position_embeddings"
    .. " rope_parameters.original_max_position_embeddings" },
}

-- Texts that mean one of ours, separated by spaces; "null" is what a file says with null.
local meanings = {
  activation = { silu = "silu swish", gelu_tanh = "gelu_pytorch_tanh gelu_new" },
  rope_scaling = { none = "default null", llama3 = "llama3" },
}

-- Outside of layers, or in those that `step` runs: an encoder's have biases of their own.
local function has_weight(model, pattern)
  for _, weight in ipairs(model.weights) do
    if weight.hf:find(pattern) then return true end
  end
  for _, op in ipairs(model.programs[1].ops) do
    for _, section in ipairs(op.sections or {}) do
      for _, weight in ipairs(section.kind.weights) do
        if weight.hf:find(pattern) then return true end
      end
    end
  end
  return false
end

-- What the model knows and config.json may say, in the order of hf.keys: { name, keys, value,
-- proved, switched, absent }. A text's value is all words that mean it. `facts` is hyperparameters.of(model).
function hf.rows(model, facts)
  local values = {
    tied = not has_weight(model, "^lm_head%.weight$"),
    attention_bias = has_weight(model, "^self_attn%.[a-z]+_proj%.bias$"),
    mlp_bias = has_weight(model, "^mlp%..*%.bias$"),
  }
  for _, dim in ipairs(model.dims) do values[dim.name] = dim:value() end
  for name, value in pairs(facts) do
    values[name] = meanings[name] and meanings[name][value] or value
  end
  if #model.model_type > 0 then values.model_type = table.concat(model.model_type, " ") end
  local rows = {}
  for _, row in ipairs(hf.keys) do
    if values[row[1]] ~= nil then
      rows[#rows + 1] = {
        name = row[1], keys = row[2], value = values[row[1]],
        proved = row.proved, switched = row.switched, absent = row.absent,
      }
    end
  end
  return rows
end

-- What nn.rope takes, by rope_type: ours, theirs.
hf.rope = {
  default = { { "theta", "rope_theta" } },
  proportional = { { "theta", "rope_theta" }, { "partial", "partial_rotary_factor" } },
  llama3 = {
    { "theta", "rope_theta" }, { "factor", "factor" }, { "low_factor", "low_freq_factor" },
    { "high_factor", "high_freq_factor" }, { "original", "original_max_position_embeddings" },
  },
}

-- Keys that change nothing of what is computed from given weights.
hf.harmless = {}
for key in ([[
  architectures auto_map dtype torch_dtype transformers_version transformers.js_config
  unsloth_version unsloth_fixed is_llama_config _name_or_path _attn_implementation
  _attn_implementation_autoset _commit_hash attn_implementation name_or_path
  attention_dropout hidden_dropout embd_pdrop resid_pdrop attn_pdrop classifier_dropout
  initializer_range use_cache pretraining_tp chunk_size_feed_forward
  bos_token_id eos_token_id pad_token_id unk_token_id sep_token_id cls_token_id
  decoder_start_token_id bos_token eos_token tokenizer_class prefix
  output_attentions output_hidden_states return_dict torchscript gradient_checkpointing
  id2label label2id num_labels problem_type finetuning_task task_specific_params
  quantization_config
]]):gmatch "%S+" do hf.harmless[key] = true end

-- What is compared when a checkpoint is bound, as gguf.bound_rows.
function hf.bound_rows(model, facts)
  local rows = {}
  for _, row in ipairs(hf.rows(model, facts)) do
    if not row.proved and not (row.switched and row.value == 0) then rows[#rows + 1] = row end
  end
  return rows
end

-- Switches that, when false, turn off other keys.
hf.switches = {
  use_sliding_window = { "sliding_window", "max_window_layers" },
  enable_moe_block = {
    "num_experts", "top_k_experts", "moe_intermediate_size", "expert_intermediate_size",
  },
}

-- What transformers 5 writes for each layer of full attention, per_layer_config, becomes what
-- files said once before: global_head_dim and num_global_key_value_heads, which they say in vain
-- where keys aren't values. Returns what is wrong, if anything.
function hf.flatten(values)
  local text = type(values.text_config) == "table" and values.text_config or values
  local layers, types = text.per_layer_config, text.layer_types
  if type(layers) ~= "table" or not layers[json.KEYS] then
    if text.attention_k_eq_v == false then text.num_global_key_value_heads = json.NULL end
    return nil
  end
  if type(types) ~= "table" then return "per_layer_config needs layer_types" end
  local heads, d_head, seen = {}, {}, {}
  for _, key in ipairs(layers[json.KEYS]) do
    local layer, row = math.tointeger(tonumber(key)), layers[key]
    if not layer or types[layer + 1] ~= "full_attention" or type(row) ~= "table" then
      return "per_layer_config is of other layers than those of full_attention"
    end
    for name in pairs(row) do
      if name ~= json.KEYS and name ~= "head_dim" and name ~= "num_key_value_heads" then
        return ("per_layer_config: '%s' isn't understood"):format(tostring(name))
      end
    end
    seen[layer + 1] = true
    heads[#heads + 1] = row.num_key_value_heads or json.NULL
    d_head[#d_head + 1] = row.head_dim or text.head_dim or json.NULL
  end
  for i, kind in ipairs(types) do
    if kind == "full_attention" and not seen[i] then
      return "per_layer_config lacks a layer of full_attention"
    end
  end
  for i = 2, #heads do
    if heads[i] ~= heads[1] or d_head[i] ~= d_head[1] then
      return "per_layer_config has layers of different sizes"
    end
  end
  local function put(name, value)
    if text[name] == nil then table.insert(text[json.KEYS], name) end
    text[name] = value
  end
  put("num_global_key_value_heads", heads[1])
  put("global_head_dim", d_head[1])
  text.per_layer_config = nil
  for i, name in ipairs(text[json.KEYS]) do
    if name == "per_layer_config" then table.remove(text[json.KEYS], i) break end
  end
end

return hf
