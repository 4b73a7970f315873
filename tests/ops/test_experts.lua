-- tests/ops/test_experts.lua -- experts_glu and experts_down for each format of weights: right, and
-- the same bits whatever the batch and the threads.

local spec = require "tests.support.spec"
local tiles = require "gen.tiles"
local harness = require "tests.ops.harness"
local size = require "gen.size"

local N_EXPERTS, N_SLOTS = 7, 3 -- of tests/ops/experts_check.h

local wrapper = [[
static void run_%s(const struct burin_team *t, void *context)
{
    const struct experts_step *s = context;
    %s;
}

static const struct linear_config %s = {
    .name = "%s", .format = %s, .x = ACT_%s, .y = ACT_%s, .kind = %s, .k = %d, .n = %d,
    .tile_bytes = %d, .file_row_bytes = %d, .scratch_bytes = %d, .pack = pack_%s, .run = run_%s,
};
]]

-- Adds one kernel and its linear_config to a source; returns the config's name.
local function add_config(source, family, c, emitted)
  local format = require("gen.formats." .. c.format)
  local act = family.exact and format.act.exact or format.act.default
  local glu = c.kind ~= "store"
  local op_name, x = glu and "experts_glu" or "experts_down", glu and "x" or "h"
  local node = {
    inputs = {
      [x] = { dims = { "tokens", c.k }, act = act },
      weight = { dims = { N_EXPERTS, size.of(glu and 2 * c.n or c.n), c.k }, format = c.format },
    },
    attrs = { n_slots = N_SLOTS, activation = glu and c.kind or nil },
    out = c.out,
  }
  local kernel = harness.kernel(op_name, node, family)
  if c.chunk then kernel.params.chunk = c.chunk end
  local name = ("%s_%s_%s_%s_%d_%d"):format(c.kind, c.format, act, c.out or "f32", c.k, c.n)
  local pack = tiles.pack(format)
  source:add(pack):add(kernel)
  emitted:add(pack):add(kernel)
  node.dim_name = function(_, long) return (long or "d_intermediate"):upper() end
  emitted:add(harness.kernel(op_name, node, family)) -- with long names too
  source:write(wrapper, name, harness.call(kernel, {
      y = "s->y", x = "s->x", h = "s->x", weight = "s->w", rows = "s->rows", begin = "s->begin",
      scratch = "s->scratch + (size_t)t->thread * s->scratch_stride",
    }), name, name, c.format:upper(), act:upper(), (c.out or "f32"):upper(), c.kind:upper(), c.k, c.n,
    format.tile_bytes(c.k), format.file_row_bytes(c.k),
    require("gen.ops." .. op_name).scratch(node, family), c.format, name)
  return name
end

-- Widths that are no multiple of 32 where the format allows it; outputs that leave a tile.
local configs = {
  { kind = "store", format = "f32", k = 301, n = 31 },
  { kind = "store", format = "bf16", k = 37, n = 70, chunk = 1 }, -- tiles dealt out in turn
  { kind = "store", format = "f16", k = 40, n = 96 },
  { kind = "store", format = "q8_0", k = 160, n = 33 },
  { kind = "store", format = "q4_0", k = 96, n = 70 },
  { kind = "gelu_tanh", format = "f32", k = 36, n = 72, out = "f32" },
  { kind = "gelu_tanh", format = "bf16", k = 40, n = 56, out = "bf16" },
  { kind = "silu", format = "bf16", k = 2816, n = 40, out = "f32" }, -- several parts of one expert
  { kind = "silu", format = "f16", k = 41, n = 56, out = "f32" },
  { kind = "gelu_tanh", format = "q8_0", k = 64, n = 80, out = "q8" },
  { kind = "silu", format = "q4_1", k = 64, n = 96, out = "q8" },
}

-- As tests/ops/test_linear.lua: a few roundings of f32, and where the result is short one of its own.
local tolerance = { f32 = 1e-6, q8 = 2e-6, bf16 = 1e-3 }

for _, family in ipairs(harness.here()) do
  for _, exact in ipairs { false, true } do
    family.exact = exact
    local source = harness.source(family):write '#include "tests/ops/experts_check.h"\n\n'
    local emitted = harness.source(family)
    local calls = {}
    for _, c in ipairs(configs) do
      calls[#calls + 1] = ("    check_experts(&%s);\n"):format(add_config(source, family, c, emitted))
    end
    source:write("int main(void)\n{\n%s    return 0;\n}\n", table.concat(calls))

    local what = family.name .. (exact and ", exact" or "")
    spec(what .. ": experts are near the reference, and batch and threads don't change bits", function()
      local output = harness.run(family, source)
      local n = 0
      for out, err in output:gmatch "_(%w+)_%d+_%d+ error (%S+)" do
        n = n + 1
        spec.near(tonumber(err) or 0 / 0, 0, tolerance[out], output)
      end
      spec.equal(n, #configs)
    end)

    spec(what .. ": clang-format would change nothing in what was emitted", function()
      spec.equal(harness.unformatted(emitted), nil)
    end)
  end
end

harness.done()
