-- gen/formats/recipes.lua -- Named mixtures of formats: what a kind of release holds, weight by
-- weight. A recipe is a list of releases; the first counts whose `has` is in one of the names of
-- the model's weights, so that one recipe is for each family what its releases really mix.
--
-- A release is rules { pattern or patterns of the checkpoint's names, format }, of which the first
-- that matches counts; without one a matrix is bf16. All quantizers leave alone what no product
-- reads: embeddings, position tables, convolutions. Vectors and scalars are f32: GGUF files hold
-- them so, and the loader widens those of Hugging Face, which is exact.
--
-- A format has groups of columns. A matrix whose rows aren't whole groups stays in `wider`;
-- model.wider says which did.

local graph = require "gen.graph"
local hf = require "gen.formats.spellings.hf"
local size = require "gen.size"

local recipes = {}

-- ---- What releases hold --------------------------------------------------------------------

-- What every GPU release leaves in bf16: Model-Optimizer's default_disabled_quantizers, and the
-- ignore lists of llm-compressor's and AutoAWQ's releases say the same in their patterns.
local kept = { {
  "router", "%.mlp%.gate%.", "shared_expert_gate", -- which experts
  "linear_attn%.in_proj_[ab]%.",                   -- decays and gates: 4 bits derail them
  "embed", "^lm_head%.", "vision", "visual", "audio", "^mtp%.",
}, "bf16" }

local all = function(format) return { ".", format } end

-- Models of these names: Gated DeltaNet layers; experts beside a dense MLP (Gemma 4 26B-A4B);
-- any Gemma 4.
local gdn, experts_beside, gemma4 = "%.linear_attn%.", "layers%.%d+%.experts%.", "%.layer_scalar$"

-- src/llama-quant.cpp of llama.cpp: the output matrix, tied to the embedding or not, gets more
-- bits, Q6_K; until there is a Q6_K it is Q8_0 here. Embeddings are quantized, too. Encoders are
-- a file of their own (mmproj), not quantized. The per-layer embeddings are as wide in Google's
-- google/gemma-4-E4B-it-qat-q4_0-gguf: 5.15 GB.
local function llama_cpp(format)
  return { {
    { { "vision", "visual", "audio", "per_layer_model_projection" }, "bf16" },
    { { "router%.", "%.mlp%.gate%.", "conv1d%." }, "f32" },
    { "embed_tokens_per_layer", "q8_0" },
    all(format),
    output = "q8_0", tables = true, wider = "f16",
  } }
end

-- transformers' save_pretrained.
local function plain(format) return { { all(format), tables = true, wider = format } } end

recipes.rules = {
  f32 = plain "f32", f16 = plain "f16", bf16 = plain "bf16",
  q8_0 = llama_cpp "q8_0", q4_1 = llama_cpp "q4_1", q4_0 = llama_cpp "q4_0",

  fp8 = {
    -- Qwen/Qwen3.6-27B-FP8: 1,606 tensors, so 400 scales in the layers and 7 in MTP's one;
    -- Qwen/Qwen3.6-35B-A3B-FP8: 37.5 GB.
    { has = gdn, { "^mtp%.layers%..*_proj", "fp8_block" }, kept, all "fp8_block" },
    -- RedHatAI/gemma-4-26B-A4B-it-FP8-dynamic, and its releases of Llama.
    { kept, all "fp8" },
  },

  -- Model-Optimizer, modelopt_recipes/models, which reproduces the releases:
  nvfp4_nvidia = {
    -- nvidia/Qwen3.8-27B-NVFP4: huggingface/qwen3_5/ptq/nvfp4-fp8_attn-kv_none; the same mix in
    -- nvidia/Qwen3.6-35B-A3B-NVFP4.
    { has = gdn, { "^lm_head%.", "nvfp4" }, kept, { "%.mlp%.", "nvfp4" }, { "_attn%.", "fp8" } },
    -- nvidia/Gemma-4-26B-A4B-NVFP4: general/ptq/nvfp4_experts_only.
    { has = experts_beside, { "%.experts%.", "nvfp4" } },
    -- nvidia/Gemma-4-31B-IT-NVFP4: general/ptq/nvfp4_mlp_only.
    { has = gemma4, kept, { "%.mlp%.", "nvfp4" } },
    -- nvidia/Llama-3.1-8B-Instruct-NVFP4: general/ptq/nvfp4_default.
    { kept, all "nvfp4" },
  },

  nvfp4_unsloth = {
    -- unsloth/Qwen3.8-27B-NVFP4, 23.44 GB, and Qwen3.6-35B-A3B-NVFP4, 26.53 GB: the MLPs of the
    -- last eight layers are fp8.
    { has = gdn, { "^lm_head%.", "fp8" }, kept, { "%.mlp%.", "nvfp4", last_eight = "fp8" },
      { "_attn%.", "fp8" } },
    -- unsloth/gemma-4-26B-A4B-it-NVFP4, 16.9 GB: 180 modules nvfp4, 115 fp8.
    { has = gemma4, kept, { { "%.mlp%.", "%.experts%." }, "nvfp4" }, { "self_attn%.", "fp8" } },
  },

  awq = {
    -- cyankiwi/gemma-4-26B-A4B-it-AWQ-4bit: 16.0 GiB; experts' 704 columns take no 128.
    { has = experts_beside, kept, { "%.mlp%.", "bf16" }, all "int4_g32" },
    -- AutoAWQ's; QuantTrio/Qwen3.6-27B-AWQ.
    { kept, all "int4_g128" },
  },

  -- google/gemma-4-31B-it-qat-w4a16-ct.
  w4a16 = { { kept, all "int4_g32" } },
}

recipes.list = {
  "f32", "f16", "bf16", "fp8", "nvfp4_nvidia", "nvfp4_unsloth", "awq", "w4a16", "q8_0", "q4_1", "q4_0",
}
recipes.aliases = { nvfp4 = "nvfp4_nvidia" }

-- ---- The model's weights -------------------------------------------------------------------

-- Calls f(weight, set, layer, group) for every weight, in each of its layers; layer is nil
-- outside.
local function each_weight(model, f)
  for _, weight in ipairs(model.weights) do
    f(weight, function(format) weight.format = format end)
  end
  for _, group in ipairs(model.groups) do
    for i, block in ipairs(group.layers) do
      for _, weight in ipairs(block.weights) do
        weight.formats = weight.formats or {}
        f(weight, function(format) weight.formats[i - 1] = format end, i - 1, group)
      end
    end
  end
end

local function is_output(program, op)
  for _, output in ipairs(program.outputs) do
    if size.same_shape(op.result.shape, output.tensor.shape) then return true end
  end
  return false
end

-- What reads each weight: { product = true } if an operation multiplies rows by it (it has an
-- `activation`), { table = true } if something else does, { output = true } where the product is
-- as wide as the program's result, in no layer: the logits.
local function readers_of(model)
  local readers = {}
  for _, program in ipairs(model.programs) do
    for _, list in ipairs(graph.lists(program)) do
      for _, op in ipairs(list.ops) do
        for _, input in ipairs(op.inputs) do
          if input.tensor.weight then
            local known = readers[input.tensor] or {}
            readers[input.tensor] = known
            known[op.def.activation and "product" or "table"] = true
            if op.def.activation and not list.kind and program.name == "step" and is_output(program, op) then
              known.output = true
            end
          end
        end
      end
    end
  end
  return readers
end

local function matches(name, patterns)
  if type(patterns) == "string" then return name:find(patterns) ~= nil end
  for _, pattern in ipairs(patterns) do
    if name:find(pattern) then return true end
  end
  return false
end

local unquantized = { f32 = true, f16 = true, bf16 = true }

-- The release of a recipe that this model is, or nil.
local function release_of(model, recipe)
  for _, release in ipairs(recipes.rules[recipe]) do
    local found = not release.has
    if not found then
      each_weight(model, function(weight, _, layer, group)
        found = found or hf.name(model, weight, layer, group):find(release.has) ~= nil
      end)
    end
    if found then return release end
  end
end

-- The format that a release gives one weight, and the one it can't have, where it is wider.
local function choose(model, release, reader, weight, layer, group)
  if #weight.shape <= 1 then return "f32" end
  local name, format = hf.name(model, weight, layer, group), nil
  if reader.output and release.output then format = release.output end
  for _, rule in ipairs(format and {} or release) do
    if matches(name, rule[1]) then
      local last = rule.last_eight and layer and layer >= #group.layers - 8
      format = last and rule.last_eight or rule[2]
      break
    end
  end
  format = format or "bf16"
  if unquantized[format] then return format end
  local quantizable = reader.product and not reader.table or reader.table and release.tables
  if not quantizable then return "bf16" end
  local k = weight.shape[#weight.shape]:value()
  if k % require("gen.formats." .. format).group ~= 0 then return release.wider or "bf16", format end
  return format
end

-- { { weight, role, group, k, format, stays } }: matrices that can't have the recipe's `format`.
local function note_wider(list, weight, group, stays, format)
  for _, row in ipairs(list) do
    if row.weight == weight then return end
  end
  list[#list + 1] = {
    weight = weight, role = weight.role, group = group and group.role,
    k = weight.shape[#weight.shape]:value(), format = format, stays = stays,
  }
end

-- ---- What others call ------------------------------------------------------------------------

-- The recipes that there are for a model.
function recipes.of(model)
  local names = {}
  for _, name in ipairs(recipes.list) do
    if release_of(model, name) then names[#names + 1] = name end
  end
  return names
end

function recipes.apply(model, name)
  name = recipes.aliases[name] or name
  local release = recipes.rules[name] and release_of(model, name)
  if not release then
    return nil, ("there is no recipe '%s'%s; there are: auto, %s"):format(name,
      recipes.rules[name] and " for this model" or "", table.concat(recipes.of(model), ", "))
  end
  local readers = readers_of(model)
  model.wider = {}
  each_weight(model, function(weight, set, layer, group)
    local format, wanted = choose(model, release, readers[weight] or {}, weight, layer, group)
    if wanted then note_wider(model.wider, weight, group, format, wanted) end
    set(format)
  end)
  model.recipe = name
  return true
end

-- `format_of(weight, layer, group)` gives what a checkpoint holds, or nil and why. The recipe's
-- name is that of the known one that it agrees with, else "auto".
function recipes.from_checkpoint(model, format_of)
  local missing, readers = {}, readers_of(model)
  model.wider = {}
  each_weight(model, function(weight, set, layer, group)
    local format, why = format_of(weight, layer, group)
    if not format then missing[#missing + 1] = why end
    set(format)
  end)
  if #missing > 0 then
    local shown = table.concat(missing, "\n  ", 1, math.min(#missing, 20))
    return nil, ("the checkpoint doesn't fit the description:\n  %s%s"):format(shown,
      #missing > 20 and ("\n  and %d more"):format(#missing - 20) or "")
  end
  model.recipe = "auto"
  for _, name in ipairs(recipes.list) do
    local release = release_of(model, name)
    local same = release ~= nil
    each_weight(model, function(weight, _, layer, group)
      local found = layer and weight.formats[layer] or weight.format
      same = same and found == choose(model, release, readers[weight] or {}, weight, layer, group)
    end)
    if same then
      model.recipe = name
      break
    end
  end
  return true
end

-- A line for people, for each format that some matrices can't have: which, with their columns.
function recipes.wider_lines(model)
  local lines, of_format = {}, {}
  for _, row in ipairs(model.wider) do
    local i = of_format[row.format]
    if not i then
      i = #lines + 1
      of_format[row.format] = i
      lines[i] = ("stay %s, since %s has groups of %d columns:"):format(row.stays, row.format,
        require("gen.formats." .. row.format).group)
    end
    lines[i] = ("%s %s%s (%d)"):format(lines[i], row.group and row.group .. "." or "", row.role, row.k)
  end
  return lines
end

return recipes
