-- gen/command.lua -- Options, then the pipeline, then the files.

local names = require "gen.names"

local command = {}

local HELP = [[
gen - write the C of one model from its description

  gen --model models/llama.lua && build        the default variant and recipe
  gen --model llama.lua --variant llama-3.2-1b --quant bf16
  gen --model llama.lua --quant auto --weights model.gguf    what the file holds
  gen list                                     models, variants, recipes
  gen show llama.lua --after fuse              the graph, readable
  gen new mistral                              a skeleton description and its test
  gen plan llama.lua --ctx-size 4096           what it needs, without building it; its own
                                               options: gen plan --help

Options
  --model FILE         the description; looked up here, then in models/
  --variant NAME       one of the sizes it names (default: the first)
  --quant RECIPE|auto  formats of the weights, mixed as releases do: f32 f16 bf16 fp8
                       nvfp4_nvidia (nvfp4) nvfp4_unsloth awq w4a16 q8_0 q4_1 q4_0
  --weights FILE|DIR   the checkpoint that auto reads (GGUF, or safetensors)
  --target T           any | native | cuda | avx512 | portable (default any: all of
                       them, chosen when it runs; cuda: GPUs alone)
  --config FILE        a config.json: supplies the sizes, or with --variant checks them
  --name NAME          what such a variant is called (default: config)
  --out DIR            where to write (default build/gen/NAME)
  --aot sm_90a,sm_120a kernels compiled for these GPUs when it is built, so that they need
                       the driver alone; others need NVRTC at each start, too
  --probe              calls to burin_probe() after each operation, for tests
  --after PASS         gen show: trace, or a pass as `gen show MODEL --after ?` lists them
  -h, --help           this text

NAME is model-variant-recipe, and -TARGET unless that is any. gen writes build/gen/NAME and
leaves the name in build/gen/last, which `build` reads. A file is written only if its text
changed; the same description gives the same bytes.
]]

local function fail(code, message, ...)
  error({ message = select("#", ...) > 0 and message:format(...) or message, code = code }, 0)
end

-- ---- Options ------------------------------------------------------------------------------

local takes_value = {
  ["--model"] = "model", ["--variant"] = "variant", ["--quant"] = "quant",
  ["--weights"] = "weights",
  ["--target"] = "target", ["--aot"] = "aot", ["--config"] = "config", ["--out"] = "out", ["--after"] = "after",
  ["--name"] = "name",
}
local flags = { ["--probe"] = "probe", ["--help"] = "help", ["-h"] = "help" }

