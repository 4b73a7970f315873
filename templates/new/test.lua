-- tests/gen/test_@NAME@.lua -- models/@NAME@.lua: elements as published, and a plan of each variant.
--
--   lua5.4 tests/support/spec.lua tests/gen/test_@NAME@.lua        alone, from the tree's root
--   tests/run -R gen/@NAME@                                        under ctest, as all tests run
--
-- It needs no weights. What does: logits against an independent implementation, in tests/models.
-- Random weights are enough for them, a checkpoint with the names that the description has;
-- tests/golden/tiny.py is how llama's were made, together with the logits to compare with.

local spec = require "tests.support.spec"
local describe = require "tests.gen.describe"
local layout = require "gen.layout"

-- variant = elements, from each release's own page. None is here before somebody looked it up:
-- a total that was computed from the description would agree with whatever it says.
local published = {
}

local variants = describe.file("@NAME@").variants

spec("the variants have as many elements as published", function()
  if not next(published) then spec.skip "no totals are in the table yet" end
  for _, variant in ipairs(variants) do
    local found = layout.elements(describe.file("@NAME@", variant))
    spec.equal(found, published[variant] or "a published total", variant)
  end
end)

spec("every family of every variant can be planned", function()
  for _, variant in ipairs(variants) do
    for _, family in ipairs(describe.planned(describe.file("@NAME@", variant))) do
      spec.equal(#family.programs > 0, true, variant .. ", " .. family.name)
    end
  end
end)
