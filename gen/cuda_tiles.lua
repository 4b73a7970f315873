-- gen/cuda_tiles.lua -- Products of rows with tiles of weights on a GPU: what the launches of linear,
-- linear_glu, clipped_linear, patch_embed and the experts' products are made of.
--
-- The tensor cores' product takes 16 rows of weights, 16 columns and 8 rows of x at a time. A warp
-- has a tile, 32 rows of weights, and goes along it in steps of 32 columns: four products. Which
-- row and which column an index of the product means is free, so long as weights and rows of x
-- agree, so lanes have what they can load in whole words, from every format's tile: with g = lane / 4
-- and t = lane % 4, a lane has
--
--   of the weights     rows 4 g ... 4 g + 3 of columns 4 t ... 4 t + 3 and 16 + 4 t ... 16 + 4 t + 3
--   of the rows of x   row g, the same columns
--   of the results     outputs 4 g ... 4 g + 3 of rows 2 t and 2 t + 1
--
-- NAME_load(words, tile, step, lane) of a format reads them as they lie, NAME_pairs(a, words) makes
-- pairs of columns as bf16 of them: a[half][part] is operand A of rows 4 g + 2 half and the next, and
-- of columns 16 part + 4 t up to + 3. Columns of a last step behind k are zeros in both operands.
--
-- Bits. Columns are cut into at most 16 segments, of an even number of steps that depends on k alone.
-- A segment is summed from zero, step by step; segments are added in order, from zero. Kernels for few
-- rows and for many do the same, so a row's bits depend on nothing but the row and the weights.

--
-- Under --fast-gemm plain products of many rows may be cuBLASLt's, which reads no tiles: a kernel
-- unpacks the matrix into scratch, as bf16 and row by row, and runtime/device/cuda/multiply.c has it
-- multiplied from there. Neither is planned where the option isn't given.

local size = require "gen.size"
local tiles = require "gen.tiles"

local cuda_tiles = {}

local MOST_SEGMENTS = 16
local THREADS = 128 -- of a block for many rows: four warps, a tile each
local FEW = 32      -- rows up to which a block has eight of them: more blocks, each quicker

local FAST_MOST = 512 << 20     -- bytes of an unpacked matrix: larger ones keep our kernels
local FAST_WORKSPACE = 32 << 20 -- of cuBLASLt's own, as NVIDIA recommends for Hopper and later
local FAST_ALIGN = 256          -- bytes: both may begin so much later

local types = { bf16 = "u16", f32 = "float", u8 = "u8" }

-- Steps of k columns, and of a segment.
function cuda_tiles.steps(k)
  local steps = (k + 31) // 32
  local segment = (steps + MOST_SEGMENTS - 1) // MOST_SEGMENTS
  return steps, (segment + 1) // 2 * 2
end

