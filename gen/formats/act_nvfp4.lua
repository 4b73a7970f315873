-- gen/formats/act_nvfp4.lua -- Activations as e2m1 in groups of 16: a row of k holds
--
--   e2m1  q[k]           x = row * scale * q
--   e4m3  scale[k / 16]  largest magnitude / (6 * row)
--   float row            of the checkpoint (input_scale), else largest magnitude / (6 * 448)

local act_nvfp4 = { name = "nvfp4", c_type = "uint8_t" }

function act_nvfp4.row_bytes(k) return (k // 2 + k // 16 + 4 + 63) // 64 * 64 end

return act_nvfp4
