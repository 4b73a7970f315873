-- gen/passes/order.lua -- Phases: runs of operations in one extent. An operation belongs to the
-- phase of its result's rows; `rows` reads the phase before and closes it. Within a phase the
-- description's order stands. program.phases = { { name, extent } }, op.phase an index.

local graph = require "gen.graph"

local names = { tokens = "body", outputs = "head" }

local function extent_of(node)
  local tensor = node.layers and node.x or node.result
  if node.def and node.def.name == "rows" then tensor = graph.input(node, "x") end
  return graph.extent(tensor)
end

return function(program)
  local phases, index = {}, {}
  for _, node in ipairs(program.ops) do
    local extent = extent_of(node)
    if not extent then
      error(("%s:%d: %s: its rows have no extent"):format(node.file, node.line, node.def.name), 0)
    end
    if not index[extent] then
      phases[#phases + 1] = { name = names[extent] or extent, extent = extent }
      index[extent] = #phases
    end
    node.phase, node.extent = index[extent], extent
    for _, section in ipairs(node.sections or {}) do
      for _, inner in ipairs(section.ops) do
        inner.phase, inner.extent = index[extent], extent
        if extent_of(inner) ~= extent then
          error(("%s:%d: %s: a block works on %s, this is %s"):format(inner.file, inner.line,
            inner.def.name, extent, tostring(extent_of(inner))), 0)
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
