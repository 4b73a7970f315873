-- gen/passes/order.lua -- Phases: runs of operations in one extent. An operation belongs to the
-- phase of its result's rows (of its inputs', where the result has a fixed size; else of the first
-- rows there are); `rows` reads the phase before and closes it. A ring that is written behind all
-- layers belongs to the phase of its last readers.
--
-- Within a list, operations that need no barrier between them come together: three linears of
-- one input, then what reads them. Gains: a barrier each; else the description's order stands.
-- program.phases = { { name, extent } }, op.phase an index.

local graph = require "gen.graph"

local names = { tokens = "body", outputs = "head" }

local function extent_of(node)
  local tensor = node.layers and node.x or node.result
  if node.def and node.def.name == "rows" then tensor = graph.input(node, "x") end
  local extent = graph.extent(tensor)
  for _, input in ipairs(node.inputs) do
    extent = extent or not input.tensor.state and graph.extent(input.tensor)
  end
  return extent or nil
end

-- What must stay before what: [later] = { earlier = true }, by results, places and states.
local function constraints(ops)
  local function touched(node)
    local list = {}
    for _, input in ipairs(node.inputs) do
      local tensor = input.tensor
      if tensor.state then
        list[#list + 1] = { what = "state", write = node.def.state ~= nil }
      elseif not (tensor.weight or tensor.input) then
        list[#list + 1] = { what = graph.root(tensor), write = false }
      end
    end
    if node.def.state ~= "kv" then
      list[#list + 1] = { what = graph.root(node.result), write = true }
    end
    return list
  end
  local before, seen = {}, {}
  for _, node in ipairs(ops) do
    before[node] = {}
    local mine = touched(node)
    for _, earlier in ipairs(seen) do
      for _, a in ipairs(earlier.touched) do
        for _, b in ipairs(mine) do
          if a.what == b.what and (a.write or b.write) then
            before[node][earlier.node] = true
          end
        end
      end
    end
    seen[#seen + 1] = { node = node, touched = mine }
  end
  return before
end

-- Those that only need what is synchronized already, or what their own thread made, come first.
local function gather(ops)
  local before = constraints(ops)
  local sorted, done, fresh = {}, {}, {}
  local function ready(node, without_barrier)
    if done[node] then return false end
    for earlier in pairs(before[node]) do
      if not done[earlier] then return false end
      local own_rows = node.def.partition == "rows" and earlier.def.partition == "rows"
      if without_barrier and fresh[earlier] and not own_rows then return false end
    end
    return true
  end
  while #sorted < #ops do
    local next_node
    for _, node in ipairs(ops) do
      if ready(node, true) then
        next_node = node
        break
      end
    end
    if not next_node then fresh = {} end
    for _, node in ipairs(next_node and {} or ops) do
      if ready(node, false) then
        next_node = node
        break
      end
    end
    sorted[#sorted + 1], done[next_node], fresh[next_node] = next_node, true, true
  end
  return sorted
end

return function(program, context)
  local phases, index = {}, {}
  local first_extent
  for _, node in ipairs(program.ops) do first_extent = first_extent or extent_of(node) end
  for _, node in ipairs(program.ops) do
    local extent = extent_of(node) or first_extent
    if node.layer then extent = phases[#phases].extent end -- a ring that was read up to here
    if not index[extent] then
      phases[#phases + 1] = { name = names[extent] or extent, extent = extent }
      index[extent] = #phases
    end
    node.phase, node.extent = index[extent], extent
    for _, section in ipairs(node.sections or {}) do
      if not context.family.sm then section.ops = gather(section.ops) end -- a launch waits anyway
      for _, inner in ipairs(section.ops) do
        inner.phase, inner.extent = index[extent], extent
        if (extent_of(inner) or extent) ~= extent then
          graph.refuse(inner, "%s: a block works on %s, this is %s", inner.def.name, extent,
            extent_of(inner))
        end
      end
    end
  end
  -- A stable sort by phase; verify() finds it if an early phase needs a later one's result.
  local sorted = {}
  for phase = 1, #phases do
    for _, node in ipairs(program.ops) do
      if node.phase == phase then sorted[#sorted + 1] = node end
    end
  end
  program.ops, program.phases = sorted, phases
  return program
end
