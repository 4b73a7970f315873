-- tests/ops/test_encoder_rows.lua -- What an encoder of images does row by row: positions in a plane,
-- pooling, standardizing. Against the references in Lua, on one thread and on three.

local spec = require "tests.support.spec"
local harness = require "tests.ops.harness"
local rows = require "tests.ops.rows"

local N_ROWS, matrix, flat = rows.N_ROWS, rows.matrix, rows.flat

local function reference(op_name, ...)
  local y = {}
  require("gen.ops." .. op_name).reference(y, ...)
  return y
end

-- Packed f32: a tile holds 32 rows, column after column (gen/formats/f32.lua).
local function packed(x)
  local list = {}
  for tile = 0, (#x - 1) // 32 do
    for column = 1, #x[1] do
      for row = 1, 32 do list[#list + 1] = (x[tile * 32 + row] or {})[column] or 0 end
    end
  end
  return list
end

local positions = { 0, 0, 1, 0, 3, 2, 7, 30, 39, 21 } -- x, y of each row

for _, family in ipairs(harness.here()) do
  local function it(name, run) spec(family.name .. ": " .. name, run) end

  for _, layout in ipairs { "split", "joined" } do
    it("rope_2d turns by x and by y, " .. layout, function()
      local d, n_heads = 24, 3
      local attrs = { theta = 100, d_head = d, n_heads = n_heads, layout = layout, inv_freq = {}, d = d, key = "a" }
      for i = 0, d // 4 - 1 do attrs.inv_freq[i + 1] = 100 ^ (-4 * i / d) end
      local angles = rows.run(family, {
        op = "rope_2d_angles", d = d, ints = { positions = positions },
        node = { inputs = { positions = { dims = { "soft", 2 } } }, attrs = attrs },
      })
      for i = 1, N_ROWS do
        local position = { positions[2 * i - 1], positions[2 * i] }
        local expected = reference("rope_2d_angles", position, attrs)
        for j = 1, d do spec.near(angles[i][j], expected[j], 3e-6) end
      end

      local stride = n_heads * d + 8
      local x = matrix(N_ROWS, stride)
      local found = rows.run(family, {
        op = "rope_2d", d = stride, data = { x = flat(x), angles = flat(angles) },
        values = { y_stride = tostring(stride) },
        before = "    memcpy(one, x, sizeof x);\n    memcpy(three, x, sizeof x);\n",
        node = { inputs = { x = { dims = { "soft", n_heads * d } } }, attrs = attrs },
      })
      for i = 1, N_ROWS do
        local expected = table.move(x[i], 1, stride, 1, {})
        for h = 0, n_heads - 1 do
          local head = table.move(x[i], h * d + 1, h * d + d, 1, {})
          local turned = reference("rope_2d", head, { positions[2 * i - 1], positions[2 * i] }, attrs)
          table.move(turned, 1, d, h * d + 1, expected)
        end
        for j = 1, stride do spec.near(found[i][j], expected[j], 2e-5) end
      end
    end)
  end

  it("position_embedding adds the vectors of both axes", function()
    local d, n = 24, 40
    local x, of_x, of_y = matrix(N_ROWS, d), matrix(n, d), matrix(n, d)
    local tables = { axis_first = {}, axis_last = {} }
    for i = 1, n do
      tables.axis_first[i], tables.axis_first[n + i] = of_x[i], of_y[i]
      tables.axis_last[2 * i - 1], tables.axis_last[2 * i] = of_x[i], of_y[i]
    end
    for order, list in pairs(tables) do
      local found = rows.run(family, {
        op = "position_embedding", d = d, ints = { positions = positions },
        data = { x = flat(x), packed = packed(list) },
        values = { weight = "(const uint8_t *)(const void *)packed" },
        before = "    memcpy(one, x, sizeof x);\n    memcpy(three, x, sizeof x);\n",
        node = { inputs = {
          x = { dims = { "soft", d } },
          weight = { dims = order == "axis_first" and { 2, n, d } or { n, 2, d }, format = "f32" },
        } },
      })
      local expected = {}
      for i = 1, N_ROWS do
        expected[i] = reference("position_embedding", x[i], of_x, of_y,
          { positions[2 * i - 1], positions[2 * i] })
      end
      rows.compare(found, expected)
    end
  end)

  it("pool is the mean of adjacent rows", function()
    local x = matrix(9 * N_ROWS, 40)
    for _, scale in ipairs { 1, 6.25 } do
      local attrs = { size = 9, scale = scale ~= 1 and scale or nil }
      local found = rows.run(family, {
        op = "pool", d = 40, data = { x = flat(x) },
        node = { inputs = { x = { dims = { "soft", 40 } } }, attrs = attrs },
      })
      for i = 1, N_ROWS do
        local expected = reference("pool", table.move(x, 9 * i - 8, 9 * i, 1, {}), attrs)
        for j = 1, 40 do spec.near(found[i][j], expected[j], 1e-6 * scale) end
      end
    end
  end)

  it("standardize takes a vector off and multiplies by one", function()
    local x, bias, scale = matrix(N_ROWS, 40), matrix(1, 40)[1], matrix(1, 40)[1]
    local found = rows.run(family, {
      op = "standardize", d = 40, data = { x = flat(x), bias = bias, scale = scale },
      node = { inputs = { x = { dims = { "soft", 40 } } } },
    })
    local expected = {}
    for i = 1, N_ROWS do expected[i] = reference("standardize", x[i], bias, scale) end
    rows.compare(found, expected)
  end)
end

harness.done()
