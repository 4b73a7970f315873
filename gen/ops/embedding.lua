-- gen/ops/embedding.lua -- y = weight[token_ids]: rows gathered from the packed table.

local launch = require "gen.launch"
local op = require "gen.op"
local tiles = require "gen.tiles"

return op.define "embedding" {
  inputs = { "token_ids", "weight" }, -- token_ids (rows), weight (n_vocab, d)
  emit   = { cpu = "cpu/embedding.c" },
  takes = { token_ids = "i32" },
  partition = "rows",

  shape = function(token_ids, weight)
    op.check(#token_ids == 1, "token_ids must be (rows), got %s", op.shape_text(token_ids))
    op.check(#weight == 2, "weight must be (n_vocab, d), got %s", op.shape_text(weight))
    return { token_ids[1], weight[2] }
  end,

  share = function(_, weight) return 1 / weight[1]:value() end, -- a row

  bytes = function(token_ids, _, y) return token_ids.bytes + y.bytes end,

  kernel = function(node)
    local weight = node.inputs.weight
    local format = require("gen.formats." .. weight.format)
    local d = node.dim_name(weight.dims[2])
    local gather = tiles.gather(format, d)
    return {
      template = "cpu/embedding.c",
      name = ("embedding_%s_%s"):format(format.name, d:lower()),
      needs = { gather },
      params = {
        d = d, gather = gather.name, tile_bytes = format.tile_bytes(weight.dims[2]),
      },
      args = { "y", "token_ids", "weight", "rows" },
    }
  end,

  cuda = function(node)
    local weight = node.inputs.weight
    local format, n = require("gen.formats." .. weight.format), weight.dims[2]
    if not format.cuda then return { kernels = 1 } end
    local d, read = node.dim_name(n), tiles.cuda_weight(format, n)
    return launch.columns(node, n, {
      template = "cuda/embedding.cu", name = "embedding_" .. format.name, width = d, rows = {},
      needs = { read },
      params = { d = d, weight = read.name, tile_bytes = format.tile_bytes(n) },
      args = { "y", "token_ids", "weight", "rows" },
    })
  end,

  -- One row: of the table's rows, the one that the id names (from 0).
  reference = function(y, id, weight)
    for i = 1, #weight[id + 1] do y[i] = weight[id + 1][i] end
  end,
}
