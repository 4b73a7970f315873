-- tests/gen/test_plan.lua -- `gen plan`: what it says of the described models on cards that are
-- not here, and that it says the same tomorrow.

local spec = require "tests.support.spec"
local json = require "gen.json"

local MIB, GIB = 1 << 20, 1 << 30

-- gen compiles a model's planner once; from then on it is asked directly.
local planners = {}
local function planner(base)
  if not planners[base] then
    local output = spec.shell("gen/gen plan " .. base .. " --card rtx5090 --json 2>/dev/null")
    local plan = json.decode(output)
    if not plan then error(spec.shell("gen/gen plan " .. base)) end
    planners[base] = ("build/gen-plan/%s-%s-%s/plan"):format(plan.model, plan.variant, plan.quant)
  end
  return planners[base]
end

-- "gemma4 --variant e2b --quant bf16 --card l4": what gen takes, and what the planner does.
local function command(args)
  local base, rest = args:match "^(%S+)(.*)$"
  rest = rest:gsub("%s*(%-%-variant%s+%S+)", function(word) base = base .. " " .. word; return "" end)
  rest = rest:gsub("%s*(%-%-quant%s+%S+)", function(word) base = base .. " " .. word; return "" end)
  return planner(base) .. rest .. " --threads 2"
end

local function gen_plan(args) return spec.shell(command(args)) end

local function plan_of(args)
  local output, code = spec.shell(command(args) .. " --json 2>/dev/null")
  local plan, why = json.decode(output)
  if not plan then error(gen_plan(args) .. tostring(why)) end
  return plan, code
end

local function owner(plan, name)
  for _, row in ipairs(plan.owners) do if row.owner == name then return row.bytes end end
  return 0
end

