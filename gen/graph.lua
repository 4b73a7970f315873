-- gen/graph.lua -- What a description becomes: tensors, operations, programs. Constructors,
-- the walk over all operations, a copy to rewrite, verify(), and the printer of `gen show`.
--
--   model    { architecture, variant, dims, weights, groups, programs, lines }
--   program  { name, inputs, ops, outputs = { { name, tensor } } }
--   op       { def, inputs = { { name, tensor } }, attrs, result, file, line }
--            or { layers = group, x, result, sections }: a loop over layers
--   section  { kind, layers = { 0, 1, ... }, ops, x, result }: one traced block
--   tensor   { shape, dtype, op }            made by an operation
--            { shape, dtype, input = "positions" }, { weight = true, role, ... },
--            { state = "kv", ... }

local size = require "gen.size"

local graph = {}

graph.dtype_bytes = { f32 = 4, f16 = 2, bf16 = 2, i32 = 4, u8 = 1 }

-- The extent that n of a program's graphs counts.
graph.counted = { step = "sequences", draft = "sequences" }
function graph.counts(program) return graph.counted[program.name] or "soft" end

local serial = 0
local function next_serial()
  serial = serial + 1
  return serial
end

function graph.reset() serial = 0 end

-- ---- Constructors -----------------------------------------------------------------------

local Tensor = { __name = "tensor" }
graph.Tensor = Tensor

function graph.tensor(fields)
  fields.id = next_serial()
  return setmetatable(fields, Tensor)
end

function graph.is_tensor(x) return getmetatable(x) == Tensor end

-- An operation and its result.
function graph.op(def, inputs, attrs, shape, where)
  local self = {
    def = def, inputs = inputs, attrs = attrs, out = "f32",
    file = where.file, line = where.line, lines = { where.line },
  }
  self.result = graph.tensor { shape = shape, dtype = def.result_dtype or "f32", op = self }
  return self
end

function graph.input(op, name)
  for _, input in ipairs(op.inputs) do if input.name == name then return input.tensor end end
end

