-- tests/gen/test_describe.lua -- The sandbox: what a description can't do, and that it is told
-- so at its own line, in seconds.

local spec = require "tests.support.spec"
local describe = require "tests.gen.describe"

do -- a loop that is stopped takes less of our time
  local limits = require("gen.describe").limits
  limits.instructions, limits.seconds = 3e5, 1
end

local function refused(text, line, part)
  local from = os.clock()
  local message = spec.raises(part, describe.text, text)
  if not message:find("models/x.lua:" .. line .. ":", 1, true) then
    error("expected models/x.lua:" .. line .. " in\n" .. message, 2)
  end
  if os.clock() - from > 5 then error(("took %.1f s"):format(os.clock() - from), 2) end
end

spec("a whole description is traced", function()
  local model = describe.text(describe.model())
  spec.equal(#model.programs, 1)
  spec.equal(model.programs[1].name, "step")
  spec.equal(#model.programs[1].outputs, 1)
end)

spec("the operating system isn't there", function()
  for _, name in ipairs { "os", "io", "debug", "require", "load", "dofile", "loadfile", "package",
      "pcall", "xpcall", "coroutine", "setmetatable", "getmetatable", "rawset", "collectgarbage", "_G", "_ENV.x" } do
    refused("local x = 1\nlocal y = " .. name .. "\n", 2, "isn't available in a description")
  end
end)

spec("a global is refused", function()
  refused("x = 1", 1, "'x' must be local")
end)

spec("an endless loop ends", function()
  refused("local i = 0\nwhile true do\n  i = i + 1\nend", 3, "does it loop for ever")
  refused("\nrepeat until false", 2, "does it loop for ever")
  refused("local function f() return f() end\nf()", 1, "does it loop for ever")
  refused("::a:: goto a", 1, "does it loop for ever")
  refused("for i = 1, math.huge do local x = i end", 1, "does it loop for ever")
end)

spec("an endless loop in a metamethod, a comparison or one of nn's callbacks ends", function()
  refused("local list = { 3, 1, 2 }\ntable.sort(list, function() while true do end end)", 2, "does it loop for ever")
  refused([[
local d = nn.dims { d_model = 8 }
local w = nn.each(function() while true do end end)
local block = nn.block { a = w, norm = nn.weight("n", { d.d_model }) }
function block.forward(w, x) return nn.rms_norm(x, w.norm, { eps = 1 }) end
local model = nn.model { e = nn.weight("e", { 3, d.d_model }), layers = nn.layers("%d.", { { 2, block } }) }
function model.step(w, b) return w.layers(nn.embedding(b.token_ids, w.e), b) end
return model]], 2, "does it loop for ever")
end)

spec("a pattern that would run for ever can't be written", function()
  for _, name in ipairs { "find", "match", "gmatch", "gsub", "rep" } do
    refused("\nlocal x = ('a'):" .. name .. "('x')", 2, "isn't available in a description")
    refused("\nlocal x = string." .. name, 2, "")
  end
end)

spec("no error can be caught", function()
  refused("local ok = pcall(function() while true do end end)", 1, "isn't available")
  refused("local c = coroutine.wrap(function() while true do end end)", 1, "isn't available")
end)

spec("a gigabyte of text is refused", function()
  refused("local s = 'x'\nfor i = 1, 30 do\n  s = s .. s\nend", 2, "it uses more than")
  refused("local s = 'x'\nwhile true do s = s .. s .. s .. s end", 2, "it uses more than")
  refused("local t = {}\nfor i = 1, 1e9 do t[i] = 'x' end\nreturn table.concat(t)", 2, "")
  refused("local s = 'xxxxxxxx'\nfor i = 1, 12 do s = s .. s end\nlocal t = {}\nfor i = 1, 100 do t[i] = s end\nlocal x = table.concat(t)", 5, "concat: a string beyond 64 KiB")
  refused("local x = string.format('%s', ('x'):rep(9))", 1, "")
end)

spec("a gigabyte from one expression is refused", function()
  local copies = {}
  for i = 1, 150 do copies[i] = "s" end
  copies = table.concat(copies, " .. ")
  refused("local s = 'x'\nfor i = 1, 16 do s = s .. s end\nlocal t = " .. copies:gsub("s", "(s .. s)") .. "\n", 3, "it uses more than")
  for i = 151, 400 do copies = copies .. " .. s" end
  refused("local s = 'x'\nlocal t = " .. copies .. "\n", 1, "C stack overflow")
end)

spec("a table that grows for ever is refused", function()
  refused("local t = {}\nwhile true do\n  t[#t + 1] = {}\nend", 3, "stopped")
  refused("local t = {}\nwhile true do\n  t = { t, t }\nend", 3, "stopped")
end)

spec("a table whose border lies far out costs no time", function()
  refused("local t = {}\nfor i = 0, 62 do t[1 << i] = 1 end\ntable.insert(t, 1, 0)\nerror 'done'", 4, "done")
end)

spec("another file can't be read", function()
  for _, name in ipairs { "../../etc/passwd", "/etc/passwd", "..", "a/b", "x\\0y", "", "~root", ".hidden" } do
    refused(("\n\nlocal x = nn.include %q"):format(name), 3, "isn't the name of a part")
  end
  refused("local x = nn.include 'nothing_here'", 1, "there is no part")
end)

spec("compiled Lua isn't a description", function()
  local text = string.dump(function() end)
  refused(text, 1, "compiled Lua")
end)

spec("a mistake of syntax has its line", function()
  refused("local x = 1\nlocal y = = 2", 2, "unexpected symbol")
end)

spec("a mistake of Lua has its line", function()
  refused("local x\nlocal y = x.z", 2, "attempt to index a nil value")
  refused("local x = nn.dims { n_a = 1 }\nreturn x.n_b", 2, 'dims has no "n_b"')
end)

spec("nn, batch and weights can't be changed", function()
  refused("nn.linear = nil", 1, "nn can't be changed")
  refused(describe.model(nil, "  batch.x = 1"), 29, "batch can't be changed")
  refused(describe.model(nil, "  w.x = 1"), 29, "model can't be changed")
end)

spec("a text of a table is refused: it would differ from run to run", function()
  refused("local x = tostring({})", 1, "the same in every run")
  refused("local x = string.format('%s', {})", 1, "the same in every run")
  refused("local x = string.format('%p', 'x')", 1, "plain conversions")
end)

spec("pairs goes in a fixed order", function()
  refused([[
local s = ""
for k in pairs { z = 1, a = 2, m = 3, [2] = 4, [1] = 5 } do s = s .. k .. " " end
error(s)]], 3, "1 2 a m z")
end)

-- ---- What a description holds of ours -----------------------------------------------------

-- Every kind of handle, where it can be had: an expression, and the line of describe.model's
-- text that it stands in.
local handles = {
  { "d", 30 }, { "d.d_q", 30 }, { "d.n_heads * 2", 30 }, { "nn.tokens", 30 }, { "nn.max_context", 30 },
  { "embed", 30 }, { "block", 30 }, { "model", 30 }, { "w", 30 }, { "w.embed", 30 }, { "w.layers", 30 },
  { "w.layers:range(0, 1)", 30 }, { "batch", 30 }, { "batch.token_ids", 30 },
  { "nn.each { 1, 2 }", 30 }, { "nn.kv()", 30 }, { "nn.state { { 4 }, per = 'sequence' }", 30 },
  { "nn.embedding(batch.token_ids, w.embed)", 30 }, { "w", 20 }, { "x", 20 }, { "kv", 20 }, { "w.wq", 20 },
  { "h", 20 }, { "kv:append(nn.linear(h, w.wk), nn.linear(h, w.wv))", 20 },
}

local function each_handle(action, part)
  for _, row in ipairs(handles) do
    local text = action:gsub("HANDLE", "(" .. row[1]:gsub("%%", "%%%%") .. ")")
    local block, step = text .. "\n  return x", nil
    if row[2] == 30 then block, step = nil, "\n  " .. text end
    local ok, why = pcall(refused, describe.model(block and "  " .. block, step), row[2], part)
    if not ok then error(row[1] .. ": " .. why, 2) end
  end
end

spec("nothing of ours can be read through a handle", function()
  for _, key in ipairs { "op", "def", "shape", "name", "id", "weights", "input", "role", "text", "fixed",
      "members", "programs", "__index", "__metatable", "settings", "factors", "where" } do
    each_handle(("local z = HANDLE[%q]"):format(key), " ha")
  end
  each_handle("local z = HANDLE[1]", " ha")
  each_handle("local z = HANDLE[HANDLE]", " ha")
end)

spec("nothing of ours can be written through a handle", function()
  for _, key in ipairs { "name", "text", "role", "def", "input", "shape", "kv", "__index", "__gc", "__close" } do
    each_handle(("local z = HANDLE; z[%q] = 'evil(void){}'"):format(key), "")
  end
  each_handle("local z = HANDLE; z.forward = 1", "")
end)

spec("a handle is no list, no text and has no length", function()
  each_handle("local z = #HANDLE", "has no length")
  each_handle("for k in pairs(HANDLE) do end", "a plain table was expected")
  each_handle("table.insert(HANDLE, 1)", "a plain table was expected")
  each_handle("table.remove(HANDLE)", "a plain table was expected")
  each_handle("local z = table.unpack(HANDLE)", "a plain table was expected")
  each_handle("table.sort(HANDLE)", "a plain table was expected")
  each_handle("local z = nn.dims(HANDLE)", "give a table of sizes")
  each_handle("local z = nn.block(HANDLE)", "give a table of weights")
  each_handle("local z = nn.weight('n', HANDLE)", "a shape is a list of sizes")
  each_handle("local z = nn.include(HANDLE)", "isn't the name of a part")
end)

spec("nothing has a metatable of the description's: nothing runs when a variable or a loop ends", function()
  each_handle("local z <close> = HANDLE", "a non-closable value")
  each_handle("for _ in function() end, nil, nil, HANDLE do end", "a non-closable value")
  refused("local z <close> = {}", 1, "a non-closable value")
  refused("local t = { __index = function() while true do end end }\nlocal z = t.x.y", 2, "attempt to index a nil value")
end)

spec("a method is for its own kind", function()
  refused(describe.model "  kv.append(x, h, h)\n  return x", 20, "append: say kv:append")
  refused(describe.model "  kv.append({ state = 'kv', settings = {} }, h, h)\n  return x", 20, "append: say kv:append")
  refused(describe.model(nil, "\n  local z = w.layers.range(block, 0, 1)"), 30, "range: say w.ROLE:range")
  refused(describe.model(nil, "\n  local z = w.layers.range({ layers = {} }, 0, 1)"), 30, "range: say w.ROLE:range")
end)

spec("a size is compared, computed and told as before", function()
  refused([[
local d = nn.dims { n_heads = 6, d_head = 8, d_other = 48 }
d.d_q = d.n_heads * d.d_head
assert(d.d_q == d.d_other and d.d_q ~= d.d_head and d.d_head < d.d_q and d.d_q <= 48 and 47 < d.d_q)
assert(nn.value(d.d_q - 3) == 45 and nn.value(d.d_q / d.n_heads) == 8 and nn.value(2 + d.d_q * 2) == 98)
error(("%s; %s"):format(d.d_q, d.n_heads * d.d_head) .. "; " .. tostring(nn.tokens + 1))]], 5, "D_Q; N_HEADS * D_HEAD; tokens + 1")
end)

spec("what a description does with a table afterwards changes nothing", function()
  local model = describe.text [[
local d = nn.dims { n_vocab = 64, d_model = 32 }
local shape, schedule, roles, settings = { d.n_vocab, d.d_model }, {}, {}, { eps = 1e-5 }
local each = { 1, 2 }
roles.each = nn.each(each)
roles.norm = nn.weight("n", { d.d_model })
roles.e = nn.weight("e", shape)
each[1], each[2], shape[1], shape[2] = nil, nil, "x", { }
local e = roles.e
roles.e = nil
local block = nn.block(roles)
roles.norm, roles.evil = nil, "evil"
function block.forward(w, x)
  local y = nn.rms_norm(x, w.norm, settings)
  settings.eps = "evil"
  return y
end
schedule[1] = { 2, block }
local model_roles = { e = e, layers = nn.layers("l.%d.", schedule) }
schedule[1][2], schedule[1] = nil, "evil"
local model = nn.model(model_roles)
model_roles.e, model_roles.layers = nil, nil
function model.step(w, batch)
  return nn.linear(nn.rows(w.layers(nn.embedding(batch.token_ids, w.e)), batch.output_rows), w.e)
end
return model
]]
  spec.equal(#model.groups[1].layers, 2)
  spec.equal(model.programs[1].ops[2].sections[1].ops[1].attrs.eps, 1e-5)
  describe.planned(model, { quant = "f32" })
end)

spec("nothing of the description's can be called when its run is over", function()
  local model = describe.text((describe.model():gsub("attn_norm = ", "scale = nn.each(function() return 1 end), attn_norm = ")))
  local seen = {}
  local function walk(x, path)
    if type(x) == "function" and debug.getinfo(x, "S").source == "@models/x.lua" then
      error(path .. " is a function of the description's")
    end
    if type(x) ~= "table" or seen[x] then return end
    seen[x] = true
    for k, v in next, x do
      walk(k, path .. "'s key")
      walk(v, path .. "." .. tostring(k))
    end
    walk(debug.getmetatable(x), path .. "'s metatable")
  end
  walk(model, "model")
end)

spec("a function is no attribute, no setting, no recipe and no shape", function()
  refused(describe.model "  local y = nn.rms_norm(x, w.attn_norm, { eps = function() end })\n  return y", 20, "eps must be a number, got function")
  refused("local c = nn.kv { window = function() end }", 1, "kv: window")
  refused("local v = nn.variants { { 'x', recipe = function() end } }", 1, "can't be a recipe")
  refused("local v = nn.variants { { 'x', recipe = '../x' } }", 1, "can't be a recipe")
  refused("local w = nn.weight('x', { function() end })", 1, "a size is an integer")
  refused("local w = nn.each { function() end }", 1, "")
end)

spec("operations that only passes make can't be written", function()
  for _, name in ipairs { "convert", "copy", "kv_append", "linear_glu", "rope_angles" } do
    refused(describe.model(("  local y = nn.%s(x)\n  return x"):format(name)), 20, "nn has no")
  end
end)

-- ---- Numbers --------------------------------------------------------------------------------

spec("a number that no float has is told at its line", function()
  for _, number in ipairs { "0/0", "1/0", "-1/0", "1e300" } do
    refused(describe.model(("  x = x * (%s)\n  return x"):format(number)), 20, "factor must be a finite number")
    refused(describe.model(("  x = nn.rms_norm(x, w.attn_norm, { eps = %s })\n  return x"):format(number)), 20, "eps must be a finite number")
  end
  refused(describe.model "  x = nn.rms_norm(x, w.attn_norm, { eps = -1 })\n  return x", 20, "eps must not be negative")
end)

spec("rope's attributes give frequencies, or are refused", function()
  for _, row in ipairs {
    { "theta = 1e-60", "a frequency isn't finite" }, { "theta = 1e4, d_head = 0", "d_head must be positive" },
    { "theta = 1e4, d_head = -8", "d_head must be positive" }, { "theta = 1e4, d_head = 8.5", "a size is an integer" },
    { "theta = 1e4, scaling = 'llama3', factor = 0, low_factor = 1, high_factor = 1, original = 0", "a frequency isn't finite" },
    { "theta = 1e4, scaling = '*/ evil'", "scaling can't be" },
  } do
    refused(describe.model(("  local q = nn.rope(nn.linear(h, w.wq), batch.positions, { %s })\n  return x"):format(row[1])), 20, row[2])
  end
end)

spec("a size can't wrap", function()
  refused("local d = nn.dims { d_a = 2147483647 }\nlocal s = d.d_a * d.d_a", 2, "a size is beyond 2^53")
  refused("local s = nn.tokens\nfor i = 1, 70 do s = s + s end", 2, "a size is beyond 2^53")
  refused("local s = nn.tokens * math.tointeger(-2^63)", 1, "a size is beyond 2^53")
end)

-- ---- Time -----------------------------------------------------------------------------------

spec("long texts end soon, whatever is done with them", function()
  local grow = "local s = '0'\nfor i = 1, 20 do s = s .. s end\n" -- 1 MiB
  for _, text in ipairs {
    "while true do local t = s:upper() end", "while true do tonumber(s) end", "while true do tonumber('0x' .. s) end",
    "while true do local t = s:sub(2) end", "while true do local t = (s):format() end", "while true do local t = table.concat { s } end",
    "local u = s .. '1'\nwhile s <= u do u = u end", "local u, v = s .. '1', s .. '1'\nwhile u == v do u = u end",
    "while true do local t = s + 1 end", "while true do local t = s .. '1' end",
    "local t = {}\nwhile true do t[s .. '1'] = 1 end", "while true do nn.include(s) end", "while true do local t = s:byte(1, -1) end",
  } do
    local from = os.clock()
    spec.raises("models/x.lua:", describe.text, grow .. text)
    if os.clock() - from > 3 then error(("took %.1f s: %s"):format(os.clock() - from, text)) end
  end
end)

spec("texts of 64 KiB cost what C takes for them", function()
  local grow = "local s = '0'\nfor i = 1, 16 do s = s .. s end\n"
  refused(grow .. "while true do local t = s:upper() end", 3, "does it loop for ever")
  refused(grow .. "while true do local t = ('%s%s%s%s'):format(s, s, s, s) end", 3, "does it loop for ever")
  refused(grow .. "while true do local t = tonumber(s) end", 3, "does it loop for ever")
end)

spec("many small things that are kept make no collection for each line", function()
  refused("local keep = {}\nfor i = 1, 11000 do keep[i] = { i } end\nlocal s = 'x'\nfor i = 1, 18 do s = s .. s end\nwhile true do local t = s .. '1' end", 5, "stopped")
end)

spec("a million of anything is refused", function()
  for _, text in ipairs {
    "nn.weight('x' .. i, { 3 })", "nn.block { }", "nn.each { 1 }", "nn.kv()", "local s = nn.tokens * i",
    "local t = nn.dims { ['n_x' .. i] = i }", "nn.layers('%d', { { 4096, nn.block { } } })",
  } do
    refused(("\nfor i = 1, 1e6 do %s end"):format(text), 2, "stopped")
  end
  refused(describe.model "  for i = 1, 1e6 do local y = nn.silu(x) end\n  return x", 20, "")
  refused(describe.model(nil, "  for i = 1, 1e6 do local y = nn.input('i' .. i, { nn.tokens, 4 }) end"), 29, "input: more than 32 inputs")
end)

spec("a recursion ends", function()
  refused("local function f() return 1 + f() end\nf()", 1, "stopped")
  refused("local function f() table.sort({ 2, 1 }, f) end\nf()", 1, "")
  refused("local function f(a, b) return table.sort({ 2, 1 }, f) end\nf()", 1, "")
end)

-- ---- Names --------------------------------------------------------------------------------

local hostile = { "a b", "a'", 'a"', "a\n", "*/", "/*", "a%d", "${x}", "int", "a-b", "Ä", "9a", "", "a;b", "d_\0", "burin_x", "A" }

spec("a size's name is an identifier of a list of letters", function()
  for _, name in ipairs(hostile) do
    refused(("\nlocal d = nn.dims { [%q] = 1 }"):format(name), 2, "can't be a size's name")
  end
end)

spec("a size's name is none that a header or a template has", function()
  for _, name in ipairs { "strip", "int32_max", "uint8_max", "fp_nan", "m_pi", "block", "group", "n_", "d" } do
    refused(("\nlocal d = nn.dims { [%q] = 1 }"):format(name), 2, "can't be a size's name")
  end
end)

spec("a program's name isn't another family's", function()
  refused("local m = nn.model { e = nn.weight('x', { 1 }) }\nfunction m.exact_step() end", 2, "can't be a program's name")
end)

spec("an input's name isn't a count's, nor one that an engine fills", function()
  for _, name in ipairs { "n_tokens", "max_pages", "call" } do
    refused(describe.model(nil, ("  local i = nn.input(%q, { nn.tokens, 4 })"):format(name)), 29, "can't be a name")
  end
  refused(describe.model(nil, "  local i = nn.input('positions', { nn.tokens, 4 })"), 29, "say batch.positions")
end)

spec("a role is an identifier", function()
  for _, name in ipairs(hostile) do
    refused(("\nlocal b = nn.block { [%q] = nn.weight('x', { 1 }) }"):format(name), 2, "can't be a role")
    refused(("\nlocal b = nn.model { [%q] = nn.weight('x', { 1 }) }"):format(name), 2, "can't be a role")
  end
end)

spec("a program's name is an identifier", function()
  for _, name in ipairs(hostile) do
    refused(("local m = nn.model { e = nn.weight('x', { 1 }) }\nm[%q] = function() end; return m"):format(name):gsub("\\\n", "\\n"), 2, "can't be a program's name")
  end
end)

spec("a variant's name can be a file's", function()
  for _, name in ipairs { "a/b", "../x", "", "a b", "x\n", "'", "*/", "..", ".x", "-x" } do
    refused(("local v = nn.variants { { %q } }"):format(name), 1, "can't be a name")
  end
end)

spec("an output's or input's name is an identifier", function()
  for _, name in ipairs(hostile) do
    refused(describe.model(nil, ("  return nn.tap(%q, nn.embedding(batch.token_ids, w.embed))"):format(name):gsub("\\\n", "\\n")), 29, "can't be a name")
    refused(describe.model(nil, ("  return nn.input(%q, { 1 }, 'f32')"):format(name):gsub("\\\n", "\\n")), 29, "can't be a name")
  end
end)

spec("a checkpoint's name is printable, and one string in C whatever it holds", function()
  refused("local w = nn.weight('a\\nb', { 1 })", 1, "must be printable ASCII")
  refused("local w = nn.weight('', { 1 })", 1, "must be printable ASCII")
  local text = describe.model():gsub('"q.weight"', function() return [["q\"; */ %d ${x} ??/ \\"]] end)
  local model = describe.text(text)
  local families = describe.planned(model, { quant = "f32" })
  local c = require("gen.emit.tables").source(model, families, {})
  spec.contains(c, [["l.0.q\"; */ %d ${x} \?\?/ \\"]])
end)

spec("a description's line in a comment ends no comment", function()
  local text = require "gen.emit.text"
  spec.equal(text.comment "a */ b /* c ??/ \xff\n", "a * / b / * c ? ?/ ? ?")
end)
