-- tests/gen/test_config.lua -- `--config`: a release's config.json supplies the sizes or checks
-- them, and whatever in it isn't what the description computes is refused by name.

local spec = require "tests.support.spec"
local config = require "gen.config"
local describe = require("gen.describe").load

local folder = spec.folder()

local function write(name, text)
  local path = folder .. "/" .. name
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
  return path
end

-- The model of a description (its text, or a name in models) with this config.json.
local function configured(text, options)
  options = options or {}
  local path = "models/" .. (options.model or "llama") .. ".lua"
  local name = path
  if options.description then path, name = write("x.lua", options.description), "models/x.lua" end
  local release = config.open(write("config.json", text), { variant = options.variant, name = name })
  local row
  local model = describe {
    path = path, name = name, architecture = "x", variant = options.variant,
    include_folders = { { path = "models", name = "models/" } },
    configure = function(chosen, model)
      row = release:configure(chosen, model)
      return row
    end,
  }
  release:check(model)
  return row, model
end

-- It is taken.
local function accepted(text, options)
  local ok, row, model = pcall(configured, text, options)
  if not ok then error(type(row) == "table" and row.message or row, 2) end
  return row, model
end

local function refused(text, options)
  local ok, e = pcall(configured, text, options)
  if ok then error("it was taken", 2) end
  spec.equal(type(e), "table", tostring(e))
  spec.equal(e.code, 4)
  return e.message
end

-- SmolLM2-135M's, as its release has it: transformers 4.
local smollm2 = [[{
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 576,
  "initializer_range": 0.041666666666666664, "intermediate_size": 1536, "is_llama_config": true,
  "max_position_embeddings": 8192, "mlp_bias": false, "model_type": "llama",
  "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3, "pad_token_id": 2,
  "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_interleaved": false, "rope_scaling": null,
  "rope_theta": 100000, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
  "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}},
  "transformers_version": "4.42.3", "use_cache": true, "vocab_size": 49152
}]]

-- What transformers 5.24's LlamaConfig.save_pretrained() writes.
local version_5 = [[{
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "bos_token_id": 1, "dtype": "bfloat16", "eos_token_id": 2, "head_dim": 16, "hidden_act": "silu",
  "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 176,
  "max_position_embeddings": 16384, "mlp_bias": false, "model_type": "llama",
  "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "pad_token_id": null,
  "pretraining_tp": 1, "rms_norm_eps": 1e-06,
  "rope_parameters": {
    "factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
    "original_max_position_embeddings": 8192, "rope_theta": 500000.0, "rope_type": "llama3"
  },
  "tie_word_embeddings": false, "transformers_version": "5.24.0", "use_cache": true,
  "vocab_size": 320
}]]

-- One of the above with some text replaced.
local function with(text, from, to)
  local i, j = text:find(from, 1, true)
  assert(i, from)
  return text:sub(1, i - 1) .. to .. text:sub(j + 1)
end

spec("a release's config.json is its variant's", function()
  accepted(smollm2, { variant = "smollm2-135m" })
end)

spec("transformers 4's keys supply the sizes", function()
  local row = accepted(with(smollm2, '"rope_scaling": null', '"rope_scaling": {"type": "llama3", "factor": 8,'
    .. '"low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 100}'))
  spec.equal({ row.n_layers, row.d_model, row.n_heads, row.n_kv_heads, row.d_head, row.d_ff, row.n_vocab, row.n_ctx },
    { 30, 576, 9, 3, 64, 1536, 49152, 8192 })
  spec.equal(row.rope, { theta = 100000, scaling = "llama3", factor = 8, low_factor = 1, high_factor = 4, original = 100 })
  spec.equal({ row.eps, row.untied }, { 1e-5, false })
end)

