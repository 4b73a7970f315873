-- tests/gen/test_@NAME@.lua -- models/@NAME@.lua: element totals as published, and a plan.
-- Its logits against an independent implementation belong into tests/models, with the golden
-- data and the script that made them in tests/golden.

local spec = require "tests.support.spec"
local describe = require "tests.gen.describe"
local layout = require "gen.layout"

spec("the variants have as many elements as published", function()
  local published = { small = 82240 }
  for variant, elements in pairs(published) do
    spec.equal(layout.elements(describe.file("@NAME@", variant)), elements, variant)
  end
end)

spec("every family can be planned", function()
  for _, family in ipairs(describe.planned(describe.file "@NAME@")) do
    spec.equal(#family.programs, 1, family.name)
  end
end)
