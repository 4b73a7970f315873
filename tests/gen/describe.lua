-- tests/gen/describe.lua -- What the specifications of gen share: descriptions from text, and
-- small ones to vary.

local load_description = require("gen.describe").load

local describe = {}

-- A description from text, as `name`; the folder holds what it may include.
function describe.text(text, options)
  options = options or {}
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
  local ok, result = pcall(load_description, {
    path = path, name = "models/x.lua", architecture = "x", variant = options.variant,
    include_folders = options.include_folders or {},
  })
  os.remove(path)
  if not ok then error(type(result) == "table" and result.message or result, 0) end
  return result
end

function describe.file(name, variant)
  local ok, result = pcall(load_description, {
    path = "models/" .. name .. ".lua", name = "models/" .. name .. ".lua", architecture = name,
    variant = variant, include_folders = { { path = "models", name = "models/" } },
  })
  if not ok then error(type(result) == "table" and result.message or result, 0) end
  return result
end

-- All families, lowered and placed.
function describe.planned(model, options)
  local generate = require "gen.generate"
  options = options or {}
  options.target = options.target or "any"
  generate.prepare(model, options)
  local families = generate.families(options.target)
  generate.plan(model, families)
  return families
end

-- A model around the lines of a block and of a step: line 20 is the block's first, for errors.
function describe.model(block, step)
  local head = [[
local d = nn.dims {
  n_layers = 2, d_model = 40, d_ff = 56, n_vocab = 96, n_ctx = 32, n_heads = 5, n_kv_heads = 1,
  d_head = 8,
}
d.d_q, d.d_kv = d.n_heads * d.d_head, d.n_kv_heads * d.d_head
local block = nn.block {
  attn_norm = nn.weight("n.weight", { d.d_model }),
  wq = nn.weight("q.weight", { d.d_q, d.d_model }),
  wk = nn.weight("k.weight", { d.d_kv, d.d_model }),
  wv = nn.weight("v.weight", { d.d_kv, d.d_model }),
  wo = nn.weight("o.weight", { d.d_model, d.d_q }),
  w_up = nn.weight("u.weight", { d.d_ff, d.d_model }),
  w_down = nn.weight("d.weight", { d.d_model, d.d_ff }),
}


function block.forward(w, x, batch, kv)
  local h = nn.rms_norm(x, w.attn_norm, { eps = 1e-5 })

]]
  return head .. (block or [[
  local a = nn.attention(nn.linear(h, w.wq), kv:append(nn.linear(h, w.wk), nn.linear(h, w.wv)))
  x = x + nn.linear(a, w.wo)
  return x + nn.linear(nn.silu(nn.linear(h, w.w_up)), w.w_down)]]) .. [[

end
local embed = nn.weight("e.weight", { d.n_vocab, d.d_model })
local model = nn.model {
  embed = embed, layers = nn.layers("l.%d.", { { d.n_layers, block } }),
}
function model.step(w, batch)
]] .. (step or [[
  local x = w.layers(nn.embedding(batch.token_ids, w.embed), batch)
  return nn.linear(nn.rows(x, batch.output_rows), w.embed)]]) .. [[

end
return model
]]
end

return describe
