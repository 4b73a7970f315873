-- gen/passes/sync.lua: where a barrier stands, and that none is missing.

local describe = require "tests.gen.describe"
local spec = require "tests.support.spec"

-- Attention beside a feed-forward part: both read h. What is needed of q, h and f afterwards keeps
-- their places, so that no reuse of them asks for a barrier.
local PARALLEL = describe.model [[
  local q, k = nn.linear(h, w.wq), nn.linear(h, w.wk)
  local a = nn.attention(q, kv:append(k, nn.linear(h, w.wv)))
  local f = nn.linear(nn.silu(nn.linear(h, w.w_up)), w.w_down)
  local o = nn.linear(a, w.wo) * f
  return x + (o + nn.linear(q, w.wo)) * h
]]

local function blocks(text, quant)
  local model = describe.text(text)
  local families = describe.planned(model, { quant = quant })
  local i, list = 0, {}
  for _, family in ipairs(families) do
    for _, item in ipairs(not family.sm and family.programs[1].ops or {}) do
      for _, section in ipairs(item.sections or {}) do
        list[#list + 1] = { family = family.name, ops = section.ops }
      end
    end
  end
  return function()
    i = i + 1
    return list[i]
  end
end

spec("other threads read attention's scratch until a barrier: what uses scratch comes behind one", function()
  local found = 0
  for block in blocks(PARALLEL, "f32") do
    local shared = false
    for _, op in ipairs(block.ops) do
      if op.scratch_bytes > 0 and shared then
        error(("%s: %s uses scratch that is still read"):format(block.family, op.def.name))
      end
      if op.def.name == "attention" then shared, found = true, found + 1 end
      if op.barrier then shared = false end
    end
  end
  spec.equal(found, 4)
end)

spec("rows that are gathered were written by other threads: a barrier, though both share out tokens", function()
  local model = describe.text(describe.model(nil, [[
  local x = w.layers(nn.embedding(batch.token_ids, w.embed), batch)
  return nn.linear(nn.rows(x, batch.output_rows), w.embed)
end
function model.draft(w, batch)
  local x = nn.embedding(batch.token_ids, w.embed)
  x = w.layers(nn.rows(x, nn.input("order", { nn.tokens }, "i32")), batch)
  return nn.linear(nn.rows(x, batch.output_rows), w.embed)]]))
  for _, family in ipairs(describe.planned(model)) do
    local ops = family.programs[2].ops
    spec.equal(ops[1].def.name .. " " .. ops[2].def.name, "embedding rows")
    spec.contains(ops[1].barrier or "no barrier", "complete")
  end
end)

spec("half of four rows each isn't four times half the rows: a barrier, though both share out soft tokens", function()
  local model = describe.text(describe.model(nil, [[
  local x = w.layers(nn.embedding(batch.token_ids, w.embed), batch)
  return nn.linear(nn.rows(x, batch.output_rows), w.embed)
end
model.encode_image = nn.encoder({ smallest = 2, largest = 8 }, function(w)
  local pixels = nn.input("pixels", { 4 * nn.soft, d.d_model }, "u8")
  local x = nn.patch_embed(pixels, w.embed, { scale = 1, shift = 0 })
  x = nn.merge_rows(nn.rms_norm(x, { eps = 0 }), { n = 4 })
  return x * 2
end)
do]]))
  local found = 0
  for _, family in ipairs(describe.planned(model)) do
    for _, op in ipairs(family.programs[2].ops) do
      if op.def.name == "rms_norm" then
        spec.contains(op.barrier or "no barrier", "complete")
        found = found + 1
      end
    end
  end
  spec.equal(found > 0, true)
end)