-- `rest` keeps what isn't ours, for `gen plan`.
local function parse(args, rest)
  local options, i = { target = "any" }, 1
  while i <= #args do
    local word, value = args[i], nil
    if word:find "^%-%-[^=]+=" then word, value = word:match "^(%-%-[^=]+)=(.*)$" end
    if takes_value[word] then
      if value == nil then
        i = i + 1
        value = args[i]
      end
      if value == nil or value == "" then fail(2, "%s needs a value", word) end
      options[takes_value[word]] = value
    elseif flags[word] then
      options[flags[word]] = true
    elseif rest then
      rest[#rest + 1] = args[i]
    elseif word:sub(1, 1) == "-" then
      fail(2, "unknown option %s (gen --help lists them)", word)
    elseif not options.model then
      options.model = word
    else
      fail(2, "there is one description too many: %s", word)
    end
    i = i + 1
  end
  return options
end

-- ---- Files --------------------------------------------------------------------------------

local function read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return text
end

local function shell_quote(s) return "'" .. s:gsub("'", "'\\''") .. "'" end

local function make_folder(path)
  if not os.execute("mkdir -p " .. shell_quote(path)) then
    fail(1, "can't make the folder %s", path)
  end
end

-- Whether it was written: only where its text changed.
local function write(path, text)
  if read(path) == text then return false end
  local file, why = io.open(path, "wb")
  if not file then fail(1, "can't write %s: %s", path, why) end
  local written, closed = file:write(text), file:close()
  if not written or not closed then fail(1, "can't write all of %s", path) end
  return true
end

local function is_file(path)
  local file = io.open(path, "rb")
  if not file then return false end
  local ok = file:read(0) ~= nil or file:seek "end" == 0
  file:close()
  return ok
end

-- Where a description is: here, else in models/, with or without .lua.
local function find_model(root, given)
  local tried = {}
  for _, name in ipairs { given, given .. ".lua" } do
    for _, path in ipairs { name, root .. "/models/" .. name } do
      if is_file(path) then return path end
      tried[#tried + 1] = path
    end
  end
  fail(2, "there is no description %s here or in models/ (gen list shows those there are)", given)
end

-- The path that messages and emitted text show: never an absolute one.
local function shown_path(path)
  local folder, base = path:match "^(.*)/([^/]*)$"
  base = base or path
  if folder and (folder == "models" or folder:match "/models$") then
    return "models/" .. base
  end
  return base
end

-- ---- Describing -----------------------------------------------------------------------------

local function describe(root, options)
  local path = find_model(root, options.model)
  local name = shown_path(path)
  local architecture = path:match "([^/]*)%.lua$" or path:match "([^/]*)$"
  if not names.is_file_name(architecture) then
    fail(2, "%s can't be a model's name: letters, digits, '.', '_' and '-'",
      names.quoted(architecture))
  end
  if options.name and not names.is_file_name(options.name) then
    fail(2, "--name: %s can't be a name: letters, digits, '.', '_' and '-'", names.quoted(options.name))
  end
  if options.name and (options.variant or not options.config) then
    fail(2, "--name is what the sizes of --config are called, without --variant")
  end
  local folder = path:match "^(.*)/[^/]*$" or "."
  local config = options.config
    and require("gen.config").open(options.config, { variant = options.variant, name = name })
  local model = require("gen.describe").load {
    path = path, name = name, architecture = architecture, variant = options.variant,
    configure = config and function(row, so_far) return config:configure(row, so_far) end,
    include_folders = {
      { path = folder, name = name:match "^(.*/)" or "" },
      { path = root .. "/models", name = "models/" },
    },
  }
  if options.variant and #model.variants == 0 then
    fail(2, "%s names no variants, so none is %s", name, options.variant)
  end
  if config then
    config:check(model)
    model.config_text = config.text
    if not options.variant then model.variant = options.name or "config" end
  end
  model.chat = read(folder .. "/" .. architecture .. "_chat.lua")
  return model
end

local function native_target()
  local info = read "/proc/cpuinfo" or ""
  local words = {}
  for word in (info:match "flags%s*:%s*([^\n]*)" or ""):gmatch "%S+" do words[word] = true end
  for _, need in ipairs {
    "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni", "avx512_bf16",
  } do
    if not words[need] then return "portable" end
  end
  return "avx512"
end

-- One of --aot's. A newer NVRTC may know one that is unknown here.
local function check_arch(arch, generate)
  local digits, suffix = arch:match "^sm_([1-9]%d+)([af]?)$"
  if not digits then fail(2, "--aot %s: an architecture is sm_80, sm_90a", arch) end
  local sm, least = tonumber(digits), generate.gpus[1]
  if sm < least then
    fail(2, "--aot %s: no family is for it, they begin with sm_%d", arch, least)
  end
  local known = suffix == "" or sm >= (suffix == "a" and 90 or 100)
  local listed = false
  for _, other in ipairs(generate.archs) do listed = listed or other == sm end
  if not (known and listed) then
    io.stderr:write(("--aot %s: it's unknown here, NVRTC decides when it is built; known are sm_%s\n"):format(
      arch, table.concat(generate.archs, ", sm_")))
  end
end

local function prepare(root, options)
  local generate = require "gen.generate"
  local target = options.target
  local known = { any = true, native = true, cuda = true }
  for _, cpu in ipairs(generate.cpus) do known[cpu] = true end
  if not known[target] then
    fail(2, "unknown target %s; there are: any, native, cuda, %s", target,
      table.concat(generate.cpus, ", "))
  end
  for arch in (options.aot or ""):gmatch "[^,]+" do check_arch(arch, generate) end
  if options.quant == "auto" and not options.weights then
    fail(2, "--quant auto reads a checkpoint: name it with --weights FILE")
  end
  local model = describe(root, options)
  if options.quant == "auto" then
    options.format_of = require("gen.checkpoint").reader(options.weights, model)
  end
  generate.prepare(model, options)
  if target == "native" then target = native_target() end
  if options.probe and target == "any" then target = "cpu" end -- a GPU's kernels aren't probed
  return model, generate.families(target), generate
end

-- ---- Subcommands ------------------------------------------------------------------------------

local function elapsed(from) return ("%.2f s"):format(os.clock() - from) end

-- Matrices that can't have the format that the recipe wants.
local function tell_wider(model)
  for _, line in ipairs(require("gen.formats.recipes").wider_lines(model)) do
    io.stderr:write(line, "\n")
  end
end

-- Programs that are planned and not emitted.
local function tell_missing(model)
  for _, program in ipairs(model.programs) do
    local missing = model.missing[program.name]
    if missing and program.name ~= "step" then
      io.stderr:write(("%s is left out, it can be planned: no kernels yet for %s\n"):format(
        program.name, table.concat(missing, ", ")))
    end
  end
end

local function generate_model(root, options)
  local from = os.clock()
  if not options.model then fail(2, "name a description: gen --model models/llama.lua") end
  local model, families, generate = prepare(root, options)
  generate.plan(model, families)
  local files = generate.files(model, families, options)
  tell_wider(model)
  tell_missing(model)
  local out = options.out or root .. "/build/gen/" .. model.name
  make_folder(out)
  local written = 0
  for _, file in ipairs(files) do
    if write(out .. "/" .. file.name, file.text) then written = written + 1 end
  end
  if not options.out then write(root .. "/build/gen/last", model.name .. "\n") end
  io.stderr:write(("%s: %d files, %d written, in %s\n"):format(
    options.out and out or "build/gen/" .. model.name, #files, written, elapsed(from)))
  return 0
end

local function show(root, options)
  local graph = require "gen.graph"
  if not options.model then fail(2, "name a description: gen show llama.lua") end
  local passes = require "gen.passes"
  if options.after == "?" then
    io.write("trace ", table.concat(passes.names, " "), "\n")
    return 0
  end
  local model, families, generate = prepare(root, options)
  local family = families[1]
  if options.after ~= "trace" then generate.lower(model, family, options.after) end
  io.write(("%s, %s%s\n"):format(model.name, family.name,
    options.after and ", after " .. options.after or ""))
  for _, program in ipairs(options.after == "trace" and model.programs or family.programs) do
    io.write("\n", graph.text(program))
    if program.costs then
      io.write("\n  arena, bytes:\n")
      for _, row in ipairs(program.costs) do
        io.write(("    %-8s %s\n"):format(row.phase, tostring(row.bytes)))
      end
    end
  end
  return 0
end

-- A chat format and the towers that a model includes are no models.
local function is_model(name)
  if not name:find "%.lua$" then return false end
  for _, part in ipairs { "chat", "vision", "audio", "decoder", "clipped" } do
    if name:find("_" .. part .. "%.lua$") then return false end
  end
  return true
end

local function list(root, options)
  if options.model then fail(2, "gen list lists all there is, not %s", options.model) end
  local recipes = require "gen.formats.recipes"
  local pipe = io.popen("ls " .. shell_quote(root .. "/models"))
  local files = {}
  for name in pipe:lines() do
    if is_model(name) then files[#files + 1] = name end
  end
  pipe:close()
  table.sort(files)
  for _, name in ipairs(files) do
    local ok, model = pcall(describe, root, { model = root .. "/models/" .. name })
    if not ok then
      local why = type(model) == "table" and model.message or tostring(model)
      io.write(("%-16s %s\n"):format(name, names.shown(why)))
    else
      local variants = #model.variants > 0 and table.concat(model.variants, " ") or "-"
      io.write(("%-16s %s\n"):format(name, variants))
    end
  end
  io.write("\nrecipes          ", table.concat(recipes.list, " "), " auto\n")
  io.write("targets          any native cuda ", table.concat(require("gen.generate").cpus, " "), "\n")
  return 0
end

local commands = {
  show = show,
  list = list,
  new = function(root, options) return require("gen.new").run(root, options.model) end,
}

local function plan(root, args)
  local rest = {}
  local options = parse(args, rest)
  if not options.model and rest[1] and rest[1]:sub(1, 1) ~= "-" then
    options.model = table.remove(rest, 1)
  end
  if not options.model then fail(2, "name a description: gen plan llama.lua") end
  for _, name in ipairs { "after", "probe", "out" } do
    if options[name] then fail(2, "--%s does nothing under gen plan", name) end
  end
  options.tables_only = true
  if options.help then rest[#rest + 1] = "--help" end
  if options.target ~= "any" and options.target ~= "native" then
    rest[#rest + 1], rest[#rest + 2] = "--target", options.target
    if options.target:find "^sm%d+$" then options.target = "any" end -- its tables are among all
  end
  local model, families, generate = prepare(root, options)
  generate.plan(model, families)
  tell_wider(model)
  local out = root .. "/build/gen-plan/" .. model.name
  make_folder(out)
  for _, file in ipairs(generate.files(model, families, options)) do
    write(out .. "/" .. file.name, file.text)
  end
  return require("gen.plan").run(root, out, model.name, rest)
end

function command.main(root, args)
  local ok, result = xpcall(function()
    if #args == 0 or args[1] == "help" then
      io.write(HELP)
      return #args == 0 and 2 or 0
    end
    local first = args[1]
    if first == "plan" then
      if args[2] == "--help" or args[2] == "-h" then -- the planner's own page, over any tables
        return plan(root, { "llama_tiny", "--help" })
      end
      return plan(root, { table.unpack(args, 2) })
    end
    local run = commands[first]
    local options = parse(run and { table.unpack(args, 2) } or args)
    if options.help then
      io.write(HELP)
      return 0
    end
    return (run or generate_model)(root, options)
  end, function(e)
    if type(e) == "table" then return e end
    return { message = debug.traceback(tostring(e), 2), code = 1 }
  end)
  if ok then
    local written, why = io.stdout:flush()
    if written then return result end
    result = { message = "stdout: " .. why, code = 1 }
  end
  io.stderr:write("gen: ", names.shown(result.message), "\n")
  if result.traceback and os.getenv "BURIN_TRACE" then
    io.stderr:write(result.traceback, "\n")
  end
  return result.code or 1
end

return command
