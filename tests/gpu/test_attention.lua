-- tests/gpu/test_attention.lua -- Attention over pages and rings: right, and the same bits however
-- the tokens come.

local spec = require "tests.support.spec"
local harness = require "tests.gpu.harness"
local attention = require "gen.ops.attention"
local kv = require "gen.kv"

-- ---- Sequences, and what their caches hold -------------------------------------------------

-- Queries, keys and values of whole sequences; `spans` says what positions see, as an engine does.
local function world_of(shape, lengths)
  local w = { shape = shape, n = lengths, q = {}, k = {}, v = {}, spans = {} }
  for s, n in ipairs(lengths) do
    w.q[s] = harness.matrix(n, shape.heads * shape.d)
    w.k[s] = harness.matrix(n, shape.kv_heads * shape.d)
    w.v[s] = harness.matrix(n, shape.kv_heads * shape.d)
    w.spans[s] = {}
    for p = 1, n do w.spans[s][p] = p end
    if shape.spans then -- a picture of 40 tokens that all see each other
      for p = math.min(12, n), math.min(51, n) do w.spans[s][p] = math.min(51, n) end
    end
  end
  return w
end

local function seen_from(w, position) -- from 0
  return w.shape.window and math.max(position - w.shape.window + 1, 0) or 0
end

local NAN = 0xffff

