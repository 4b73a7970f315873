-- tests/gen/test_recipes.lua -- Recipes: which weights of a model get which format, as published
-- checkpoints have it; and what formats take of memory.

local spec = require "tests.support.spec"
local describe = require "tests.gen.describe"
local generate = require "gen.generate"
local hf = require "gen.formats.spellings.hf"
local kv = require "gen.kv"
local recipes = require "gen.formats.recipes"

local function format_named(name) return require("gen.formats." .. name) end

-- A decoder of 16 layers, a draft's layer and an encoder's weight; the layers' weights have these
-- names, matrices are (256, 256).
local function model_with(layer_names)
  local weights, body = {}, {}
  for i, name in ipairs(layer_names) do
    local vector = name:find "norm" or name:find "scalar"
    weights[i] = ("w%d = nn.weight(%q, { d.d_model%s })"):format(i, name, vector and "" or ", d.d_model")
    body[i] = vector and ("x = nn.rms_norm(x, w.w%d, { eps = 1e-6 })"):format(i)
      or ("x = nn.linear(x, w.w%d)"):format(i)
  end
  return describe.text(([[
local d = nn.dims { n_layers = 16, n_vocab = 384, d_model = 256, n_ctx = 32 }
local block = nn.block { %s }
function block.forward(w, x)
  %s
  return x
end
local draft = nn.block { w_down = nn.weight("mlp.down_proj.weight", { d.d_model, d.d_model }) }
function draft.forward(w, x) return nn.linear(x, w.w_down) end
local model = nn.model {
  embed = nn.weight("model.embed_tokens.weight", { d.n_vocab, d.d_model }),
  layers = nn.layers("model.layers.%%d.", { { d.n_layers, block } }),
  mtp = nn.layers("mtp.layers.%%d.", { { 1, draft } }),
  vision = nn.weight("model.vision_tower.proj.weight", { d.d_model, d.d_model }),
  head = nn.weight("lm_head.weight", { d.n_vocab, d.d_model }),
}
function model.step(w, batch)
  local x = nn.linear(w.layers(nn.embedding(batch.token_ids, w.embed), batch), w.vision)
  return nn.linear(nn.rows(w.mtp(x, batch), batch.output_rows), w.head)
end
return model
]]):format(table.concat(weights, ", "), table.concat(body, "\n  ")))
end

local llama = { "input_layernorm.weight", "mlp.up_proj.weight" }
local gated_delta_net = {
  "linear_attn.in_proj_a.weight", "linear_attn.in_proj_z.weight", "linear_attn.norm.weight",
  "mlp.gate.weight", "mlp.up_proj.weight", "self_attn.o_proj.weight",
}
local gemma4 = { "layer_scalar", "self_attn.q_proj.weight", "mlp.up_proj.weight", "router.proj.weight" }
local gemma4_moe = { "layer_scalar", "self_attn.q_proj.weight", "mlp.up_proj.weight", "experts.down_proj" }

