-- gen/tables.lua -- Derives what a program's tables say from the graph that its code is
-- emitted from: inputs, outputs, costs, graph costs. (Weights: layout.lua. KV: kv.lua.)

local graph = require "gen.graph"
local node = require "gen.node"
local standard = require "gen.standard"

local tables = {}

-- The inputs that a program's kernels read, standard ones first, in their order.
function tables.inputs(program, context)
  local wanted = {}
  local function want(name)
    if standard.shapes[name] and not wanted[name] then
      wanted[name] = graph.tensor { input = name, shape = standard.shapes[name], dtype = "i32" }
    end
  end
  for _, row in ipairs(graph.flat(program)) do
    local own = {} -- an operation's inputs come first: positions in a plane aren't the step's
    for _, input in ipairs(row.op.inputs) do
      local tensor = input.tensor
      own[input.name] = true
      if tensor.input then wanted[tensor.input] = tensor end
      if tensor.state == "state" or (tensor.window or 0) > 0 then want "state_of" end
    end
    for _, name in ipairs(row.op.def.reads or {}) do want(name) end
    for _, dtype in ipairs(context.family.kv_dtypes) do
      for _, arg in ipairs(node.args(row.op, row.section, context, dtype)) do
        if not own[arg] then want(arg) end
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

-- What one run executes: on a CPU an operation is one kernel, on a GPU what its file says.
function tables.graph_costs(program, context)
  local costs = { kernel_nodes = 0, copy_nodes = 0 }
  local family = context.family
  local function count(ops, section, times)
    for _, op in ipairs(ops) do
      for _, inner in ipairs(op.sections or {}) do count(inner.ops, inner, #inner.layers) end
      if not op.layers and not op.def.reshape then
        local launches = family.sm
          and node.launches(op, section, context, family.kv_dtypes[1]) or { kernels = 1 }
        costs.kernel_nodes = costs.kernel_nodes + times * launches.kernels
        costs.copy_nodes = costs.copy_nodes + times * (launches.copies or 0)
      end
    end
  end
  count(program.ops, nil, 1)
  return costs
end

-- Operations and formats of a program that a family has no kernels for, with keys and values in
-- `kv_dtype`: each once, in order.
function tables.missing(program, context, kv_dtype)
  local gpu = context.family.sm
  local list, known = {}, {}
  local function add(name)
    if not known[name] then list[#list + 1] = name end
    known[name] = true
  end
  for _, row in ipairs(graph.flat(program)) do
    local op, lacks = row.op, false
    for _, input in ipairs(op.inputs) do
      local format = input.tensor.weight and node.format(input.tensor, row.section)
      if format and not require("gen.formats." .. format).pack then
        add("format " .. format)
        lacks = true -- its kernel may not be asked for
      end
    end
    if not lacks and not op.def.reshape then
      local found
      if gpu then
        found = node.launches(op, row.section, context, kv_dtype).launches
      else
        found = node.kernel(op, row.section, context, kv_dtype)
      end
      if not found then add(op.def.name) end
    end
  end
  return list
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
  need(program.graph.kernel_nodes > 0, "kernel nodes")
  local carried = 0
  for i = 1, program.n_carried do carried = carried + program.costs[i].slope end
  for i = program.n_carried + 1, #program.costs do
    local row = program.costs[i]
    need(carried + row.slope + row.fixed_bytes + program.scratch[row.of_phase] > 0,
      "cost for its phase " .. row.phase)
  end
end

return tables
