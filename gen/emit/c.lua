-- gen/emit/c.lua -- One CPU family of one model as C: its kernels, then one function for each
-- section and one for each program, once for each dtype of the KV cache. No decisions: what is
-- computed, where and in which order was settled by the passes. gen/emit/cuda.lua emits the same
-- functions for a GPU, where a call is a launch.

local graph = require "gen.graph"
local kernels = require "gen.emit.kernels"
local node = require "gen.node"
local size = require "gen.size"
local standard = require "gen.standard"
local structs = require "gen.emit.structs"
local text = require "gen.emit.text"

local emit = {}

local File = {}
File.__index = File
emit.File = File

-- What every function is handed first.
File.first = { type = "const struct burin_team *t", why = "every thread runs this and takes its share" }

function File:put(format, ...)
  self.lines[#self.lines + 1] = select("#", ...) > 0 and format:format(...) or format
end

-- ---- Kernels' arguments -----------------------------------------------------------------

-- The C expression for the first element of a tensor.
local function pointer(tensor, access)
  if tensor.weight then return access.weights .. tensor.role end
  if tensor.input then return access.batch .. tensor.input end
  local root, column = graph.root(tensor)
  local at = access.buffers .. root.name
  if column and not (column:is_constant() and column:value() == 0) then
    at = at .. " + " .. column:c()
  end
  return at
end

-- Elements from one row to the next.
function File:stride(tensor)
  local root = graph.root(tensor)
  local columns = root.shape[2]
  return columns.name and columns:c() or root.width_name or self.context.dim_name(columns)
end

-- gen/op.lua says what an argument may be.
function File:argument(arg, op, inputs, access)
  local of_stride, extent = arg:match "^(.*)_stride$", arg:match "^n_(.*)$"
  local has_scratch = structs.has_scratch(self.program, op.phase)
  if inputs[arg] then return pointer(inputs[arg], access) end
  if arg == "ring" and op.layer then return self:ring_of(op) end
  if arg == "scratch" then
    return has_scratch and access.buffers .. structs.scratch_field(self.program, op.phase) or "NULL"
  end
  if arg:find "=" then return (arg:match "=(.*)$") end -- a GPU's: "n=D_MODEL"
  if arg == "scratch_stride" then
    return has_scratch and structs.scratch_bytes(self.program, op.phase) or "0"
  end
  if of_stride and inputs[of_stride] then return self:stride(inputs[of_stride]) end
  if arg == "rows" then
    local rows, n = op.result.shape[1]:multiple(), access.batch .. "n_" .. graph.extent(op.result)
    return rows == 1 and n or ("%d * %s"):format(rows, n)
  end
  if standard.shapes[arg] or arg == "max_pages" or size.extent_names[extent] then
    return access.batch .. arg
  end
  return arg
end

-- A ring that is written behind all layers: that of one of them.
function File:ring_of(op)
  local row = self.model.kv[self.kv_dtype].of_group[op.of_section.group][op.layer]
  return row.slot_offset == 0 and "b.slots" or ("b.slots + %d"):format(row.slot_offset)
end

function File:arguments(kernel, op, access)
  local inputs = { y = op.result }
  for _, input in ipairs(op.inputs) do inputs[input.name] = input.tensor end
  local args = { "t" }
  for _, arg in ipairs(kernel.args) do
    args[#args + 1] = self:argument(arg, op, inputs, access)
  end
  return args
end

-- ---- Operations ---------------------------------------------------------------------------

-- The description's lines of an operation, where they weren't shown in this function yet.
function File:comment(op, shown, indent)
  local lines = {}
  for _, number in ipairs(op.lines) do
    local key = op.file .. ":" .. number
    if not shown[key] then
      shown[key] = true
      lines[#lines + 1] = { number = number, text = self.model.lines[op.file][number] or "" }
    end
  end
  table.sort(lines, function(a, b) return a.number < b.number end)
  for i, line in ipairs(lines) do
    self:put("%s%s %d  %s%s", indent, i == 1 and "/*" or " *", line.number,
      text.comment((line.text:gsub("^%s+", ""))), i == #lines and " */" or "")
  end
end

function File:call(op, section, access, kv_dtype)
  local kernel = op.def.kernel(node.face(op, section, self.context, kv_dtype), self.family)
  self:put(text.call("    ", self.kernels.add(kernel), self:arguments(kernel, op, access), ";"))
  if self.options.probe then
    self:put("    burin_barrier(t);")
    self:put("    burin_probe(t, %scall, %d);", access.batch, self.index_of[op])
    self:put("    burin_barrier(t);")
  elseif op.barrier then
    local line = ("    burin_barrier(t); /* %s */"):format(op.barrier)
    if #line > text.COLUMNS then line = ("    /* %s */\n    burin_barrier(t);"):format(op.barrier) end
    self:put("%s", line)
  end
end

function File:operations(ops, section, access, kv_dtype)
  local shown, begun = {}, false
  for _, op in ipairs(ops) do
    local fresh = false
    for _, line in ipairs(op.lines) do fresh = fresh or not shown[op.file .. ":" .. line] end
    if fresh and begun then self:put("") end
    begun = true
    self:comment(op, shown, "    ")
    if op.layers then
      self:loop(op, kv_dtype)
    elseif not op.def.reshape then
      self:call(op, section, access, kv_dtype)
    end
  end
end

-- What a section's function takes beside weights, buffers and batch: { c, value }.
function File:own_arguments(section, entry)
  local list = {}
  for _, cache in ipairs(structs.caches) do
    if structs.reads_cache(section.ops, cache.state) then
      list[#list + 1] = {
        c = ("uint8_t *%s) /* this layer's part of %s 0 */"):format(cache.arg, cache.of),
        value = structs.cache(self.program, entry, self.model.kv[self.kv_dtype], cache),
      }
    end
  end
  local counts = false
  for _, op in ipairs(section.ops) do
    for _, arg in ipairs(node.args(op, section, self.context, self.kv_dtype)) do
      counts = counts or arg == "layer"
    end
  end
  if counts then table.insert(list, 1, { c = "int layer)", value = "layer" }) end
  return list
end

-- The loop over layers. Where they are of several kinds, a table says which one each is.
function File:loop(item, kv_dtype)
  local entry = self.entries[item.layers]
  local first, last = math.huge, 0
  for _, section in ipairs(item.sections) do
    first = math.min(first, section.layers[1])
    last = math.max(last, section.layers[#section.layers])
  end
  local n_layers = self.model.dims_by_name.n_layers
  local stop = n_layers and n_layers:value() == last + 1 and "N_LAYERS" or tostring(last + 1)
  self:put("    for (int layer = %d; layer < %s; layer++) {", first, stop)
  local split = #item.sections > 1
  for i, section in ipairs(item.sections) do
    local indent = split and "            " or "        "
    if split then
      self:put("        %s (%s%s_kind[layer] == %d) {", i == 1 and "if" or "} else if",
        self.program.prefix, item.layers.role, section.index)
    end
    self:put(text.assign(indent, ("const struct %s_weights block"):format(section.name),
      section.name .. "_weights(call->weights, layer)"))
    local args = { "t", "&block", "&s", "&b" }
    for _, own in ipairs(self:own_arguments(section, entry)) do args[#args + 1] = own.value end
    self:put(text.call(indent, section.name .. self:suffix(kv_dtype), args, ";"))
  end
  if split then self:put("        }") end
  self:put("    }")
end

-- ---- Functions ----------------------------------------------------------------------------

-- "_bf16", or nothing where no cache is read.
function File:suffix(kv_dtype) return self.program.has_cache and "_" .. kv_dtype or "" end

function File:section_function(section, kv_dtype)
  local program, kind = self.program.name, section.kind
  local own = self:own_arguments(section, self.entries[section.group])
  self:put("/* Layers %s; s->%s is updated in place.   %s:%d %s.forward */",
    graph.layers_text(section.layers), graph.root(section.result).name, kind.where.file,
    kind.where.line, kind.name)
  self:put("static void %s%s(", section.name, self:suffix(kv_dtype))
  self:put("        %s, /* %s */", self.first.type, self.first.why)
  self:put("        const struct %s_weights *w,", section.name)
  self:put("        const struct %s_buffers *s,", program)
  self:put("        const struct %s_batch *b%s", program, #own > 0 and "," or ")")
  for i, argument in ipairs(own) do
    self:put("        %s", i < #own and argument.c:gsub("%)", ",", 1) or argument.c)
  end
  self:put("{")
  local access = { weights = "w->", buffers = "s->", batch = "b->" }
  self:operations(section.ops, section, access, kv_dtype)
  self:put("}")
  self:put("")
end

-- Weights outside of layers that the program's own operations read.
function File:outside_weights()
  local rows, known = {}, {}
  for _, op in ipairs(self.program.ops) do
    for _, input in ipairs(op.inputs) do
      local row = input.tensor.weight and self.model.layout.outside[input.tensor]
      if row and not known[row] then
        known[row] = true
        rows[#rows + 1] = row
      end
    end
  end
  if #rows == 0 then return end
  self:put("    const struct {")
  for _, row in ipairs(rows) do self:put("    " .. structs.weight_field(row)) end
  self:put("    } w = {")
  for _, row in ipairs(rows) do self:put(structs.weight_value(row, "call->weights")) end
  self:put("    };")
end

function File:program_function(kv_dtype)
  local name = self.program.name
  self:put(text.declare(("void %s_%s%s"):format(self.name, name, self:suffix(kv_dtype)),
    { self.first.type, "const struct burin_call *call" }))
  self:put("{")
  self:put("    const struct %s_buffers s = %s_buffers(%scall);", name, name,
    self.family.sm and "" or "t, ")
  self:put("    const struct %s_batch b = %s_batch(call);", name, name)
  self:outside_weights()
  self:put("")
  self:operations(self.program.ops, nil, { weights = "w.", buffers = "s.", batch = "b." }, kv_dtype)
  self:put("}")
end

function emit.rule(title)
  return ("/* ---- %s %s */"):format(title, ("-"):rep(math.max(3, 89 - #title - 13)))
end

function File:program_text(program)
  self.program, self.index_of, self.entries = program, {}, {}
  for _, row in ipairs(graph.flat(program)) do self.index_of[row.op] = row.index end
  program.has_cache = structs.reads_cache(program.ops)
  local layouts = {}
  for i, dtype in ipairs(self.kv_dtypes) do layouts[i] = self.model.kv[dtype] end
  local function put(...) self:put(...) end

  local entries = structs.groups(program)
  local widths = structs.numbers(put, program, layouts, self.family.sm)
  self.context.dim_name = node.namer(self.model, widths)
  for _, entry in ipairs(entries) do
    self.entries[entry.group] = entry
    structs.layer_tables(put, program, entry, layouts)
    for _, section in ipairs(entry.sections) do structs.section(put, program, section, entry.group) end
  end
  structs.buffers(put, program, self.family.sm)
  local dtypes = self.kv_dtypes
  local extents = structs.extents(program, function(row)
    return node.args(row.op, row.section, self.context, dtypes[1])
  end)
  structs.batch(put, program, extents, self.options.probe)

  for i, kv_dtype in ipairs(program.has_cache and dtypes or { dtypes[1] }) do
    self.kv_dtype = kv_dtype
    if i > 1 then self:put("") end
    if program.has_cache then
      self:put(emit.rule(("%s, with keys and values in %s"):format(program.name, kv_dtype)))
      self:put("")
    end
    for _, entry in ipairs(entries) do
      for _, section in ipairs(entry.sections) do self:section_function(section, kv_dtype) end
    end
    self:program_function(kv_dtype)
  end
end

-- ---- One file -----------------------------------------------------------------------------

local runs_on = { avx512 = "processors with AVX-512 (VNNI and BF16)", portable = "any processor" }

-- `model` with layout and kv; `family` = { name, cpu, exact, kv_dtypes, programs }.
function emit.family(model, family, options)
  local self = setmetatable({
    model = model, family = family, name = family.name, options = options, lines = {},
    kernels = kernels.new(), kv_dtypes = family.kv_dtypes,
    context = { model = model, family = family, dim_name = node.namer(model) },
  }, File)
  for i, program in ipairs(family.programs) do
    if not family.missing[program.name] then
      if i > 1 then self:put("") end
      self:program_text(program)
    end
  end
  local programs = table.concat(self.lines, "\n")

  self.lines = {}
  self:put("/* %s.c -- Generated by gen from %s. Do not edit: edit that.", family.name, model.file)
  self:put(" * %s for %s%s: the kernels, then the programs. */", model.name, runs_on[family.cpu],
    family.exact and ", everything in f32" or "")
  self:put('#include "%s.h"', model.name)
  self:put("")
  self:put('#include "runtime/cpu/attention.h"')
  if family.cpu == "avx512" then self:put('#include "runtime/cpu/avx512.h"') end
  self:put('#include "runtime/cpu/kernel.h"')
  self:put("")
  self:put("#include <math.h>")
  self:put("#include <string.h>")
  self:put("")
  if options.probe then
    self:put("/* Called by every thread after each operation: tests say what it does. */")
    self:put(text.declare("void burin_probe",
      { "const struct burin_team *t", "const struct burin_call *call", "int op" }) .. ";")
    self:put("")
  end
  self:put(emit.rule "Kernels")
  self:put("")
  self:put(self.kernels.text())
  self:put(emit.rule "Programs")
  self:put("")
  self:put(programs)
  return text.align(table.concat(self.lines, "\n"))
end

return emit
