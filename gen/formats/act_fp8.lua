-- gen/formats/act_fp8.lua -- Activations as e4m3 bytes with a scale for each 128: a row of k holds
--
--   e4m3  q[k]            x = scale * q
--   float scale[k / 128]  largest magnitude / 448
--
-- 128 is what weights in blocks were made for; with it a GPU also adds 128 products in its
-- matrix units, which keep few bits, and all further ones in floats.

local act_fp8 = { name = "fp8", c_type = "uint8_t" }

function act_fp8.row_bytes(k) return (k + (k + 127) // 128 * 4 + 63) // 64 * 64 end

return act_fp8
