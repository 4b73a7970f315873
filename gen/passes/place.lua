-- gen/passes/place.lua -- Where each buffer lies in the arena, solved in bytes per unit of its
-- phase's extent, so that it holds for every n:
--
--   arena(n) = carried + max over phases of (fixed + slope * n)
--
-- A slope is rounded up to 64 bytes and a fixed part to 256: every offset stays aligned. Within
-- a phase, live ranges are placed largest first, each in the smallest gap that holds it.
-- What one phase makes and a later one reads is carried, in a region before all phases'.
-- Leaves program.buffers (with offset and bytes), program.scratch, program.costs, and each
-- operation's scratch_bytes.

local graph = require "gen.graph"
local size = require "gen.size"

local SLOPE_UNIT, FIXED_UNIT = 64, 256

local function round_up(n, unit) return (n + unit - 1) // unit * unit end

-- Bytes for each unit of its extent: of one row, or of the several that it has.
local function row_bytes(tensor)
  local rows = tensor.shape[1]:multiple()
  local columns = 1
  for i = 2, #tensor.shape do columns = columns * tensor.shape[i]:value() end
  local ok, act = pcall(require, "gen.formats.act_" .. tensor.dtype)
  if ok and act.row_bytes then return rows * act.row_bytes(columns) end
  return rows * columns * graph.dtype_bytes[tensor.dtype]
end

-- Live ranges over the flat order, both ends included.
local function live_ranges(program)
  local buffers, of_root = {}, {}
  local function touch(tensor, row)
    if tensor.weight or tensor.state or tensor.input then return end
    local root = graph.root(tensor)
    local buffer = of_root[root]
    if not buffer then
      buffer = {
        name = root.name, tensor = root, dtype = root.dtype, first = row.index, last = row.index,
        bytes_per_unit = row_bytes(root), extent = graph.extent(root), phases = {},
        file = row.op.file, line = row.op.line,
      }
      of_root[root] = buffer
      root.buffer = buffer
      buffers[#buffers + 1] = buffer
    end
    buffer.first, buffer.last = math.min(buffer.first, row.index), math.max(buffer.last, row.index)
    buffer.phases[row.op.phase] = true
  end
  local flat = graph.flat(program)
  local loops = {} -- loop item -> first and last index
  for _, row in ipairs(flat) do
    if row.loop then
      loops[row.loop] = loops[row.loop] or { first = row.index }
      loops[row.loop].last = row.index
    end
  end
  local made_in = {}
  for _, row in ipairs(flat) do
    made_in[graph.root(row.op.result)] = made_in[graph.root(row.op.result)] or row.loop or false
    if not row.op.def.state then touch(row.op.result, row) end
    for _, input in ipairs(row.op.inputs) do
      touch(input.tensor, row)
      -- What a loop reads but doesn't make must live until the loop's end.
      local root = graph.root(input.tensor)
      if row.loop and of_root[root] and made_in[root] ~= row.loop then
        of_root[root].first = math.min(of_root[root].first, loops[row.loop].first)
        of_root[root].last = math.max(of_root[root].last, loops[row.loop].last)
      end
    end
  end
  for _, output in ipairs(program.outputs) do
    local buffer = of_root[graph.root(output.tensor)]
    buffer.last, buffer.output = #flat - 1, output.name
    buffer.phases[#program.phases] = true
  end
  return buffers, flat
end

-- Offsets for buffers of one region, so that those alive together lie apart; the region's bytes a
-- unit of its extent.
local function place_region(buffers)
  local order = { table.unpack(buffers) }
  table.sort(order, function(a, b)
    if a.slope ~= b.slope then return a.slope > b.slope end
    if a.first ~= b.first then return a.first < b.first end
    return a.name < b.name
  end)
  local placed, height = {}, 0
  for _, buffer in ipairs(order) do
    local busy = {}
    for _, other in ipairs(placed) do
      if buffer.first <= other.last and other.first <= buffer.last then
        busy[#busy + 1] = other
      end
    end
    table.sort(busy, function(a, b) return a.at < b.at end)
    local best, best_gap, top = nil, math.huge, 0
    for _, other in ipairs(busy) do
      local gap = other.at - top
      if gap >= buffer.slope and gap < best_gap then best, best_gap = top, gap end
      top = math.max(top, other.at + other.slope)
    end
    buffer.at = best or top
    placed[#placed + 1] = buffer
    height = math.max(height, buffer.at + buffer.slope)
  end
  return height
end

return function(program, context)
  local buffers, flat = live_ranges(program)
  local regions = { [0] = {} }
  for i in ipairs(program.phases) do regions[i] = {} end
  for _, buffer in ipairs(buffers) do
    local phase, n_phases = nil, 0
    for i = 1, #program.phases do
      if buffer.phases[i] then
        phase, n_phases = i, n_phases + 1
      end
    end
    -- A buffer in another extent than its phase's (the result of `rows`) is carried too.
    local at_home = n_phases == 1 and buffer.extent == program.phases[phase].extent
    buffer.phase = at_home and phase or 0
    buffer.slope = round_up(buffer.bytes_per_unit, SLOPE_UNIT)
    table.insert(regions[buffer.phase], buffer)
  end

  -- Scratch: one share a thread, the largest any operation of the phase wants.
  program.scratch = {}
  for _, row in ipairs(flat) do
    local node = row.op
    local bytes = 0
    if node.def.scratch then
      for _, kv_dtype in ipairs(context.family.kv_dtypes) do
        local face = require("gen.node").face(node, row.section, context, kv_dtype)
        bytes = math.max(bytes, node.def.scratch(face, context.family) or 0)
      end
    end
    node.scratch_bytes = bytes
    local most = program.scratch[node.phase] or 0
    program.scratch[node.phase] = math.max(most, round_up(bytes, FIXED_UNIT))
  end

  -- Row 0: what is carried. One extent, as any region.
  program.costs = {}
  local carried_extent
  for _, buffer in ipairs(regions[0]) do
    if carried_extent and carried_extent ~= buffer.extent then
      graph.refuse(buffer, "what phases carry has two extents: %s and %s", carried_extent,
        buffer.extent)
    end
    carried_extent = buffer.extent
  end
  for i = 0, #program.phases do
    local extent = i == 0 and (carried_extent or program.phases[#program.phases].extent)
      or program.phases[i].extent
    local slope = place_region(regions[i])
    local scratch = size.param "threads" * (program.scratch[i] or 0)
    program.costs[i] = {
      phase = i == 0 and "carried" or program.phases[i].name,
      fixed = scratch, slope = slope, extent = extent, quantum = 1,
      bytes = scratch + size.extent(extent) * slope,
    }
    for _, buffer in ipairs(regions[i]) do
      buffer.offset = scratch + size.extent(extent) * buffer.at
      buffer.bytes = size.extent(extent) * buffer.bytes_per_unit
    end
  end
  program.buffers, program.n_ops = buffers, #flat
  return program
end
