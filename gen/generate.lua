-- gen/generate.lua -- From a described model to the texts of its files, in the order of the
-- pipeline: recipe, KV layout, passes for each family, packed weights, tables, C.

local graph = require "gen.graph"
local kv = require "gen.kv"
local layout = require "gen.layout"
local node = require "gen.node"
local passes = require "gen.passes"
local recipes = require "gen.formats.recipes"
local tables = require "gen.tables"

local generate = {}

-- What has emitters, best first.
generate.cpus = { "avx512", "portable" }
-- Compute capabilities with a lowering of their own; a card uses the largest not above its own.
generate.gpus = { 80, 89, 90, 100, 120 }
-- What NVRTC 12.4 to 13 compiles for; from 9.0 on with "a", for that card alone, from 10.0 on with "f".
generate.archs = { 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121 }
-- Of keys and values; the first is the default. --exact rounds nothing, and so neither these.
local kv_dtypes = { [false] = { "bf16", "f32" }, [true] = { "f32", "bf16" } }
local gpu_kv_dtypes = { "bf16", "fp8", "nvfp4" }

-- The families of a target: each CPU's default and exact lowering, which are also the target "cpu", and
-- every GPU's, which are also "cuda".
function generate.families(target)
  local families = {}
  for _, cpu in ipairs(generate.cpus) do
    if target == "any" or target == "cpu" or target == cpu then
      for _, exact in ipairs { false, true } do
        families[#families + 1] = {
          name = cpu .. (exact and "_exact" or ""), cpu = cpu, exact = exact, kv_dtypes = kv_dtypes[exact],
        }
      end
    end
  end
  for _, sm in ipairs((target == "any" or target == "cuda") and generate.gpus or {}) do
    families[#families + 1] = { name = "sm" .. sm, sm = sm, exact = false, kv_dtypes = gpu_kv_dtypes }
  end
  return families
end

-- Everything about a model that all families share. `checkpoint` is what --quant auto reads.
function generate.prepare(model, options)
  model.dims_by_name = {}
  for _, dim in ipairs(model.dims) do model.dims_by_name[dim.name] = dim end
  local ok, why
  local default = model.recipe -- demo weights are in this one
  if options.quant == "auto" then
    ok, why = recipes.from_checkpoint(model, options.format_of)
  else
    ok, why = recipes.apply(model, options.quant or model.recipe or "bf16")
  end
  if not ok then error({ message = why, code = options.quant == "auto" and 4 or 2 }, 0) end
  if model.recipe ~= default then model.demo_weights = nil end
  model.name = ("%s-%s-%s"):format(model.architecture, model.variant, model.recipe)
  if options.target ~= "any" then model.name = model.name .. "-" .. options.target end
  model.kv = kv.layouts(model)
  for _, name in ipairs { "n_vocab", "n_ctx" } do -- an engine asks for both
    if #model.kv.f32.rows > 0 and not model.dims_by_name[name] then
      error({ message = ("%s: a model with a cache needs %s in nn.dims"):format(model.file, name),
        code = 1 }, 0)
    end
    local dim = model.dims_by_name[name]
    if dim and dim:value() < 1 then
      error({ message = ("%s: %s = %d: a model has one at least"):format(model.file, name, dim:value()),
        code = 1 }, 0)
    end
  end
end

-- The programs of one family, after all passes or those up to `last`.
function generate.lower(model, family, last)
  local context = { model = model, family = family, dim_name = node.namer(model) }
  family.programs = {}
  for i, program in ipairs(model.programs) do
    local ok, why = graph.verify(program)
    if not ok then error({ message = why, code = 1 }, 0) end
    local lowered
    lowered, why = passes.run(program, context, last)
    if not lowered then error({ message = why, code = 2 }, 0) end
    family.programs[i] = lowered
  end
  return context
end

-- Packed weights must lie the same way for all families: one arena serves them.
local function same_layout(a, b)
  if a.bytes ~= b.bytes or #a.rows ~= #b.rows then return false end
  for i, row in ipairs(a.rows) do
    local other = b.rows[i]
    if row.weight ~= other.weight or row.layer ~= other.layer or row.offset ~= other.offset
      or row.tile_stride ~= other.tile_stride then return false end
  end
  return true
end

-- What a family has kernels for: .runs[program's name] = dtypes of keys and values, the first of which
-- must be among them; else .missing[program's name] = what is missing.
local function find_kernels(family, context)
  family.missing, family.runs = {}, {}
  for _, program in ipairs(family.programs) do
    local missing = tables.missing(program, context, family.kv_dtypes[1])
    local runs = {}
    for i, dtype in ipairs(#missing == 0 and family.kv_dtypes or {}) do
      if i == 1 or #tables.missing(program, context, dtype) == 0 then runs[#runs + 1] = dtype end
    end
    family.missing[program.name] = #missing > 0 and missing or nil
    family.runs[program.name] = runs
  end
end

-- What a GPU family's programs became, as a text: families with the same one run the same kernels.
local function signature(family)
  local parts = {}
  for i, program in ipairs(family.programs) do parts[i] = graph.text(program) end
  return table.concat(parts, "\n")
end

-- All families lowered, placed and with their tables. A GPU's that became what one before it did is
-- .like that one. model.missing[program's name] = what the first
-- family has no kernels for: that of a CPU, where there is one.
function generate.plan(model, families)
  local ranks, known = { n = 0 }, {}
  for _, family in ipairs(families) do
    local context = generate.lower(model, family)
    local same = family.sm and signature(family)
    family.like = same and known[same]
    if family.like then
      family.missing, family.runs = family.like.missing, family.like.runs
    else
      find_kernels(family, context)
      if same then known[same] = family end
    end
    model.missing = model.missing or family.missing
    for _, program in ipairs(family.programs) do
      program.inputs = tables.inputs(program, context)
      program.graph = tables.graph_costs(program, context)
      tables.check(program)
    end
    local packed = layout.of(model, family.programs, ranks)
    model.layout = model.layout or packed
    if not same_layout(model.layout, packed) then
      error("families disagree about the packed weights: " .. family.name, 0)
    end
  end
end

-- Programs that can't be emitted are left out; without `step` there is nothing to run.
local function check_emitters(model)
  local missing = model.missing.step
  if not missing then return end
  error({ message = ("%s: no kernels yet for %s; gen plan answers what it will need"):format(
    model.name, table.concat(missing, ", ")), code = 1 }, 0)
end

-- Emits what GPUs run, once for all families that are alike: family.code is whose it is.
local function add_cuda(model, families, options, add)
  local cuda = require "gen.emit.cuda"
  for _, family in ipairs(families) do
    if family.like then
      family.code = family.like.code
    elseif family.sm and not family.missing.step then
      family.code = family.name
      local texts = cuda.family(model, family, options)
      add(family.name .. ".cu", texts.cuda)
      add(family.name .. ".c", texts.programs)
      add(family.name .. "_kernels.c", texts.kernels)
    end
  end
end

-- { { name, text } } of the folder.
function generate.files(model, families, options)
  if not options.tables_only then check_emitters(model) end
  local tables_text = require "gen.emit.tables"
  local cmake = require "gen.emit.cmake"
  local check = require "gen.emit.check"
  check.model(model)
  for _, family in ipairs(families) do check.family(family) end
  local files = {}
  local function add(name, text) files[#files + 1] = { name = name, text = text } end
  for _, family in ipairs(families) do family.code = family.cpu and family.name or nil end
  if not options.tables_only then add_cuda(model, families, options, add) end
  add(model.name .. ".h", tables_text.header(model, families, options))
  add(model.name .. ".c", tables_text.source(model, families, options))
  add("config.json", require("gen.emit.config").text(model))
  if not options.tables_only then
    local c = require "gen.emit.c"
    for _, family in ipairs(families) do
      if not family.sm then add(family.name .. ".c", c.family(model, family, options)) end
    end
    add("gen.json", cmake.json(model, families, options))
    add("sources.cmake", cmake.fragment(model, families, options))
  end
  check.files(files)
  return files
end

return generate
