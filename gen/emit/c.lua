-- gen/emit/c.lua -- One family of one model as C: its kernels, then one function for each
-- section and one for each program, once for each dtype of the KV cache. No decisions: what is
-- computed, where and in which order was settled by the passes.

local graph = require "gen.graph"
local kernels = require "gen.emit.kernels"
local node = require "gen.node"
local size = require "gen.size"
local standard = require "gen.standard"
local text = require "gen.emit.text"

local emit = {}

local c_type = { f32 = "float", f16 = "uint16_t", bf16 = "uint16_t", q8 = "uint8_t", i32 = "int32_t", u8 = "uint8_t" }

-- decoder_block, not block: as style.md has it.
local function section_name(section)
  local name = section.kind.name == "block" and "decoder_block" or section.kind.name
  if not section.only_signature then
    name = name .. "_" .. section.signature:gsub("[^%w]+", "_")
  end
  return name
end
emit.section_name = section_name

local function count_name(extent) return "n_" .. extent end

-- Bytes as a sum in n: "2304 * n_tokens", "SCRATCH * n_threads + ...".
local function offset_text(phase, buffer)
  local at = buffer.at
  if at == 0 then return phase end
  return ("%s + %d * %s"):format(phase, at, count_name(buffer.extent))
end

-- ---- One file ---------------------------------------------------------------------------

local File = {}
File.__index = File

-- `model` with layout and kv; `family` = { name, cpu, exact, kv_dtypes, programs }.
function emit.family(model, family, options)
  local self = setmetatable({
    model = model, family = family, options = options, lines = {}, kernels = kernels.new(),
    context = { model = model, family = family, dim_name = node.namer(model) },
  }, File)
  return self:write()
end

