-- gen/formats/spellings/hf.lua -- Names in safetensors: nn.weight's own, behind the group's
-- prefix.

local hf = {}

function hf.name(_, weight, layer, group)
  if not layer then return weight.hf end
  local before, after = group.prefix:match "^(.-)%%d(.*)$"
  return before .. layer .. after .. weight.hf
end

return hf
