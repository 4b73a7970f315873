-- gen/emit/text.lua -- How emitted text is written: strings into C, comments, lines that
-- clang-format would leave as they are.

local template = require "gen.template"

local text = {}

local COLUMNS = 92
text.COLUMNS = COLUMNS

-- A C string literal. The one way by which foreign text becomes C.
function text.string(s)
  return '"' .. s:gsub('[%c"\\\127-\255?]', function(c)
    if c == "\n" then return "\\n" end
    if c == "\t" then return "\\t" end
    if c == '"' or c == "\\" then return "\\" .. c end
    if c == "?" then return c end
    return ("\\%03o"):format(c:byte())
  end):gsub("%?%?+", function(run) return ("\\?"):rep(#run) end) .. '"'
end

-- A text of many lines as C literals, one a line.
function text.lines(indent, s)
  local lines = {}
  for line in s:gmatch "[^\n]*\n?" do
    if line ~= "" then lines[#lines + 1] = indent .. text.string(line) end
  end
  return table.concat(lines, "\n")
end

-- Text that may stand in a comment.
function text.comment(s)
  s = s:gsub("[^\32-\126]", "?"):gsub("%*/", "* /"):gsub("/%*", "/ *"):gsub("%?%?", "? ?")
  return (s:gsub("%s+$", ""))
end

-- `head(` and arguments, broken as clang-format does it: after the bracket, then filled.
function text.call(indent, head, args, tail)
  local line = indent .. head .. "(" .. table.concat(args, ", ") .. ")" .. tail
  if #line <= COLUMNS then return line end
  local lines, inner = { indent .. head .. "(" }, indent .. (" "):rep(8)
  local now = inner
  for i, arg in ipairs(args) do
    local piece = arg .. (i < #args and "," or ")" .. tail)
    if now ~= inner and #now + 1 + #piece > COLUMNS then
      lines[#lines + 1] = now
      now = inner
    end
    now = now .. (now ~= inner and " " or "") .. piece
  end
  lines[#lines + 1] = now
  return table.concat(lines, "\n")
end

-- A function's head: in one line, else all parameters in the next one, else one a line.
function text.declare(head, params)
  local list = table.concat(params, ", ")
  local line = head .. "(" .. list .. ")"
  if #line <= COLUMNS then return line end
  local indent = (" "):rep(8)
  if #indent + #list + 1 <= COLUMNS then return head .. "(\n" .. indent .. list .. ")" end
  return head .. "(\n" .. indent .. table.concat(params, ",\n" .. indent) .. ")"
end

-- A declaration and what is said of it: behind it, or where that is too long in front of it.
function text.member(declaration, comment)
  local line = ("    %s; /* %s */"):format(declaration, comment)
  if #line <= COLUMNS then return line end
  return ("    /* %s */\n    %s;"):format(comment, declaration)
end

-- `left = right;`, broken behind the sign where it is too long.
function text.assign(indent, left, right)
  local line = indent .. left .. " = " .. right .. ";"
  if #line <= COLUMNS then return line end
  return indent .. left .. " =\n" .. indent .. (" "):rep(8) .. right .. ";"
end

-- `.name = value,` of an initializer, broken likewise.
function text.field(indent, name, value)
  local line = indent .. "." .. name .. " = " .. value .. ","
  if #line <= COLUMNS then return line end
  return indent .. "." .. name .. " =\n" .. indent .. (" "):rep(8) .. value .. ","
end

-- Trailing comments of adjacent lines in one column.
function text.align(s)
  return template.render("${body}\n", "emitted text", { body = (s:gsub("\n+$", "")) })
end

-- A table of rows { "a", "b" } as lines with columns under one another.
function text.columns(rows, indent)
  local width = {}
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do width[i] = math.max(width[i] or 0, #cell) end
  end
  local lines = {}
  for _, row in ipairs(rows) do
    local parts = {}
    for i, cell in ipairs(row) do
      parts[i] = i < #row and cell .. (" "):rep(width[i] - #cell) or cell
    end
    lines[#lines + 1] = (indent .. table.concat(parts, " ")):gsub("%s+$", "")
  end
  return table.concat(lines, "\n")
end

return text