local function runs(plan, name)
  local list = {}
  for _, row in ipairs(plan.programs) do
    if row.program == name then list[#list + 1] = row end
  end
  return list
end

-- ---- Golden plans ---------------------------------------------------------------------------

local models = {
  "gemma4 --variant e2b --quant bf16",
  "gemma4 --variant 26b-a4b --quant nvfp4 --kv-cache-dtype fp8",
  "gemma4 --variant 31b --quant q4_0",
  "gemma4_unified --variant 12b --quant fp8",
  "qwen3_5 --variant 27b --quant nvfp4 --kv-cache-dtype nvfp4 --draft 3",
  "qwen3_5 --variant 35b-a3b --quant fp8 --video-frames 32",
}
local cards = { "rtx5090", "l40s", "h200" }

-- "gemma4-26b-a4b-rtx5090"
local function file_of(model, card)
  return ("tests/golden/plans/%s-%s-%s.json"):format(
    model:match "^%S+", model:match "%-%-variant (%S+)", card)
end

-- After a change that is meant:
-- BURIN_UPDATE_GOLDEN=1 lua5.4 tests/support/spec.lua tests/gen/test_plan.lua golden
for _, model in ipairs(models) do
  for _, card in ipairs(cards) do
    local path = file_of(model, card)
    spec("golden: " .. path:match "([^/]*)%.json$", function()
      local args = model .. " --card " .. card
      local text = spec.shell(command(args) .. " --json 2>/dev/null")
      if not json.decode(text) then error(gen_plan(args)) end
      if os.getenv "BURIN_UPDATE_GOLDEN" then
        local file = assert(io.open(path, "w"))
        file:write(text)
        file:close()
      end
      local file = assert(io.open(path))
      local golden = file:read "a"
      file:close()
      if text ~= golden then
        error("it differs:\n" .. gen_plan(args .. " --against " .. path)
          .. (text:match '"advice": "[^\n]*' or ""))
      end
    end)
  end
end

-- ---- What was reported of others -------------------------------------------------------------

local BUDGETS = "encode_image=70,140,280,560,1120,2240,4096"

spec("video of 32 frames in seven budgets reads one buffer of 28.6 MB and computes in 465 MiB", function()
  local args = "gemma4 --variant 26b-a4b --quant nvfp4 --card rtx5090 --video-frames 32 --graphs " .. BUDGETS
  local plan = plan_of(args)
  local graphs = runs(plan, "encode_image")
  spec.equal(#graphs, 7)
  spec.equal(owner(plan, "inputs") <= 30 * 1000 * 1000, true)
  spec.equal(graphs[7].n, 4096)
  spec.equal(graphs[7].arena_bytes <= 470 * MIB, true)
  local report = gen_plan(args)
  spec.contains(report, "encode_image of 4,096 soft tokens: arena")
  spec.contains(report, "(36864, 4304) bf16")
end)

spec("by default Gemma 4 26B-A4B fits a 5090 with pictures and KV for its whole context", function()
  local plan, code = plan_of "gemma4 --variant 26b-a4b --quant nvfp4 --kv-cache-dtype fp8 --card rtx5090"
  spec.equal(code, 0)
  spec.equal(plan.fits, true)
  spec.equal(plan.options.ctx_size, 262144)
  spec.equal(plan.kv.tokens > 262144, true)
  spec.equal(#runs(plan, "encode_image"), 5)
end)

spec("rows by a global maximum are refused by budget, buffer, shape and bytes", function()
  local output, code = gen_plan("tests/gen/replica.lua --card 31.36GiB,sm_120 --graphs " .. BUDGETS)
  spec.equal(code, 3)
  spec.contains(output, "encode_image, n = 4096, its budget of soft tokens")
  spec.contains(output, "input pixel_values (1856, 2520, 768) bf16, 7184056320 bytes")
end)

local LAPTOP = "qwen3_5 --variant 27b --quant nvfp4 --kv-cache-dtype nvfp4 --card 23.46GiB,sm_120 "
  .. "--vram-fraction 0.98 --ctx-size 124000 --parallel 1 --batch-size 2048 "

spec("KV behind the graphs: 163,264 and 156,800 tokens where the report had 150,745 and a crash", function()
  for graphs, tokens in pairs { ["0.4748GiB"] = 163264, ["0.585GiB"] = 156845 } do
    local plan = plan_of(LAPTOP .. "--assume fixed=19.57GiB,graphs=" .. graphs)
    spec.equal(plan.fits, true)
    spec.equal(plan.kv.bytes_per_token, 18432)
    spec.equal(plan.kv.bytes_per_sequence, 153944064)
    spec.near(plan.kv.tokens, tokens, plan.kv.page_tokens)
  end
end)

spec("graphs that cost nothing are refused, and without an assumption cost nodes x bytes", function()
  local output, code = gen_plan(LAPTOP .. "--assume fixed=19.57GiB,graphs=0")
  spec.equal(code, 2)
  spec.contains(output, "--assume graphs=0")

  local plan = plan_of(LAPTOP .. "--assume fixed=19.57GiB")
  local sum = 0
  for _, row in ipairs(plan.programs) do
    spec.equal(row.driver_bytes, (row.kernel_nodes + row.copy_nodes) * 65536)
    sum = sum + row.driver_bytes
  end
  spec.equal(owner(plan, "graphs"), sum)
end)

-- Sequences of one context: pages, and windows of the layers that look no further back.
spec("Gemma 4's KV: 198, 840 and 3360 MiB at 32k, 5320 and 21,280 MiB at 256k", function()
  local cases = {
    { "e2b", 32768, 192, 6 }, { "26b-a4b", 32768, 640, 200 }, { "31b", 32768, 2560, 800 },
    { "26b-a4b", 262144, 5120, 200 }, { "31b", 262144, 20480, 800 },
  }
  for _, case in ipairs(cases) do
    local variant, n_ctx, pages, windows = table.unpack(case)
    local plan = plan_of(("gemma4 --variant %s --quant nvfp4 --card b200 --parallel 1 --ctx-size %d "
      .. "--kv-tokens %d"):format(variant, n_ctx, n_ctx))
    spec.equal(plan.kv.bytes, pages * MIB, variant)
    spec.equal(plan.kv.window_bytes, windows * MIB, variant)
    spec.equal(owner(plan, "windows"), windows * MIB, variant)
    spec.equal(owner(plan, "drafts"), 0)
  end
end)

spec("drafts have a row of their own", function()
  local args = "qwen3_5 --variant 27b --quant nvfp4 --card h200 --parallel 2 --draft "
  local none, three = plan_of(args .. 0), plan_of(args .. 3)
  spec.equal(owner(none, "drafts"), 0)
  spec.equal(three.kv.draft_bytes > 0, true)
  spec.equal(owner(three, "drafts"), 2 * three.kv.draft_bytes)
  spec.equal(owner(three, "scans"), owner(none, "scans"))
  spec.equal(three.kv.bytes_per_token, none.kv.bytes_per_token // 16 * 17) -- one layer more
  spec.equal(#runs(three, "draft") > 0 and #runs(none, "draft") == 0, true)
end)

-- ---- Options ------------------------------------------------------------------------------------

spec("a picture of the card, a buffer's origin, and what changed", function()
  local folder = spec.folder()
  local model = "gemma4 --variant e2b --quant bf16 --card l4 "
  local output, code = gen_plan(model .. "--svg " .. folder .. "/card.svg --json > " .. folder .. "/plan.json")
  spec.equal(code, 0, output)
  spec.contains(spec.shell("head -c 60 " .. folder .. "/card.svg"), "<svg xmlns=")

  output, code = gen_plan(model .. "--explain qkv")
  spec.equal(code, 0, output)
  spec.contains(output, "models/gemma4_decoder.lua:")
  spec.contains(output, "which at other times hold")

  output = gen_plan(model .. "--against " .. folder .. "/plan.json")
  spec.equal(output, "Nothing changed.\n")
  output = gen_plan(model .. "--images 0 --against " .. folder .. "/plan.json")
  spec.contains(output, "owner encoder cache")
  spec.contains(output, "graph encode_image 70")
end)

spec("an encoder's arena below its smallest item is refused with the number that would do", function()
  local args = "gemma4 --variant 26b-a4b --quant nvfp4 --card rtx5090 --encoder-arena "
  local output, code = gen_plan(args .. "1MiB")
  spec.equal(code, 3)
  local need = tonumber(output:match "takes (%d+) bytes")
  spec.equal(plan_of(args .. need).fits, true)
end)

spec("one limit holds", function()
  local output, code = gen_plan "gemma4 --variant e2b --card l4 --kv-tokens 9000 --vram-limit 20GiB"
  spec.equal(code, 2)
  spec.contains(output, "give one of --kv-tokens and --vram-limit")
  -- A pool that is asked for leaves no reserve.
  local plan = plan_of "gemma4 --variant e2b --card l4 --kv-tokens 9024"
  spec.equal(plan.kv.tokens, 9024)
  spec.equal(plan.limit_bytes, plan.card.total_bytes)
end)

spec("a reserve that alone is in the way is advised, and fits", function()
  local args = "llama_tiny --card 1GiB,sm_80"
  local plan, code = plan_of(args)
  spec.equal(code, 3)
  spec.equal(plan.advice, "Smallest change: --vram-reserve 64MiB in place of 1.00 GiB.")
  spec.equal(plan_of(args .. " --vram-reserve 64MiB").fits, true)
end)

spec("a limit that the card has not is refused as a start would", function()
  for _, shown in ipairs { "", " --json" } do
    local output, code = gen_plan("llama_tiny --card 4GiB,sm_80 --vram-limit 5GiB" .. shown)
    spec.equal(code, 3, output)
    spec.contains(output, "5.00 GiB may be used (--vram-limit), and 4GiB,sm_80 has 4.00 GiB free of 4.00 GiB: "
      .. "--vram-limit 4294967296 is what there is")
  end
end)

spec("what is shown of a plan that doesn't fit exits with 3, too, and one thing is shown", function()
  local folder = spec.folder()
  local model = "gemma4 --variant e2b --quant bf16 "
  gen_plan(model .. "--card l4 --json > " .. folder .. "/plan.json")
  for _, shown in ipairs { "--explain qkv", "--against " .. folder .. "/plan.json", "--json" } do
    local output, code = gen_plan(model .. "--card 4GiB,sm_89 " .. shown)
    spec.equal(code, 3, output)
    spec.contains(output, "short by")
  end
  for _, two in ipairs { "--json --explain qkv", "--against x --json", "--explain qkv --against x" } do
    local output, code = gen_plan(model .. "--card l4 " .. two)
    spec.equal(code, 2)
    spec.contains(output, "give one of --json, --explain and --against")
  end
end)

spec("a card too small for its graphs is refused with --json's object and the numbers", function()
  local args = "gemma4 --variant e2b --quant bf16 --card 600MiB,sm_89 --parallel 1"
  local plan, code = plan_of(args)
  spec.equal(code, 3)
  spec.equal(plan.fits, false)
  spec.equal(plan.short_by_bytes, plan.total_bytes - plan.limit_bytes)
  local report = gen_plan(args)
  spec.contains(report, "more than a quarter of 600MiB,sm_89. The largest: step n = 1 52.9 MiB, encode_image n = 1120")
  spec.contains(report, "The largest part is weights")
  spec.contains(report, "No option mends it")
end)

spec("what a plan has chosen is the least that it says would fit", function()
  for _, args in ipairs {
    "gemma4 --variant 26b-a4b --quant nvfp4 --card rtx4090", "gemma4 --variant 31b --quant q4_0 --parallel 1 --card rtx5090",
    "gemma4 --variant e2b --quant bf16 --card rtx5090 --graphs step=64",
    "gemma4 --variant e2b --quant bf16 --card rtx5090 --graphs step=1,2 --graphs encode_image=70,1120",
    "gemma4 --variant 26b-a4b --quant nvfp4 --card b200 --ctx-size 1145",
  } do
    local plan = plan_of(args)
    spec.equal(plan.fits, true, args)
    spec.equal(plan.longest_context >= plan.options.ctx_size, true, args)
    spec.equal(plan.most_sequences >= plan.options.parallel, true, args)
    spec.equal(plan.largest_batch >= plan.options.batch_size, true, args)
  end
end)

-- Every "--option value" of the advice, put behind what was asked for.
spec("the advice can be followed", function()
  local n = 0
  for _, model in ipairs { "gemma4 --variant 31b --quant q4_0", "gemma4 --variant 26b-a4b --quant nvfp4", "qwen3_5 --variant 27b --quant nvfp4 --draft 3" } do
    for _, card in ipairs { "rtx3090", "rtx5090-laptop", "l4", "17GiB,sm_89", "20GiB,sm_120" } do
      for _, options in ipairs { "", " --parallel 48", " --ctx-size 200000 --video-frames 64", " --kv-tokens 300000 --parallel 300 --batch-size 22528" } do
        local args = model .. " --card " .. card .. options
        local plan = plan_of(args)
        local said = ""
        for option, value in plan.advice:gmatch "(%-%-[%a%-]+) ([%w_=,%-]+)" do
          said = said .. (" %s %s"):format(option, (value:gsub(",$", "")))
        end
        if said ~= "" and not plan.advice:find "recipe" and not plan.advice:find "^No option" then
          n = n + 1
          spec.equal(plan_of(args .. said).fits, true, args .. said)
        end
      end
    end
  end
  spec.equal(n > 10, true)
end)

spec("what would do nothing is refused", function()
  local model = "gemma4 --variant e2b --quant bf16 --card l4 "
  for options, said in pairs {
    ["--assume fixed=1GiB,fixed=2GiB"] = "--assume tells fixed= twice",
    ["--graphs none --assume graphs=5GiB"] = "no graphs are planned (--graphs none)",
    ["--graphs step=1 --graphs step=2"] = "--graphs step=1 and --graphs step=2: a program has one list",
    ["--graphs none --graphs step=1"] = "--graphs none has no graphs, --graphs step=1 has some",
    ["--kv-tokens 0"] = "--kv-tokens",
    ["--parallel 64 --kv-tokens 64"] = "each sequence has a page at least, --kv-tokens 4096",
  } do
    local output, code = gen_plan(model .. options)
    spec.equal(code, 2, output)
    spec.contains(output, said)
  end
  for _, option in ipairs { "--after fuse", "--probe", "--out x" } do
    local output, code = spec.shell("gen/gen plan llama_tiny " .. option)
    spec.equal(code, 2)
    spec.contains(output, option:match "^%S+" .. " does nothing under gen plan")
  end
end)

spec("a frame of Gemma's video has 70 tokens, one of Qwen's as many as a picture", function()
  local args = "gemma4 --variant e2b --quant bf16 --card h200 --images 0 --video-frames 10"
  spec.contains(gen_plan(args), "video        10 frames at once (--video-frames), of 70 tokens each")
  args = "qwen3_5 --variant 27b --quant nvfp4 --card h200 --images 0 --video-frames 10"
  spec.contains(gen_plan(args), "video        10 frames at once (--video-frames), of 1,120 tokens each")
end)

spec("a family that a card can't run is refused, one that is older than it is planned", function()
  local output, code = spec.shell "gen/gen plan llama_tiny --card l4 --target sm90"
  spec.equal(code, 2, output)
  spec.contains(output, "--target sm90 does not run on l4")
  output, code = spec.shell "gen/gen plan llama_tiny --card h200 --target sm80"
  spec.equal(code, 0, output)
  spec.contains(output, "family       sm80: kernels for 8.0 and above")
  output, code = gen_plan "llama_tiny --card 16GiB,sm_75"
  spec.equal(code, 2)
  spec.contains(output, "is older than what llama_tiny")
end)

spec("no plan of the released models on a GPU's cards says yes above its limit", function()
  for _, card in ipairs { "rtx3090", "a100-40", "gb10" } do
    local plan, code = plan_of("gemma4 --variant 26b-a4b --quant nvfp4 --card " .. card)
    spec.equal(code, plan.fits and 0 or 3)
    spec.equal(plan.fits, plan.total_bytes <= plan.limit_bytes)
    spec.equal(plan.limit_bytes <= plan.card.total_bytes - GIB, true)
  end
end)
