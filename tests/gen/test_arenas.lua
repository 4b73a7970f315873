-- tests/gen/test_arenas.lua -- The arenas of the published models, in every family: hardly more
-- than what is alive, and aligned at every size.

local spec = require "tests.support.spec"
local describe = require "tests.gen.describe"
local size = require "gen.size"

local models = {
  { "gemma4", "e2b" }, { "gemma4", "e4b" }, { "gemma4", "26b-a4b" }, { "gemma4", "31b" },
  { "gemma4_unified", "12b" }, { "qwen3_5", "27b" }, { "qwen3_5", "35b-a3b" },
}
local quants = { "bf16", "nvfp4_nvidia" }

local planned = {}
local function each_program(f)
  for _, row in ipairs(models) do
    for _, quant in ipairs(quants) do
      local name = row[2] .. "-" .. quant
      if planned[name] == nil then
        local ok, result = pcall(describe.planned, describe.file(row[1], row[2]), { quant = quant })
        planned[name] = ok and result or false -- there is no such release
      end
      for _, family in ipairs(planned[name] or {}) do
        for _, program in ipairs(family.programs) do
          f(program, ("%s %s %s"):format(name, family.name, program.name), family)
        end
      end
    end
  end
end

-- 40 of them from 64 on, none a multiple of the one before.
local sizes = {}
for i = 0, 39 do sizes[i + 1] = math.floor(64 * 1.17 ^ i) end

local threads = 3
local function at(x, row, n)
  return size.at(x, { [row.extent] = n, threads = threads, fast_gemm = 0 })
end

-- The buffers of a region that grow, or those that don't, with their bytes at n: as they are, and
-- rounded up to 64.
local function buffers_at(program, row, n, grow)
  local list = {}
  for _, buffer in ipairs(program.buffers) do
    if buffer.region == row and (buffer.extent ~= nil) == grow then
      local bytes = buffer.bytes_per_unit * (grow and n or 1)
      list[#list + 1] = {
        bytes = bytes, height = (bytes + 63) // 64 * 64, buffer = buffer,
        first = buffer.first, last = buffer.last, at = at(buffer.offset, row, n),
      }
    end
  end
  table.sort(list, function(a, b)
    if a.at ~= b.at then return a.at < b.at end
    return a.first < b.first
  end)
  return list
end

local function live_set(program, list)
  local most = 0
  for op = 0, program.n_ops - 1 do
    local now = 0
    for _, x in ipairs(list) do
      if x.first <= op and op <= x.last then now = now + x.bytes end
    end
    most = math.max(most, now)
  end
  return most
end

-- Solved for this n alone: each as low as those alive with it allow, from the bottom up.
local function fresh_placement(list)
  local height = 0
  for i, x in ipairs(list) do
    x.place = 0
    for j = 1, i - 1 do
      local y = list[j]
      if x.first <= y.last and y.first <= x.last then
        x.place = math.max(x.place, y.place + y.height)
      end
    end
    height = math.max(height, x.place + x.height)
  end
  return height
end

spec("a table's arena holds a fresh placement, which holds the live set; within 1 % at 40 sizes", function()
  each_program(function(program, name, family)
    for _, row in ipairs(program.costs) do
      -- Scratch and what has a fixed size are kept all through their phase: what grows can't lie
      -- over them at every n.
      local scratch = (program.scratch[row.of_phase] or 0) * (family.sm and 1 or threads)
      local fixed = fresh_placement(buffers_at(program, row, 1, false))
      if row.fixed_bytes > fixed + 256 * #program.buffers then error(name .. ": holes in what is fixed") end
      local kept = scratch + row.fixed_bytes
      for _, n in ipairs(sizes) do
        local list = buffers_at(program, row, n, true)
        local table_bytes = at(row.bytes, row, n)
        local fresh = kept + fresh_placement(list)
        local live = kept + live_set(program, list)
        if not (table_bytes >= fresh and fresh >= live and table_bytes <= live * 1.01) then
          error(("%s, %s at %d: table %d, fresh %d, alive %d"):format(name, row.phase, n,
            table_bytes, fresh, live))
        end
      end
    end
  end)
end)

spec("every offset is a multiple of 64 at every n from 1 to 4096", function()
  each_program(function(program, name, family)
    local known = {} -- the same line of a size again
    for _, buffer in ipairs(program.buffers) do
      local begin, one = at(buffer.offset, buffer.region, 0), at(buffer.offset, buffer.region, 1)
      local key = begin .. " " .. one
      for n = 1, known[key] and 0 or 4096 do
        if (begin + (one - begin) * n) % 64 ~= 0 then
          error(("%s: %s begins at %d of %d"):format(name, buffer.name, begin + (one - begin) * n, n))
        end
      end
      known[key] = true
    end
    for _, row in ipairs(program.costs) do -- and so does what lies behind a region
      spec.equal(at(row.bytes, row, 0) % 64 + at(row.bytes, row, 1) % 64, 0, name)
    end
    spec.equal(family.sm ~= nil or family.cpu ~= nil, true)
  end)
end)

-- ---- Keys and values ------------------------------------------------------------------------

local MIB = 1024 * 1024

spec("keys and values of one sequence: what grows with it, and windows", function()
  local function kv(variant)
    return describe.file("gemma4", variant), function(model)
      describe.planned(model, { quant = "bf16", target = "portable" })
      return model.kv.bf16
    end
  end
  -- variant, bytes a token, MiB of windows, MiB in all at so many tokens, bytes a drafted token
  for _, row in ipairs {
    { "e2b", 6144, 6, 198, 32768, 12 * 1024 }, { "26b-a4b", 20480, 200, 840, 32768, 25 * 8192 },
    { "31b", 81920, 800, 3360, 32768, 50 * 16384 }, { "26b-a4b", 20480, 200, 5320, 262144, 25 * 8192 },
    { "31b", 81920, 800, 21280, 262144, 50 * 16384 },
  } do
    local model, of = kv(row[1])
    local layout = of(model)
    spec.equal(layout.bytes_per_token, row[2], row[1])
    spec.equal(layout.bytes_per_sequence, row[3] * MIB, row[1])
    spec.equal(layout.bytes_per_token * row[5] + layout.bytes_per_sequence, row[4] * MIB, row[1])
    spec.equal(layout.bytes_per_draft, row[6], row[1])
  end
end)

spec("Qwen3.8's layers of full attention and its scans", function()
  local model = describe.file("qwen3_5", "27b")
  describe.planned(model, { quant = "bf16" })
  for dtype, bytes in pairs { bf16 = 65536, fp8 = 32768, nvfp4 = 18432 } do
    spec.equal(model.kv[dtype].bytes_per_token, bytes, dtype)
    spec.equal(model.kv[dtype].bytes_per_sequence, 153944064, dtype)
  end
end)
