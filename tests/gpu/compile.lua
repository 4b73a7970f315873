-- tests/gpu/compile.lua -- Kernels through the real NVRTC, for every architecture: tools/kernels.c, with a
-- model's kernels or with those that tests/gpu/test_*.lua launch. Needs no GPU.
--
--   lua5.4 tests/gpu/compile.lua [rms_norm ...] [sm_80 ...]     all ops, all architectures when none is named
--
-- What is compiled is what these files launch: a kernel whose sizes matter needs a case there. Ends with
-- 77 where there is no NVRTC.

local folder = os.getenv "BURIN_TREE" or "."
package.path = folder .. "/?.lua;" .. package.path

local compile = {}

local spec = require "tests.support.spec"
local text = require "gen.emit.text"

local runtime = os.getenv "BURIN_RUNTIME" or "build/cmake/release/libburin_runtime.a"

-- kernels in each of these folders, of what C lies there; two at a time.
function compile.build(paths)
  local output, code = spec.shell(("printf '%%s\\n' %s | xargs -P 2 -I@ sh -c 'gcc -std=c11 -D_GNU_SOURCE -O1 "
    .. "-I. -I@ tools/kernels.c @/*.c %s -o @/kernels -ldl -lpthread -lm'"):format(
    table.concat(paths, " "), runtime))
  if code ~= 0 then
    io.stderr:write(output)
    os.exit(1, true)
  end
end

function compile.command(path, options)
  return ("BURIN_KERNEL_CACHE=${BURIN_KERNEL_CACHE-build/kernels} %s/kernels %s"):format(path, options)
end

-- Its exit status; the table goes to where ours goes.
function compile.run(path, options)
  io.stdout:flush()
  local _, _, code = os.execute(compile.command(path, options))
  return code
end

-- A model that has these kernels and no more, built; its folder.
function compile.write(name, launches)
  local path, known = "build/gpu/" .. name, {}
  local lines = { '#include "runtime/model.h"', "", "static const struct burin_kernel kernels[] = {" }
  for _, launch in ipairs(launches) do
    known[launch.name] = known[launch.name] or { n = 0 }
    local of_name = known[launch.name]
    if not of_name[launch.text] then
      of_name[launch.text], of_name.n = true, of_name.n + 1
      lines[#lines + 1] = ("    { .name = %s, .threads = %d, .shared_bytes = %d, .text =\n%s },"):format(
        text.string(launch.name .. (of_name.n > 1 and "." .. of_name.n or "")), launch.threads,
        launch.shared or 0, text.lines("        ", launch.text))
    end
  end
  lines[#lines + 1] = "};"
  lines[#lines + 1] = "static const struct burin_cuda_code code = {"
  lines[#lines + 1] = '    .prelude = "", .n_kernels = sizeof kernels / sizeof *kernels, .kernels = kernels,'
  lines[#lines + 1] = "};"
  lines[#lines + 1] = 'static const struct burin_family family = { .name = "sm80", .cuda = &code };'
  lines[#lines + 1] = ("const struct burin_model burin_model = { .name = %s, .n_families = 1, .families = &family };")
    :format(text.string(name))
  os.execute("mkdir -p " .. path)
  local file = assert(io.open(path .. "/kernels.c", "w"))
  file:write(table.concat(lines, "\n"), "\n")
  file:close()
  compile.build { path }
  return path
end

-- What tests/gpu/test_*.lua launch, of the ops in `wanted` (all where it is empty): their files are run
-- with a harness that gathers launches and runs nothing.
local function gather(wanted)
  local harness = require "tests.gpu.harness"
  local launches, said = harness.gather(wanted), print
  print = function() end -- luacheck: ignore; specifications tell how they went
  for path in spec.shell "ls tests/gpu/test_*.lua":gmatch "%S+" do
    local run = loadfile(path)
    if run then pcall(run) end
  end
  print = said
  return launches
end

if arg and arg[0] and arg[0]:find "compile%.lua$" then
  local wanted, archs = {}, {}
  for _, word in ipairs(arg) do
    if word:find "^sm_" then archs[#archs + 1] = word else wanted[word] = true end
  end
  local launches = gather(wanted)
  if #launches == 0 then
    io.stderr:write "no specification in tests/gpu launches that\n"
    os.exit(1, true)
  end
  os.exit(compile.run(compile.write("tests", launches), table.concat(archs, " ")), true)
end

return compile
