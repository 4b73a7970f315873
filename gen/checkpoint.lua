-- gen/checkpoint.lua -- What formats a checkpoint's tensors have, from its headers alone: for
-- `--quant auto`. GGUF, one safetensors file, or a folder with an index of shards. Counts are
-- checked against the bytes that are left before anything is read by them.

local gguf = require "gen.formats.spellings.gguf"
local hf = require "gen.formats.spellings.hf"
local json = require "gen.json"

local checkpoint = {}

local function fail(message, ...) error({ message = message:format(...), code = 4 }, 0) end

local function printable(s) return (s:gsub("[^\32-\126]", "?"):sub(1, 100)) end

-- ---- Reading -------------------------------------------------------------------------------

-- A file read from its begin, in blocks.
local function reader(path)
  local file = io.open(path, "rb")
  if not file then fail("%s: no such file", path) end
  local size = file:seek "end"
  if not size or size > 2 ^ 62 then fail("%s: not a file", path) end
  file:seek("set", 0)
  local self = { path = path, size = size, left = size }
  local block, at = "", 1
  function self.take(n)
    if n > self.left then fail("%s: it ends within its header", path) end
    while #block - at + 1 < n do
      block = block:sub(at) .. (file:read(math.max(1 << 20, n)) or "")
      if #block < n then fail("%s: it ends within its header", path) end
      at = 1
    end
    local bytes = block:sub(at, at + n - 1)
    at, self.left = at + n, self.left - n
    return bytes
  end
  function self.number(format)
    return (string.unpack("<" .. format, self.take(string.packsize("<" .. format))))
  end
  function self.close() file:close() end
  return self
end

-- ---- GGUF ----------------------------------------------------------------------------------

local gguf_types = {
  [0] = "f32", [1] = "f16", [2] = "q4_0", [3] = "q4_1", [6] = "Q5_0", [7] = "Q5_1",
  [8] = "q8_0", [10] = "Q2_K", [11] = "Q3_K", [12] = "Q4_K", [13] = "Q5_K", [14] = "Q6_K",
  [30] = "bf16", [39] = "MXFP4",
}
local value_bytes = { [0] = 1, 1, 2, 2, 4, 4, 4, 1, [10] = 8, [11] = 8, [12] = 8 }

local function read_gguf(file)
  local function text()
    local n = file.number "I8"
    if n < 0 or n > file.left then
      fail("%s: a text of %d bytes, %d are left", file.path, n, file.left)
    end
    return file.take(n)
  end
  local function skip_value(kind, depth)
    if kind == 8 then
      text()
    elseif kind == 9 then
      if depth > 4 then fail("%s: arrays are nested too deeply", file.path) end
      local of, n = file.number "I4", file.number "I8"
      local least = of == 8 and 8 or of == 9 and 12 or value_bytes[of]
      if not least then fail("%s: a value of unknown type %d", file.path, of) end
      if n < 0 or n > file.left // least then
        fail("%s: an array of %d values, %d bytes are left", file.path, n, file.left)
      end
      if value_bytes[of] then
        for _ = 1, n * least // (1 << 20) do file.take(1 << 20) end
        file.take(n * least % (1 << 20))
      else
        for _ = 1, n do skip_value(of, depth + 1) end
      end
    elseif value_bytes[kind] then
      file.take(value_bytes[kind])
    else
      fail("%s: a value of unknown type %d", file.path, kind)
    end
  end
  file.take(4)
  local version = file.number "I4"
  if version ~= 2 and version ~= 3 then
    fail("%s: GGUF version %d isn't known", file.path, version)
  end
  local n_tensors, n_values = file.number "I8", file.number "I8"
  if n_tensors < 0 or n_tensors > file.left // 24 or n_values < 0 or n_values > file.left // 12 then
    fail("%s: it announces %d tensors and %d values, %d bytes are left",
      file.path, n_tensors, n_values, file.left)
  end
  for _ = 1, n_values do
    text()
    skip_value(file.number "I4", 0)
  end
  local formats = {}
  for _ = 1, n_tensors do
    local name = text()
    local n_dims = file.number "I4"
    if n_dims > 8 then fail("%s: tensor %s has %d dims", file.path, printable(name), n_dims) end
    for _ = 1, n_dims do file.number "I8" end
    local kind = file.number "I4"
    file.number "I8"
    if formats[name] then fail("%s: tensor %s stands twice", file.path, printable(name)) end
    formats[name] = gguf_types[kind] or "type " .. kind
  end
  return formats