-- What the kernels of a node share. options: x (the input's name), clips, pixels, activation.
local function product(node, options)
  local weight, x = node.inputs.weight, node.inputs[options.x]
  local format = require("gen.formats." .. weight.format)
  local k = size.of(weight.dims[#weight.dims]):value()
  if not format.cuda or k % 4 ~= 0 then return nil end
  local k_name = node.dim_name(k, "d_model")
  local steps, segment = cuda_tiles.steps(k)
  local matrices = options.activation and 2 or 1
  local from = types[x.dtype]
  local tile = tiles.cuda_weight(format, k)
  local rows = {
    template = "cuda/row_pairs.cu", needs = { tiles.cuda_words() },
    name = ("%s_%s_%s"):format(options.clips and "clipped" or "pairs", x.dtype, k_name:lower()),
    params = { k_value = k, from = from, clips = options.clips or false },
  }
  local tail = ("%s_%s"):format(format.name, k_name:lower())
  local params = {
    k = k_name, steps = steps, segment = segment, matrices = matrices,
    octets = (matrices == 2 or options.pixels) and 4 or 8, threads = THREADS,
    tile_bytes = format.tile_bytes(k), weight = tile.name, words = format.cuda.words,
    rows = rows.name, from = from, clips = options.clips or false,
    sums_weights = options.pixels or false,
  }
  local needs = { tile, rows }
  local unpack = {
    template = "cuda/unpack.cu", name = "unpack_" .. tail, needs = { tile }, threads = 128,
    blocks = { tostring((steps + 3) // 4), "(n_out + 31) / 32" }, fast_gemm = true,
    params = {
      k = k_name, steps = steps, tile_bytes = params.tile_bytes, weight = tile.name,
      words = params.words, format = format.name,
    },
  }
  local kind = options.activation and "_glu" or options.clips and "_clipped"
    or options.pixels and "_pixels" or ""
  return {
    tail = tail, unpack = unpack, segments = (steps + segment - 1) // segment, params = params,
    many = {
      template = "cuda/product.cu", name = "product" .. kind .. "_" .. tail, needs = needs,
      params = params,
    },
    few = {
      template = "cuda/product_few.cu", name = "segment" .. kind .. "_" .. tail, needs = needs,
      params = params,
    },
  }
end

-- What applies gate's function, and multiplies by up.
local function gated(activation)
  return {
    template = "cuda/gated.cu", name = "gated_" .. activation, params = { activation = activation },
  }
end

-- Bytes that cuBLASLt needs for a product, and what launches it, where it may have it: whole rows of
-- bf16 whose addresses it can read 16 bytes at a time. Rows of logits are few.
local function fast(node, p, options)
  local weight, x = node.inputs.weight, node.inputs[options.x]
  local n, k = size.of(weight.dims[1]):value(), size.of(weight.dims[2]):value()
  local bytes = n * k * 2
  if not options.plain or x.dtype ~= "bf16" or x.dims[1] == "outputs" or n % 8 ~= 0 or k % 8 ~= 0
    or bytes > FAST_MOST then
    return nil
  end
  bytes = (bytes + FAST_ALIGN - 1) // FAST_ALIGN * FAST_ALIGN
  return bytes + FAST_WORKSPACE + FAST_ALIGN, {
    unpack = p.unpack, k = p.params.k, y_dtype = node.y.dtype, adds = options.adds or false,
  }
end

-- Names of kernels tell what their results are, where these aren't bf16.
local function suffix(node) return node.y.dtype == "bf16" and "" or "_" .. node.y.dtype end

-- The launch of x times weight. options: op, x (the input's name), text (what it computes), args (with
-- "n_out=..."), name (the kernel's, up to format and k); strided, adds, clips, activation; pixels =
-- { scale, shift, bias }; plain where cuBLASLt can compute it.
function cuda_tiles.linear(node, options)
  local p = product(node, options)
  if not p then return { kernels = 1 } end
  local pixels = options.pixels
  local gate = options.activation and gated(options.activation)
  local params = {
    k = p.params.k, matrices = p.params.matrices, octets = p.params.octets, threads = THREADS,
    segments = p.segments, parts = p.params.matrices + (pixels and 1 or 0),
    tile_bytes = p.params.tile_bytes, y = types[node.y.dtype], from = p.params.from,
    op = options.op, text = options.text, strided = options.strided or false,
    adds = options.adds or false, gated = gate and gate.name or false,
    clips = options.clips or false, pixels = pixels and true or false,
    bias = pixels and pixels.bias or false, scale = pixels and pixels.scale or 1,
    shift = pixels and pixels.shift or 0, product = p.many.name,
  }
  local few = {}
  for key, value in pairs(params) do few[key] = value end
  few.product = p.few.name
  local name = options.name .. "_" .. p.tail .. suffix(node)
  local fast_scratch, fast_product = fast(node, p, options)
  return {
    fast_scratch = fast_scratch,
    launches = { {
      fast = fast_product,
      template = "cuda/linear.cu", name = name, params = params, needs = { p.many, gate },
      args = options.args, threads = THREADS,
      blocks = {
        ("(n_rows + %d) / %d"):format(params.octets * 8 - 1, params.octets * 8),
        ("(n_out + %d) / %d"):format(THREADS - 1, THREADS),
      },
      few = {
        rows = FEW, template = "cuda/linear_few.cu", name = name .. "_few", params = few,
        needs = { p.few, gate }, threads = p.segments * 32,
        blocks = { "(n_rows + 7) / 8", "(n_out + 31) / 32" },
      },
    } },
  }
end

-- The launch of each choice's row times its expert's matrix, or two. options: op, x, name, text,
-- args, n_tokens (an arg), choices (of a token), slots (that share a row of x), n_experts, activation.
-- A part is up to so many of an expert's choices; how many parts there are only `begin` knows, but
-- there are no more than choices, nor than whole parts and one begun for each expert.
function cuda_tiles.experts(node, options)
  local p = product(node, options)
  if not p then return { kernels = 1 } end
  local gate = options.activation and gated(options.activation)
  local n_experts = node.dim_name(options.n_experts, "n_experts")
  local choices = ("%s * %d"):format(options.n_tokens, options.choices)
  local function blocks(outputs, rows)
    local bound = ("%s / %d + %s"):format(choices, rows, n_experts)
    return {
      ("(n_out + %d) / %d"):format(outputs - 1, outputs),
      ("%s < %s ? %s : %s"):format(choices, bound, choices, bound),
    }
  end
  local function find(rows)
    return {
      template = "cuda/expert_part.cu", name = ("expert_part_%d_%s"):format(rows, n_experts:lower()),
      params = { n = n_experts, rows = rows },
    }
  end
  local many, few = find(p.params.octets * 8), find(8)
  local function params(part, of)
    return {
      k = p.params.k, matrices = p.params.matrices, octets = p.params.octets, threads = THREADS,
      segments = p.segments, tile_bytes = p.params.tile_bytes, y = types[node.y.dtype],
      from = p.params.from, op = options.op, text = options.text, gated = gate and gate.name or false,
      slots = options.slots, find = part.name, product = of.name,
    }
  end
  local name = options.name .. "_" .. p.tail .. suffix(node)
  return {
    launches = { {
      template = "cuda/experts.cu", name = name, params = params(many, p.many),
      needs = { many, p.many, gate }, args = options.args, threads = THREADS,
      blocks = blocks(THREADS, p.params.octets * 8),
      few = {
        -- where an expert has fewer than 8 choices, if all have as many
        by = options.n_tokens, rows = math.max(8, options.n_experts * 8 // options.choices),
        template = "cuda/experts_few.cu", name = name .. "_few", params = params(few, p.few),
        needs = { few, p.few, gate }, threads = p.segments * 32, blocks = blocks(32, 8),
      },
    } },
  }
end

return cuda_tiles
