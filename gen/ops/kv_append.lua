-- gen/ops/kv_append.lua -- Keys and values of this step's tokens go into their pages, or into the
-- ring of their sequence. gen/ops/attention.lua has the layout.

local op = require "gen.op"
local size = require "gen.size"

local function value(x) return size.of(x):value() end

return op.define "kv_append" {
  inputs = { "kv", "k", "v" }, -- k, v (tokens, n_kv_heads * d_head)
  internal = true,
  takes = { kv = "kv" },
  strided = { "k", "v" },
  partition = "rows",
  state = "kv",
  reads = { "positions", "sequence_of", "page_table" },

  shape = function(kv, k, v)
    local width = value(kv.n_heads) * value(kv.d_key)
    op.check(value(k[#k]) == width and value(v[#v]) == width,
      "k and v must be (tokens, %d), got %s and %s", width, op.shape_text(k), op.shape_text(v))
    return k
  end,

  bytes = function(kv, k, v) return k.bytes + v.bytes + kv.bytes_per_token end,

  kernel = function(node)
    local kv, dtype = node.inputs.kv, node.kv_dtype
    local d, n_kv_heads = value(kv.d_key), value(kv.n_heads)
    if kv.window > 0 then
      return {
        template = "cpu/kv_append_ring.c",
        name = ("kv_append_ring_%s_%dx%dx%d"):format(dtype, kv.window, n_kv_heads, d),
        params = {
          d = d, n_kv_heads = n_kv_heads, kv = dtype, window = kv.window, slot_bytes = kv.slot_bytes,
        },
        args = {
          "ring", "state_of", "k", "k_stride", "v", "v_stride", "positions", "sequence_of",
          "sequence_begin", "n_tokens",
        },
      }
    end
    return {
      template = "cpu/kv_append.c",
      name = ("kv_append_%s_%dx%d"):format(dtype, n_kv_heads, d),
      params = {
        d = d, n_kv_heads = n_kv_heads, kv = dtype, page_bytes = kv.page_bytes,
        head_bytes = kv.head_bytes,
      },
      args = {
        "pages", "k", "k_stride", "v", "v_stride", "positions", "sequence_of", "page_table",
        "max_pages", "n_tokens",
      },
    }
  end,

  cuda = function(node)
    local kv = node.inputs.kv
    local d, n_kv_heads = value(kv.d_key), value(kv.n_heads)
    if node.kv_dtype ~= "bf16" then return { kernels = 1 } end
    if kv.window > 0 then
      return { launches = { {
        template = "cuda/kv_append_ring.cu",
        name = ("kv_append_ring_%dx%dx%d"):format(kv.window, n_kv_heads, d),
        params = { d = d, n_kv_heads = n_kv_heads, window = kv.window, slot_bytes = kv.slot_bytes },
        args = {
          "ring", "state_of", "k", "k_stride", "v", "v_stride", "positions", "sequence_of",
          "sequence_begin", "n_tokens",
        },
        blocks = { "n_tokens" }, threads = 128,
      } } }
    end
    return { launches = { {
      template = "cuda/kv_append.cu",
      name = ("kv_append_%dx%d"):format(n_kv_heads, d),
      params = {
        d = d, n_kv_heads = n_kv_heads, page_bytes = kv.page_bytes, head_bytes = kv.head_bytes,
      },
      args = {
        "pages", "k", "k_stride", "v", "v_stride", "positions", "sequence_of", "page_table",
        "max_pages", "n_tokens",
      },
      blocks = { "(n_tokens + 7) / 8", tostring(n_kv_heads) }, threads = 128,
    } } }
  end,

  -- One token's keys and values, at the end of its sequence's.
  reference = function(keys, values, k, v)
    keys[#keys + 1], values[#values + 1] = k, v
  end,
}
