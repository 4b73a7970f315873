-- tests/gpu/harness.lua -- What gen/ops/<op>.lua launches on a GPU, run on the CPU: the kernels' text
-- behind the prelude, compiled by g++ behind host.h, its threads fibers (fibers.cpp).
--
--   local out = harness.run {
--     op = "rms_norm",
--     node = { inputs = { x = { dims = { "rows", 64 } }, weight = { dims = { 64 }, dtype = "f32" } },
--              attrs = { eps = 1e-5 } },
--     args = { x = harness.bf16(x), weight = harness.f32(w), y = harness.result("bf16", 5 * 64),
--              rows = 5 },
--   }
--   harness.compare(out.y, expected, "bf16")
--
-- What a node leaves unsaid: rows are bf16, y is as x. `args` has a value for every name in a
-- launch's args but scratch and those with "=". Where few rows take another kernel, both run and
-- must give the same bits. Each run is repeated in other orders (harness.runs()) and must leave the
-- same bytes; buffers end at pages that nobody may touch, results are NaN before, inputs read only.
--
-- BURIN_GPU_CHECK=address|thread compiles kernels with that sanitizer; thread: 20 seeds. A case
-- that says `large = true` is skipped then, and BURIN_GPU_CHECK=large runs just those.
-- BURIN_GPU_SEEDS=N says how many.

local kernels = require "gen.emit.kernels"
local spec = require "tests.support.spec"

local harness = {
  family = { name = "sm80", sm = 80, cuda = "sm80" },
  check = os.getenv "BURIN_GPU_CHECK" or "",
}

-- ---- Values -------------------------------------------------------------------------------

