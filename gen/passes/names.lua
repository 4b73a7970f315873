-- gen/passes/names.lua -- Buffers are called as the description calls them: `local h = ...` on
-- the operation's line gives h. What has no name of its own there is called by its weight's
-- role, or by its operation.

local graph = require "gen.graph"
local names = require "gen.names"

local function assigned(model, node)
  local line = model.lines[node.file] and model.lines[node.file][node.line] or ""
  local name = line:match "^%s*local%s+([%a_][%w_]*)%s*=" or line:match "^%s*([%a_][%w_]*)%s*=[^=]"
  return names.is_identifier(name) and name or nil
end

local function base_name(model, node, last_of_line)
  local name = last_of_line and assigned(model, node)
  if not name and node.weights == nil then
    local weight = graph.input(node, "weight")
    if weight and node.def.activation then
      name = weight.role:match "^w_(.+)$" or weight.role:match "^w(.+)$" or weight.role
    end
  end
  name = name or node.result.name or node.def.name
  return names.is_identifier(name) and name or node.def.name
end

return function(program, context)
  local model, taken = context.model, {}
  for _, phase in ipairs(program.phases) do taken[phase.name .. "_scratch"] = true end
  local function unique(name, section)
    if taken[name] and section then name = name .. "_" .. section.kind.name end
    local base, n = name, 1
    while taken[name] do
      n = n + 1
      name = base .. "_" .. n
    end
    taken[name] = true
    return name
  end

  -- The last operation of a line has the line's name; in-place ones pass it to their input.
  local wanted, flat = {}, graph.flat(program)
  local last = {}
  for _, row in ipairs(flat) do last[(row.op.file or "") .. ":" .. row.op.line] = row.op end
  for _, row in ipairs(flat) do
    local node = row.op
    local tensor = node.result
    local is_last = last[(node.file or "") .. ":" .. node.line] == node
    if tensor.alias_of then
      local name = is_last and assigned(model, node)
      local into = tensor.alias_of
      if name and not node.into then wanted[into] = name end
    end
  end
  for _, output in ipairs(program.outputs) do -- unless the description calls it something
    local root = graph.root(output.tensor)
    local node = root.op
    if node and node.def and not assigned(model, node) then wanted[root] = output.name end
  end
  for _, row in ipairs(flat) do
    local node = row.op
    if node.views then
      local parts = {}
      for i, view in ipairs(node.views) do
        local weight = node.weights[i]
        parts[i] = wanted[view] or weight.role:match "^w_?(.+)$" or weight.role
        view.name = parts[i]
      end
      local short = true
      for _, part in ipairs(parts) do short = short and #part == 1 end
      local name = table.concat(parts, short and "" or "_")
      if not names.is_identifier(name) then name = node.def.name end
      node.result.name = unique(name, row.section)
    elseif not node.result.alias_of then
      local is_last = last[(node.file or "") .. ":" .. node.line] == node
      local name = wanted[node.result] or base_name(model, node, is_last)
      node.result.name = unique(name, row.section)
    end
  end
  -- A section's functions: decoder_block for `block`; formats where a kind has several. One
  -- file holds all programs: all but `step` put their name before what they define.
  program.prefix = program.name == "step" and "" or program.name .. "_"
  program.sizes = model.dims_by_name
  local functions = {}
  for _, item in ipairs(program.ops) do
    for _, section in ipairs(item.sections or {}) do
      -- No kernel and no function of C is called a block.
      local name = section.kind.name == "block" and "decoder_block" or section.kind.name
      if not name:find "_block$" then name = name .. "_block" end
      if not section.only_signature then
        name = name .. "_" .. section.signature:gsub("[^%w]+", "_")
      end
      name = program.prefix .. name
      if not names.is_identifier(name) then name = program.prefix .. section.kind.name end
      if not names.is_identifier(name) then name = program.prefix .. "decoder_block" end
      local base, n = name, 1
      while functions[name] do
        n = n + 1
        name = base .. "_" .. n
      end
      functions[name], section.name = true, name
    end
  end
  -- The residual stream is x, wherever it was made.
  for _, node in ipairs(program.ops) do
    if node.layers then
      local root = graph.root(node.x)
      if root.name ~= "x" and not taken.x then
        taken.x, root.name = true, "x"
      end
    end
  end
  return program
end
