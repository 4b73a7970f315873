-- tests/gen/test_graph.lua -- verify() finds what is wrong with a program, copies share nothing
-- that a pass changes, and every pass leaves a program true.

local spec = require "tests.support.spec"
local describe = require "tests.gen.describe"
local generate = require "gen.generate"
local graph = require "gen.graph"
local node = require "gen.node"
local passes = require "gen.passes"

local function traced() return describe.text(describe.model()).programs[1] end

local function layers_of(program)
  for _, op in ipairs(program.ops) do if op.layers then return op end end
end

spec("a traced program is true", function()
  spec.equal(graph.verify(traced()), true)
end)

local function fault(program, part)
  local ok, why = graph.verify(program)
  spec.equal(ok, false)
  spec.contains(why, part)
  spec.contains(why, "models/x.lua:")
end

spec("an operation that reads what isn't made yet is found", function()
  local program = traced()
  program.ops[1], program.ops[2] = program.ops[2], program.ops[1]
  fault(program, "x isn't made yet")
end)

spec("an operation that stands twice is found", function()
  local program = traced()
  table.insert(program.ops, 2, program.ops[1])
  fault(program, "its result is made twice")
end)

spec("a result that belongs to another operation is found", function()
  local program = traced()
  program.ops[1].result.op = program.ops[2]
  fault(program, "its result belongs to another operation")
end)

spec("a block that leaves out what its result needs is found", function()
  local program = traced()
  local ops = layers_of(program).sections[1].ops
  table.remove(ops, #ops)
  fault(program, "a block's result isn't made by it")
end)

spec("an output that isn't made is found", function()
  local program = traced()
  table.remove(program.ops, #program.ops)
  local ok, why = graph.verify(program)
  spec.equal(ok, false)
  spec.contains(why, "output 'logits' isn't made")
end)

spec("a copy is another program with the same text", function()
  local program = traced()
  local copy = graph.copy(program)
  spec.equal(graph.text(copy), graph.text(program))
  spec.equal(graph.verify(copy), true)
  local tensors = {}
  for _, row in ipairs(graph.flat(program)) do tensors[row.op.result] = true end
  for _, row in ipairs(graph.flat(copy)) do
    if tensors[row.op.result] then error "a copy shares a result" end
    for _, input in ipairs(row.op.inputs) do
      if tensors[input.tensor] then error "a copy reads the original's tensor" end
    end
  end
end)

spec("a copied section reads what is outside of it, and makes its own inside", function()
  local program = traced()
  local section = layers_of(program).sections[1]
  local copy = graph.copy_section(section)
  spec.equal(#copy.ops, #section.ops)
  for i, op in ipairs(copy.ops) do
    if op.result == section.ops[i].result then error "shared" end
    spec.equal(op.result.op == op, true)
  end
end)

spec("every pass leaves every program true, for every family and recipe", function()
  for _, recipe in ipairs { "f32", "bf16", "q4_1", "q8_0" } do
    for _, row in ipairs { { "llama", "smollm2-135m" }, { "llama_tiny", "small" }, { "llama_tiny", "groups" } } do
      local model = describe.file(row[1], row[2])
      generate.prepare(model, { quant = recipe, target = "any" })
      for _, family in ipairs(generate.families "any") do
        local context = { model = model, family = family, dim_name = node.namer(model) }
        for _, name in ipairs(passes.names) do
          local program, why = passes.run(model.programs[1], context, name) -- verifies behind each
          if not program then error(why) end
        end
      end
    end
  end
end)

spec("passes don't change the traced program", function()
  local model = describe.file "llama"
  local before = graph.text(model.programs[1])
  describe.planned(model, {})
  spec.equal(graph.text(model.programs[1]), before)
end)

spec("a sum whose old value is still read isn't made in place", function()
  local model = describe.text(describe.model [[
  local a = nn.attention(nn.linear(h, w.wq), kv:append(nn.linear(h, w.wk), nn.linear(h, w.wv)))
  local y = x + nn.linear(a, w.wo)
  local z = y + nn.linear(nn.silu(nn.linear(h, w.w_up)), w.w_down)
  return x + z]])
  local families = describe.planned(model, { quant = "f32" })
  local program = families[1].programs[1]
  local x = layers_of(program).sections[1].x
  local into = {}
  for _, row in ipairs(graph.flat(program)) do
    if row.op.into then into[#into + 1] = graph.root(graph.input(row.op, row.op.into)) == graph.root(x) end
  end
  spec.equal(into, { false }) -- y takes nothing's place but z takes y's
end)

spec("rope of a tensor that is read again turns a copy", function()
  local model = describe.text(describe.model [[
  local q = nn.linear(h, w.wq)
  local r = nn.rope(q, batch.positions, { theta = 100 })
  local a = nn.attention(r, kv:append(nn.linear(h, w.wk), nn.linear(h, w.wv)))
  x = x + nn.linear(a + q, w.wo)
  return x + nn.linear(nn.silu(nn.linear(h, w.w_up)), w.w_down)]])
  local names = {}
  for _, row in ipairs(graph.flat(describe.planned(model, { quant = "f32" })[1].programs[1])) do
    names[#names + 1] = row.op.def.name
  end
  spec.contains(table.concat(names, " "), "copy rope")
end)

spec("the stream from layer to layer lies in one place, whatever a block returns", function()
  local model = describe.text(describe.model [[
  local a = nn.attention(nn.linear(h, w.wq), kv:append(nn.linear(h, w.wk), nn.linear(h, w.wv)))
  local o = nn.linear(a, w.wo)
  return nn.silu(nn.linear(nn.silu(nn.linear(o, w.w_up)), w.w_down))]])
  local program = describe.planned(model, { quant = "f32" })[1].programs[1]
  local item = layers_of(program)
  local section = item.sections[1]
  spec.equal(graph.root(section.result) == graph.root(section.x), true)
  spec.equal(graph.root(item.result) == graph.root(item.x), true)
  spec.equal(section.ops[#section.ops].def.name, "copy")
end)

spec("a sum that ends a block takes the place of the stream, without a copy", function()
  local model = describe.text(describe.model [[
  local a = nn.attention(nn.linear(h, w.wq), kv:append(nn.linear(h, w.wk), nn.linear(h, w.wv)))
  x = x + nn.silu(nn.linear(a, w.wo))
  return x + nn.silu(nn.linear(nn.silu(nn.linear(h, w.w_up)), w.w_down))]])
  local program = describe.planned(model, { quant = "f32" })[1].programs[1]
  local section = layers_of(program).sections[1]
  local last = section.ops[#section.ops]
  spec.equal(last.def.name, "add")
  spec.equal(graph.root(last.result) == graph.root(section.x), true)
end)
