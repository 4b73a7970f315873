-- gen/new.lua -- `gen new NAME`: a description to start from and its test, each in its place.
-- Nothing that is there is overwritten.

local names = require "gen.names"

local new = {}

local function read(path)
  local file = io.open(path, "rb")
  local text = file and file:read "a"
  if file then file:close() end
  return text
end

function new.run(root, name)
  if not names.is_identifier(name) then
    error({ message = "gen new NAME: lower-case letters, digits and '_'", code = 2 }, 0)
  end
  local files = {
    { path = "models/" .. name .. ".lua", template = "description.lua" },
    { path = "tests/gen/test_" .. name .. ".lua", template = "test.lua" },
  }
  for _, file in ipairs(files) do
    if read(root .. "/" .. file.path) then
      error({ message = file.path .. " is there already", code = 1 }, 0)
    end
  end
  for _, file in ipairs(files) do
    local out, why = io.open(root .. "/" .. file.path, "wb")
    if not out then error({ message = why, code = 1 }, 0) end
    out:write((read(root .. "/templates/new/" .. file.template):gsub("@NAME@", name)))
    out:close()
    io.write(file.path, "\n")
  end
  io.write(([[

Next: write its equations, then
  gen show @NAME@.lua --after trace
  gen --model @NAME@.lua && build
  lua5.4 tests/support/spec.lua tests/gen/test_@NAME@.lua
and a chat format, if it has one, as models/@NAME@_chat.lua
]]):gsub("@NAME@", name), "")
  return 0
end

return new
