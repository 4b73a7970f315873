-- gen/describe.lua -- Runs a description in its sandbox and gives the traced model.
--
-- A description is foreign text: it sees `nn`, arithmetic and a few pure functions, nothing
-- else, and of our objects only handles (gen/membrane.lua). There is no pcall and no coroutine,
-- so no error can be caught; no setmetatable, so nothing of it runs but what was called; string
-- methods that can run for ever (rep, find, gsub) are not there; table functions are Lua, so
-- that one hook counts every instruction, also theirs. What C does with a text costs
-- instructions by its length, and the whole has a limit in seconds. Every error carries the
-- description's file:line.

local graph = require "gen.graph"
local names = require "gen.names"
local nn = require "gen.nn"

local describe = {}

describe.limits = {
  instructions = 5e6, -- llama needs 140 thousand, Gemma 4 with its towers 1.3 million
  -- Of this process, for what instructions don't measure: long texts, joined or compared.
  seconds = 5,
  -- Beyond what was used before; llama needs 100. One concatenation joins at most 200 texts
  -- before anybody can look, so this bounds what it takes.
  memory_kib = 4 * 1024,
  source_bytes = 64 * 1024,
  text_bytes = 64 * 1024, -- of a text that a word takes
  includes = 16,
  calls = 200, -- in one another; setting a hook walks over all of them
}

-- ---- What a description may use -----------------------------------------------------------

-- `source` counts: spend(instructions), fail(message), size_text(handle) or nil.

