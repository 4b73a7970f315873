-- gen/nn.lua -- All that a description may say: dims, weight, block, layers, model, and every
-- operation of gen/ops by its name. Each call appends one operation to the program that is
-- being traced and remembers the description's line.
--
--   nn.variants { recipe = "q4_1", { "small", n_layers = 2, ... }, ... }   the first is the default
--     model_type = "llama"                   what config.json calls it; a list of several
--     config = { window = "sliding_window" } where config.json has what rows have; gen/config.lua
--   nn.dims { d_model = 40, ... }            named sizes; d.d_q = d.n_heads * d.d_head is one more
--   nn.weight(name, shape)                   a parameter: the checkpoint's name, shape (out, in)
--   nn.block { role = nn.weight(...) }       then: function block.forward(w, x, batch, kv) ... end
--   nn.layers(prefix, { { count, block } })  a group; group:range(i, j) is layers i ... j, from 0
--   nn.model { role = weight or group }      then: function model.step(w, batch) ... end
--   nn.each(function(layer) ... end)         a value of each layer's own; also nn.each { 1, 2 }
--   nn.kv { window = 512 }                   a cache that is not as plain as append() infers
--   nn.kv_of(layer)                          another layer's cache, to read
--   nn.state { shape, dtype, per = "sequence" }   what a sequence carries beside its keys
--   nn.input(name, shape, dtype)             an input that is none of the standard ones
--   nn.tap(name, x)                          x becomes an output of the program
--   nn.include "part"                        another description's parts, from the same folder
--   nn.value(size)                           a size as a number, for loops and ifs

local size = require "gen.size"
local graph = require "gen.graph"
local names = require "gen.names"
local op = require "gen.op"
local standard = require "gen.standard"

local nn = {}
local quoted = names.quoted

-- In this order sizes are declared in C; others follow by name, then those with a definition.
local dims_order = {
  "n_layers", "d_model", "n_heads", "n_kv_heads", "d_head", "d_ff", "n_experts",
  "n_active_experts", "n_vocab", "n_ctx",
}

-- Of one weight: 2^17 of them, as floats, still have less than 2^63 bytes.
local MAX_ELEMENTS = 2.0 ^ 42

-- ---- The words ---------------------------------------------------------------------------

