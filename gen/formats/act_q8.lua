-- gen/formats/act_q8.lua -- Activations as int8 with a scale for each 32, as
-- runtime/cpu/kernel.h writes them: a row of k holds, with k rounded up to 32,
--
--   int8  q[k]           x = scale * q, rounded to nearest even
--   float scale[k / 32]  largest magnitude / 127
--   float sum[k / 32]    128 * scale * (q's sum)
--
-- One scale a token would lose 5 % on rows with outliers; one for 32 loses 0.5 to 1 %.

local act_q8 = { name = "q8", c_type = "uint8_t", planes = 1 }

function act_q8.row_bytes(k)
  local groups = (k + 31) // 32
  return (groups * 40 + 63) // 64 * 64
end

return act_q8