local function flat(list)
  if type(list[1]) ~= "table" then return list end
  local all = {}
  for _, row in ipairs(list) do table.move(row, 1, #row, #all + 1, all) end
  return all
end

-- To nearest, ties to even; lists of numbers or of rows.
function harness.to_bf16(x)
  if x ~= x then return 0x7fff end
  local bits = string.unpack("<I4", string.pack("<f", x)) -- a float first, as on the device
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16 & 0xffff
end

function harness.of_bf16(bits) return (string.unpack("<f", string.pack("<I4", bits << 16))) end

-- The bf16 next to x, as a number.
function harness.round(x) return harness.of_bf16(harness.to_bf16(x)) end

local function pack(format, list, map)
  local parts = {}
  for i, x in ipairs(flat(list)) do parts[i] = string.pack(format, map and map(x) or x) end
  return table.concat(parts)
end

local formats = { -- bytes of one, how it is read
  bf16 = { 2, "<I2", harness.of_bf16 }, f32 = { 4, "<f" }, i32 = { 4, "<i4" }, u16 = { 2, "<I2" },
  u8 = { 1, "<I1" },
}

function harness.bf16(list) return { dtype = "bf16", bytes = pack("<I2", list, harness.to_bf16) } end
function harness.f32(list) return { dtype = "f32", bytes = pack("<f", list) } end
function harness.i32(list) return { dtype = "i32", bytes = pack("<i4", list) } end
function harness.u8(list) return { dtype = "u8", bytes = pack("<I1", list) } end
function harness.bytes(text) return { dtype = "u8", bytes = text } end -- as they are: packed weights
function harness.result(dtype, n) return { dtype = dtype, n_bytes = n * formats[dtype][1] } end

-- A given value that the kernel changes: in-place operations, caches.
function harness.changed(value) return { dtype = value.dtype, bytes = value.bytes, changed = true } end

-- ---- Programs -------------------------------------------------------------------------------

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

local function hash(text) -- FNV-1a
  local h = 0xcbf29ce484222325
  for i = 1, #text do h = (h ~ text:byte(i)) * 0x100000001b3 end
  return ("%016x"):format(h)
end

local built = "build/gpu"
local flags = "-std=c++17 -I. -fno-gnu-unique -ffp-contract=off "
local plain = { kernel = "-O1 -fsanitize=alignment -fsanitize-undefined-trap-on-error" }
local of_check = {
  [""] = plain,
  large = plain,
  address = {
    kernel = "-O1 -g1 -fsanitize=address,alignment,bounds,shift,signed-integer-overflow,"
      .. "integer-divide-by-zero -fno-sanitize-recover=undefined", -- all of undefined takes twice as long
    fibers = "-DFIBERS_ASAN", runner = "-DFIBERS_ASAN", link = "-fsanitize=address,undefined",
    environment = "ASAN_OPTIONS=detect_stack_use_after_return=0:detect_leaks=0 ",
  },
  thread = {
    kernel = "-O1 -g1 -fsanitize=thread", fibers = "-DFIBERS_TSAN", runner = "-DFIBERS_TSAN",
    link = "-fsanitize=thread",
    -- Its shadow has fixed places: where a system puts programs at random in a wider range it can't start.
    environment = "TSAN_OPTIONS=halt_on_error=1:exitcode=66:atexit_sleep_ms=0 "
      .. (os.execute "setarch -R true 2>/dev/null" and "setarch -R " or ""),
  },
}

-- Compile once: what is there by that name was made of the same text.
local function build(name, key, command)
  os.execute("mkdir -p " .. built)
  local path = ("%s/%s-%s"):format(built, name, hash(key))
  local file = io.open(path)
  if file then
    file:close()
    return path
  end
  local partial = ("%s.%s"):format(path, os.tmpname():match "[^/_]*$")
  local output, code = spec.shell(command:gsub("%%o", partial))
  if code ~= 0 then error(("%s doesn't compile:\n%s"):format(name, output:sub(1, 6000)), 0) end
  assert(os.rename(partial, path))
  return path
end

local runners = {}
local function runner_path()
  if runners[harness.check] then return runners[harness.check] end
  local check = of_check[harness.check]
  local key = { harness.check }
  for _, file in ipairs { "host.h", "fibers.h", "fibers.cpp", "runner.cpp" } do
    key[#key + 1] = read("tests/gpu/" .. file)
  end
  local common = "g++ -O2 -g1 -Wall -Wextra -Wshadow -Werror -DHOST_NO_KERNELS " .. flags
  local runner = build("runner", table.concat(key), table.concat({
    common, check.fibers or "", "-c tests/gpu/fibers.cpp -o %o.o &&",
    common, check.runner or "", check.link or "", "-rdynamic tests/gpu/runner.cpp %o.o -o %o -ldl",
    "&& rm %o.o",
  }, " "))
  runners[harness.check] = runner
  return runner
end

local host_text
local function compile(text, name)
  local command = of_check[harness.check].kernel
  host_text = host_text or read "tests/gpu/host.h"
  local path = ("%s/%s-%s.cpp"):format(built, name, hash(text))
  os.execute("mkdir -p " .. built)
  write(path, text)
  return build(name, flags .. command .. host_text .. text, ("g++ -shared -fPIC -w %s %s "
    .. "-include tests/gpu/host.h %s -o %%o"):format(flags, command, path))
end

-- ---- Launches -------------------------------------------------------------------------------

local function filled(node)
  node.dim_name = node.dim_name or function(n) return tostring(n) end
  node.attrs = node.attrs or {}
  node.kv_dtype = node.kv_dtype or "bf16"
  for _, input in pairs(node.inputs) do
    if input.dims and not input.format then input.dtype = input.dtype or "bf16" end
  end
  local x = node.inputs.x or {}
  node.y = node.y or { dims = x.dims }
  node.y.dtype = node.y.dtype or x.dtype or "bf16"
  node.out = node.out or node.y.dtype
  return node
end

-- For compile.lua: from here on nothing runs, results are zeros, nothing is compared. Returns a list
-- that fills with launches, of the ops in `wanted`, or of all where it is empty.
local gathered
function harness.gather(wanted)
  gathered = { launches = {}, wanted = next(wanted) and wanted }
  return gathered.launches
end

local function gather(op_name, launch)
  if gathered.wanted and not gathered.wanted[op_name] then return end
  gathered.launches[#gathered.launches + 1] = launch
end

-- What the op's file launches for a node made by hand, each launch with `text`, its kernel behind the
-- prelude, and what takes its place where rows are few as `few`, complete.
function harness.launches(op_name, node, family)
  local said = require("gen.ops." .. op_name).cuda
  if type(said) == "function" then said = said(filled(node), family or harness.family) end
  if not said or not said.launches then
    error(("gen/ops/%s.lua has no kernels for this node"):format(op_name), 2)
  end
  local list = { scratch = said.scratch }
  local function whole(launch)
    local set = kernels.new()
    local own = { name = set.add(launch) }
    own.text = kernels.prelude() .. "\n" .. set.unit(own.name)
    return setmetatable(own, { __index = launch })
  end
  for i, launch in ipairs(said.launches) do
    list[i] = whole(launch)
    if launch.few then
      list[i].few = whole(setmetatable({ needs = launch.few.needs or launch.needs }, {
        __index = function(_, key)
          if key == "few" then return nil end
          local own = launch.few[key]
          if own == nil and key ~= "by" then own = launch[key] end
          return own
        end,
      }))
    end
    if launch.fast then list[i].unpack = whole(launch.fast.unpack) end
    if gathered then
      gather(op_name, list[i])
      if list[i].unpack then gather(op_name, list[i].unpack) end
      if list[i].few then gather(op_name, list[i].few) end
    end
  end
  return list
end

local function parameter_name(arg)
  return arg:match "^([%w_]+)=" or (arg == "rows" and "n_rows" or arg)
end

-- The end of a kernel's file: the kernel made known, and the ints and blocks of this launch.
local function epilogue(launch, values)
  local bounds, name = launch.text:match "__global__%s+__launch_bounds__(%b())%s*void%s+([%w_]+)"
  if not bounds then
    name, bounds = launch.text:match "__global__%s+void%s+__launch_bounds__(%b())%s*([%w_]+)"
    name, bounds = bounds, name
  end
  if name ~= launch.name then
    error(("no `__global__ __launch_bounds__(N) void %s` in templates/%s"):format(launch.name,
      launch.template), 0)
  end
  local lines = { "", ("HOST_KERNEL(%s, (%s))"):format(name, bounds:sub(2, -2):match "^[^,]*") }
  lines[#lines + 1] = 'extern "C" __attribute__((visibility("default"))) int host_launch(int *ints, unsigned *grid)'
  lines[#lines + 1] = "{"
  for i, arg in ipairs(launch.args) do
    local text = arg:match "=(.*)"
    if text then
      lines[#lines + 1] = ("    const int %s = ints[%d] = (int)(%s);"):format(parameter_name(arg), i - 1, text)
    elseif type(values[arg]) == "number" then
      lines[#lines + 1] = ("    const int %s = ints[%d];"):format(parameter_name(arg), i - 1)
    end
  end
  for i = 1, 3 do
    lines[#lines + 1] = ("    grid[%d] = (unsigned)(%s);"):format(i - 1, launch.blocks[i] or 1)
  end
  lines[#lines + 1] = "    return 0;\n}\n"
  return table.concat(lines, "\n")
end

-- ---- Runs -----------------------------------------------------------------------------------

local ORDERS = { in_order = 0, reverse = 1, random = 2 }
local COPIES = { late = 0, early = 1, any_time = 2 }

-- Orders of threads and of copies, each { order, copies, seed }. ThreadSanitizer knows what is ordered
-- and what only happened to be: it's shown chance alone.
function harness.runs()
  local thread = harness.check == "thread"
  local list = thread and {} or {
    { "in_order", "late", 0 }, { "reverse", "early", 0 }, { "in_order", "early", 0 }, { "reverse", "late", 0 },
  }
  local n = tonumber(os.getenv "BURIN_GPU_SEEDS") or (thread and 20 or 2)
  local copies = { "any_time", "late", "early" }
  for seed = 1, n do list[#list + 1] = { "random", copies[(seed - 1) % 3 + 1], seed } end
  return list
end

local folder
local n_jobs = 0

local function zeros(args)
  local out = { raw = {} }
  for name, value in pairs(args) do
    if type(value) == "table" and (value.changed or value.n_bytes) then
      local n_bytes = value.n_bytes or #value.bytes
      out[name], out.raw[name] = {}, ("\0"):rep(n_bytes)
      for i = 1, n_bytes // formats[value.dtype][1] do out[name][i] = 0 end
    end
  end
  return out
end

local function applies(launch, values)
  local few = launch.few
  if not few then return false end
  local by = few.by or "n_rows"
  local n = values[by] or by == "n_rows" and values.rows or error("args has no " .. by, 0)
  return n <= few.rows
end

-- `both`: first with the kernels for many rows, then with those for few where there are.
local function job_of(case, list, both)
  local values = setmetatable({}, { __index = case.args })
  if list.scratch and list.scratch > 0 and not case.args.scratch then
    values.scratch = { dtype = "u8", n_bytes = list.scratch, hidden = true }
  end
  folder = folder or spec.folder()
  n_jobs = n_jobs + 1
  local path = ("%s/job%d"):format(folder, n_jobs)
  local lines, data, at, results, seen = { "data " .. path .. ".data" }, {}, 0, {}, {}
  for _, launch in ipairs(list) do
    for _, arg in ipairs(launch.args) do
      local value = values[arg]
      if value == nil and not arg:find "=" then
        error(("args has no %s, which %s takes"):format(arg, launch.name), 0)
      end
      if type(value) == "table" and not seen[arg] then
        seen[arg] = true
        local kind = value.changed and "inout" or value.bytes and "in" or value.hidden and "scratch" or "out"
        local n_bytes = value.bytes and #value.bytes or value.n_bytes
        lines[#lines + 1] = ("buffer %s %s %d %d"):format(arg, kind, n_bytes, at)
        if value.bytes then
          data[#data + 1] = value.bytes
          at = at + n_bytes
        end
        if kind ~= "in" then
          results[#results + 1] = { name = arg, n_bytes = n_bytes, dtype = value.dtype, hidden = value.hidden }
        end
      end
    end
  end
  local function add(launch)
    local text = launch.text .. epilogue(launch, values)
    lines[#lines + 1] = ("library ./%s %s"):format(compile(text, launch.name), launch.name)
    local words = { ("launch host_launch %d %d %d"):format(launch.threads, launch.shared or 0, #launch.args) }
    for _, arg in ipairs(launch.args) do
      local value = values[arg]
      words[#words + 1] = arg:find "=" and "made" or type(value) == "number" and "int " .. value
        or "buffer " .. arg
    end
    lines[#lines + 1] = table.concat(words, " ")
  end
  for _, launch in ipairs(list) do add(launch) end
  if both then
    lines[#lines + 1] = "again"
    for _, launch in ipairs(list) do add(applies(launch, case.args) and launch.few or launch) end
  end
  for _, run in ipairs(case.runs or harness.runs()) do
    lines[#lines + 1] = ("run %d %d %d"):format(ORDERS[run[1]], COPIES[run[2]], run[3])
  end
  lines[#lines + 1] = "result " .. path .. ".result"
  write(path .. ".data", table.concat(data))
  write(path, table.concat(lines, "\n") .. "\n")
  return path, results
end

local function run_once(case, list, both)
  local path, results = job_of(case, list, both)
  local output, code = spec.shell(("%s%s %s"):format(of_check[harness.check].environment or "",
    runner_path(), path))
  if code ~= 0 then error(("%s: %s"):format(case.op or "kernel", output), 0) end
  local bytes, at, out = read(path .. ".result"), 1, { raw = {} }
  for _, result in ipairs(results) do
    local width, format, map = table.unpack(formats[result.dtype])
    local text = bytes:sub(at, at + result.n_bytes - 1)
    at = at + result.n_bytes
    if not result.hidden then
      local numbers = {}
      for i = 1, #text, width do
        local x = string.unpack(format, text, i)
        numbers[#numbers + 1] = map and map(x) or x
      end
      out[result.name], out.raw[result.name] = numbers, text
    end
  end
  for _, suffix in ipairs { "", ".data", ".result" } do os.remove(path .. suffix) end
  return out
end

-- Runs a case: every result and changed value as a list of numbers, by name, and as text in `raw`.
function harness.run(case)
  local checked = harness.check ~= "" and not gathered
  if checked and (harness.check == "large") ~= (case.large == true) then
    spec.skip(case.large and "large" or "not large")
  end
  local list = harness.launches(case.op, case.node, case.family)
  if gathered then return zeros(case.args) end
  local both = false
  for _, launch in ipairs(list) do both = both or applies(launch, case.args) end
  return run_once(case, list, both)
end

-- Runs what leaves the weights of a case's product in scratch for cuBLASLt: args are scratch, weight
-- and n_out.
function harness.run_unpack(case)
  local unpack = harness.launches(case.op, case.node)[1].unpack
  if gathered then return zeros(case.args) end
  return run_once(case, { setmetatable({ args = { "scratch", "weight", "n_out" } }, { __index = unpack }) })
end

-- Runs a kernel that is no op's: { text (the prelude stands before it), name, args (names, in order),
-- blocks, threads, shared }, with values as in a case.
function harness.run_text(kernel, values, runs)
  local launch = setmetatable({ text = kernels.prelude() .. "\n" .. kernel.text }, { __index = kernel })
  return run_once({ op = kernel.name, args = values, runs = runs }, { launch })
end

-- ---- Numbers ----------------------------------------------------------------------------------

-- Bits that all CPUs agree on; the same on every run.
local state = 1
function harness.random() -- of deviation 1, a bf16
  local sum = 0
  for _ = 1, 3 do
    state = state * 6364136223846793005 + 1442695040888963407
    sum = sum + (state >> 40) / 2 ^ 24
  end
  return harness.round(2 * sum - 3)
end

function harness.numbers(n)
  local list = {}
  for i = 1, n do list[i] = harness.random() end
  return list
end

function harness.matrix(n, d)
  local rows = {}
  for i = 1, n do rows[i] = harness.numbers(d) end
  return rows
end

-- How far a result may be from the reference in double, of |expected| and of the row's largest.
local tolerance = {
  exact = { 0, 0 },              -- what is moved or rounded, and not added
  f32 = { 1e-5, 1e-6 },          -- sums in floats, exp2f and rsqrtf of 2 bits' error
  bf16 = { 1 / 256 + 2e-5, 1e-6 }, -- one rounding to 8 bits, which the float's own error may tip
}

-- Rows, or one list. `more` is an allowance of its own, with its reason where it is given: times
-- the row's largest magnitude.
function harness.compare(found, expected, dtype, more)
  if gathered then return end
  local relative, of_row = table.unpack(tolerance[dtype])
  local rows = type(expected[1]) == "table" and expected or { expected }
  local at = 0
  for i, row in ipairs(rows) do
    local largest = 0
    for _, x in ipairs(row) do largest = math.max(largest, math.abs(x)) end
    for j, x in ipairs(row) do
      at = at + 1
      local value = found[at]
      if value ~= x then
        spec.near(value or 0 / 0, x, relative * math.abs(x) + (of_row + (more or 0)) * largest + 1e-30,
          ("row %d, column %d"):format(i, j))
      end
    end
  end
  spec.equal(#found, at, "numbers in the result")
end

-- op.reference of each row: inputs are lists of rows (one for each of the result's), weights lists.
function harness.reference(op_name, n_rows, d, inputs, attrs)
  local def = require("gen.ops." .. op_name)
  local rows = {}
  for i = 1, n_rows do
    local list = {}
    for j, name in ipairs(def.inputs) do
      local value = inputs[name]
      list[j] = type(value) == "table" and type(value[1]) == "table" and value[i] or value
    end
    list[#def.inputs + 1] = attrs or {}
    local y = {}
    for j = 1, d do y[j] = 0 end
    def.reference(y, table.unpack(list, 1, #def.inputs + 1))
    rows[i] = y
  end
  return rows
end

return harness
