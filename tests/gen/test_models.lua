-- tests/gen/test_models.lua -- The descriptions: as many elements as published, packed hardly
-- larger than the file, formats as llama.cpp's quantizer gives them.

local spec = require "tests.support.spec"
local describe = require "tests.gen.describe"
local layout = require "gen.layout"
local formats_of = function(name) return require("gen.formats." .. name) end

-- The safetensors' metadata of each release.
local published = {
  { "llama", "smollm2-135m", 134515008 }, { "llama", "smollm2-360m", 361821120 },
  { "llama", "smollm2-1.7b", 1711376384 }, { "llama", "llama-3.2-1b", 1235814400 },
  { "llama", "llama-3.2-3b", 3212749824 },
}

spec("element totals are the published ones", function()
  for _, row in ipairs(published) do
    spec.equal(layout.elements(describe.file(row[1], row[2])), row[3], row[2])
  end
end)

spec("packed weights are at most 8 % above the file's", function()
  for _, row in ipairs(published) do
    for _, recipe in ipairs { "f32", "f16", "bf16", "q8_0", "q4_1", "q4_0" } do
      local model = describe.file(row[1], row[2])
      describe.planned(model, { quant = recipe })
      local in_file = 0
      for _, packed in ipairs(model.layout.rows) do
        local shape = packed.weight.shape
        local rows = #shape == 1 and 1 or shape[1]:value()
        in_file = in_file + rows * formats_of(packed.format).file_row_bytes(shape[#shape]:value())
      end
      local ratio = model.layout.bytes / in_file
      if ratio < 0.999 or ratio > 1.08 then error(("%s %s: %.3f of the file's bytes"):format(row[2], recipe, ratio)) end
    end
  end
end)

spec("weights don't overlap, and lie in the order in which they are read", function()
  for _, variant in ipairs { "small", "groups" } do
    local model = describe.file("llama_tiny", variant)
    describe.planned(model, { quant = "q4_1" })
    local roles, used = {}, {}
    for _, row in ipairs(model.layout.rows) do
      if row.layer == 0 then roles[#roles + 1] = row.weight.role end
      local tiles = row.pack == "vector" and 1 or (row.weight.shape[1]:value() + 31) // 32
      for tile = 0, tiles - 1 do
        local begin = row.offset + tile * row.tile_stride
        if begin % 64 ~= 0 then error(row.weight.role .. " isn't aligned") end
        used[#used + 1] = { begin, begin + row.tile_bytes }
      end
    end
    table.sort(used, function(a, b) return a[1] < b[1] end)
    for i = 2, #used do if used[i][1] ~= used[i - 1][2] then error("a hole or an overlap at " .. used[i][1]) end end
    spec.equal(used[#used][2], model.layout.bytes)
    spec.equal(table.concat(roles, " "), "attn_norm wq wk wv wo ffn_norm w_gate w_up w_down", variant)
  end
end)

spec("q4_1 of smollm2-135m is the file's: tied embedding in Q8_0, norms in F32", function()
  local model = describe.file "llama"
  describe.planned(model, {})
  local count = {}
  for _, row in ipairs(model.layout.rows) do count[row.format] = (count[row.format] or 0) + 1 end
  spec.equal(count, { f32 = 61, q4_1 = 210, q8_0 = 1 })
  spec.equal(model.layout.bytes, 96576768) -- the bytes of the file's tensors
end)

spec("rows that aren't a multiple of 32 stay in f16", function()
  local model = describe.file("llama_tiny", "small")
  describe.planned(model, { quant = "q4_1" })
  for _, row in ipairs(model.layout.rows) do
    local k = row.weight.shape[2] and row.weight.shape[2]:value()
    spec.equal(row.format, not k and "f32" or k % 32 ~= 0 and "f16" or "q4_1", row.weight.role)
  end
end)

spec("names in both containers, and GGUF's permuted rows", function()
  local gguf = require "gen.formats.spellings.gguf"
  local hf = require "gen.formats.spellings.hf"
  local model = describe.file "llama"
  describe.planned(model, {})
  local found = {}
  for _, row in ipairs(model.layout.rows) do
    if row.layer == 3 or not row.layer then
      found[#found + 1] = ("%s %s %d"):format(hf.name(model, row.weight, row.layer, row.group),
        gguf.name(model, row.weight, row.layer, row.group), gguf.rope_heads(model, row.weight))
    end
  end
  spec.equal(found[1], "model.embed_tokens.weight token_embd.weight 0")
  spec.equal(found[3], "model.layers.3.self_attn.q_proj.weight blk.3.attn_q.weight 9")
  spec.equal(found[4], "model.layers.3.self_attn.k_proj.weight blk.3.attn_k.weight 3")
  spec.equal(found[5], "model.layers.3.self_attn.v_proj.weight blk.3.attn_v.weight 0")
end)

spec("llama3's scaling of rope, against transformers' formula worked by hand", function()
  local model = describe.file("llama", "llama-3.2-1b")
  local rope
  for _, row in ipairs(require("gen.graph").flat(model.programs[1])) do
    if row.op.def.name == "rope" then rope = row.op end
  end
  local freq = rope.attrs.inv_freq
  spec.equal(#freq, 32)
  spec.near(freq[1], 1, 0) -- short wavelengths stay
  spec.near(freq[32], 500000 ^ (-62 / 64) / 32, 1e-12) -- long ones are slowed down by 32
  local f = 500000 ^ (-32 / 64) -- 4443 positions a turn, between 8192 / 4 and 8192
  local smooth = (8192 * f / (2 * math.pi) - 1) / 3
  spec.near(freq[17], (1 - smooth) * f / 32 + smooth * f, 1e-9)
end)
