-- gen/emit/check.lua -- The last look at what is written: every name in C is made of the letters
-- of a list, stands for one thing, and every file lies in the folder it is written to. Where a
-- description's name came so far and is none, that is our mistake: it fails loudly.

local names = require "gen.names"

local check = {}

local function fail(message, ...) error({ message = message:format(...), code = 1 }, 0) end

local function identifier(what, name)
  if not names.is_identifier(name) then fail("%s: %s can't stand in C", what, names.quoted(name)) end
end

-- A size's definition: names, numbers and + - * /.
local function expression(what, text)
  if not text:find "^[A-Z0-9_ ()*/+-]+$" then
    fail("%s: %s can't stand in C", what, names.quoted(text))
  end
end

function check.model(model)
  for _, dim in ipairs(model.dims) do
    if not names.is_size(dim.name) then identifier("a size", nil) end
    expression(dim.name, dim:definition())
  end
  for _, weight in ipairs(model.weights) do identifier("a weight", weight.role) end
  for _, group in ipairs(model.groups) do
    identifier("a group of layers", group.role)
    for _, block in ipairs(group.layers) do
      identifier("a block", block.name)
      for _, weight in ipairs(block.weights) do identifier("a weight", weight.role) end
    end
  end
end

function check.family(family)
  identifier("a family", family.name)
  for _, program in ipairs(family.programs) do
    identifier("a program", program.name)
    for _, input in ipairs(program.inputs) do identifier("an input", input.name) end
    for _, output in ipairs(program.outputs) do identifier("an output", output.name) end
    for _, buffer in ipairs(program.buffers or {}) do identifier("a buffer", buffer.name) end
    for _, item in ipairs(program.ops) do
      for _, section in ipairs(item.sections or {}) do
        identifier("a section", section.name)
        local packed = {}
        for _, row in ipairs(section.weights) do
          local weight = row.weight
          if packed[weight] then
            fail("%s:%d: weight '%s' is read in two ways (beside another one, and alone): it can be packed in one",
              weight.file, weight.line, weight.role)
          end
          packed[weight] = true
        end
      end
    end
  end
end

-- What a file defines at its own level, by name; `known` is what its header does.
local function definitions(file, known)
  local found = setmetatable({}, { __index = known })
  local function define(name)
    if found[name] then
      fail("%s: two things would be called %s in C: give the block, size or program that it is "
        .. "named for another name", file.name, name)
    end
    found[name] = true
  end
  for line in ("\n" .. file.text):gmatch "\n([sv][to][raui][utid][^\n]*)" do -- struct, static, void
    local tag = line:match "^struct ([%w_]+) {"
    if tag then define("struct " .. tag) end
    line = line:gsub("__attribute__%(%b()%) ?", "")
    local name = line:match "^static [^=;]-([%w_]+)%("
      or line:match "^void ([%w_]+)%(" or line:match "^static const [^=]-([%w_]+)%[%] = {"
    if name and not line:find ";$" then define(name) end
  end
  for body in file.text:gmatch "\nenum (%b{})" do
    for name in body:gmatch "([A-Z][A-Z0-9_]*) =" do define(name) end
  end
  return found
end

-- `files` = { { name, text } }: one header, which all sources see.
function check.files(files)
  local header = {}
  for _, file in ipairs(files) do
    if not names.is_file_name(file.name) then
      fail("%s can't be a file's name", names.quoted(file.name))
    end
    if file.name:find "%.h$" then header = definitions(file, nil) end
  end
  for _, file in ipairs(files) do
    if file.name:find "%.c$" then definitions(file, header) end
  end
end

return check
