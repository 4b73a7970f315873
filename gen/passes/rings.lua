-- gen/passes/rings.lua -- A ring that layers of another kind read is written behind them all: what
-- was in it before the step is what they read, too. Its owner, the last layer of its kind, becomes
-- a section of its own, whose keys and values stay where they are until then.
--
-- Gains: none, but right results: without it a chunk longer than the window has overwritten what
-- its first tokens see.

local graph = require "gen.graph"

-- Operations that read the ring of a section's last layer from another section.
local function readers_of(program, section)
  local readers = {}
  for _, row in ipairs(graph.flat(program)) do
    for _, input in ipairs(row.op.inputs) do
      local step = input.tensor.owner and input.tensor.step
      if step and step.section.kind == section.kind and step.section.group == section.group then
        readers[#readers + 1] = row.op
      end
    end
  end
  return readers
end

local function ring_append(section)
  for i, op in ipairs(section.ops) do
    local state = op.def.state == "kv" and graph.input(op, "kv")
    if state and state.window > 0 then return op, i end
  end
end

-- The section of the owner alone, behind the one that keeps the other layers.
local function split(item, at, section)
  local owner = section.layers[#section.layers]
  if #section.layers == 1 then return section, owner end
  local alone = graph.copy_section(section)
  alone.layers, section.layers = { owner }, { table.unpack(section.layers, 1, #section.layers - 1) }
  table.insert(item.sections, at + 1, alone)
  return alone, owner
end

return function(program)
  for position = #program.ops, 1, -1 do
    local item = program.ops[position]
    for at = #(item.sections or {}), 1, -1 do
      local section = item.sections[at]
      local readers = ring_append(section) and readers_of(program, section) or {}
      if #readers > 0 then
        local from = { table.unpack(section.ops) }
        local alone, owner = split(item, at, section)
        local copy_of = {}
        for i, op in ipairs(from) do copy_of[op.result] = alone.ops[i].result end
        for _, op in ipairs(readers) do
          for _, name in ipairs { "k", "v" } do
            graph.set_input(op, name, copy_of[graph.input(op, name)])
          end
        end
        local append, index = ring_append(alone)
        table.remove(alone.ops, index)
        append.layer, append.of_section = owner, alone
        local last = position
        for i = position, #program.ops do
          for _, other in ipairs(program.ops[i].sections or {}) do
            for _, op in ipairs(readers) do
              for _, mine in ipairs(other.ops) do if mine == op then last = i end end
            end
          end
        end
        table.insert(program.ops, last + 1, append)
      end
    end
  end
  return program
end
