-- gen/emit/config.lua -- config.json of a described model, as gen/config.lua reads it: what the
-- operations show, and the variant's row by the description's own keys. Where a config.json gave
-- the sizes, that one. tools/synth puts it beside random weights.

local hf = require "gen.formats.spellings.hf"
local hyperparameters = require "gen.hyperparameters"
local json = require "gen.json"

local config = {}

-- tree["a"]["b"] of "a.b"; what stands there already stays.
local function put(tree, path, value)
  for object in path:gmatch "([^.]+)%." do
    tree[object] = tree[object] or {}
    tree = tree[object]
  end
  local name = path:match "[^.]+$"
  if tree[name] == nil then tree[name] = value end
end

-- Of the keys that may hold a value the one that transformers 5 writes.
local function key_of(keys)
  return (" " .. keys):match " (rope_parameters%.%S+)" or keys:match "%S+"
end

local function put_shown(tree, model)
  for _, row in ipairs(hf.rows(model, hyperparameters.of(model))) do
    local value = row.value
    if type(value) == "string" then value = value:match "%S+" end
    if not (row.switched and value == 0) then put(tree, key_of(row.keys), value) end
  end
end

-- A row's table for nn.rope.
local function rope_object(rope)
  local object = { rope_type = rope.scaling or "default" }
  for _, attr in ipairs(hf.rope[object.rope_type]) do object[attr[2]] = rope[attr[1]] end
  return object
end

local function put_fields(tree, fields, row)
  for field, entry in pairs(fields) do
    local value = row[field]
    if entry.of and value then
      put_fields(tree, entry.of, value)
    elseif value == "none" then
      put(tree, key_of(entry.keys), json.NULL)
    elseif value ~= nil and entry.keys then
      if type(value) == "table" and value.theta then value = rope_object(value) end
      put(tree, key_of(entry.keys), value)
    end
  end
end

-- What has objects beside the decoder's keeps those of the decoder in text_config.
local function within_text(tree, model)
  local text, outside, split = {}, {}, false
  for field, entry in pairs(model.config_keys.fields) do
    if entry.of and model.row[field] then outside[entry.object], split = true, true end
  end
  if not split then return tree end
  outside.tie_word_embeddings, outside.model_type = true, true
  local root = { text_config = text }
  for name, value in pairs(tree) do
    (outside[name] and root or text)[name] = value
  end
  text.model_type = model.model_type[2]
  return root
end

function config.text(model)
  if model.config_text then return model.config_text end
  local tree = {}
  if model.row then put_fields(tree, model.config_keys.fields, model.row) end
  put_shown(tree, model)
  for path, value in pairs(model.config_keys.is) do
    local object = path:match "^([^.]+)%."
    if not object or tree[object] then put(tree, path, value) end
  end
  return json.encode(model.row and within_text(tree, model) or tree) .. "\n"
end

return config
