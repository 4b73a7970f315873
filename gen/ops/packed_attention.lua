-- gen/ops/packed_attention.lua -- y = softmax(q k' * scale) v among the rows of one item, in both
-- directions; items lie one behind the other and don't see each other.
-- Vaswani et al. 2017, arXiv:1706.03762; Dao et al. 2022, arXiv:2205.14135 (one pass)

local op = require "gen.op"
local kv = require "gen.kv"

local TILE_ROWS = 128 -- queries that share a block of keys once it is laid out

-- Heads, and where things lie in a thread's scratch: the tile's partial, its queries, a block of keys
-- and values.
local function shape_of(node, family)
  local d, n_heads = node.attrs.d_head, node.attrs.n_heads
  local narrow = family.cpu == "avx512" and not family.exact -- all is rounded to bf16, for vdpbf16ps
  local dtype = narrow and "bf16" or "f32"
  local queries_at = (TILE_ROWS * (d + 2) * 4 + 63) // 64 * 64
  local keys_at = queries_at + TILE_ROWS * d * (narrow and 2 or 4)
  local head_bytes = kv.head_bytes(d, d, dtype)
  return {
    d = d, n_heads = n_heads, dtype = dtype, query = narrow and "uint16_t" or "float",
    queries_at = queries_at, keys_at = keys_at, head_bytes = head_bytes, bytes = keys_at + head_bytes,
  }
end

return op.define "packed_attention" {
  -- q, k, v (rows, n_heads * d_head); item_begin: item i is rows item_begin[i] up to
  -- item_begin[i + 1], entries beyond the last item all rows there are.
  inputs = { "q", "k", "v", "item_begin" },
  attrs  = { d_head = "number?", scale = "number?" }, -- of the scores; 1 / sqrt(d_head) if left out
  takes = { item_begin = "i32" },
  strided = { "q", "k", "v" },
  gathers = { "k", "v" },
  out = { "f32", "bf16", "q8" },
  writes = function(node, format) return format ~= "q8" or node.attrs.d_head % 32 == 0 end,

  shape = function(q, k, v, item_begin, attrs)
    op.check(#q == 2 and op.same_shape(q, k) and op.same_shape(q, v),
      "q, k and v must have one shape, got %s, %s and %s", op.shape_text(q), op.shape_text(k),
      op.shape_text(v))
    op.check(#item_begin == 1, "item_begin must be (items + 1), got %s", op.shape_text(item_begin))
    local n_heads, d_head = op.heads(q[2], attrs.d_head)
    attrs.n_heads, attrs.d_head = n_heads, d_head
    return q
  end,

  -- Keys and values are read once for each tile of queries: from once to rows / tile times.
  bytes = function(q, k, v, item_begin, y)
    return q.bytes + k.bytes + v.bytes + item_begin.bytes + y.bytes
  end,

  scratch = function(node, family) return shape_of(node, family).bytes end,

  -- The parts of attention.lua's kernels: a tile's rows are "heads" of one token, which all see the
  -- same keys, and there is no ring.
  kernel = function(node, family)
    local s = shape_of(node, family)
    if s.d % 8 ~= 0 then return nil end
    local tail = ("%s_%dx%d"):format(s.dtype, s.n_heads, s.d)
    local block = {
      template = ("cpu/attention_block_%s.c"):format(family.cpu), name = "attend_item_" .. tail,
      params = { d = s.d, group = TILE_ROWS, kv = s.dtype, window = false },
    }
    if family.cpu == "avx512" then
      local products = {
        template = s.dtype == "bf16" and "cpu/attention_products_avx512_bf16.c"
          or "cpu/attention_products_avx512.c",
        name = ("products_%s_%d"):format(s.dtype, s.d),
        params = { d = s.d, kv = s.dtype, window = false },
      }
      block.needs = { products }
      block.params.query, block.params.products = s.query, products.name
    end
    local stage = {
      template = "cpu/attention_stage.c", name = ("stage_item_%s_%d"):format(s.dtype, s.d),
      params = { d = s.d, kv = s.dtype, window = 1 },
    }
    local d_q = node.dim_name(s.n_heads * s.d)
    local store = {
      template = "cpu/attention_store.c",
      name = ("attention_item_%s_%s_store"):format(tail, node.out),
      params = { d = s.d, d_q = d_q, group = 1, out = node.out },
    }
    return {
      template = "cpu/packed_attention.c",
      name = ("packed_attention_%s_%s"):format(tail, node.out),
      needs = { block, stage, store },
      params = {
        block = block.name, stage = stage.name, store = store.name, d = s.d, d_q = d_q,
        n_heads = s.n_heads, tile_rows = TILE_ROWS, queries_at = s.queries_at, keys_at = s.keys_at,
        head_bytes = s.head_bytes, out = node.out, query = s.query,
        scale = (node.attrs.scale or 1 / math.sqrt(s.d)) * math.log(math.exp(1), 2),
      },
      args = {
        "y", "q", "q_stride", "k", "k_stride", "v", "v_stride", "item_begin", "rows", "scratch",
      },
    }
  end,

  -- The parts of attention.lua's kernels, with one part for all keys: a block takes some rows and a
  -- head, and finds its items in item_begin.
  cuda = function(node)
    local d, n_heads = node.attrs.d_head, node.attrs.n_heads
    local known = d % 8 == 0 and d <= 512
    for _, name in ipairs { "q", "k", "v" } do known = known and node.inputs[name].dtype == "bf16" end
    if not known then return { kernels = 1 } end
    local tiles = 4 -- of 16 rows; a thread keeps 64 floats of their results
    while tiles * ((d + 63) // 64) > 8 do tiles = tiles // 2 end
    local tail = ("%dx1x%d"):format(tiles, d)
    local part = {
      template = "cuda/attention_part.cu", name = "attention_part_" .. tail,
      params = {
        d = d, tiles = tiles, heads = 1,
        scale = (node.attrs.scale or 1 / math.sqrt(d)) * math.log(math.exp(1), 2),
      },
    }
    local attend = {
      template = "cuda/attention_rows.cu", name = "attend_item_" .. tail,
      params = { part = part.name, d = d, tiles = tiles, window = 0, ahead = 8 }, needs = { part },
    }
    local y = node.y.dtype
    return { launches = { {
      template = "cuda/packed_attention.cu",
      name = ("packed_attention_%dx%d_%s"):format(n_heads, d, y),
      needs = { { template = "cuda/attention_tile.cu", name = "attention_tile", params = {} }, attend },
      params = {
        part = part.name, attend = attend.name, d = d, d_q = node.dim_name(n_heads * d), tiles = tiles,
        y = y == "bf16" and "u16" or "float",
      },
      args = { "y", "q", "q_stride", "k", "k_stride", "v", "v_stride", "item_begin", "rows" },
      blocks = { ("(n_rows + %d) / %d"):format(16 * tiles - 1, 16 * tiles), tostring(n_heads) },
      threads = 128,
    } } }
  end,

  -- One head of one query; keys[j] and values[j] are its item's.
  reference = function(y, q, keys, values, attrs)
    local scale = attrs.scale or 1 / math.sqrt(#q)
    local max, sum, score = -math.huge, 0, {}
    for j, key in ipairs(keys) do
      local dot = 0
      for i = 1, #q do dot = dot + q[i] * key[i] end
      score[j] = dot * scale
      max = math.max(max, score[j])
    end
    for j = 1, #keys do
      score[j] = math.exp(score[j] - max)
      sum = sum + score[j]
    end
    for i = 1, #q do
      local acc = 0
      for j, value in ipairs(values) do acc = acc + score[j] * value[i] end
      y[i] = acc / sum
    end
  end,
}
