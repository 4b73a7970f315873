-- gen/node.lua -- An operation as kernel(), scratch() and writes() of its file see it: plain
-- numbers, formats and names. gen/op.lua says what is in it.

local kv = require "gen.kv"
local size = require "gen.size"

local node = {}

local function dims_of(tensor)
  local dims = {}
  for i, x in ipairs(tensor.shape) do dims[i] = x.extent or (x:is_constant() and x:value() or tostring(x)) end
  return dims
end

-- dim_name(576, "d_model"): a size's name in C, or the number. Of several sizes with that value
-- the preferred one, else one of its kind (n_kv_heads for n_heads), else the first declared.
-- `widths` are names that a program adds: of columns that lie side by side.
function node.namer(model, widths)
  local function find(value, pattern)
    for _, dim in ipairs(model.dims) do
      if dim:value() == value and dim.name:find(pattern) then return dim:c() end
    end
    for _, width in ipairs(pattern == "^d_" and widths or {}) do
      if width.value == value then return width.name end
    end
  end
  return function(n, preferred)
    local value = size.of(n):value()
    if preferred then
      local name = find(value, "^" .. preferred .. "$")
        or find(value, "^" .. preferred:sub(1, 2) .. ".*" .. preferred:match "[^_]*$" .. "$")
      if name or preferred:sub(1, 2) == "n_" then return name or tostring(value) end
    end
    return find(value, "^d_") or find(value, "^n_vocab$") or tostring(value)
  end
end

function node.format(weight, section)
  return section and section.formats and section.formats[weight] or weight.format
end

-- A buffer's columns: those of the whole row where the tensor is a part of it.
local function stride_of(tensor)
  local root = require("gen.graph").root(tensor)
  return root.shape[2] and root.shape[2]:value()
end

function node.face(op, section, context, kv_dtype)
  local model = context.model
  local inputs = {}
  for _, input in ipairs(op.inputs) do
    local tensor = input.tensor
    if tensor.state == "state" then
      inputs[input.name] = { dims = dims_of(tensor), dtype = tensor.dtype }
    elseif tensor.state then
      inputs[input.name] = {
        n_heads = tensor.n_heads, d_key = tensor.d_key, d_value = tensor.d_value,
        page_bytes = model.kv[kv_dtype].page_bytes,
        head_bytes = kv.head_bytes(tensor.d_key, tensor.d_value, kv_dtype),
        window = tensor.window or 0, slot_bytes = model.kv[kv_dtype].slot_bytes,
      }
    else
      inputs[input.name] = {
        dims = dims_of(tensor), dtype = tensor.dtype, act = tensor.dtype,
        format = tensor.weight and node.format(tensor, section) or nil,
        stride = not tensor.weight and stride_of(tensor) or nil,
      }
    end
  end
  if op.weights and not op.interleaved then -- side by side: one matrix
    inputs.weight.dims[1] = op.result.shape[2]:value()
  end
  local attrs = {}
  for k, v in pairs(op.attrs) do attrs[k] = size.is(v) and v:value() or v end
  return {
    inputs = inputs, y = { dims = dims_of(op.result), dtype = op.result.dtype }, out = op.out,
    attrs = attrs, kv_dtype = kv_dtype, dim_name = context.dim_name,
  }
end

-- What a CPU family calls for an operation, or nil where nobody has written it yet.
function node.kernel(op, section, context, kv_dtype)
  if op.def.reshape or not op.def.kernel then return nil end
  return op.def.kernel(node.face(op, section, context, kv_dtype), context.family)
end

-- What a CUDA family launches for it: { kernels, copies, scratch, fast_scratch, launches }; without `launches` it is
-- planned only.
function node.launches(op, section, context, kv_dtype)
  local cuda = op.def.cuda
  if op.def.reshape then return { kernels = 0 } end
  if type(cuda) == "function" then
    cuda = cuda(node.face(op, section, context, kv_dtype), context.family)
  end
  if not cuda then
    require("gen.graph").refuse(op, "%s: gen/ops/%s.lua doesn't say what a GPU launches for it",
      op.def.name, op.def.name)
  end
  if not cuda.launches then return cuda end
  return {
    kernels = #cuda.launches, copies = cuda.copies, scratch = cuda.scratch,
    fast_scratch = cuda.fast_scratch, launches = cuda.launches,
  }
end

-- The arguments of all kernels that a family calls for it.
function node.args(op, section, context, kv_dtype)
  if not context.family.sm then
    local kernel = node.kernel(op, section, context, kv_dtype)
    return kernel and kernel.args or {}
  end
  local args = {}
  for _, launch in ipairs(node.launches(op, section, context, kv_dtype).launches or {}) do
    table.move(launch.args, 1, #launch.args, #args + 1, args)
  end
  return args
end

-- Bytes of scratch: of a thread on a CPU, of a launch on a GPU; and there of one under --fast-gemm.
function node.scratch(op, section, context, kv_dtype)
  if context.family.sm then
    local found = node.launches(op, section, context, kv_dtype)
    return found.scratch or 0, found.fast_scratch or 0
  end
  if not op.def.scratch then return 0, 0 end
  return op.def.scratch(node.face(op, section, context, kv_dtype), context.family) or 0, 0
end

return node