function File:put(format, ...)
  self.lines[#self.lines + 1] = select("#", ...) > 0 and format:format(...) or format
end

-- ---- Kernels' arguments -----------------------------------------------------------------

-- The C expression for the first element of a tensor.
local function pointer(tensor, access, section)
  if tensor.weight then
    return (section and "w->" or "w.") .. tensor.role
  end
  if tensor.input then return access.batch .. tensor.input end
  local root, column = graph.root(tensor)
  local at = access.buffers .. root.name
  if column and not (column:is_constant() and column:value() == 0) then at = at .. " + " .. column:c() end
  return at
end

local function stride(tensor, dim_name)
  local root = graph.root(tensor)
  local columns = root.shape[2]
  return columns.name and columns:c() or root.width_name or dim_name(columns)
end

function File:arguments(kernel, op, section, access)
  local args = { "t" }
  local inputs = { y = op.result }
  for _, input in ipairs(op.inputs) do inputs[input.name] = input.tensor end
  local scratch = self.program.scratch[op.phase] or 0
  for _, arg in ipairs(kernel.args) do
    local of_stride = arg:match "^(.*)_stride$"
    local tensor = inputs[arg]
    if tensor then
      args[#args + 1] = tensor.state and "pages" or pointer(tensor, access, section)
    elseif of_stride and inputs[of_stride] then
      args[#args + 1] = stride(inputs[of_stride], self.context.dim_name)
    elseif arg == "rows" then
      args[#args + 1] = access.batch .. count_name(graph.extent(op.result))
    elseif arg == "scratch" then
      args[#args + 1] = scratch > 0 and access.buffers .. self:scratch_name(op.phase) or "NULL"
    elseif arg == "scratch_stride" then
      args[#args + 1] = scratch > 0 and self:scratch_name(op.phase):upper() or "0"
    elseif arg == "pages" then
      args[#args + 1] = "pages"
    elseif standard.shapes[arg] or arg == "max_pages" or arg:match "^n_(.*)$" and size.extent_names[arg:match "^n_(.*)$"] then
      args[#args + 1] = access.batch .. arg
    elseif op.attrs[arg] and type(op.attrs[arg]) == "table" and op.attrs[arg].each then
      args[#args + 1] = op.attrs[arg].role .. "[layer]"
    else
      args[#args + 1] = arg
    end
  end
  return args
end

function File:scratch_name(phase)
  return self.program.phases[phase].name .. "_scratch"
end

-- ---- Operations ---------------------------------------------------------------------------

-- The description's lines of an operation, where they weren't shown in this function yet.
function File:comment(op, shown, indent)
  local lines = {}
  for _, line in ipairs(op.lines) do
    local key = op.file .. ":" .. line
    if not shown[key] then
      shown[key] = true
      lines[#lines + 1] = { number = line, text = self.model.lines[op.file][line] or "" }
    end
  end
  if #lines == 0 then return false end
  table.sort(lines, function(a, b) return a.number < b.number end)
  for i, line in ipairs(lines) do
    local trimmed = text.comment(line.text:gsub("^%s+", ""))
    lines[i] = (i == 1 and "/* " or " * ") .. line.number .. "  " .. trimmed
  end
  lines[#lines] = lines[#lines] .. " */"
  for _, line in ipairs(lines) do self:put(indent .. line) end
  return true
end

function File:operations(rows, section, access, kv_dtype, indent)
  local shown, begun = {}, false
  for _, row in ipairs(rows) do
    local op = row.op
    local fresh = false
    for _, line in ipairs(op.lines) do fresh = fresh or not shown[op.file .. ":" .. line] end
    if fresh and begun then self:put("") end
    self:comment(op, shown, indent)
    begun = true
    if op.layers then
      self:loop(op, kv_dtype, indent)
    else
      local kernel = op.def.kernel(node.face(op, section, self.context, kv_dtype), self.family)
      local name = self.kernels.add(kernel)
      self:put(text.call(indent, name, self:arguments(kernel, op, section, access), ";"))
      if self.options.probe then
        self:put("%sburin_barrier(t);", indent)
        self:put("%sburin_probe(t, %scall, %d);", indent, access.batch, row.index)
        self:put("%sburin_barrier(t);", indent)
      elseif op.barrier then
        self:put("%sburin_barrier(t); /* %s */", indent, op.barrier)
      end
    end
  end
end

-- Does a section's function need the cache's pages?
local function reads_pages(section)
  for _, op in ipairs(section.ops) do
    for _, input in ipairs(op.inputs) do if input.tensor.state then return true end end
  end
  return false
end

-- The loop over layers: one section, or a table that says which.
function File:loop(item, kv_dtype, indent)
  local layers = {}
  for i, section in ipairs(item.sections) do
    for _, layer in ipairs(section.layers) do layers[#layers + 1] = { layer = layer, section = section, index = i } end
  end
  table.sort(layers, function(a, b) return a.layer < b.layer end)
  local first, last = layers[1].layer, layers[#layers].layer
  local n_layers = self.model.dims_by_name.n_layers
  local stop = n_layers and n_layers:value() == last + 1 and "N_LAYERS" or tostring(last + 1)
  self:put("%sfor (int layer = %d; layer < %s; layer++) {", indent, first, stop)
  if #item.sections == 1 then
    local section = item.sections[1]
    local name = section_name(section)
    local begin = section.begins[first] - first * section.bytes
    assert(begin >= 0 or first > 0)
    self:put("%s    const struct %s_weights block =", indent, name)
    self:put("%s            %s_weights(call->weights, layer);", indent, name)
    local args = { "t", "&block", "&s", "&b" }
    if reads_pages(section) then args[#args + 1] = self:pages_text(item, kv_dtype) end
    self:put(text.call(indent .. "    ", name .. "_" .. kv_dtype, args, ";"))
  else
    for i, section in ipairs(item.sections) do
      local name = section_name(section)
      local open = i == 1 and "if" or "} else if"
      self:put("%s    %s (layer_kind[layer] == %d) {", indent, open, i - 1)
      self:put("%s        const struct %s_weights block =", indent, name)
      self:put("%s                %s_weights(call->weights, layer);", indent, name)
      local args = { "t", "&block", "&s", "&b" }
      if reads_pages(section) then args[#args + 1] = self:pages_text(item, kv_dtype) end
      self:put(text.call(indent .. "        ", name .. "_" .. kv_dtype, args, ";"))
    end
    self:put("%s    }", indent)
  end
  self:put("%s}", indent)
end

-- This layer's part of page 0: one stride where all layers are alike.
function File:pages_text(item, kv_dtype)
  local layout = self.model.kv[kv_dtype]
  local even = true
  for i, row in ipairs(layout.rows) do
    even = even and row.layer == i - 1 and row.page_offset == (i - 1) * layout.rows[1].page_offset
      or even and row.layer == i - 1 and row.page_offset == (i - 1) * (layout.rows[1].bytes_per_token * 64)
  end
  for _, section in ipairs(item.sections) do
    for _, op in ipairs(section.ops) do
      for _, input in ipairs(op.inputs) do if input.tensor.owner then even = false end end
    end
  end
  if even and #layout.rows == #item.layers.layers then
    return ("b.pages + (size_t)layer * LAYER_PAGE_%s"):format(kv_dtype:upper())
  end
  return ("b.pages + layer_pages_%s[layer]"):format(kv_dtype)
end

-- ---- Structs ------------------------------------------------------------------------------

local function shape_of_weight(weight) return size.shape_text(weight.shape) end

local function weight_field(row)
  local weight = row.weight
  if row.pack == "vector" then
    return ("    const float *%s; /* %s */"):format(weight.role, shape_of_weight(weight))
  end
  return ("    const uint8_t *%s; /* %s, %s */"):format(weight.role, shape_of_weight(weight), row.format)
end

local function weight_value(row, base, indent)
  local at = row.offset == 0 and base or ("%s + %d"):format(base, row.offset)
  if row.pack == "vector" then
    local cast = row.offset == 0 and base or "(" .. at .. ")"
    return ("%s.%s = (const float *)%s,"):format(indent, row.weight.role, cast)
  end
  return ("%s.%s = %s,"):format(indent, row.weight.role, at)
end

function File:section_structs(section)
  local name = section_name(section)
  self:put("/* The weights of one layer, in the order in which they are read. */")
  self:put("struct %s_weights {", name)
  for _, row in ipairs(section.weights) do self:put(weight_field(row)) end
  self:put("};")
  self:put("")
  local begins, even = section.begins, true
  local first = section.layers[1]
  for _, layer in ipairs(section.layers) do
    even = even and begins[layer] == begins[first] + (layer - first) * section.bytes
  end
  self:put("static struct %s_weights %s_weights(const uint8_t *weights, int layer)", name, name)
  self:put("{")
  if even and first == 0 then
    self:put("    const uint8_t *begin = weights + %d + (size_t)layer * %d;", begins[0], section.bytes)
  else
    self:put("    const uint8_t *begin = weights + layer_begin[layer];")
  end
  self:put("")
  self:put("    return (struct %s_weights){", name)
  for _, row in ipairs(section.weights) do self:put(weight_value(row, "begin", "        ")) end
  self:put("    };")
  self:put("}")
  self:put("")
end

-- Tables for layers that differ.
function File:layer_tables(item)
  local layers, even = {}, #item.sections == 1
  for i, section in ipairs(item.sections) do
    for _, layer in ipairs(section.layers) do
      layers[#layers + 1] = { layer = layer, kind = i - 1, begin = section.begins[layer] }
    end
    even = even and section.layers[1] == 0
  end
  if not even then
    table.sort(layers, function(a, b) return a.layer < b.layer end)
    local kinds, begins = {}, {}
    for _, row in ipairs(layers) do
      begins[#begins + 1] = ("    [%d] = %d,"):format(row.layer, row.begin)
      kinds[#kinds + 1] = ("    [%d] = %d,"):format(row.layer, row.kind)
    end
    self:put("/* Where each layer's weights begin. */")
    self:put("static const size_t layer_begin[] = {")
    for _, line in ipairs(begins) do self:put(line) end
    self:put("};")
    self:put("")
    if #item.sections > 1 then
      self:put("/* Which function a layer is. */")
      self:put("static const uint8_t layer_kind[] = {")
      for _, line in ipairs(kinds) do self:put(line) end
      self:put("};")
      self:put("")
    end
  end
  for _, dtype in ipairs(self.family.kv_dtypes) do
    if self:pages_text(item, dtype):find "layer_pages" then
      self:put("/* Where the pages hold what a layer reads. */")
      self:put("static const size_t layer_pages_%s[] = {", dtype)
      local layout = self.model.kv[dtype]
      for _, section in ipairs(item.sections) do
        for _, layer in ipairs(section.layers) do
          local row = layout.of_layer[require("gen.kv").owner(section, layer)]
          if row then self:put("    [%d] = %d,", layer, row.page_offset) end
        end
      end
      self:put("};")
      self:put("")
    end
  end
end

function File:buffer_struct()
  local program = self.program
  local name = program.name
  self:put("/* What a step keeps in the arena: planned by gen/passes/place.lua. */")
  self:put("struct %s_buffers {", name)
  for _, buffer in ipairs(program.buffers) do
    local where = buffer.phase == 0 and "carried" or program.phases[buffer.phase].name
    local shape = size.shape_text(buffer.tensor.shape)
    if buffer.tensor.width_name then
      shape = ("(%s, %s)"):format(tostring(buffer.tensor.shape[1]), buffer.tensor.width_name)
    end
    self:put("    %s *%s; /* %s%s, %d B a row, %s */", c_type[buffer.dtype], buffer.name, shape, 
      buffer.dtype ~= "f32" and " as " .. buffer.dtype or "", buffer.bytes_per_row, where)
  end
  for i = 1, #program.phases do
    if (program.scratch[i] or 0) > 0 then
      self:put("    uint8_t *%s; /* %d B, this thread's own */", self:scratch_name(i), program.scratch[i])
    end
  end
  self:put("};")
  self:put("")
  self:put("static struct %s_buffers %s_buffers(", name, name)
  self:put("        const struct burin_team *t, const struct burin_call *call)")
  self:put("{")
  local used, scratch = {}, false
  for _, buffer in ipairs(program.buffers) do
    if buffer.at > 0 or buffer.phase == 0 then used[buffer.extent] = true end
  end
  for i = 1, #program.phases do scratch = scratch or (program.scratch[i] or 0) > 0 end
  for _, extent in ipairs(size.extents) do
    if used[extent] then
      self:put("    const size_t n_%s = (size_t)call->n[BURIN_%s];", extent, extent:upper())
    end
  end
  if scratch then
    self:put("    const size_t n_threads = (size_t)call->params.value[BURIN_THREADS];")
  end
  local carried = program.costs[0]
  local regions = "call->arena"
  if carried.slope > 0 then
    self:put("    uint8_t *carried = call->arena;")
    self:put("    uint8_t *phases = carried + %d * %s;", carried.slope, count_name(carried.extent))
    regions = "phases"
  end
  local begin = { [0] = "carried" }
  for i, phase in ipairs(program.phases) do
    local bytes = program.scratch[i] or 0
    begin[i] = phase.name
    if bytes > 0 then
      self:put("    uint8_t *%s = %s + %s * n_threads;", phase.name, regions, self:scratch_name(i):upper())
    else
      self:put("    uint8_t *%s = %s;", phase.name, regions)
    end
  end
  self:put("")
  if not scratch then self:put("    (void)t;") end
  self:put("    return (struct %s_buffers){", name)
  for _, buffer in ipairs(program.buffers) do
    local at = offset_text(begin[buffer.phase], buffer)
    if c_type[buffer.dtype] ~= "uint8_t" then
      at = ("(%s *)%s"):format(c_type[buffer.dtype], buffer.at == 0 and at or "(" .. at .. ")")
    end
    self:put("        .%s = %s,", buffer.name, at)
  end
  for i = 1, #program.phases do
    if (program.scratch[i] or 0) > 0 then
      self:put("        .%s = %s + (size_t)t->thread * %s,", self:scratch_name(i), regions, self:scratch_name(i):upper())
    end
  end
  self:put("    };")
  self:put("}")
  self:put("")
end

function File:batch_struct()
  local program = self.program
  local name = program.name
  self:put("/* What a call brings along. */")
  self:put("struct %s_batch {", name)
  for _, input in ipairs(program.inputs) do
    self:put("    const %s *%s; /* %s */", c_type[input.tensor.dtype], input.name, size.shape_text(input.tensor.shape))
  end
  local values = {}
  local fields = {}
  for i, input in ipairs(program.inputs) do
    values[#values + 1] = ("        .%s = call->inputs[%d],"):format(input.name, i - 1)
  end
  local function field(line, value)
    fields[#fields + 1] = line
    values[#values + 1] = value
  end
  if self.has_pages then
    field("    uint8_t *pages; /* page 0 */", "        .pages = call->states[0],")
    field("    int max_pages; /* a sequence's row of page_table */",
      "        .max_pages = (int)call->params.value[BURIN_MAX_PAGES],")
  end
  for _, extent in ipairs(size.extents) do
    if self.extents[extent] then
      field(("    int n_%s;"):format(extent), ("        .n_%s = call->n[BURIN_%s],"):format(extent, extent:upper()))
    end
  end
  if self.options.probe then
    field("    const struct burin_call *call;", "        .call = call,")
  end
  for _, line in ipairs(fields) do self:put(line) end
  self:put("};")
  self:put("")
  self:put("static struct %s_batch %s_batch(const struct burin_call *call)", name, name)
  self:put("{")
  self:put("    return (struct %s_batch){", name)
  for _, line in ipairs(values) do self:put(line) end
  self:put("    };")
  self:put("}")
  self:put("")
end

-- ---- Functions ----------------------------------------------------------------------------

function File:section_function(section, kv_dtype, index_of)
  local name = section_name(section)
  local forward = section.kind.forward_line
  self:put("/* Layers %s; s->%s is updated in place.   %s:%d %s.forward */", emit.layers_text(section.layers),
    graph.root(section.result).name, section.kind.where.file, forward or section.kind.where.line, section.kind.name)
  self:put("static void %s_%s(", name, kv_dtype)
  self:put("        const struct burin_team *t, /* every thread runs this and takes its share */")
  self:put("        const struct %s_weights *w,", name)
  self:put("        const struct %s_buffers *s,", self.program.name)
  self:put("        const struct %s_batch *b%s", self.program.name, reads_pages(section) and "," or ")")
  if reads_pages(section) then self:put("        uint8_t *pages) /* this layer's part of page 0 */") end
  self:put("{")
  local rows = {}
  for i, op in ipairs(section.ops) do rows[i] = { op = op, index = index_of[op] } end
  self:operations(rows, section, { buffers = "s->", batch = "b->" }, kv_dtype, "    ")
  self:put("}")
  self:put("")
end

-- "0 ... 29", or "0 ... 4, 6" for those that aren't adjacent.
function emit.layers_text(layers)
  local parts, i = {}, 1
  while i <= #layers do
    local j = i
    while layers[j + 1] == layers[j] + 1 do j = j + 1 end
    parts[#parts + 1] = i == j and tostring(layers[i]) or layers[i] .. " ... " .. layers[j]
    i = j + 1
  end
  if #parts > 6 then return ("%d of them"):format(#layers) end
  return table.concat(parts, ", ")
end

function File:program_function(kv_dtype, index_of)
  local program = self.program
  self:put("void %s_%s_%s(const struct burin_team *t, const struct burin_call *call)", self.family.name, program.name, kv_dtype)
  self:put("{")
  self:put("    const struct %s_buffers s = %s_buffers(t, call);", program.name, program.name)
  self:put("    const struct %s_batch b = %s_batch(call);", program.name, program.name)
  local outside = {}
  for _, op in ipairs(program.ops) do
    for _, input in ipairs(op.inputs) do
      local row = input.tensor.weight and self.model.layout.outside[input.tensor]
      if row and not outside[input.tensor] then
        outside[input.tensor] = true
        outside[#outside + 1] = row
      end
    end
  end
  if #outside > 0 then
    self:put("    const struct {")
    for _, row in ipairs(outside) do self:put("    " .. weight_field(row)) end
    self:put("    } w = {")
    for _, row in ipairs(outside) do self:put(weight_value(row, "call->weights", "        ")) end
    self:put("    };")
  end
  self:put("")
  local rows = {}
  for i, op in ipairs(program.ops) do rows[i] = { op = op, index = index_of[op] } end
  self:operations(rows, nil, { buffers = "s.", batch = "b." }, kv_dtype, "    ")
  self:put("}")
end

function File:program_text(program)
  self.program = program
  local index_of = {}
  for _, row in ipairs(graph.flat(program)) do index_of[row.op] = row.index end
  self.extents, self.has_pages = {}, false
  for _, row in ipairs(graph.flat(program)) do
    self.extents[row.op.extent] = true
    -- Arguments by name show what the kernels want.
    for _, input in ipairs(row.op.inputs) do self.has_pages = self.has_pages or input.tensor.state end
    local kernel = row.op.def.kernel(node.face(row.op, row.section, self.context, self.family.kv_dtypes[1]), self.family)
    for _, arg in ipairs(kernel.args) do
      local extent = arg:match "^n_(.*)$"
      if extent and size.extent_names[extent] then self.extents[extent] = true end
      if row.op.def.name == "rows" then self.extents[graph.extent(row.op.result)] = true end
    end
  end
  local widths, named = {}, {}
  for _, buffer in ipairs(program.buffers) do
    local columns = buffer.tensor.shape[2]
    if columns and not columns.name and columns.text then
      local name = ("D_%s"):format(buffer.name:upper())
      buffer.tensor.width_name = name
      named[#named + 1] = { name = name, value = columns:value() }
      widths[#widths + 1] = ("    %s = %s,"):format(name, columns.text)
    end
  end
  self.context.dim_name = node.namer(self.model, named)
  for i, phase in ipairs(program.phases) do
    if (program.scratch[i] or 0) > 0 then
      widths[#widths + 1] = ("    %s_SCRATCH = %d, /* bytes a thread */"):format(phase.name:upper(), program.scratch[i])
    end
  end
  for _, dtype in ipairs(self.family.kv_dtypes) do
    local layout = self.model.kv[dtype]
    if layout.rows[1] then
      widths[#widths + 1] = ("    LAYER_PAGE_%s = %d, /* bytes of one layer in a page */"):format(
        dtype:upper(), layout.rows[1].bytes_per_token * 64)
    end
  end
  if #widths > 0 then
    self:put("enum {")
    for _, line in ipairs(widths) do self:put(line) end
    self:put("};")
    self:put("")
  end
  for _, item in ipairs(program.ops) do
    if item.layers then
      self:layer_tables(item)
      for _, section in ipairs(item.sections) do self:section_structs(section) end
    end
  end
  self:buffer_struct()
  self:batch_struct()
  for i, kv_dtype in ipairs(self.family.kv_dtypes) do
    self:put("/* ---- %s, with keys and values in %s %s */", program.name, kv_dtype,
      ("-"):rep(math.max(3, 88 - #("/* ---- " .. program.name .. ", with keys and values in " .. kv_dtype .. "  */"))))
    self:put("")
    for _, item in ipairs(program.ops) do
      for _, section in ipairs(item.sections or {}) do self:section_function(section, kv_dtype, index_of) end
    end
    self:program_function(kv_dtype, index_of)
    if i < #self.family.kv_dtypes then self:put("") end
  end
end

local said = {
  avx512 = "processors with AVX-512 (VNNI and BF16)", portable = "any processor",
}

function File:write()
  local model, family = self.model, self.family
  for i, program in ipairs(family.programs) do
    if i > 1 then self:put("") end
    self:program_text(program)
  end
  local body = table.concat(self.lines, "\n")
  local head = {
    ("/* %s.c -- Generated by gen from %s. Do not edit: edit that."):format(family.name, model.file),
    (" * %s for %s%s: the kernels, then the programs. */"):format(model.name, said[family.cpu],
      family.exact and ", everything in f32" or ""),
    ('#include "%s.h"'):format(model.name),
    "",
    '#include "runtime/cpu/attention.h"',
  }
  if family.cpu == "avx512" then head[#head + 1] = '#include "runtime/cpu/avx512.h"' end
  for _, line in ipairs {
    '#include "runtime/cpu/kernel.h"', "", "#include <math.h>", "#include <string.h>", "",
  } do head[#head + 1] = line end
  if self.options.probe then
    head[#head + 1] = "/* Called by every thread after each operation: tests say what it does. */"
    head[#head + 1] = "extern void burin_probe(const struct burin_team *t, const struct burin_call *call, int op);"
    head[#head + 1] = ""
  end
  local parts = {
    table.concat(head, "\n"),
    "/* ---- Kernels ------------------------------------------------------------------------ */",
    "",
    self.kernels.text(),
    "/* ---- Programs ----------------------------------------------------------------------- */",
    "",
    body,
  }
  return text.align(table.concat(parts, "\n"))
end

return emit
