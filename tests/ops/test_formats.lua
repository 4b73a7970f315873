-- tests/ops/test_formats.lua -- A row that went into a tile comes out of it: pack and gather of
-- each format, against blocks decoded independently; and what a packed matrix takes.

local spec = require "tests.support.spec"
local tiles = require "gen.tiles"
local harness = require "tests.ops.harness"

local names = { "f32", "f16", "bf16", "q4_0", "q4_1", "q8_0" }
local widths = { f32 = { 33, 40 }, f16 = { 37, 64 }, bf16 = { 41, 64 }, q4_0 = { 32, 160 }, q4_1 = { 32, 96 }, q8_0 = { 64, 96 } }

local main_text = [[
static void check(
        const struct linear_config *c,
        int n_rows,
        void (*gather)(float *restrict y, const uint8_t *restrict tile, int row))
{
    uint64_t seed = (uint64_t)(c->k + n_rows);
    uint8_t *file = obtain(32 * c->file_row_bytes + 1), *tile = obtain(c->tile_bytes + 64);
    const uint8_t *rows[32];
    float y[256];

    memset(tile, 0xee, c->tile_bytes + 64);
    for (int row = 0; row < n_rows; row++) {
        uint8_t *at = file + 1 + (size_t)row * c->file_row_bytes; /* not aligned */
        check_random_row(at, c, &seed);
        rows[row] = at;
    }
    c->pack(tile, rows, n_rows, c->k);
    for (int i = 0; i < 64; i++)
        CHECK(tile[c->tile_bytes + (size_t)i] == 0xee);

    for (int row = 0; row < 32; row++) {
        gather(y, tile, row);
        for (int i = 0; i < c->k; i++) {
            const double right = row < n_rows ? check_weight(rows[row], c->format, i) : 0.0;
            CHECK(y[i] == (float)right);
        }
    }
    free(file);
    free(tile);
}

]]

spec("a row of a tile is the file's row, and missing rows are zeros", function()
  local family = harness.families[1]
  local source = harness.source(family):write '#include "tests/ops/linear_check.h"\n\n'
  source:write(main_text)
  local calls = {}
  for _, name in ipairs(names) do
    local format = require("gen.formats." .. name)
    source:add(tiles.pack(format))
    for _, k in ipairs(widths[name]) do
      local gather = tiles.gather(format, k)
      source:add(gather)
      for _, n_rows in ipairs { 1, 17, 32 } do
        calls[#calls + 1] = ([[
    check(&(struct linear_config){
                  .format = %s, .k = %d, .tile_bytes = %d, .file_row_bytes = %d, .pack = pack_%s },
          %d, %s);
]]):format(name:upper(), k, format.tile_bytes(k), format.file_row_bytes(k), name, n_rows, gather.name)
      end
    end
  end
  source:write("int main(void)\n{\n" .. table.concat(calls) .. "    return 0;\n}\n")

  harness.run(family, source)
end)

spec("whole tiles take exactly the file's bytes", function()
  for _, name in ipairs(names) do
    local format = require("gen.formats." .. name)
    for k = 32, 4096, 32 do
      spec.equal(format.tile_bytes(k), 32 * format.file_row_bytes(k), name)
      spec.equal(format.tile_bytes(k) % 64, 0, name)
    end
  end
end)

spec("a row of int8 takes a quarter of the floats and 1/16 for scales and sums", function()
  local q8 = require "gen.formats.act_q8"
  spec.equal(q8.row_bytes(1536), 1536 + 48 * 8)
  spec.equal(q8.row_bytes(40), 128) -- 64 values, 16 bytes, rounded up to 64
end)

harness.done()
