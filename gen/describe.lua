-- gen/describe.lua -- Runs a description in its sandbox and gives the traced model.
--
-- A description is foreign text: it sees `nn`, arithmetic and a few pure functions, nothing
-- else. There is no pcall and no coroutine, so no error can be caught; string methods that
-- can run for ever (rep, find, gsub) are not there; table functions are Lua, so that one hook
-- counts every instruction, also theirs. Every error carries the description's file:line.

local size = require "gen.size"
local graph = require "gen.graph"
local names = require "gen.names"
local nn = require "gen.nn"

local describe = {}

describe.limits = {
  instructions = 1e6, -- llama needs 60 thousand
  -- Beyond what was used before; llama needs 100. One concatenation joins at most 200 texts
  -- before anybody can look, so this bounds what it takes.
  memory_kib = 4 * 1024,
  source_bytes = 256 * 1024,
  includes = 16,
}

-- ---- What a description may use -----------------------------------------------------------

local function plain(x, fail)
  if type(x) == "table" and not size.is(x) or type(x) == "function" then
    fail "a table or function has no text that is the same in every run"
  end
  return x
end

-- In Lua, so that the hook counts them.
local function table_words(fail)
  local words = {}
  local function length(list)
    if type(list) ~= "table" then fail("a table was expected, got " .. type(list)) end
    local n = 0
    while rawget(list, n + 1) ~= nil do n = n + 1 end
    return n
  end
  function words.insert(list, a, b)
    local n = length(list)
    if b == nil then
      list[n + 1] = a
      return
    end
    if math.type(a) ~= "integer" or a < 1 or a > n + 1 then
      fail "insert: position out of bounds"
    end
    for i = n, a, -1 do list[i + 1] = list[i] end
    list[a] = b
  end
  function words.remove(list, at)
    local n = length(list)
    if n == 0 then return nil end
    at = at or n
    if math.type(at) ~= "integer" or at < 1 or at > n then
      fail "remove: position out of bounds"
    end
    local value = list[at]
    for i = at, n do list[i] = list[i + 1] end
    return value
  end
  function words.concat(list, separator)
    local n, bytes = length(list), 0
    for i = 1, n do
      if type(list[i]) ~= "string" and type(list[i]) ~= "number" then
        fail "concat: not a string"
      end
      bytes = bytes + #tostring(list[i]) + #(separator or "")
      if bytes > 1024 * 1024 then fail "concat: more than 1 MiB" end
    end
    return table.concat(list, separator or "", 1, n)
  end
  function words.unpack(list)
    local n = length(list)
    if n > 200 then fail "unpack: more than 200 values" end
    return table.unpack(list, 1, n)
  end
  function words.sort(list, less)
    less = less or function(a, b) return a < b end
    for i = 2, length(list) do
      local x, j = list[i], i - 1
      while j >= 1 and less(x, list[j]) do
        list[j + 1] = list[j]
        j = j - 1
      end
      list[j + 1] = x
    end
  end
  return words
end

local function string_words(fail)
  local function format(text, ...)
    if type(text) ~= "string" or text:find "%%[^%%]-[pqa]" then
      fail "format: only plain conversions"
    end
    local args = table.pack(...)
    for i = 1, args.n do
      plain(args[i], fail)
      if size.is(args[i]) then args[i] = tostring(args[i]) end
      if type(args[i]) == "string" and #args[i] > 65536 then
        fail "format: a string beyond 64 KiB"
      end
    end
    local ok, result = pcall(string.format, text, table.unpack(args, 1, args.n))
    if not ok then fail(result) end
    return result
  end
  return {
    sub = string.sub, upper = string.upper, lower = string.lower, len = string.len,
    byte = string.byte, format = format,
  }
end