-- The bytes of n_values bf16: NaN but where put(set) puts one.
local function cache_bytes(n_values, put)
  local list, parts, format = {}, {}, "<" .. ("I2"):rep(64)
  n_values = (n_values + 63) // 64 * 64
  for i = 1, n_values do list[i] = NAN end
  put(function(at, x) list[at + 1] = harness.to_bf16(x) end)
  for i = 1, n_values, 64 do
    parts[#parts + 1] = string.pack(format, table.unpack(list, i, i + 63))
  end
  return table.concat(parts)
end

-- Pages of all sequences, up to stop[s] tokens of each, in odd order: this layer's part is the first
-- half of each. Returns bytes, table, max_pages.
local function pages_of(w, stop)
  local shape = w.shape
  local n_pages, max_pages, number, rows = 0, 0, {}, {}
  for s, n in ipairs(w.n) do
    number[s], max_pages = {}, math.max(max_pages, (n + 63) // 64)
    for block = 1, (n + 63) // 64 do
      number[s][block] = n_pages
      n_pages = n_pages + 1
    end
  end
  local function page(s, block) return (number[s][block] * 5 + 2) % n_pages end
  while n_pages % 5 == 0 do n_pages = n_pages + 1 end
  local half = shape.kv_heads * 64 * 2 * shape.d
  local bytes = cache_bytes(n_pages * half * 2, function(set)
    for s in ipairs(w.n) do
      for p = 0, stop[s] - 1 do
        local at, slot = page(s, p // 64 + 1) * half * 2, p % 64
        for head = 0, shape.kv_heads - 1 do
          for i = 0, shape.d - 1 do
            local keys = at + head * 128 * shape.d
            set(keys + (i // 2 * 64 + slot) * 2 + i % 2, w.k[s][p + 1][head * shape.d + i + 1])
            set(keys + 64 * shape.d + (slot // 2 * shape.d + i) * 2 + slot % 2,
              w.v[s][p + 1][head * shape.d + i + 1])
          end
        end
      end
    end
  end)
  for s in ipairs(w.n) do
    for block = 1, max_pages do
      rows[#rows + 1] = number[s][block] and page(s, block) or -1
    end
  end
  return bytes, rows, max_pages
end

-- Rings of slots 1 and up, with the last tokens before start[s]; this layer's are behind 128 bytes.
local function rings_of(w, start)
  local shape = w.shape
  local head_values = shape.window * 2 * shape.d
  local slot_values = shape.kv_heads * head_values + 64
  return cache_bytes((#w.n + 1) * slot_values + 64, function(set)
    for s in ipairs(w.n) do
      for p = math.max(start[s] - shape.window, 0), start[s] - 1 do
        for head = 0, shape.kv_heads - 1 do
          local at = 64 + s * slot_values + head * head_values + p % shape.window * 2 * shape.d
          for i = 0, shape.d - 1 do
            set(at + i, w.k[s][p + 1][head * shape.d + i + 1])
            set(at + shape.d + i, w.v[s][p + 1][head * shape.d + i + 1])
          end
        end
      end
    end
  end), slot_values * 2
end

-- ---- Steps --------------------------------------------------------------------------------

local function node_of(shape)
  local head_bytes = kv.head_bytes(shape.d, shape.d, "bf16")
  local rows = shape.outputs and "outputs" or "tokens"
  local step = shape.window and { dims = { "tokens", shape.kv_heads * shape.d }, dtype = "bf16" } or nil
  return {
    attrs = { scale = shape.scale }, kv_dtype = "bf16",
    y = { dims = { rows, shape.heads * shape.d }, dtype = shape.y or "bf16" },
    inputs = {
      q = { dims = { rows, shape.heads * shape.d }, dtype = "bf16" }, k = step, v = step,
      spans = shape.spans and { dims = { rows }, dtype = "i32" } or nil,
      kv = {
        n_heads = shape.kv_heads, d_key = shape.d, d_value = shape.d, head_bytes = head_bytes,
        page_bytes = 2 * shape.kv_heads * head_bytes, window = shape.window or 0,
        slot_bytes = shape.window and shape.kv_heads * shape.window * 4 * shape.d + 128,
      },
    },
  }
end

-- Rows of one step: chunks { s, from, to [, outputs_from] } of sequences, positions from 0, then
-- `padding` rows that only fill up. Returns the result's bytes of each row of a sequence,
-- [s][position], and those of the padding.
local function step(w, chunks, padding, runs)
  local shape, PAD = w.shape, 24 -- a row of q is wider than its heads, k and v lie in one
  padding = padding or 0
  local q, kv_rows, positions, begin, spans, rows, state, table_rows = {}, {}, {}, { 0 }, {}, {}, {}, {}
  local step_positions, step_begin, start, stop = {}, { 0 }, {}, {}
  for s in ipairs(w.n) do start[s], stop[s] = 0, 0 end
  for _, chunk in ipairs(chunks) do
    start[chunk[1]], stop[chunk[1]] = chunk[2], chunk[3]
  end
  local pages, page_table, max_pages, slot_bytes
  if shape.window then
    pages, slot_bytes = rings_of(w, start)
  else
    pages, page_table, max_pages = pages_of(w, stop)
  end
  local zeros = {}
  for i = 1, PAD do zeros[i] = 0 / 0 end
  for i, chunk in ipairs(chunks) do
    local s, outputs_from = chunk[1], shape.outputs and chunk[4] or chunk[2]
    for p = chunk[2], chunk[3] - 1 do
      local row = table.move(w.k[s][p + 1], 1, #w.k[s][p + 1], 1, {})
      table.move(w.v[s][p + 1], 1, #w.v[s][p + 1], #row + 1, row)
      kv_rows[#kv_rows + 1], step_positions[#step_positions + 1] = row, p
      if p >= outputs_from then
        q[#q + 1] = table.move(zeros, 1, PAD, #w.q[s][p + 1] + 1, { table.unpack(w.q[s][p + 1]) })
        positions[#positions + 1], spans[#spans + 1] = p, w.spans[s][p + 1]
        rows[#rows + 1] = { s, p }
      end
    end
    begin[i + 1], step_begin[i + 1], state[i] = #q, #kv_rows, s
    for block = 1, max_pages or 0 do
      table_rows[#table_rows + 1] = page_table[(s - 1) * max_pages + block]
    end
  end
  for i = 1, padding do
    q[#q + 1], kv_rows[#kv_rows + 1] = q[1], kv_rows[1]
    positions[#positions + 1], step_positions[#step_positions + 1], spans[#spans + 1] = -1, -1, 0
    begin[#begin + 1], step_begin[#step_begin + 1], state[#state + 1] = #q, #kv_rows, -1
    for _ = 1, max_pages or 0 do table_rows[#table_rows + 1] = -1 end
    if i == 2 then -- two in one sequence
      begin[#begin], step_begin[#step_begin] = nil, nil
      begin[#begin], step_begin[#step_begin] = #q, #kv_rows
    end
  end
  local d_kv, n = shape.kv_heads * shape.d, #q
  local kv_bytes = harness.bf16(kv_rows).bytes
  local ring = pages:sub(129)
  local out = harness.run {
    op = "attention", node = node_of(shape), runs = runs, large = shape.large,
    args = {
      y = harness.result(shape.y or "bf16", n * shape.heads * shape.d),
      q = harness.bf16(q), q_stride = shape.heads * shape.d + PAD,
      pages = harness.bytes(pages), page_table = harness.i32(table_rows), max_pages = max_pages,
      ring = harness.bytes(ring), state_of = harness.i32(state), slot_bytes = slot_bytes,
      k = harness.bytes(kv_bytes), k_stride = 2 * d_kv,
      v = harness.bytes(kv_bytes:sub(2 * d_kv + 1)), v_stride = 2 * d_kv,
      spans = harness.i32(spans), n_sequences = #begin - 1,
      [shape.outputs and "output_positions" or "positions"] = harness.i32(positions),
      [shape.outputs and "output_begin" or "sequence_begin"] = harness.i32(begin),
      [shape.outputs and "n_outputs" or "n_tokens"] = n,
      [shape.outputs and "positions" or "step_positions"] = harness.i32(step_positions),
      [shape.outputs and "sequence_begin" or "step_begin"] = harness.i32(step_begin),
    },
  }
  local row_bytes, result, pad = #out.raw.y // n, {}, {}
  for i = 1, n do
    local bytes = out.raw.y:sub((i - 1) * row_bytes + 1, i * row_bytes)
    if not rows[i] then
      pad[#pad + 1] = bytes
    else
      local s, p = rows[i][1], rows[i][2]
      result[s] = result[s] or {}
      result[s][p] = bytes
    end
  end
  return result, pad
end

-- ---- What must hold -------------------------------------------------------------------------

local function numbers_of(bytes, dtype)
  local list, width = {}, dtype == "f32" and 4 or 2
  for i = 1, #bytes, width do
    list[#list + 1] = dtype == "f32" and string.unpack("<f", bytes, i)
      or harness.of_bf16(string.unpack("<I2", bytes, i))
  end
  return list
end

-- Rows of a result against the definition, every `stride`-th.
local function compare(w, result, stride)
  local shape = w.shape
  local attrs = { d_head = shape.d, n_kv_heads = shape.kv_heads, scale = shape.scale }
  for s, rows in pairs(result) do
    local n = 0
    for p = 0, w.n[s] - 1 do
      n = rows[p] and n + 1 or n
      if rows[p] and n % stride == 0 then
        local from, to = seen_from(w, p), w.spans[s][p + 1]
        local keys = table.move(w.k[s], from + 1, to, 1, {})
        local values = table.move(w.v[s], from + 1, to, 1, {})
        local y = {}
        attention.reference(y, w.q[s][p + 1], keys, values, attrs)
        -- weights are rounded to bf16, off by 2^-9 at most, and are of values of up to 3
        harness.compare(numbers_of(rows[p], shape.y), y, shape.y or "bf16", 1 / 64)
      end
    end
  end
end

local function same(found, expected)
  for s, rows in pairs(found) do
    for p, bytes in pairs(rows) do
      if bytes ~= expected[s][p] then
        error(("sequence %d, position %d: other bits than in the first step"):format(s, p), 2)
      end
    end
  end
end

local once = { { "random", "late", 1 } }

local shapes = {
  { heads = 6, kv_heads = 3, d = 8 },
  { heads = 9, kv_heads = 3, d = 64, scale = 0.25, large = true },
  { heads = 8, kv_heads = 2, d = 80, y = "f32", large = true },
  { heads = 20, kv_heads = 1, d = 40, large = true },
  { heads = 16, kv_heads = 1, d = 136, large = true },
  { heads = 2, kv_heads = 2, d = 16, large = true },
  { heads = 8, kv_heads = 1, d = 16, window = 20, large = true },
  { heads = 6, kv_heads = 2, d = 24, window = 64, spans = true },
  { heads = 4, kv_heads = 2, d = 200, window = 96, y = "f32", large = true },
  { heads = 6, kv_heads = 3, d = 8, window = 129, spans = true, outputs = true },
}

for _, shape in ipairs(shapes) do
  local name = ("%d heads on %d of %d%s%s%s"):format(shape.heads, shape.kv_heads, shape.d,
    shape.window and ", window " .. shape.window or "", shape.spans and ", spans" or "",
    shape.outputs and ", wanted rows" or "")
  spec("attention is near the reference, and its bits don't know how tokens come: " .. name, function()
    local w = world_of(shape, { 150, 71, 1, 131 })

    local whole = step(w, { { 2, 0, 71, 0 }, { 1, 0, 150, 0 }, { 3, 0, 1, 0 }, { 4, 0, 131, 0 } }, 0, once)

    compare(w, whole, shape.heads * shape.d > 300 and 37 or 17)
    same(step(w, { { 1, 149, 150, 149 }, { 2, 65, 71, 65 }, { 3, 0, 1, 0 }, { 4, 130, 131, 130 } }), whole)
    same(step(w, { { 4, 64, 130, 100 }, { 1, 51, 140, 120 }, { 2, 70, 71, 70 } }, 0, once), whole)
    local some, padding = step(w, { { 1, 53, 62, 56 }, { 4, 126, 129, 127 } }, 3, once)
    same(some, whole)
    for _, row in ipairs(padding) do spec.equal(row, ("\0"):rep(#row)) end
    some, padding = step(w, { { 1, 53, 72, 53 }, { 4, 60, 70, 60 } }, 9, once)
    same(some, whole)
    for _, row in ipairs(padding) do spec.equal(row, ("\0"):rep(#row)) end
  end)
end

for _, shape in ipairs {
  { heads = 2, kv_heads = 1, d = 8, large = true },
  { heads = 2, kv_heads = 1, d = 8, window = 1000, spans = true, large = true },
} do
  spec(("behind 32 blocks parts have four of them, behind 64 eight%s"):format(
    shape.window and "; with a window always as many" or ""), function()
    local w = world_of(shape, { 4300, 90 })
    local late = step(w, { { 1, 4080, 4300 }, { 2, 0, 90 } }, 0, once)
    compare(w, late, 73)
    same(step(w, { { 2, 85, 90 }, { 1, 4297, 4300 } }, 2, once), late)
    same(step(w, { { 1, 4095, 4099 } }, 0, once), late)
    local middle = step(w, { { 1, 2040, 2060 } }, 0, once)
    compare(w, middle, 9)
    same(step(w, { { 1, 2047, 2052 } }, 0, once), middle)
  end)
end

for _, shape in ipairs {
  { heads = 8, kv_heads = 1, d = 512, large = true },
  { heads = 2, kv_heads = 1, d = 256, window = 70, spans = true, large = true },
  { heads = 4, kv_heads = 1, d = 128, large = true },
} do
  spec(("heads of %d"):format(shape.d), function()
    local w = world_of(shape, { 75, 3 })
    local whole = step(w, { { 1, 52, 75 }, { 2, 0, 3 } }, 0, once)
    compare(w, whole, 11)
    same(step(w, { { 1, 70, 75 } }, 0, once), whole)
  end)
end
