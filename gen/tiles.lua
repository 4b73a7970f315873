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

-- x (rows, k) times one weight (n, k), or two whose tiles lie in turn. `template` is made for
-- int8 and bf16 rows; where they are floats its sibling *_f32.c takes its place. Returns that
-- template, the end of the kernel's name, the kernels it calls, and what it is given.
function tiles.kernel(node, family, template, n_weights)
  local k = size.of(node.inputs.weight.dims[2]):value()
  local k_name = node.dim_name(k, "d_model")
  local format = require("gen.formats." .. node.inputs.weight.format)
  local act = require("gen.formats.act_" .. node.inputs.x.act)
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
    template = template:gsub("%.c$", "_f32.c")
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
    params.rows, params.strip, params.strip_bytes = F32_ROWS, STRIP, format.tile_bytes(STRIP)
  else
    sums.name = "sums_" .. format.name .. (row_act == format.act.default and "" or "_" .. row_act)
      .. "_" .. k_name:lower()
    params.rows = math.max(32, math.min(128, L2_SHARE // act.row_bytes(k) // 8 * 8))
    params.x_stride = row_act == "q8" and act.row_bytes(k) or k_name
    sums.params.x_stride = row_act == "q8" and act.row_bytes(k) // act.planes or k_name
  end
  params.sums_of = sums.name
  return template, tail, needs, params
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

-- Floats are multiplied strip by strip, with their sums in scratch; int8 and bf16 need none.
function tiles.takes_scratch(node) return node.inputs.x.act == "f32" end

-- Bytes of scratch a thread: sums of a part's rows, and a strip of a tile as floats.
function tiles.scratch(node, n_weights)
  if not tiles.takes_scratch(node) then return 0 end
  local panel = node.inputs.weight.format == "f32" and 0 or STRIP * 32 * 4
  return n_weights * F32_ROWS * 32 * 4 + panel
end

return tiles
