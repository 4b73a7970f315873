-- tests/ops/test_rows.lua -- Operations on rows against their references in Lua: norms, convert,
-- rope_angles, rope, embedding, rows, what picks and inserts rows and columns, and those element
-- by element. Each runs on one thread and on three.

local spec = require "tests.support.spec"
local harness = require "tests.ops.harness"
local rows = require "tests.ops.rows"
local N_ROWS, matrix, flat = rows.N_ROWS, rows.matrix, rows.flat
local run_op, compare = rows.run, rows.compare

for _, family in ipairs(harness.here()) do
  local function it(name, run) spec(family.name .. ": " .. name, run) end

  for _, out in ipairs { "f32", "bf16", "q8", "q8x2" } do
    it("rms_norm gives " .. out, function()
      for _, d in ipairs { 40, 96 } do
        local x, weight = matrix(N_ROWS, d), matrix(1, d)[1]
        local found = run_op(family, {
          op = "rms_norm", d = d, data = { x = flat(x), weight = weight },
          node = {
            inputs = { x = { dims = { "tokens", d } }, weight = { dims = { d } } },
            attrs = { eps = 1e-5 }, out = out,
          },
        })
        local expected = {}
        for i = 1, N_ROWS do
          expected[i] = {}
          require "gen.ops.rms_norm".reference(expected[i], x[i], weight, { eps = 1e-5 })
        end
        compare(found, expected, out)
      end
    end)
  end

  it("rms_norm needs no weight, and takes one that lacks 1", function()
    local x, weight = matrix(N_ROWS, 40), matrix(1, 40)[1]
    for _, offset in ipairs { false, 1 } do
      local attrs = { eps = 1e-6, offset = offset or nil }
      local found = run_op(family, {
        op = "rms_norm", d = 40, data = { x = flat(x), weight = offset and weight or nil },
        node = {
          inputs = { x = { dims = { "tokens", 40 } }, weight = offset and { dims = { 40 } } or nil },
          attrs = attrs,
        },
      })
      local expected = {}
      for i = 1, N_ROWS do
        expected[i] = {}
        require "gen.ops.rms_norm".reference(expected[i], x[i], offset and weight or nil, attrs)
      end
      compare(found, expected, "f32")
    end
  end)

  it("head_norm norms each head by itself, with one weight, one that lacks 1, or none", function()
    local d, n_heads, stride = 24, 3, 3 * 24 + 8
    local x, weight = matrix(N_ROWS, stride), matrix(1, d)[1]
    for _, kind in ipairs { "weight", "offset", "none" } do
      local attrs = { eps = 1e-6, d_head = d, n_heads = n_heads, offset = kind == "offset" and 1 or nil }
      local w = kind ~= "none" and weight or nil
      local found = run_op(family, {
        op = "head_norm", d = stride, data = { x = flat(x), weight = w },
        values = { y_stride = tostring(stride), x_stride = tostring(stride) },
        before = "    memcpy(one, x, sizeof x);\n    memcpy(three, x, sizeof x);\n",
        node = {
          inputs = { x = { dims = { "tokens", n_heads * d } }, weight = w and { dims = { d } } },
          attrs = attrs,
        },
      })
      local expected = {}
      for i = 1, N_ROWS do
        expected[i] = table.move(x[i], 1, stride, 1, {})
        for h = 0, n_heads - 1 do
          local head = {}
          require "gen.ops.head_norm".reference(head, table.move(x[i], h * d + 1, h * d + d, 1, {}), w, attrs)
          table.move(head, 1, d, h * d + 1, expected[i])
        end
      end
      compare(found, expected, "f32")
    end
  end)

  for _, out in ipairs { "bf16", "q8", "q8x2" } do
    it("convert gives " .. out, function()
      local x = matrix(N_ROWS, 72)
      local found = run_op(family, {
        op = "convert", d = 72, data = { x = flat(x) },
        node = { inputs = { x = { dims = { "tokens", 72 } } }, out = out },
      })
      compare(found, x, out)
    end)
  end

  it("rope turns pairs of each head by the position's angles", function()
    local d, inv_freq, positions = 24, {}, { 0, 1, 7, 500, 8191 }
    for i = 1, d // 2 do inv_freq[i] = (string.unpack("<f", string.pack("<f", 10000 ^ (-2 * (i - 1) / d)))) end
    local angles = run_op(family, {
      op = "rope_angles", d = d, ints = { positions = positions },
      node = { inputs = { positions = { dims = { "tokens" } } }, attrs = { d = d, inv_freq = inv_freq, key = "a" } },
    })
    for i, position in ipairs(positions) do
      for j, f in ipairs(inv_freq) do
        local angle = (string.unpack("<f", string.pack("<f", position * f)))
        spec.near(angles[i][j], math.cos(angle), 2e-7)
        spec.near(angles[i][d // 2 + j], math.sin(angle), 2e-7)
      end
    end

    local n_heads, stride = 3, 3 * d + 8
    local x = matrix(N_ROWS, stride)
    local found = run_op(family, {
      op = "rope", d = stride, data = { x = flat(x), angles = flat(angles) },
      values = { y_stride = tostring(stride) },
      before = "    memcpy(one, x, sizeof x);\n    memcpy(three, x, sizeof x);\n",
      node = { inputs = { x = { dims = { "tokens", 3 * d } } }, attrs = { d_head = d, n_heads = n_heads } },
    })
    local expected = {}
    for i = 1, N_ROWS do
      expected[i] = table.move(x[i], 1, stride, 1, {})
      for h = 0, n_heads - 1 do
        local head = {}
        require "gen.ops.rope".reference(head, table.move(x[i], h * d + 1, h * d + d, 1, {}), angles[i])
        table.move(head, 1, d, h * d + 1, expected[i])
      end
    end
    compare(found, expected, "f32")
  end)

  it("add, mul, silu, gelu_tanh, copy and scale go element by element", function()
    local x, other = matrix(N_ROWS, 40), matrix(N_ROWS, 40)
    for _, op in ipairs { "add", "mul", "silu", "gelu_tanh", "copy", "scale" } do
      local two = op == "add" or op == "mul"
      local attrs = { factor = 0.125 }
      local found = run_op(family, {
        op = op, d = 40, data = { x = flat(x), other = two and flat(other) or nil },
        node = { inputs = { x = { dims = { "tokens", 40 } } }, attrs = attrs },
      })
      local expected = {}
      for i = 1, N_ROWS do
        expected[i] = {}
        require("gen.ops." .. op).reference(expected[i], x[i], two and other[i] or attrs)
      end
      compare(found, expected, "f32")
    end
  end)

  it("softcap, scale_by and add_vector change rows where they lie", function()
    local x, weight = matrix(N_ROWS, 40), matrix(1, 40)[1]
    for j = 1, 40 do x[1][j], x[2][j] = 40 * x[1][j], x[2][j] / 64 end
    for _, op in ipairs { "softcap", "scale_by", "add_vector" } do
      local attrs = { cap = 30 }
      local found = run_op(family, {
        op = op, d = 40, data = { x = flat(x), weight = op ~= "softcap" and weight or nil },
        before = "    memcpy(one, x, sizeof x);\n    memcpy(three, x, sizeof x);\n",
        node = { inputs = { x = { dims = { "tokens", 40 } } }, attrs = attrs },
      })
      local expected = {}
      for i = 1, N_ROWS do
        expected[i] = {}
        require("gen.ops." .. op).reference(expected[i], x[i], op == "softcap" and attrs or weight)
      end
      compare(found, expected, "f32")
    end
  end)

  it("insert_rows replaces those that have an index, layer_columns takes the layer's", function()
    local x, soft, index = matrix(N_ROWS, 24), matrix(7, 24), { -1, 3, 0, -1, 6 }
    local found = run_op(family, {
      op = "insert_rows", d = 24, data = { x = flat(x), soft = flat(soft) }, ints = { picked = index },
      before = "    memcpy(one, x, sizeof x);\n    memcpy(three, x, sizeof x);\n",
      values = { table = "soft", index = "picked" },
      node = { inputs = { x = { dims = { "tokens", 24 } } } },
    })
    local expected = {}
    for i = 1, N_ROWS do
      expected[i] = {}
      require "gen.ops.insert_rows".reference(expected[i], x[i], soft, index[i])
    end
    compare(found, expected, "f32")

    found = run_op(family, {
      op = "layer_columns", d = 8, data = { x = flat(x) }, values = { layer = "2" },
      node = { inputs = { x = { dims = { "tokens", 24 } } }, attrs = { width = 8 } },
    })
    for i = 1, N_ROWS do
      expected[i] = {}
      require "gen.ops.layer_columns".reference(expected[i], x[i], { width = 8 }, 2)
    end
    compare(found, expected, "f32")
  end)

  it("rows and embedding pick rows", function()
    local index = { 4, 0, 4, 2, 33 }
    local x = matrix(40, 24)
    local found = run_op(family, {
      op = "rows", d = 24, data = { x = flat(x) }, ints = { picked = index }, values = { index = "picked" },
      node = { inputs = { x = { dims = { "tokens", 24 } } } },
    })
    local expected = {}
    for i, at in ipairs(index) do expected[i] = x[at + 1] end
    compare(found, expected, "f32")

    -- Packed f32: a tile holds 32 rows, column after column (gen/formats/f32.lua).
    local packed = {}
    for tile = 0, 1 do
      for column = 1, 24 do
        for row = 1, 32 do packed[#packed + 1] = (x[tile * 32 + row] or {})[column] or 0 end
      end
    end
    found = run_op(family, {
      op = "embedding", d = 24, data = { packed = packed }, ints = { token_ids = index },
      values = { weight = "(const uint8_t *)(const void *)packed" },
      node = { inputs = { weight = { dims = { 40, 24 }, format = "f32" } } },
    })
    compare(found, expected, "f32")
  end)
end

harness.done()
