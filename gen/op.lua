-- gen/op.lua -- What an operation is: all that is true of it stands in gen/ops/<name>.lua.
--
--   return op.define "rms_norm" {
--     inputs = { "x", "weight" },        in the order of a description's call; "weight?" may be
--                                        left out. Attributes follow: rms_norm(x, w, { eps = 1 }).
--     attrs = { eps = "number" },        "number?" may be left out; also "count" (a positive
--                                        integer), "list" (of numbers), "boolean", "string"
--     shape = function(x, weight, attrs) shapes in (lists of sizes; a KV cache is its table),
--                                        the result's shape out; may fill attrs. op.check().
--     bytes, reference                   see style.md, for people and tests
--     out = { "f32", "q8" },             formats in which it can write its result itself
--     writes = function(node, format)    whether it can for this node's sizes; default: yes
--     takes = { index = "i32" },         what an input is if not f32; "kv" for a cache
--     activation = "x",                  this input comes in the format that `weight` wants
--     state = "kv",                      it writes that state; its result is not a buffer
--     partition = "rows",                a thread takes burin_share(t, rows) of its extent
--     in_place = "x",                    the result is this input, changed: no buffer of its own
--     may_overwrite = { "x" },           inputs whose place the result may take
--     strided = { "x" },                 inputs that may be columns of a wider buffer
--     gathers = { "x" },                 with partition "rows": inputs of which any row is read
--     internal = true,                   passes make it, descriptions can't
--     scratch = function(node, family)   bytes of scratch a thread
--     shares_scratch = true,             threads read each other's, up to its end
--     kernel = function(node, family)    { template, name, params, args }; without it, or where
--                                        it gives nil, no CPU runs it yet: it is planned only
--     cuda = { kernels = 1 },            what a GPU launches for it, or function(node, family): how many
--                                        kernels where nobody has written them yet, else `launches`;
--                                        copies; bytes of scratch, of all of them together, and
--                                        of fast_scratch, which under --fast-gemm takes its place
--     reads = { "positions" },           inputs that an engine fills, beside its own
--     wide = true,                       its result is f32 in every family
--     share = function(x, weight)        shapes in; of its weights' bytes, what a step of one token
--                                        reads: 1 where it isn't said
--     stacks = 2,                        its weight (n, rows, k) is a stack: of each of n, so many
--                                        matrices of rows / 2, whose tiles lie in turn
--     angles = "rope_angles",            on a CPU its positions become angles, which this operation
--                                        makes once a step; attrs.inv_freq, attrs.d_head
--     quantum = 64,                      prompts are cut only at multiples of so many tokens
--     reshape = "x",                     the result is this input's memory with other dims, or from
--                                        attrs.column on some of its columns
--     around = { weight = 1 },           what trained values of its weights lie around, if not 0; or
--                                        function(attrs). See gen/around.lua.
--     hyperparameters = function(x, attrs)   as shape(): what a checkpoint may say too, by our
--                                        names; { eps = 1e-5 }. See gen/hyperparameters.lua.
--   }
--
-- kernel() and scratch() see a node:
--   node.inputs.x   { dims = { "tokens", 576 }, dtype = "f32", act = "f32" | "bf16" | "q8",
--                     format = "q4_1" (weights), stride = elements between rows }
--                   a KV cache: { n_heads, d_key, d_value, page_bytes, head_bytes (of a page),
--                     window (0: all tokens, in pages), slot_bytes (of a sequence's rings) }
--   node.y          the result, likewise       node.out    its format
--   node.attrs      the attributes             node.kv_dtype "bf16" | "f32"
--   node.dim_name(576 [, "d_model"])           how C spells it: a name of that value, the given
--                                              one if it has it; else the number
-- family is { name = "avx512", cpu = "avx512" | "portable", exact = bool }.
--
-- A launch is { template, name, params, needs, args, blocks, threads, shared, few }: as a kernel of a
-- CPU, and how many blocks of how many threads, with so many bytes of dynamic shared memory. Each of
-- `args` is an argument of the kernel, in order: a device address or an int. A text that is copied
-- gets a name, "n=D_MODEL". `blocks` are up to three C expressions in the names of args ("n_rows" for
-- "rows"). `few = { rows = 8, name, params, blocks, ... }` is what takes its place where there are so
-- few rows (few.by names another count than n_rows); what it doesn't say is as said without. `fast`,
-- of a launch that is a plain product, is how cuBLASLt has it: { unpack, k, y_dtype, adds }, where unpack
-- is the kernel that leaves its weights in scratch (gen/cuda_tiles.lua).
--
-- args are C texts after `t`: an input's name or "y" is its pointer, "x_stride" or "y_stride"
-- the elements between its rows, "rows" the count of the op's extent, "scratch", "pages" (this
-- layer's part of page 0) or "ring" (of slot 0), "layer", "max_pages" and the program's inputs by
-- role ("positions"); all else is copied.

local size = require "gen.size"

local op = {}
local folder = debug.getinfo(1, "S").source:match "^@(.*)op%.lua$"

-- ---- Checks, reported at the description's line -----------------------------------------

-- Errors of op files carry no position: the tracer puts the description's before them.
function op.check(ok, message, ...)
  if ok then return end
  local args = table.pack(...)
  for i = 1, args.n do args[i] = size.is(args[i]) and tostring(args[i]) or args[i] end
  error({ op_message = message:format(table.unpack(args, 1, args.n)) }, 0)
end

op.shape_text, op.same_shape = size.shape_text, size.same_shape

-- A width that is heads * width of each: the declared product's factors, or attrs.d_head.
function op.heads(width, d_head)
  if d_head then
    local d = size.of(d_head)
    op.check(d:value() > 0, "d_head must be positive, got %s", d)
    op.check(width:value() % d:value() == 0, "%s isn't a multiple of d_head = %s", width, d)
    return width:value() // d:value(), d:value()
  end
  op.check(width.factors,
    "can't tell the heads in %s: declare it as n_heads * d_head, or give { d_head = ... }", width)
  return width.factors[1]:value(), width.factors[2]:value()
end

-- ---- Definitions ------------------------------------------------------------------------

local known = {
  internal = "boolean",
  inputs = "table", attrs = "table", shape = "function", bytes = "function",
  reference = "function", emit = "table", out = "table", partition = "string",
  in_place = "string", strided = "table", scratch = "function", kernel = "function",
  activation = "string", result_dtype = "string", state = "string", writes = "function",
  may_overwrite = "table", gathers = "table", shares_scratch = "boolean", takes = "table",
  hyperparameters = "function", reads = "table", wide = "boolean", reshape = "string",
  quantum = "number", angles = "string", stacks = "number", share = "function",
  cuda = "any", around = "any",
}

function op.define(name)
  return function(def)
    for key, value in pairs(def) do
      if not known[key] then error(("op '%s': unknown field '%s'"):format(name, key), 2) end
      if known[key] ~= "any" and type(value) ~= known[key] then
        error(("op '%s': %s must be a %s"):format(name, key, known[key]), 2)
      end
    end
    assert(def.inputs and def.shape, name .. ": an op states inputs and shape")
    def.name, def.optional = name, {}
    local inputs = {}
    for i, input in ipairs(def.inputs) do
      inputs[i] = input:gsub("%?$", "")
      def.optional[inputs[i]] = input:sub(-1) == "?"
    end
    def.inputs = inputs
    def.attrs = def.attrs or {}
    def.out = def.out or { "f32" }
    def.takes = def.takes or {}
    local kind = type(def.cuda)
    assert(kind == "nil" or kind == "table" or kind == "function",
      name .. ": cuda says what a GPU launches")
    return def
  end
end

local loaded = {}

-- The op in gen/ops/<name>.lua, or nil where there is no such file.
function op.find(name)
  if loaded[name] ~= nil then return loaded[name] or nil end
  local file = name:find "^[a-z][a-z0-9_]*$" and io.open(folder .. "ops/" .. name .. ".lua")
  if file then file:close() end
  loaded[name] = file and require("gen.ops." .. name) or false
  return loaded[name] or nil
end

-- Rows in groups with scales: who can write one kind can write another.
local as_q8 = { fp8 = "q8", nvfp4 = "q8" }

-- Can an operation write its result in a format itself? `face` is the node as kernel() sees it.
function op.can_write(def, face, format)
  local listed = false
  format = as_q8[format] or format
  for _, out in ipairs(def.out) do listed = listed or out == format end
  return listed and (not def.writes or def.writes(face, format))
end

return op
