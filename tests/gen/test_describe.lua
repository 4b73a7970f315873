-- tests/gen/test_describe.lua -- The sandbox: what a description can't do, and that it is told
-- so at its own line, in seconds.

local spec = require "tests.support.spec"
local describe = require "tests.gen.describe"

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

-- ---- Names --------------------------------------------------------------------------------

local hostile = { "a b", "a'", 'a"', "a\n", "*/", "/*", "a%d", "${x}", "int", "a-b", "Ä", "9a", "", "a;b", "d_\0", "burin_x", "A" }

spec("a size's name is an identifier of a list of letters", function()
  for _, name in ipairs(hostile) do
    refused(("\nlocal d = nn.dims { [%q] = 1 }"):format(name), 2, "can't be a size's name")
  end
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
