-- gen/tiles.lua -- Tiles of 32 rows of a weight: what packs and gathers them, and what linear and
-- linear_glu share, the kernel that multiplies rows by one tile, for each format of weights and of
-- activations, and how much of rows and tiles stays in a cache.

local size = require "gen.size"

local tiles = {}

tiles.ROWS = 32 -- BURIN_TILE_ROWS, runtime/model.h

local L2_SHARE = 256 * 1024 -- of a core's 1 MiB, for rows that many tiles meet
local CHUNK = 256 * 1024    -- of weights that a thread reads in one go
local STRIP = 128           -- columns of a tile as floats: 16 KiB, half of the L1 cache
local F32_ROWS = 128        -- in f32 the sums of this many rows lie in scratch

-- What any product of rows with tiles is made of: the end of its name, the kernels it calls, and
-- what it is given. `act` is the format of the rows, whoever makes them.
local function product(node, family, act, n_weights)
  local weight = node.inputs.weight
  local k = size.of(weight.dims[#weight.dims]):value()
  local k_name = node.dim_name(k, "d_model")
  local format = require("gen.formats." .. weight.format)
  local tail = format.name .. (act.name == format.act.default and "" or "_" .. act.name)
    .. "_" .. k_name:lower()
  local row_act = act.planes == 2 and "q8" or act.name -- what a tile's kernel sees
  local params = {
    k = k_name, x = act, tile_bytes = format.tile_bytes(k),
    chunk = math.max(1, CHUNK // (format.tile_bytes(k) * n_weights)),
  }
  local sums = {
    template = ("cpu/linear_%s_%s.c"):format(row_act, family.cpu),
    params = { k = k_name, k_value = k, weight = format },
  }
  local needs = { sums }
  if act.name == "f32" then
    sums.name = "sums_f32_" .. k_name:lower()
    sums.params.weight = nil -- one kernel for the floats of all formats
    params.widen = false
    if format.name ~= "f32" then
      params.widen = "widen_" .. format.name
      needs[2] = {
        template = ("cpu/linear_widen_%s.c"):format(family.cpu), name = params.widen,
        params = { weight = format },
      }
    end
    params.strip, params.strip_bytes = STRIP, format.tile_bytes(STRIP)
    params.x_stride = k_name
  else
    sums.name = "sums_" .. format.name .. (row_act == format.act.default and "" or "_" .. row_act)
      .. "_" .. k_name:lower()
    params.x_stride = row_act == "q8" and act.row_bytes(k) or k_name
    sums.params.x_stride = row_act == "q8" and act.row_bytes(k) // act.planes or k_name
  end
  params.sums_of = sums.name
  return tail, needs, params
end

-- Rows that stay in the L2 cache from tile to tile.
local function part_rows(act, k, least)
  return math.max(least, math.min(128, L2_SHARE // act.row_bytes(k) // 8 * 8))
end

-- x (rows, k) times one weight (n, k), or two whose tiles lie in turn. `template` is made for
-- int8 and bf16 rows; where they are floats its sibling *_f32.c takes its place. Returns that
-- template, the end of the kernel's name, the kernels it calls, and what it is given.
function tiles.kernel(node, family, template, n_weights)
  local act = require("gen.formats.act_" .. node.inputs.x.act)
  local tail, needs, params = product(node, family, act, n_weights)
  if act.name == "f32" then
    template, params.rows = template:gsub("%.c$", "_f32.c"), F32_ROWS
  else
    params.rows = part_rows(act, size.of(node.inputs.weight.dims[2]):value(), 32)
  end
  return template, tail, needs, params
end

-- ---- Rows that a thread makes itself ------------------------------------------------------

-- Where rows of x lie here and there (an expert's), or aren't what is to be multiplied (they are
-- clipped, or bytes), a thread makes a part of them in its scratch. There lie: the part's sums (of
-- one or two weights), floats of a strip of a tile, and the rows made.
local function made(node, act_name, n_weights)
  local act = require("gen.formats.act_" .. act_name)
  local dims, format = node.inputs.weight.dims, node.inputs.weight.format
  local k = size.of(dims[#dims]):value()
  local rows = part_rows(act, k, 8)
  local panel_at = n_weights * rows * 32 * 4
  local made_at = panel_at + (act_name == "f32" and format ~= "f32" and STRIP * 32 * 4 or 0)
  return {
    act = act, rows = rows, panel_at = panel_at, made_at = made_at,
    bytes = made_at + rows * act.row_bytes(k),
  }
end

-- For rows in the format `act_name`: the end of the kernel's name, what multiplies a part by a tile
-- (for its `needs`), and what it is given.
function tiles.made(node, family, act_name, n_weights)
  local scratch = made(node, act_name, n_weights)
  local tail, needs, params = product(node, family, scratch.act, n_weights)
  params.rows, params.panel_at, params.made_at = scratch.rows, scratch.panel_at, scratch.made_at
  params.widen = params.widen or false
  params.part_of = "part_" .. tail
  return tail, {
    template = "cpu/linear_part.c", name = params.part_of, needs = needs,
    params = {
      k = params.k, sums_of = params.sums_of, widen = params.widen, x = params.x,
      x_stride = params.x_stride, strip = params.strip, strip_bytes = params.strip_bytes,
    },
  }, params
end

function tiles.made_scratch(node, act_name, n_weights) return made(node, act_name, n_weights).bytes end

-- A product of each choice's row with its expert's matrix, or two matrices. options: x (the input's
-- name), slots (choices that share a row of it), activation (of the first matrix's result).
function tiles.experts(node, family, options)
  local activation = options.activation
  local x, weight = node.inputs[options.x], node.inputs.weight
  local tail, part, params = tiles.made(node, family, x.act, activation and 2 or 1)
  local gather = {
    template = "cpu/rows_gathered.c",
    params = {
      x = params.x, x_stride = params.x_stride,
      slots = options.slots == 1 and 1 or node.dim_name(options.slots, "n_active_experts"),
    },
  }
  gather.name = ("gather_%d_%s_%s"):format(options.slots, x.act, params.k:lower())
  params.gather, params.slots = gather.name, gather.params.slots
  params.n = node.dim_name(weight.dims[1], "n_experts")
  params.y = require("gen.formats.act_" .. node.out)
  params.times = activation ~= nil
    and ("burin_%s_mul%s"):format(activation, family.cpu == "avx512" and "_x16" or "")
  local n = size.of(weight.dims[2]):value() // (activation and 2 or 1)
  return {
    template = "cpu/experts.c",
    name = activation and ("experts_%s_%s_%s"):format(activation, tail, node.out)
      or "experts_down_" .. tail,
    needs = { part, gather }, params = params,
    args = { "y", options.x, "weight", "rows", "begin", node.dim_name(n), "scratch" },
  }
end

-- The format in which a weight's rows are made, where no pass has said so.
function tiles.row_format(node, family)
  local act = require("gen.formats." .. node.inputs.weight.format).act
  return act[family.exact and "exact" or "default"]
end

-- What packs up to 32 rows of a file into a tile.
function tiles.pack(format)
  return { template = format.pack, name = "pack_" .. format.name, params = { weight = format } }
end

-- What reads one row of a tile; `k` is its columns as C spells them.
function tiles.gather(format, k)
  return {
    template = format.gather, name = ("gather_%s_%s"):format(format.name, tostring(k):lower()),
    params = { k = k, weight = format },
  }
end

-- Loads of several words.
function tiles.cuda_words() return { template = "cuda/words.cu", name = "words", params = {} } end

-- What reads a tile on a GPU, by its name: NAME_at(tile, row, column) one element, and what
-- gen/cuda_tiles.lua says. Only float formats may have a k that is no multiple of 32.
function tiles.cuda_weight(format, k)
  local whole = k % 32 == 0
  return {
    template = format.cuda.template, needs = { tiles.cuda_words() },
    name = "weight_" .. format.name .. (whole and "" or "_" .. k),
    params = { weight = format, k = whole and 32 or k },
  }
end

-- Floats are multiplied strip by strip, with their sums in scratch; int8 and bf16 need none.
function tiles.takes_scratch(node) return node.inputs.x.act == "f32" end

-- Bytes of scratch a thread: sums of a part's rows, and a strip of a tile as floats.
function tiles.scratch(node, n_weights)
  if not tiles.takes_scratch(node) then return 0 end
  local panel = node.inputs.weight.format == "f32" and 0 or STRIP * 32 * 4
  return n_weights * F32_ROWS * 32 * 4 + panel
end

return tiles
