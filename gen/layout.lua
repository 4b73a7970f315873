-- gen/layout.lua -- Where each weight lies in the packed arena: in the order in which the
-- programs read them, layer by layer, so that a step is one stream through memory.
--
-- A matrix is tiles of 32 rows. Siblings that one linear reads lie side by side; tiles of a
-- gated pair lie in turn. Of a stack of experts each has tiles of its own. All layers of one
-- section have the same layout within the layer, so that a weight's address is the layer's begin
-- and a constant. Tied weights lie once.

local graph = require "gen.graph"
local node = require "gen.node"
local tiles = require "gen.tiles"

local layout = {}

local ALIGN = 64

local function round_up(n, unit) return (n + unit - 1) // unit * unit end

-- One weight's tiles, or a vector as floats. `n_parts`: it is a stack whose matrices are so many
-- parts of equal rows.
local function packed(weight, format_name, n_parts)
  local format = require("gen.formats." .. format_name)
  local rows, k = graph.matrix(weight.shape)
  if n_parts then
    local n_matrices, tile_bytes = weight.shape[1]:value(), format.tile_bytes(k)
    local n = n_matrices * n_parts
    return {
      pack = "tile", format = format_name, tile_bytes = tile_bytes, tile_stride = n_parts * tile_bytes,
      n_matrices = n_matrices, n_parts = n_parts,
      bytes = n * round_up(rows // n, tiles.ROWS) // tiles.ROWS * tile_bytes,
    }
  end
  if #weight.shape <= 1 then
    local bytes = round_up(k * 4, ALIGN)
    return { pack = "vector", format = format_name, tile_bytes = bytes, bytes = bytes }
  end
  local tile_bytes = format.tile_bytes(k)
  return {
    pack = "tile", format = format_name, tile_bytes = tile_bytes,
    bytes = round_up(rows, tiles.ROWS) // tiles.ROWS * tile_bytes,
  }
end

-- The operation's weights in the order in which it reads them.
local function weights_of(op)
  if op.weights then return op.weights end
  local weights = {}
  for _, input in ipairs(op.inputs) do
    if input.tensor.weight then weights[#weights + 1] = input.tensor end
  end
  return weights
end

-- In the order of `ranks`: that in which the first family reads them. Others may take operations
-- in turns of their own; one arena serves all.
local function in_order(ops, ranks)
  local rows = {}
  for i, op in ipairs(ops) do
    local first = op.layers or weights_of(op)[1]
    if first then
      ranks[first] = ranks[first] or ranks.n + 1
      ranks.n = math.max(ranks.n, ranks[first])
      rows[#rows + 1] = { op = op, rank = ranks[first], index = i }
    end
  end
  table.sort(rows, function(a, b)
    if a.rank ~= b.rank then return a.rank < b.rank end
    return a.index < b.index
  end)
  local sorted = {}
  for i, row in ipairs(rows) do sorted[i] = row.op end
  return sorted
end

-- The weights that operations read, in order, from `offset` on. Returns rows { weight, offset,
-- tile_bytes, tile_stride, format, pack, n_matrices, n_parts } and the end.
local function place(ops, section, offset, known, ranks)
  local rows = {}
  local function put(weight, format, at, stride, n_parts)
    local row = packed(weight, format, n_parts)
    row.weight, row.offset = weight, at
    row.tile_stride = stride or row.tile_stride or row.tile_bytes
    rows[#rows + 1] = row
    known[weight] = true
    return row
  end
  local function format_of(weight) return node.format(weight, section) end
  for _, op in ipairs(in_order(ops, ranks)) do
    if not op.layers then
      local weights = weights_of(op)
      if op.interleaved then
        local first = packed(weights[1], format_of(weights[1]))
        local stride = #weights * first.tile_bytes
        for i, weight in ipairs(weights) do
          put(weight, format_of(weight), offset + (i - 1) * first.tile_bytes, stride)
        end
        offset = offset + #weights * first.bytes
      else
        for _, weight in ipairs(weights) do
          local here = (section and weight.block) or (not section and not weight.block)
          if here and not known[weight] then
            local n_parts = #weight.shape > 2 and op.def.stacks or nil
            offset = offset + put(weight, format_of(weight), offset, nil, n_parts).bytes
          end
        end
      end
    end
  end
  return rows, offset
end

local function never_read(weight)
  local message = ("%s:%d: weight '%s' is never read"):format(weight.file, weight.line, weight.role)
  error({ message = message, code = 1 }, 0)
end

-- What runs comes first: what only programs without kernels read needn't be loaded.
local function runs_first(model, programs)
  local order = {}
  for _, lacks in ipairs { false, true } do
    for _, program in ipairs(programs) do
      if (model.missing[program.name] ~= nil) == lacks then order[#order + 1] = program end
    end
  end
  return order
end

-- rows = all weights with absolute offsets; sections get .weights (relative rows), .bytes and
-- .begins[layer]. `ranks` is { n = 0 } for the first family, and handed on to the others.
function layout.of(model, programs, ranks)
  local out = { rows = {}, bytes = 0, outside = {} }
  local known = {}
  for _, program in ipairs(runs_first(model, programs)) do
    local begin = out.bytes
    for _, item in ipairs(in_order(program.ops, ranks)) do
      if item.layers then
        local section_of = {}
        for _, section in ipairs(item.sections) do
          section.weights, section.bytes = place(section.ops, section, 0, {}, ranks)
          section.begins = {}
          for _, layer in ipairs(section.layers) do section_of[layer] = section end
          for _, weight in ipairs(section.kind.weights) do
            local read = false
            for _, row in ipairs(section.weights) do read = read or row.weight == weight end
            if not (read or weight.unused) then never_read(weight) end
          end
        end
        local group = item.layers
        group.begins = group.begins or {}
        for layer = 0, #group.layers - 1 do
          local section = section_of[layer]
          if section and not group.begins[layer] then
            group.begins[layer] = out.bytes
            for _, row in ipairs(section.weights) do
              local copy = {}
              for k, v in pairs(row) do copy[k] = v end
              copy.layer, copy.group, copy.offset = layer, group, out.bytes + row.offset
              out.rows[#out.rows + 1] = copy
            end
            out.bytes = out.bytes + section.bytes
          end
          if section then section.begins[layer] = group.begins[layer] end
        end
      else
        local rows, offset = place({ item }, nil, out.bytes, known, ranks)
        for _, row in ipairs(rows) do
          out.rows[#out.rows + 1] = row
          out.outside[row.weight] = row
        end
        out.bytes = offset
      end
    end
    program.weights_bytes = out.bytes - begin
  end
  for _, weight in ipairs(model.weights) do
    if not (out.outside[weight] or weight.unused) then never_read(weight) end
  end
  for _, group in ipairs(model.groups) do group.begins = nil end
  return out
end

-- Of the packed weights, what a step of one token reads: of tables the row, of experts the chosen.
function layout.token_bytes(program)
  local total = 0
  local function count(ops, section, times)
    for _, op in ipairs(ops) do
      local weights = op.layers and {} or weights_of(op)
      local share = 1
      if op.def and op.def.share then
        local shapes = {}
        for i, input in ipairs(op.inputs) do shapes[i] = input.tensor.shape end
        share = op.def.share(table.unpack(shapes))
      end
      for _, weight in ipairs(weights) do
        local n_parts = #weight.shape > 2 and op.def.stacks or nil
        total = total + packed(weight, node.format(weight, section), n_parts).bytes * share * times
      end
    end
  end
  count(program.ops, nil, 1)
  for _, item in ipairs(program.ops) do
    for _, section in ipairs(item.layers and item.sections or {}) do
      count(section.ops, section, #section.layers)
    end
  end
  return math.ceil(total)
end

-- Elements of all weights, tied ones once, as the totals of published checkpoints count them:
-- with what no program reads, without scalars of no dimension.
function layout.elements(model)
  local n = 0
  local function count(weights)
    for _, weight in ipairs(weights) do
      if #weight.shape > 0 then n = n + graph.elements(weight.shape):value() end
    end
  end
  count(model.weights)
  for _, group in ipairs(model.groups) do
    for _, block in ipairs(group.layers) do count(block.weights) end
  end
  return n
end

return layout
