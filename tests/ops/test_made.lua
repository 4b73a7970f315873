-- tests/ops/test_made.lua -- clipped_linear and patch_embed for each format of weights: right, and
-- the same bits whatever the rows and threads.

local spec = require "tests.support.spec"
local tiles = require "gen.tiles"
local harness = require "tests.ops.harness"
local size = require "gen.size"

local wrapper = [[
static void run_%s(const struct burin_team *t, void *context)
{
    const struct made_step *s = context;
    %s;
}

static const struct linear_config %s = {
    .name = "%s", .format = %s, .x = ACT_%s, .y = ACT_F32, .kind = %s, .k = %d, .n = %d,
    .tile_bytes = %d, .file_row_bytes = %d, .scratch_bytes = %d, .pack = pack_%s, .run = run_%s,
};
]]

-- Adds one kernel and its linear_config to a source; returns the config's name.
local function add_config(source, family, c, emitted)
  local format = require("gen.formats." .. c.format)
  local act = family.exact and format.act.exact or format.act.default
  local clips = c.kind == "store"
  local op_name = clips and "clipped_linear" or "patch_embed"
  local from = { dims = { "soft", c.k } }
  local node = {
    inputs = {
      x = from, pixels = from, bias = { dims = { c.n } },
      weight = { dims = { size.of(c.n), size.of(c.k) }, format = c.format },
    },
    attrs = { scale = 2 / 255, shift = -1 },
  }
  local kernel = harness.kernel(op_name, node, family)
  if c.chunk then kernel.params.chunk = c.chunk end
  local name = ("%s_%s_%s_%d_%d"):format(op_name, c.format, act, c.k, c.n)
  local pack = tiles.pack(format)
  source:add(pack):add(kernel)
  emitted:add(pack):add(kernel)
  node.dim_name = function(_, long) return (long or "d_intermediate"):upper() end
  emitted:add(harness.kernel(op_name, node, family)) -- with long names too
  source:write(wrapper, name, harness.call(kernel, {
      y = "s->y", x = "s->x", pixels = "s->x", weight = "s->w", rows = "s->n_rows", bias = "made_bias",
      in_min = "made_in", in_max = "made_in + 1", out_min = "made_out", out_max = "made_out + 1",
      scratch = "s->scratch + (size_t)t->thread * s->scratch_stride",
    }), name, name, c.format:upper(), act:upper(), c.kind:upper(), c.k, c.n,
    format.tile_bytes(c.k), format.file_row_bytes(c.k),
    require("gen.ops." .. op_name).scratch(node, family), c.format, name)
  return name
end

-- Widths that are no multiple of 32 where the format allows it; outputs that leave a tile.
local configs = {
  { kind = "store", format = "f32", k = 301, n = 31 },
  { kind = "store", format = "bf16", k = 37, n = 70 },
  { kind = "store", format = "bf16", k = 3072, n = 40 }, -- several parts
  { kind = "store", format = "f16", k = 40, n = 96 },
  { kind = "store", format = "q8_0", k = 160, n = 33 },
  { kind = "add", format = "f32", k = 48, n = 35 },
  { kind = "add", format = "bf16", k = 768, n = 200, chunk = 1 }, -- tiles dealt out in turn
  { kind = "add", format = "q4_0", k = 64, n = 65 },
}

for _, family in ipairs(harness.here()) do
  for _, exact in ipairs { false, true } do
    family.exact = exact
    local source = harness.source(family):write '#include "tests/ops/made_check.h"\n\n'
    local emitted = harness.source(family)
    local calls = {}
    for _, c in ipairs(configs) do
      calls[#calls + 1] = ("    check_made(&%s);\n"):format(add_config(source, family, c, emitted))
    end
    source:write("int main(void)\n{\n%s    return 0;\n}\n", table.concat(calls))

    local what = family.name .. (exact and ", exact" or "")
    spec(what .. ": rows are made and multiplied, and rows and threads don't change bits", function()
      local output = harness.run(family, source)
      local n = 0
      for err in output:gmatch " error (%S+)" do
        n = n + 1
        spec.near(tonumber(err) or 0 / 0, 0, 1e-6, output)
      end
      spec.equal(n, #configs)
    end)

    spec(what .. ": clang-format would change nothing in what was emitted", function()
      spec.equal(harness.unformatted(emitted), nil)
    end)
  end
end

harness.done()
