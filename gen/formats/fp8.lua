-- gen/formats/fp8.lua -- Weights as e4m3 bytes, a scale for each output row: w = scale * q.
-- One scale for a whole tensor (ModelOpt) is that of each of its rows.
--
-- Packed: a tile is 32 rows. Their scales as floats, then their bytes.

local fp8 = {
  name = "fp8",
  group = 1,
  act = {
    default = "bf16", exact = "f32",
    cuda = function(family) return family.sm >= 89 and "fp8" or "bf16" end, -- MMA of e4m3
  },
}

function fp8.tile_bytes(k) return (32 * k + 32 * 4 + 63) // 64 * 64 end

function fp8.file_row_bytes(k) return k + 2 end -- compressed-tensors: a bf16 scale

return fp8
