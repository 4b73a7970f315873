-- gen/emit/structs.lua -- What the functions of a program are handed: structs of weights, of
-- buffers and of a call's inputs, each with the function that fills it, and what differs from
-- layer to layer as tables.

local graph = require "gen.graph"
local kv = require "gen.kv"
local size = require "gen.size"
local text = require "gen.emit.text"

local structs = {}

local c_type = {
  f32 = "float", f16 = "uint16_t", bf16 = "uint16_t", q8 = "uint8_t", q8x2 = "uint8_t", i32 = "int32_t",
  u8 = "uint8_t",
}

local function count_name(extent) return "n_" .. extent end

-- The field that points to a thread's scratch, and the constant that says its bytes.
function structs.scratch_field(program, phase) return program.phases[phase].name .. "_scratch" end

function structs.scratch_bytes(program, phase)
  return (program.prefix .. program.phases[phase].name .. "_scratch"):upper()
end

-- What a launch has beyond that under --fast-gemm.
function structs.fast_bytes(program, phase)
  return (program.prefix .. program.phases[phase].name .. "_fast_gemm"):upper()
end

-- The C expression for all of them.
function structs.scratch_total(program, phase)
  if (program.fast_scratch[phase] or 0) == 0 then return "0" end
  return structs.scratch_bytes(program, phase) .. " + " .. structs.fast_bytes(program, phase)
end

local function fast_scratch(program, phase) return program.fast_scratch[phase] or 0 end

function structs.has_scratch(program, phase)
  return (program.scratch[phase] or 0) + fast_scratch(program, phase) > 0
end
local has_scratch = structs.has_scratch

-- ---- Weights ----------------------------------------------------------------------------

function structs.weight_field(row)
  local weight = row.weight
  local shape = size.shape_text(weight.shape)
  if row.pack == "vector" then
    return text.member("const float *" .. weight.role, shape)
  end
  return text.member("const uint8_t *" .. weight.role, ("%s, %s"):format(shape, row.format))
end

function structs.weight_value(row, base)
  local at = row.offset == 0 and base or ("%s + %d"):format(base, row.offset)
  if row.pack == "vector" then
    at = "(const float *)" .. (row.offset == 0 and base or "(" .. at .. ")")
  end
  return ("        .%s = %s,"):format(row.weight.role, at)
end

-- Where the first layer would begin, if all of the section's lie one stride apart; else nil.
local function first_begin(section)
  local base = section.begins[section.layers[1]] - section.layers[1] * section.bytes
  for _, layer in ipairs(section.layers) do
    if base < 0 or section.begins[layer] ~= base + layer * section.bytes then return nil end
  end
  return base
end

function structs.section(put, program, section, group)
  put("/* The weights of one layer, in the order in which they are read. */")
  put("struct %s_weights {", section.name)
  for _, row in ipairs(section.weights) do put(structs.weight_field(row)) end
  put("};")
  put("")
  put(text.declare(("static struct %s_weights %s_weights"):format(section.name, section.name),
    { "const uint8_t *weights", "int layer" }))
  put("{")
  local base = first_begin(section)
  if base then
    put("    const uint8_t *begin = weights + %d + (size_t)layer * %d;", base, section.bytes)
  else
    put("    const uint8_t *begin = weights + %s%s_begin[layer];", program.prefix, group.role)
  end
  put("")
  put("    return (struct %s_weights){", section.name)
  for _, row in ipairs(section.weights) do put(structs.weight_value(row, "begin")) end
  put("    };")
  put("}")
  put("")
end

-- ---- What differs from layer to layer ---------------------------------------------------

