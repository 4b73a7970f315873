-- gen/formats/bf16.lua -- Weights as bf16: the upper half of a float.
--
-- Packed: a tile is 32 rows; pairs of columns, and in each the pairs of 32 rows, as
-- vdpbf16ps takes them. An odd last column is paired with zeros.

local bf16 = {
  name = "bf16",
  group = 1,
  act = { default = "bf16", exact = "f32" },
  pack = "cpu/pack_bf16.c",
  gather = "cpu/gather_bf16.c",
  cuda = { template = "cuda/weight_bf16.cu", words = 16 }, -- gen/cuda_tiles.lua
}

function bf16.tile_bytes(k) return (k + 1) // 2 * 128 end

function bf16.file_row_bytes(k) return k * 2 end

return bf16
