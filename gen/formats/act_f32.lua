-- gen/formats/act_f32.lua -- Activations as floats, rows dense.

local act_f32 = { name = "f32", c_type = "float" }

function act_f32.row_bytes(k) return k * 4 end

return act_f32
