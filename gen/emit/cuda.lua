-- gen/emit/cuda.lua -- One CUDA family of one model: its kernels as CUDA text, and the host program
-- that launches them, which is the one of gen/emit/c.lua with launches for calls.
--
--   sm80.cu         all kernels behind the prelude, for people
--   sm80.c          what launches each, then the programs
--   sm80_kernels.c  the text of each kernel by itself, for NVRTC: it compiles them side by side

local c = require "gen.emit.c"
local kernels = require "gen.emit.kernels"
local node = require "gen.node"
local standard = require "gen.standard"
local size = require "gen.size"
local structs = require "gen.emit.structs"
local text = require "gen.emit.text"

local emit = {}

local File = setmetatable({}, { __index = c.File })
File.__index = File

File.first = { type = "const struct burin_stream *t", why = "where kernels are put, one behind the other" }

-- ---- Launches -----------------------------------------------------------------------------

-- What an argument is called in C, and whether it is an int. `op` has the inputs.
local function parameter(arg, inputs)
  local name, of_stride = arg:match "^([a-z_0-9]+)=", arg:match "^(.*)_stride$"
  local extent = arg:match "^n_(.*)$"
  if inputs[arg] or arg == "ring" or arg == "scratch" or arg == "pages" then return arg, false end
  if name then return name, true end
  if arg == "rows" then return "n_rows", true end
  if of_stride and inputs[of_stride] then return arg, true end
  if standard.shapes[arg] then return arg, false end
  if arg == "layer" or arg == "max_pages" or size.extent_names[extent] then return arg, true end
  error(("'%s' isn't an argument of a kernel"):format(arg), 0)
end

local function kernel_number(name) return "KERNEL_" .. name:upper() end

