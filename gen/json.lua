-- gen/json.lua -- JSON from files that are not ours: config.json, the head of a safetensors
-- file, an index of shards. Objects keep their keys' order in [json.KEYS]; null is json.NULL.
-- And JSON of ours: a table with [1], or nothing in it, is a list, others have their keys sorted.

local json = { KEYS = {}, NULL = setmetatable({}, { __tostring = function() return "null" end }) }

local MAX_DEPTH = 64

local escapes = {
  b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ['"'] = '"', ["\\"] = "\\", ["/"] = "/",
}

-- The value in `text`, or nil and what is wrong.
function json.decode(text)
  local at = 1
  local function fail(message) error({ json = ("%s at byte %d"):format(message, at) }, 0) end
  local function skip() at = text:find("[^ \t\r\n]", at) or #text + 1 end

  local function string_value()
    local parts = {}
    at = at + 1
    while true do
      local stop = text:find('["\\%c]', at)
      if not stop then fail "a string isn't closed" end
      parts[#parts + 1] = text:sub(at, stop - 1)
      at = stop
      local c = text:sub(at, at)
      if c == '"' then
        at = at + 1
        return table.concat(parts)
      elseif c ~= "\\" then
        fail "a control character in a string"
      end
      local e = text:sub(at + 1, at + 1)
      if escapes[e] then
        parts[#parts + 1] = escapes[e]
        at = at + 2
      elseif e == "u" then
        local hex = text:match("^%x%x%x%x", at + 2)
        if not hex then fail "a broken \\u" end
        local code = tonumber(hex, 16)
        at = at + 6
        if code >= 0xD800 and code <= 0xDBFF then
          local low = text:match("^\\u(%x%x%x%x)", at)
          low = low and tonumber(low, 16)
          if not low or low < 0xDC00 or low > 0xDFFF then fail "half a surrogate pair" end
          code = 0x10000 + (code - 0xD800) * 0x400 + (low - 0xDC00)
          at = at + 6
        elseif code >= 0xDC00 and code <= 0xDFFF then
          fail "half a surrogate pair"
        end
        parts[#parts + 1] = utf8.char(code)
      else
        fail "an unknown escape"
      end
    end
  end

  local value

  local function list(depth)
    local out = {}
    at = at + 1
    skip()
    if text:sub(at, at) == "]" then
      at = at + 1
      return out
    end
    while true do
      out[#out + 1] = value(depth)
      skip()
      local c = text:sub(at, at)
      at = at + 1
      if c == "]" then return out end
      if c ~= "," then fail "expected ',' or ']'" end
    end
  end

  local function object(depth)
    local out, keys = {}, {}
    out[json.KEYS] = keys
    at = at + 1
    skip()
    if text:sub(at, at) == "}" then
      at = at + 1
      return out
    end
    while true do
      skip()
      if text:sub(at, at) ~= '"' then fail "expected a key" end
      local key = string_value()
      if out[key] ~= nil then fail(("the key %q stands twice"):format(key:sub(1, 40))) end
      skip()
      if text:sub(at, at) ~= ":" then fail "expected ':'" end
      at = at + 1
      out[key] = value(depth)
      keys[#keys + 1] = key
      skip()
      local c = text:sub(at, at)
      at = at + 1
      if c == "}" then return out end
      if c ~= "," then fail "expected ',' or '}'" end
    end
  end

  function value(depth)
    if depth > MAX_DEPTH then fail "nested too deeply" end
    skip()
    local c = text:sub(at, at)
    if c == "{" then return object(depth + 1) end
    if c == "[" then return list(depth + 1) end
    if c == '"' then return string_value() end
    for word, x in pairs { ["true"] = true, ["false"] = false, null = json.NULL } do
      if text:sub(at, at + #word - 1) == word then
        at = at + #word
        return x
      end
    end
    local number = text:match("^-?%d+%.?%d*[eE]?[+-]?%d*", at)
    local x = number and tonumber(number)
    if not x then fail "expected a value" end
    at = at + #number
    return x
  end

  local ok, result = pcall(function()
    local x = value(0)
    skip()
    if at <= #text then fail "text behind the value" end
    return x
  end)
  if ok then return result end
  if type(result) == "table" then return nil, result.json end
  error(result, 0)
end

local function quoted(text)
  return '"' .. text:gsub('[%c"\\]', function(c) return ("\\u%04x"):format(c:byte()) end) .. '"'
end

local function number_text(x)
  if math.type(x) == "integer" then return ("%d"):format(x) end
  assert(x == x and math.abs(x) < math.huge, "JSON has no such number")
  return (("%.14g"):format(x):gsub("^(%-?%d+)$", "%1.0"))
end

-- Lists of plain values stand in one line.
function json.encode(x, indent)
  indent = indent or ""
  if x == json.NULL then return "null" end
  if type(x) == "string" then return quoted(x) end
  if type(x) == "number" then return number_text(x) end
  if type(x) ~= "table" then return tostring(x) end
  local inner, parts = indent .. "  ", {}
  if x[1] ~= nil or next(x) == nil then
    for i, value in ipairs(x) do parts[i] = json.encode(value, inner) end
    return "[" .. table.concat(parts, ", ") .. "]"
  end
  local names = {}
  for name in pairs(x) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do
    parts[i] = ("%s%s: %s"):format(inner, quoted(name), json.encode(x[name], inner))
  end
  return "{\n" .. table.concat(parts, ",\n") .. "\n" .. indent .. "}"
end

return json
