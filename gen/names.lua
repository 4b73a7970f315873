-- gen/names.lua -- What may be a name: in C, of a file. By a list of letters; all other foreign
-- text becomes C only through emit/text.lua's string().

local names = {}

local reserved = {}
for word in ([[auto break case char const continue default do double else enum extern float for
  goto if inline int long register restrict return short signed sizeof static struct switch
  typedef union unsigned void volatile while bool true false errno asm linux unix null eof
  main t w s b layer pages scratch int_max int_min size_max edom erange]]):gmatch "%S+" do
  reserved[word] = true
end

names.RULE = "lower-case letters, digits and '_', no word of C, "
  .. "and none of b, layer, pages, s, scratch, t, w"

-- An identifier that may stand in C as it is.
function names.is_identifier(name)
  return type(name) == "string" and #name <= 48 and name:find "^[a-z][a-z0-9_]*$" ~= nil
    and not reserved[name] and not name:find "^burin"
end

-- A size of nn.dims becomes a constant in capitals: with these beginnings it is none that a
-- header of C or a template has.
names.SIZE_RULE = names.RULE .. "; n_ begins what is counted, d_ a width"
function names.is_size(name)
  return names.is_identifier(name) and name:find "^[nd]_[a-z0-9]" ~= nil
end

-- Programs stand behind their family's name: avx512_step and avx512_exact_step are two.
names.PROGRAM_RULE = names.RULE .. ", and no exact_ before it"
function names.is_program(name) return names.is_identifier(name) and not name:find "^exact_" end

-- Inputs lie beside counts (n_tokens) in one struct.
function names.is_input(name)
  return names.is_identifier(name) and not name:find "^n_" and name ~= "max_pages" and name ~= "call"
end

function names.is_file_name(name)
  return type(name) == "string" and #name <= 64 and name:find "^[%w][%w._-]*$" ~= nil
    and not name:find("..", 1, true)
end

-- Foreign text for a message.
function names.quoted(x)
  if type(x) == "table" or type(x) == "function" then return "a " .. type(x) end
  return (("%q"):format(tostring(x)):gsub("[%c\128-\255]", "?"):sub(1, 80))
end

-- Foreign text as a terminal may have it: what it would obey, and what is no UTF-8, as \xNN; our
-- own lines stay. Of a long text begin and end. runtime/base/status.h does the same.
function names.shown(text)
  local function hex(bytes)
    return (bytes:gsub(".", function(c) return ("\\x%02x"):format(c:byte()) end))
  end
  local shown, at = {}, 1
  if #text > 4096 then text = text:sub(1, 2000) .. "..." .. text:sub(-2000) end
  while at <= #text do
    local good = utf8.len(text, at) and #text + 1 or select(2, utf8.len(text, at))
    shown[#shown + 1] = text:sub(at, good - 1)
    if good <= #text then shown[#shown + 1] = hex(text:sub(good, good)) end
    at = good + 1
  end
  local result = table.concat(shown):gsub("[\0-\8\11-\31\127]", hex)
  return (result:gsub("\xc2[\x80-\x9f]", hex):gsub("\xe2\x80[\x8e\x8f\xa8-\xae]", hex)
    :gsub("\xe2\x81[\xa6-\xa9]", hex))
end

return names
