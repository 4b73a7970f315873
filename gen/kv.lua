-- gen/kv.lua -- Where keys and values of each layer lie in a page: kv_layout's rows.
--
-- A page holds 64 tokens of every layer that has a cache of its own, group by group; layers that
-- read another one's (nn.kv_of) have no row.

local kv = {}

kv.PAGE_TOKENS = 64
local bytes_of = { f32 = 4, bf16 = 2 }

-- Keys and values of one head in a page.
function kv.head_bytes(d_key, d_value, dtype)
  return (d_key + d_value) * kv.PAGE_TOKENS * bytes_of[dtype]
end

local function reads(section, state)
  for _, op in ipairs(section.ops) do
    for _, input in ipairs(op.inputs) do
      if input.tensor == state and not op.def.state then return true end
    end
  end
  return false
end

local function appends(section)
  for _, op in ipairs(section.ops) do
    if op.def.state == "kv" then
      for _, input in ipairs(op.inputs) do if input.tensor.state then return input.tensor end end
    end
  end
end

-- { dtype, page_bytes, bytes_per_token, rows = { { group, layer, state, n_heads, ... } },
--   of_group = { [group] = { [layer] = row } } }
local function layout(model, dtype)
  local rows, of_group, place = {}, {}, {}
  for i, group in ipairs(model.groups) do of_group[group], place[group] = {}, i end
  for _, program in ipairs(model.programs) do
    for _, item in ipairs(program.ops) do
      for _, section in ipairs(item.sections or {}) do
        local state, of_layer = appends(section), of_group[section.group]
        for _, layer in ipairs(state and section.layers or {}) do
          if not of_layer[layer] then
            of_layer[layer] = {
              state = "kv", group = section.group, layer = layer,
              n_readers = reads(section, state) and 1 or 0,
              n_heads = state.n_heads, d_key = state.d_key, d_value = state.d_value,
              window = state.window or 0,
              page_bytes = state.n_heads * kv.head_bytes(state.d_key, state.d_value, dtype),
            }
            rows[#rows + 1] = of_layer[layer]
          end
        end
      end
    end
    for _, item in ipairs(program.ops) do
      for _, section in ipairs(item.sections or {}) do
        for _, layer in ipairs(section.layers) do
          local owner = kv.owner(section, layer)
          local row = of_group[section.group][owner]
          if owner ~= layer and row then row.n_readers = row.n_readers + 1 end
        end
      end
    end
  end
  table.sort(rows, function(a, b)
    if a.group ~= b.group then return place[a.group] < place[b.group] end
    return a.layer < b.layer
  end)
  local offset = 0
  for _, row in ipairs(rows) do
    row.page_offset, row.bytes_per_token = offset, row.page_bytes // kv.PAGE_TOKENS
    offset = offset + row.page_bytes
  end
  return {
    dtype = dtype, rows = rows, of_group = of_group, page_bytes = offset,
    bytes_per_token = offset // kv.PAGE_TOKENS,
  }
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
  return { bf16 = layout(model, "bf16"), f32 = layout(model, "f32") }
end

return kv
