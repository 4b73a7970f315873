-- gen/kv.lua -- What a sequence carries from step to step, layer by layer: kv_layout's rows.
--
--   paged   keys and values of all tokens; a page holds 64 tokens of every such layer
--   ring    nn.kv { window = W }: of the last W tokens and of those drafted, for each sequence
--   fixed   nn.state: what a scan carries on, for each sequence
--
-- Layers that read another one's (nn.kv_of) have no row.

local graph = require "gen.graph"

local kv = {}

kv.PAGE_TOKENS = 64

-- In the order of the binary's options: what a CPU family has, and what a CUDA family has.
kv.dtypes = { "bf16", "f32", "fp8", "nvfp4" }

-- Bytes of d values of one head and token. nvfp4: two values a byte, and an e4m3 scale for 16.
local bytes_of = {
  f32 = function(d) return 4 * d end,
  bf16 = function(d) return 2 * d end,
  fp8 = function(d) return d end,
  nvfp4 = function(d) return d // 2 + d // 16 end,
}

-- Keys and values of one head of one token.
local function token_bytes(d_key, d_value, dtype)
  return bytes_of[dtype](d_key) + bytes_of[dtype](d_value)
end

-- Keys and values of one head in a page.
function kv.head_bytes(d_key, d_value, dtype)
  return token_bytes(d_key, d_value, dtype) * kv.PAGE_TOKENS
end

-- Calls f(section, op, state) for each state that an operation of a program's layers takes.
local function each_use(program, f)
  for _, item in ipairs(program.ops) do
    for _, section in ipairs(item.sections or {}) do
      for _, op in ipairs(section.ops) do
        for _, input in ipairs(op.inputs) do
          if input.tensor.state then f(section, op, input.tensor) end
        end
      end
    end
  end
end

local function row_of(state, section, layer, dtype, program)
  local row = {
    name = state.state == "kv" and "kv" or state.role, group = section.group, layer = layer,
    program = program, n_readers = 0, n_heads = 0, d_key = 0, d_value = 0, window = 0,
    bytes_per_token = 0, bytes_per_sequence = 0, bytes_per_draft = 0, page_bytes = 0,
  }
  if state.state == "kv" then
    local bytes = state.n_heads * token_bytes(state.d_key, state.d_value, dtype)
    row.n_heads, row.d_key, row.d_value = state.n_heads, state.d_key, state.d_value
    row.window = state.window or 0
    row.state = row.window > 0 and "ring" or "paged"
    if row.state == "ring" then
      row.bytes_per_sequence, row.bytes_per_draft = bytes * row.window, bytes
    else
      row.bytes_per_token, row.page_bytes = bytes, bytes * kv.PAGE_TOKENS
    end
  else
    row.state = "fixed"
    row.bytes_per_sequence = graph.elements(state.shape):value() * graph.dtype_bytes[state.dtype]
    row.bytes_per_draft = state.per_draft and row.bytes_per_sequence or 0
  end
  return row
end

-- { dtype, page_bytes, slot_bytes, bytes_per_token, bytes_per_sequence, bytes_per_draft,
--   rows = { ... }, of_group = { [group] = { [layer] = paged or ring row } } }. The sums are step's.
-- On a CPU, which drafts nothing, a sequence's rings and fixed states lie in one slot.
local function layout(model, dtype)
  local rows, of_group, of_state, place = {}, {}, {}, {}
  for i, group in ipairs(model.groups) do of_group[group], place[group] = {}, i end
  for index, program in ipairs(model.programs) do
    each_use(program, function(section, op, state)
      if not op.def.state or state.owner then return end
      of_state[state] = of_state[state] or {}
      for _, layer in ipairs(section.layers) do
        if not of_state[state][layer] then
          local row = row_of(state, section, layer, dtype, index)
          of_state[state][layer] = row
          rows[#rows + 1] = row
          if state.state == "kv" then of_group[section.group][layer] = row end
        end
      end
    end)
    local counted = {} -- a layer reads a state once, whatever reads it there
    each_use(program, function(section, op, state)
      if op.def.state == "kv" then return end
      for _, layer in ipairs(section.layers) do
        local row = state.owner and of_group[section.group][state.owner_of[layer]]
          or (of_state[state] or {})[layer]
        local key = row and ("%s %s"):format(tostring(row), layer)
        if row and not counted[key] then
          counted[key], row.n_readers = true, row.n_readers + 1
        end
      end
    end)
  end
  table.sort(rows, function(a, b)
    if a.program ~= b.program then return a.program < b.program end
    if a.group ~= b.group then return place[a.group] < place[b.group] end
    if a.layer ~= b.layer then return a.layer < b.layer end
    return a.name < b.name
  end)
  local out = {
    dtype = dtype, rows = rows, of_group = of_group, page_bytes = 0, bytes_per_token = 0,
    slot_bytes = 0, bytes_per_sequence = 0, bytes_per_draft = 0,
  }
  local offset, in_slot = 0, 0
  for _, row in ipairs(rows) do
    row.page_offset, offset = offset, offset + row.page_bytes
    row.slot_offset, in_slot = in_slot, in_slot + row.bytes_per_sequence
    if row.program == 1 then
      out.page_bytes, out.slot_bytes = offset, in_slot
      out.bytes_per_token = out.bytes_per_token + row.bytes_per_token
      out.bytes_per_sequence = out.bytes_per_sequence + row.bytes_per_sequence
      out.bytes_per_draft = out.bytes_per_draft + row.bytes_per_draft
    end
  end
  return out
end

-- The layer whose cache a layer of this section reads: its own, or nn.kv_of's.
function kv.owner(section, layer)
  for _, op in ipairs(section.ops) do
    for _, input in ipairs(op.inputs) do
      local state = input.tensor
      if state.state == "kv" and state.owner then
        return state.owner_of[layer]
      end
    end
  end
  return layer
end

function kv.layouts(model)
  local layouts = {}
  for _, dtype in ipairs(kv.dtypes) do layouts[dtype] = layout(model, dtype) end
  return layouts
end

return kv
