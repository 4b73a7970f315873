-- tests/gpu/test_kv_append.lua -- kv_append on a GPU: a token's keys and values are where
-- gen/ops/attention.lua says, and nothing else has changed.

local spec = require "tests.support.spec"
local harness = require "tests.gpu.harness"
local kv = require "gen.kv"

local HEADS = 3

local function node_of(d, window)
  local head_bytes = kv.head_bytes(d, d, "bf16")
  local rows = { dims = { "tokens", HEADS * d }, dtype = "bf16" }
  return {
    kv_dtype = "bf16", y = rows,
    inputs = {
      k = rows, v = rows,
      kv = {
        n_heads = HEADS, d_key = d, d_value = d, head_bytes = head_bytes,
        page_bytes = 2 * HEADS * head_bytes, window = window,
        slot_bytes = HEADS * window * 4 * d + 64,
      },
    },
  }
end

-- Three sequences of a step, and two rows that fill up: positions, and of each row its sequence.
local first, n_rows = { 60, 0, 127 }, { 9, 3, 1 }
local rows = {}
for s = 1, 3 do
  for i = 0, n_rows[s] - 1 do rows[#rows + 1] = { sequence = s - 1, position = first[s] + i } end
end
rows[14], rows[15] = { sequence = 3, position = -1 }, { sequence = 4, position = -1 }

local function column(name)
  local list = {}
  for i, row in ipairs(rows) do list[i] = row[name] end
  return harness.i32(list)
end

-- Runs it on a cache of n values, all of them 7; places(row, head, i) says where a key's and a value's
-- i-th number belong, or nil.
local function check(d, window, cache_name, n_values, args, places)
  local k, v = harness.matrix(#rows, HEADS * d + 8), harness.matrix(#rows, HEADS * d)
  local before = {}
  for i = 1, n_values do before[i] = 7 end
  args.k, args.k_stride, args.v, args.v_stride = harness.bf16(k), HEADS * d + 8, harness.bf16(v), HEADS * d
  args.positions, args.sequence_of, args.n_tokens = column "position", column "sequence", #rows
  args[cache_name] = harness.changed(harness.bf16(before))

  local out = harness.run { op = "kv_append", node = node_of(d, window), args = args }

  for r = 1, 13 do
    for head = 0, HEADS - 1 do
      for i = 0, d - 1 do
        local key_at, value_at = places(rows[r], head, i)
        if key_at then
          before[key_at + 1], before[value_at + 1] = k[r][head * d + i + 1], v[r][head * d + i + 1]
        end
      end
    end
  end
  harness.compare(out[cache_name], before, "bf16")
end

for _, d in ipairs { 8, 24, 64 } do
  spec(("pages hold pairs along the head and along the keys: heads of %d"):format(d), function()
    local table_rows = { 3, 1, -1, 0, -1, -1, 4, 2, -1, -1, -1, -1, -1, -1, -1 }
    local half = HEADS * 64 * 2 * d -- this layer's part of a page

    check(d, 0, "pages", 5 * 2 * half, {
      page_table = harness.i32(table_rows), max_pages = 3,
    }, function(row, head, i)
      local page = table_rows[row.sequence * 3 + row.position // 64 + 1]
      local at, slot = page * 2 * half + head * 128 * d, row.position % 64
      return at + (i // 2 * 64 + slot) * 2 + i % 2,
        at + 64 * d + (slot // 2 * d + i) * 2 + slot % 2
    end)
  end)

  spec(("a ring holds a window's last tokens, each key before its value: heads of %d"):format(d), function()
    local window, slots = 4, { 2, 0, 3, -1, -1 }
    local slot_values = HEADS * window * 2 * d + 32

    check(d, window, "ring", 4 * slot_values, {
      state_of = harness.i32(slots), sequence_begin = harness.i32 { 0, 9, 12, 13, 14, 15 },
    }, function(row, head, i)
      if row.position < first[row.sequence + 1] + n_rows[row.sequence + 1] - window then return nil end
      local at = slots[row.sequence + 1] * slot_values + (head * window + row.position % window) * 2 * d
      return at + i, at + d + i
    end)
  end)
end
