-- gen/formats/q4_0.lua -- 32 weights share a step d, a half: w = d * (q - 8), q in 0..15.
-- GGUF's Q4_0, 4.5 bits a weight.
--
-- Packed: as q4_1.lua without the 32 m.

local q4_0 = {
  name = "q4_0",
  group = 32,
  act = { default = "q8", exact = "f32" },
  pack = "cpu/pack_q4.c",
  gather = "cpu/gather_q4.c",
  cuda = { template = "cuda/weight_q4.cu", words = 6 }, -- gen/cuda_tiles.lua
  nibbles = true, minimum = false, group_bytes = 576, quants_at = 64,
}

function q4_0.tile_bytes(k) return k // 32 * q4_0.group_bytes end

function q4_0.file_row_bytes(k) return k // 32 * 18 end

return q4_0
