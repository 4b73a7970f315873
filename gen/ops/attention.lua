-- gen/ops/attention.lua -- y = softmax(q . keys * scale) values, causal by absolute position,
-- over the paged cache. Query heads share KV heads in groups of adjacent ones.
-- Vaswani et al. 2017, arXiv:1706.03762; Ainslie et al. 2023, arXiv:2305.13245 (groups);
-- Dao et al. 2022, arXiv:2205.14135 (one pass, online softmax).
--
-- The cache. A page holds 64 tokens of all layers. A layer's part is, for each KV head, its
-- keys and then its values, without padding:
--
--   bf16  keys    [d / 2][64 keys][2]    pairs along d: what is multiplied by one query
--         values  [64 / 2][d][2]         pairs along the keys
--   f32   keys    [d][64 keys]
--         values  [64 keys][d]
--
-- so that a vector of keys is one load, and two of f32 are a shift and a mask.
--
-- A ring (nn.kv { window = W }) holds position p at index p % W: for each KV head W tokens, each
-- its key and then its value. Keys and values of a block of 64 positions are laid out as above
-- in scratch, from the ring up to the step's first token and from there on from the step's own
-- rows, rounded as the ring's are: bits don't know which.
--
-- Arithmetic is f32 but for the default lowering on avx512 with a bf16 cache: there queries and
-- the softmax's weights are rounded to bf16 as well, for vdpbf16ps. SmolLM2's prefill of 512
-- tokens spends 64 ms in attention instead of 107, a token at 512 0.25 ms instead of 0.38 (one
-- core, Zen 4); its perplexity on the GPL moves by 0.05 %.

local op = require "gen.op"
local size = require "gen.size"

local SLOTS = 17        -- BURIN_N_SLOTS, runtime/cpu/attention.h
local PARTIALS = 256    -- of a row's keys that a GPU works on at once; a row has at most 16
local ROWS_AT_ONCE = 32 -- of a tile, beside one head's block in the L1 cache
local c_type = { f32 = "float", bf16 = "u16" }
local MAX_SPAN = 2048   -- tokens of a picture that see each other

local function value(x) return size.of(x):value() end

-- Heads, widths and how they are tiled, from a node.
local function shape_of(node)
  local kv, q = node.inputs.kv, node.inputs.q
  local d, n_kv_heads = value(kv.d_key), value(kv.n_heads)
  local d_q = value(q.dims[2])
  local group = d_q // d // n_kv_heads
  local tile_rows = 64 -- queries of a tile: a power of two, so that tiles end where blocks do
  while tile_rows > 1 and tile_rows * group > ROWS_AT_ONCE do tile_rows = tile_rows // 2 end
  local rows = tile_rows * group
  return {
    d = d, d_q = d_q, n_kv_heads = n_kv_heads, group = group, tile_rows = tile_rows,
    rows = rows, slot = (rows * (d + 2) + 15) // 16 * 16,
  }
end

-- Blocks of a part: a row sees so many keys before it and so many of its picture's behind it, and
-- all of them in 16 parts. A constant, so that where parts end depends on positions alone.
local function part_blocks(window, spans)
  local blocks, n = (window + (spans and MAX_SPAN or 0)) // 64 + 2, 2
  while blocks // n + 2 > 16 do n = n * 2 end
  return n
end

-- The kernel of a layer that sees a window.
local function look_through_window(kernel, node, s)
  local kv, params = node.inputs.kv, kernel.params
  local stage = {
    template = "cpu/attention_stage.c",
    name = ("stage_%s_%dx%d"):format(node.kv_dtype, kv.window, s.d),
    params = { d = s.d, kv = node.kv_dtype, window = kv.window },
  }
  table.insert(kernel.needs, stage)
  kernel.template = "cpu/attention_window.c"
  params.stage, params.window, params.spans = stage.name, kv.window, node.inputs.spans ~= nil
  params.part_blocks = part_blocks(kv.window, node.inputs.spans)
  params.slot_bytes, params.kv = kv.slot_bytes, node.kv_dtype
  params.ring_bytes = kv.window * kv.head_bytes // 64
  params.stage_at = (s.rows * s.d + 15) // 16 * 16 -- behind the queries
  params.page_bytes = nil
  kernel.args = {
    "y", "q", "q_stride", "ring", "state_of", "k", "k_stride", "v", "v_stride", "positions",
    "sequence_of", "sequence_begin", "n_tokens", "scratch", "scratch_stride",
  }
  if params.spans then table.insert(kernel.args, 13, "spans") end
