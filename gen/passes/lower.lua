-- gen/passes/lower.lua -- What a family computes in: a linear takes its activations in the
-- format that its weights' format wants (gen/formats: act.default, act.exact or act.cuda), through
-- a `convert` that all readers of one row share, but int8 in two rows where its result leaves the
-- program (gen/formats/act_q8x2.lua). A GPU leaves of each row of logits what sampling needs, too: the
-- host needn't fetch the row. On a CPU rope takes angles that are computed once a step; a
-- GPU has sines to spare and keeps rows in bf16, but for what an operation says is wide and for logits.
--
-- Gains: int8 rows are a quarter of the bytes of floats; angles cost their sines once, not
-- once a layer; bf16 rows are half as wide, in memory that a GPU has less of.

local graph = require "gen.graph"
local node_of = require "gen.node"
local op = require "gen.op"
local size = require "gen.size"

local function new_op(def, inputs, attrs, shape, like)
  local sizes = {}
  for i, x in ipairs(shape) do sizes[i] = size.of(x) end
  local new = graph.op(def, inputs, attrs, sizes, like)
  new.lines = { table.unpack(like.lines) }
  return new
end

-- Rows in bf16, but where sums or what they decide need more; also those that come from outside.
-- Inputs are shared by all families: this one gets its own.
local function narrow_inputs(program)
  local narrowed = {}
  for i, input in ipairs(program.inputs) do
    local tensor = input.tensor
    if tensor.dtype == "f32" then
      local new = {}
      for key, value in pairs(tensor) do new[key] = value end
      new.dtype = "bf16"
      input = { name = input.name, tensor = graph.tensor(new) }
      graph.replace(program, tensor, input.tensor)
    end
    narrowed[i] = input
  end
  program.inputs = narrowed
end

local function narrow(program)
  narrow_inputs(program)
  local wide = {} -- logits, and what they are made from in place
  for _, output in ipairs(program.outputs) do
    local tensor = output.name == "logits" and output.tensor
    while tensor do
      wide[tensor] = true
      local maker = tensor.op
      tensor = maker and maker.def and maker.def.in_place
        and graph.input(maker, maker.def.in_place)
    end
  end
  local function set(tensor)
    if tensor.dtype == "f32" and not wide[tensor] then tensor.dtype = "bf16" end
  end
  for _, list in ipairs(graph.lists(program)) do
    if list.x then set(list.x) end
    for _, node in ipairs(list.ops) do
      if not (node.def and (node.def.wide or node.attrs.wide)) then set(node.result) end
      if node.def and node.result.dtype == "bf16" then node.out = "bf16" end
    end
  end
end

-- The output "top", where there are logits: gen/ops/top_logits.lua.
local function add_top(program)
  local function add(name, input, tensor)
    local def = op.find(name)
    local inputs = { { name = input, tensor = tensor } }
    local made = new_op(def, inputs, {}, def.shape(tensor.shape), tensor.op)
    program.ops[#program.ops + 1] = made
    return made.result
  end
  for _, output in ipairs(program.outputs) do
    if output.name == "logits" and output.tensor.op then
      local top = add("top_logits", "parts", add("top_parts", "logits", output.tensor))
      top.name = "top"
      program.outputs[#program.outputs + 1] = { name = "top", tensor = top }
      return
    end
  end
end

-- The format in which a family's kernel for `weight` takes its rows.
local function activation_of(weight, list, family)
  local act = require("gen.formats." .. node_of.format(weight, list)).act
  if not family.sm then return act[family.exact and "exact" or "default"] end
  return act.cuda and act.cuda(family) or "bf16"
end

return function(program, context)
  local family = context.family
  if family.sm then
    narrow(program)
    add_top(program)
  end
  local leaves = {} -- [tensor]: an output of the program
  for _, output in ipairs(program.outputs) do leaves[output.tensor] = true end
  local angles = {} -- operations that make angles, in order of first use

  local function angles_for(rope)
    local positions, inv_freq = graph.input(rope, "positions"), rope.attrs.inv_freq
    local key = table.concat({ rope.def.angles, tostring(positions.input),
      tostring(rope.attrs.layout), table.concat(inv_freq, " ") }, "/")
    for _, known in ipairs(angles) do
      if known.same_as == key then return known.op.result end
    end
    local def = op.find(rope.def.angles)
    local attrs = {
      inv_freq = inv_freq, d = rope.attrs.d_head, layout = rope.attrs.layout,
      key = #angles == 0 and "step" or "step_" .. #angles + 1,
    }
    local inputs = { { name = "positions", tensor = positions } }
    local new = new_op(def, inputs, attrs, def.shape(positions.shape, attrs), rope)
    new.result.name = "angles"
    angles[#angles + 1] = { op = new, same_as = key }
    return new.result
  end

  for _, list in ipairs(graph.lists(program)) do
    local ops, converted = {}, {} -- [tensor][format]
    for _, node in ipairs(list.ops) do
      local takes = node.def and node.def.activation
      if takes then
        local weight = graph.input(node, "weight")
        local format = activation_of(weight, list, family)
        if format == "q8" and leaves[node.result] then format = "q8x2" end
        local x = graph.input(node, takes)
        if format ~= x.dtype then
          converted[x] = converted[x] or {}
          if not converted[x][format] then
            local inputs = { { name = "x", tensor = x } }
            local convert = new_op(op.find "convert", inputs, {}, x.shape, node)
            convert.out, convert.result.dtype = format, format
            ops[#ops + 1] = convert
            converted[x][format] = convert.result
          end
          graph.set_input(node, takes, converted[x][format])
        end
      elseif node.def and node.def.angles and not family.sm then
        local result = angles_for(node)
        for _, input in ipairs(node.inputs) do
          if input.name == "positions" then input.name, input.tensor = "angles", result end
        end
      end
      ops[#ops + 1] = node
    end
    list.ops = ops
    if list.kind == nil then program.ops = ops end
  end
  for i, known in ipairs(angles) do table.insert(program.ops, i, known.op) end
  return program
end
