-- gen/plan.lua -- `gen plan`: compiles the emitted tables with runtime/plan and runs the
-- result. The planner is C, so that what gen says is what the binary says (runtime/plan/plan.h).

local plan = {}

-- What the planner is made of: no weights, text, engine or kernels.
local SOURCES = "runtime/app/plan_main.c runtime/app/make_plan.c runtime/app/settings.c "
  .. "runtime/app/options.c runtime/app/option_values.c "
  .. "runtime/plan/*.c runtime/device/machine.c runtime/base/status.c runtime/base/units.c "
  .. "runtime/base/json.c runtime/base/json_scan.c runtime/base/utf8.c runtime/base/put.c "
  .. "runtime/base/span.c"

local function quote(s) return "'" .. s:gsub("'", "'\\''") .. "'" end

local function fail(message, ...) error({ message = message:format(...), code = 1 }, 0) end

-- The exit code of a shell command.
local function execute(command)
  local _, how, code = os.execute(command)
  return how == "exit" and code or 128 + (code or 0)
end

-- Runs a script in the root, what it says goes to `log`.
local function build(root, log, script)
  return execute(("(cd %s && set -e\n%s) >%s 2>&1"):format(quote(root), script, quote(log)))
end

-- The planner's objects serve all models. Compiled again only where a source is newer; put in
-- place as a whole, since two may be at it.
local PLANNER = [[
p=build/gen-plan/planner
if [ ! -e $p.o ] || [ -n "$(find runtime/app runtime/plan runtime/base runtime/device runtime/model.h -name '*.[ch]' -newer $p.o | head -1)" ]; then
  mkdir -p $p.$$
  for f in %s; do ${CC:-cc} -O1 -std=c11 -D_GNU_SOURCE -I. -c $f -o $p.$$/$(echo $f | tr / -).o; done
  ${LD:-ld} -r $p.$$/*.o -o $p.$$.o
  rm -r $p.$$
  mv $p.$$.o $p.o
fi
]]

-- `out` holds the tables of model `name`, which are written only if they changed.
local MODEL = [[
p=%s
if [ ! -x "$p" ] || [ -n "$(find build/gen-plan/planner.o runtime/model.h %s -newer "$p" | head -1)" ]; then
  ${CC:-cc} -O0 -std=c11 -I. -I%s %s build/gen-plan/planner.o -lm -o "$p.$$"
  mv "$p.$$" "$p"
fi
]]

-- --explain names the description's line; here is the file, so here is what stands in it.
local function line_of(root, path, number)
  if not path then return nil end
  local file = io.open(root .. "/" .. path) or io.open(path)
  if not file then return nil end
  local at = 0
  for line in file:lines() do
    at = at + 1
    if at == tonumber(number) then
      file:close()
      return line:match "^%s*(.-)%s*$"
    end
  end
  file:close()
end

local function explain(root, run)
  local pipe = io.popen(run)
  for line in pipe:lines() do
    io.write(line, "\n")
    local text = line_of(root, line:match "made by ([^:]+%.lua):(%d+)$")
    if text then io.write("    line     ", text, "\n") end
  end
  local _, how, code = pipe:close()
  return how == "exit" and code or 128 + (code or 0)
end

-- `rest` are the planner's options.
function plan.run(root, out, name, rest)
  local program, log = out .. "/plan", out .. "/plan.log"
  local tables = quote(out .. "/" .. name .. ".c")
  local script = PLANNER:format(SOURCES) .. MODEL:format(quote(program), tables, quote(out), tables)
  if build(root, log, script) ~= 0 then fail("the plan of %s doesn't compile: see %s", name, log) end

  local words, explains = { quote(program) }, false
  for _, word in ipairs(rest) do
    words[#words + 1] = quote(word)
    explains = explains or word:find "^%-%-explain" ~= nil
  end
  local run = table.concat(words, " ")
  if explains then return explain(root, run) end
  return execute(run)
end

return plan
