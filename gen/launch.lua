-- gen/launch.lua -- What operations on rows share in what a GPU launches for them: kernels that are
-- named for their rows' formats, and what goes number by number or column by column.

local launch = {}

local c_type = { bf16 = "u16", f32 = "float", i32 = "int", u8 = "u8" }

-- "scale_d_model": of bf16 rows alone; else what they are, the result's first, but for indices.
local function name_of(said, kinds)
  local plain, of_rows = true, {}
  for _, kind in ipairs(kinds) do
    if kind ~= "i32" then of_rows[#of_rows + 1] = kind end
    plain = plain and (kind == "bf16" or kind == "i32")
  end
  local tail = plain and "" or "_" .. table.concat(of_rows, "_")
  return ("%s_%s%s"):format(said.name, tostring(said.width):lower(), tail)
end

-- What is kept of a row of logits: BURIN_TOP columns and their logits (runtime/engine/sampler.h), then two
-- numbers of all of it.
launch.TOP = 64
launch.TOP_WORDS = 2 * launch.TOP + 2

-- One kernel. `said` is a launch as gen/op.lua has it, and: width (of a row, for its name), rows
-- (inputs whose formats it is made for, beside the result's: params.x is x's type). There is none
-- yet for rows of other formats.
function launch.one(node, said)
  local params, kinds = { y = c_type[node.y.dtype] }, { node.y.dtype }
  local known = params.y ~= nil
  for _, input in ipairs(said.rows) do
    params[input] = c_type[node.inputs[input].dtype]
    kinds[#kinds + 1] = node.inputs[input].dtype
    known = known and params[input] ~= nil
  end
  if not known then return { kernels = 1 } end
  for key, value in pairs(said.params) do params[key] = value end
  return { launches = { {
    template = said.template, name = name_of(said, kinds), needs = said.needs, params = params,
    args = said.args, blocks = said.blocks, threads = said.threads,
  } } }
end

-- A thread has one number of each result: blocks of 256 columns of a row.
function launch.columns(node, n_columns, said)
  said.threads, said.blocks = 256, { "n_rows", tostring((n_columns + 255) // 256) }
  return launch.one(node, said)
end

-- Threads of a block that sums a row of d: about 8 numbers each, and a power of two.
function launch.threads(d)
  local threads = 32
  while threads < 512 and threads * 8 < d do threads = 2 * threads end
  return threads
end

-- The 64 largest numbers that a warp has seen.
launch.top_list = { template = "cuda/top_list.cu", name = "top_list", params = { n = 64 } }

-- A result whose numbers are made of one of x each: templates/cuda/elementwise.cu says what f can
-- be. more: x (the input's name, if not x), other (an input of x's shape), vectors (weights that
-- every row meets), period (their length, if not a row's), factor and name (if not f).
function launch.elementwise(node, f, more)
  more = more or {}
  local x, vectors = more.x or "x", more.vectors or {}
  local d = node.dim_name(node.inputs[x].dims[2])
  local args = { "y", x, more.other }
  table.move(vectors, 1, #vectors, #args + 1, args)
  args[#args + 1] = "rows"
  local list = launch.one(node, {
    template = "cuda/elementwise.cu", name = more.name or f, width = d, rows = { x, more.other },
    params = {
      d = d, f = f, vectors = vectors, factor = more.factor or 1, period = more.period or d,
    },
    args = args, threads = 256,
    blocks = { ("(int)(((size_t)n_rows * %s + 1023) / 1024)"):format(d) },
  })
  for _, only in ipairs(list.launches or {}) do
    only.params.x, only.params.other = only.params[x], only.params.other or false
  end
  return list
end

return launch
