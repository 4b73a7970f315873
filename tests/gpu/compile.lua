-- tests/gpu/compile.lua -- Kernels through the real NVRTC, for every architecture: stack frames and
-- spills are errors. Needs no GPU.
--
--   lua5.4 tests/gpu/compile.lua [--arch sm_80,sm_90a] [rms_norm ...]     all ops when none is named
--
-- What is compiled is what the tests of tests/gpu launch: a kernel whose sizes matter needs a case there.
-- NVRTC is $BURIN_NVRTC, or that of a toolkit or a PyPI package found here; without one: exit 77.

local folder = os.getenv "BURIN_TREE" or "."
package.path = folder .. "/?.lua;" .. package.path

local compile = { archs = "sm_80,sm_86,sm_89,sm_90a,sm_100a,sm_120a,sm_121a" }

local spec = require "tests.support.spec"

-- libnvrtc.so.13, or nil.
function compile.library()
  local given = os.getenv "BURIN_NVRTC"
  if given then return given end
  local found = spec.shell [[
    for f in /usr/local/cuda*/lib64/libnvrtc.so.1[2-9] /usr/local/cuda*/lib/libnvrtc.so.1[2-9] \
        /usr/lib/x86_64-linux-gnu/libnvrtc.so.1[2-9] \
        $(python3 -c 'import site; print(*site.getsitepackages(), site.getusersitepackages())' \
            2>/dev/null | tr ' ' '\n' | sed 's|$|/nvidia/cu1[3-9]/lib/libnvrtc.so.1[3-9]|'); do
      [ -e "$f" ] && echo "$f" && break
    done]]
  return found:match "^%S+"
end

-- The compiler of files, built when its text changed.
local function tool()
  os.execute "mkdir -p build/gpu"
  local output, code = spec.shell "[ build/gpu/nvrtc -nt tests/gpu/nvrtc.c ] || gcc -std=c11 -D_GNU_SOURCE \z
    -O1 -Wall -Wextra -Wshadow -Werror tests/gpu/nvrtc.c -o build/gpu/nvrtc -ldl -lpthread"
  if code ~= 0 then error(output, 0) end
  return "build/gpu/nvrtc"
end

-- Texts by name -> { { name, arch, registers, shared, stack } }, or nil and what is wrong, or nil, 77.
function compile.texts(texts, archs)
  local library = compile.library()
  if not library then return nil, 77 end
  local place, names, files = spec.folder(), {}, {}
  for name in pairs(texts) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do
    files[i] = ("%s/%s.cu"):format(place, name)
    local file = assert(io.open(files[i], "w"))
    file:write(texts[name])
    file:close()
  end
  local output, code = spec.shell(("%s %s %s %s"):format(tool(), library, archs or compile.archs,
    table.concat(files, " ")))
  if code ~= 0 then return nil, code == 77 and 77 or (output:gsub(place .. "/", "")) end
  local rows = {}
  for file, arch, registers, shared, stack in output:gmatch "(%S+) (sm_%S+) %S+ (%d+) (%d+) (%d+)\n" do
    rows[#rows + 1] = {
      name = file:match "([^/]*)%.cu$", arch = arch, registers = tonumber(registers),
      shared = tonumber(shared), stack = tonumber(stack),
    }
  end
  return rows
end

-- One line a kernel: registers on each architecture, in the order given; shared bytes.
function compile.print(rows, archs)
  local order, by_name = {}, {}
  for _, row in ipairs(rows) do
    if not by_name[row.name] then
      by_name[row.name] = {}
      order[#order + 1] = row.name
    end
    by_name[row.name][row.arch] = row
  end
  table.sort(order)
  local list = {}
  for arch in (archs or compile.archs):gmatch "[^,]+" do list[#list + 1] = arch end
  print(("%-48s %s  shared bytes"):format("registers on", table.concat(list, " ")))
  for _, name in ipairs(order) do
    local line, shared = { ("%-48s"):format(name) }, 0
    for _, arch in ipairs(list) do
      local row = by_name[name][arch]
      line[#line + 1] = ("%" .. #arch .. "s"):format(row and row.registers or "-")
      shared = row and math.max(shared, row.shared) or shared
    end
    print(("%s %7d"):format(table.concat(line, " "), shared))
  end
end

-- The kernels that tests/gpu/test_*.lua launch, of the ops in `wanted` (all where it is empty): their
-- files are run with a harness that gathers texts and runs nothing.
function compile.gather(wanted)
  local harness = require "tests.gpu.harness"
  local texts, said = harness.gather(wanted), print
  print = function() end -- luacheck: ignore; specifications tell how they went
  for path in spec.shell "ls tests/gpu/test_*.lua":gmatch "%S+" do
    local run = loadfile(path)
    if run then pcall(run) end
  end
  print = said
  return texts
end

if arg and arg[0] and arg[0]:find "compile%.lua$" then
  local wanted, archs, at = {}, nil, 1
  while arg[at] do
    if arg[at] == "--arch" then
      archs, at = arg[at + 1], at + 2
    else
      wanted[arg[at]], at = true, at + 1
    end
  end
  local rows, why = compile.texts(compile.gather(wanted), archs)
  if not rows then
    print(why == 77 and "no NVRTC here" or why)
    os.exit(why == 77 and 77 or 1, true)
  end
  compile.print(rows, archs)
end

return compile
