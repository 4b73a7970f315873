-- gen/emit/tables.lua -- NAME.h and NAME.c: the sizes, and every table of runtime/model.h.

local around = require "gen.around"
local graph = require "gen.graph"
local kernels = require "gen.emit.kernels"
local gguf = require "gen.formats.spellings.gguf"
local hf = require "gen.formats.spellings.hf"
local hyperparameters = require "gen.hyperparameters"
local size = require "gen.size"
local structs = require "gen.emit.structs"
local tables = require "gen.tables"
local text = require "gen.emit.text"
local tiles = require "gen.tiles"
local kv = require "gen.kv"
local layout = require "gen.layout"

local emit = {}

local dtype_enum = {
  f32 = "BURIN_F32", f16 = "BURIN_F16", bf16 = "BURIN_BF16", i32 = "BURIN_I32", u8 = "BURIN_U8",
  q8 = "BURIN_Q8", q8x2 = "BURIN_Q8", fp8 = "BURIN_FP8", nvfp4 = "BURIN_NVFP4",
}

-- ---- Initializers -------------------------------------------------------------------------

local function size_text(poly)
  local terms = size.terms(poly)
  if #terms > size.MAX_TERMS then
    error("a size has more than " .. size.MAX_TERMS .. " terms", 0)
  end
  if #terms == 1 and next(terms[1].powers) == nil then
    return ("BYTES(%d)"):format(terms[1].factor)
  end
  local parts = {}
  for i, term in ipairs(terms) do
    local powers = {}
    for _, name in ipairs(size.params) do
      if term.powers[name] then
        powers[#powers + 1] = ("[BURIN_%s] = %d"):format(name:upper(), term.powers[name])
      end
    end
    parts[i] = #powers == 0 and ("{ .factor = %d }"):format(term.factor)
      or ("{ .factor = %d, .power = { %s } }"):format(term.factor, table.concat(powers, ", "))
  end
  return "{ .terms = { " .. table.concat(parts, ", ") .. " } }"
end

local function linear_text(x, extent)
  local parts = {}
  if next(x.fixed) then parts[#parts + 1] = ".fixed = " .. size_text(x.fixed) end
  if x.extent then parts[#parts + 1] = ".slope = " .. size_text(x.slope) end
  extent = x.extent or extent
  if extent then parts[#parts + 1] = ".extent = BURIN_" .. extent:upper() end
  if #parts == 0 then parts[1] = ".fixed = BYTES(0)" end
  return "{ " .. table.concat(parts, ", ") .. " }"
end

local function dims_text(shape)
  local parts = {}
  for i, x in ipairs(shape) do parts[i] = linear_text(x) end
  return "{ " .. table.concat(parts, ", ") .. " }"
end

-- The dtypes of keys and values for which a family's kernels are emitted with a program.
local function runs(self, family, program)
  return self.options.tables_only and {} or family.runs[program.name]
end

-- Packed weights as far as a family's programs read them; those that only programs without kernels
-- read lie behind. (A model that no CPU runs is planned as if one did.)
local function weights_bytes(model, family)
  if family.sm or family.missing.step then return model.layout.bytes end
  local bytes = 0
  for _, program in ipairs(family.programs) do
    if not family.missing[program.name] then bytes = bytes + program.weights_bytes end
  end
  return bytes
end

local function token_bytes(family)
  for _, program in ipairs(family.programs) do
    if program.name == "step" then return layout.token_bytes(program) end
  end
  return 0
end

-- A program that reads no cache is one function for all its dtypes.
local function suffix(program, dtype)
  return structs.reads_cache(program.ops) and "_" .. dtype or ""
end

local File = {}
File.__index = File

function File:put(format, ...)
  self.lines[#self.lines + 1] = select("#", ...) > 0 and format:format(...) or format
end

-- A table of rows, once: where another one has the same text, its name is given.
function File:table(type_name, name, rows)
  local body = table.concat(rows, "\n")
  local known = self.known[type_name .. body]
  if known then return known end
  self.known[type_name .. body] = name
  self:put("static const struct %s %s[] = {", type_name, name)
  for _, row in ipairs(rows) do self:put("    %s,", row) end
  self:put("};")
  self:put("")
  return name
end

-- ---- A program's tables -------------------------------------------------------------------

function File:program(family, program)
  local prefix = family.name .. "_" .. program.name
  local shared = self.known[program.name] and prefix or program.name
  self.known[program.name] = true
  local inputs = {}
  for i, input in ipairs(program.inputs) do
    local tensor = input.tensor
    inputs[i] = ("{ .name = %s, .dtype = %s, .n_dims = %d,\n      .dims = %s }"):format(
      text.string(input.name), dtype_enum[tensor.dtype], #tensor.shape, dims_text(tensor.shape))
  end
  local outputs = {}
  for i, output in ipairs(program.outputs) do
    local root = graph.root(output.tensor)
    local buffer = root.buffer
    local tensor = output.tensor
    outputs[i] = ("{ .name = %s, .dtype = %s, .n_dims = %d,\n      .dims = %s,\n"
      .. "      .phase = %d, .offset = %s }"):format(text.string(output.name),
      dtype_enum[tensor.dtype], #tensor.shape, dims_text(tensor.shape), buffer.row,
      linear_text(buffer.offset, buffer.extent))
  end
  local costs = {}
  for i, cost in ipairs(program.costs) do
    costs[i] = ("{ .phase = %s, .quantum = %d,\n      .bytes = %s }"):format(
      text.string(cost.phase), cost.quantum, linear_text(cost.bytes, cost.extent))
  end
  local buffers = {}
  for i, buffer in ipairs(program.buffers) do
    buffers[i] = ("{ .name = %s, .shape = %s, .where = %s,\n"
      .. "      .phase = %d, .dtype = %s, .first_op = %d, .last_op = %d,\n"
      .. "      .offset = %s,\n      .bytes = %s }"):format(
      text.string(buffer.name), text.string(size.shape_text(buffer.tensor.shape)),
      text.string(("%s:%d"):format(buffer.file, buffer.line)), buffer.row,
      dtype_enum[buffer.dtype], buffer.first, buffer.last,
      linear_text(buffer.offset, buffer.extent), linear_text(buffer.bytes, buffer.extent))
  end
  local names = {
    inputs = self:table("burin_input", shared .. "_inputs", inputs),
    outputs = self:table("burin_output", shared .. "_outputs", outputs),
    costs = self:table("burin_chunk_cost", shared .. "_costs", costs),
    buffers = self:table("burin_buffer", shared .. "_buffers", buffers),
  }
  local run = "NULL"
  local lacks = family.missing[program.name]
  local missing = lacks and table.concat(lacks, ", ")
  local dtypes = runs(self, family, program)
  if #dtypes > 0 then
    local kind = family.sm and "enqueue" or "run"
    local parts, emitted = {}, {}
    for _, dtype in ipairs(dtypes) do emitted[dtype] = true end
    for i, dtype in ipairs(family.kv_dtypes) do
      parts[i] = emitted[dtype] and ("%s_%s%s"):format(family.code, program.name, suffix(program, dtype))
        or "NULL"
    end
    run = ("%s_%s_%s"):format(family.code, program.name, kind)
    if not self.known[run] then
      self.known[run] = true
      self:put("static burin_%s *const %s[] = { %s };", kind, run, table.concat(parts, ", "))
      self:put("")
    end
    run = (".%s = %s"):format(kind, run)
  else
    run = ".run = NULL"
  end
  return table.concat({
    ("{ .name = %s, .extent = BURIN_%s, .smallest_item = %d, .largest_item = %d,"):format(
      text.string(program.name), graph.counts(program):upper(), program.smallest or 0,
      program.largest or 0),
    ("      %s.weights_bytes = %d,"):format(
      program.frame and (".frame_item = %d, "):format(program.frame) or "", program.weights_bytes),
    ("      .n_inputs = %d, .inputs = %s,"):format(#inputs, names.inputs),
    ("      .n_outputs = %d, .outputs = %s,"):format(#outputs, names.outputs),
    ("      .n_carried = %d, .n_costs = %d, .costs = %s,"):format(
      program.n_carried, #costs, names.costs),
    ("      .graph = { .kernel_nodes = %d, .copy_nodes = %d },"):format(
      program.graph.kernel_nodes, program.graph.copy_nodes),
    ("      .n_buffers = %d, .buffers = %s,"):format(#buffers, names.buffers),
    ("      %s%s }"):format(run, missing and ", .missing = " .. text.string(missing) or ""),
  }, "\n")
end

-- ---- Weights and KV -------------------------------------------------------------------------

-- Of a stack of experts: how many, parts of each, and these ones' names.
local function stack_text(row)
  local pieces = {}
  for i, name in ipairs(row.n_matrices and hf.pieces(row.weight, row.layer, row.group) or {}) do
    pieces[i] = text.string(name)
  end
  return ("%d, %d, { %s } },"):format(row.n_matrices or 0, row.n_parts or 0,
    #pieces > 0 and table.concat(pieces, ", ") or "NULL")
end

-- A row of `weights` or `unread`.
local function weight_row(model, values, row)
  local weight = row.weight
  local gguf_name = gguf.name(model, weight, row.layer, row.group)
  local n_rows, n_cols = graph.matrix(weight.shape)
  local dims = {}
  for i, x in ipairs(weight.shape) do dims[i] = ("%d"):format(x:value()) end
  return { ("{ %s,"):format(text.string(weight.role)),
    ("%s,"):format(row.group and text.string(row.group.role) or "NULL"),
    ("%d,"):format(row.layer or -1),
    ("{ %s,"):format(text.string(hf.name(model, weight, row.layer, row.group))),
    ("%s },"):format(gguf_name and text.string(gguf_name) or "NULL"),
    ("%d,"):format(n_rows), ("%d,"):format(n_cols),
    ("BURIN_FORMAT_%s,"):format(row.format:upper()), ("%d,"):format(gguf.rope_heads(model, weight)),
    ("%d,"):format(#dims), ("{ %s },"):format(#dims > 0 and table.concat(dims, ", ") or "0"),
    ("%d,"):format(values[weight] or 0), stack_text(row) }
end

-- Rows of what nn.unused() declares, in the order of the description.
local function unread_rows(model)
  local rows = {}
  local function add(weight, group, layer)
    if weight.unused then
      local format = layer and weight.formats[layer] or weight.format
      rows[#rows + 1] = { weight = weight, group = group, layer = layer, format = format }
    end
  end
  for _, weight in ipairs(model.weights) do add(weight) end
  for _, group in ipairs(model.groups) do
    for i, block in ipairs(group.layers) do
      for _, weight in ipairs(block.weights) do add(weight, group, i - 1) end
    end
  end
  return rows
end

-- What stands for it in C: its name, or NULL where it is empty.
function File:weight_table(name, rows)
  if #rows == 0 then return "NULL" end
  self:put("static const struct burin_weight %s[] = {", name)
  self:put(text.columns(rows, "    "))
  self:put("};")
  self:put("")
  return name
end

function File:weights()
  local model = self.model
  local pack = kernels.new()
  local values = around.of(model)
  local rows, packed, packers = {}, {}, {}
  for i, row in ipairs(model.layout.rows) do
    rows[i] = weight_row(model, values, row)
    local name = "NULL"
    if not self.options.tables_only then
      local key = row.pack .. " " .. row.format
      if not packers[key] then
        local format = require("gen.formats." .. row.format)
        packers[key] = row.pack ~= "vector" and not format.pack and "NULL"
          or pack.add(row.pack == "vector"
            and { template = "cpu/pack_vector.c", name = "pack_vector", params = {} }
            or tiles.pack(format))
      end
      name = packers[key]
    end
    packed[i] = { ("{ %d,"):format(row.offset), ("%d,"):format(row.tile_bytes),
      ("%d,"):format(row.tile_stride), name .. " }," }
  end
  if not self.options.tables_only then self:put(pack.text()) end
  self:put("/* clang-format off */")
  self:put("")
  self:put("#define BYTES(n) { .terms = { { .factor = (n) } } }")
  self:put("")
  self:put("/* role, group, layer, names, rows, columns, format, heads of permuted rows in GGUF,")
  self:put(" * dims in the file, what trained values lie around; of a stack of experts: how many, parts")
  self:put(" * of each, their names where the file holds them one by one */")
  self:weight_table("weights", rows)
  local unread = unread_rows(model)
  for i, row in ipairs(unread) do unread[i] = weight_row(model, values, row) end
  self.n_unread, self.unread = #unread, self:weight_table("unread", unread)
  self:put("/* offset, bytes of a tile, from one tile to the next, what packs it */")
  self:put("static const struct burin_packed packed[] = {")
  self:put(text.columns(packed, "    "))
  self:put("};")
  self:put("")
end

-- A layer's row; what is zero is left out.
local function state_text(row)
  local parts = { ("{ .name = %s, .state = BURIN_STATE_%s, .group = %s, .layer = %d,"):format(
    text.string(row.name), row.state:upper(), text.string(row.group.role), row.layer) }
  local line = ("      .program = %d, .n_readers = %d"):format(row.program - 1, row.n_readers)
  for _, name in ipairs { "n_heads", "d_key", "d_value", "window", "bytes_per_token",
    "bytes_per_sequence", "bytes_per_draft", "page_offset", "slot_offset" } do
    if row[name] ~= 0 then
      local part = (".%s = %d"):format(name, row[name])
      if #line + #part > 88 then
        parts[#parts + 1], line = line .. ",", "      " .. part
      else
        line = line .. ", " .. part
      end
    end
  end
  parts[#parts + 1] = line .. " }"
  return table.concat(parts, "\n")
end

-- What a checkpoint may say besides its tensors. Returns the count and the table's name.
function File:hyperparameters()
  local facts = hyperparameters.of(self.model)
  local rows = {}
  for _, container in ipairs { { "BURIN_SAFETENSORS", hf }, { "BURIN_GGUF", gguf } } do
    for _, row in ipairs(container[2].bound_rows(self.model, facts)) do
      local is_text = type(row.value) == "string"
      rows[#rows + 1] = { ("{ %s,"):format(container[1]),
        (is_text and "0" or ("%.14g"):format(row.value)) .. ",",
        (is_text and text.string(row.value) or "NULL") .. ",", text.string(row.keys) .. " }," }
    end
  end
  if #rows == 0 then return 0, "NULL" end
  self:put("/* container, number, or the words that a text may be, keys */")
  self:put("static const struct burin_hyperparameter hyperparameters[] = {")
  self:put(text.columns(rows, "    "))
  self:put("};")
  self:put("")
  return #rows, "hyperparameters"
end

function File:kv(family)
  local layouts = {}
  for i, dtype in ipairs(family.kv_dtypes) do
    local layout_of = self.model.kv[dtype]
    local rows = {}
    for j, row in ipairs(layout_of.rows) do
      rows[j] = state_text(row)
    end
    local name = "NULL"
    if #rows > 0 then name = self:table("burin_layer_state", "kv_" .. dtype .. "_rows", rows) end
    local slots = layout_of.slot_bytes > 0 and (".slot_bytes = %d,\n      "):format(layout_of.slot_bytes)
    layouts[i] = ("{ .dtype = %s, .page_tokens = %d, .page_bytes = %d, .bytes_per_token = %d,\n"
      .. "      %s.bytes_per_sequence = %d, .bytes_per_draft = %d, .n_rows = %d, .rows = %s }"):format(
      dtype_enum[dtype], kv.PAGE_TOKENS, layout_of.page_bytes, layout_of.bytes_per_token, slots or "",
      layout_of.bytes_per_sequence, layout_of.bytes_per_draft, #rows, name)
  end
  return self:table("burin_kv_layout", "kv_" .. table.concat(family.kv_dtypes, "_"), layouts)
end

-- ---- The files ------------------------------------------------------------------------------

local function guard(name) return "BURIN_" .. name:upper():gsub("[^%w]", "_") .. "_H" end

function emit.header(model, families, options)
  local lines = {}
  local function put(format, ...)
    lines[#lines + 1] = select("#", ...) > 0 and format:format(...) or format
  end
  put("/* %s.h -- Generated by gen from %s. Do not edit: edit that.", model.name, model.file)
  put(" * The model's sizes, and what its families offer its tables. */")
  put("#ifndef %s", guard(model.name))
  put("#define %s", guard(model.name))
  put("")
  put('#include "runtime/cpu/team.h"')
  put('#include "runtime/model.h"')
  put("")
  put("enum {")
  for _, dim in ipairs(model.dims) do put("    %s = %s,", dim:c(), dim:definition()) end
  put("};")
  if not options.tables_only then
    put("")
    local known = {}
    for _, family in ipairs(families) do
      for _, program in ipairs(family.programs) do
        for _, dtype in ipairs(runs({ model = model, options = options }, family, program)) do
          local name = family.code .. "_" .. program.name .. suffix(program, dtype)
          if not known[name] then put("burin_%s %s;", family.sm and "enqueue" or "run", name) end
          known[name] = true
        end
      end
      if family.sm and family.code == family.name then
        put("extern const struct burin_cuda_code %s_code;", family.code)
      end
    end
  end
  put("")
  put("#endif")
  return text.align(table.concat(lines, "\n"))
end

local function chat_text(source)
  return source and "\n" .. text.lines("        ", source) or "NULL"
end

function emit.source(model, families, options)
  local self = setmetatable({ model = model, options = options, lines = {}, known = {} }, File)
  self:put("/* %s.c -- Generated by gen from %s. Do not edit: edit that.", model.name, model.file)
  self:put(" * What the runtime knows of the model: runtime/model.h. */")
  self:put('#include "%s.h"', model.name)
  self:put("")
  if not options.tables_only then
    self:put('#include "runtime/cpu/kernel.h"')
    self:put("")
  end
  self:put("#include <stddef.h>")
  self:put("")
  self:weights()
  local family_rows = {}
  for i, family in ipairs(families) do
    local kv = self:kv(family)
    local programs = {}
    for j, program in ipairs(family.programs) do programs[j] = self:program(family, program) end
    local table_name = self:table("burin_program", family.name .. "_programs", programs)
    family_rows[i] = table.concat({
      ("{ .name = %s, .exact = %s, .sm = %d, .cpu_feature = %s,"):format(
        text.string(family.cpu or family.name), tostring(family.exact), family.sm or 0,
        family.cpu == "avx512" and "BURIN_CPU_AVX512" or "BURIN_CPU_ANY"),
      ("      .weights_bytes = %d, .packed = packed,"):format(weights_bytes(model, family)),
      ("      .token_bytes = %d,"):format(token_bytes(family)),
      ("      .n_kv = %d, .kv = %s,"):format(#family.kv_dtypes, kv),
      ("      .n_programs = %d, .programs = %s%s }"):format(#programs, table_name,
        family.code and family.sm and not self.options.tables_only
          and (", .cuda = &%s_code"):format(family.code) or ""),
    }, "\n")
  end
  local families_name = self:table("burin_family", "families", family_rows)
  local dims = {}
  for i, dim in ipairs(model.dims) do
    dims[i] = ("{ %s, %s }"):format(text.string(dim.name), dim:c())
  end
  self:table("burin_dim", "dims", dims)
  local n_hyperparameters, hyperparameters_name = self:hyperparameters()
  local function dim(name)
    return model.dims_by_name[name] and model.dims_by_name[name]:c() or "0"
  end
  self:put("const struct burin_model burin_model = {")
  self:put("    .name = %s,", text.string(model.name))
  self:put("    .architecture = %s,", text.string(model.architecture))
  self:put("    .variant = %s,", text.string(model.variant))
  self:put("    .recipe = %s,", text.string(model.recipe))
  self:put("    .demo_weights = %s,", model.demo_weights and text.string(model.demo_weights) or "NULL")
  self:put("    .chat = %s,", chat_text(model.chat))
  self:put("    .n_elements = %d,", layout.elements(model))
  self:put("    .n_layers = %s,", dim "n_layers")
  self:put("    .n_vocab = %s,", dim "n_vocab")
  self:put("    .n_ctx = %s,", dim "n_ctx")
  self:put("    .n_dims = %d,", #dims)
  self:put("    .dims = dims,")
  self:put("    .n_hyperparameters = %d,", n_hyperparameters)
  self:put("    .hyperparameters = %s,", hyperparameters_name)
  self:put("    .n_weights = %d,", #model.layout.rows)
  self:put("    .weights = weights,")
  self:put("    .n_unread = %d,", self.n_unread)
  self:put("    .unread = %s,", self.unread)
  self:put("    .n_families = %d,", #families)
  self:put("    .families = %s,", families_name)
  self:put("};")
  return text.align(table.concat(self.lines, "\n"))
end

return emit