-- { [checkpoint's name] = format } of a recipe; of the layers, `layer` (the first).
local function formats(names, recipe, layer)
  local model = model_with(names)
  local ok, why = recipes.apply(model, recipe)
  if not ok then error(why, 0) end
  local found = {}
  for _, weight in ipairs(model.weights) do found[weight.hf] = weight.format end
  for _, group in ipairs(model.groups) do
    local i = math.min(layer or 0, #group.layers - 1)
    for _, weight in ipairs(group.layers[1].weights) do
      found[hf.name(model, weight, i, group):gsub("^model%.layers%.%d+%.", "")] = weight.formats[i]
    end
  end
  return found
end

local function all_of(names, recipe, expected, layer)
  local found = formats(names, recipe, layer)
  for name, format in pairs(expected) do spec.equal(found[name], format, recipe .. ": " .. name) end
end

spec("what GPU releases never quantize is bf16, a vector f32", function()
  all_of(llama, "nvfp4_nvidia", {
    ["input_layernorm.weight"] = "f32", ["mlp.up_proj.weight"] = "nvfp4", ["lm_head.weight"] = "bf16",
    ["model.embed_tokens.weight"] = "bf16", ["model.vision_tower.proj.weight"] = "bf16",
    ["mtp.layers.0.mlp.down_proj.weight"] = "bf16",
  })
end)

spec("fp8: Qwen's release is in blocks, with MTP's layer; others have a scale for each row", function()
  all_of(gated_delta_net, "fp8", {
    ["linear_attn.in_proj_a.weight"] = "bf16", ["linear_attn.in_proj_z.weight"] = "fp8_block",
    ["mlp.gate.weight"] = "bf16", ["mlp.up_proj.weight"] = "fp8_block", ["lm_head.weight"] = "bf16",
    ["mtp.layers.0.mlp.down_proj.weight"] = "fp8_block",
  })
  all_of(gemma4, "fp8", {
    ["self_attn.q_proj.weight"] = "fp8", ["mlp.up_proj.weight"] = "fp8", ["router.proj.weight"] = "bf16",
    ["mtp.layers.0.mlp.down_proj.weight"] = "bf16",
  })
end)

spec("nvfp4_nvidia: MLPs and the head beside fp8 attention; MLPs alone; experts alone", function()
  all_of(gated_delta_net, "nvfp4_nvidia", {
    ["linear_attn.in_proj_a.weight"] = "bf16", ["linear_attn.in_proj_z.weight"] = "fp8",
    ["self_attn.o_proj.weight"] = "fp8", ["mlp.gate.weight"] = "bf16", ["mlp.up_proj.weight"] = "nvfp4",
    ["lm_head.weight"] = "nvfp4", ["mtp.layers.0.mlp.down_proj.weight"] = "bf16",
  })
  all_of(gemma4, "nvfp4_nvidia", {
    ["self_attn.q_proj.weight"] = "bf16", ["mlp.up_proj.weight"] = "nvfp4", ["router.proj.weight"] = "bf16",
  })
  all_of(gemma4_moe, "nvfp4_nvidia", {
    ["self_attn.q_proj.weight"] = "bf16", ["mlp.up_proj.weight"] = "bf16", ["experts.down_proj"] = "nvfp4",
  })
end)

spec("nvfp4_unsloth: fp8 attention and, beside delta nets, fp8 MLPs in the last eight layers", function()
  all_of(gated_delta_net, "nvfp4_unsloth", { ["mlp.up_proj.weight"] = "nvfp4", ["lm_head.weight"] = "fp8" }, 7)
  all_of(gated_delta_net, "nvfp4_unsloth", { ["mlp.up_proj.weight"] = "fp8" }, 8)
  all_of(gemma4_moe, "nvfp4_unsloth", {
    ["self_attn.q_proj.weight"] = "fp8", ["mlp.up_proj.weight"] = "nvfp4", ["experts.down_proj"] = "nvfp4",
  }, 15)
end)

spec("awq: groups of 128, or of 32 where experts take no others; w4a16: always of 32", function()
  all_of(llama, "awq", { ["mlp.up_proj.weight"] = "int4_g128", ["lm_head.weight"] = "bf16" })
  all_of(gemma4_moe, "awq", {
    ["self_attn.q_proj.weight"] = "int4_g32", ["mlp.up_proj.weight"] = "bf16", ["experts.down_proj"] = "int4_g32",
  })
  all_of(gemma4, "w4a16", { ["self_attn.q_proj.weight"] = "int4_g32", ["router.proj.weight"] = "bf16" })
end)

spec("llama.cpp's: embeddings too, the logits' matrix wider, encoders in their own file not at all", function()
  all_of(gated_delta_net, "q4_0", {
    ["model.embed_tokens.weight"] = "q4_0", ["lm_head.weight"] = "q8_0", ["mlp.gate.weight"] = "f32",
    ["linear_attn.in_proj_a.weight"] = "q4_0", ["model.vision_tower.proj.weight"] = "bf16",
  })
end)

spec("a recipe of no release of this kind is refused, with those there are", function()
  local ok, why = recipes.apply(model_with(llama), "nvfp4_unsloth")
  spec.equal(ok, nil)
  spec.equal(why, "there is no recipe 'nvfp4_unsloth' for this model; there are: auto, f32, f16, bf16, "
    .. "fp8, nvfp4_nvidia, awq, w4a16, q8_0, q4_1, q4_0")
  _, why = recipes.apply(model_with(llama), "nvfp5")
  spec.contains(why, "there is no recipe 'nvfp5'; there are: auto, f32")
end)

spec("the recipe's name is the whole one", function()
  local model = model_with(gated_delta_net)
  recipes.apply(model, "nvfp4")
  spec.equal(model.recipe, "nvfp4_nvidia")
end)

spec("matrices whose rows aren't whole groups stay wider, and are told", function()
  local model = describe.file("llama_tiny", "small") -- d_model 40, d_q 48, d_ff 56
  recipes.apply(model, "nvfp4")
  spec.equal(recipes.wider_lines(model), { "stay bf16, since nvfp4 has groups of 16 columns: "
    .. "layers.wq (40) layers.wk (40) layers.wv (40) layers.w_gate (40) layers.w_up (40) layers.w_down (56)" })
  for _, weight in ipairs(model.groups[1].layers[1].weights) do
    if weight.role == "wo" then spec.equal(weight.formats[0], "nvfp4") end
  end
  recipes.apply(model, "fp8") -- any number of columns
  spec.equal(recipes.wider_lines(model), {})
end)

spec("a checkpoint's formats are told by the recipe that mixes them so", function()
  for _, recipe in ipairs { "nvfp4_nvidia", "nvfp4_unsloth", "awq", "q4_0" } do
    local model, like = model_with(gemma4_moe), model_with(gemma4_moe)
    recipes.apply(like, recipe)
    local formats_of = {}
    for _, weight in ipairs(like.weights) do formats_of[weight.hf] = weight.format end
    for _, group in ipairs(like.groups) do
      for _, weight in ipairs(group.layers[1].weights) do formats_of[group.prefix .. weight.hf] = weight.formats[0] end
    end
    recipes.from_checkpoint(model, function(weight, _, group)
      return formats_of[(group and group.prefix or "") .. weight.hf]
    end)
    spec.equal(model.recipe, recipe)
  end
end)

spec("formats without kernels can be planned and not emitted", function()
  local model = describe.file("llama_tiny", "groups")
  local families = describe.planned(model, { quant = "nvfp4" })
  spec.raises("no kernels yet for format nvfp4", generate.files, model, families, { target = "any" })
  generate.files(model, families, { target = "any", tables_only = true })
end)

-- ---- Bytes ---------------------------------------------------------------------------------

spec("packed tiles are aligned and, of 2,048 columns or more, at most 0.3 % above the file's with scales", function()
  for _, name in ipairs { "fp8", "fp8_block", "nvfp4", "int4_g32", "int4_g128" } do
    for k = 128, 16384, 128 do
      local tile, file = format_named(name).tile_bytes(k), 32 * format_named(name).file_row_bytes(k)
      spec.equal(tile % 64, 0, name)
      local most = k < 2048 and 1.06 or 1.003
      if tile < file or tile > most * file then error(("%s, k = %d: %d for %g"):format(name, k, tile, file)) end
    end
  end
end)

spec("activations: what weights want on each GPU, in rows of whole 64 bytes", function()
  local function act(format, sm) return format_named(format).act.cuda { sm = sm } end
  local found = {}
  for i, sm in ipairs { 80, 89, 90, 100, 120 } do found[i] = act("fp8", sm) .. " " .. act("nvfp4", sm) end
  spec.equal(found, { "bf16 bf16", "fp8 bf16", "fp8 bf16", "fp8 nvfp4", "fp8 nvfp4" })
  spec.equal(format_named("act_fp8").row_bytes(5120), 5120 + 40 * 4 + 32)
  spec.equal(format_named("act_nvfp4").row_bytes(5120), 2560 + 320 + 4 + 60)
end)

spec("a head's keys and values: bf16, fp8, and nvfp4 with a scale for each 16", function()
  local function token(dtype) return kv.head_bytes(256, 256, dtype) // kv.PAGE_TOKENS end
  spec.equal({ token "bf16", token "fp8", token "nvfp4" }, { 1024, 512, 288 })
  spec.equal(16 * 4 * token "nvfp4", 18432) -- Qwen3.8-27B: 16 layers of 4 heads
end)

-- ---- Published checkpoints -----------------------------------------------------------------

-- A model's packed weights, as its plan has them.
local function planned(name, variant, recipe)
  local model = describe.file(name, variant)
  generate.prepare(model, { quant = recipe, target = "any" })
  for _, family in ipairs(generate.families "any") do
    if family.name == "sm120" then generate.plan(model, { family }) end
  end
  return model
end

-- GB as published, and by how many they may differ: 0.2 %, or half of the last digit that is told.
local releases = {
  -- transformers' own: elements times two.
  { "gemma4", "26b-a4b", "bf16", 51.612 }, { "gemma4", "31b", "bf16", 62.546 },
  { "qwen3_5", "27b", "bf16", 55.563 },
  -- nvidia/Gemma-4-26B-A4B-NVFP4, Gemma-4-31B-IT-NVFP4,
  -- Qwen3.8-27B-NVFP4 ("Checkpoint size: 20.42 GiB"), Qwen3.6-35B-A3B-NVFP4.
  { "gemma4", "26b-a4b", "nvfp4_nvidia", 18.8 }, { "gemma4", "31b", "nvfp4_nvidia", 32.63 },
  { "qwen3_5", "27b", "nvfp4_nvidia", 21.92 }, { "qwen3_5", "35b-a3b", "nvfp4_nvidia", 23.4, 0.1 },
  -- unsloth/Qwen3.8-27B-NVFP4, Qwen3.6-35B-A3B-NVFP4, gemma-4-26B-A4B-it-NVFP4.
  { "qwen3_5", "27b", "nvfp4_unsloth", 23.44 }, { "qwen3_5", "35b-a3b", "nvfp4_unsloth", 26.53 },
  { "gemma4", "26b-a4b", "nvfp4_unsloth", 16.9, 0.05 },
  -- Qwen/Qwen3.6-27B-FP8, from its tensors; Qwen3.6-35B-A3B-FP8. RedHatAI's
  -- gemma-4-26B-A4B-it-FP8-dynamic has 26.7 GiB, with the embedding twice.
  { "qwen3_5", "27b", "fp8", 30.87 }, { "qwen3_5", "35b-a3b", "fp8", 37.5, 0.05 },
  { "gemma4", "26b-a4b", "fp8", 26.7 * 1.073741824 - 1.476, 0.054 },
  -- cyankiwi/gemma-4-26B-A4B-it-AWQ-4bit: 16.0 GiB.
  { "gemma4", "26b-a4b", "awq", 16.0 * 1.073741824, 0.054 },
}

spec("packed weights have the size of the published checkpoints", function()
  for _, row in ipairs(releases) do
    local name, variant, recipe, published, most = table.unpack(row)
    spec.near(planned(name, variant, recipe).layout.bytes / 1e9, published, most or 0.002 * published, variant .. " " .. recipe)
  end
end)

-- google/gemma-4-*-it-qat-q4_0-gguf. They hold the decoder alone, and Q6_K where we have Q8_0.
spec("q4_0 has the size of Google's GGUF files, were Q8_0 Q6_K", function()
  for _, row in ipairs {
    { "gemma4", "e4b", 5.15 }, { "gemma4", "26b-a4b", 14.4394 }, { "gemma4", "31b", 17.65 },
    { "gemma4_unified", "12b", 6.98 },
  } do
    local model, bytes = planned(row[1], row[2], "q4_0"), 0
    for _, packed in ipairs(model.layout.rows) do
      local name = hf.name(model, packed.weight, packed.layer, packed.group)
      local encoder = name:find "vision" or name:find "audio"
      local smaller = packed.format == "q8_0" and 6.5625 / 8.5 or 1
      bytes = bytes + (encoder and 0 or packed.bytes * smaller)
    end
    spec.near(bytes / 1e9, row[3], 0.003 * row[3], row[2])
  end
end)
