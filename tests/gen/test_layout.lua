-- tests/gen/test_layout.lua -- Where weights lie in the packed arena.

local spec = require "tests.support.spec"
local layout = require "gen.layout"
local describe = require "tests.gen.describe"

-- Experts of 40 gate rows and 40 of up: neither is whole tiles.
local experts = [[
local d = nn.dims {
  n_layers = 2, d_model = 48, n_vocab = 96, n_ctx = 32, n_experts = 3, n_active_experts = 2,
  d_expert = 40,
}
d.d_pair = 2 * d.d_expert
local block = nn.block {
  router = nn.weight("router.weight",        { d.n_experts, d.d_model }),
  glu    = nn.weight("experts.gate_up_proj", { d.n_experts, d.d_pair, d.d_model }),
  down   = nn.weight("experts.down_proj",    { d.n_experts, d.d_model, d.d_expert }),
}
function block.forward(w, x, batch)
  local logits = nn.linear(x, w.router)
  local chosen = nn.top_k(logits, { k = d.n_active_experts })
  local begin = nn.expert_begin(chosen, { n_experts = d.n_experts })
  local rows = nn.expert_rows(chosen, begin)
  local g = nn.experts_glu(x, w.glu, rows, begin, { activation = "silu" })
  local y = nn.experts_down(g, w.down, rows, begin)
  return x + nn.experts_sum(y, nn.route_weights(logits, chosen))
end
local model = nn.model {
  embed  = nn.weight("embed.weight", { d.n_vocab, d.d_model }),
  layers = nn.layers("layers.%d.", { { d.n_layers, block } }),
}
function model.step(w, batch)
  local x = w.layers(nn.embedding(batch.token_ids, w.embed), batch)
  return nn.linear(nn.rows(x, batch.output_rows), w.embed)
end
return model
]]

local function rows_of(model)
  local rows = {}
  for _, row in ipairs(model.layout.rows) do
    if (row.layer or 0) == 0 then rows[row.weight.role] = row end
  end
  return rows
end

spec("each expert has tiles of its own, of gate and up in turn", function()
  local model = describe.text(experts)
  describe.planned(model, { quant = "f32" })
  local rows = rows_of(model)

  local tile = 48 * 32 * 4
  spec.equal(rows.glu.tile_bytes, tile)
  spec.equal(rows.glu.tile_stride, 2 * tile)
  spec.equal(rows.glu.n_matrices, 3)
  spec.equal(rows.glu.n_parts, 2)
  spec.equal(rows.glu.bytes, 3 * 2 * 2 * tile) -- 40 rows are two tiles
  spec.equal(rows.down.bytes, 3 * 2 * 40 * 32 * 4) -- and 48, too
  spec.equal(rows.down.offset, rows.glu.offset + rows.glu.bytes)
  spec.equal(rows.embed.n_matrices, nil)
end)

spec("a stack that no expert reads is one matrix", function()
  local model = describe.file("gemma4", "31b")
  describe.planned(model)
  local row = rows_of(model).patch_positions
  spec.equal(row.n_matrices, nil)
  spec.equal(row.bytes, 2 * 10240 // 32 * row.tile_bytes)
end)

spec("a token reads a row of a table and the experts that are chosen", function()
  local model = describe.text(experts)
  local families = describe.planned(model, { quant = "f32" })

  local tile = 48 * 32 * 4
  local router, embed = tile, 3 * tile -- of 3 rows one tile, of 96 three
  local chosen = 2 * (2 * 2 * tile + 2 * 40 * 32 * 4) -- of 3 experts
  spec.equal(layout.token_bytes(families[1].programs[1]), 2 * (router + chosen) + embed + 48 * 4)
end)
