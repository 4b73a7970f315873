-- tests/gpu/kernels.lua -- Every kernel through the real NVRTC, for every architecture, as models in full
-- size need it: it compiles, without spills and stack frames, and a block has room on each. Prints
-- registers and shared memory. Needs no GPU; ends with 77 where there is no NVRTC.
--
--   lua5.4 tests/gpu/kernels.lua [--all] [NAME ...]      models below whose names hold one of these
--   lua5.4 tests/gpu/kernels.lua --time sm_90a 26b-a4b   cold, then from the cache: how long each takes
--
-- Every kernel of these models is compiled for one architecture. Of those that differ in widths alone
-- (K of a product, a row's length) one is compiled for all of them: the models of the first list have every
-- template, format and head size between them. --all: each kernel for each architecture.

local folder = os.getenv "BURIN_TREE" or "."
package.path = folder .. "/?.lua;" .. folder .. "/?/init.lua;" .. package.path

local command = require "gen.command"
local compile = require "tests.gpu.compile"
local harness = require "tests.gpu.harness"
local spec = require "tests.support.spec"
local template = require "gen.template"

-- Description, variant, recipe.
local every_arch = {
  { "gemma4", "26b-a4b", "q4_0" },     -- experts; q8_0, f32; heads of 256, 512, 72 (vision)
  { "gemma4", "e2b", "bf16" },         -- heads of 64 (vision); clipped linears, columns of layers
  { "llama", "llama-3.2-3b", "q4_1" }, -- heads of 128
  { "llama", "smollm2-135m", "f16" },  -- heads of 64
}
local more_sizes = { -- with --all
  { "gemma4", "31b", "q8_0" },
  { "llama", "smollm2-135m", "q4_1" },
  { "gemma4_tiny", "e2b", "bf16" },
  { "llama_tiny", "groups", "f32" },
}
-- What only programs need that no GPU runs yet: nodes made by hand (harness.lua).
local function rows(d) return { dims = { "tokens", d } } end
local without_model = {
  concat = { inputs = { x = rows(1024), other = rows(256) }, y = rows(1280) },
  glu = { inputs = { x = rows(2048) }, y = rows(1024) },
  layer_norm = {
    inputs = { x = rows(1152), weight = { dims = { 1152 } }, bias = { dims = { 1152 } } },
    attrs = { eps = 1e-5 },
  },
}
local formats = { "f32", "f16", "bf16", "q4_0", "q4_1", "q8_0" }
local head_sizes = { 64, 128, 256, 512 }

os.execute "mkdir -p build/gen/cuda build/kernels"

local wrong = 0

local function name_of(model) return table.concat(model, "-") end

local function path_of(model) return "build/gen/cuda/" .. name_of(model) end

-- Templates that anything was made of.
local rendered = {}
local render = template.render
function template.render(text, path, ...)
  rendered[path] = true
  return render(text, path, ...)
end

local function generate(models)
  for _, model in ipairs(models) do
    local code = command.main(folder, {
      "--model", ("models/%s.lua"):format(model[1]), "--variant", model[2], "--quant", model[3],
      "--target", "cuda", "--out", path_of(model),
    })
    if code ~= 0 then os.exit(1, true) end
  end
end

local function build(models)
  local paths = {}
  for i, model in ipairs(models) do paths[i] = path_of(model) end
  compile.build(paths)
end

-- tests/gpu/check_times.c calls what is launched for one of them (tools/gpu_check): its calls must fit.
local function check_times(model)
  local output, code = spec.shell(("gcc -std=c11 -D_GNU_SOURCE -fsyntax-only -Wall -Wextra -Wshadow -Werror "
    .. "-Wno-unused-function -I. -I%s -DSOURCE='\"sm80.c\"' -DFORMAT=%s tests/gpu/check_times.c"):format(
    path_of(model), model[3]))
  if code ~= 0 then
    print(output)
    wrong = wrong + 1
  end
end

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

-- What no kernel of `models` is made of.
local function left_out(models)
  local texts, missing = {}, {}
  for i, model in ipairs(models) do texts[i] = read(path_of(model) .. "/sm80.cu") end
  local all = table.concat(texts, "\n")
  local function need(pattern, what)
    if not all:find(pattern) then missing[#missing + 1] = what end
  end
  for path in spec.shell "ls templates/cuda/*.cu":gmatch "%S+" do
    if path ~= "templates/cuda/prelude.cu" and not rendered[path] then missing[#missing + 1] = path end
  end
  for _, format in ipairs(formats) do need(" linear_" .. format .. "_[a-z0-9_]+%(", format) end
  for _, size in ipairs(head_sizes) do need(" attention_[a-z0-9_]*x" .. size .. "_", "heads of " .. size) end
  return missing
end

local all, timed, named, at = false, nil, {}, 1
while arg[at] do
  if arg[at] == "--all" then
    all = true
  elseif arg[at] == "--time" then
    at = at + 1
    timed = arg[at]
  else
    named[#named + 1] = arg[at]
  end
  at = at + 1
end

local function chosen(models)
  local list = {}
  for _, model in ipairs(models) do
    local is_named = #named == 0
    for _, word in ipairs(named) do is_named = is_named or name_of(model):find(word, 1, true) end
    if is_named then list[#list + 1] = model end
  end
  return list
end

-- Whether all is well; without NVRTC it's the end.
local function judge(code)
  if code == 77 then os.exit(77, true) end
  if code ~= 0 then wrong = wrong + 1 end
  return code == 0
end

-- How long it takes before a model's first token on a card, and before the first of the next start.
local function time(model, arch, anew)
  for _, options in ipairs { anew .. arch, "--cached " .. arch } do
    local output, code = spec.shell(compile.command(path_of(model), options))
    print(arch .. ": " .. (judge(code) and output:match "([^\n]*)\n*$" or output))
  end
end

-- What a kernel is but for widths. Heads are another matter: registers follow from them.
local function kind_of(kernel)
  if kernel:find "attention" or kernel:find "head" or kernel:find "^kv_append" then return kernel end
  return (kernel:gsub("_[dn]_[a-z_]+", "_d"):gsub("%d+$", "")) .. (kernel:find "_few$" and "_few" or "")
end

-- For all architectures what is of a new kind, for one the rest.
local known = {}
local function compile_new(model)
  local new, rest = {}, {}
  for kernel in read(path_of(model) .. "/sm80_kernels.c"):gmatch '%.name = "([^"]+)"' do
    local list = (all or not known[kind_of(kernel)]) and new or rest
    list[#list + 1], known[kind_of(kernel)] = kernel, true
  end
  local function take(list, archs)
    if #list > 0 then
      judge(compile.run(path_of(model), ("--only %s %s"):format(table.concat(list, ","), archs)))
    end
  end
  take(new, "")
  take(rest, "sm_80")
end

local function compile_others()
  local launches = {}
  for op, node in pairs(without_model) do
    for _, launch in ipairs(harness.launches(op, node)) do launches[#launches + 1] = launch end
  end
  judge(compile.run(compile.write("without-model", launches), ""))
end

local main, more = chosen(every_arch), chosen(more_sizes)
generate(main)
build(main)
for _, model in ipairs(main) do
  if model[2] == "26b-a4b" then check_times(model) end
  if timed or model[2] == "26b-a4b" then time(model, timed or "sm_90a", timed and "--anew " or "") end
end
if timed then os.exit(wrong == 0 and 0 or 1, true) end
for _, model in ipairs(main) do compile_new(model) end
if #named == 0 then
  compile_others()
  for _, what in ipairs(left_out(main)) do
    print(what .. " is in no kernel that was compiled: tests/gpu/kernels.lua needs a model that has it")
    wrong = wrong + 1
  end
end
if not all and #named == 0 then more = {} end
generate(more)
build(more)
for _, model in ipairs(more) do compile_new(model) end
os.exit(wrong == 0 and 0 or 1, true)