-- Keys in a fixed order: `pairs` of plain Lua would differ from run to run.
local function ordered_pairs(list)
  local keys = {}
  for key in next, list do keys[#keys + 1] = key end
  table.sort(keys, function(a, b)
    local ta, tb = type(a), type(b)
    if ta ~= tb then return ta < tb end
    if ta == "number" or ta == "string" then return a < b end
    return tostring(a) < tostring(b)
  end)
  local i = 0
  return function()
    i = i + 1
    if keys[i] ~= nil then return keys[i], list[keys[i]] end
  end
end

local function environment(source, fail)
  local face = {
    nn = source.nn, ipairs = ipairs, type = type, tonumber = tonumber, select = select,
    pairs = function(list)
      if type(list) ~= "table" or getmetatable(list) then
        fail "pairs: a plain table was expected"
      end
      return ordered_pairs(list)
    end,
    tostring = function(x) return tostring(plain(x, fail)) end,
    error = function(message) fail(type(message) == "string" and message or "error") end,
    assert = function(ok, message, ...)
      if not ok then fail(type(message) == "string" and message or "assertion failed!") end
      return ok, message, ...
    end,
    math = {
      abs = math.abs, ceil = math.ceil, cos = math.cos, exp = math.exp, floor = math.floor,
      huge = math.huge, log = math.log, max = math.max, min = math.min, pi = math.pi,
      sin = math.sin, sqrt = math.sqrt, tointeger = math.tointeger, type = math.type,
    },
    string = string_words(fail),
    table = table_words(fail),
  }
  return setmetatable({}, {
    __index = function(_, name)
      if face[name] == nil then fail(("'%s' isn't available in a description"):format(name)) end
      return face[name]
    end,
    __newindex = function(_, name)
      fail(("'%s' must be local"):format(tostring(name)))
    end,
    __metatable = false,
  })
end

-- ---- Reading ------------------------------------------------------------------------------

local function read_file(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read(describe.limits.source_bytes + 1)
  file:close()
  return text
end

local function split_lines(text)
  local lines = {}
  for line in (text .. "\n"):gmatch "(.-)\r?\n" do lines[#lines + 1] = line end
  return lines
end

-- ---- The run --------------------------------------------------------------------------------

-- options: path (to read), name (how messages and emitted text call it), folder (for includes),
-- variant, configure(row), include_folders. Returns the model; errors are { message, code }.
function describe.load(options)
  graph.reset()
  local source = { variant = options.variant }
  local chunks = {} -- chunk name -> true, for frames that are a description's
  local lines = {}  -- file -> its lines
  local last = { file = options.name, line = 1 } -- by the line hook, for tail calls
  local running = false

  -- The description's line that is being run, from outside of any description frame.
  function source.where()
    local level = 2
    while true do
      local info = debug.getinfo(level, "Slt")
      if not info then break end
      if chunks[info.source] then
        return { file = info.source:sub(2), line = info.currentline }
      end
      if info.istailcall then break end -- it took its caller's place: the line hook saw the line
      level = level + 1
    end
    return { file = last.file, line = last.line }
  end

  function source.fail(message)
    local where = source.where()
    error({ message = ("%s:%d: %s"):format(where.file, where.line, message), code = 1 }, 0)
  end

  function source.usage(message) error({ message = message, code = 2 }, 0) end

  source.configure = options.configure or function(row) return row end

  -- local NAME = nn.block { ...
  function source.local_name(where)
    local line = lines[where.file] and lines[where.file][where.line] or ""
    local name = line:match "^%s*local%s+([%a_][%w_]*)" or line:match "^%s*([%a_][%w_]*)%s*="
    return names.is_identifier(name) and name or nil
  end

  local face, model = nn.new(source)
  source.nn = face
  local env = environment(source, source.fail)

  local function load_text(path, name)
    local text = read_file(path)
    if not text then return nil end
    if #text > describe.limits.source_bytes then
      local kib = describe.limits.source_bytes // 1024
      error({ message = ("%s:1: longer than %d KiB"):format(name, kib), code = 1 }, 0)
    end
    if text:byte() == 27 then
      error({ message = ("%s:1: compiled Lua isn't a description"):format(name), code = 1 }, 0)
    end
    lines[name] = split_lines(text)
    local chunk, why = load(text, "@" .. name, "t", env)
    if not chunk then error(type(why) == "table" and why or { message = why, code = 1 }, 0) end
    chunks["@" .. name] = true
    return chunk
  end

  local included, n_included = {}, 0
  function source.include(part)
    if not names.is_file_name(part) then
      source.fail(("include: %s isn't the name of a part: letters, digits, '_' and '-'"):format(
        names.quoted(part)))
    end
    if included[part] then return included[part].value end
    n_included = n_included + 1
    if n_included > describe.limits.includes then
      source.fail(("include: more than %d parts"):format(describe.limits.includes))
    end
    included[part] = {}
    for _, place in ipairs(options.include_folders or {}) do
      local chunk = load_text(place.path .. "/" .. part .. ".lua", place.name .. part .. ".lua")
      if chunk then
        included[part].value = chunk()
        return included[part].value
      end
    end
    source.fail(("include: there is no part '%s' beside the description"):format(part))
  end

  -- One hook for all: it counts, looks at the memory, and remembers the line. Every turn of a
  -- loop and every call is a line event; both events count, because the hook's own instructions
  -- count too and can hide each event of the other kind.
  local instructions, step = 0, 8 -- so few that a text can't be doubled often in between
  local base_kib = 0
  local function over(message)
    local where = source.where()
    error({ message = ("%s:%d: %s"):format(where.file, where.line, message), code = 1 }, 0)
  end
  local function hook(event, line)
    if event == "line" then
      local info = debug.getinfo(2, "S")
      if chunks[info.source] then last.file, last.line = info.source:sub(2), line end
    end
    instructions = instructions + step
    if instructions > describe.limits.instructions then
      over(("stopped after %d million instructions: does it loop for ever?"):format(
        describe.limits.instructions // 1000000))
    end
    if collectgarbage "count" - base_kib > describe.limits.memory_kib then
      collectgarbage()
      if collectgarbage "count" - base_kib > describe.limits.memory_kib then
        over(("stopped: it uses more than %d MiB"):format(describe.limits.memory_kib // 1024))
      end
    end
  end

  -- Text's methods: a description's frames see the whitelist, ours see everything.
  local strings = string_words(source.fail)
  local string_meta = getmetatable ""
  local true_index = string_meta.__index
  local function string_index(_, name)
    local info = debug.getinfo(2, "S")
    if not (info and chunks[info.source]) then return string[name] end
    if strings[name] == nil then
      source.fail(("a string's '%s' isn't available in a description"):format(tostring(name)))
    end
    return strings[name]
  end

  local function run()
    local chunk = load_text(options.path, options.name)
    if not chunk then
      error({ message = ("%s: no such file"):format(options.path), code = 2 }, 0)
    end
    source.trace_programs(chunk())
  end

  collectgarbage()
  base_kib = collectgarbage "count"
  string_meta.__index = string_index
  running = true
  debug.sethook(hook, "l", step)
  local ok, e = xpcall(run, function(e)
    debug.sethook()
    if type(e) == "table" then return e end
    -- Lua's own errors: "models/x.lua:3: attempt to ..." have their place; ours get the line.
    local text = tostring(e)
    local file = text:match "^([^\n:]+):%d+:"
    if file and chunks["@" .. file] then return { message = text, code = 1 } end
    local where = source.where()
    return {
      message = ("%s:%d: %s"):format(where.file, where.line, text), code = 1,
      traceback = debug.traceback(text, 2),
    }
  end)
  debug.sethook()
  string_meta.__index = true_index
  if not ok then error(type(e) == "table" and e or { message = tostring(e), code = 1 }, 0) end
  assert(running)

  model.lines = lines
  model.file = options.name
  model.architecture = options.architecture
  model.variant = model.variant or "default"
  model.instructions = instructions
  return model
end

return describe
