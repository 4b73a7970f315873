-- gen/passes/init.lua -- The passes, in order. Each is function(program, context) -> program
-- in a file of its own, and leaves graph.verify true. context = { model, family }.

local graph = require "gen.graph"

local passes = {}

passes.names = {
  "signatures",    -- layers of one kind, split by their weights' formats
  "rings",         -- windows that several kinds of layers read
  "lower",         -- activations in the format that weights want; angles once for all layers
  "fuse_glu",      -- silu(gate) * up: one operation
  "fuse_siblings", -- linears of one input: one operation
  "fuse_add",      -- x + linear: into x
  "fuse_convert",  -- a change of format: into the row's maker
  "in_place",      -- what changes its input lies where it lay
  "order",         -- phases
  "names",         -- buffers are called as the description calls them
  "place",         -- live ranges to offsets
  "sync",          -- barriers where one operation needs another's result
}

-- Run all of them, or those up to and including `last` ("fuse" stands for all that begin so).
function passes.run(program, context, last)
  local stop = #passes.names
  if last then
    stop = nil
    for i, name in ipairs(passes.names) do
      if name == last or name:sub(1, #last + 1) == last .. "_" then stop = i end
    end
    if not stop then
      return nil, ("there is no pass '%s'; there are: trace, %s"):format(
        last, table.concat(passes.names, ", "))
    end
  end
  for i = 1, stop do
    local name = passes.names[i]
    program = require("gen.passes." .. name)(program, context)
    local ok, why = graph.verify(program)
    if not ok then error(("after the pass %s: %s"):format(name, why), 0) end
  end
  return program
end

return passes
