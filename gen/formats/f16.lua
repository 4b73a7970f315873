-- gen/formats/f16.lua -- Weights as halves.
--
-- Packed: a tile is 32 rows; column after column, 32 halves each.

local f16 = {
  name = "f16",
  group = 1,
  act = { default = "f32", exact = "f32" },
  pack = "cpu/pack_f16.c",
  gather = "cpu/gather_f16.c",
  cuda = { template = "cuda/weight_f16.cu", words = 16 }, -- gen/cuda_tiles.lua
}

function f16.tile_bytes(k) return k * 32 * 2 end

function f16.file_row_bytes(k) return k * 2 end

return f16