spec("transformers 5's keys supply the sizes", function()
  local row, model = accepted(version_5)
  spec.equal({ row.n_layers, row.d_model, row.n_heads, row.n_kv_heads, row.d_head, row.d_ff, row.n_vocab, row.n_ctx },
    { 2, 64, 4, 2, 16, 176, 320, 16384 })
  spec.equal(row.rope, { theta = 500000, scaling = "llama3", factor = 32, low_factor = 1, high_factor = 4, original = 8192 })
  spec.equal({ row.eps, row.untied }, { 1e-6, true })
  spec.equal(#model.weights, 3)
end)

spec("text_config counts as if it stood outside", function()
  local row = accepted('{"architectures": ["X"], "text_config": ' .. version_5 .. "}")
  spec.equal({ row.n_layers, row.rope.theta }, { 2, 500000 })
end)

spec("keys that say by their absence what all releases mean by it", function()
  local row = accepted(with(with(version_5, '"head_dim": 16,', ""), '"num_key_value_heads": 2,', ""))
  spec.equal({ row.n_kv_heads, row.d_head }, { 4, 16 })
  spec.contains(refused(with(smollm2, '"num_key_value_heads": 3,', ""), { variant = "smollm2-135m" }),
    "num_key_value_heads is missing, which means 9; smollm2-135m has n_kv_heads = 3")
end)

spec("no size is taken from another model: what is missing is listed, with what needs it", function()
  local message = refused(with(with(smollm2, '"rope_theta": 100000,', ""), '"intermediate_size": 1536,', ""))
  spec.contains(message, "rope_theta (or rope_parameters) is missing: rope needs it")
  spec.contains(message, "intermediate_size is missing: d_ff needs it")
  spec.contains(refused(with(smollm2, '"rms_norm_eps": 1e-05,', "")),
    "rms_norm_eps is missing: models/llama.lua has eps = 1e-05")
  spec.contains(refused(with(version_5, '"factor": 32.0,', "")), "rope_parameters has no factor: rope needs it")
end)

spec("a config.json of another variant: all that differs at once", function()
  local message = refused(smollm2, { variant = "smollm2-1.7b" })
  spec.contains(message, "doesn't fit smollm2-1.7b:\n")
  spec.contains(message, "num_hidden_layers is 30, smollm2-1.7b has n_layers = 24\n")
  spec.contains(message, "rope_theta is 100000, smollm2-1.7b has rope_theta = 130000")
  spec.contains(refused(smollm2, { variant = "llama-3.2-1b" }),
    "rope_scaling is null, llama-3.2-1b has rope_scaling = llama3")
end)

spec("what the description doesn't compute is refused, found and needed", function()
  for _, row in ipairs {
    { '"hidden_act": "silu"', '"hidden_act": "gelu"', 'hidden_act is "gelu", models/llama.lua has activation = silu or swish' },
    { '"attention_bias": false', '"attention_bias": true', "attention_bias is true, models/llama.lua has attention_bias = false" },
    { '"mlp_bias": false', '"mlp_bias": true', "mlp_bias is true, models/llama.lua has mlp_bias = false" },
    { '"model_type": "llama"', '"model_type": "gemma3"', 'model_type is "gemma3", models/llama.lua has llama' },
    { '"use_cache": true', '"sliding_window": 4096', "sliding_window is 4096, models/llama.lua has window = 0" },
    { '"rope_scaling": null', '"rope_scaling": {"rope_type": "yarn", "factor": 4}', 'rope_scaling of type "yarn" isn\'t known' },
    { '"tie_word_embeddings": true', '"tie_word_embeddings": false', "tie_word_embeddings is false, smollm2-135m has tied = true", "smollm2-135m" },
  } do
    spec.contains(refused(with(smollm2, row[1], row[2]), { variant = row[4] }), row[3])
  end
end)

spec("a window that a switch turns off is none", function()
  accepted(with(smollm2, '"use_cache": true', '"sliding_window": 4096, "use_sliding_window": false, "max_window_layers": 21'))
end)

spec("a key that nobody understands is refused, unless it is off", function()
  spec.contains(refused(with(smollm2, '"use_cache": true', '"final_logit_softcapping": 30.0')),
    "final_logit_softcapping = 30 isn't understood")
  spec.contains(refused(with(smollm2, '"use_cache": true', '"vision_config": {"hidden_size": 1152}')),
    "vision_config = an object isn't understood")
  spec.contains(refused(with(version_5, '"factor": 32.0', '"factor": 32.0, "partial_rotary_factor": 0.5')),
    "rope_parameters.partial_rotary_factor = 0.5 isn't understood")
  accepted(with(smollm2, '"use_cache": true', '"final_logit_softcapping": null, "x": false, "y": [], "z": {}'))
end)

-- Two kinds of layers: their thetas and the window are the description's own fields.
local function two_kinds(config_keys)
  return [[
local v = nn.variants { recipe = "f32", model_type = { "two", "two_text" }, config = ]] .. config_keys .. [[,
  { "small", n_layers = 2, d_model = 32, n_heads = 2, n_vocab = 64, n_ctx = 128, near = { theta = 100 },
    far = { theta = 1000 } } }
local d = nn.dims { n_layers = v.n_layers, d_model = v.d_model, n_vocab = v.n_vocab, n_ctx = v.n_ctx,
  n_heads = v.n_heads, d_head = v.d_model // v.n_heads }
d.d_q = d.n_heads * d.d_head
local function kind(rope)
  local block = nn.block { wq = nn.weight("q", { d.d_q, d.d_model }), wk = nn.weight("k", { d.d_q, d.d_model }), wv = nn.weight("v", { d.d_q, d.d_model }) }
  block.forward = function(w, x, batch, kv)
    local q = nn.rope(nn.linear(x, w.wq), batch.positions, rope)
    local k = nn.rope(nn.linear(x, w.wk), batch.positions, rope)
    return x + nn.attention(q, kv:append(k, nn.linear(x, w.wv)))
  end
  return block
end
local model = nn.model { e = nn.weight("e", { d.n_vocab, d.d_model }),
  layers = nn.layers("l.%d.", { { 1, kind(v.near) }, { d.n_layers - 1, kind(v.far) } }) }
function model.step(w, batch)
  return nn.linear(nn.rows(w.layers(nn.embedding(batch.token_ids, w.e), batch), batch.output_rows), w.e)
end
return model
]]
end

local two = [[{ "model_type": "two", "text_config": { "model_type": "two_text", "num_hidden_layers": 3,
  "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 96, "max_position_embeddings": 256,
  "tie_word_embeddings": true, "rope_parameters": {
    "sliding_attention": { "rope_type": "default", "rope_theta": 10000.0 },
    "full_attention": { "rope_type": "default", "rope_theta": 1000000.0 } } },
  "vision_config": { "hidden_size": 1152 } }]]
local keys = [[{ near = "rope_parameters.sliding_attention", far = "rope_parameters.full_attention", "vision_config" }]]

spec("a description says where its own fields stand, and what it needn't know", function()
  local row = accepted(two, { description = two_kinds(keys) })
  spec.equal({ row.n_layers, row.near, row.far }, { 3, { theta = 10000 }, { theta = 1000000 } })
  spec.contains(refused(two, { description = two_kinds(keys), variant = "small" }),
    "rope_parameters.full_attention differs from small's far")
end)

spec("a field that no key is known for is refused", function()
  spec.contains(refused(two, { description = two_kinds '{ near = "rope_parameters.sliding_attention" }' }),
    "far: nn.variants doesn't say which key gives it: config = { far = ... }")
end)

spec("hyperparameters are what all layers agree on", function()
  local _, model = accepted(two, { description = two_kinds(keys) })
  spec.equal(require("gen.hyperparameters").of(model), { n_layers = 3, n_heads = 4, n_kv_heads = 4, d_head = 16,
    d_rope = 16, window = 0, rope_scaling = "none", rope_slowed = 1 })
end)

spec("a config.json that is wrong", function()
  for text, part in pairs { ["{"] = "expected a key", ["[]"] = "an object was expected" } do
    spec.contains(refused(text), part)
  end
  for to, part in pairs {
    ['"hidden_size": "x"'] = 'hidden_size must be a number, got "x"',
    ['"hidden_size": {"a": 1}'] = "hidden_size must be a number, got an object",
    ['"hidden_size": [1, 2]'] = "hidden_size must be a number, got a list",
  } do
    local ok, e = pcall(configured, with(smollm2, '"hidden_size": 576', to))
    spec.equal(ok, false)
    spec.contains(e.message, part)
  end
  spec.contains(refused(with(smollm2, '"rope_theta": 100000', '"rope_theta": "*/ ${x}"')), "rope_theta must be a number")
  spec.contains(refused(with(smollm2, '"rope_scaling": null', '"rope_scaling": {"rope_type": "*/ ${x}"}')), "isn't known")
  spec.contains(refused(with(smollm2, '"rope_scaling": null', '"rope_scaling": {"rope_type": ["default"]}')), "isn't known")
end)

-- ---- Gemma 4: files that transformers 5 wrote, golden/gemma4/configs.py ------------------------

local gemma4 = { "e2b", "e4b", "26b-a4b", "31b" }

local function golden(name)
  local file = assert(io.open("tests/golden/gemma4/" .. name .. ".config.json"))
  local text = file:read "a"
  file:close()
  return text
end

-- As files on the hub have it: once, not for each layer.
local function flat(text, d_head, n_kv_heads)
  local keys = ('"global_head_dim": %d, "num_global_key_value_heads": %s'):format(d_head, n_kv_heads)
  return (text:gsub('"per_layer_config": %b{}', keys))
end

local function gemma(text, variant) return accepted(text, { model = "gemma4", variant = variant }) end
local function no_gemma(text, variant) return refused(text, { model = "gemma4", variant = variant }) end

-- Names and shapes of all weights.
local function shapes(model)
  local lines = {}
  local function add(name, weight)
    local dims = {}
    for i, x in ipairs(weight.shape) do dims[i] = ("%d"):format(x:value()) end
    lines[#lines + 1] = name .. " " .. table.concat(dims, "x") .. (weight.unused and " unused" or "")
  end
  for _, weight in ipairs(model.weights) do add(weight.hf, weight) end
  for _, group in ipairs(model.groups) do
    for i, block in ipairs(group.layers) do
      for _, weight in ipairs(block.weights) do add(group.prefix:format(i - 1) .. weight.hf, weight) end
    end
  end
  table.sort(lines)
  return table.concat(lines, "\n")
end

spec("Gemma 4's published variants are their config.json, in both spellings", function()
  local heads = { e2b = "null", e4b = "null", ["26b-a4b"] = 2, ["31b"] = 4 }
  for _, variant in ipairs(gemma4) do
    local text = golden(variant)
    local _, published = gemma(text, variant)
    local _, supplied = gemma(text)
    spec.equal(shapes(supplied), shapes(published), variant)
    local once = flat(text, 512, heads[variant])
    gemma(once, variant)
    _, supplied = gemma(once)
    spec.equal(shapes(supplied), shapes(published), variant)
  end
end)

spec("heads of global layers that are said in vain, where keys aren't values", function()
  local text = flat(golden "e4b", 512, 1)
  local row = gemma(text, "e4b")
  spec.equal(row.n_global_kv_heads, "none")
end)

spec("tiny Gemmas take all sizes from their files", function()
  local row, model = gemma(golden "tiny-e2b")
  spec.equal({ row.d_global_head, row.n_shared, row.double_wide, row.d_ple, row.cap, row.eps, row.vision.d_head,
    row.vision.clips, row.audio.n_channels }, { 24, 4, true, 8, 20, 1e-5, 12, true, { 128, 12 } })
  spec.contains(shapes(model), "model.vision_tower.encoder.layers.1.self_attn.q_proj.linear.weight 60x40")
  spec.contains(shapes(model), "model.audio_tower.layers.1.feed_forward1.ffw_layer_1.linear.weight 192x48")
  spec.contains(shapes(model), "model.language_model.layers.8.self_attn.k_proj.weight 24x48 unused")
  row, model = gemma(golden "tiny-26b-a4b")
  spec.equal({ row.audio, row.bidirectional, row.n_experts }, { nil, "vision", 10 })
  spec.contains(shapes(model), "model.language_model.layers.0.experts.gate_up_proj 10x64x64")
  spec.contains(shapes(model), "model.language_model.layers.5.self_attn.k_proj.weight 80x64")
end)

spec("fewer layers of a published Gemma", function()
  local row, model = gemma(golden "26b-a4b-6-layers")
  spec.equal({ row.n_layers, #model.groups[1].layers, row.vision.n_layers }, { 6, 6, 27 })
  spec.contains(no_gemma(golden "26b-a4b-6-layers", "26b-a4b"), "num_hidden_layers is 6")
end)

spec("what contradicts a Gemma, or isn't computed", function()
  for _, row in ipairs {
    { '"sliding_window": 512', '"sliding_window": 1024', "sliding_window differs from e2b's window" },
    { '"final_logit_softcapping": 30.0', '"final_logit_softcapping": null', "final_logit_softcapping differs from e2b's cap" },
    { '"num_kv_shared_layers": 20', '"num_kv_shared_layers": 0', "num_kv_shared_layers differs from e2b's n_shared" },
    { '"partial_rotary_factor": 0.25', '"partial_rotary_factor": 0.5', "rope_parameters.full_attention differs" },
    { '"enable_moe_block": false', '"enable_moe_block": true', "enable_moe_block differs" },
    { '"use_bidirectional_attention": null', '"use_bidirectional_attention": "all"', "use_bidirectional_attention differs" },
    { '"standardize": false, "use_clipped_linears": true', '"standardize": false', "vision_config.use_clipped_linears differs" },
    { '"04": {"head_dim": 512}', '"04": {"head_dim": 256}', "per_layer_config has layers of different sizes" },
    { '"04": {"head_dim": 512}, ', "", "per_layer_config lacks a layer of full_attention" },
    { '"04": {', '"03": {', "per_layer_config is of other layers than those of full_attention" },
    { '"head_dim": 512}', '"sliding_window": 9}', "per_layer_config: 'sliding_window' isn't understood" },
    { '"patch_size": 16', '"patch_size": 14', "vision_config.patch_size is 14, e2b computes with 16" },
    { '"rope_type": "axial"', '"rope_type": "default"', 'vision_config.rope_parameters.rope_type is "default", e2b computes with "axial"' },
    { '"patch_size": 16', '"patch_size": 16, "depth": 3', "vision_config.depth = 3 isn't understood" },
    { '"hidden_act": "silu"', '"hidden_act": "relu"', 'audio_config.hidden_act is "relu"' },
    { '"attention_bias": false, "attention_dropout": 0.0, "attention_k', '"attention_bias": true, "attention_k', "attention_bias is true" },
    { '"model_type": "gemma4",', '"model_type": "gemma3",', 'model_type is "gemma3"' },
  } do
    spec.contains(no_gemma(with(golden "e2b", row[1], row[2]), "e2b"), row[3])
  end
  spec.contains(no_gemma(with(golden "e2b", '"num_attention_heads": 8, "num_experts": null', '"num_experts": null')),
    "num_attention_heads is missing: n_heads needs it")
end)

spec("a release of another variant", function()
  spec.contains(no_gemma(golden "e4b", "31b"), "audio_config is there, 31b has none")
  spec.contains(no_gemma(golden "31b", "e4b"), "audio_config is missing, e4b has one")
end)

-- ---- The other way round ----------------------------------------------------------------------

spec("every model's own config.json says what the model is", function()
  for name, variants in pairs {
    llama = {}, llama_tiny = {}, qwen3_5 = {}, gemma4 = {}, gemma4_unified = {},
  } do
    local n = 1
    repeat
      local options = { path = "models/" .. name .. ".lua", name = name, architecture = name, variant = variants[n],
        include_folders = { { path = "models", name = "models/" } } }
      local model = describe(options)
      for i, variant in ipairs(model.variants) do variants[i] = variant end
      local text = require("gen.emit.config").text(model)
      accepted(text, { model = name, variant = variants[n] or model.variants[1] })
      if name ~= "qwen3_5" or n == 1 then -- a row with experts has other fields than the first
        local _, supplied = accepted(text, { model = name })
        spec.equal(shapes(supplied), shapes(model), name .. " " .. tostring(variants[n]))
      end
      n = n + 1
    until n > #variants
  end
end)