-- A text for a word; what C does with it is worth an instruction for each 16 bytes.
local function text_of(source, name, x)
  if type(x) == "number" then x = tostring(x) end
  if type(x) ~= "string" then source.fail(name .. ": a string was expected, got " .. type(x)) end
  if #x > describe.limits.text_bytes then
    source.fail(("%s: a string beyond %d KiB"):format(name, describe.limits.text_bytes // 1024))
  end
  source.spend(#x // 16)
  return x
end

local function integer_of(source, name, x, default)
  if x == nil then return default end
  local n = type(x) == "number" and math.tointeger(x)
  if not n then source.fail(name .. ": an integer was expected, got " .. type(x)) end
  return n
end

-- What has the same text in every run; a size has one.
local function plain(source, x)
  if type(x) == "table" or type(x) == "function" then
    local text = source.size_text(x)
    if not text then
      source.fail "a table or function has no text that is the same in every run"
    end
    return text
  end
  return x
end

-- In Lua, so that the hook counts them.
local function table_words(source)
  local words, fail = {}, source.fail
  local function length(list)
    if type(list) ~= "table" or getmetatable(list) ~= nil then
      fail("a plain table was expected, got " .. type(list))
    end
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
    separator = text_of(source, "concat", separator == nil and "" or separator)
    local n, bytes, parts = length(list), 0, {}
    for i = 1, n do
      parts[i] = text_of(source, "concat", rawget(list, i))
      bytes = bytes + #parts[i] + #separator
      if bytes > describe.limits.text_bytes then fail "concat: a string beyond 64 KiB" end
    end
    return (table.concat(parts, separator))
  end
  function words.unpack(list)
    local n = length(list)
    if n > 200 then fail "unpack: more than 200 values" end
    return table.unpack(list, 1, n)
  end
  function words.sort(list, less)
    less = less == nil and function(a, b) return a < b end or less
    if type(less) ~= "function" then fail("sort: a function was expected, got " .. type(less)) end
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

local function string_words(source)
  local words, fail = {}, source.fail
  for _, name in ipairs { "upper", "lower", "len" } do
    words[name] = function(s)
      s = text_of(source, name, s)
      return (string[name](s))
    end
  end
  for _, name in ipairs { "sub", "byte" } do
    words[name] = function(s, i, j)
      s = text_of(source, name, s)
      i = integer_of(source, name, i, 1)
      j = integer_of(source, name, j, name == "sub" and -1 or i)
      local results = table.pack(string[name](s, i, j))
      return table.unpack(results, 1, results.n)
    end
  end
  function words.format(text, ...)
    text = text_of(source, "format", text)
    if text:find "%%[^%%]-[pqa]" then fail "format: only plain conversions" end
    local args = table.pack(...)
    for i = 1, args.n do
      args[i] = plain(source, args[i])
      if type(args[i]) == "string" then args[i] = text_of(source, "format", args[i]) end
    end
    local ok, result = pcall(string.format, text, table.unpack(args, 1, args.n))
    if not ok then fail(result) end
    return result
  end
  return words
end

-- Keys in a fixed order: `pairs` of plain Lua would differ from run to run.
local function ordered_pairs(list, fail)
  local keys = {}
  for key in next, list do
    if type(key) == "table" or type(key) == "function" then
      fail "pairs: keys that are tables have no order"
    end
    keys[#keys + 1] = key
  end
  table.sort(keys, function(a, b)
    local ta, tb = type(a), type(b)
    if ta ~= tb then return ta < tb end
    if ta == "number" or ta == "string" then return a < b end
    return tostring(a) < tostring(b)
  end)
  local i = 0
  return function()
    i = i + 1
    if keys[i] ~= nil then return keys[i], rawget(list, keys[i]) end
  end
end

local function to_number(source, x, base)
  if type(x) == "number" and base == nil then return x end
  if base == nil then
    if type(x) ~= "string" then return nil end
    return (tonumber(text_of(source, "tonumber", x)))
  end
  base = integer_of(source, "tonumber", base)
  if base < 2 or base > 36 then source.fail "tonumber: a base is from 2 to 36" end
  return (tonumber(text_of(source, "tonumber", x), base))
end

-- What error() and assert() say: one short line.
local function message_of(x, default)
  if type(x) ~= "string" then return default end
  return (x:sub(1, 500):gsub("%c", " "))
end

local function environment(source)
  local fail = source.fail
  local face = {
    nn = source.nn, ipairs = ipairs, type = type, select = select,
    tonumber = function(x, base) return (to_number(source, x, base)) end,
    pairs = function(list)
      if type(list) ~= "table" or getmetatable(list) ~= nil then
        fail "pairs: a plain table was expected"
      end
      return (ordered_pairs(list, fail))
    end,
    tostring = function(x)
      x = plain(source, x)
      if type(x) == "string" then return x end
      return (tostring(x))
    end,
    error = function(message) fail(message_of(message, "error")) end,
    assert = function(ok, message, ...)
      if not ok then fail(message_of(message, "assertion failed!")) end
      return ok, message, ...
    end,
    math = {
      abs = math.abs, ceil = math.ceil, cos = math.cos, exp = math.exp, floor = math.floor,
      huge = math.huge, log = math.log, max = math.max, min = math.min, pi = math.pi,
      sin = math.sin, sqrt = math.sqrt, tointeger = math.tointeger, type = math.type,
    },
    string = string_words(source),
    table = table_words(source),
  }
  return setmetatable({}, {
    __index = function(_, name)
      if face[name] == nil then fail(("'%s' isn't available in a description"):format(tostring(name))) end
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
  local text = file:read(describe.limits.source_bytes + 1) or "" -- nil of an empty file
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

  -- One hook for all: it counts, looks at the memory, and remembers the line. Every turn of a
  -- loop and every call is a line event; both events count. The hook's own instructions would
  -- count too, so it begins the count anew.
  local instructions, step = 0, 8 -- so few that a text can't be doubled often in between
  local base_kib, base_seconds, turns = 0, 0, 0
  function source.spend(n)
    instructions = instructions + n
    if instructions > describe.limits.instructions then
      source.fail(("stopped after %d million instructions: does it loop for ever?"):format(
        describe.limits.instructions // 1000000))
    end
  end
  local hook
  hook = function(event, line)
    if event == "line" then
      local info = debug.getinfo(2, "S")
      if chunks[info.source] then last.file, last.line = info.source:sub(2), line end
    end
    source.spend(step)
    turns = turns + 1
    if turns % 16 == 0 and debug.getinfo(describe.limits.calls, "l") then
      source.fail(("stopped: more than %d calls in one another"):format(describe.limits.calls))
    end
    if turns % 4 == 0 and os.clock() - base_seconds > describe.limits.seconds then
      source.fail(("stopped after %d seconds: does it loop for ever, or on long texts?"):format(
        describe.limits.seconds))
    end
    if collectgarbage "count" - base_kib > describe.limits.memory_kib then
      collectgarbage()
      if collectgarbage "count" - base_kib > describe.limits.memory_kib then
        source.fail(("stopped: it uses more than %d MiB"):format(
          describe.limits.memory_kib // 1024))
      end
      source.spend(10000) -- what a collection is worth
    end
    debug.sethook(hook, "l", step)
  end

  local face, model = nn.new(source)
  source.nn = face
  local env = environment(source)

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

  -- Text's methods: a description's frames see the whitelist, ours see everything.
  local strings = string_words(source)
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
  base_kib, base_seconds = collectgarbage "count", os.clock()
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