end

-- ---- safetensors -----------------------------------------------------------------------------

local safetensors_types = { F32 = "f32", F16 = "f16", BF16 = "bf16" }

local function decode(path, text)
  local value, why = json.decode(text)
  if value == nil then fail("%s: %s", path, why) end
  if type(value) ~= "table" or not value[json.KEYS] then
    fail("%s: an object was expected", path)
  end
  return value
end

local function read_safetensors(path, formats)
  local file = reader(path)
  local n = file.number "I8"
  if n < 2 or n > file.left or n > 100 * 1024 * 1024 then
    fail("%s: a header of %d bytes, %d are left", path, n, file.left)
  end
  local header = decode(path, file.take(n))
  file.close()
  for _, name in ipairs(header[json.KEYS]) do
    local row = header[name]
    if name ~= "__metadata__" then
      local dtype = type(row) == "table" and row.dtype
      if type(dtype) ~= "string" then
        fail("%s: tensor %s has no dtype", path, printable(name))
      end
      formats[name] = safetensors_types[dtype] or printable(dtype)
    end
  end
  return formats
end

local function exists(path)
  local file = io.open(path, "rb")
  if file then file:close() end
  return file ~= nil
end

local function read_folder(folder)
  local single, index = folder .. "/model.safetensors", folder .. "/model.safetensors.index.json"
  if not exists(index) then
    if exists(single) then return read_safetensors(single, {}) end
    fail("%s: neither model.safetensors nor an index of shards is there", folder)
  end
  local file = reader(index)
  if file.size > 64 * 1024 * 1024 then fail("%s: longer than 64 MiB", index) end
  local map = decode(index, file.take(file.size)).weight_map
  file.close()
  if type(map) ~= "table" or not map[json.KEYS] then fail("%s: it has no weight_map", index) end
  local formats, seen = {}, {}
  for _, name in ipairs(map[json.KEYS]) do
    local shard = map[name]
    if type(shard) ~= "string" or not shard:find "^[%w][%w._-]*$" then
      fail("%s: a shard's name must be a file's beside it", index)
    end
    if not seen[shard] then
      seen[shard] = true
      read_safetensors(folder .. "/" .. shard, formats)
    end
  end
  return formats
end

-- ---- For recipes -----------------------------------------------------------------------------

local known = { f32 = true, f16 = true, bf16 = true, q4_0 = true, q4_1 = true, q8_0 = true }

-- format_of(weight, layer, group) of recipes.from_checkpoint.
function checkpoint.reader(path, model)
  local formats, spelling
  if path:find "%.gguf$" then
    local file = reader(path)
    if file.left < 24 or file.take(4) ~= "GGUF" then fail("%s: not a GGUF file", path) end
    file.close()
    file = reader(path)
    formats, spelling = read_gguf(file), gguf
    file.close()
  elseif path:find "%.safetensors$" then
    formats, spelling = read_safetensors(path, {}), hf
  else
    formats, spelling = read_folder(path), hf
  end
  return function(weight, layer, group)
    local name = spelling.name(model, weight, layer, group)
    if not name then return nil, ("%s has no name in this container"):format(weight.role) end
    local format = formats[name]
    if not format then return nil, ("%s is missing"):format(name) end
    if not known[format] then
      return nil, ("%s is %s, which isn't supported"):format(name, format)
    end
    local group = require("gen.formats." .. format).group
    if #weight.shape <= 1 then
      if group > 1 then return nil, ("%s is a vector in %s"):format(name, format) end
      return "f32" -- the loader widens it
    end
    local k = weight.shape[#weight.shape]
    if k:value() % group ~= 0 then return nil, ("%s is %s in rows of %s"):format(name, format, k) end
    return format
  end
end

return checkpoint