-- { { group, items, sections } } of a program.
function structs.groups(program)
  local list, known = {}, {}
  for _, item in ipairs(program.ops) do
    if item.layers then
      local group = item.layers
      if not known[group] then
        known[group] = { group = group, sections = {}, split = false }
        list[#list + 1] = known[group]
      end
      for _, section in ipairs(item.sections) do
        section.index = #known[group].sections
        table.insert(known[group].sections, section)
      end
      known[group].split = known[group].split or #item.sections > 1
    end
  end
  return list
end

-- Is page 0's part of a layer one stride from the layer before?
local function even_pages(entry, layout)
  if layout.rows[1].state ~= "paged" then return false end
  local layers = 0
  for _, section in ipairs(entry.sections) do
    for _, layer in ipairs(section.layers) do
      if kv.owner(section, layer) ~= layer then return false end
      layers = layers + 1
    end
  end
  for i, row in ipairs(layout.rows) do
    if row.layer ~= i - 1 or row.bytes_per_token ~= layout.rows[1].bytes_per_token then
      return false
    end
  end
  return layers == #layout.rows
end

-- Keys and values: what kernels call this layer's part of it, and where all of it begins.
structs.caches = {
  { state = "paged", arg = "pages", field = "pages", of = "page", offset = "page_offset" },
  { state = "ring", arg = "ring", field = "slots", of = "slot", offset = "slot_offset" },
}

-- The C expression for this layer's part of page 0, or of slot 0.
function structs.cache(program, entry, layout, cache)
  if cache.state == "paged" and even_pages(entry, layout) then
    return ("b.pages + (size_t)layer * %sLAYER_PAGE_%s"):format(
      program.prefix:upper(), layout.dtype:upper())
  end
  return ("b.%s + %s%s_%s_%s[layer]"):format(
    cache.field, program.prefix, entry.group.role, cache.field, layout.dtype)
end

-- Layers without a value have no row; a table without rows is none.
local function layer_table(put, comment, c_name, entry, value)
  local rows = {}
  for _, section in ipairs(entry.sections) do
    for _, layer in ipairs(section.layers) do
      local found = value(section, layer)
      if found then rows[#rows + 1] = { layer = layer, value = found } end
    end
  end
  if #rows == 0 then return end
  table.sort(rows, function(a, b) return a.layer < b.layer end)
  put("/* %s */", comment)
  put("/* clang-format off */")
  put("static const %s[] = {", c_name)
  for _, row in ipairs(rows) do put("    [%d] = %d,", row.layer, row.value) end
  put("};")
  put("/* clang-format on */")
  put("")
end

function structs.layer_tables(put, program, entry, layouts)
  local role, even = program.prefix .. entry.group.role, true
  for _, section in ipairs(entry.sections) do even = even and first_begin(section) ~= nil end
  if not even then
    layer_table(put, "Where each layer's weights begin.", "size_t " .. role .. "_begin", entry,
      function(section, layer) return section.begins[layer] end)
  end
  if entry.split then
    layer_table(put, "Which function a layer is.", "uint8_t " .. role .. "_kind", entry,
      function(section) return section.index end)
  end
  for _, layout in ipairs(layouts) do
    for _, cache in ipairs(#layout.rows > 0 and structs.caches or {}) do
      if cache.state ~= "paged" or not even_pages(entry, layout) then
        local name = ("size_t %s_%s_%s"):format(role, cache.field, layout.dtype)
        layer_table(put, ("Where a %s holds what a layer reads."):format(cache.of), name, entry,
          function(section, layer)
            local row = layout.of_group[entry.group][kv.owner(section, layer)]
            return row and row.state == cache.state and row[cache.offset] or nil
          end)
      end
    end
  end
end

-- ---- Buffers ----------------------------------------------------------------------------

-- `begin` is where its region begins, behind scratch.
local function buffer_value(buffer, begin)
  local at = begin
  local fixed = buffer.extent and buffer.region.fixed_bytes or buffer.at
  if fixed > 0 then at = ("%s + %d"):format(at, fixed) end
  if buffer.extent and buffer.at > 0 then
    at = ("%s + %d * %s"):format(at, buffer.at, count_name(buffer.extent))
  end
  local cast = c_type[buffer.dtype]
  if cast == "uint8_t" then return at end
  return ("(%s *)%s"):format(cast, at == begin and at or "(" .. at .. ")")
end

local function buffer_comment(buffer)
  local tensor = buffer.tensor
  local shape = size.shape_text(tensor.shape)
  if tensor.width_name then
    shape = ("(%s, %s)"):format(tostring(tensor.shape[1]), tensor.width_name)
  end
  local rows = tensor.shape[1]:multiple() or tensor.shape[1]:value()
  return ("%s%s, %d B a row, %s"):format(shape, buffer.dtype ~= "f32" and " as " .. buffer.dtype or "",
    buffer.bytes_per_unit // rows, buffer.region.phase)
end

-- On a GPU scratch is a launch's, on a CPU a thread's.
function structs.buffers(put, program, gpu)
  local name = program.name
  put("/* What a step keeps in the arena: planned by gen/passes/place.lua. */")
  put("struct %s_buffers {", name)
  for _, buffer in ipairs(program.buffers) do
    put(text.member(("%s *%s"):format(c_type[buffer.dtype], buffer.name), buffer_comment(buffer)))
  end
  local scratch = false
  for i = 1, #program.phases do
    if has_scratch(program, i) then
      scratch = true
      local fast = fast_scratch(program, i)
      put("    uint8_t *%s; /* %d B%s */", structs.scratch_field(program, i), program.scratch[i],
        fast > 0 and (", %d B more under --fast-gemm"):format(fast) or gpu and ""
        or ", this thread's own")
    end
  end
  put("};")
  put("")
  put(text.declare(("static struct %s_buffers %s_buffers"):format(name, name),
    gpu and { "const struct burin_call *call" }
      or { "const struct burin_team *t", "const struct burin_call *call" }))
  put("{")
  local used = {}
  for _, buffer in ipairs(program.buffers) do
    local grows = buffer.extent and (buffer.at > 0 or buffer.region.carried)
    if grows then used[buffer.extent] = true end
  end
  for _, extent in ipairs(size.extents) do
    if used[extent] then
      put("    const size_t n_%s = (size_t)call->n[BURIN_%s];", extent, extent:upper())
    end
  end
  if scratch and not gpu then
    put("    const size_t n_threads = (size_t)call->params.value[BURIN_THREADS];")
  end
  for i = 1, #program.phases do
    if fast_scratch(program, i) > 0 then
      put("    const size_t fast_gemm = (size_t)call->params.value[BURIN_FAST_GEMM];")
      break
    end
  end
  local begin, phases = {}, "call->arena" -- of a row of the costs
  for i = 1, program.n_carried do
    local row = program.costs[i]
    if row.slope + row.fixed_bytes > 0 then
      local stop = ("%d * %s"):format(row.slope, count_name(row.extent))
      if row.fixed_bytes > 0 then stop = ("%d + %s"):format(row.fixed_bytes, stop) end
      put("    uint8_t *%s = %s;", row.phase, phases)
      phases = i == program.n_carried and "phases" or program.costs[i + 1].phase .. "_begin"
      put("    uint8_t *%s = %s + %s;", phases, row.phase, stop)
    end
    begin[row] = row.phase
  end
  for i, phase in ipairs(program.phases) do
    begin[program.costs[program.n_carried + i]] = phase.name
    if has_scratch(program, i) then
      local own = structs.scratch_bytes(program, i)
      put("    uint8_t *%s = %s + %s%s;", phase.name, phases, own, gpu and "" or " * n_threads")
      if fast_scratch(program, i) > 0 then
        put("    %s += %s * fast_gemm;", phase.name, structs.fast_bytes(program, i))
      end
    else
      put("    uint8_t *%s = %s;", phase.name, phases)
    end
  end
  put("")
  if not scratch and not gpu then put("    (void)t;") end
  put("    return (struct %s_buffers){", name)
  for _, buffer in ipairs(program.buffers) do
    put(text.field("        ", buffer.name, buffer_value(buffer, begin[buffer.region])))
  end
  for i = 1, #program.phases do
    if has_scratch(program, i) then
      put(text.field("        ", structs.scratch_field(program, i),
        gpu and phases or phases .. " + (size_t)t->thread * " .. structs.scratch_bytes(program, i)))
    end
  end
  put("    };")
  put("}")
  put("")
end

-- ---- A call's inputs --------------------------------------------------------------------

-- `extents` are those whose counts are used.
function structs.batch(put, program, extents, probe)
  local name = program.name
  local fields, values = {}, {}
  local function field(line, value)
    fields[#fields + 1], values[#values + 1] = line, value
  end
  for i, input in ipairs(program.inputs) do
    local shape = size.shape_text(input.tensor.shape)
    field(("    const %s *%s; /* %s */"):format(c_type[input.tensor.dtype], input.name, shape),
      ("        .%s = call->inputs[%d],"):format(input.name, i - 1))
  end
  if structs.reads_cache(program.ops, "paged") then
    field("    uint8_t *pages; /* page 0 */", "        .pages = call->states[0],")
    field("    int max_pages; /* a sequence's row of page_table */",
      "        .max_pages = (int)call->params.value[BURIN_MAX_PAGES],")
  end
  if structs.reads_cache(program.ops, "ring") then
    field("    uint8_t *slots; /* slot 0: rings */", "        .slots = call->states[1],")
  end
  for _, extent in ipairs(size.extents) do
    if extents[extent] then
      field(("    int n_%s;"):format(extent),
        ("        .n_%s = call->n[BURIN_%s],"):format(extent, extent:upper()))
    end
  end
  if probe then field("    const struct burin_call *call;", "        .call = call,") end
  put("/* What a call brings along. */")
  put("struct %s_batch {", name)
  for _, line in ipairs(fields) do put(line) end
  put("};")
  put("")
  put(text.declare(("static struct %s_batch %s_batch"):format(name, name),
    { "const struct burin_call *call" }))
  put("{")
  put("    return (struct %s_batch){", name)
  for _, line in ipairs(values) do put(line) end
  put("    };")
  put("}")
  put("")
end

-- ---- Numbers ----------------------------------------------------------------------------

-- Widths of columns that lie side by side, scratch, a layer's part of a page. Returns the
-- widths' names and values, for arguments.
function structs.numbers(put, program, layouts, gpu)
  local lines, widths = {}, {}
  for _, buffer in ipairs(program.buffers) do
    local columns = buffer.tensor.shape[2]
    if columns and not columns.name and columns.text then
      local name = program.prefix:upper() .. "D_" .. buffer.name:upper()
      local dim = program.sizes[name:lower()] -- the description's own
      if dim then name = dim:value() == columns:value() and dim:c() or name .. "_COLUMNS" end
      buffer.tensor.width_name = name
      widths[#widths + 1] = { name = name, value = columns:value() }
      if not dim or name ~= dim:c() then
        lines[#lines + 1] = ("    %s = %s,"):format(name, columns.text)
      end
    end
  end
  for i = 1, #program.phases do
    if has_scratch(program, i) then
      lines[#lines + 1] = ("    %s = %d, /* bytes a %s */"):format(
        structs.scratch_bytes(program, i), program.scratch[i], gpu and "launch" or "thread")
    end
    if fast_scratch(program, i) > 0 then
      lines[#lines + 1] = ("    %s = %d, /* more of them under --fast-gemm */"):format(
        structs.fast_bytes(program, i), fast_scratch(program, i))
    end
  end
  local entries = structs.groups(program)
  for _, layout in ipairs(layouts) do
    if entries[1] and #layout.rows > 0 and even_pages(entries[1], layout) then
      lines[#lines + 1] = ("    %sLAYER_PAGE_%s = %d, /* bytes of one layer in a page */"):format(
        program.prefix:upper(), layout.dtype:upper(), layout.rows[1].page_bytes)
    end
  end
  if #lines > 0 then
    put("enum {")
    for _, line in ipairs(lines) do put(line) end
    put("};")
    put("")
  end
  return widths
end

-- Does an operation read or write keys and values: those in pages, in rings, or any?
function structs.reads_cache(ops, state)
  for _, op in ipairs(ops) do
    for _, input in ipairs(op.inputs or {}) do
      local tensor = input.tensor
      local found = tensor.state == "kv" and (tensor.window > 0 and "ring" or "paged")
      if found and (not state or found == state) then return true end
    end
    for _, section in ipairs(op.sections or {}) do
      if structs.reads_cache(section.ops, state) then return true end
    end
  end
  return false
end

-- Extents whose counts kernels are given; args_of(row) are an operation's.
function structs.extents(program, args_of)
  local extents = {}
  for _, row in ipairs(graph.flat(program)) do
    for _, arg in ipairs(args_of(row)) do
      local extent = arg:match "^n_(.*)$"
      if arg == "rows" then extent = graph.extent(row.op.result) end
      if extent and size.extent_names[extent] then extents[extent] = true end
    end
  end
  return extents
end

return structs
