-- tests/ops/harness.lua -- Kernels out of their templates, compiled as the build does it,
-- run by a small C program, and what that program printed.
--
--   local kernel = harness.kernel("rms_norm", node, family)   what gen/ops/rms_norm.lua says
--   local c = harness.source(family) :add(kernel) :write(main)
--   local output = harness.run(family, c)
--
-- The program finds prelude.h included: a team of threads, numbers at random, checks.

local template = require "gen.template"

local harness = {}

local common = "gcc -std=c11 -D_GNU_SOURCE -I. -O3 -ffp-contract=off -Wall -Wextra -Wshadow -Werror"
harness.families = {
  { name = "portable", cpu = "portable", exact = false, flags = "" },
  { name = "avx512", cpu = "avx512", exact = false,
    flags = "-mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mavx512bf16 "
      .. "-mfma -mf16c" },
}

local function read(path)
  local file = assert(io.open(path))
  local text = file:read "a"
  file:close()
  return text
end

local function write(path, text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

local function shell(command)
  local pipe = assert(io.popen("(" .. command .. ") 2>&1"))
  local output = pipe:read "a"
  local ok = pipe:close()
  return output, ok
end

-- Whether this machine can run the family.
function harness.runs(family)
  if family.cpu ~= "avx512" then return true end
  return read "/proc/cpuinfo":find "avx512_bf16" ~= nil
end

-- Families that this machine can run.
function harness.here()
  local here = {}
  for _, family in ipairs(harness.families) do
    if harness.runs(family) then here[#here + 1] = family end
  end
  return here
end

-- ---- Kernels ------------------------------------------------------------------------

-- A size under the name that C gives it, for nodes made by hand: just the number.
local function dim_name(n) return tostring(n) end

-- What the op's file says of a node made by hand; unsaid fields are filled as gen does.
function harness.kernel(op_name, node, family)
  node.dim_name = node.dim_name or dim_name
  node.attrs = node.attrs or {}
  node.out = node.out or "f32"
  return require("gen.ops." .. op_name).kernel(node, family)
end

function harness.render(path, params)
  return template.render(read("templates/" .. path), "templates/" .. path, params)
end

-- ---- Programs -----------------------------------------------------------------------

local Source = {}
Source.__index = Source

function harness.source(family)
  local self = setmetatable({ text = {}, seen = {} }, Source)
  if family.cpu == "avx512" then self:write '#include "runtime/cpu/avx512.h"\n' end
  self:write '#include "tests/ops/prelude.h"\n'
  return self
end

function Source:write(text, ...)
  self.text[#self.text + 1] = select("#", ...) > 0 and text:format(...) or text
  return self
end

-- A kernel and what it calls, each name once.
function Source:add(kernel)
  for _, needed in ipairs(kernel.needs or {}) do self:add(needed) end
  if self.seen[kernel.name] then return self end
  self.seen[kernel.name] = true
  local params = setmetatable({ name = kernel.name }, { __index = kernel.params })
  self.text[#self.text + 1] = harness.render(kernel.template, params)
  return self
end

-- "rms_norm_64(t, y, x, weight, n_tokens)", with C expressions for what args name.
function harness.call(kernel, values)
  local args = { "t" }
  for _, arg in ipairs(kernel.args) do args[#args + 1] = values[arg] or arg end
  return ("%s(%s)"):format(kernel.name, table.concat(args, ", "))
end

-- { 1, 0.5 } as C's initializer, every bit of it.
function harness.floats(list)
  local text = {}
  for i, x in ipairs(list) do
    text[i] = x ~= x and "NAN" or ("%af"):format(string.unpack("<f", string.pack("<f", x)))
  end
  return "{ " .. table.concat(text, ", ") .. " }"
end

local folder = shell "mktemp -d":gsub("\n", "")
local folder_owner = setmetatable({}, { __gc = function() os.execute("rm -rf '" .. folder .. "'") end })
harness.folder, harness.folder_owner = folder, folder_owner

local n_programs = 0

-- Compile; returns the program's path.
function harness.build(family, source, flags)
  n_programs = n_programs + 1
  local path = ("%s/%s_%d"):format(folder, family.cpu, n_programs)
  write(path .. ".c", table.concat(source.text))
  local output, ok = shell(table.concat({
    common, family.flags, flags or "", path .. ".c", "runtime/cpu/team.c", "-o", path, "-lm -lpthread",
  }, " "))
  if not ok then error(("%s.c doesn't compile:\n%s"):format(path, output:sub(1, 4000)), 2) end
  return path
end

-- Compile and run; returns what it printed. Its failure is an error here.
function harness.run(family, source, flags)
  local path = harness.build(family, source, flags)
  local output, ok = shell(path)
  if not ok then error("the program failed:\n" .. output, 2) end
  return output
end

-- Emitted text as clang-format would have it: nil, or what differs.
function harness.unformatted(source)
  if not select(2, shell "command -v clang-format") then return nil end
  local path = folder .. "/format.c"
  write(path, table.concat(source.text))
  local output, ok = shell("clang-format --style=file:.clang-format " .. path .. " | diff " .. path .. " -")
  return not ok and output or nil
end

-- "err 0.5\nerr 0.25" -> { 0.5, 0.25 } for "err"
function harness.numbers(output, label)
  local list = {}
  for value in output:gmatch(label .. " (%S+)") do
    list[#list + 1] = value:find "nan" and 0 / 0 or tonumber(value)
  end
  return list
end

-- The end of a test file: counts and exit status, where it isn't run by tests/support/spec.lua.
function harness.done()
  if arg[0]:find "spec%.lua$" then return end
  local spec = require "tests.support.spec"
  print(("%d passed, %d failed"):format(spec.passed, spec.failed))
  os.exit(spec.failed == 0 and spec.passed > 0, true)
end

return harness
