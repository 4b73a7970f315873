-- tests/gen/test_command.lua -- The command: where it looks, where it writes, what it says.

local spec = require "tests.support.spec"

local folder = spec.folder()
local root = spec.shell("pwd"):gsub("\n", "")

local function gen(args) return spec.shell("cd " .. folder .. " && " .. root .. "/gen/gen " .. args) end

local function read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local content = file:read "a"
  file:close()
  return content
end

spec("a description is found in models/ from any folder, with and without .lua", function()
  for _, name in ipairs { "llama_tiny.lua", "llama_tiny", root .. "/models/llama_tiny.lua" } do
    local output, code = gen("--model " .. name .. " --out " .. folder .. "/a")
    spec.equal(code, 0, output)
    spec.contains(output, "12 files")
    spec.contains(output, " s\n") -- its time
  end
end)

spec("through a link on PATH", function()
  local output, code = spec.shell(("ln -s %s/gen/gen %s/linked && cd / && %s/linked --model llama_tiny --out %s/b"):format(root, folder, folder, folder))
  spec.equal(code, 0, output)
end)

spec("a description beside you comes first", function()
  spec.shell(("sed s/n_layers.=.2/n_layers=4/ %s/models/llama_tiny.lua > %s/llama_tiny.lua"):format(root, folder))
  gen "--model llama_tiny.lua --out c"
  spec.shell("rm " .. folder .. "/llama_tiny.lua")
  spec.contains(read(folder .. "/c/llama_tiny-small-f32.h"), "N_LAYERS = 4,")
end)

spec("what hasn't changed isn't written", function()
  gen "--model llama_tiny --out d"
  spec.contains(gen "--model llama_tiny --out d", "12 files, 0 written")
  spec.shell("echo >> " .. folder .. "/d/portable.c")
  spec.contains(gen "--model llama_tiny --out d", "12 files, 1 written")
end)

-- The words of /proc/cpuinfo: a misspelt one would mean portable everywhere.
spec("native is the family that this processor's binary would choose", function()
  gen "--model llama_tiny --target native --out native"
  local flags = read "/proc/cpuinfo":match "flags%s*:([^\n]*)" .. " "
  local has_avx512 = flags:find(" avx512_bf16 ", 1, true) ~= nil -- no processor has it alone
  spec.equal(read(folder .. "/native/avx512.c") ~= nil, has_avx512)
  spec.equal(read(folder .. "/native/portable.c") ~= nil, not has_avx512)
end)

spec("the folder's name is model-variant-recipe, and the target unless that is any", function()
  gen "--model llama_tiny --variant groups --quant q8_0 --target portable --out e"
  spec.contains(read(folder .. "/e/gen.json"), '"name": "llama_tiny-groups-q8_0-portable"')
  if read(folder .. "/e/avx512.c") then error "the other family is there" end
end)

local function describe(name, text)
  local file = assert(io.open(folder .. "/" .. name, "w"))
  file:write(text)
  file:close()
end

