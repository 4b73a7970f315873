-- gen/config.lua -- A release's config.json. Without --variant its sizes take the place of the
-- first variant's; with it, they must be that one's. Then the traced model is compared with all
-- that the file says: what contradicts it, and what nobody has understood, is refused.
--
-- Keys are spelled in formats/spellings/hf.lua. A description adds what is its own:
--
--   nn.variants {
--     model_type = "gemma3_text",
--     config = { window = "sliding_window", rope_local = "rope_parameters.sliding_attention",
--                "vision_config" },
--
-- gives the field `window` of a variant's row the value of that key, `rope_local` what nn.rope
-- takes, and says of vision_config that it changes nothing here. Besides:
--
--   d_ple = { "hidden_size_per_layer_input", 0 }      what a row or a file means by saying nothing;
--                                    "none" is what a file says with null
--   vision = { object = "vision_config", n_layers = "num_hidden_layers", ... }
--                                    a table of its own in the row; none where the file has none
--   is = { patch_size = 16 }         the only value that the description computes with
--   { window = "sliding_window" }    in the list: the same, from a part that models share

local hf = require "gen.formats.spellings.hf"
local hyperparameters = require "gen.hyperparameters"
local json = require "gen.json"
local names = require "gen.names"

local config = {}

local MAX_BYTES = 1024 * 1024

local function fail(code, message, ...)
  error({ message = message:format(...), code = code }, 0)
end

-- ---- The file ------------------------------------------------------------------------------

local function read(path)
  local file = io.open(path, "rb")
  if not file then fail(4, "%s: no such file", path) end
  local text = file:read(MAX_BYTES + 1) or ""
  file:close()
  if #text > MAX_BYTES then fail(4, "%s: longer than 1 MiB", path) end
  local value, why = json.decode(text)
  if value == nil then fail(4, "%s: %s", path, why) end
  if type(value) ~= "table" or not value[json.KEYS] then
    fail(4, "%s: an object was expected", path)
  end
  return value, text
end

local function is_object(x) return type(x) == "table" and x[json.KEYS] ~= nil end

-- Every value by its path, { path = { value, ... } }: text_config's stand beside those outside.
local function by_path(object)
  local found = {}
  local function walk(x, prefix)
    for _, key in ipairs(x[json.KEYS]) do
      local path, value = prefix .. key, x[key]
      found[path] = found[path] or {}
      table.insert(found[path], value)
      if is_object(value) then walk(value, path == "text_config" and "" or path .. ".") end
    end
  end
  walk(object, "")
  for switch, keys in pairs(hf.switches) do
    if found[switch] and found[switch][1] == false then
      for _, key in ipairs(keys) do found[key] = nil end
    end
  end
  return found
end

-- As it is shown to people.
local function shown(x)
  if is_object(x) then return "an object" end
  if type(x) == "table" and x ~= json.NULL then return "a list" end
  if type(x) == "string" then return names.quoted(x) end
  return type(x) == "number" and ("%.14g"):format(x) or tostring(x)
end

local function sorted(fields)
  local names = {}
  for name in pairs(fields) do names[#names + 1] = name end
  table.sort(names)
  return names
end

-- ---- Looking up ----------------------------------------------------------------------------

local Config = {}
Config.__index = Config

-- The first value there is under one of the keys, and that key.
function Config:first(keys)
  for key in keys:gmatch "%S+" do
    for _, value in ipairs(self.found[key] or {}) do
      if value ~= json.NULL then return value, key end
    end
  end
end

-- By our name: what the file says, or means by saying nothing.
function Config:told(name)
  for _, row in ipairs(hf.keys) do
    if row[1] == name then
      local value = self:first(row[2])
      if value == nil and row.absent then
        value = row.absent(function(other) return self:number(other) end)
      end
      return value
    end
  end
end

function Config:number(name)
  local value = self:told(name)
  return type(value) == "number" and value or nil
end

function Config:complain(format, ...) table.insert(self.wrong, format:format(...)) end

function Config:refuse(who)
  if #self.wrong == 0 then return end
  fail(4, "%s doesn't fit %s:\n  %s", self.path, who, table.concat(self.wrong, "\n  "))
end

-- ---- A variant's row -----------------------------------------------------------------------

-- What nn.rope takes, from rope_parameters or from such an object of a layer type.
function Config:rope(field, object, path)
  local kind = object.rope_type or object.type or "default"
  local attrs = hf.rope[kind]
  if not attrs then
    self:complain("%s of type %s isn't known", path, names.quoted(kind))
    return nil
  end
  local rope = { scaling = kind ~= "default" and kind or nil }
  for _, row in ipairs(attrs) do
    local value = object[row[2]]
    if value == nil or value == json.NULL then
      self:complain("%s has no %s: %s needs it", path, row[2], field)
    elseif type(value) ~= "number" then
      self:complain("%s: %s must be a number, got %s", path, row[2], shown(value))
    else
      rope[row[1]] = math.tointeger(value) or value
    end
  end
  self.known[path .. ".rope_type"], self.known[path .. ".type"] = true, true
  for _, row in ipairs(attrs) do self.known[path .. "." .. row[2]] = true end
  return rope
end

-- Transformers 4's rope_theta and rope_scaling, as 5 writes them.
function Config:rope_parameters()
  local parameters = self:first "rope_parameters"
  if is_object(parameters) then return parameters, "rope_parameters" end
  local theta, scaling = self:first "rope_theta", self:first "rope_scaling"
  if theta == nil then return nil end
  local out = { rope_theta = theta }
  for _, key in ipairs(is_object(scaling) and scaling[json.KEYS] or {}) do out[key] = scaling[key] end
  return out, "rope_scaling"
end

-- Numbers, texts and bools as they are; lists of such. `like` is the first variant's value.
function Config:plain(value, key, like)
  if type(value) == "number" and value == value then return math.tointeger(value) or value end
  if type(like) == "number" then
    self:complain("%s must be a number, got %s", key, shown(value))
    return nil
  end
  if type(value) == "table" and not is_object(value) and value ~= json.NULL then
    local list = {}
    for i, x in ipairs(value) do list[i] = self:plain(x, key) end
    return list
  end
  if type(value) ~= "table" then return value end
end

-- The value of a row's field, or nil. `entry` is what the description says of it, if anything.
function Config:field(field, entry, like)
  if entry and entry.of then return self:part(entry, like) end
  local key = entry and entry.keys
  if field == "rope" and not key then
    local parameters, path = self:rope_parameters()
    if parameters then return self:rope(field, parameters, path) end
    self:complain "rope_theta (or rope_parameters) is missing: rope needs it"
    return nil
  end
  for _, row in ipairs(hf.keys) do if row[1] == field then key = key or row[2] end end
  if not key then
    self:complain("%s: nn.variants doesn't say which key gives it: config = { %s = ... }", field, field)
    return nil
  end
  local value
  if entry then value = self:first(key) else value = self:told(field) end
  if value == nil and entry and entry.default ~= nil then return entry.default end
  if value == nil then
    self:complain("%s is missing: %s needs it", (key:gsub(" ", " or ")), field)
    return nil
  end
  if is_object(value) and type(like) == "table" then return self:rope(field, value, key) end
  return self:plain(value, key, like)
end

-- A row's table, from an object of the file; nil where there is none.
function Config:part(entry, like)
  if not is_object(self:first(entry.object)) then return nil end
  local out = {}
  for _, field in ipairs(sorted(entry.of)) do
    out[field] = self:field(field, entry.of[field], type(like) == "table" and like[field] or nil)
  end
  return out
end

-- Fields of a row that say nothing of the model's sizes.
local apart = { recipe = true, demo_weights = true }

function Config:supply(row)
  local out = { row[1], recipe = row.recipe }
  for _, keys in ipairs(hf.keys) do -- also what rows leave out: eps
    local value = self:told(keys[1])
    if value ~= nil and not is_object(value) then out[keys[1]] = self:plain(value, keys[2]) end
  end
  local fields = {}
  for field in pairs(row) do
    if type(field) == "string" and not apart[field] and field ~= "untied" then fields[#fields + 1] = field end
  end
  for field, entry in pairs(self.own.fields) do
    if row[field] == nil and self:first(entry.keys or entry.object) ~= nil then fields[#fields + 1] = field end
  end
  table.sort(fields)
  for _, field in ipairs(fields) do out[field] = self:field(field, self.own.fields[field], row[field]) end
  if out.tied ~= nil then out.untied = not out.tied end
  return out
end

-- For describe: takes the chosen variant's row and the model so far, gives the row to use.
function Config:configure(row, model)
  self.own = model.config_keys
  local words = table.concat(model.model_type, " ")
  local model_type = self.found.model_type and self.found.model_type[1]
  if words ~= "" and model_type ~= nil and not (" " .. words .. " "):find(" " .. tostring(model_type) .. " ", 1, true) then
    self:complain("model_type is %s, %s has %s", shown(model_type), self.name, (words:gsub(" ", " or ")))
    self:refuse(self.name)
  end
  if self.variant then return row end
  local out = self:supply(row)
  self:refuse(self.name)
  return out
end

-- ---- The traced model ----------------------------------------------------------------------

-- Files hold floats; as in runtime/weights/hyperparameters.c.
local function same_number(a, b) return math.abs(a - b) <= 1e-6 * math.abs(b) end

local function agrees(found, value)
  if type(found) == "table" and found ~= json.NULL then -- a value for each layer; not an object
    for _, x in ipairs(found) do if not agrees(x, value) then return false end end
    return true
  end
  if type(value) == "string" then
    return (" " .. value .. " "):find(" " .. tostring(found) .. " ", 1, true) ~= nil
  end
  if found == json.NULL then return true end
  if type(value) == "number" then return type(found) == "number" and same_number(found, value) end
  return found == value
end

local function words_of(value)
  return type(value) == "string" and value:gsub(" ", " or ") or shown(value)
end

function Config:compare(row, who)
  local told = false
  for key in row.keys:gmatch "%S+" do
    self.known[key] = true
    for _, found in ipairs(self.found[key] or {}) do
      told = told or found ~= json.NULL or type(row.value) == "string"
      if not is_object(found) and not agrees(found, row.value) then
        self:complain("%s is %s, %s has %s = %s", key, shown(found), who, row.name, words_of(row.value))
      end
    end
  end
  if told then return end
  local key = row.keys:match "%S+"
  local meant = row.absent and self:told(row.name)
  if meant ~= nil and not agrees(meant, row.value) then
    self:complain("%s is missing, which means %s; %s has %s = %s", key, shown(meant), who, row.name,
      words_of(row.value))
  elseif not row.absent and not row.proved and not self.variant then
    self:complain("%s is missing: %s has %s = %s", key, who, row.name, words_of(row.value))
  end
end

local function same(a, b)
  if type(a) == "table" and type(b) == "table" then
    for k, v in pairs(a) do if not same(v, b[k]) then return false end end
    for k in pairs(b) do if a[k] == nil then return false end end
    return true
  end
  if type(a) == "number" and type(b) == "number" then return same_number(a, b) end
  return a == b
end

-- The keys of the description's own.
function Config:compare_own(who)
  local function know(fields)
    for _, entry in pairs(fields) do
      for word in (entry.keys or entry.object):gmatch "%S+" do self.known[word] = true end
      if entry.of then know(entry.of) end
    end
  end
  know(self.own.fields)
  for _, key in ipairs(self.own.ignored) do
    for word in key:gmatch "%S+" do self.known[word] = true end
  end
  if self.variant then self:compare_fields(self.own.fields, self.row, who) end
  self:compare_constants(who)
end

function Config:compare_fields(fields, row, who)
  for _, field in ipairs(sorted(fields)) do
    local entry, wanted = fields[field], row[field]
    if entry.of then
      local there = is_object(self:first(entry.object))
      if there and wanted then
        self:compare_fields(entry.of, wanted, who)
      elseif there or wanted then
        self:complain("%s is %s, %s has %s", entry.object, there and "there" or "missing", who,
          there and "none" or "one")
      end
    elseif self:first(entry.keys) ~= nil or entry.default ~= nil then
      local value = self:field(field, entry, wanted)
      if value ~= nil and not same(value, wanted) then
        self:complain("%s differs from %s's %s", entry.keys, who, field)
      end
    end
  end
end

-- What has one value that the description computes with.
function Config:compare_constants(who)
  for _, key in ipairs(sorted(self.own.is)) do
    self.known[key] = true
    local value, wanted = self:first(key), self.own.is[key]
    if value ~= nil and not same(value, wanted) then
      self:complain("%s is %s, %s computes with %s", key, shown(value), who, shown(wanted))
    end
  end
end

-- Nothing, or a feature that is off.
local function is_off(x)
  if x == json.NULL or x == false then return true end
  return type(x) == "table" and (is_object(x) and #x[json.KEYS] or #x) == 0
end

-- What the file says and nobody has looked at, by path.
function Config:unknown()
  local within = {} -- objects of which something is known
  for key in pairs(self.known) do
    local from = key:match "^(.*)%."
    while from do
      within[from], from = true, from:match "^(.*)%."
    end
  end
  local list = {}
  local function walk(object, prefix)
    for _, key in ipairs(object[json.KEYS]) do
      local path, value = prefix .. key, object[key]
      if path == "text_config" and is_object(value) then
        walk(value, "")
      elseif is_object(value) and (within[path] or self.known[path] and path:find "^rope_") then
        walk(value, path .. ".")
      elseif not (self.known[path] or hf.harmless[key] or is_off(value) or hf.switches[key])
        and self.found[path] then
        list[#list + 1] = ("%s = %s"):format(names.quoted(path):sub(2, -2), shown(value))
      end
    end
  end
  walk(self.values, "")
  return list
end

-- After tracing: an error of all that contradicts the model or may.
function Config:check(model)
  local who = self.variant or self.name
  self.own, self.row = model.config_keys, model.row
  for _, row in ipairs(hf.rows(model, hyperparameters.of(model))) do self:compare(row, who) end
  self:compare_own(who)
  local unknown = self:unknown()
  for _, line in ipairs(unknown) do self:complain("%s isn't understood", line) end
  if #unknown > 0 then
    self:complain("(what changes no result may be deleted from a copy of the file)")
  end
  self:refuse(who)
end

-- options: variant (or nil), name (of the description, for messages).
function config.open(path, options)
  local values, text = read(path)
  local why = hf.flatten(values)
  if why then fail(4, "%s: %s", path, why) end
  return setmetatable({
    path = path, text = text, values = values, found = by_path(values), variant = options.variant,
    name = options.name, own = { fields = {}, ignored = {}, is = {} }, known = {}, wrong = {},
  }, Config)
end

return config
