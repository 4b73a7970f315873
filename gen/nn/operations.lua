-- gen/nn/operations.lua -- Every operation of gen/ops as a word, the operators of tensors, and
-- kv:append(k, v). Each call appends one operation to what is being traced.

local graph = require "gen.graph"
local names = require "gen.names"
local op = require "gen.op"
local size = require "gen.size"

local quoted = names.quoted

local MAX_OPS = 1024    -- of a program or a block; the passes' time grows faster than their number
local MAX_F32 = 3.4e38  -- attributes are emitted as floats

local lua_type = { list = "table", count = "number" }

return function(t)
  local face, fail, is, kinds = t.face, t.fail, t.is, t.kinds
  local source, at_line, describe_type, settle = t.source, t.at_line, t.describe_type, t.settle
  local expose, is_plain = face.expose, face.is_plain

  -- A list of numbers, as an operation keeps it.
  local function numbers(def, name, list)
    local out = {}
    for i, x in ipairs(face.copy(list)) do
      if size.is(x) then x = at_line(def.name, function() return x:value() end) end
      if type(x) ~= "number" or not (x >= -MAX_F32 and x <= MAX_F32) then
        fail("%s: %s must be finite numbers", def.name, name)
      end
      out[i] = x
    end
    return out
  end

  -- The attributes as an operation keeps them: numbers, lists of them, booleans and words.
  local function check_attrs(def, attrs)
    for name, value in pairs(attrs) do
      local want = def.attrs[name]
      if not want then
        local known = {}
        for attr in pairs(def.attrs) do known[#known + 1] = attr end
        table.sort(known)
        fail("%s: unknown attribute %s; it takes: %s", def.name, quoted(name),
          #known > 0 and table.concat(known, ", ") or "none")
      end
      want = want:gsub("%?$", "")
      if want == "list" and is_plain(value) then attrs[name] = numbers(def, name, value) end
      if is(value, kinds.each) then
        fail("%s: %s is the same in all layers of a block; give kinds of layers their own block",
          def.name, name)
      end
      if size.is(value) and (want == "number" or want == "count") then
        attrs[name] = at_line(def.name, function() return value:value() end)
      end
      local x = attrs[name]
      if want == "count" and not (math.type(x) == "integer" and x >= 1 and x < 2 ^ 31) then
        fail("%s: %s must be a positive integer, got %s", def.name, name,
          type(x) == "number" and tostring(x) or describe_type(value))
      end
      if type(x) ~= (lua_type[want] or want) then
        fail("%s: %s must be a %s, got %s", def.name, name, want, describe_type(value))
      end
      if want == "number" and not (x >= -MAX_F32 and x <= MAX_F32) then
        fail("%s: %s must be a finite number, got %s", def.name, name, tostring(x))
      end
      if want == "string" and not names.is_file_name(x) then
        fail("%s: %s can't be %s", def.name, name, quoted(x))
      end
      if want == "table" then fail("%s: %s isn't for descriptions", def.name, name) end
    end
    for name, want in pairs(def.attrs) do
      if attrs[name] == nil and want:sub(-1) ~= "?" then
        fail("%s: give { %s = ... }", def.name, name)
      end
    end
  end

  -- A tensor may be read where it was made, in a block also where the block is called. What a
  -- description keeps from one function for another one has no meaning there.
  local function check_place(def, name, x)
    local function elsewhere(what) fail("%s: %s is %s", def.name, name, what) end
    if x.state == "state" then
      if not (t.tracing and x.block == t.tracing.kind) then elsewhere "another block's state" end
    elseif x.state then
      local own = t.tracing and (x.block == t.tracing.kind or x.section == t.tracing)
      if not own then elsewhere "another block's cache: read it with nn.kv_of" end
    elseif x.weight then
      if x.unused then elsewhere "a weight that is said to be unused" end
      local block = t.tracing and t.tracing.kind
      if x.block ~= block or not x.role then
        elsewhere(block and "a weight that isn't in this block: say w.ROLE"
          or "a weight that isn't in nn.model { ... }")
      end
    elseif x.input then
      local known = false
      for _, input in ipairs(t.program.inputs) do known = known or input.tensor == x end
      if not known then elsewhere "an input of another program" end
    elseif t.made_in[x] ~= t.ops and t.made_in[x] ~= t.program.ops then
      elsewhere "a tensor of another block or program"
    end
  end

  -- A ring holds what was before the step: who reads it reads the step's own keys and values where
  -- they were made.
  local function own_step(def, inputs)
    if not (def.optional.k and def.optional.v) then return end
    for _, input in ipairs(inputs) do
      local state = input.tensor
      if state.state == "kv" and state.window > 0 then
        for _, name in ipairs { "k", "v" } do
          inputs[#inputs + 1] = { name = name, tensor = state.step[name] }
        end
        return
      end
    end
  end

  local function append(def, args, attrs)
    if not t.ops then
      fail("%s: operations belong into a program or a block's forward", def.name)
    end
    if #t.ops >= MAX_OPS then
      fail("%s: more than %d operations; loop over layers with nn.layers", def.name, MAX_OPS)
    end
    local inputs, shapes = {}, {}
    for i, name in ipairs(def.inputs) do
      local x = args[i]
      local want = def.takes[name] or "f32"
      if x == nil and def.optional[name] then
        shapes[i] = false
      elseif want == "kv" then
        if not is(x, kinds.state) or x.state ~= "kv" then
          fail("%s: %s must be a cache, got %s", def.name, name, describe_type(x))
        end
        check_place(def, name, x)
        if not x.n_heads then fail("%s: nothing was appended to the cache yet", def.name) end
        inputs[#inputs + 1], shapes[i] = { name = name, tensor = x }, x
      elseif want == "state" then
        if not is(x, kinds.state) or x.state ~= "state" then
          fail("%s: %s must be a state, got %s", def.name, name, describe_type(x))
        end
        check_place(def, name, x)
        inputs[#inputs + 1], shapes[i] = { name = name, tensor = x }, x.shape
      elseif graph.is_tensor(x) then
        if x.dtype ~= want and want ~= "any" then
          fail("%s: %s must be %s, got %s", def.name, name, want, x.dtype)
        end
        if name == "x" and want == "f32" and not x.weight and #x.shape < 2 then
          fail("%s: x must have rows and columns, got %s", def.name, size.shape_text(x.shape))
        end
        check_place(def, name, x)
        inputs[#inputs + 1], shapes[i] = { name = name, tensor = x }, x.shape
      else
        fail("%s: %s must be a tensor, got %s", def.name, name, describe_type(x))
      end
    end
    local own = face.copy(attrs or {})
    check_attrs(def, own)
    for i = 1, #def.inputs do shapes[i] = shapes[i] or nil end
    shapes[#def.inputs + 1] = own
    local shape = at_line(def.name, def.shape, table.unpack(shapes, 1, #def.inputs + 1))
    for i, x in ipairs(shape) do shape[i] = size.of(x) end
    at_line(def.name, graph.elements, shape)
    for i = 2, #shape do
      if not shape[i]:is_constant() then
        fail("%s: its columns must be known when we generate, got %s", def.name, shape[i])
      end
    end
    if not (shape[1]:multiple() or shape[1]:is_constant()) then
      fail("%s: its rows must be an extent or a multiple of one, got %s", def.name, shape[1])
    end
    own_step(def, inputs)
    local new = graph.op(def, inputs, own, shape, source.where())
    t.ops[#t.ops + 1], t.made_in[new.result] = new, t.ops
    return new.result
  end

  local function call(def)
    return expose(function(...)
      local args = table.pack(...)
      local attrs
      if args.n > #def.inputs or is_plain(args[args.n]) then
        attrs = args[args.n]
        args[args.n] = nil
        args.n = args.n - 1
      end
      if args.n > #def.inputs or (attrs ~= nil and not is_plain(attrs)) then
        fail("%s takes %s and a table of attributes", def.name, table.concat(def.inputs, ", "))
      end
      return (append(def, args, attrs)) -- no tail call: its frame tells source.where() the line
    end)
  end

  local state_words = {}
  state_words.append = expose(function(self, k, v)
    if not is(self, kinds.state) or self.state ~= "kv" then fail("append: say kv:append(k, v)") end
    if self.owner then fail("append: this cache belongs to another layer") end
    if not (graph.is_tensor(k) and graph.is_tensor(v)) then
      fail("append: keys and values must be tensors, got %s and %s",
        describe_type(k), describe_type(v))
    end
    at_line("append", settle, self, k, v)
    self.step = { k = k, v = v, section = t.tracing }
    local def = op.find "kv_append"
    local by_name = { k = k, v = v, kv = self }
    local args = {}
    for i, name in ipairs(def.inputs) do args[i] = by_name[name] end
    append(def, args, {})
    return self
  end)
  face.kind(kinds.state, "cache", {
    read = function(_, name)
      if not state_words[name] then fail("a cache has no %s", quoted(name)) end
      return state_words[name]
    end,
  })

  local function operator(tensor_op, scalar_op)
    return function(a, b)
      if type(a) == "number" then a, b = b, a end
      if type(b) == "number" then
        local def = op.find(scalar_op)
        if not def then fail("there is no operation '%s'", scalar_op) end
        return (append(def, { a }, { factor = b + 0.0 }))
      end
      return (append(op.find(tensor_op), { a, b }, {}))
    end
  end
  face.kind(graph.Tensor, "tensor", {
    add = operator("add", "shift"), mul = operator("mul", "scale"),
  })
  t.call = call
end
