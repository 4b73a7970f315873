-- tests/support/spec.lua -- Specifications in Lua, and the command that runs them:
--
--   lua5.4 tests/support/spec.lua tests/gen/test_size.lua ['part of a name']
--
-- A test file says what its module promises:
--
--   local spec = require "tests.support.spec"
--   spec("a sum of sizes keeps its slope", function()
--     spec.equal(a + b, 7)
--     spec.raises("d_model must be", function() f() end)
--   end)
--
-- Run it from the root of the tree: modules are required as "gen.size".

local spec = setmetatable({ passed = 0, failed = 0, skipped = 0 }, {
  __call = function(self, name, run)
    if self.filter and not name:find(self.filter, 1, true) then return end
    local ok, why = xpcall(run, function(e)
      if type(e) == "table" and e.skip then return e end
      return debug.traceback(tostring(e), 2)
    end)
    if ok then
      self.passed = self.passed + 1
      print("[ ok ] " .. name)
    elseif type(why) == "table" then
      self.skipped = self.skipped + 1
      print("[skip] " .. name .. ": " .. why.skip)
    else
      self.failed = self.failed + 1
      print("[FAIL] " .. name .. "\n" .. why)
    end
  end,
})

local function text(value, indent)
  if type(value) ~= "table" then return type(value) == "string" and ("%q"):format(value) or tostring(value) end
  indent = indent or "  "
  local keys, lines = {}, {}
  for k in pairs(value) do keys[#keys + 1] = k end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for _, k in ipairs(keys) do
    lines[#lines + 1] = indent .. tostring(k) .. " = " .. text(value[k], indent .. "  ")
  end
  return "{\n" .. table.concat(lines, ",\n") .. " }"
end

-- Tables are equal when all they hold is.
function spec.equal(found, expected, what)
  local f, e = text(found), text(expected)
  if f ~= e then
    error(("%sexpected %s\nfound    %s"):format(what and what .. ": " or "", e, f), 2)
  end
end

function spec.near(found, expected, tolerance, what)
  if not (math.abs(found - expected) <= tolerance) then -- "not <=" catches NaN
    error(("%sexpected %.9g within %.3g, found %.9g"):format(
      what and what .. ": " or "", expected, tolerance, found), 2)
  end
end

function spec.contains(found, part)
  if not found:find(part, 1, true) then
    error(("expected to find\n%s\nin\n%s"):format(part, found), 2)
  end
end

-- `run` fails, and its message contains `part`. Returns the message.
function spec.raises(part, run, ...)
  local ok, message = pcall(run, ...)
  if ok then error("expected an error with: " .. part, 2) end
  message = tostring(type(message) == "table" and message.message or message)
  if not message:find(part, 1, true) then
    error(("expected an error with\n%s\nfound\n%s"):format(part, message), 2)
  end
  return message
end

function spec.skip(why) error { skip = why } end

-- Run a shell command: its output (both streams) and its exit code.
function spec.shell(command)
  local pipe = assert(io.popen("(" .. command .. ") 2>&1"))
  local output = pipe:read "a"
  local _, _, code = pipe:close()
  return output, code
end

-- A folder of its own, removed when the file is done.
local folders = {}
function spec.folder()
  local path = spec.shell("mktemp -d"):gsub("\n", "")
  folders[#folders + 1] = path
  return path
end

if arg and arg[0] and arg[0]:find "spec%.lua$" then
  package.loaded["tests.support.spec"] = spec
  spec.filter = arg[2]
  local run, why = loadfile(arg[1])
  if not run then
    print(why)
    os.exit(1)
  end
  local ok, message = xpcall(run, debug.traceback)
  if not ok then
    spec.failed = spec.failed + 1
    print("[FAIL] " .. arg[1] .. "\n" .. message)
  end
  for _, path in ipairs(folders) do os.execute("rm -rf '" .. path .. "'") end
  print(("%d passed, %d failed, %d skipped"):format(spec.passed, spec.failed, spec.skipped))
  local none = spec.passed == 0
  os.exit(spec.failed > 0 and 1 or none and (spec.skipped > 0 and 77 or 1) or 0, true)
end

return spec