end

-- Queries may be those of the rows whose logits are wanted, alone. The step's own k and v have a
-- row for each token.
local of_output = {
  positions = "output_positions", sequence_of = "output_sequence_of",
  sequence_begin = "output_begin", n_tokens = "n_outputs",
}
local function ask_for_outputs(kernel, window)
  for i, arg in ipairs(kernel.args) do kernel.args[i] = of_output[arg] or arg end
  if not window then return end
  kernel.name = kernel.name:gsub("^attention_window", "%0_outputs")
  table.move({ "sequence_begin", "positions" }, 1, 2, #kernel.args + 1, kernel.args)
end

-- ---- On a GPU ------------------------------------------------------------------------------
--
-- A block of four warps has a tile: some tokens of one sequence by some heads that share a KV head.
-- Few rows leave each part of their keys to a block of its own; more take their parts one by one.
-- Queries and weights are bf16 as keys and values are, sums are of the rounded weights: what is
-- lost in rounding them is lost on both sides of the fraction.

local FEW_ROWS = 16 -- with 16 parts each: PARTIALS

-- Rows are cut so that a thread can keep its share of their results twice, 64 floats each time.
local function tile_of(d, group, most)
  local tiles, heads, tokens = most, group, 1
  while tiles * ((d + 63) // 64) > 8 do tiles = tiles // 2 end
  while group % heads ~= 0 or heads > 16 * tiles do heads = heads - 1 end
  while 2 * tokens * heads <= 16 * tiles and tokens < 64 do tokens = tokens * 2 end
  return { tiles = (tokens * heads + 15) // 16, heads = heads, tokens = tokens }
end

-- What all launches of a node are made from.
local function gpu_face(node)
  local inputs, s = node.inputs, shape_of(node)
  local outputs, window = inputs.q.dims[1] == "outputs", inputs.kv.window
  return {
    d = s.d, d_q = node.dim_name(s.d_q), group = s.group, n_heads = s.n_kv_heads * s.group,
    n_kv_heads = s.n_kv_heads, window = window, spans = inputs.spans ~= nil, outputs = outputs,
    count = outputs and "n_outputs" or "n_tokens", y = c_type[node.y.dtype], kv = inputs.kv,
    part_blocks = part_blocks(window, inputs.spans),
    scale = (node.attrs.scale or 1 / math.sqrt(s.d)) * math.log(math.exp(1), 2),
    -- what kernels' names say of it
    kind = (window > 0 and "_window_" .. window or "") .. (inputs.spans and "_spans" or ""),
    tail = ("%dx%dx%d_%s"):format(s.n_kv_heads * s.group, s.n_kv_heads, s.d, node.y.dtype),
  }
end

local common = { template = "cuda/attention_tile.cu", name = "attention_tile", params = {} }

-- The kernel that takes tiles: all parts of their keys, or one of them.
local function tiles_kernel(face, split)
  local kv, window = face.kv, face.window
  local tile = tile_of(face.d, face.group, split and 1 or 4)
  local size_tail = ("%dx%dx%d"):format(tile.tiles, tile.heads, face.d)
  local part = {
    template = "cuda/attention_part.cu", name = "attention_part_" .. size_tail,
    params = { d = face.d, tiles = tile.tiles, heads = tile.heads, scale = face.scale },
  }
  local attend = {
    template = window > 0 and "cuda/attention_rows.cu" or "cuda/attention_pages.cu",
    name = ("attend_%s_%s"):format(window > 0 and window or "pages", size_tail),
    params = {
      part = part.name, d = face.d, tiles = tile.tiles, window = window,
      ahead = split and (face.d + 15) // 16 or 8, -- a thread that keeps two results has no more room
    },
    needs = { part },
  }
  local outputs = face.outputs and window > 0 -- in pages they are rows as others are
  return {
    template = "cuda/attention.cu",
    name = ("attention%s%s_%s%s"):format(face.kind, outputs and "_outputs" or "", face.tail,
      split and "_parts" or ""),
    needs = { common, attend },
    params = {
      part = part.name, attend = attend.name, d = face.d, d_q = face.d_q, n_heads = face.n_heads,
      group = face.group, heads = tile.heads, tiles = tile.tiles, tile_tokens = tile.tokens,
      y = face.y, split = split, window = window, page_bytes = kv.page_bytes,
      head_bytes = kv.head_bytes, slot_bytes = kv.slot_bytes, ring_bytes = window * kv.head_bytes // 64,
      part_blocks = face.part_blocks, spans = face.spans, outputs = outputs,
    },
    blocks = {
      ("%s / %d + 2 * n_sequences"):format(face.count, tile.tokens),
      tostring(face.n_heads // tile.heads), split and "16" or nil,
    },
    threads = 128,
  }
end

-- Few rows' parts are merged by a kernel of their own; of many rows there is nothing left to do.
local function merge_kernel(face)
  local args = { "y", "scratch", face.outputs and "output_positions" or "positions", face.count }
  if face.spans then table.insert(args, 4, "spans") end
  return {
    template = "cuda/attention_merged.cu",
    name = ("attention_merged%s_%s"):format(face.spans and "_spans" or "", face.y),
    params = { y = face.y, spans = face.spans },
    args = args, blocks = { "1" }, threads = 32,
    few = {
      rows = FEW_ROWS, by = face.count, template = "cuda/attention_merge.cu",
      name = ("attention_merge%s_%s"):format(face.kind, face.tail), needs = { common },
      params = {
        d = face.d, d_q = face.d_q, n_heads = face.n_heads, y = face.y, window = face.window,
        spans = face.spans, part_blocks = face.part_blocks,
      },
      blocks = { face.count, tostring(face.n_heads) }, threads = 128,
    },
  }
end

local function launches(node)
  local face = gpu_face(node)
  local args = { "y", "q", "q_stride", "pages", "positions", "sequence_begin", "page_table", "max_pages" }
  if face.window > 0 then
    args = {
      "y", "q", "q_stride", "ring", "state_of", "k", "k_stride", "v", "v_stride", "positions",
      "sequence_begin",
    }
  end
  if face.outputs then
    for i, arg in ipairs(args) do args[i] = of_output[arg] or arg end
    if face.window > 0 then table.move({ "positions", "sequence_begin" }, 1, 2, #args + 1, args) end
  end
  if face.spans then args[#args + 1] = "spans" end
  table.move({ "n_sequences", face.count, "scratch" }, 1, 3, #args + 1, args)

  local whole, few = tiles_kernel(face, false), tiles_kernel(face, true)
  whole.args, whole.few, few.rows, few.by = args, few, FEW_ROWS, face.count
  return { whole, merge_kernel(face) }
end

return op.define "attention" {
  -- q (tokens, n_heads * d_head), or of the rows whose logits are wanted; and the cache that keys
  -- were put in. spans (tokens): one past the last position that a token sees, for those of a
  -- picture that see each other; else its own.
  -- A ring holds what was before the step: the step's own k and v are read where they were made
  -- (gen/nn/operations.lua adds them).
  inputs = { "q", "kv", "spans?", "k?", "v?" },
  attrs  = { scale = "number?" }, -- of the scores; 1 / sqrt(d_head) if left out
  takes = { kv = "kv", spans = "i32" },
  reads = { "positions", "sequence_of", "sequence_begin", "page_table" },
  strided = { "q", "k", "v" },
  out = { "f32", "bf16", "q8" },

  -- Threads write heads: a q8 group must not lie in two of them.
  writes = function(node, format)
    return format ~= "q8" or value(node.inputs.kv.d_key) % 32 == 0
  end,

  shape = function(q, kv, spans)
    local d_head, n_kv_heads = value(kv.d_key), value(kv.n_heads)
    local width = value(q[#q])
    op.check(value(kv.d_value) == d_head, "keys have %d, values %d dims: they must agree",
      d_head, value(kv.d_value))
    op.check(d_head % 8 == 0, "d_head must be a multiple of 8, got %d", d_head)
    op.check(width % (d_head * n_kv_heads) == 0,
      "q is %s: it must be a multiple of %d KV heads of %d", op.shape_text(q), n_kv_heads, d_head)
    op.check(not spans or #spans == 1 and spans[1] == q[1],
      "spans must be (%s), got %s", q[1], spans and op.shape_text(spans))
    return q
  end,

  -- Of few rows parts of the keys, at most PARTIALS of (row, part), and then their sum.
  cuda = function(node)
    local inputs, s = node.inputs, shape_of(node)
    local scratch = PARTIALS * s.n_kv_heads * s.group * (s.d + 2) * 4
    local rows = { inputs.q, inputs.k, inputs.v }
    local known = node.kv_dtype == "bf16" and (inputs.kv.window > 0 or not inputs.spans)
    for _, x in pairs(rows) do known = known and x.dtype == "bf16" end
    if not known then return { kernels = 2, scratch = scratch } end
    return { scratch = scratch, launches = launches(node) }
  end,

  hyperparameters = function(q, kv)
    local d_head = value(kv.d_key)
    return {
      n_heads = value(q[#q]) // d_head, n_kv_heads = value(kv.n_heads), d_head = d_head,
      window = kv.window or 0,
    }
  end,

  -- Queries and results once; keys and values from those of one token to those of all.
  bytes = function(q, kv, _, _, _, y)
    return { min = q.bytes + kv.bytes_per_token + y.bytes, max = q.bytes + kv.bytes + y.bytes }
  end,

  -- Partials of the pieces at both ends of a thread's share, a tile's queries, and with a window
  -- a block of keys and values. Who merges a tile reads what others have of it.
  shares_scratch = true,
  scratch = function(node)
    local s = shape_of(node)
    local block = node.inputs.kv.window > 0 and node.inputs.kv.head_bytes or 0
    return 4 * (SLOTS * s.slot + (s.rows * s.d + 15) // 16 * 16) + block
  end,

  kernel = function(node, family)
    local window = node.inputs.kv.window > 0
    if node.inputs.spans and not window then return nil end
    local s = shape_of(node)
    local of_outputs = node.inputs.q.dims[1] == "outputs"
    local out = node.out
    local tail = ("%s_%dx%dx%d"):format(node.kv_dtype, s.n_kv_heads * s.group, s.n_kv_heads, s.d)
    local kind = window and "_window" or ""
    local scale = node.attrs.scale or 1 / math.sqrt(s.d)
    local narrow = -- queries and weights in bf16
      family.cpu == "avx512" and not family.exact and node.kv_dtype == "bf16"
    local query = narrow and "uint16_t" or "float"
    local block = {
      template = ("cpu/attention_block_%s.c"):format(family.cpu), name = ("attend%s_%s"):format(kind, tail),
      params = { d = s.d, group = s.group, kv = node.kv_dtype, window = window },
    }
    if family.cpu == "avx512" then
      local products = {
        template = ("cpu/attention_products_avx512%s.c"):format(narrow and "_bf16" or ""),
        name = ("products%s_%s_%d"):format(window and "_windowed" or "", node.kv_dtype, s.d),
        params = { d = s.d, kv = node.kv_dtype, window = window },
      }
      block.needs = { products }
      block.params.query, block.params.products = query, products.name
    end
    local store = {
      template = "cpu/attention_store.c", name = ("attention%s_%s_%s_store"):format(kind, tail, out),
      params = { d = s.d, d_q = s.d_q, group = s.group, out = out },
    }
    local kernel = {
      template = "cpu/attention.c",
      name = ("attention%s_%s_%s"):format(kind, tail, out),
      needs = { block, store },
      params = {
        block = block.name, store = store.name, d = s.d, d_q = s.d_q, group = s.group,
        n_kv_heads = s.n_kv_heads, tile_rows = s.tile_rows, slot = s.slot, n_slots = SLOTS,
        head_bytes = node.inputs.kv.head_bytes, out = out, query = query,
        page_bytes = node.inputs.kv.page_bytes, scale = scale * math.log(math.exp(1), 2),
      },
      args = {
        "y", "q", "q_stride", "pages", "positions", "sequence_of", "sequence_begin",
        "page_table", "max_pages", "n_tokens", "scratch", "scratch_stride",
      },
    }
    if window then look_through_window(kernel, node, s) end
    if window then kernel.params.outputs = of_outputs end
    if of_outputs then ask_for_outputs(kernel, window) end
    return kernel
  end,

  -- One token: its query heads side by side, keys[j] and values[j] of positions 1 ... n,
  -- each with KV heads side by side.
  reference = function(y, q, keys, values, attrs)
    local d, n_kv_heads = attrs.d_head, attrs.n_kv_heads
    local group = #q // d // n_kv_heads
    local scale = attrs.scale or 1 / math.sqrt(d)
    for head = 0, #q // d - 1 do
      local kv = head // group * d
      local max, sum, score = -math.huge, 0, {}
      for j, key in ipairs(keys) do
        local dot = 0
        for i = 1, d do dot = dot + q[head * d + i] * key[kv + i] end
        score[j] = dot * scale
        max = math.max(max, score[j])
      end
      for j = 1, #keys do
        score[j] = math.exp(score[j] - max)
        sum = sum + score[j]
      end
      for i = 1, d do
        local acc = 0
        for j, v in ipairs(values) do acc = acc + score[j] * v[kv + i] end
        y[head * d + i] = acc / sum
      end
    end
  end,
}
