-- gen/nn.lua -- All that a description may say: dims, weight, block, layers, model, and every
-- operation of gen/ops by its name. Each call appends one operation to the program that is
-- being traced and remembers the description's line.
--
--   nn.variants { recipe = "q4_1", { "small", n_layers = 2, ... }, ... }   the first is the default
--     model_type = "llama"                   what config.json calls it; a list of several
--     config = { window = "sliding_window" } where config.json has what rows have; gen/config.lua
--   nn.dims { d_model = 40, ... }            named sizes; d.d_q = d.n_heads * d.d_head is one more
--   nn.weight(name, shape)                   a parameter: the checkpoint's name, shape (out, in);
--                                            { } is a scalar, (n, out, in) a stack of matrices
--   nn.unused(name, shape)                   what a checkpoint holds and no program reads
--   nn.block { role = nn.weight(...) }       then: function block.forward(w, x, batch, kv) ... end
--   nn.layers(prefix, { { count, block } })  a group; group:range(i, j) is layers i ... j, from 0
--   nn.model { role = weight or group }      then: function model.step(w, batch) ... end
--   nn.each(function(layer) ... end)         a value of each layer's own; also nn.each { 1, 2 }
--   nn.kv { window = 512 }                   a cache that is not as plain as append() infers
--   nn.kv_of(layer)                          another layer's cache, to read
--   nn.state { shape, dtype, per = "sequence" }   what a sequence carries beside its keys;
--                                            per_draft = true: one more for each drafted token
--   nn.encoder({ smallest, largest }, f)     a program over items of so many soft tokens
--   nn.input(name, shape, dtype)             an input that is none of the standard ones
--   nn.tap(name, x)                          x becomes an output of the program
--   nn.include "part"                        another description's parts, from the same folder
--   nn.value(size)                           a size as a number, for loops and ifs
--
-- A description holds handles, and what stands below holds objects: gen/membrane.lua lies in
-- between. `words` take and give objects. A table that a description hands over is copied at
-- once; its functions are called while it is traced, and never later.

local size = require "gen.size"
local graph = require "gen.graph"
local membrane = require "gen.membrane"
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
local MAX_INPUTS = 32
local MAX_OPS = 1024    -- of a program or a block; the passes' time grows faster than their number
local MAX_F32 = 3.4e38  -- attributes are emitted as floats

-- What objects there are beside sizes and tensors; gen/membrane.lua tells them by these.
local Block, Group, Model = { __name = "block" }, { __name = "layers" }, { __name = "model" }
local Dims, Each, State = { __name = "dims" }, { __name = "each" }, { __name = "state" }
local Batch, Weights = { __name = "batch" }, { __name = "weights" }
local Encoder = { __name = "encoder" }