-- A size of the model that a kernel's text names stands in front of it.
function File:sizes_in(unit)
  local words, lines = {}, {}
  for word in unit:gmatch "[A-Z][A-Z0-9_]*" do words[word] = true end
  for _, dim in ipairs(self.model.dims) do
    local name = dim:c()
    if words[name] and dim:is_constant() then
      lines[#lines + 1] = ("    %s = %d,"):format(name, dim:value())
      words[name] = nil
    end
  end
  return #lines > 0 and "enum {\n" .. table.concat(lines, "\n") .. "\n};\n\n" or ""
end

-- One of the kernels that a launch may be of.
function File:kernel(spec)
  local name = self.kernels.add(spec)
  local known = self.of_name[name]
  if not known then
    known = { name = name, threads = spec.threads, shared = 0, fast_gemm = spec.fast_gemm }
    self.of_name[name] = known
    self.list[#self.list + 1] = known
  end
  if known.threads ~= spec.threads then
    error(("kernel %s is launched with %d threads and with %d"):format(name, known.threads, spec.threads), 0)
  end
  known.shared = math.max(known.shared, spec.shared or 0)
  return name
end

local function launch_line(indent, name, spec)
  local blocks = {}
  for i = 1, 3 do blocks[i] = tostring(spec.blocks[i] or 1) end
  return text.call(indent, "burin_launch", { "t", kernel_number(name),
    ("(struct burin_blocks){ %s }"):format(table.concat(blocks, ", ")), tostring(spec.threads),
    tostring(spec.shared or 0), "args" }, ";")
end

-- Under --fast-gemm the product may be cuBLASLt's.
function File:fast_branch(fast)
  local name = self:kernel(fast.unpack)
  return table.concat({
    "    const struct burin_product product = {",
    ("        .unpack = %s, .unpack_blocks = { %s, 1 }, .unpack_threads = %d,"):format(kernel_number(name),
      table.concat(fast.unpack.blocks, ", "), fast.unpack.threads),
    "        .y = y, .y_stride = y_stride, .x = x, .weight = weight,",
    ("        .n_out = n_out, .k = %s, .n_rows = n_rows, .y_dtype = BURIN_%s, .adds = %s,"):format(fast.k,
      fast.y_dtype:upper(), tostring(fast.adds)),
    "        .scratch = scratch, .scratch_bytes = scratch_bytes,",
    "    };",
    "",
    "    if (burin_fast_product(t, &product))",
    "        return;",
  }, "\n")
end

-- What is said of the one, where it isn't said of the other.
local function with(launch, other)
  local both = {}
  for _, said in ipairs { launch, other } do
    for key, value in pairs(said) do both[key] = value end
  end
  return both
end

-- What launches a kernel, or the one for few rows: written once. Returns its name.
function File:launcher(launch, op)
  local inputs = { y = true }
  for _, input in ipairs(op.inputs) do inputs[input.name] = true end
  local name, few = self:kernel(launch), launch.few
  if few then
    few = with(launch, few)
    few.kernel_name = self:kernel(few)
  end
  local params, args = { self.first.type }, {}
  for i, arg in ipairs(launch.args) do
    local c_name, is_int = parameter(arg, inputs)
    params[i + 1] = (is_int and "int " or "const void *") .. c_name
    args[i] = "&" .. c_name
  end
  if launch.fast then
    params[#params + 1] = "const void *scratch"
    params[#params + 1] = "int scratch_bytes"
  end
  local lines = { text.declare("static void " .. name, params), "{" }
  lines[#lines + 1] = text.call("    ", "void *args[] = ", args, ";"):gsub("= %(\n", "= {\n")
    :gsub("= %(", "= { "):gsub("%);$", " };")
  lines[#lines + 1] = ""
  if launch.fast then lines[#lines + 1] = self:fast_branch(launch.fast) end
  if few then
    lines[#lines + 1] = ("    if (%s <= %d)"):format(few.by or "n_rows", few.rows)
    lines[#lines + 1] = launch_line("        ", few.kernel_name, few)
    lines[#lines + 1] = "    else"
    lines[#lines + 1] = launch_line("        ", name, launch)
  else
    lines[#lines + 1] = launch_line("    ", name, launch)
  end
  lines[#lines + 1] = "}"
  local body = table.concat(lines, "\n")
  local n, own = 1, name
  while self.launchers[own] and self.launchers[own] ~= body do -- same kernel, other arguments
    n = n + 1
    own = name .. "_as_" .. n
    body = body:gsub("^static void [a-z0-9_]+", "static void " .. own)
  end
  if not self.launchers[own] then
    self.launchers[own] = body
    self.launcher_list[#self.launcher_list + 1] = body
  end
  return own
end

function File:call(op, section, access, kv_dtype)
  for _, launch in ipairs(node.launches(op, section, self.context, kv_dtype).launches) do
    local args = self:arguments(launch, op, access)
    if launch.fast then
      args[#args + 1] = self:argument("scratch", op, {}, access)
      args[#args + 1] = structs.scratch_total(self.program, op.phase)
    end
    self:put(text.call("    ", self:launcher(launch, op), args, ";"))
  end
end

-- ---- Files ----------------------------------------------------------------------------------

local function head(model, name, what)
  return ("/* %s -- Generated by gen from %s. Do not edit: edit that.\n * %s: %s. */"):format(name, model.file,
    model.name, what)
end

-- { programs = sm80.c, kernels = sm80_kernels.c, cuda = sm80.cu } as texts.
function emit.family(model, family, options)
  local name = family.name
  local self = setmetatable({
    model = model, family = family, name = name, options = options, lines = {},
    kernels = kernels.new(), of_name = {}, list = {}, launchers = {}, launcher_list = {},
    context = { model = model, family = family, dim_name = node.namer(model) },
  }, File)
  for _, program in ipairs(family.programs) do
    if #family.runs[program.name] > 0 then
      self.kv_dtypes = family.runs[program.name]
      self:put("")
      self:program_text(program)
    end
  end
  local programs = table.concat(self.lines, "\n")

  local lines = { head(model, name .. ".c", "what launches each kernel, then the programs"),
    ('#include "%s.h"'):format(model.name), "", '#include "runtime/device/cuda/launch.h"', "",
    "#include <stddef.h>", "", "/* In the order of their texts. */", "enum {" }
  for _, kernel in ipairs(self.list) do
    lines[#lines + 1] = ("    %s,"):format(kernel_number(kernel.name))
  end
  lines[#lines + 1] = "};\n"
  lines[#lines + 1] = c.rule "Launches"
  lines[#lines + 1] = "\n/* Lists of arguments would stand in columns. */\n/* clang-format off */"
  for _, body in ipairs(self.launcher_list) do lines[#lines + 1] = "\n" .. body end
  lines[#lines + 1] = "/* clang-format on */\n"
  lines[#lines + 1] = c.rule "Programs"
  lines[#lines + 1] = programs

  local prelude = kernels.prelude()
  local all = self.kernels.text()
  local cuda = { head(model, name .. ".cu", "the kernels, compiled for the device found by NVRTC"),
    "", prelude, self:sizes_in(all) .. all }

  local sources = { head(model, name .. "_kernels.c", "the text of each kernel"),
    ('#include "%s.h"'):format(model.name), "", "#include <stddef.h>", "",
    "/* clang-format off */",
    "static const char prelude[] =\n" .. text.lines("    ", prelude) .. ";", "",
    "static const struct burin_kernel kernels[] = {" }
  for _, kernel in ipairs(self.list) do
    local unit = self.kernels.unit(kernel.name)
    sources[#sources + 1] = ("    { .name = %s, .threads = %d, .shared_bytes = %d,%s .text =\n%s },"):format(
      text.string(kernel.name), kernel.threads, kernel.shared, kernel.fast_gemm and " .fast_gemm = true," or "",
      text.lines("        ", self:sizes_in(unit) .. unit))
  end
  sources[#sources + 1] = "};\n/* clang-format on */\n"
  sources[#sources + 1] = "/* Of gen --aot; NULL without. */"
  sources[#sources + 1] = ("extern const struct burin_cubin %s_cubins[] __attribute__((weak));\n"):format(name)
  sources[#sources + 1] = ("const struct burin_cuda_code %s_code = {"):format(name)
  sources[#sources + 1] = "    .prelude = prelude,"
  sources[#sources + 1] = ("    .n_kernels = %d,"):format(#self.list)
  sources[#sources + 1] = "    .kernels = kernels,"
  sources[#sources + 1] = ("    .cubins = %s_cubins,"):format(name)
  sources[#sources + 1] = "};"
  return {
    programs = text.align(table.concat(lines, "\n")), cuda = table.concat(cuda, "\n") .. "\n",
    kernels = table.concat(sources, "\n") .. "\n",
  }
end

return emit
