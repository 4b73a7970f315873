-- gen/formats/int4_g128.lua -- 128 weights share a scale, 16 bits, and a zero, 4 bits:
-- w = scale * (q - zero), q in 0..15; 4.16 bits a weight. AutoAWQ, whose zeros are stored, and
-- symmetric pack-quantized ones, whose zeros are all 8.
--
-- Packed: a tile is 32 rows. All its scales, all its zeros, then the nibbles.

local int4_g128 = {
  name = "int4_g128",
  group = 128,
  act = { default = "q8", exact = "f32" },
}

function int4_g128.tile_bytes(k)
  return (k // 128 * 32 * 5 // 2 + 63) // 64 * 64 + 32 * k // 2
end

function int4_g128.file_row_bytes(k) return k // 2 + k // 128 * 2.5 end

return int4_g128
