-- gen/passes/place.lua -- Where each buffer lies in the arena, solved in bytes per unit of its
-- phase's extent, so that it holds for every n:
--
--   arena(n) = sum over what is carried + max over phases, each fixed + slope * n
--
-- A slope is rounded up to 64 bytes and a fixed part to 256: every offset stays aligned. Within
-- a region, live ranges are placed one after the other, each in the smallest gap that holds it;
-- first scratch, then buffers of fixed size, then those that grow.
-- What one phase makes and a later one reads is carried, in regions before all phases', one for
-- each extent. Leaves program.buffers (with row, offset and bytes), program.scratch, what a phase has
-- beyond it under --fast-gemm as program.fast_scratch, program.costs (n_carried of them first), and
-- each operation's scratch_bytes.

local graph = require "gen.graph"
local node = require "gen.node"
local size = require "gen.size"

local SLOPE_UNIT, FIXED_UNIT = 64, 256
local TRIES = 100

local function round_up(n, unit) return (n + unit - 1) // unit * unit end

-- Bytes for each unit of its extent: of one row, or of the several that it has; all bytes of
-- what has no extent.
local function row_bytes(tensor)
  local rows = tensor.shape[1]:multiple() or tensor.shape[1]:value()
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
  local made_by = {} -- the row that makes a buffer
  for _, row in ipairs(flat) do
    made_by[graph.root(row.op.result)] = made_by[graph.root(row.op.result)] or row
    if row.op.def.state ~= "kv" then touch(row.op.result, row) end
    for _, input in ipairs(row.op.inputs) do
      touch(input.tensor, row)
      local root = graph.root(input.tensor)
      local buffer, maker = of_root[root], made_by[root]
      if row.loop and buffer and not (maker and maker.loop == row.loop) then
        -- What a loop reads but doesn't make must live until the loop's end.
        buffer.first = math.min(buffer.first, loops[row.loop].first)
        buffer.last = math.max(buffer.last, loops[row.loop].last)
      elseif row.loop and buffer and maker.section ~= row.section then
        -- What one layer leaves to those of another kind, likewise: kinds come in turn.
        buffer.first = math.min(buffer.first, loops[row.loop].first)
        buffer.last = math.max(buffer.last, loops[row.loop].last)
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

