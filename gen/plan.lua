-- gen/plan.lua -- `gen plan`: compiles the emitted tables with runtime/plan and runs the
-- result. The planner is C, so that what gen says is what the binary says (runtime/plan/plan.h).

local plan = {}

-- What the planner is made of: no weights, text, engine or kernels.
local SOURCES = "runtime/app/plan_main.c runtime/app/make_plan.c runtime/app/settings.c "
  .. "runtime/plan/plan.c runtime/plan/report.c runtime/plan/size.c runtime/device/machine.c "
  .. "runtime/base/status.c runtime/base/units.c runtime/base/json.c runtime/base/utf8.c "
  .. "runtime/base/put.c runtime/base/span.c"

local function quote(s) return "'" .. s:gsub("'", "'\\''") .. "'" end

local function fail(message, ...) error({ message = message:format(...), code = 1 }, 0) end

-- The exit code of a shell command.
local function execute(command)
  local _, how, code = os.execute(command)
  return how == "exit" and code or 128 + (code or 0)
end

-- `out` holds the tables of model `name`; `rest` are the planner's options. Compiled again only
-- where a source is newer than the program: the tables are written only if they changed.
function plan.run(root, out, name, rest)
  local program, log = out .. "/plan", out .. "/plan.log"
  local tables = quote(out .. "/" .. name .. ".c")
  local compile = ("cd %s && if [ ! -x %s ] || [ -n \"$(find runtime/app runtime/plan runtime/base runtime/device runtime/model.h %s -name '*.[ch]' -newer %s | head -1)\" ]; then "
    .. "${CC:-cc} -O1 -std=c11 -D_GNU_SOURCE -I. -I%s %s %s -lm -o %s >%s 2>&1; fi"):format(
    quote(root), quote(program), tables, quote(program), quote(out), tables, SOURCES, quote(program), quote(log))
  if execute(compile) ~= 0 then fail("the plan of %s doesn't compile: see %s", name, log) end

  local words = { quote(program) }
  for _, word in ipairs(rest) do words[#words + 1] = quote(word) end
  return execute(table.concat(words, " "))
end

return plan
