-- tests/models/test_rehearse.lua -- What `plan` says is what start-up obtains: models in full size,
-- from their tables alone, on cards that are not here.

local spec = require "tests.support.spec"
local json = require "gen.json"

local MIB, GIB = 1 << 20, 1 << 30
local REHEARSE = (os.getenv "BURIN_BIN" or "build/bin") .. "/tests/rehearse"

local function exists(path)
  local file = io.open(path)
  if file then file:close() end
  return file ~= nil
end

-- Tables are emitted and compiled once a model: "gemma4 --variant e2b --quant bf16".
local objects = {}
local function tables(model)
  if not exists(REHEARSE) then spec.skip(REHEARSE .. " is not built") end
  if not objects[model] then
    local plan = json.decode((spec.shell("gen/gen plan " .. model .. " --card h200 --json 2>/dev/null")))
    if not plan then error(spec.shell("gen/gen plan " .. model)) end
    local name = ("%s-%s-%s"):format(plan.model, plan.variant, plan.quant)
    local folder = "build/gen-plan/" .. name
    local object = folder .. "/tables.so"
    local output, code = spec.shell(("cc -O0 -std=c11 -fPIC -shared -I. -I%s %s/%s.c -o %s.$$ && mv %s.$$ %s")
      :format(folder, folder, name, object, object, object))
    if code ~= 0 then error(output) end
    objects[model] = object
  end
  return objects[model]
end

-- `plan` with these options: its output, its exit code. Weights are never looked for.
local function plan(model, options)
  return spec.shell(("HOME=/nonexistent %s %s plan --threads 2 %s"):format(REHEARSE, tables(model), options))
end

local function decoded(model, options)
  local text, code = plan(model, options .. " --json 2>/dev/null")
  local object = json.decode(text)
  if not object then error((plan(model, options))) end
  return object, code
end

-- ---- Plan and rehearsal ---------------------------------------------------------------------

local models = {
  "llama --variant smollm2-135m --quant q4_1",
  "llama --variant llama-3.2-3b --quant q4_0",
  "gemma4 --variant e2b --quant bf16",
  "gemma4 --variant e4b --quant q4_0",
  "gemma4 --variant 26b-a4b --quant q4_0",
  "gemma4 --variant 31b --quant q4_0",
}
local cards = { "rtx4090", "rtx5090", "h200", "gb10" }

local function compare(planned, rehearsed)
  local sum = 0
  spec.equal(#rehearsed.owners, #planned.owners)
  for i, owner in ipairs(planned.owners) do
    local other = rehearsed.owners[i]
    spec.equal(other.owner, owner.owner)
    spec.equal(other.bytes, owner.bytes)
    if owner.kind == "derived" then -- what the granule adds is the row "rounding"
      spec.equal(owner.owner .. " " .. other.obtained_bytes, owner.owner .. " " .. owner.bytes)
    end
    sum = sum + other.obtained_bytes
  end
  spec.equal(sum, planned.total_bytes)
end

for _, model in ipairs(models) do
  for _, card in ipairs(cards) do
    spec(("%s on %s: every owner obtains what was planned, or both refuse"):format(model, card), function()
      local options = "--card " .. card
      local planned, code = decoded(model, options)
      local output, rehearsed_code = plan(model, options .. " --rehearse --json")
      spec.equal(rehearsed_code, code)
      if code == 0 then
        compare(planned, json.decode(output))
      else
        local refused = plan(model, options .. " --json >/dev/null") -- the same words
        spec.equal(output, refused)
      end
    end)
  end
end

-- ---- What is asked of a card ------------------------------------------------------------------

local GEMMA = "gemma4 --variant 26b-a4b --quant q4_0"

local function obtained(object, name)
  for _, row in ipairs(object.owners) do if row.owner == name then return row.obtained_bytes end end
  return 0
end

local function count(object, program)
  local n, largest = 0, 0
  for _, row in ipairs(object.programs) do
    if row.program == program then n, largest = n + 1, math.max(largest, row.n) end
  end
  return n, largest
end

spec("Gemma 4 26B-A4B in q4_0 starts on 32 GB with video and graphs of its encoder", function()
  local object, code = decoded(GEMMA, "--card rtx5090 --video-frames 32 --rehearse")
  spec.equal(code, 0)
  spec.equal(count(object, "encode_image") > 0, true)
  spec.equal(obtained(object, "encoder cache") > 0, true)
  spec.equal(object.kv.tokens > 8192, true)
  local report = plan(GEMMA, "--card rtx5090 --video-frames 32 --rehearse")
  spec.contains(report, "graphs: ")
  spec.equal(report:find "note:" == nil, true)
end)

spec("on 22 GiB with 3 GiB beside its weights it starts, with the chunk that is derived", function()
  local weights = 0
  for _, row in ipairs(decoded(GEMMA, "--card h200").owners) do
    if row.owner == "weights" then weights = row.bytes end
  end
  local options = ("--card 22GiB,sm_120 --vram-limit %d --encoder-arena 64MiB --parallel 1"):format(weights + 3 * GIB)
  local object, code = decoded(GEMMA, options .. " --rehearse")
  spec.equal(code, 0)
  local n, largest = count(object, "encode_image")
  spec.equal(n > 0 and largest < 1120, true) -- the arena's, not what happens to be free
  local again = decoded(GEMMA, options:gsub("22GiB", "80GiB") .. " --rehearse")
  local _, other = count(again, "encode_image")
  spec.equal(other, largest)
end)

spec("a rehearsal takes a GPU, and owners one by one", function()
  local output, code = plan(GEMMA, "--card 64GiB --rehearse")
  spec.equal(code, 2)
  spec.contains(output, "--card rtx5090 is one")
  output, code = plan(GEMMA, "--card rtx5090 --assume graphs=1GiB --rehearse")
  spec.equal(code, 2)
  spec.contains(output, "--assume tells sums")
end)

spec("a card that others use has what they leave, and memory that is the host's has its owners", function()
  local object, code = decoded("llama --variant smollm2-135m --quant q4_1", "--card gb10 --rehearse")
  spec.equal(code, 0)
  spec.equal(obtained(object, "host") > 0 and obtained(object, "tokenizer") > 0, true)
end)
