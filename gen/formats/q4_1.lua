-- gen/formats/q4_1.lua -- 32 weights share a step d and a minimum m, each a half:
-- w = d * q + m, q in 0..15. GGUF's Q4_1, 5 bits a weight.
--
-- Packed: a tile is 32 rows. For each 32 columns: 32 d, 32 m, then the nibbles of rows 0..15
-- and of rows 16..31. Nibbles come in vectors of 64 bytes: 4 bytes of each of 16 rows; byte j
-- of vector i holds column 4i + j (low) and 16 + 4i + j (high), as the file does. Steps come
-- before nibbles because the other way loses 10 % of the bandwidth.

local q4_1 = {
  name = "q4_1",
  group = 32, -- columns come in multiples of this
  act = { default = "q8", exact = "f32" },
  pack = "cpu/pack_q4.c",
  gather = "cpu/gather_q4.c",
  cuda = { template = "cuda/weight_q4.cu", words = 8 }, -- gen/cuda_tiles.lua
  -- For templates: nibbles, a minimum, and the bytes of 32 rows x 32 columns.
  nibbles = true, minimum = true, group_bytes = 640, quants_at = 128,
}

function q4_1.tile_bytes(k) return k // 32 * q4_1.group_bytes end

function q4_1.file_row_bytes(k) return k // 32 * 20 end

return q4_1
