-- gen/tiles.lua -- What linear and linear_glu share: the kernel that multiplies rows by one
-- tile of 32 outputs, for each format of weights and of activations, and how much of the
-- rows stays in a cache.

local size = require "gen.size"

local tiles = {}

local function weight_format(name) return require("gen.formats." .. name) end
local function act_format(name) return require("gen.formats.act_" .. name) end

local L2_SHARE = 256 * 1024 -- of a core's 1 MiB, for rows that many tiles meet
local CHUNK = 256 * 1024    -- of weights that a thread reads in one go

-- x (rows, k) times one weight (n, k), or two whose tiles lie in turn. Returns the end of the
-- kernel's name, the kernels it calls, and what both templates are given.
function tiles.params(node, family, n_weights)
  local k = size.of(node.inputs.weight.dims[2]):value()
  local k_name = node.dim_name(k, "d_model")
  local format, act = weight_format(node.inputs.weight.format), act_format(node.inputs.x.act)
  local tail = format.name .. (act.name == format.act.default and "" or "_" .. act.name)
    .. "_" .. k_name:lower()

  local sums = {
    template = ("cpu/linear_%s_%s.c"):format(act.name, family.cpu),
    name = "sums_" .. tail,
    params = { k = k_name, k_value = k, weight = format },
  }
  if act.name == "f32" then sums.name = "sums_f32_" .. k_name:lower() end
  local needs, widen = { sums }, false
  if act.name == "f32" and format.name ~= "f32" then
    widen = "widen_" .. format.name .. "_" .. k_name:lower()
    needs[2] = {
      template = ("cpu/linear_widen_%s.c"):format(family.cpu), name = widen,
      params = { k = k_name, weight = format },
    }
  end

  local row_bytes = act.row_bytes(k)
  local rows = math.max(32, math.min(128, L2_SHARE // row_bytes // 8 * 8))
  return tail, needs, {
    k = k_name, sums_of = sums.name, widen = widen, x = act,
    x_stride = act.name == "q8" and row_bytes or k_name,
    rows = rows, tile_bytes = format.tile_bytes(k),
    chunk = math.max(1, CHUNK // (format.tile_bytes(k) * n_weights)),
  }
end

-- Bytes of scratch a thread: the tiles as floats.
function tiles.scratch(node, n_weights)
  if node.inputs.x.act ~= "f32" or node.inputs.weight.format == "f32" then return 0 end
  return size.of(node.inputs.weight.dims[2]):value() * 32 * 4 * n_weights
end

return tiles
