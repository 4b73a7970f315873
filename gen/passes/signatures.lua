-- gen/passes/signatures.lua -- Layers of one kind whose weights have the same formats share a
-- section, and so an emitted function. A kind whose layers differ (a recipe that gives some
-- layers more bits) becomes several sections.

local graph = require "gen.graph"

-- "q4_1", where norms aside all formats are one; else every role's that differs too:
-- "q4_1 w_down q8_0".
local function signature_text(formats)
  local count, most = {}, nil
  for _, row in ipairs(formats) do
    if #row.weight.shape > 1 then
      count[row.format] = (count[row.format] or 0) + 1
      if not most or count[row.format] > count[most] then most = row.format end
    end
  end
  local parts = { most }
  for _, row in ipairs(formats) do
    if #row.weight.shape > 1 and row.format ~= most then
      parts[#parts + 1] = row.weight.role .. " " .. row.format
    end
  end
  return table.concat(parts, " ")
end

return function(program)
  program = graph.copy(program)
  for _, item in ipairs(program.ops) do
    if item.layers then
      local split = {}
      for _, section in ipairs(item.sections) do
        local groups, by_key = {}, {}
        for _, layer in ipairs(section.layers) do
          local formats, key = {}, {}
          for i, weight in ipairs(section.kind.weights) do
            formats[i] = { weight = weight, format = weight.formats[layer] }
            key[i] = weight.formats[layer]
          end
          key = table.concat(key, " ")
          if not by_key[key] then
            by_key[key] = { layers = {}, formats = formats }
            groups[#groups + 1] = by_key[key]
          end
          table.insert(by_key[key].layers, layer)
        end
        for i, group in ipairs(groups) do
          local new = i == 1 and section or graph.copy_section(section)
          new.layers, new.formats = group.layers, {}
          for _, row in ipairs(group.formats) do new.formats[row.weight] = row.format end
          new.signature = signature_text(group.formats)
          new.only_signature = #groups == 1
          split[#split + 1] = new
        end
      end
      item.sections = split
    end
  end
  return program
end
