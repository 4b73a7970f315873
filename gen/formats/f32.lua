-- gen/formats/f32.lua -- Weights as floats.
--
-- Packed: a tile is 32 rows; column after column, 32 floats each.

local f32 = {
  name = "f32",
  group = 1,
  act = { default = "f32", exact = "f32" },
  pack = "cpu/pack_f32.c",
  gather = "cpu/gather_f32.c",
  cuda = { template = "cuda/weight_f32.cu", words = 16 }, -- gen/cuda_tiles.lua
}

function f32.tile_bytes(k) return k * 32 * 4 end

function f32.file_row_bytes(k) return k * 4 end

return f32
