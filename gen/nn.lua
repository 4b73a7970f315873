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
--   nn.encoder({ smallest, largest }, f)     a program over items of so many soft tokens; frame:
--                                            of a frame of video at most (largest)
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

local nn = {}

-- What objects there are beside sizes and tensors; gen/membrane.lua tells them by these.
local kinds = {
  block = { __name = "block" }, group = { __name = "layers" }, model = { __name = "model" },
  dims = { __name = "dims" }, each = { __name = "each" }, state = { __name = "state" },
  batch = { __name = "batch" }, weights = { __name = "weights" }, encoder = { __name = "encoder" },
}

local function is(x, kind) return type(x) == "table" and getmetatable(x) == kind end

-- What the words share while one description is traced; `source` is that description: where() its
-- line, fail(message) an error there, include(name), variant, config.
local function tracer(source)
  local t = {
    source = source, kinds = kinds, is = is,
    model = {
      dims = {}, weights = {}, variants = {}, programs = {}, model_type = {},
      config_keys = { fields = {}, ignored = {}, is = {} },
    },
    words = {},
    program = nil,  -- that is being traced
    ops = nil,      -- of it, or of the block being traced
    tracing = nil,  -- that block, as a section
    made_in = {},   -- [tensor]: the list of operations that makes it
    foreign = {},   -- objects that hold a function of the description's
    described = setmetatable({ programs = {} }, kinds.model),
  }

  function t.fail(message, ...) source.fail(message:format(...)) end
  t.face = membrane.new(t.fail)
  local fail, face = t.fail, t.face

  -- Errors of size arithmetic and of op files get the description's line.
  function t.at_line(name, f, ...)
    local results = table.pack(pcall(f, ...))
    if results[1] then return table.unpack(results, 2, results.n) end
    local e = results[2]
    if type(e) == "table" and e.op_message then fail("%s: %s", name, e.op_message) end
    if type(e) == "table" then error(e, 0) end
    if e:find "^[^\n]*%.lua:%d+: " then error(e, 0) end -- a mistake of ours keeps its place
    fail("%s: %s", name, e)
  end

  function t.describe_type(x)
    if graph.is_tensor(x) then return x.weight and "a weight" or "a tensor" end
    if is(x, kinds.state) then return x.state == "kv" and "a cache" or "a state" end
    if size.is(x) then return "a size" end
    if is(x, kinds.each) then return "a value of each layer's" end
    if type(x) == "table" and getmetatable(x) then return "a " .. getmetatable(x).__name end
    return x == nil and "nothing" or type(x) == "table" and "a table" or type(x)
  end

  -- `scalar`: a shape may have no dims.
  function t.to_shape(name, list, scalar)
    local given = face.is_plain(list) and face.copy(list) or {}
    if #given == 0 and not (scalar and face.is_plain(list)) then
      fail("%s: a shape is a list of sizes, got %s", name,
        face.is_plain(list) and "none" or t.describe_type(list))
    end
    local shape = {}
    for i, x in ipairs(given) do
      shape[i] = t.at_line(name, size.of, x)
      if shape[i]:is_constant() and shape[i]:value() < 1 then
        fail("%s: a size must be positive, got %d", name, shape[i]:value())
      end
    end
    return shape
  end
  return t
end

-- Returns nn as the description sees it, and the model so far.
function nn.new(source)
  local t = tracer(source)
  local words, face, fail = t.words, t.face, t.fail
  local expose, wrap, unwrap = face.expose, face.wrap, face.unwrap
  for _, part in ipairs { "sizes", "parts", "states", "operations", "programs" } do
    require("gen.nn." .. part)(t)
  end

  -- A size as text, nil for all else.
  function source.size_text(x)
    x = unwrap(x)
    return size.is(x) and tostring(x) or nil
  end

  -- What `nn` holds: words of objects behind the membrane, operations, and two words that give
  -- back what is the description's own.
  local faces = { variants = t.variants, include = function(name) return (source.include(name)) end }
  for name, word in pairs(words) do
    faces[name] = type(word) == "function" and expose(word) or wrap(word)
  end
  return setmetatable({}, {
    __index = function(_, name)
      if faces[name] ~= nil then return faces[name] end
      local def = type(name) == "string" and op.find(name)
      if not def or def.internal then
        fail("nn has no %s: operations are the files of gen/ops", names.quoted(name))
      end
      faces[name] = t.call(def)
      return faces[name]
    end,
    __newindex = function() fail("nn can't be changed") end,
    __metatable = false,
  }), t.model
end

return nn
