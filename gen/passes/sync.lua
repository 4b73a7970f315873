-- gen/passes/sync.lua -- A barrier stands behind an operation where the next one reads, on
-- another thread, what was written since the last barrier, or writes where that lies. Two
-- operations that both share out the rows of one extent need none between them: a thread
-- reads the rows that it wrote. op.barrier is the reason, as a comment.

local graph = require "gen.graph"

local function accesses(node)
  local list = {}
  local function add(tensor, write)
    if tensor.weight or tensor.input then return end
    if tensor.state then
      list[#list + 1] = { what = "kv", write = write, name = "the KV cache" }
    else
      local root = graph.root(tensor)
      list[#list + 1] = { what = root.buffer, write = write, name = tensor.name or root.name }
    end
  end
  for _, input in ipairs(node.inputs) do
    local writes = input.tensor.state and node.def.state
    add(input.tensor, writes or false)
  end
  if not node.def.state then add(node.result, true) end
  for _, access in ipairs(list) do
    access.rows = node.def.partition == "rows" and graph.extent(node.result) or nil
    access.op = node
  end
  return list
end

local function same_memory(a, b)
  if a == b then return true end
  if a == "kv" or b == "kv" then return false end
  if a.phase ~= b.phase then return a.phase ~= 0 and b.phase ~= 0 end
  return a.at < b.at + b.slope and b.at < a.at + a.slope
end

-- Why `later` can't begin before all threads have done `earlier`, or nil.
local function conflict(earlier, later)
  if not (earlier.write or later.write) or not same_memory(earlier.what, later.what) then
    return
  end
  local same = earlier.what == later.what
  if same and earlier.rows and earlier.rows == later.rows then return end
  if same and earlier.write and not later.write then return earlier.name .. " complete" end
  if same then return earlier.name .. " was read, and is changed now" end
  return ("%s lies where %s did"):format(later.what.name, earlier.what.name)
end

-- Barriers within one list; `pending` are accesses since the last one. Returns what is pending.
local function walk(ops, pending, leave)
  for i, node in ipairs(ops) do
    if node.layers then
      if i > 1 and #pending > 0 and not ops[i - 1].layers then 
        ops[i - 1].barrier = (graph.root(node.x).name or "x") .. " complete"
      end
      pending = {}
      for _, section in ipairs(node.sections) do
        walk(section.ops, {})
        local last = section.ops[#section.ops]
        last.barrier = last.barrier or ((section.result.name or "x") .. " complete")
      end
    else
      local mine = accesses(node)
      local reason
      for _, earlier in ipairs(pending) do
        for _, later in ipairs(mine) do reason = reason or conflict(earlier, later) end
      end
      if reason and i > 1 then
        ops[i - 1].barrier = reason
        pending = {}
      end
      for _, access in ipairs(mine) do pending[#pending + 1] = access end
    end
  end
  if leave and #ops > 0 and not ops[#ops].layers then ops[#ops].barrier = leave end
  return pending
end

return function(program)
  for _, node in ipairs(program.ops) do
    for _, section in ipairs(node.sections or {}) do
      section.result.name = graph.root(section.result).name
    end
  end
  walk(program.ops, {}, "all threads are done when the first returns")
  return program
end
