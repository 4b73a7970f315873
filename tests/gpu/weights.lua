-- tests/gpu/weights.lua -- Random weights in tiles of each format, and as what numbers a product
-- on a GPU takes them.

local harness = require "tests.gpu.harness"

local weights = {}

-- Rows of 32 as one tile: what a tile's bytes are made of is said in gen/formats.
local tile_of = {}

-- [1] is bits, then what they mean
local function halves(x) return ("<I2"):pack(x) end

-- A step that a half holds: 1/64 ... 15/64.
local function half_step()
  local fraction = math.floor(math.abs(harness.random()) * 400) % 1024
  return 0x2400 | fraction, (1 + fraction / 1024) * 2 ^ -6
end

local function nibbles(minimum)
  return function(k, put)
    local groups = {}
    for g = 0, k // 32 - 1 do
      local d, m, quants = {}, {}, {}
      for row = 0, 31 do
        local bits, step = half_step()
        local offset_bits, offset = half_step()
        d[row], m[row] = halves(bits), halves(offset_bits | 0x8000)
        for column = 0, 15 do
          local low = math.floor(math.abs(harness.random()) * 7) % 16
          local high = math.floor(math.abs(harness.random()) * 7) % 16
          local at = row // 16 * 256 + column // 4 * 64 + row % 16 * 4 + column % 4
          quants[at] = string.char(low | high << 4)
          for i, q in ipairs { low, high } do
            put(row, g * 32 + (i - 1) * 16 + column, minimum and step * q - offset or step * (q - 8))
          end
        end
      end
      groups[#groups + 1] = table.concat(d, "", 0) .. (minimum and table.concat(m, "", 0) or "")
        .. table.concat(quants, "", 0)
    end
    return table.concat(groups)
  end
end

tile_of.q4_0, tile_of.q4_1 = nibbles(false), nibbles(true)

function tile_of.q8_0(k, put)
  local groups = {}
  for g = 0, k // 32 - 1 do
    local d, quants = {}, {}
    for row = 0, 31 do
      local bits, step = half_step()
      d[row] = halves(bits)
      for column = 0, 31 do
        local q = math.max(-128, math.min(127, math.floor(harness.random() * 60)))
        quants[row // 16 * 512 + column // 4 * 64 + row % 16 * 4 + column % 4] = string.char(q + 128)
        put(row, g * 32 + column, step * q)
      end
    end
    groups[#groups + 1] = table.concat(d, "", 0) .. table.concat(quants, "", 0)
  end
  return table.concat(groups)
end

function tile_of.bf16(k, put)
  local parts = {}
  for column = 0, (k + 1) // 2 * 2 - 1 do
    for row = 0, 31 do
      local x = column < k and harness.random() or 0
      parts[(column // 2 * 32 + row) * 2 + column % 2] = halves(harness.to_bf16(x))
      if column < k then put(row, column, x) end
    end
  end
  return table.concat(parts, "", 0)
end

function tile_of.f16(k, put)
  local parts = {}
  for column = 0, k - 1 do
    for row = 0, 31 do
      local bits, x = half_step()
      local negative = harness.random() < 0
      parts[#parts + 1] = halves(negative and bits | 0x8000 or bits)
      put(row, column, negative and -x or x)
    end
  end
  return table.concat(parts)
end

function tile_of.f32(k, put)
  local parts = {}
  for column = 0, k - 1 do
    for row = 0, 31 do
      local x = harness.random() * 1.001
      parts[#parts + 1] = ("<f"):pack(x)
      put(row, column, string.unpack("<f", parts[#parts]))
    end
  end
  return table.concat(parts)
end

-- A matrix (n, k): its tiles as a list of texts, its rows as the numbers that lie there, and those
-- rounded to bf16.
function weights.matrix(format, n, k)
  local tiles, rows, rounded = {}, {}, {}
  for tile = 0, (n + 31) // 32 - 1 do
    local function put(row, column, x)
      local at = tile * 32 + row + 1
      if at > n then return end
      rows[at], rounded[at] = rows[at] or {}, rounded[at] or {}
      rows[at][column + 1], rounded[at][column + 1] = x, harness.round(x)
    end
    tiles[#tiles + 1] = tile_of[format](k, put)
    assert(#tiles[#tiles] == require("gen.formats." .. format).tile_bytes(k))
  end
  return tiles, rows, rounded
end

-- Tiles of several matrices in turn.
function weights.in_turn(...)
  local lists, all = { ... }, {}
  for tile = 1, #lists[1] do
    for _, list in ipairs(lists) do all[#all + 1] = list[tile] end
  end
  return all
end

function weights.bytes(tiles) return harness.bytes(table.concat(tiles)) end

return weights
