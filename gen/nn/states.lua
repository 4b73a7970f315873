-- gen/nn/states.lua -- Words for values that differ from layer to layer, and for what a sequence
-- carries from step to step: nn.each, nn.kv, nn.kv_of, nn.state.

local graph = require "gen.graph"
local names = require "gen.names"
local op = require "gen.op"
local size = require "gen.size"

local quoted = names.quoted

return function(t)
  local words, face, fail, is, kinds = t.words, t.face, t.fail, t.is, t.kinds
  local at_line, to_shape, describe_type = t.at_line, t.to_shape, t.describe_type
  local unwrap, is_plain = face.unwrap, face.is_plain

  function words.each(values)
    if not is_plain(values) and type(values) ~= "function" then
      fail("each: give a list, or a function of the layer")
    end
    if is_plain(values) then values = face.copy(values) end
    local each = setmetatable({ each = values }, kinds.each)
    t.foreign[#t.foreign + 1] = each
    return each
  end
  face.kind(kinds.each, "value of each layer's", {})

  -- The layer's value of an nn.each, or the value itself.
  local function value_in(x, layer)
    if not is(x, kinds.each) then return x end
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
    return setmetatable(fields, kinds.state)
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
    if not t.tracing then fail("kv_of: say it within a block's forward") end
    local owner_of, first = {}, nil
    for _, reader in ipairs(t.tracing.layers) do
      owner_of[reader] = words.value(value_in(layer, reader))
      local block = t.tracing.group.layers[owner_of[reader] + 1]
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
      state = "kv", settings = {}, owner = true, owner_of = owner_of, section = t.tracing, step = step,
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
  t.value_in, t.new_state, t.settle = value_in, new_state, settle
end