function graph.set_input(op, name, tensor)
  for _, input in ipairs(op.inputs) do
    if input.name == name then
      input.tensor = tensor
      return
    end
  end
  op.inputs[#op.inputs + 1] = { name = name, tensor = tensor }
end

-- ---- Walks ------------------------------------------------------------------------------

-- Every list of operations of a program: its own, then each section's.
function graph.lists(program)
  local lists = { { ops = program.ops, result = nil } }
  for _, op in ipairs(program.ops) do
    for _, section in ipairs(op.sections or {}) do lists[#lists + 1] = section end
  end
  return lists
end

-- Operations in program order, each section once: { op, section, index }, index from 0.
function graph.flat(program)
  local flat = {}
  local function add(op, section, loop)
    flat[#flat + 1] = { op = op, section = section, loop = loop, index = #flat }
  end
  for _, op in ipairs(program.ops) do
    if op.layers then
      for _, section in ipairs(op.sections) do
        for _, inner in ipairs(section.ops) do add(inner, section, op) end
      end
    else
      add(op)
    end
  end
  return flat
end

-- { [tensor] = number of uses } in a program, its outputs and sections' results included.
function graph.uses(program)
  local uses = {}
  local function use(tensor) uses[tensor] = (uses[tensor] or 0) + 1 end
  for _, list in ipairs(graph.lists(program)) do
    for _, op in ipairs(list.ops) do
      for _, input in ipairs(op.inputs) do use(input.tensor) end
      if op.layers then use(op.x) end
    end
    if list.result then use(list.result) end
  end
  for _, output in ipairs(program.outputs) do use(output.tensor) end
  return uses
end

-- `new` stands wherever `old` was read.
function graph.replace(program, old, new)
  for _, list in ipairs(graph.lists(program)) do
    for _, op in ipairs(list.ops) do
      for _, input in ipairs(op.inputs) do
        if input.tensor == old then input.tensor = new end
      end
      if op.layers and op.x == old then op.x = new end
    end
    if list.result == old then list.result = new end
  end
  for _, output in ipairs(program.outputs) do
    if output.tensor == old then output.tensor = new end
  end
end

-- Does every reader of a tensor take columns of a wider buffer?
function graph.takes_columns(program, tensor)
  local function takes(node, name)
    for _, strided in ipairs(node.def.strided or {}) do
      if strided == name then return true end
    end
  end
  for _, list in ipairs(graph.lists(program)) do
    if list.result == tensor then return false end
    for _, node in ipairs(list.ops) do
      if node.layers and node.x == tensor then return false end
      for _, input in ipairs(node.inputs) do
        if input.tensor == tensor then
          if not takes(node, input.name) then return false end
          if node.def.in_place == input.name and not graph.takes_columns(program, node.result) then
            return false
          end
        end
      end
    end
  end
  for _, output in ipairs(program.outputs) do if output.tensor == tensor then return false end end
  return true
end

-- Operations whose results nobody reads go; what changes its input or a state stays.
function graph.sweep(program)
  local swept
  repeat
    swept = false
    local uses = graph.uses(program)
    for _, list in ipairs(graph.lists(program)) do
      for i = #list.ops, 1, -1 do
        local op = list.ops[i]
        local keeps = op.layers or op.def.state
        if not keeps and not op.views and not uses[op.result] then
          table.remove(list.ops, i)
          swept = true
        end
      end
    end
  until not swept
end

function graph.elements(shape)
  local n = size.of(1)
  for _, x in ipairs(shape) do n = n * x end
  return n
end

-- A weight as rows and columns: what has more than two dims is a stack of matrices, a vector
-- or a scalar one row.
function graph.matrix(shape)
  local rows = 1
  for i = 1, #shape - 1 do rows = rows * shape[i]:value() end
  return rows, #shape > 0 and shape[#shape]:value() or 1
end

-- The extent of a tensor's rows, nil for weights and for what has a fixed size.
function graph.extent(tensor)
  local first = tensor.shape[1]
  return first and first.extent
end

-- The tensor in whose buffer this one lies, and from which column on (nil: the first).
function graph.root(tensor)
  local column
  while true do
    if tensor.alias_of then
      tensor = tensor.alias_of
    elseif tensor.view_of then
      column, tensor = column and column + tensor.column or tensor.column, tensor.view_of
    else
      return tensor, column
    end
  end
end

-- A description that can't be lowered, with the line of the operation where it shows.
function graph.refuse(node, message, ...)
  error({ message = ("%s:%d: %s"):format(node.file, node.line, message:format(...)), code = 1 }, 0)
end

-- ---- Copies -----------------------------------------------------------------------------

-- Functions that copy operations and sections; `is_new(tensor)` says which tensors are copied
-- with them. Definitions, shapes, weights and inputs are shared.
local function copier(is_new)
  local seen = {}
  local copy_op, copy_section
  local function shallow(x)
    local new = setmetatable({}, getmetatable(x))
    for k, v in pairs(x) do new[k] = v end
    seen[x] = new
    return new
  end
  local function copy_tensor(tensor)
    if not is_new(tensor) then return tensor end
    if seen[tensor] then return seen[tensor] end
    local new = shallow(tensor)
    new.id = next_serial()
    if tensor.op then new.op = copy_op(tensor.op) end
    return new
  end
  local function copy_ops(ops)
    local out = {}
    for i, op in ipairs(ops) do out[i] = copy_op(op) end
    return out
  end
  function copy_section(section)
    local new = shallow(section)
    new.x, new.ops = copy_tensor(section.x), copy_ops(section.ops)
    new.result = copy_tensor(section.result)
    return new
  end
  function copy_op(op)
    if seen[op] then return seen[op] end
    local new = shallow(op)
    new.lines = { table.unpack(op.lines) }
    if op.attrs then
      new.attrs = {}
      for k, v in pairs(op.attrs) do new.attrs[k] = v end
    end
    new.inputs = {}
    for i, input in ipairs(op.inputs) do
      new.inputs[i] = { name = input.name, tensor = copy_tensor(input.tensor) }
    end
    if op.layers then
      new.x, new.sections = copy_tensor(op.x), {}
      for i, section in ipairs(op.sections) do new.sections[i] = copy_section(section) end
    end
    new.result = copy_tensor(op.result)
    return new
  end
  return { ops = copy_ops, section = copy_section, tensor = copy_tensor }
end

-- A program to rewrite.
function graph.copy(program)
  local copy = copier(function(tensor)
    return not (tensor.weight or tensor.state or tensor.input)
  end)
  local out = {}
  for k, v in pairs(program) do out[k] = v end
  out.ops, out.outputs = copy.ops(program.ops), {}
  for i, output in ipairs(program.outputs) do
    out.outputs[i] = { name = output.name, tensor = copy.tensor(output.tensor) }
  end
  return out
end

-- One more copy of a section within its program, for a second format signature: only what its
-- own operations make is new.
function graph.copy_section(section)
  local inside = { [section.x] = true }
  for _, op in ipairs(section.ops) do inside[op.result] = true end
  return copier(function(tensor) return inside[tensor] or false end).section(section)
end

-- ---- Checks -----------------------------------------------------------------------------

-- Every operation reads what stands before it, its shapes agree, and nothing is made twice.
-- Returns true, or false and what is wrong.
function graph.verify(program)
  local made = {}
  local function fault(op, message, ...)
    return false, ("%s:%s: %s: %s"):format(op.file or "?", op.line or "?",
      op.def and op.def.name or "layers", message:format(...))
  end
  local function known(tensor)
    return tensor.weight or tensor.state or tensor.input or made[tensor]
  end
  local function verify_ops(ops)
    for _, op in ipairs(ops) do
      if op.layers then
        if not known(op.x) then return fault(op, "x isn't made yet") end
        for _, section in ipairs(op.sections) do
          made[section.x] = true
          local ok, why = verify_ops(section.ops)
          if not ok then return ok, why end
          if not known(section.result) then
            return fault(op, "a block's result isn't made by it")
          end
          if not size.same_shape(section.result.shape, op.x.shape) then
            return fault(op, "a block's result is %s, its x %s",
              size.shape_text(section.result.shape), size.shape_text(op.x.shape))
          end
        end
      else
        for _, input in ipairs(op.inputs) do
          if not known(input.tensor) then
            return fault(op, "'%s' isn't made yet", input.name)
          end
        end
        if op.result.op ~= op then
          return fault(op, "its result belongs to another operation")
        end
      end
      if made[op.result] then return fault(op, "its result is made twice") end
      made[op.result] = true
      for _, view in ipairs(op.views or {}) do made[view] = true end
    end
    return true
  end
  local ok, why = verify_ops(program.ops)
  if not ok then return ok, why end
  for _, output in ipairs(program.outputs) do
    if not known(output.tensor) then
      return false, ("program %s: output '%s' isn't made"):format(program.name, output.name)
    end
  end
  return true
end

-- ---- Printing ---------------------------------------------------------------------------

local function sorted(map)
  local keys = {}
  for key in pairs(map) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

local function attr_text(attrs)
  local parts = {}
  for _, key in ipairs(sorted(attrs)) do
    local value = attrs[key]
    if type(value) == "table" then value = ("{ %d values }"):format(#value) end
    if math.type(value) == "float" then value = ("%.9g"):format(value) end
    parts[#parts + 1] = key .. " = " .. tostring(value)
  end
  return #parts > 0 and " { " .. table.concat(parts, ", ") .. " }" or ""
end

-- "0 ... 29", or "0 ... 4, 6" for those that aren't adjacent.
function graph.layers_text(layers)
  local parts, i = {}, 1
  while i <= #layers do
    local j = i
    while layers[j + 1] == layers[j] + 1 do j = j + 1 end
    parts[#parts + 1] = i == j and tostring(layers[i]) or layers[i] .. " ... " .. layers[j]
    i = j + 1
  end
  return #parts > 6 and ("%d of them"):format(#layers) or table.concat(parts, ", ")
end

-- The program as text, one line an operation; names are numbered where they repeat.
function graph.text(program)
  local lines, names, taken = {}, {}, {}
  local function name_of(tensor)
    if tensor.role then return tensor.role end
    if tensor.state then return tensor.state end
    if tensor.input then return tensor.input end
    if not names[tensor] then
      local base = tensor.name or (tensor.op and tensor.op.def and tensor.op.def.name) or "x"
      taken[base] = (taken[base] or 0) + 1
      names[tensor] = taken[base] == 1 and base or base .. "." .. taken[base]
    end
    return names[tensor]
  end
  local function put(indent, format, ...) lines[#lines + 1] = indent .. format:format(...) end
  local function put_ops(ops, indent)
    for _, op in ipairs(ops) do
      if op.layers then
        put(indent, "%s = layers(%s)", name_of(op.result), name_of(op.x))
        for _, section in ipairs(op.sections) do
          put(indent, "  %s%s: layers %s; x is %s", section.kind.name,
            section.signature and " [" .. section.signature .. "]" or "",
            graph.layers_text(section.layers), name_of(section.x))
          put_ops(section.ops, indent .. "    ")
          put(indent, "    return %s", name_of(section.result))
        end
      else
        local args = {}
        for i, input in ipairs(op.inputs) do args[i] = name_of(input.tensor) end
        local dtype = op.result.dtype ~= "f32" and " " .. op.result.dtype or ""
        local root = graph.root(op.result)
        local where = root.buffer and ("  at %s"):format(root.buffer.offset) or ""
        local call = ("%s = %s(%s)"):format(name_of(op.result), op.def.name, table.concat(args, ", "))
        put(indent, "%-44s %s%s%s%s", call, size.shape_text(op.result.shape), dtype,
          attr_text(op.attrs), where)
      end
    end
  end
  local inputs = {}
  for i, input in ipairs(program.inputs or {}) do inputs[i] = input.name end
  put("", "%s(%s)", program.name, table.concat(inputs, ", "))
  put_ops(program.ops, "  ")
  for _, output in ipairs(program.outputs) do
    put("", "  output %s = %s", output.name, name_of(output.tensor))
  end
  return table.concat(lines, "\n") .. "\n"
end

return graph