-- `source` is the description being read: where() its line, fail(message) an error there,
-- include(name), variant, config. Returns nn as the description sees it, and the model so far.
function nn.new(source)
  local model = {
    dims = {}, weights = {}, variants = {}, programs = {}, model_type = {}, config_keys = {},
  }
  local words = {}
  local ops -- of the program or block being traced
  local program
  local tracing -- the section that is being traced

  local function fail(message, ...) source.fail(message:format(...)) end

  -- Errors of size arithmetic and of op files get the description's line.
  local function at_line(name, f, ...)
    local results = table.pack(pcall(f, ...))
    if results[1] then return table.unpack(results, 2, results.n) end
    local e = results[2]
    if type(e) == "table" and e.op_message then fail("%s: %s", name, e.op_message) end
    if type(e) == "table" then error(e, 0) end
    if e:find "^[^\n]*%.lua:%d+: " then error(e, 0) end -- a mistake of ours keeps its place
    fail("%s: %s", name, e)
  end

  local function to_shape(name, list)
    if type(list) ~= "table" or size.is(list) or #list == 0 then
      fail("%s: a shape is a list of sizes, got %s", name, type(list))
    end
    local shape = {}
    for i, x in ipairs(list) do
      shape[i] = at_line(name, size.of, x)
      if shape[i]:is_constant() and shape[i]:value() < 1 then
        fail("%s: a size must be positive, got %d", name, shape[i]:value())
      end
    end
    return shape
  end

  -- ---- Variants and dims

  -- What nn.variants says of config.json: a text, or a table of texts.
  local function texts(name, x)
    if type(x) == "string" then x = { x } end
    if x == nil then return {} end
    if type(x) ~= "table" then fail("variants: %s must be a text or a table of texts", name) end
    for _, text in pairs(x) do
      if type(text) ~= "string" or not text:find "^[%w_.-][%w_. -]*$" then
        fail("variants: %s: %s can't be a name in config.json", name, quoted(text))
      end
    end
    return x
  end

  function words.variants(rows)
    if type(rows) ~= "table" or #rows == 0 then
      fail("variants: give a list of { name, ... }")
    end
    local chosen
    for _, row in ipairs(rows) do
      local name = type(row) == "table" and row[1]
      if not names.is_file_name(name) then
        fail("variants: %s can't be a name: letters, digits, '.', '_' and '-'", quoted(name))
      end
      model.variants[#model.variants + 1] = name
      if name == source.variant then chosen = row end
    end
    if source.variant and not chosen then
      source.usage(("there is no variant %s; there are: %s"):format(
        quoted(source.variant), table.concat(model.variants, ", ")))
    end
    chosen = chosen or rows[1]
    model.variant = chosen[1]
    model.recipe = chosen.recipe or rows.recipe
    model.demo_weights = chosen.demo_weights
    model.model_type = texts("model_type", rows.model_type)
    model.config_keys = texts("config", rows.config)
    return (source.configure(chosen, model))
  end

  local dims = {}
  local dims_face = setmetatable({}, {
    __index = function(_, name)
      if not dims[name] then fail("dims has no %s", quoted(name)) end
      return dims[name]
    end,
    __newindex = function(_, name, value)
      if not names.is_identifier(name) then
        fail("dims: %s can't be a size's name: %s", quoted(name), names.RULE)
      end
      if dims[name] then fail("dims: %s is declared already", name) end
      local x = at_line("dims: " .. name, size.of, value)
      if not x:is_constant() or x:value() < 0 or x:value() > 2 ^ 31 - 1 then
        fail("dims: %s must be an integer from 0 to 2^31 - 1, got %s", name, x)
      end
      dims[name] = size.named(name, x)
      model.dims[#model.dims + 1] = dims[name]
    end,
  })

  function words.dims(values)
    if type(values) ~= "table" then fail("dims: give a table of sizes") end
    local place, keys = {}, {}
    for i, name in ipairs(dims_order) do place[name] = i end
    for name in pairs(values) do
      if type(name) ~= "string" then fail("dims: each size needs a name") end
      keys[#keys + 1] = name
    end
    table.sort(keys, function(a, b)
      local i, j = place[a] or 99, place[b] or 99
      if i ~= j then return i < j end
      return a < b
    end)
    for _, name in ipairs(keys) do dims_face[name] = values[name] end
    return dims_face
  end

  function words.value(x)
    return (at_line("value", function() return size.of(x):value() end))
  end

  for _, name in ipairs(size.extents) do words[name] = size.extent(name) end
  for _, name in ipairs(size.params) do words[name] = size.param(name) end

  -- ---- Weights, blocks, layers

  function words.weight(name, shape)
    if type(name) ~= "string" or name == "" or #name > 200 or name:find "[^\32-\126]" then
      fail("weight: its name in the checkpoint must be printable ASCII, got %s", quoted(name))
    end
    shape = to_shape("weight", shape)
    if #shape > 2 then fail("weight: %s has %d dims, at most 2 are known", name, #shape) end
    for _, x in ipairs(shape) do
      if not x:is_constant() then fail("weight: %s can't depend on %s", name, x) end
    end
    local n = 1.0 -- as a float: a product of integers would wrap
    for _, x in ipairs(shape) do n = n * x:value() end
    if n > MAX_ELEMENTS then
      fail("weight: %s has %.3g elements, at most %.3g are planned", name, n, MAX_ELEMENTS)
    end
    local where = source.where()
    return graph.tensor {
      weight = true, hf = name, shape = shape, dtype = "f32", file = where.file, line = where.line,
    }
  end

  -- Weights of a table in the order of their serial numbers; other members by name.
  local function members(name, list)
    if type(list) ~= "table" then fail("%s: give a table of weights by role", name) end
    local weights, others = {}, {}
    for role, x in pairs(list) do
      if not names.is_identifier(role) then
        fail("%s: %s can't be a role: %s", name, quoted(role), names.RULE)
      end
      if graph.is_tensor(x) and x.weight then
        weights[#weights + 1] = { role = role, weight = x }
      else
        others[#others + 1] = { role = role, value = x }
      end
    end
    table.sort(weights, function(a, b)
      if a.weight.id ~= b.weight.id then return a.weight.id < b.weight.id end
      return a.role < b.role
    end)
    local seen = {}
    for _, row in ipairs(weights) do
      local known = seen[row.weight.hf]
      if known and known.weight ~= row.weight then
        fail("%s: %s and %s are both %s in the checkpoint", name, known.role, row.role,
          quoted(row.weight.hf))
      end
      seen[row.weight.hf] = row
    end
    table.sort(others, function(a, b) return a.role < b.role end)
    return weights, others
  end

  local Block = { __name = "block" }
  Block.__index = Block

  function words.block(list)
    local where = source.where()
    local block = setmetatable({ weights = {}, values = {}, where = where }, Block)
    block.name = source.local_name(where) or "block"
    local weights, others = members("block", list)
    for _, row in ipairs(weights) do
      if row.weight.role then fail("block: %s is another weight's tensor already", row.role) end
      row.weight.role, row.weight.block = row.role, block
      block.weights[#block.weights + 1] = row.weight
    end
    for _, row in ipairs(others) do
      local x = row.value
      if type(x) ~= "table" or not (x.each or x.state) then
        fail("block: %s must be a weight, nn.each, nn.kv or nn.state", row.role)
      end
      x.role = row.role
      block.values[#block.values + 1] = x
      if x.state == "kv" then block.kv = x end
    end
    return block
  end

  local Group = { __name = "layers" }
  Group.__index = Group

  function Group:range(first, last)
    local i, j = words.value(first), words.value(last)
    if i < 0 or j < i or j >= #self.layers then
      fail("range(%d, %d): layers are 0 ... %d", i, j, #self.layers - 1)
    end
    local part = { group = self.group or self, layers = self.layers, first = i, last = j }
    return setmetatable(part, Group)
  end

  function words.layers(prefix, schedule)
    if type(prefix) ~= "string" or not prefix:find("%d", 1, true) or prefix:find "[^\32-\126]" then
      fail("layers: the prefix must hold %%d for the layer's number, got %s", quoted(prefix))
    end
    if type(schedule) ~= "table" then fail("layers: give a list of { count, block }") end
    local group = setmetatable({ prefix = prefix, layers = {}, first = 0 }, Group)
    for _, row in ipairs(schedule) do
      if type(row) ~= "table" or getmetatable(row[2]) ~= Block then
        fail("layers: each row is { count, block }")
      end
      local count = words.value(row[1])
      if count < 1 or #group.layers + count > 4096 then
        fail("layers: from 1 to 4096 layers, got %d", #group.layers + count)
      end
      for _ = 1, count do group.layers[#group.layers + 1] = row[2] end
    end
    group.last = #group.layers - 1
    return group
  end

  local Model = { __name = "model" }

  function words.model(list)
    local weights, others = members("model", list)
    model.members = {}
    local face = setmetatable({}, Model)
    for _, row in ipairs(weights) do
      model.members[row.role] = row.weight
      if not row.weight.role then -- tied weights have several roles, the first is their name
        row.weight.role = row.role
        model.weights[#model.weights + 1] = row.weight
      end
    end
    model.groups = {}
    for _, row in ipairs(others) do
      if getmetatable(row.value) ~= Group then
        fail("model: %s must be a weight or nn.layers", row.role)
      end
      row.value.role = row.role
      model.members[row.role] = row.value
      model.groups[#model.groups + 1] = row.value
    end
    model.face = face
    return face
  end

  -- ---- Values that differ from layer to layer, and states

  function words.each(values)
    if type(values) ~= "table" and type(values) ~= "function" then
      fail("each: give a list, or a function of the layer")
    end
    return { each = values }
  end

  -- The layer's value of an nn.each, or the value itself.
  local function value_in(x, layer)
    if type(x) ~= "table" or not x.each then return x end
    local value
    if type(x.each) == "function" then value = x.each(layer) else value = x.each[layer + 1] end
    if value == nil then fail("each: layer %d has no value", layer) end
    return value
  end

  local State = {}
  State.__index = State

  local function is_state(x) return type(x) == "table" and getmetatable(x) == State end

  local function new_state(fields)
    return setmetatable(fields, State)
  end

  local kv_fields = { n_heads = 1, d_key = 1, d_value = 1, window = 1 }
  function words.kv(settings)
    settings = settings or {}
    if type(settings) ~= "table" then fail "kv: give a table of settings" end
    local state = new_state { state = "kv", settings = {} }
    for name, value in pairs(settings) do
      if not kv_fields[name] then fail("kv: unknown setting %s", quoted(name)) end
      state.settings[name] = at_line("kv: " .. name, function() return size.of(value):value() end)
    end
    return state
  end

  function words.kv_of(layer)
    if not tracing then fail("kv_of: say it within a block's forward") end
    local owner_of, first = {}, nil
    for _, reader in ipairs(tracing.layers) do
      owner_of[reader] = words.value(value_in(layer, reader))
      local block = tracing.group.layers[owner_of[reader] + 1]
      if not (block and block.kv and block.kv.n_heads) or owner_of[reader] >= reader then
        fail("kv_of: layer %d can't read the cache of layer %d", reader, owner_of[reader])
      end
      first = first or block.kv
      if block.kv ~= first then fail("kv_of: the layers' caches must be of one kind") end
    end
    return new_state {
      state = "kv", settings = {}, owner = layer, owner_of = owner_of,
      n_heads = first.n_heads, d_key = first.d_key, d_value = first.d_value, window = first.window,
    }
  end

  function words.state(settings)
    if type(settings) ~= "table" or settings.per ~= "sequence" then
      fail "state: per = \"sequence\" is the one kind there is"
    end
    return new_state {
      state = "state", per = "sequence", settings = {}, dtype = settings.dtype or "f32",
      shape = to_shape("state", settings[1] or settings.shape),
    }
  end

  -- What kv rows and kernels need to know; the first append decides what nn.kv left open.
  local function settle(state, k, v)
    local n_heads, d_key = op.heads(k.shape[#k.shape], state.settings.d_key)
    local n_values, d_value = op.heads(v.shape[#v.shape], state.settings.d_value)
    op.check(n_heads == n_values, "keys have %d heads, values %d", n_heads, n_values)
    local found = { n_heads = n_heads, d_key = d_key, d_value = d_value }
    for _, name in ipairs { "n_heads", "d_key", "d_value" } do
      local known = state[name] or state.settings[name]
      op.check(not known or known == found[name], "%s is %s, the cache has %s",
        name, tostring(found[name]), tostring(known))
      state[name] = found[name]
    end
    state.window = state.settings.window or 0
  end

  -- ---- Operations

  local function describe_type(x)
    if graph.is_tensor(x) then return x.weight and "a weight" or "a tensor" end
    if is_state(x) then return x.state == "kv" and "a cache" or "a state" end
    if size.is(x) then return "a size" end
    if type(x) == "table" and x.each then return "a value of each layer's" end
    return x == nil and "nothing" or type(x) == "table" and "a table" or type(x)
  end

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
      if size.is(value) and want == "number" then attrs[name] = value:value() end
      if type(value) == "table" and value.each then
        fail("%s: %s is the same in all layers of a block; give kinds of layers their own block",
          def.name, name)
      end
      if type(attrs[name]) ~= want then
        fail("%s: %s must be a %s, got %s", def.name, name, want, describe_type(value))
      end
    end
    for name, want in pairs(def.attrs) do
      if attrs[name] == nil and want:sub(-1) ~= "?" then
        fail("%s: give { %s = ... }", def.name, name)
      end
    end
  end

  local function append(def, args, attrs)
    if not ops then
      fail("%s: operations belong into a program or a block's forward", def.name)
    end
    if #ops >= 4096 then
      fail("%s: more than 4096 operations; loop over layers with nn.layers", def.name)
    end
    local inputs, shapes = {}, {}
    for i, name in ipairs(def.inputs) do
      local x = args[i]
      local want = def.takes[name] or "f32"
      if x == nil and def.optional[name] then
        shapes[i] = false
      elseif want == "kv" then
        if not is_state(x) or x.state ~= "kv" then
          fail("%s: %s must be a cache, got %s", def.name, name, describe_type(x))
        end
        if not x.n_heads then fail("%s: nothing was appended to the cache yet", def.name) end
        inputs[#inputs + 1], shapes[i] = { name = name, tensor = x }, x
      elseif graph.is_tensor(x) then
        if x.dtype ~= want then
          fail("%s: %s must be %s, got %s", def.name, name, want, x.dtype)
        end
        inputs[#inputs + 1], shapes[i] = { name = name, tensor = x }, x.shape
      else
        fail("%s: %s must be a tensor, got %s", def.name, name, describe_type(x))
      end
    end
    local own = {}
    for k, v in pairs(attrs or {}) do own[k] = v end
    check_attrs(def, own)
    for i = 1, #def.inputs do shapes[i] = shapes[i] or nil end
    shapes[#def.inputs + 1] = own
    local shape = at_line(def.name, def.shape, table.unpack(shapes, 1, #def.inputs + 1))
    for i, x in ipairs(shape) do shape[i] = size.of(x) end
    at_line(def.name, graph.elements, shape)
    if not shape[1]:multiple() then
      fail("%s: its rows must be an extent or a multiple of one, got %s", def.name, shape[1])
    end
    local new = graph.op(def, inputs, own, shape, source.where())
    ops[#ops + 1] = new
    return new.result
  end

  local function call(def)
    return function(...)
      local args = table.pack(...)
      local attrs
      if args.n > #def.inputs or (args.n > 0 and type(args[args.n]) == "table"
          and getmetatable(args[args.n]) == nil) then
        attrs = args[args.n]
        args[args.n] = nil
        args.n = args.n - 1
      end
      if args.n > #def.inputs or (attrs and type(attrs) ~= "table") then
        fail("%s takes %s and a table of attributes", def.name, table.concat(def.inputs, ", "))
      end
      return (append(def, args, attrs)) -- no tail call: its frame tells source.where() the line
    end
  end

  function State:append(k, v)
    if self.owner then fail("append: this cache belongs to another layer") end
    if not (graph.is_tensor(k) and graph.is_tensor(v)) then
      fail("append: keys and values must be tensors, got %s and %s",
        describe_type(k), describe_type(v))
    end
    at_line("append", settle, self, k, v)
    local def = op.find "kv_append"
    local by_name = { k = k, v = v, kv = self }
    local args = {}
    for i, name in ipairs(def.inputs) do args[i] = by_name[name] end
    append(def, args, {})
    return self
  end

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
  graph.Tensor.__add = operator("add", "shift")
  graph.Tensor.__mul = operator("mul", "scale")
  graph.Tensor.__index = nil

  -- ---- Inputs, outputs, parts

  local function use_input(name, shape, dtype)
    for _, input in ipairs(program.inputs) do
      if input.name == name then return input.tensor end
    end
    local tensor = graph.tensor { input = name, shape = shape, dtype = dtype }
    program.inputs[#program.inputs + 1] = { name = name, tensor = tensor }
    return tensor
  end
  function words.input(name, shape, dtype)
    if not program then fail("input: declare it within a program") end
    if not names.is_identifier(name) then
      fail("input: %s can't be a name: %s", quoted(name), names.RULE)
    end
    if not graph.dtype_bytes[dtype or "f32"] then
      fail("input: unknown dtype %s", quoted(dtype))
    end
    return (use_input(name, to_shape("input", shape), dtype or "f32"))
  end

  function words.tap(name, x)
    if not program or tracing or not graph.is_tensor(x) then
      fail("tap: give a name and a tensor, in a program and not in a block's forward")
    end
    if not names.is_identifier(name) then
      fail("tap: %s can't be a name: %s", quoted(name), names.RULE)
    end
    for _, output in ipairs(program.outputs) do
      if output.name == name then fail("tap: there is an output %s already", name) end
    end
    program.outputs[#program.outputs + 1] = { name = name, tensor = x }
    return x
  end

  function words.include(name) return (source.include(name)) end

  -- ---- Tracing

  local batch = setmetatable({}, {
    __index = function(_, name)
      if not standard.shapes[name] then fail("batch has no %s", quoted(name)) end
      return (use_input(name, standard.shapes[name], "i32"))
    end,
    __newindex = function() fail("batch can't be changed") end,
  })

  local function face(values, what)
    return setmetatable({}, {
      __index = function(_, name)
        if values[name] == nil then fail("%s has no %s", what, quoted(name)) end
        return values[name]
      end,
      __newindex = function() fail("%s can't be changed", what) end,
    })
  end

  -- A layer's function is handed one place in the pages, and what a step has appended there must
  -- not be written over by the same step.
  local function check_caches(section)
    local cache
    for _, node in ipairs(section.ops) do
      for _, input in ipairs(node.inputs) do
        local state = input.tensor.state and input.tensor
        if state and cache and state ~= cache then
          fail("block '%s' uses two caches: its own, or another layer's", section.kind.name)
        end
        cache = cache or state
      end
      if node.def.state then
        for _, layer in ipairs(section.layers) do
          local key = section.group.role .. " " .. layer
          if program.appended[key] then
            fail("%s: layer %d has appended to its cache already", section.group.role, layer)
          end
          program.appended[key] = true
        end
      end
    end
  end

  -- Trace each kind of the group once: a call w.layers(x, batch).
  Group.__call = function(self, x, ...)
    if not graph.is_tensor(x) then
      fail("layers: x must be a tensor, got %s", describe_type(x))
    end
    if not program or ops ~= program.ops then fail("layers can't be called within a block") end
    if not (self.group or self).role then fail("layers: give them a role in nn.model { ... }") end
    local where = source.where()
    local item = {
      layers = self.group or self, x = x, inputs = {}, sections = {},
      file = where.file, line = where.line, lines = { where.line },
    }
    local of_block = {}
    for layer = self.first, self.last do
      local block = self.layers[layer + 1]
      local section = of_block[block]
      if not section then
        section = { kind = block, layers = {}, ops = {}, group = item.layers }
        of_block[block] = section
        item.sections[#item.sections + 1] = section
      end
      section.layers[#section.layers + 1] = layer
    end
    for _, section in ipairs(item.sections) do
      local block = section.kind
      if not block.forward then fail("block '%s' has no forward(w, x, ...)", block.name) end
      block.kv = block.kv or new_state { state = "kv", settings = {} }
      block.kv.block = block
      local values = {}
      for _, weight in ipairs(block.weights) do values[weight.role] = weight end
      for _, value in ipairs(block.values) do
        values[value.role] = value
        if value.state == "state" then
          fail("block '%s': %s: no operation keeps a state beside keys and values yet",
            block.name, value.role)
        end
        if value.each then
          value.of_layer = {}
          for _, layer in ipairs(section.layers) do
            value.of_layer[layer] = value_in(value, layer)
          end
        end
      end
      section.x = graph.tensor { shape = x.shape, dtype = "f32", name = "x", block = block }
      ops, tracing = section.ops, section
      local args = table.pack(...)
      args[args.n + 1] = block.kv
      local w = face(values, "block")
      local result = block.forward(w, section.x, table.unpack(args, 1, args.n + 1))
      ops, tracing = program.ops, nil
      if not graph.is_tensor(result) or not size.same_shape(result.shape, x.shape) then
        fail("block '%s' must return %s, got %s", block.name, size.shape_text(x.shape),
          graph.is_tensor(result) and size.shape_text(result.shape) or describe_type(result))
      end
      section.result = result
      check_caches(section)
    end
    item.result = graph.tensor { shape = x.shape, dtype = "f32", op = item, name = x.name }
    ops[#ops + 1] = item
    return item.result
  end

  -- One program: its function runs once.
  local function trace(name, run)
    program = { name = name, inputs = {}, outputs = {}, ops = {}, appended = {} }
    ops = program.ops
    local result = run(face(model.members, "model"), batch)
    ops = nil
    if graph.is_tensor(result) then
      local output = { name = name == "step" and "logits" or "result", tensor = result }
      table.insert(program.outputs, 1, output)
    elseif type(result) == "table" then
      local keys = {}
      for key in pairs(result) do keys[#keys + 1] = key end
      table.sort(keys)
      for _, key in ipairs(keys) do words.tap(key, result[key]) end
    else
      fail("%s: return a tensor or a table of tensors, got %s", name, describe_type(result))
    end
    for _, output in ipairs(program.outputs) do
      if not graph.is_tensor(output.tensor) then
        fail("%s: output %s isn't a tensor", name, output.name)
      end
      if not output.tensor.op then
        fail("%s: output %s isn't computed, it is a weight or an input", name, output.name)
      end
    end
    return program
  end

  -- All programs of the described model, "step" first.
  function source.trace_programs(face_returned)
    if getmetatable(face_returned) ~= Model then fail("return the nn.model { ... }") end
    local keys = {}
    for name, run in pairs(face_returned) do
      if type(run) ~= "function" then fail("model.%s must be a function", quoted(name)) end
      if not names.is_identifier(name) then
        fail("model: %s can't be a program's name", quoted(name))
      end
      keys[#keys + 1] = name
    end
    table.sort(keys, function(a, b)
      if (a == "step") ~= (b == "step") then return a == "step" end
      return a < b
    end)
    if #keys == 0 then fail("model has no programs: write function model.step(w, batch)") end
    for i, name in ipairs(keys) do
      model.programs[i] = trace(name, face_returned[name])
      program = nil
    end
    return model
  end

  local word_face = setmetatable({}, {
    __index = function(_, name)
      if words[name] then return words[name] end
      local def = type(name) == "string" and op.find(name)
      if not def then
        fail("nn has no %s: operations are the files of gen/ops", quoted(name))
      end
      return call(def)
    end,
    __newindex = function() fail("nn can't be changed") end,
  })
  return word_face, model
end

return nn
