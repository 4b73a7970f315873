-- gen/emit/kernels.lua -- The kernels that a file needs, rendered once each, in the order of
-- their first use.

local template = require "gen.template"

local kernels = {}

local folder = debug.getinfo(1, "S").source:match "^@(.*)gen/emit/kernels%.lua$"
local texts = {}

local function read(path)
  if not path:find "^[a-z]+/[a-z0-9_]+%.cu?$" then
    error(("%q can't be a template's path"):format(path), 0)
  end
  if not texts[path] then
    local file = io.open(folder .. "templates/" .. path, "rb")
    if not file then error("templates/" .. path .. ": no such template", 0) end
    texts[path] = file:read "a"
    file:close()
  end
  return texts[path]
end

-- Parameters as text that is equal where they are.
local function key_of(value, depth)
  if type(value) ~= "table" then return type(value) .. ":" .. tostring(value) end
  if depth > 4 then error("parameters are nested too deeply", 0) end
  local keys = {}
  for k, v in pairs(value) do
    if type(v) ~= "function" then keys[#keys + 1] = k end
  end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  local parts = {}
  for i, k in ipairs(keys) do parts[i] = tostring(k) .. "=" .. key_of(value[k], depth + 1) end
  return "{" .. table.concat(parts, ",") .. "}"
end

-- The text of the prelude of all CUDA kernels.
function kernels.prelude() return read "cuda/prelude.cu" end

-- add(kernel) gives the function's name; text() all of them, unit(name) one with what it calls.
function kernels.new()
  local self = { list = {}, by_name = {}, entries = {} }

  function self.add(kernel)
    local renamed
    local needs = {}
    for i, need in ipairs(kernel.needs or {}) do
      local name = self.add(need)
      needs[i] = name
      if name ~= need.name then renamed = renamed or {} renamed[need.name] = name end
    end
    local params = {}
    for k, v in pairs(kernel.params) do params[k] = renamed and renamed[v] or v end
    local key = kernel.template .. key_of(params, 1)
    local name, n = kernel.name, 1
    if not name:find "^[a-z][a-z0-9_]*$" then
      error(("%q can't be a kernel's name"):format(name), 0)
    end
    while self.by_name[name] and self.by_name[name] ~= key do
      n = n + 1
      name = kernel.name .. "_" .. n
    end
    if not self.by_name[name] then
      self.by_name[name] = key
      params.name = name
      local path = kernel.template
      self.list[#self.list + 1] = template.render(read(path), "templates/" .. path, params)
      self.entries[name] = { text = self.list[#self.list], needs = needs }
    end
    return name
  end

  function self.text() return table.concat(self.list, "\n") end

  function self.unit(name, known)
    known = known or {}
    if known[name] then return "" end
    known[name] = true
    local parts = {}
    for _, need in ipairs(self.entries[name].needs) do
      local part = self.unit(need, known)
      if part ~= "" then parts[#parts + 1] = part end
    end
    parts[#parts + 1] = self.entries[name].text
    return table.concat(parts, "\n")
  end
  return self
end

return kernels
