-- gen/around.lua -- What trained values of each weight lie around, for random ones of sane scale
-- (tools/synth): { [weight] = number }, 0 where nothing is said. Operations say it of their inputs.

local graph = require "gen.graph"

local around = {}

function around.of(model)
  local found = {}
  for _, program in ipairs(model.programs) do
    for _, row in ipairs(graph.flat(program)) do
      local said = row.op.def.around
      if type(said) == "function" then said = said(row.op.attrs) end
      for name, value in pairs(said or {}) do
        local tensor = graph.input(row.op, name)
        if tensor then found[tensor] = value end
      end
    end
  end
  return found
end

return around
