-- gen/nn/sizes.lua -- Words for variants and sizes: nn.variants, nn.dims, nn.value, the extents.

local names = require "gen.names"
local size = require "gen.size"

local quoted = names.quoted

-- In this order sizes are declared in C; others follow by name, then those with a definition.
local dims_order = {
  "n_layers", "d_model", "n_heads", "n_kv_heads", "d_head", "d_ff", "n_experts",
  "n_active_experts", "n_vocab", "n_ctx",
}

return function(t)
  local model, words, face, fail, kinds = t.model, t.words, t.face, t.fail, t.kinds
  local source, at_line = t.source, t.at_line
  local wrap, is_plain = face.wrap, face.is_plain

  -- Names that config.json may hold, with spaces between.
  local function keys_of(what, text)
    if type(text) ~= "string" or not text:find "^[%w_.-][%w_. -]*$" then
      fail("variants: %s: %s can't be a name in config.json", what, quoted(text))
    end
    return text
  end

  -- What nn.variants says of model_type: a text, or a list of texts.
  local function texts(name, x)
    if type(x) == "string" then x = { x } end
    if x == nil then return {} end
    if not is_plain(x) then fail("variants: %s must be a text or a list of texts", name) end
    x = face.copy(x)
    for _, text in ipairs(x) do keys_of(name, text) end
    return x
  end

  local function within(object, keys) return (keys:gsub("%S+", object .. "%0")) end

  -- What nn.variants says of config.json (gen/config.lua): fields = { name = { keys, default } or
  -- { object, of = { name = ... } } }, ignored = list of keys, is = { key = value }.
  local function config_keys(x, object, into)
    if x == nil then x = {} end
    if not is_plain(x) then fail "variants: config must be a table" end
    into = into or { fields = {}, ignored = {}, is = {} }
    for field, entry in pairs(face.copy(x)) do
      local plain = is_plain(entry) and face.copy(entry)
      if field == "object" then -- our caller's
      elseif field == "is" and plain then
        for key, value in pairs(plain) do into.is[within(object, keys_of("config", key))] = value end
      elseif type(field) == "number" and plain then
        config_keys(plain, object, into)
      elseif type(field) == "number" then
        into.ignored[#into.ignored + 1] = within(object, keys_of("config", entry))
      elseif plain and plain.object then
        local inner = within(object, keys_of(field, plain.object))
        local part = config_keys(plain, inner .. ".")
        for key, value in pairs(part.is) do into.is[key] = value end
        for _, key in ipairs(part.ignored) do into.ignored[#into.ignored + 1] = key end
        into.fields[field] = { object = inner, of = part.fields }
      else
        local default
        if plain then default = plain[2] end
        if is_plain(default) then default = face.copy(default) end
        local keys = within(object, keys_of(field, plain and plain[1] or entry))
        into.fields[field] = { keys = keys, default = default }
      end
    end
    return into
  end

  -- A row of its own, with what rows mean by saying nothing.
  local function filled(row, fields)
    local out = {}
    for key, value in pairs(row) do out[key] = is_plain(value) and face.copy(value) or value end
    for field, entry in pairs(fields) do
      if entry.of and is_plain(out[field]) then out[field] = filled(out[field], entry.of) end
      if out[field] == nil then out[field] = entry.default end
    end
    return out
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
    model.config_keys = config_keys(rows.config, "")
    -- A table of its own; what is in it is the description's.
    local row = source.configure(filled(chosen, model.config_keys.fields), model)
    model.row = filled(row, model.config_keys.fields) -- as it was: a description may change its own
    return row
  end

  local dims = setmetatable({ by_name = {} }, kinds.dims)

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
  face.kind(kinds.dims, "dims", { read = read_dim, write = declare_dim })

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
  t.dims, t.variants = dims, variants
end
