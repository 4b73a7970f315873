-- gen/config.lua -- Sizes from a release's config.json, in the description's words. Without
-- --variant they take the place of the first variant's; with it, they must be that one's.

local json = require "gen.json"
local names = require "gen.names"

local config = {}

local MAX_BYTES = 1024 * 1024

-- Hugging Face's name, ours.
local sizes = {
  { "num_hidden_layers", "n_layers" }, { "hidden_size", "d_model" },
  { "num_attention_heads", "n_heads" }, { "num_key_value_heads", "n_kv_heads" },
  { "head_dim", "d_head" }, { "intermediate_size", "d_ff" }, { "vocab_size", "n_vocab" },
  { "max_position_embeddings", "n_ctx" },
}

local function fail(code, message, ...)
  error({ message = message:format(...), code = code }, 0)
end

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
  return value
end

-- { n_layers = 30, ..., rope = { theta = 1e5 }, untied = false } of a config.json.
local function wanted(values, path)
  local out = {}
  local function number(name)
    local x = values[name]
    if x == nil or x == json.NULL then return nil end
    if type(x) ~= "number" or x ~= x then fail(4, "%s: %s must be a number", path, name) end
    return math.tointeger(x) or x
  end
  for _, row in ipairs(sizes) do out[row[2]] = number(row[1]) end
  out.n_kv_heads = out.n_kv_heads or out.n_heads
  if not out.d_head and out.d_model and out.n_heads and out.n_heads > 0 then
    out.d_head = out.d_model // out.n_heads
  end
  local theta = number "rope_theta"
  local scaling = values.rope_scaling
  if theta then
    out.rope = { theta = theta + 0.0 }
    if type(scaling) == "table" then
      local kind = scaling.rope_type or scaling.type
      if kind == "llama3" then
        out.rope.scaling = "llama3"
        for theirs, ours in pairs { factor = "factor", low_freq_factor = "low_factor",
            high_freq_factor = "high_factor", original_max_position_embeddings = "original" } do
          if type(scaling[theirs]) ~= "number" then
            fail(4, "%s: rope_scaling has no %s", path, theirs)
          end
          out.rope[ours] = scaling[theirs] + 0.0
        end
      elseif kind ~= nil and kind ~= "default" then
        fail(4, "%s: rope_scaling of type %s isn't known", path, names.quoted(kind))
      end
    end
  end
  if values.tie_word_embeddings ~= nil then
    out.untied = not (values.tie_word_embeddings == true)
  end
  out.eps = number "rms_norm_eps"
  return out
end

local function same(a, b)
  if type(a) == "table" and type(b) == "table" then
    for k, v in pairs(a) do if not same(v, b[k]) then return false end end
    for k in pairs(b) do if a[k] == nil then return false end end
    return true
  end
  return a == b or (a or false) == (b or false)
end

-- For describe: takes the chosen variant's row, gives the row to use.
function config.reader(path, variant)
  local values = wanted(read(path), path)
  return function(row)
    local wrong = {}
    for _, pair in ipairs(sizes) do
      local found, described = values[pair[2]], row[pair[2]]
      if found and described and found ~= described then
        wrong[#wrong + 1] = ("%s is %s, %s has %s = %s"):format(
          pair[1], found, row[1], pair[2], described)
      end
    end
    if values.rope and row.rope and not same(values.rope, row.rope) then
      wrong[#wrong + 1] = ("rope differs: theta is %s"):format(values.rope.theta)
    end
    if variant then
      if #wrong > 0 then
        fail(4, "%s isn't %s:\n  %s", path, variant, table.concat(wrong, "\n  "))
      end
      return row
    end
    local out = {}
    for k, v in pairs(row) do out[k] = v end
    for k, v in pairs(values) do out[k] = v end
    return out
  end
end

return config
