-- gen/passes/sync.lua -- A barrier stands behind an operation where the next one reads, on
-- another thread, what was written since the last barrier, or writes where that lies. Two
-- operations that both share out the rows of one extent need none between them: a thread
-- reads the rows that it wrote, unless it gathers. Scratch is a thread's own, but where an
-- operation lets others read it, theirs must be done with it. op.barrier is the reason, as a
-- comment.

local graph = require "gen.graph"

-- Places that an operation reads or writes: { what, write, name, rows }. `what` is a buffer, a
-- phase's scratch or "kv"; `rows` is what is shared out among the threads, "9 * soft": half of nine
-- rows each isn't nine of half the rows.
local function accesses(node, scratch_of)
  local list = {}
  local shared = node.def.partition == "rows" and graph.extent(node.result)
  local rows = shared and tostring(node.result.shape[1]) or nil
  local function add(what, write, name, shared_rows)
    list[#list + 1] = { what = what, write = write, name = name, rows = shared_rows }
  end
  local function add_tensor(tensor, write, shared_rows)
    if tensor.weight or tensor.input then return end
    local root = not tensor.state and graph.root(tensor)
    if tensor.state then
      add("kv", write, "the KV cache", shared_rows)
    else
      add(root.buffer, write, tensor.name or root.name, shared_rows)
    end
  end
  local gathered = {}
  for _, name in ipairs(node.def.gathers or {}) do gathered[name] = true end
  for _, input in ipairs(node.inputs) do
    local writes = input.tensor.state and node.def.state or false
    add_tensor(input.tensor, writes, not gathered[input.name] and rows or nil)
  end
  if node.def.state ~= "kv" then add_tensor(node.result, true, rows) end
  if node.scratch_bytes > 0 then
    add(scratch_of(node.phase), true, "scratch", not node.def.shares_scratch and "a thread" or nil)
  end
  return list
end

local function same_memory(a, b)
  if a == b then return true end
  if a == "kv" or b == "kv" then return false end
  if a.region ~= b.region then return not (a.region.carried or b.region.carried) end
  if a.is_scratch or b.is_scratch or a.extent ~= b.extent then return false end
  return a.at < b.at + b.height and b.at < a.at + a.height
end

-- Why `later` can't begin before all threads have done `earlier`, or nil.
local function conflict(earlier, later)
  if not (earlier.write or later.write) or not same_memory(earlier.what, later.what) then
    return
  end
  local same = earlier.what == later.what
  if same and earlier.what.is_scratch then
    return not earlier.rows and "scratch was read by other threads" or nil
  end
  if same and earlier.rows and earlier.rows == later.rows then return end
  if same and earlier.write and not later.write then return earlier.name .. " complete" end
  if same then return earlier.name .. " was read, and is changed now" end
  return ("%s lies where %s did"):format(later.name, earlier.name)
end

-- Barriers within one list; `pending` are accesses since the last one. `leave` is why there is
-- one behind the last operation too. What only sees memory with other dims doesn't run: a barrier
-- stands behind what does.
local function walk(ops, pending, scratch_of, leave)
  local previous
  for _, node in ipairs(ops) do
    if node.layers then
      if previous and #pending > 0 and not previous.layers then
        previous.barrier = (graph.root(node.x).name or "x") .. " complete"
      end
      pending = {}
      for _, section in ipairs(node.sections) do
        local last = walk(section.ops, {}, scratch_of)
        last.barrier = last.barrier or ((section.result.name or "x") .. " complete")
      end
      previous = node
    elseif not node.def.reshape then
      local mine = accesses(node, scratch_of)
      local reason
      for _, earlier in ipairs(pending) do
        for _, later in ipairs(mine) do reason = reason or conflict(earlier, later) end
      end
      if reason and previous then
        previous.barrier = reason
        pending = {}
      end
      for _, access in ipairs(mine) do pending[#pending + 1] = access end
      previous = node
    end
  end
  if leave and previous and not previous.layers then previous.barrier = leave end
  return previous
end

return function(program)
  for _, node in ipairs(program.ops) do
    for _, section in ipairs(node.sections or {}) do
      section.result.name = graph.root(section.result).name
    end
  end
  local scratch = {}
  local function scratch_of(phase)
    scratch[phase] = scratch[phase]
      or { is_scratch = true, region = program.costs[program.n_carried + phase] }
    return scratch[phase]
  end
  walk(program.ops, {}, scratch_of, "all threads are done when the first returns")
  return program
end