spec("mistakes in options are told, with exit code 2", function()
  describe("one_size.lua", [[
local d = nn.dims { n_layers = 1, d_model = 32, n_vocab = 64, n_ctx = 32 }
local embed = nn.weight("e.weight", { d.n_vocab, d.d_model })
local model = nn.model { embed = embed }
function model.step(w, batch)
  return nn.linear(nn.rows(nn.embedding(batch.token_ids, w.embed), batch.output_rows), w.embed)
end
return model
]])
  spec.equal(select(2, gen "--model one_size --out one"), 0)
  for args, part in pairs {
    ["--model nothing"] = "there is no description nothing",
    ["--model llama_tiny --variant x"] = "there are: small, groups",
    ["--model llama_tiny --quant x"] = "there are: auto, f32",
    ["--model llama_tiny --target x"] = "there are: any, native, cuda, avx512, portable",
    ["--model llama_tiny --quant auto"] = "--weights",
    ["--model llama_tiny --name x"] = "--name is what the sizes of --config are called",
    ["--model llama_tiny --config c.json --name a/b"] = "can't be a name",
    ["--nothing"] = "unknown option --nothing",
    ["--model"] = "--model needs a value",
    ["show"] = "name a description",
    ["list foo"] = "gen list lists all there is, not foo",
    ["--model one_size --variant small"] = "one_size.lua names no variants, so none is small",
    ["--model one_size --no\27[31mthing"] = "unknown option --no\\x1b[31mthing",
    ["--model one_size" .. ("x"):rep(20000)] = "here or in models/",
    ["show llama_tiny --after x"] = "there is no pass 'x'",
    [""] = "gen --model models/llama.lua",
  } do
    local output, code = gen(args:gsub("\27%S*", "'%0'"))
    spec.equal(#output < 5000 and code, 2, args .. ": " .. output)
    spec.contains(output, part)
  end
end)

spec("a config.json's sizes go by a name, and the file lies beside what they became", function()
  gen "--model llama_tiny --out first"
  local text = read(folder .. "/first/config.json")
  describe("sizes.json", text)
  local output, code = gen "--model llama_tiny --config sizes.json --name mine --out second"
  spec.equal(code, 0, output)
  spec.equal(read(folder .. "/second/config.json"), text)
  spec.contains(read(folder .. "/second/llama_tiny-mine-f32.c"), '.variant = "mine"')
end)

spec("a mistake in a description is told at its line, with exit code 1", function()
  describe("wrong.lua", "local x = 1\nos.execute 'touch here'\n")
  local output, code = gen "--model wrong.lua"
  spec.equal(code, 1)
  spec.equal(output, "gen: wrong.lua:2: 'os' isn't available in a description\n")
  if read(folder .. "/here") then error "it ran" end
  describe("empty.lua", "")
  output, code = gen "--model empty.lua"
  spec.equal(code, 1)
  spec.equal(output, "gen: empty.lua:1: return the nn.model { ... }\n")
end)

spec("a full disk under stdout is told, with exit code 1", function()
  for _, args in ipairs { "list", "--help", "show llama_tiny", "plan llama_tiny" } do
    local output, code = gen(args .. " >/dev/full")
    spec.equal(code, 1, args)
    spec.contains(output, "stdout: No space left on device")
  end
end)

spec("help teaches", function()
  local output, code = gen "--help"
  spec.equal(code, 0)
  spec.contains(output, "gen --model models/llama.lua && build")
end)

spec("list names models, variants and recipes", function()
  local output = gen "list"
  spec.contains(output, "llama_tiny.lua   small groups")
  spec.contains(output, "q4_1")
  for _, part in ipairs { "_chat", "_vision", "_audio" } do
    if output:find(part) then error(part .. " is no model") end
  end
end)

spec("show gives the graph after a pass", function()
  spec.contains(gen "show llama_tiny --after trace", "mul = mul(silu, linear")
  spec.contains(gen "show llama_tiny --after fuse", "linear_glu")
  spec.contains(gen "show llama_tiny", "arena, bytes:")
end)

spec("new makes a description that can be generated, and overwrites nothing", function()
  spec.shell(("cp -r %s/gen %s/templates %s/models %s/copy 2>/dev/null; mkdir -p %s/house/tests/gen && cp -r %s/gen %s/templates %s/models %s/house/"):format(
    root, root, root, folder, folder, root, root, root, folder))
  local command = "cd " .. folder .. "/house && gen/gen "
  local output, code = spec.shell(command .. "new brand_new && gen/gen --model brand_new")
  spec.equal(code, 0, output)
  spec.contains(output, "models/brand_new.lua")
  spec.shell(("cp -r %s/tests/support %s/house/tests/ && cp %s/tests/gen/describe.lua %s/house/tests/gen/")
    :format(root, folder, root, folder))
  local test = "lua5.4 tests/support/spec.lua tests/gen/test_brand_new.lua"
  spec.contains(output, test)
  output, code = spec.shell("cd " .. folder .. "/house && " .. test)
  spec.equal(code, 0, output)
  spec.contains(output, "1 passed, 0 failed, 1 skipped")
  spec.shell(("sed -i 's/d_ff = 96/d_ff = 128/' %s/house/models/brand_new.lua"):format(folder))
  output, code = spec.shell("cd " .. folder .. "/house && " .. test) -- other sizes, the same test
  spec.equal(code, 0, output)
  output, code = spec.shell(command .. "new brand_new")
  spec.equal(code, 1)
  spec.contains(output, "is there already")
  output, code = spec.shell(command .. "new '../x'")
  spec.equal(code, 2, output)
  spec.equal(read(folder .. "/house/build/gen/last"), "brand_new-small-bf16\n")
end)