-- Offsets for buffers in a given order, each in the smallest gap between those alive with it that
-- holds it. Sets buffer.try; the height is what all of them take.
local function fit_in_order(order)
  local height = 0
  for i, buffer in ipairs(order) do
    local busy = {}
    for j = 1, i - 1 do
      local other = order[j]
      if buffer.first <= other.last and other.first <= buffer.last then busy[#busy + 1] = other end
    end
    table.sort(busy, function(x, y) return x.try < y.try end)
    local best, best_gap, top = nil, math.huge, 0
    for _, other in ipairs(busy) do
      local gap = other.try - top
      if gap >= buffer.height and gap < best_gap then best, best_gap = top, gap end
      top = math.max(top, other.try + other.height)
    end
    buffer.try = best or top
    height = math.max(height, buffer.try + buffer.height)
  end
  return height
end

-- The most that is alive at once: no placement needs less.
local function live_height(buffers)
  local most = 0
  for _, at in ipairs(buffers) do -- it grows only where a buffer begins
    local now = 0
    for _, buffer in ipairs(buffers) do
      if buffer.first <= at.first and at.first <= buffer.last then now = now + buffer.height end
    end
    most = math.max(most, now)
  end
  return most
end

local function longest_first(a, b)
  local x, y = a.last - a.first, b.last - b.first
  if x ~= y then return x > y end
  return a.height > b.height
end
local orders = {
  function(a, b) return a.height > b.height end, -- the largest first
  longest_first,
}

-- Offsets for buffers of one region, so that those alive together lie apart; the region's bytes, a
-- unit of its extent or in all. Where an order leaves holes, whoever sticks out goes first, as often
-- as it takes to reach the live set, or TRIES times.
local function place_region(buffers)
  local bound, best = live_height(buffers), math.huge
  local function try(order)
    local height = fit_in_order(order)
    if height < best then
      best = height
      for _, buffer in ipairs(buffers) do buffer.at = buffer.try end
    end
    return height
  end
  for _, before in ipairs(orders) do
    local order = { table.unpack(buffers) }
    table.sort(order, function(a, b)
      if before(a, b) ~= before(b, a) then return before(a, b) end
      if a.first ~= b.first then return a.first < b.first end
      return a.name < b.name
    end)
    for _ = 1, TRIES do
      local height = try(order)
      if best == bound then return best end
      for i = #order, 1, -1 do
        if order[i].try + order[i].height == height then
          table.insert(order, 1, table.remove(order, i))
          break
        end
      end
    end
  end
  return #buffers > 0 and best or 0
end

-- The largest scratch of any operation of each phase: a thread's own on a CPU, all of it on a GPU.
local function place_scratch(program, flat, context)
  local family = context.family
  local fast_most = {}
  program.scratch, program.fast_scratch = {}, {}
  for _, row in ipairs(flat) do
    local op, bytes, fast = row.op, 0, 0
    for _, kv_dtype in ipairs(family.kv_dtypes) do
      local own, own_fast = node.scratch(op, row.section, context, kv_dtype)
      bytes, fast = math.max(bytes, own), math.max(fast, own_fast)
    end
    op.scratch_bytes = bytes
    local most = program.scratch[op.phase] or 0
    program.scratch[op.phase] = math.max(most, round_up(bytes, FIXED_UNIT))
    fast_most[op.phase] = math.max(fast_most[op.phase] or 0, round_up(fast, FIXED_UNIT))
  end
  for phase, most in pairs(fast_most) do
    program.fast_scratch[phase] = math.max(0, most - program.scratch[phase])
  end
end

-- One row of the costs: scratch, then what is fixed, then what grows with the extent.
local function place_row(program, row, buffers, scratch)
  local fixed, growing = {}, {}
  for _, buffer in ipairs(buffers) do
    buffer.height = round_up(buffer.bytes_per_unit, buffer.extent and SLOPE_UNIT or FIXED_UNIT)
    table.insert(buffer.extent and growing or fixed, buffer)
  end
  row.fixed_bytes, row.slope = place_region(fixed), place_region(growing)
  local extent = size.extent(row.extent)
  for _, buffer in ipairs(fixed) do
    buffer.offset, buffer.bytes = scratch + buffer.at, size.of(buffer.bytes_per_unit)
  end
  for _, buffer in ipairs(growing) do
    buffer.offset = scratch + row.fixed_bytes + extent * buffer.at
    buffer.bytes = extent * buffer.bytes_per_unit
  end
  row.quantum, row.bytes = program.quantum, scratch + row.fixed_bytes + extent * row.slope
  row.index = #program.costs
  for _, buffer in ipairs(buffers) do buffer.row, buffer.region = row.index, row end
  program.costs[#program.costs + 1] = row
end

return function(program, context)
  local buffers, flat = live_ranges(program)
  place_scratch(program, flat, context)

  -- Each in its phase, or carried: what several phases touch, and what has another extent than
  -- its phase (the result of `rows`).
  local carried, in_phase, extents = {}, {}, {}
  for i in ipairs(program.phases) do in_phase[i] = {} end
  for _, buffer in ipairs(buffers) do
    local phase, n_phases = nil, 0
    for i = 1, #program.phases do
      if buffer.phases[i] then
        phase, n_phases = i, n_phases + 1
      end
    end
    local at_home = n_phases == 1
      and (not buffer.extent or buffer.extent == program.phases[phase].extent)
    if at_home then
      table.insert(in_phase[phase], buffer)
    else
      local extent = buffer.extent or program.phases[1].extent
      if not carried[extent] then extents[#extents + 1] = extent end
      carried[extent] = carried[extent] or {}
      table.insert(carried[extent], buffer)
    end
  end
  if #extents == 0 then extents[1] = program.phases[#program.phases].extent end

  program.quantum = 1
  for _, row in ipairs(flat) do
    local quantum = row.op.def.quantum or 1 -- powers of two: the largest is a multiple of all
    program.quantum = math.max(program.quantum, quantum)
  end

  program.costs, program.n_carried = {}, #extents
  for i, extent in ipairs(extents) do
    local name = i == 1 and "carried" or "carried_" .. extent
    local row = { phase = name, extent = extent, carried = true }
    place_row(program, row, carried[extent] or {}, size.of(0))
  end
  local unit = context.family.sm and size.of(1) or size.param "threads"
  for i, phase in ipairs(program.phases) do
    local row = { phase = phase.name, extent = phase.extent, of_phase = i }
    local fast = size.param "fast_gemm" * (program.fast_scratch[i] or 0)
    place_row(program, row, in_phase[i], unit * (program.scratch[i] or 0) + fast)
  end
  program.buffers, program.n_ops = buffers, #flat
  return program
end
