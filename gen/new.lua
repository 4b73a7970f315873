-- gen/new.lua -- `gen new NAME`: a description to start from and its test, each in its place.
-- Nothing that is there is overwritten.

local nn = require "gen.nn"

local new = {}

local DESCRIPTION = [[
-- models/@NAME@.lua -- What it is, in a line.   Who, year, arXiv:number

local rms_norm, linear, attention, silu = nn.rms_norm, nn.linear, nn.attention, nn.silu

local v = nn.variants {     -- the first is the default
  recipe = "bf16",
  { "small", n_layers = 2, d_model = 64, n_heads = 4, n_kv_heads = 2, d_head = 16, d_ff = 96,
    n_vocab = 160, n_ctx = 1024 },
}

local d = nn.dims {
  n_layers = v.n_layers, d_model = v.d_model, d_ff = v.d_ff, n_vocab = v.n_vocab, n_ctx = v.n_ctx,
  n_heads = v.n_heads, n_kv_heads = v.n_kv_heads, d_head = v.d_head,
}
d.d_q, d.d_kv = d.n_heads * d.d_head, d.n_kv_heads * d.d_head

local block = nn.block {    -- role = name in the checkpoint, shape (out, in)
  attn_norm = nn.weight("input_layernorm.weight",          { d.d_model }),
  wq        = nn.weight("self_attn.q_proj.weight",         { d.d_q, d.d_model }),
  wk        = nn.weight("self_attn.k_proj.weight",         { d.d_kv, d.d_model }),
  wv        = nn.weight("self_attn.v_proj.weight",         { d.d_kv, d.d_model }),
  wo        = nn.weight("self_attn.o_proj.weight",         { d.d_model, d.d_q }),
  ffn_norm  = nn.weight("post_attention_layernorm.weight", { d.d_model }),
  w_gate    = nn.weight("mlp.gate_proj.weight",            { d.d_ff, d.d_model }),
  w_up      = nn.weight("mlp.up_proj.weight",              { d.d_ff, d.d_model }),
  w_down    = nn.weight("mlp.down_proj.weight",            { d.d_model, d.d_ff }),
}

function block.forward(w, x, batch, kv)   -- x (tokens, d_model)
  local h = rms_norm(x, w.attn_norm, { eps = 1e-5 })
  local q = nn.rope(linear(h, w.wq), batch.positions, { theta = 10000 })
  local k = nn.rope(linear(h, w.wk), batch.positions, { theta = 10000 })
  local a = attention(q, kv:append(k, linear(h, w.wv)))
  x = x + linear(a, w.wo)

  local f = rms_norm(x, w.ffn_norm, { eps = 1e-5 })
  local g = silu(linear(f, w.w_gate)) * linear(f, w.w_up)
  return x + linear(g, w.w_down)
end

local model = nn.model {
  embed  = nn.weight("model.embed_tokens.weight", { d.n_vocab, d.d_model }),
  layers = nn.layers("model.layers.%d.", { { d.n_layers, block } }),
  norm   = nn.weight("model.norm.weight", { d.d_model }),
  head   = nn.weight("lm_head.weight", { d.n_vocab, d.d_model }),
}

function model.step(w, batch)   -- extents: tokens, sequences, outputs
  local x = w.layers(nn.embedding(batch.token_ids, w.embed), batch)
  local out = rms_norm(nn.rows(x, batch.output_rows), w.norm, { eps = 1e-5 })
  return linear(out, w.head)
end

return model
]]

local TEST = [[
-- tests/gen/test_@NAME@.lua -- models/@NAME@.lua: element totals as published, and a plan.
-- Its logits against an independent implementation belong into tests/models, with the golden
-- data and the script that made them in tests/golden.

local spec = require "tests.support.spec"
local describe = require "tests.gen.describe"
local layout = require "gen.layout"

spec("the variants have as many elements as published", function()
  local published = { small = 82240 }
  for variant, elements in pairs(published) do
    spec.equal(layout.elements(describe.file("@NAME@", variant)), elements, variant)
  end
end)

spec("every family can be planned", function()
  for _, family in ipairs(describe.planned(describe.file "@NAME@")) do
    spec.equal(#family.programs, 1, family.name)
  end
end)
]]

local function exists(path)
  local file = io.open(path, "rb")
  if file then file:close() end
  return file ~= nil
end

function new.run(root, name)
  if not nn.is_identifier(name) then
    error({ message = "gen new NAME: lower-case letters, digits and '_'", code = 2 }, 0)
  end
  local files = {
    { path = "models/" .. name .. ".lua", text = DESCRIPTION },
    { path = "tests/gen/test_" .. name .. ".lua", text = TEST },
  }
  for _, file in ipairs(files) do
    if exists(root .. "/" .. file.path) then
      error({ message = file.path .. " is there already", code = 1 }, 0)
    end
  end
  for _, file in ipairs(files) do
    local out, why = io.open(root .. "/" .. file.path, "wb")
    if not out then error({ message = why, code = 1 }, 0) end
    out:write((file.text:gsub("@NAME@", name)))
    out:close()
    io.write(file.path, "\n")
  end
  io.write("\nNext: write its equations, then\n  gen show ", name, ".lua --after trace\n  gen --model ", name, ".lua && build\n",
    "and a chat format, if it has one, as models/", name, "_chat.lua\n")
  return 0
end

return new
