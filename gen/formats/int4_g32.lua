-- gen/formats/int4_g32.lua -- 32 weights share a bf16 scale: w = scale * (q - 8), q in 0..15.
-- compressed-tensors' pack-quantized, symmetric; 4.5 bits a weight.
--
-- Packed: a tile is 32 rows. For each 32 columns: 32 scales, then the nibbles.

local int4_g32 = {
  name = "int4_g32",
  group = 32,
  act = { default = "q8", exact = "f32" },
}

function int4_g32.tile_bytes(k) return k // 32 * 576 end

function int4_g32.file_row_bytes(k) return k // 32 * 18 end

return int4_g32
