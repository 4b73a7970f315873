-- tests/gen/test_template.lua -- What a template may say and how its errors read.

local template = require "gen.template"

local spec = require "tests.support.spec"
local equal = spec.equal

local function message_of(text, params)
  local ok, message = pcall(template.render, text, "templates/cpu/x.c", params or {})
  assert(not ok, "an error was expected")
  return message
end

spec("a hole takes a value, a field or a call", function()
  local weight = { c = "uint16_t", load = function(e) return "burin_f32(" .. e .. ")" end }

  local text = template.render(
    "const ${weight.c} *w; /* (${d}) */\nx = ${weight.load 'w[i]'} * ${f32(eps)};\n",
    "t", { weight = weight, d = "D_MODEL", eps = 1e-5 })

  equal(text, "const uint16_t *w; /* (D_MODEL) */\nx = burin_f32(w[i]) * 1e-05f;\n")
end)

spec("lines with % are Lua and leave nothing behind", function()
  local text = template.render([[
% -- In: rows.
% for i = 1, rows do
  % if i ~= 2 then
row(${i});
  % end
% end
]], "t", { rows = 3 })

  equal(text, "row(1);\nrow(3);\n")
end)

spec("a float literal is the shortest that reads back as the same float", function()
  equal(template.f32(0.1), "0.1f")
  equal(template.f32(1), "1.0f")
  equal(template.f32(1 / 3), "0.33333334f")
  equal(template.f32(16777216), "16777216.0f")
  equal(template.f32(1e-30), "1e-30f")
end)

spec("an undefined name is an error at its line", function()
  equal(message_of("% -- In: d\na\nb\nint x[${d}];\n"),
    "templates/cpu/x.c:4: 'd' is not defined")
  equal(message_of("a\n% if d then\n% end\n"), "templates/cpu/x.c:2: 'd' is not defined")
  equal(message_of("\n${w.size}", { w = {} }),
    "templates/cpu/x.c:2: 'w.size' is not defined, not text or an integer")
end)

spec("a mistake in the Lua of a template is an error at its line", function()
  assert(message_of("a\n% if true the\n"):find("templates/cpu/x.c:2:", 1, true))
  assert(message_of("a\n${1 +}\n"):find("templates/cpu/x.c:2:", 1, true))
  equal(message_of("a\nint x[${d;\n"), "templates/cpu/x.c:2: '${' is not closed")
  equal(message_of("% d = 1\n"), "templates/cpu/x.c:1: 'd' must be local")
end)

spec("a float in a hole must say how it is written", function()
  equal(message_of("${1 / 2}"),
    "templates/cpu/x.c:1: '1 / 2' is the float 0.5: write f32(...) or make it an integer")
end)

spec("comments behind adjacent lines are aligned once holes are filled", function()
  local text = template.render([[
void f(
        float *${y}, /* out */
        int n) /* rows */
{
    int a; /* one */

    int bbbb; /* two */
    g();
    int c; /* "three" */
} /* f */
]], "t", { y = "residual" })

  equal(text, [[
void f(
        float *residual, /* out */
        int n)           /* rows */
{
    int a; /* one */

    int bbbb; /* two */
    g();
    int c; /* "three" */
} /* f */
]])
end)

-- clang-format is the judge of what aligned means.
local probe = io.popen "command -v clang-format"
local has_clang_format = probe:read "a" ~= ""
probe:close()
if has_clang_format then
  spec("clang-format changes nothing in aligned comments", function()
    local lines, long = { "void f(void)", "{" }, ("x"):rep(40)
    local lengths = { 1, 9, 30, 3, 25, 40, 12, 7, 38, 2, 20, 5, 33, 15, 28 }
    for i, n in ipairs(lengths) do
      lines[#lines + 1] = ("    int %s; /* %s */"):format(
        ("v"):rep(n) .. i, ("c"):rep(lengths[#lengths + 1 - i] * 2))
      if i % 6 == 0 then lines[#lines + 1] = "    " .. long .. "();" end
    end
    lines[#lines + 1] = "}"
    local text = template.render(table.concat(lines, "\n"), "t", {})

    local path = os.tmpname()
    local file = assert(io.open(path .. ".c", "w"))
    file:write(text)
    file:close()
    local pipe = io.popen("clang-format --style=file:.clang-format " .. path .. ".c")
    local formatted = pipe:read "a"
    pipe:close()
    os.remove(path)
    os.remove(path .. ".c")

    equal(text, formatted)
  end)
end
