-- gen/tables.lua -- Derives what a program's tables say from the graph that its code is
-- emitted from: inputs, outputs, costs, graph costs. (Weights: layout.lua. KV: kv.lua.)

local graph = require "gen.graph"
local node = require "gen.node"
local standard = require "gen.standard"

local tables = {}

-- The inputs that a program's kernels read, standard ones first, in their order.
function tables.inputs(program, context)
  local wanted = {}
  for _, row in ipairs(graph.flat(program)) do
    for _, input in ipairs(row.op.inputs) do
      if input.tensor.input then wanted[input.tensor.input] = input.tensor end
    end
    for _, dtype in ipairs(context.family.kv_dtypes) do
      local face = node.face(row.op, row.section, context, dtype)
      local kernel = row.op.def.kernel(face, context.family)
      for _, arg in ipairs(kernel.args) do
        if standard.shapes[arg] and not wanted[arg] then
          wanted[arg] = graph.tensor { input = arg, shape = standard.shapes[arg], dtype = "i32" }
        end
      end
    end
  end
  local inputs = {}
  for _, name in ipairs(standard.order) do
    if wanted[name] then inputs[#inputs + 1] = { name = name, tensor = wanted[name] } end
  end
  for _, input in ipairs(program.inputs) do
    if not standard.shapes[input.name] and wanted[input.name] then
      inputs[#inputs + 1] = input
    end
  end
  return inputs
end

-- Operations that one run executes.
function tables.kernel_nodes(program)
  local n = 0
  for _, op in ipairs(program.ops) do
    if op.layers then
      for _, section in ipairs(op.sections) do n = n + #section.ops * #section.layers end
    else
      n = n + 1
    end
  end
  return n
end

-- A zero or missing row for a program that has kernels is our mistake. (All that a phase makes
-- may be carried.)
function tables.check(program)
  local function need(ok, what)
    if not ok then error(("program '%s' has no %s"):format(program.name, what), 0) end
  end
  need(#program.inputs > 0, "inputs")
  need(#program.outputs > 0, "outputs")
  need(#program.buffers > 0, "buffers")
  need(tables.kernel_nodes(program) > 0, "kernel nodes")
  for i = 1, #program.phases do
    need(program.costs[0].slope + program.costs[i].slope + program.scratch[i] > 0,
      "cost for its phase " .. program.phases[i].name)
  end
end

return tables
