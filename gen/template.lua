-- gen/template.lua -- C text with holes: `${expr}` is replaced by a value, a line that
-- begins with `%` is Lua (local, if, for, end). Everything else is copied.
--
-- A template is compiled to one Lua chunk that has the template's lines, so that Lua's own
-- errors name the template's file and line.

local template = {}

-- ---- Values in holes ---------------------------------------------------------------

-- The shortest C literal that reads back as the float nearest to x.
local function f32(x)
  assert(x == x and x ~= math.huge and x ~= -math.huge, "f32: the number must be finite")
  x = string.unpack("<f", string.pack("<f", x))
  for digits = 1, 9 do
    local text = string.format("%." .. digits .. "g", x)
    if string.unpack("<f", string.pack("<f", tonumber(text))) == x then
      return text .. (text:find "[.e]" and "f" or ".0f")
    end
  end
end

-- What a template can use beside its params.
local standard = {
  f32 = f32, ipairs = ipairs, tostring = tostring, type = type,
  math = math, string = string, table = table,
}

local function hole(value, expr)
  if type(value) == "string" then return value end
  if math.type(value) == "integer" then return tostring(value) end
  if math.type(value) == "float" then
    error(("'%s' is the float %s: write f32(...) or make it an integer"):format(expr, value), 2)
  end
  error(("'%s' is %s, not text or an integer"):format(
    expr, value == nil and "not defined" or "a " .. type(value)), 2)
end

-- ---- Compiling -----------------------------------------------------------------------

local function split_lines(text)
  local lines = {}
  for line in (text:sub(-1) == "\n" and text or text .. "\n"):gmatch "(.-)\n" do
    lines[#lines + 1] = line
  end
  return lines
end

-- One template line as one line of Lua: emit("int ", hole(d, "d"), ";")
local function compile_line(line, where)
  if line:find "^%s*%%" then return (line:gsub("^%s*%%", "", 1)) end
  local parts, at = {}, 1
  while true do
    local from, to = line:find("$%b{}", at)
    if not from then break end
    local expr = line:sub(from + 2, to - 1)
    parts[#parts + 1] = ("%q"):format(line:sub(at, from - 1))
    parts[#parts + 1] = ("hole((%s), %q)"):format(expr, expr)
    at = to + 1
  end
  local rest = line:sub(at)
  if rest:find("${", 1, true) then error(where .. ": '${' is not closed", 0) end
  parts[#parts + 1] = ("%q"):format(rest)
  return "emit(" .. table.concat(parts, ", ") .. ")"
end

-- ---- Trailing comments ---------------------------------------------------------------

local LAST_COLUMN = 92 -- ColumnLimit of .clang-format

-- The code and the block comment behind it, or nil.
local function trailing_comment(line)
  local code, comment = line:match "^(.*%S)%s*(/%*.-%*/)$"
  if not code then return end
  local quotes = select(2, code:gsub('"', "")) -- a comment within a string is none
  if quotes % 2 == 0 then return code, comment end
end

-- Comments behind adjacent lines of code begin in one column, as far as they fit.
local function align_comments(lines)
  local run = {} -- lines whose comments share a column
  local function close()
    local column = 0
    for _, row in ipairs(run) do column = math.max(column, #row.code + 1) end
    for _, row in ipairs(run) do
      lines[row.line] = row.code .. (" "):rep(column - #row.code) .. row.comment
    end
    run = {}
  end
  local least, most
  for i, line in ipairs(lines) do
    local code, comment = trailing_comment(line)
    if code then
      local low, high = #code + 1, math.max(LAST_COLUMN - #comment, 0)
      if code == "}" or (#run > 0 and (low > most or high < least)) then close() end
      if #run == 0 then least, most = low, high end
      least, most = math.max(least, low), math.min(most, high)
      run[#run + 1] = { line = i, code = code, comment = comment }
      if code == "}" then close() end
    else
      close()
    end
  end
  close()
end

-- ---- Rendering -----------------------------------------------------------------------

-- The text with its holes filled from `params`. `name` is the template's path, for errors.
function template.render(text, name, params)
  local source = split_lines(text)
  for i, line in ipairs(source) do source[i] = compile_line(line, name .. ":" .. i) end

  local lines = {}
  local function emit(...)
    lines[#lines + 1] = table.concat({ ... })
  end
  local scope = setmetatable({}, {
    __index = function(_, key)
      local value = params[key]
      if value == nil then value = standard[key] end
      if value == nil then error(("'%s' is not defined"):format(key), 2) end
      return value
    end,
    __newindex = function(_, key) error(("'%s' must be local"):format(key), 2) end,
  })
  local head = "local emit, hole = ...; " -- before line 1, so that lines keep their numbers
  local chunk, message = load(head .. table.concat(source, "\n"), "@" .. name, "t", scope)
  if not chunk then error(message, 0) end
  chunk(emit, hole)

  lines = split_lines(table.concat(lines, "\n")) -- a value may have brought several lines
  align_comments(lines)
  return table.concat(lines, "\n") .. "\n"
end

template.f32 = f32

return template
