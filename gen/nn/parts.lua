-- gen/nn/parts.lua -- Words for what a model is made of: weights, blocks, groups of layers, the model
-- itself, encoders.

local graph = require "gen.graph"
local names = require "gen.names"
local size = require "gen.size"

local quoted = names.quoted

-- Of one weight: 2^17 of them, as floats, still have less than 2^63 bytes.
local MAX_ELEMENTS = 2.0 ^ 42

return function(t)
  local model, words, face, fail, is, kinds = t.model, t.words, t.face, t.fail, t.is, t.kinds
  local source, to_shape, is_plain = t.source, t.to_shape, t.face.is_plain

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
    local block = setmetatable({ weights = {}, values = {}, where = where }, kinds.block)
    block.name = source.local_name(where) or "block"
    local weights, others = members("block", list)
    for _, row in ipairs(weights) do
      if row.weight.role then fail("block: %s is another weight's tensor already", row.role) end
      row.weight.role, row.weight.block = row.role, block
      block.weights[#block.weights + 1] = row.weight
    end
    for _, row in ipairs(others) do
      local x = row.value
      if not (is(x, kinds.each) or is(x, kinds.state)) or x.owner then
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
    t.foreign[#t.foreign + 1] = block
    return block
  end
  face.kind(kinds.block, "block", {
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
    if not is(self, kinds.group) then fail("range: say w.ROLE:range(first, last)") end
    local i, j = words.value(first), words.value(last)
    if i < 0 or j < i or j >= #self.layers then
      fail("range(%d, %d): layers are 0 ... %d", i, j, #self.layers - 1)
    end
    local part = { group = self.group or self, layers = self.layers, first = i, last = j }
    return setmetatable(part, kinds.group)
  end

  function words.layers(prefix, schedule)
    if type(prefix) ~= "string" or not prefix:find("%d", 1, true) or prefix:find "[^\32-\126]" then
      fail("layers: the prefix must hold %%d for the layer's number, got %s", quoted(prefix))
    end
    if #prefix > 200 then fail("layers: the prefix is longer than 200 letters") end
    if not is_plain(schedule) then fail("layers: give a list of { count, block }") end
    local group = setmetatable({ prefix = prefix, layers = {}, first = 0 }, kinds.group)
    for _, row in ipairs(face.copy(schedule)) do
      row = is_plain(row) and face.copy(row) or {}
      if not is(row[2], kinds.block) then
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
      if not is(group, kinds.group) or group.group or group.role then
        fail("model: %s must be a weight or nn.layers, once", row.role)
      end
      group.role = row.role
      model.members[row.role] = group
      model.groups[#model.groups + 1] = group
    end
    return t.described
  end
  face.kind(kinds.model, "model", {
    read = function(_, name)
      if not t.described.programs[name] then fail("model has no program %s", quoted(name)) end
      return t.described.programs[name]
    end,
    write = function(_, name, run)
      if not names.is_program(name) then
        fail("model: %s can't be a program's name: %s", quoted(name), names.PROGRAM_RULE)
      end
      local counts_sequences = name == "step" or name == "draft"
      if counts_sequences and type(run) ~= "function" then
        fail("model.%s must be a function", name)
      end
      if not counts_sequences and not is(run, kinds.encoder) then
        fail("model.%s must be nn.encoder({ smallest = ..., largest = ... }, function(w) ... end)",
          name)
      end
      t.described.programs[name] = run
    end,
  })

  -- Soft tokens of the smallest and largest item, of which graphs follow.
  function words.encoder(settings, run)
    settings = is_plain(settings) and face.copy(settings) or {}
    for _, name in ipairs { "smallest", "largest", "frame" } do
      local x = settings[name] and words.value(settings[name])
      if name == "frame" and x == nil then x = settings.largest end
      settings[name] = x
      if math.type(x) ~= "integer" or x < 1 or x > 2 ^ 20 then
        fail("encoder: give { smallest = ..., largest = ... }: soft tokens of one item")
      end
    end
    if settings.smallest > settings.largest then
      fail("encoder: smallest = %d is above largest = %d", settings.smallest, settings.largest)
    end
    if settings.frame < settings.smallest or settings.frame > settings.largest then
      fail("encoder: frame = %d is none of %d ... %d", settings.frame, settings.smallest, settings.largest)
    end
    if type(run) ~= "function" then fail "encoder: give a function(w, batch) too" end
    local encoder = setmetatable({
      smallest = settings.smallest, largest = settings.largest, frame = settings.frame, run = run,
    }, kinds.encoder)
    t.foreign[#t.foreign + 1] = encoder
    return encoder
  end
  face.kind(kinds.encoder, "encoder", {})
  t.range = range
end
