-- tests/gen/test_place.lua -- The arena: what is alive together never overlaps, offsets are
-- aligned at every size, and the table is hardly more than the live set.

local spec = require "tests.support.spec"
local describe = require "tests.gen.describe"
local graph = require "gen.graph"
local size = require "gen.size"

local models = {
  { "llama", "smollm2-135m", "q4_1" }, { "llama", "smollm2-135m", "bf16" }, { "llama", "llama-3.2-1b", "q8_0" },
  { "llama_tiny", "small", "f32" }, { "llama_tiny", "groups", "q4_1" }, { "llama_tiny", "small", "q4_0" },
}

local cache = {}
local function each_program(f)
  for _, row in ipairs(models) do
    local name = table.concat(row, "-")
    cache[name] = cache[name] or describe.planned(describe.file(row[1], row[2]), { quant = row[3] })
    for _, family in ipairs(cache[name]) do
      for _, program in ipairs(family.programs) do f(program, name .. " " .. family.name, row, family) end
    end
  end
end

-- What is carried before row number `row` of the costs, from 0.
local function region_begin(program, row, n)
  local begin = 0
  for i = 1, math.min(row, program.n_carried) do
    begin = begin + size.at(program.costs[i].bytes, n)
  end
  return begin
end

-- Where a buffer lies for given extents.
local function range(program, buffer, n)
  local begin = region_begin(program, buffer.row, n) + size.at(buffer.offset, n)
  return begin, begin + size.at(buffer.bytes, n)
end

local function arena(program, n)
  local most = 0
  for i = program.n_carried + 1, #program.costs do
    most = math.max(most, size.at(program.costs[i].bytes, n))
  end
  return region_begin(program, #program.costs, n) + most
end

local function sizes()
  local list = {}
  for _, tokens in ipairs { 1, 2, 3, 7, 31, 64, 65, 511, 512, 2048 } do
    for _, outputs in ipairs { 0, 1, 5, 2048 } do
      for _, threads in ipairs { 1, 2, 7 } do
        list[#list + 1] = { tokens = tokens, outputs = math.min(outputs, tokens), threads = threads, sequences = 1,
          max_pages = 8, max_context = 512, max_sequences = 1, draft = 0, fast_gemm = threads % 2 }
      end
    end
  end
  return list
end

spec("buffers that are alive together don't overlap", function()
  each_program(function(program, name)
    for _, n in ipairs(sizes()) do
      for i, a in ipairs(program.buffers) do
        for j = 1, i - 1 do
          local b = program.buffers[j]
          if a.first <= b.last and b.first <= a.last then
            local a_begin, a_end = range(program, a, n)
            local b_begin, b_end = range(program, b, n)
            if a_begin < b_end and b_begin < a_end then
              error(("%s: %s and %s overlap at %d tokens, %d outputs"):format(name, a.name, b.name, n.tokens, n.outputs))
            end
          end
        end
      end
    end
  end)
end)

spec("every buffer lies within the arena, behind scratch, at a multiple of 64", function()
  each_program(function(program, name, _, family)
    for _, n in ipairs(sizes()) do
      for _, buffer in ipairs(program.buffers) do
        local begin, stop = range(program, buffer, n)
        local scratch = (program.scratch[buffer.region.of_phase] or 0) * (family.sm and 1 or n.threads)
        local base = region_begin(program, buffer.row, n)
        if begin % 64 ~= 0 or begin < base + scratch or stop > arena(program, n) then
          error(("%s: %s at %d ... %d"):format(name, buffer.name, begin, stop))
        end
      end
    end
  end)
end)

-- The most bytes a row that are alive at once, phase by phase, as the kernels use them.
local function live_set(program, row)
  local most = 0
  for at = 0, program.n_ops - 1 do
    local now = 0
    for _, buffer in ipairs(program.buffers) do
      if buffer.region == row and buffer.extent and buffer.first <= at and at <= buffer.last then now = now + buffer.bytes_per_unit end
    end
    most = math.max(most, now)
  end
  return most
end

spec("smollm2-135m: the table is within 1 % of the live set, phase by phase", function()
  each_program(function(program, name, row)
    if row[2] ~= "smollm2-135m" then return end
    for _, cost in ipairs(program.costs) do
      local live, planned = live_set(program, cost), cost.slope
      if planned < live or planned > live * 1.01 then
        error(("%s, %s: %d bytes a row planned, %d alive"):format(name, cost.phase, planned, live))
      end
    end
  end)
end)

spec("what outlives its phase is carried, and nothing else", function()
  each_program(function(program, name)
    local carried = {}
    for _, buffer in ipairs(program.buffers) do
      if buffer.region.carried then carried[#carried + 1] = buffer.extent end
    end
    spec.equal(table.concat(carried, " "), "outputs", name)
  end)
end)

spec("an operation reads what is alive, and writes what is", function()
  each_program(function(program, name)
    for _, row in ipairs(graph.flat(program)) do
      for _, input in ipairs(row.op.inputs) do
        local buffer = graph.root(input.tensor).buffer
        if buffer and not (buffer.first <= row.index and row.index <= buffer.last) then
          error(("%s: op %d reads %s, alive %d ... %d"):format(name, row.index, buffer.name, buffer.first, buffer.last))
        end
      end
      local buffer = graph.root(row.op.result).buffer
      if row.op.def.state ~= "kv" and not (buffer.first <= row.index and row.index <= buffer.last) then
        error(name .. ": an operation writes what isn't alive")
      end
    end
  end)
end)

spec("what phases carry lies apart for each extent", function()
  local model = describe.text(describe.model(nil, [[
  local x = w.layers(nn.embedding(batch.token_ids, w.embed), batch)
  nn.tap("hidden", nn.silu(x))
  return nn.linear(nn.rows(x, batch.output_rows), w.embed)]]))
  for _, family in ipairs(describe.planned(model, { quant = "f32" })) do
    local program = family.programs[1]
    spec.equal(program.n_carried, 2)
    spec.equal(program.costs[1].phase .. " " .. program.costs[1].extent, "carried tokens")
    spec.equal(program.costs[2].phase .. " " .. program.costs[2].extent, "carried_outputs outputs")
    local n = { tokens = 7, outputs = 3, threads = 2, fast_gemm = 0 }
    for i, a in ipairs(program.buffers) do
      for j = 1, i - 1 do
        local b = program.buffers[j]
        local a_begin, a_end = range(program, a, n)
        local b_begin, b_end = range(program, b, n)
        local apart = a_end <= b_begin or b_end <= a_begin
        if not apart and (a.region.carried ~= b.region.carried) then
          error(("%s and %s overlap"):format(a.name, b.name))
        end
      end
    end
  end
end)
