-- tests/repo/layers.lua -- Dependencies point one way: every #include, require and template
-- of the tree, held to the list below. A room may use itself and what stands behind it.

local spec = require "tests.support.spec"

local RUNTIME = { -- runtime/<room>
  base    = {},
  cpu     = {},     -- what emitted code sees, with model.h
  plan    = { "base" },
  text    = { "weights", "plan", "base" }, -- a GGUF file brings its vocabulary
  media   = { "plan", "base" },
  weights = { "plan", "base", "cpu" },
  device  = { "plan", "base", "cpu" },
  comm    = { "plan", "base" },
  engine  = { "device", "weights", "text", "media", "comm", "plan", "base", "cpu" },
  app     = { "engine", "device", "weights", "text", "media", "comm", "plan", "base" },
}

local GEN = { -- gen/<module or folder>; "gen" is the command itself
  size     = {},
  names    = {},
  json     = {},
  template = {},
  standard = { "size" },
  graph    = { "size" },
  op       = { "graph", "size" },
  tiles    = { "formats", "size" },
  formats  = { "op", "tiles", "graph", "size", "json" },
  cuda_tiles = { "tiles", "size" },
  launch   = {},
  ops      = { "op", "kv", "formats", "tiles", "cuda_tiles", "launch", "graph", "size" },
  node     = { "graph", "kv", "size" },
  kv       = { "graph" },
  layout   = { "formats", "graph", "node", "tiles" },
  membrane = { "names" },
  nn       = { "membrane", "op", "ops", "formats", "graph", "standard", "names", "size" },
  describe = { "nn", "op", "ops", "formats", "graph", "names" },
  hyperparameters = { "graph" },
  around   = { "graph" },
  config   = { "hyperparameters", "formats", "json", "names", "graph" },
  checkpoint = { "formats", "json" },
  passes   = { "op", "ops", "formats", "node", "tiles", "graph", "names", "size" },
  tables   = { "passes", "op", "ops", "formats", "node", "standard", "graph", "size" },
  emit     = { "hyperparameters", "around", "json", "tables", "layout", "kv", "op", "ops", "formats", "tiles", "node", "standard", "graph", "size", "template", "names" },
  generate = { "emit", "tables", "passes", "layout", "kv", "node", "formats", "graph" },
  command  = { "generate", "describe", "config", "checkpoint", "passes", "formats", "graph", "names", "new", "plan" },
  new      = { "names" },
  plan     = {},
}

local function set(list, own)
  local s = { [own] = true }
  for _, name in ipairs(list) do s[name] = true end
  return s
end

local function files(folder, pattern)
  local list = {}
  for path in spec.shell("find " .. folder .. " -type f | sort"):gmatch "[^\n]+" do
    if path:find(pattern) then list[#list + 1] = path end
  end
  return list
end

local function read(path)
  local file = assert(io.open(path))
  local text = file:read "a"
  file:close()
  return text
end

local function line_of(text, at)
  return select(2, text:sub(1, at):gsub("\n", "")) + 1
end

-- Every use of another file: allowed(path, what) returns nil or the reason why not.
local function check(paths, pattern, allowed)
  local wrong = {}
  for _, path in ipairs(paths) do
    local text = read(path)
    for at, what in text:gmatch(pattern) do
      local why = allowed(path, what)
      if why then wrong[#wrong + 1] = ("%s:%d: %s: %s"):format(path, line_of(text, at), what, why) end
    end
  end
  if #wrong > 0 then error("\n" .. table.concat(wrong, "\n"), 0) end
end

local INCLUDE = '()#include "([^"]+)"'
local REQUIRE = "()require[%s(]*[\"']([^\"']+)[\"']"

local function runtime_room(path)
  return path:match "^runtime/([^/]+)/" or "top"
end

spec("runtime: app -> engine -> device, weights, text, media, comm -> plan -> base", function()
  check(files("runtime", "%.[ch]$"), INCLUDE, function(path, what)
    if not what:find "^runtime/" then return "includes are written from the root of the tree" end
    local from, to = runtime_room(path), runtime_room(what)
    if what == "runtime/model.h" then return end -- the contract; it includes nothing of ours
    if what == "runtime/burin.h" then -- the engine fulfils it, the app uses it
      return from ~= "engine" and from ~= "app" and "burin.h is for engine and app" or nil
    end
    if from == "top" then from = "engine" end -- burin.h is the engine's face
    if not RUNTIME[from] then return "runtime/" .. from .. " is not in this list" end
    if not set(RUNTIME[from], from)[to] then return from .. " may not use " .. to end
  end)
end)

spec("model.h sees nothing of the runtime", function()
  check({ "runtime/model.h" }, INCLUDE, function() return "the contract stands alone" end)
end)

spec("emitted code sees model.h, runtime/cpu and what launches a kernel", function()
  local paths = files("templates", "%.[ch]u?$")
  for _, path in ipairs(files("gen/emit", "%.lua$")) do paths[#paths + 1] = path end
  check(paths, INCLUDE, function(_, what)
    local own = what == "runtime/model.h" or what == "runtime/device/cuda/launch.h"
    if own or what:find "^runtime/cpu/" or what:find "%${" or not what:find "/" then return end
    return "not for emitted code"
  end)
end)

local function gen_room(name)
  return name:match "^gen%.([%w_]+)" or name:match "^gen/([%w_]+)"
end

spec("gen -> passes, tables, emit -> op, formats -> graph -> size", function()
  local paths = files("gen", "%.lua$")
  check(paths, REQUIRE, function(path, what)
    if what:find "%.$" then return end -- "gen.ops." .. name: found by its name
    if not what:find "^gen%." then return "gen is plain Lua: no other modules" end
    local from, to = gen_room(path), gen_room(what)
    if not GEN[from] then return "gen/" .. from .. " is not in this list" end
    if not set(GEN[from], from)[to] then return from .. " may not use " .. to end
  end)
end)

spec("a description requires nothing: it sees nn and its own sandbox", function()
  check(files("models", "%.lua$"), REQUIRE, function() return "descriptions have no require" end)
end)

spec("malloc and free stand in runtime/base/arena.c alone", function()
  check(files("runtime", "%.[ch]$"), "()[^%w_]([mc]alloc)%s*%(", function(path)
    return path ~= "runtime/base/arena.c" and "take it from an arena" or nil
  end)
end)

spec("no path of somebody's machine stands in the tree", function()
  local paths = {}
  for path in spec.shell "git ls-files" :gmatch "[^\n]+" do
    if path:find "%.[chp]y?$" or path:find "%.lua$" or path:find "%.md$" then paths[#paths + 1] = path end
  end
  check(paths, "()/(home/%w+/)", function() return "an absolute path" end)
  check(paths, "()/(root/)", function(path) return path ~= "tests/repo/layers.lua" and "an absolute path" or nil end)
end)
