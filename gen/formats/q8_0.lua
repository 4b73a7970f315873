-- gen/formats/q8_0.lua -- 32 weights share a step d, a half: w = d * q, q an int8. GGUF's
-- Q8_0, 8.5 bits a weight.
--
-- Packed: a tile is 32 rows. For each 32 columns: 32 d, then the bytes of rows 0..15 and of
-- rows 16..31, in vectors of 64: 4 columns of each of 16 rows. A byte is q + 128, since
-- vpdpbusd multiplies unsigned by signed bytes.

local q8_0 = {
  name = "q8_0",
  group = 32,
  act = { default = "q8", exact = "f32" },
  pack = "cpu/pack_q8_0.c",
  gather = "cpu/gather_q8_0.c",
  cuda = { template = "cuda/weight_q8_0.cu", words = 10 }, -- gen/cuda_tiles.lua
  nibbles = false, minimum = false, group_bytes = 1088, quants_at = 64,
}

function q8_0.tile_bytes(k) return k // 32 * q8_0.group_bytes end

function q8_0.file_row_bytes(k) return k // 32 * 34 end

return q8_0