local function is(x, kind) return type(x) == "table" and getmetatable(x) == kind end

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
  local made_in = {} -- [tensor]: the list of operations that makes it
  local foreign = {} -- objects that hold a function of the description's
  local described = setmetatable({ programs = {} }, Model)

  local function fail(message, ...) source.fail(message:format(...)) end

  local face = membrane.new(fail)
  local expose, wrap, unwrap, is_plain = face.expose, face.wrap, face.unwrap, face.is_plain

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

  local function describe_type(x)
    if graph.is_tensor(x) then return x.weight and "a weight" or "a tensor" end
    if is(x, State) then return x.state == "kv" and "a cache" or "a state" end
    if size.is(x) then return "a size" end
    if is(x, Each) then return "a value of each layer's" end
    if type(x) == "table" and getmetatable(x) then return "a " .. getmetatable(x).__name end
    return x == nil and "nothing" or type(x) == "table" and "a table" or type(x)
  end

  -- `scalar`: a shape may have no dims.
  local function to_shape(name, list, scalar)
    local given = is_plain(list) and face.copy(list) or {}
    if #given == 0 and not (scalar and is_plain(list)) then
      fail("%s: a shape is a list of sizes, got %s", name,
        is_plain(list) and "none" or describe_type(list))
    end
    local shape = {}
    for i, x in ipairs(given) do
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
    if not is_plain(x) then fail("variants: %s must be a text or a table of texts", name) end
    x = face.copy(x)
    for _, text in pairs(x) do
      if type(text) ~= "string" or not text:find "^[%w_.-][%w_. -]*$" then
        fail("variants: %s: %s can't be a name in config.json", name, quoted(text))
      end
    end
    return x
  end

  -- A recipe's or file's name that a variant states.
  local function stated(what, name)
    if name ~= nil and not names.is_file_name(name) then
      fail("variants: %s can't be %s: letters, digits, '.', '_' and '-'", quoted(name), what)
    end
    return name
  end

  local function variants(rows)
    if not is_plain(rows) then fail("variants: give a list of { name, ... }") end
    rows = face.copy(rows)
    if #rows == 0 then fail("variants: give a list of { name, ... }") end
    local chosen
    for i, row in ipairs(rows) do
      rows[i] = is_plain(row) and face.copy(row) or {}
      local name = rows[i][1]
      if not names.is_file_name(name) then
        fail("variants: %s can't be a name: letters, digits, '.', '_' and '-'", quoted(name))
      end
      model.variants[#model.variants + 1] = name
      if name == source.variant then chosen = rows[i] end
    end
    if source.variant and not chosen then
      source.usage(("there is no variant %s; there are: %s"):format(
        quoted(source.variant), table.concat(model.variants, ", ")))
    end
    chosen = chosen or rows[1]
    model.variant = chosen[1]
    model.recipe = stated("a recipe", chosen.recipe or rows.recipe)
    model.demo_weights = stated("weights", chosen.demo_weights)
    model.model_type = texts("model_type", rows.model_type)
    model.config_keys = texts("config", rows.config)
    -- A table of its own; what is in it is the description's.
    local row = source.configure(chosen, model)
    return row
  end

  local dims = setmetatable({ by_name = {} }, Dims)

  local function read_dim(_, name)
    if not dims.by_name[name] then fail("dims has no %s", quoted(name)) end
    return wrap(dims.by_name[name])
  end

  local function declare_dim(_, name, value)
    if not names.is_size(name) then
      fail("dims: %s can't be a size's name: %s", quoted(name), names.SIZE_RULE)
    end
    if dims.by_name[name] then fail("dims: %s is declared already", name) end
    local x = at_line("dims: " .. name, size.of, value)
    if not x:is_constant() or x:value() < 0 or x:value() > 2 ^ 31 - 1 then
      fail("dims: %s must be an integer from 0 to 2^31 - 1, got %s", name, x)
    end
    dims.by_name[name] = size.named(name, x)
    model.dims[#model.dims + 1] = dims.by_name[name]
  end
  face.kind(Dims, "dims", { read = read_dim, write = declare_dim })

  function words.dims(values)
    if not is_plain(values) then fail("dims: give a table of sizes") end
    values = face.copy(values)
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
    for _, name in ipairs(keys) do declare_dim(dims, name, values[name]) end
    return dims
  end

  function words.value(x)
    return (at_line("value", function() return size.of(x):value() end))
  end

  local Size = getmetatable(size.of(0))
  local arithmetic = {}
  for _, operator in ipairs { "add", "sub", "mul", "div", "idiv" } do
    local compute = Size["__" .. operator]
    arithmetic[operator] = function(a, b)
      local result = at_line("size", compute, a, b)
      return result
    end
  end
  arithmetic.eq, arithmetic.tostring = Size.__eq, Size.__tostring
  arithmetic.lt = function(a, b) return (at_line("size", Size.__lt, a, b)) end
  arithmetic.le = function(a, b) return (at_line("size", Size.__le, a, b)) end
  face.kind(Size, "size", arithmetic)

  for _, name in ipairs(size.extents) do words[name] = size.extent(name) end
  for _, name in ipairs(size.params) do words[name] = size.param(name) end

  -- ---- Weights, blocks, layers

  function words.weight(name, shape)
    if type(name) ~= "string" or name == "" or #name > 200 or name:find "[^\32-\126]" then
      fail("weight: its name in the checkpoint must be printable ASCII, got %s", quoted(name))
    end
    shape = to_shape("weight", shape, true)
    if #shape > 4 then fail("weight: %s has %d dims, at most 4 are known", name, #shape) end
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

  function words.unused(name, shape)
    local weight = words.weight(name, shape)
    weight.unused = true
    return weight
  end

  -- Weights of a table in the order of their serial numbers; other members by name.
  local function members(name, list)
    if not is_plain(list) then fail("%s: give a table of weights by role", name) end
    local weights, others = {}, {}
    for role, x in pairs(face.copy(list)) do
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
      if not (is(x, Each) or is(x, State)) or x.owner then
        fail("block: %s must be a weight, nn.each, nn.kv or nn.state", row.role)
      end
      if x.block then fail("block: %s belongs to another block already", row.role) end
      x.role, x.block = row.role, block
      block.values[#block.values + 1] = x
      if x.state == "kv" then
        if block.kv then fail("block: it has two caches, %s and %s", block.kv.role, x.role) end
        block.kv = x
      end
    end
    foreign[#foreign + 1] = block
    return block
  end
  face.kind(Block, "block", {
    read = function(block, name)
      if name ~= "forward" then fail("block has no %s, but its forward", quoted(name)) end
      return block.forward
    end,
    write = function(block, name, x)
      if name ~= "forward" then
        fail("block: %s can't be set: write function block.forward(w, x, ...)", quoted(name))
      end
      if type(x) ~= "function" then fail("block.forward must be a function") end
      block.forward = x
    end,
  })

  local function range(self, first, last)
    if not is(self, Group) then fail("range: say w.ROLE:range(first, last)") end
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
    if #prefix > 200 then fail("layers: the prefix is longer than 200 letters") end
    if not is_plain(schedule) then fail("layers: give a list of { count, block }") end
    local group = setmetatable({ prefix = prefix, layers = {}, first = 0 }, Group)
    for _, row in ipairs(face.copy(schedule)) do
      row = is_plain(row) and face.copy(row) or {}
      if not is(row[2], Block) then
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

  function words.model(list)
    if model.members then fail("model: there is one already") end
    local weights, others = members("model", list)
    model.members = {}
    for _, row in ipairs(weights) do
      if row.weight.block then fail("model: %s is a weight of a block", row.role) end
      model.members[row.role] = row.weight
      if not row.weight.role then -- tied weights have several roles, the first is their name
        row.weight.role = row.role
        model.weights[#model.weights + 1] = row.weight
      end
    end
    model.groups = {}
    for _, row in ipairs(others) do
      local group = row.value
      if not is(group, Group) or group.group or group.role then
        fail("model: %s must be a weight or nn.layers, once", row.role)
      end
      group.role = row.role
      model.members[row.role] = group
      model.groups[#model.groups + 1] = group
    end
    return described
  end
  face.kind(Model, "model", {
    read = function(_, name)
      if not described.programs[name] then fail("model has no program %s", quoted(name)) end
      return described.programs[name]
    end,
    write = function(_, name, run)
      if not names.is_program(name) then
        fail("model: %s can't be a program's name: %s", quoted(name), names.PROGRAM_RULE)
      end
      if type(run) ~= "function" and not is(run, Encoder) then
        fail("model.%s must be a function, or nn.encoder", name)
      end
      if (name == "step" or name == "draft") and is(run, Encoder) then
        fail("model.%s counts sequences, nn.encoder is for others", name)
      end
      described.programs[name] = run
    end,
  })

  -- Soft tokens of the smallest and largest item, of which graphs follow.
  function words.encoder(settings, run)
    settings = is_plain(settings) and face.copy(settings) or {}
    for _, name in ipairs { "smallest", "largest" } do
      local x = settings[name] and words.value(settings[name])
      settings[name] = x
      if math.type(x) ~= "integer" or x < 1 or x > 2 ^ 20 then
        fail("encoder: give { smallest = ..., largest = ... }: soft tokens of one item")
      end
    end
    if settings.smallest > settings.largest then
      fail("encoder: smallest = %d is above largest = %d", settings.smallest, settings.largest)
    end
    if type(run) ~= "function" then fail "encoder: give a function(w, batch) too" end
    local encoder = setmetatable({
      smallest = settings.smallest, largest = settings.largest, run = run,
    }, Encoder)
    foreign[#foreign + 1] = encoder
    return encoder
  end
  face.kind(Encoder, "encoder", {})

  -- ---- Values that differ from layer to layer, and states

  function words.each(values)
    if not is_plain(values) and type(values) ~= "function" then
      fail("each: give a list, or a function of the layer")
    end
    if is_plain(values) then values = face.copy(values) end
    local each = setmetatable({ each = values }, Each)
    foreign[#foreign + 1] = each
    return each
  end
  face.kind(Each, "value of each layer's", {})

  -- The layer's value of an nn.each, or the value itself.
  local function value_in(x, layer)
    if not is(x, Each) then return x end
    local value
    if type(x.each) == "function" then
      value = unwrap((x.each(layer)))
    else
      value = x.each[layer + 1]
    end
    if value == nil then fail("each: layer %d has no value", layer) end
    if type(value) ~= "number" and type(value) ~= "boolean" and not size.is(value) then
      fail("each: layer %d has %s: give numbers", layer, describe_type(value))
    end
    return value
  end

  local function new_state(fields)
    return setmetatable(fields, State)
  end

  local kv_fields = { n_heads = 1, d_key = 1, d_value = 1, window = 1 }
  function words.kv(settings)
    if settings == nil then settings = {} end
    if not is_plain(settings) then fail "kv: give a table of settings" end
    local state = new_state { state = "kv", settings = {} }
    for name, value in pairs(face.copy(settings)) do
      if not kv_fields[name] then fail("kv: unknown setting %s", quoted(name)) end
      local x = at_line("kv: " .. name, function() return size.of(value):value() end)
      if x < (name == "window" and 0 or 1) or x > 2 ^ 31 - 1 then
        fail("kv: %s must be positive, got %d", name, x)
      end
      state.settings[name] = x
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
    local step = first.step -- of a ring: the last of its layers leaves its keys and values behind
    for reader, layer in pairs(first.window > 0 and owner_of or {}) do
      if layer ~= step.section.layers[#step.section.layers] then
        fail("kv_of: layer %d reads layer %d's ring, which layer %d's keys have replaced", reader,
          layer, step.section.layers[#step.section.layers])
      end
    end
    return new_state {
      state = "kv", settings = {}, owner = true, owner_of = owner_of, section = tracing, step = step,
      n_heads = first.n_heads, d_key = first.d_key, d_value = first.d_value, window = first.window,
    }
  end

  function words.state(settings)
    settings = is_plain(settings) and face.copy(settings) or {}
    if settings.per ~= "sequence" then
      fail "state: per = \"sequence\" is the one kind there is"
    end
    local dtype = settings.dtype or "f32"
    if not graph.dtype_bytes[dtype] then fail("state: unknown dtype %s", quoted(dtype)) end
    return new_state {
      state = "state", per = "sequence", settings = {}, dtype = dtype,
      per_draft = settings.per_draft == true,
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
      if is(value, Each) then
        fail("%s: %s is the same in all layers of a block; give kinds of layers their own block",
          def.name, name)
      end
      if size.is(value) and want == "number" then
        attrs[name] = at_line(def.name, function() return value:value() end)
      end
      local x = attrs[name]
      if type(x) ~= (want == "list" and "table" or want) then
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
      if not (tracing and x.block == tracing.kind) then elsewhere "another block's state" end
    elseif x.state then
      local own = tracing and (x.block == tracing.kind or x.section == tracing)
      if not own then elsewhere "another block's cache: read it with nn.kv_of" end
    elseif x.weight then
      if x.unused then elsewhere "a weight that is said to be unused" end
      local block = tracing and tracing.kind
      if x.block ~= block or not x.role then
        elsewhere(block and "a weight that isn't in this block: say w.ROLE"
          or "a weight that isn't in nn.model { ... }")
      end
    elseif x.input then
      local known = false
      for _, input in ipairs(program.inputs) do known = known or input.tensor == x end
      if not known then elsewhere "an input of another program" end
    elseif made_in[x] ~= ops and made_in[x] ~= program.ops then
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
    if not ops then
      fail("%s: operations belong into a program or a block's forward", def.name)
    end
    if #ops >= MAX_OPS then
      fail("%s: more than %d operations; loop over layers with nn.layers", def.name, MAX_OPS)
    end
    local inputs, shapes = {}, {}
    for i, name in ipairs(def.inputs) do
      local x = args[i]
      local want = def.takes[name] or "f32"
      if x == nil and def.optional[name] then
        shapes[i] = false
      elseif want == "kv" then
        if not is(x, State) or x.state ~= "kv" then
          fail("%s: %s must be a cache, got %s", def.name, name, describe_type(x))
        end
        check_place(def, name, x)
        if not x.n_heads then fail("%s: nothing was appended to the cache yet", def.name) end
        inputs[#inputs + 1], shapes[i] = { name = name, tensor = x }, x
      elseif want == "state" then
        if not is(x, State) or x.state ~= "state" then
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
    ops[#ops + 1], made_in[new.result] = new, ops
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
    if not is(self, State) or self.state ~= "kv" then fail("append: say kv:append(k, v)") end
    if self.owner then fail("append: this cache belongs to another layer") end
    if not (graph.is_tensor(k) and graph.is_tensor(v)) then
      fail("append: keys and values must be tensors, got %s and %s",
        describe_type(k), describe_type(v))
    end
    at_line("append", settle, self, k, v)
    self.step = { k = k, v = v, section = tracing }
    local def = op.find "kv_append"
    local by_name = { k = k, v = v, kv = self }
    local args = {}
    for i, name in ipairs(def.inputs) do args[i] = by_name[name] end
    append(def, args, {})
    return self
  end)
  face.kind(State, "cache", {
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

  -- ---- Inputs, outputs, parts

  local function use_input(name, shape, dtype)
    if not program then fail("%s: inputs belong into a program", name) end
    for _, input in ipairs(program.inputs) do
      if input.name == name then
        local known = input.tensor
        if known.dtype ~= dtype or not size.same_shape(known.shape, shape) then
          fail("input: %s is %s in %s already", name, known.dtype, size.shape_text(known.shape))
        end
        return known
      end
    end
    if #program.inputs >= MAX_INPUTS then fail("input: more than %d inputs", MAX_INPUTS) end
    local where = source.where()
    local tensor = graph.tensor {
      input = name, shape = shape, dtype = dtype, file = where.file, line = where.line,
    }
    program.inputs[#program.inputs + 1] = { name = name, tensor = tensor }
    return tensor
  end
  function words.input(name, shape, dtype)
    if not program then fail("input: declare it within a program") end
    if not names.is_input(name) then
      fail("input: %s can't be a name: %s", quoted(name), names.RULE)
    end
    if standard.shapes[name] then
      fail("input: %s is one that an engine fills: say batch.%s", name, name)
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

  -- ---- Tracing

  local batch = setmetatable({}, Batch)
  face.kind(Batch, "batch", {
    read = function(_, name)
      if not standard.shapes[name] then fail("batch has no %s", quoted(name)) end
      local tensor = use_input(name, standard.shapes[name], "i32")
      return wrap(tensor)
    end,
  })

  -- What a function finds by role in its `w`.
  local function by_role(values, what)
    return wrap(setmetatable({ values = values, what = what }, Weights))
  end
  face.kind(Weights, "w", {
    read = function(self, name)
      if self.values[name] == nil then fail("%s has no %s", self.what, quoted(name)) end
      return wrap(self.values[name])
    end,
    write = function(self) fail("%s can't be changed", self.what) end,
  })

  -- A layer's function is handed one place in the pages, and what a step has appended there must
  -- not be written over by the same step.
  local function check_caches(section)
    local cache
    for _, node in ipairs(section.ops) do
      for _, input in ipairs(node.inputs) do
        local state = input.tensor.state == "kv" and input.tensor
        if state and cache and state ~= cache then
          fail("block '%s' uses two caches: its own, or another layer's", section.kind.name)
        end
        cache = cache or state
      end
      if node.def.state == "kv" then
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

  -- A ring is written when all of the block's operations have read what was in it.
  local function rings_last(section)
    local ops = section.ops
    for i, node in ipairs(ops) do
      local ring = node.def.state == "kv" and graph.input(node, "kv")
      local last = i
      for j = i + 1, ring and ring.window > 0 and #ops or i do
        for _, input in ipairs(ops[j].inputs) do if input.tensor == ring then last = j end end
      end
      if last > i then
        table.insert(ops, last, table.remove(ops, i))
        return
      end
    end
  end

  -- Trace each kind of the group once: a call w.layers(x, batch).
  local function call_layers(self, x, ...)
    x = unwrap(x)
    if not graph.is_tensor(x) or x.weight or x.dtype ~= "f32" or #x.shape ~= 2 then
      fail("layers: x must be a tensor of rows, got %s", describe_type(x))
    end
    if not program or ops ~= program.ops then fail("layers can't be called within a block") end
    if not (self.group or self).role then fail("layers: give them a role in nn.model { ... }") end
    if made_in[x] ~= ops then fail("layers: x isn't computed by this program") end
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
        for _, layer in ipairs(is(value, Each) and section.layers or {}) do
          value_in(value, layer) -- each has one
        end
      end
      section.x = graph.tensor { shape = x.shape, dtype = "f32", name = "x", block = block }
      ops, tracing, made_in[section.x] = section.ops, section, section.ops
      local args = table.pack(...)
      args[args.n + 1] = wrap(block.kv)
      local result = unwrap((block.forward(by_role(values, "block"), wrap(section.x),
        table.unpack(args, 1, args.n + 1))))
      ops, tracing = program.ops, nil
      if not graph.is_tensor(result) or not size.same_shape(result.shape, x.shape) then
        fail("block '%s' must return %s, got %s", block.name, size.shape_text(x.shape),
          graph.is_tensor(result) and size.shape_text(result.shape) or describe_type(result))
      end
      section.result = result
      check_caches(section)
      rings_last(section)
    end
    item.result = graph.tensor { shape = x.shape, dtype = "f32", op = item, name = x.name }
    ops[#ops + 1], made_in[item.result] = item, ops
    return item.result
  end
  local group_words = { range = expose(range) }
  face.kind(Group, "group of layers", {
    call = call_layers,
    read = function(_, name)
      if not group_words[name] then fail("layers have no %s", quoted(name)) end
      return group_words[name]
    end,
  })

  -- What a program gives back: a tensor, or a table of them by name.
  local function take_result(name, result)
    if graph.is_tensor(result) then
      local output = { name = name == "step" and "logits" or "result", tensor = result }
      table.insert(program.outputs, 1, output)
    elseif is_plain(result) then
      local given, keys = face.copy(result), {}
      for key in pairs(given) do
        if not names.is_identifier(key) then
          fail("%s: an output can't be called %s: %s", name, quoted(key), names.RULE)
        end
        keys[#keys + 1] = key
      end
      table.sort(keys)
      for _, key in ipairs(keys) do words.tap(key, given[key]) end
    else
      fail("%s: return a tensor or a table of tensors, got %s", name, describe_type(result))
    end
  end

  local function check_outputs(name)
    local taken = {}
    for _, output in ipairs(program.outputs) do
      local x = output.tensor
      if not x.op then
        fail("%s: output %s isn't computed, it is a weight or an input", name, output.name)
      end
      if made_in[x] ~= program.ops then
        fail("%s: output %s isn't computed by this program", name, output.name)
      end
      if taken[output.name] then fail("%s: there are two outputs %s", name, output.name) end
      taken[output.name] = true
    end
    if #program.outputs == 0 then fail("%s: it returns nothing", name) end
  end

  -- The engine's side, gen/standard.lua: what it asks of a program that it runs, and fills.
  local function check_contract(name)
    local rule = standard.programs[name] or {}
    for _, want in ipairs(rule.outputs or {}) do
      local found
      for _, output in ipairs(program.outputs) do
        if output.name == want.name then found = output.tensor end
      end
      local shape = {}
      for i, x in ipairs(want.shape) do
        shape[i] = type(x) == "string" and dims.by_name[x] or x
        if type(shape[i]) == "string" then fail("%s: nn.dims says no %s", name, x) end
      end
      if not found then
        fail("%s: return %s, %s", name, want.name, size.shape_text(shape))
      end
      if not size.same_shape(found.shape, shape) then
        fail("%s: %s must be %s, got %s: %s", name, want.name, size.shape_text(shape),
          size.shape_text(found.shape), want.hint)
      end
    end
    local read = {}
    for _, row in ipairs(graph.flat(program)) do
      for _, input in ipairs(row.op.inputs) do read[input.tensor] = true end
    end
    for _, input in ipairs(program.inputs) do
      local x = input.tensor
      local function refuse(message)
        error({ message = ("%s:%d: input: %s"):format(x.file, x.line, message), code = 1 }, 0)
      end
      if not read[x] then refuse(("no operation of %s reads %s"):format(name, input.name)) end
      if rule.inputs and not rule.inputs[input.name] then
        refuse(("nobody fills %s: %s is given what batch has"):format(input.name, name))
      end
    end
  end

  -- One program: its function runs once.
  local function trace(name, run)
    program = { name = name, inputs = {}, outputs = {}, ops = {}, appended = {} }
    ops = program.ops
    if is(run, Encoder) then
      program.smallest, program.largest, run = run.smallest, run.largest, run.run
    end
    local result = unwrap((run(by_role(model.members, "model"), wrap(batch))))
    take_result(name, result)
    check_outputs(name)
    check_contract(name)
    ops = nil
    return program
  end

  -- All programs of the described model, "step" first.
  function source.trace_programs(returned)
    if unwrap(returned) ~= described or not model.members then
      fail("return the nn.model { ... }")
    end
    local functions, keys = {}, {}
    for name, run in pairs(described.programs) do
      keys[#keys + 1], functions[name] = name, run
    end
    table.sort(keys, function(a, b)
      if (a == "step") ~= (b == "step") then return a == "step" end
      return a < b
    end)
    if not functions.step then
      fail("model has no step: write function model.step(w, batch), which gives logits")
    end
    for i, name in ipairs(keys) do
      model.programs[i] = trace(name, functions[name])
      program = nil
    end
    -- Nothing of the description's can be called when its run is over.
    described.programs = {}
    for _, object in ipairs(foreign) do
      object.forward, object.each, object.run = nil, nil, nil
    end
    return model
  end

  -- A size as text, nil for all else.
  function source.size_text(x)
    x = unwrap(x)
    return size.is(x) and tostring(x) or nil
  end

  -- What `nn` holds: words of objects behind the membrane, operations, and two words that give
  -- back what is the description's own.
  local faces = { variants = variants, include = function(name) return (source.include(name)) end }
  for name, word in pairs(words) do
    faces[name] = type(word) == "function" and expose(word) or wrap(word)
  end
  return setmetatable({}, {
    __index = function(_, name)
      if faces[name] ~= nil then return faces[name] end
      local def = type(name) == "string" and op.find(name)
      if not def or def.internal then
        fail("nn has no %s: operations are the files of gen/ops", quoted(name))
      end
      faces[name] = call(def)
      return faces[name]
    end,
    __newindex = function() fail("nn can't be changed") end,
    __metatable = false,
  }), model
end

return nn
