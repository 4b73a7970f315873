-- models/gemma4_clipped.lua -- The linears of Gemma 4's towers: those of E2B and E4B clip what goes
-- in and what comes out, by four numbers of the checkpoint's each.

local bounds = { "input_min", "input_max", "output_min", "output_max" }

local clipped = {}

-- Adds the weights of one linear to a block's: role, and role_input_min ... role_output_max.
function clipped.weights(list, role, name, shape, clips)
  list[role] = nn.weight(name .. ".linear.weight", shape)
  if not clips then return end
  for _, bound in ipairs(bounds) do
    list[role .. "_" .. bound] = nn.weight(name .. "." .. bound, {})
  end
end

function clipped.linear(x, w, role, clips)
  if not clips then return nn.linear(x, w[role]) end
  return nn.clipped_linear(x, w[role], w[role .. "_input_min"], w[role .. "_input_max"],
    w[role .. "_output_min"], w[role .. "_output_max"])
end

return clipped
