-- gen/passes/in_place.lua -- A result that is its changed input has no buffer of its own: rope,
-- sums into the residual stream, and the stream itself from layer to layer; so has one that may
-- overwrite an input nobody reads any more. Where the old
-- value is still read, or a block's result isn't made from its x, a copy is put in.
--
-- Afterwards a tensor lies where tensor.alias_of lies, or in the columns of tensor.view_of.

local graph = require "gen.graph"
local op = require "gen.op"
local size = require "gen.size"

-- Is the tensor read by an operation behind `at`, or by what surrounds the list?
local function read_after(program, list, at, tensor)
  for i = at + 1, #list.ops do
    local node = list.ops[i]
    for _, input in ipairs(node.inputs) do if input.tensor == tensor then return true end end
    if node.layers and node.x == tensor then return true end
  end
  if list.result == tensor then return true end
  for _, output in ipairs(program.outputs) do if output.tensor == tensor then return true end end
  return false
end

-- May the result take the place of its input x? Nobody reads x afterwards, it was made in this
-- list (or is the stream that runs through it), and rows are as wide.
local function may_replace(program, list, at, x, result)
  local root, column = graph.root(x)
  local is_stream = list.x and root == graph.root(list.x)
  local is_here = is_stream
  for i = 1, at - 1 do is_here = is_here or list.ops[i].result == root end
  if not is_here or x.dtype ~= result.dtype or not size.same_shape(x.shape, result.shape) then
    return false
  end
  if column and not graph.takes_columns(program, result) then return false end
  return not read_after(program, list, at, x)
end

-- The same memory with other dims, or some of its columns.
local function reshape(program, node)
  local x = graph.input(node, node.def.reshape)
  if graph.root(x).input then
    graph.refuse(node, "%s: an input comes in the dims it is declared in", node.def.name)
  end
  if not node.attrs.column then
    node.result.alias_of = x
    return
  end
  if not graph.takes_columns(program, node.result) then
    graph.refuse(node, "%s: what reads them takes whole rows", node.def.name)
  end
  node.result.view_of, node.result.column = x, size.of(node.attrs.column)
end

local function copy_of(tensor, like)
  local node = graph.op(op.find "copy", { { name = "x", tensor = tensor } }, {}, tensor.shape, like)
  node.lines = {}
  node.result.name = tensor.name
  return node
end

return function(program)
  for _, list in ipairs(graph.lists(program)) do
    local i = 1
    while i <= #list.ops do
      local node = list.ops[i]
      if node.layers then
        if read_after(program, list, i, node.x) or node.x.input then
          local copy = copy_of(node.x, node)
          table.insert(list.ops, i, copy)
          node.x = copy.result
          i = i + 1
        end
        node.result.alias_of = node.x
        for _, section in ipairs(node.sections) do section.x.alias_of = node.x end
      else
        local name = node.into or node.def.in_place
        if node.def.reshape then
          reshape(program, node)
        elseif name then
          local x = graph.input(node, name)
          if read_after(program, list, i, x) or x.input then
            local copy = copy_of(x, node)
            table.insert(list.ops, i, copy)
            graph.set_input(node, name, copy.result)
            x = copy.result
            i = i + 1
          end
          node.result.alias_of = x
        else
          for _, free in ipairs(node.def.may_overwrite or {}) do
            local x = graph.input(node, free)
            if not node.result.alias_of and may_replace(program, list, i, x, node.result) then
              node.result.alias_of = x
            end
          end
        end
      end
      i = i + 1
    end
    if list.x and graph.root(list.result) ~= graph.root(list.x) then
      local copy = copy_of(list.result, list.ops[#list.ops])
      copy.result.alias_of = list.x
      list.ops[#list.ops + 1] = copy
      list.result = copy.result
    end
  end
  return program
end
