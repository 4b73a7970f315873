-- gen/nn/programs.lua -- Traces a model's programs: their inputs, calls of layers, results, and what an
-- engine asks of them (gen/standard.lua).

local graph = require "gen.graph"
local names = require "gen.names"
local size = require "gen.size"
local standard = require "gen.standard"

local quoted = names.quoted

local MAX_INPUTS = 32
local MAX_PROGRAMS = 8 -- BURIN_MAX_PROGRAMS, runtime/plan/plan.h

-- What rows of a program are counted in.
local counted = {
  step = { tokens = true, sequences = true, outputs = true },
  encoder = { soft = true },
}
counted.draft = counted.step

return function(t)
  local model, words, face, fail, is, kinds = t.model, t.words, t.face, t.fail, t.is, t.kinds
  local source, to_shape, describe_type = t.source, t.to_shape, t.describe_type
  local value_in, new_state, range, dims = t.value_in, t.new_state, t.range, t.dims
  local expose, wrap, unwrap, is_plain = face.expose, face.wrap, face.unwrap, face.is_plain

  local function use_input(name, shape, dtype)
    if not t.program then fail("%s: inputs belong into a program", name) end
    for _, input in ipairs(t.program.inputs) do
      if input.name == name then
        local known = input.tensor
        if known.dtype ~= dtype or not size.same_shape(known.shape, shape) then
          fail("input: %s is %s in %s already", name, known.dtype, size.shape_text(known.shape))
        end
        return known
      end
    end
    if #t.program.inputs >= MAX_INPUTS then fail("input: more than %d inputs", MAX_INPUTS) end
    local where = source.where()
    local tensor = graph.tensor {
      input = name, shape = shape, dtype = dtype, file = where.file, line = where.line,
    }
    t.program.inputs[#t.program.inputs + 1] = { name = name, tensor = tensor }
    return tensor
  end
  function words.input(name, shape, dtype)
    if not t.program then fail("input: declare it within a program") end
    if not names.is_input(name) then
      fail("input: %s can't be a name: %s", quoted(name), names.RULE)
    end
    if standard.shapes[name] then
      fail("input: %s is one that an engine fills: say batch.%s", name, name)
    end
    if not graph.dtype_bytes[dtype or "f32"] then
      fail("input: unknown dtype %s", quoted(dtype))
    end
    return (use_input(name, to_shape("input", shape), dtype or "f32"))
  end

  function words.tap(name, x)
    if not t.program or t.tracing or not graph.is_tensor(x) then
      fail("tap: give a name and a tensor, in a program and not in a block's forward")
    end
    if not names.is_identifier(name) then
      fail("tap: %s can't be a name: %s", quoted(name), names.RULE)
    end
    for _, output in ipairs(t.program.outputs) do
      if output.name == name then fail("tap: there is an output %s already", name) end
    end
    t.program.outputs[#t.program.outputs + 1] = { name = name, tensor = x }
    return x
  end

  -- ---- Tracing

  local batch = setmetatable({}, kinds.batch)
  face.kind(kinds.batch, "batch", {
    read = function(_, name)
      if not standard.shapes[name] then fail("batch has no %s", quoted(name)) end
      local tensor = use_input(name, standard.shapes[name], "i32")
      return wrap(tensor)
    end,
  })

  -- What a function finds by role in its `w`.
  local function by_role(values, what)
    return wrap(setmetatable({ values = values, what = what }, kinds.weights))
  end
  face.kind(kinds.weights, "w", {
    read = function(self, name)
      if self.values[name] == nil then fail("%s has no %s", self.what, quoted(name)) end
      return wrap(self.values[name])
    end,
    write = function(self) fail("%s can't be changed", self.what) end,
  })

  -- A layer's function is handed one place in the pages, and what a step has appended there must
  -- not be written over by the same step.
  local function check_caches(section)
    local cache
    local changed = {} -- a step changes a state once
    for _, node in ipairs(section.ops) do
      local state = node.def.state == "state" and node.def.takes
      for name in pairs(state or {}) do
        local tensor = state[name] == "state" and graph.input(node, name)
        if tensor and changed[tensor] then
          fail("block '%s': %s is changed by two operations", section.kind.name, tensor.role)
        end
        changed[tensor or node] = true
      end
      for _, input in ipairs(node.inputs) do
        local state = input.tensor.state == "kv" and input.tensor
        if state and cache and state ~= cache then
          fail("block '%s' uses two caches: its own, or another layer's", section.kind.name)
        end
        cache = cache or state
      end
      if node.def.state == "kv" then
        for _, layer in ipairs(section.layers) do
          local key = section.group.role .. " " .. layer
          if t.program.appended[key] then
            fail("%s: layer %d has appended to its cache already", section.group.role, layer)
          end
          t.program.appended[key] = true
        end
      end
    end
  end

  -- A ring is written when all of the block's operations have read what was in it.
  local function rings_last(section)
    local ops = section.ops
    for i, node in ipairs(ops) do
      local ring = node.def.state == "kv" and graph.input(node, "kv")
      local last = i
      for j = i + 1, ring and ring.window > 0 and #ops or i do
        for _, input in ipairs(ops[j].inputs) do if input.tensor == ring then last = j end end
      end
      if last > i then
        table.insert(ops, last, table.remove(ops, i))
        return
      end
    end
  end

  local function is_read(section, state)
    for _, node in ipairs(section.ops) do
      for _, input in ipairs(node.inputs) do if input.tensor == state then return true end end
    end
    return false
  end

  -- Trace each kind of the group once: a call w.layers(x, batch).
  local function call_layers(self, x, ...)
    x = unwrap(x)
    if not graph.is_tensor(x) or x.weight or x.dtype ~= "f32" or #x.shape ~= 2 then
      fail("layers: x must be a tensor of rows, got %s", describe_type(x))
    end
    if not t.program or t.ops ~= t.program.ops then fail("layers can't be called within a block") end
    if not (self.group or self).role then fail("layers: give them a role in nn.model { ... }") end
    if t.made_in[x] ~= t.ops then fail("layers: x isn't computed by this program") end
    local where = source.where()
    local item = {
      layers = self.group or self, x = x, inputs = {}, sections = {},
      file = where.file, line = where.line, lines = { where.line },
    }
    local of_block = {}
    for layer = self.first, self.last do
      local block = self.layers[layer + 1]
      local section = of_block[block]
      if not section then
        section = { kind = block, layers = {}, ops = {}, group = item.layers }
        of_block[block] = section
        item.sections[#item.sections + 1] = section
      end
      section.layers[#section.layers + 1] = layer
    end
    for _, section in ipairs(item.sections) do
      local block = section.kind
      if not block.forward then fail("block '%s' has no forward(w, x, ...)", block.name) end
      block.kv = block.kv or new_state { state = "kv", settings = {} }
      block.kv.block = block
      local values = {}
      for _, weight in ipairs(block.weights) do values[weight.role] = weight end
      for _, value in ipairs(block.values) do
        values[value.role] = value
        for _, layer in ipairs(is(value, kinds.each) and section.layers or {}) do
          value_in(value, layer) -- each has one
        end
      end
      section.x = graph.tensor { shape = x.shape, dtype = "f32", name = "x", block = block }
      t.ops, t.tracing, t.made_in[section.x] = section.ops, section, section.ops
      local args = table.pack(...)
      args[args.n + 1] = wrap(block.kv)
      local result = unwrap((block.forward(by_role(values, "block"), wrap(section.x),
        table.unpack(args, 1, args.n + 1))))
      t.ops, t.tracing = t.program.ops, nil
      if not graph.is_tensor(result) or not size.same_shape(result.shape, x.shape) then
        fail("block '%s' must return %s, got %s", block.name, size.shape_text(x.shape),
          graph.is_tensor(result) and size.shape_text(result.shape) or describe_type(result))
      end
      section.result = result
      for _, value in ipairs(block.values) do
        if value.state == "state" and not is_read(section, value) then
          fail("block '%s': no operation keeps %s", block.name, value.role)
        end
      end
      check_caches(section)
      rings_last(section)
    end
    item.result = graph.tensor { shape = x.shape, dtype = "f32", op = item, name = x.name }
    t.ops[#t.ops + 1], t.made_in[item.result] = item, t.ops
    return item.result
  end
  local group_words = { range = expose(range) }
  face.kind(kinds.group, "group of layers", {
    call = call_layers,
    read = function(_, name)
      if not group_words[name] then fail("layers have no %s", quoted(name)) end
      return group_words[name]
    end,
  })

  -- What a program gives back: a tensor, or a table of them by name.
  local function take_result(name, result)
    if graph.is_tensor(result) then
      local output = { name = name == "step" and "logits" or "result", tensor = result }
      table.insert(t.program.outputs, 1, output)
    elseif is_plain(result) then
      local given, keys = face.copy(result), {}
      for key in pairs(given) do
        if not names.is_identifier(key) then
          fail("%s: an output can't be called %s: %s", name, quoted(key), names.RULE)
        end
        keys[#keys + 1] = key
      end
      table.sort(keys)
      for _, key in ipairs(keys) do words.tap(key, given[key]) end
    else
      fail("%s: return a tensor or a table of tensors, got %s", name, describe_type(result))
    end
  end

  local function check_outputs(name)
    local taken = {}
    for _, output in ipairs(t.program.outputs) do
      local x = output.tensor
      if not x.op then
        fail("%s: output %s isn't computed, it is a weight or an input", name, output.name)
      end
      if t.made_in[x] ~= t.program.ops then
        fail("%s: output %s isn't computed by this program", name, output.name)
      end
      if taken[output.name] then fail("%s: there are two outputs %s", name, output.name) end
      taken[output.name] = true
    end
    if #t.program.outputs == 0 then fail("%s: it returns nothing", name) end
  end

  -- The engine's side, gen/standard.lua: what it asks of a program that it runs, and fills.
  local function check_contract(name)
    local rule = standard.programs[name] or {}
    for _, want in ipairs(rule.outputs or {}) do
      local found
      for _, output in ipairs(t.program.outputs) do
        if output.name == want.name then found = output.tensor end
      end
      local shape = {}
      for i, x in ipairs(want.shape) do
        shape[i] = type(x) == "string" and dims.by_name[x] or x
        if type(shape[i]) == "string" then fail("%s: nn.dims says no %s", name, x) end
      end
      if not found then
        fail("%s: return %s, %s", name, want.name, size.shape_text(shape))
      end
      if not size.same_shape(found.shape, shape) then
        fail("%s: %s must be %s, got %s: %s", name, want.name, size.shape_text(shape),
          size.shape_text(found.shape), want.hint)
      end
    end
    local read = {}
    for _, row in ipairs(graph.flat(t.program)) do
      for _, input in ipairs(row.op.inputs) do read[input.tensor] = true end
    end
    for _, input in ipairs(t.program.inputs) do
      local x = input.tensor
      local function refuse(message)
        error({ message = ("%s:%d: input: %s"):format(x.file, x.line, message), code = 1 }, 0)
      end
      if not read[x] then refuse(("no operation of %s reads %s"):format(name, input.name)) end
      if rule.inputs and not rule.inputs[input.name] then
        refuse(("nobody fills %s: %s is given what batch has"):format(input.name, name))
      end
    end
  end

  -- Rows in what the program's graphs are counted in, and in nothing else.
  local function check_extents(name)
    local allowed = counted[t.program.smallest and "encoder" or name]
    local has_rows = false
    for _, row in ipairs(graph.flat(t.program)) do
      local extent = graph.extent(row.op.result)
      has_rows = has_rows or extent ~= nil
      if extent and not allowed[extent] then
        graph.refuse(row.op, "%s: its rows are %s, %s counts others", row.op.def.name, extent,
          t.program.smallest and "an encoder" or name)
      end
    end
    if not has_rows then fail("%s: nothing in it has rows", name) end
  end

  -- One program: its function runs once.
  local function trace(name, run)
    t.program = { name = name, inputs = {}, outputs = {}, ops = {}, appended = {} }
    t.ops = t.program.ops
    if is(run, kinds.encoder) then
      t.program.smallest, t.program.largest = run.smallest, run.largest
      t.program.frame, run = run.frame, run.run
    end
    local result = unwrap((run(by_role(model.members, "model"), wrap(batch))))
    take_result(name, result)
    check_outputs(name)
    check_extents(name)
    check_contract(name)
    t.ops = nil
    return t.program
  end

  -- All programs of the described model, "step" first.
  function source.trace_programs(returned)
    if unwrap(returned) ~= t.described or not model.members then
      fail("return the nn.model { ... }")
    end
    local functions, keys = {}, {}
    for name, run in pairs(t.described.programs) do
      keys[#keys + 1], functions[name] = name, run
    end
    table.sort(keys, function(a, b)
      if (a == "step") ~= (b == "step") then return a == "step" end
      return a < b
    end)
    if #keys > MAX_PROGRAMS then fail("model has %d programs, at most %d", #keys, MAX_PROGRAMS) end
    if not functions.step then
      fail("model has no step: write function model.step(w, batch), which gives logits")
    end
    for i, name in ipairs(keys) do
      model.programs[i] = trace(name, functions[name])
      t.program = nil
    end
    -- Nothing of the description's can be called when its run is over.
    t.described.programs = {}
    for _, object in ipairs(t.foreign) do
      object.forward, object.each, object.run = nil, nil, nil
    end
    return model
  end
end
