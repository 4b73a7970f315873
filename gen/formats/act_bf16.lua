-- gen/formats/act_bf16.lua -- Activations as bf16, rows dense.

local act_bf16 = { name = "bf16", c_type = "uint16_t" }

function act_bf16.row_bytes(k) return k * 2 end

return act_bf16
