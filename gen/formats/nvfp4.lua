-- gen/formats/nvfp4.lua -- Weights as e2m1 in groups of 16 with an e4m3 scale each, and a float
-- for the tensor: w = tensor_scale * scale * q, 4.5 bits a weight.
--
-- Packed: a tile is 32 rows. The tensor's scale, padded to 64 bytes (siblings that one linear
-- reads have their own, and so have experts), then for each 16 columns the rows' scales and
-- their 8 bytes of codes.

local nvfp4 = {
  name = "nvfp4",
  group = 16,
  act = {
    default = "q8", exact = "f32",
    cuda = function(family) return family.sm >= 100 and "nvfp4" or "bf16" end, -- block-scaled MMA
  },
}

function nvfp4.tile_bytes(k) return 64 + (32 * (k // 2 + k // 16) + 63) // 64 * 64 end

function nvfp4.file_row_bytes(k) return k // 2 + k // 16 end -- and 4 bytes a tensor

return nvfp4
