-- gen/membrane.lua -- What a description holds of our objects: handles. A handle is an empty
-- table; the object stands in a table of ours, and its metatable can't be had. So a description
-- reads and writes what a kind of handle allows by name, and nothing else of ours.
--
--   local m = membrane.new(fail)
--   m.kind(Size, "size", { add = f, tostring = g })   handles of objects whose metatable is Size
--   m.wrap(object), m.unwrap(handle)                  what is no object (a number) stays as it is
--   m.expose(f)                                       f of objects as a function of handles
--   m.copy(list)                                      a description's table, its values unwrapped
--
-- A kind says what may be done: read = function(object, key), write = function(object, key, x),
-- call = function(object, ...) with handles in `...`, and the operators add, sub, mul, div,
-- idiv, eq, lt, le, tostring, over objects. What it doesn't name is an error at the line.

local names = require "gen.names"

local membrane = {}

local operators = { "add", "sub", "mul", "div", "idiv" }
local comparisons = { "eq", "lt", "le", "tostring" }

function membrane.new(fail)
  local self = {}
  local object_of, handle_of = {}, {} -- of one description; the sandbox bounds how many
  local metatables = {}               -- an object's metatable -> that of its handles

  function self.unwrap(x)
    local object = object_of[x]
    if object == nil then return x end
    return object
  end
  local unwrap = self.unwrap

  function self.wrap(x)
    if type(x) ~= "table" then return x end
    local metatable = metatables[getmetatable(x)]
    if not metatable then error("a table of ours would be seen by a description", 0) end
    local handle = handle_of[x]
    if not handle then
      handle = setmetatable({}, metatable)
      handle_of[x], object_of[handle] = handle, x
    end
    return handle
  end
  local wrap = self.wrap

  -- No tail call of f: its frame tells source.where() the line.
  function self.expose(f)
    return function(...)
      local args = table.pack(...)
      for i = 1, args.n do args[i] = unwrap(args[i]) end
      local result = f(table.unpack(args, 1, args.n))
      return wrap(result)
    end
  end

  -- A table without a metatable is the description's own; it may change it after we looked.
  function self.is_plain(x) return type(x) == "table" and getmetatable(x) == nil end

  function self.copy(list)
    local out = {}
    for key, value in next, list do out[key] = unwrap(value) end
    return out
  end

  function self.kind(of, name, may)
    local metatable = { __metatable = false, __name = name }
    metatable.__index = function(handle, key)
      if not may.read then fail("a %s has no %s", name, names.quoted(key)) end
      local result = may.read(object_of[handle], key)
      return result
    end
    metatable.__newindex = function(handle, key, value)
      if not may.write then fail("%s can't be changed", name) end
      may.write(object_of[handle], key, unwrap(value))
    end
    metatable.__len = function() fail("a %s has no length", name) end
    if may.call then
      metatable.__call = function(handle, ...)
        local result = may.call(object_of[handle], ...)
        return wrap(result)
      end
    end
    for _, operator in ipairs(operators) do
      if may[operator] then metatable["__" .. operator] = self.expose(may[operator]) end
    end
    for _, operator in ipairs(comparisons) do
      local compare = may[operator]
      if compare then
        metatable["__" .. operator] = function(a, b)
          local result = compare(unwrap(a), unwrap(b))
          return result
        end
      end
    end
    metatables[of] = metatable
  end

  return self
end

return membrane
