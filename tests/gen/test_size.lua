-- tests/gen/test_size.lua -- Named sizes: linear in one extent, or an error that names both.

local spec = require "tests.support.spec"
local size = require "gen.size"

local d_model = size.named("d_model", 40)
local n_heads, d_head = size.named("n_heads", 5), size.named("d_head", 8)
local tokens, outputs = size.extent "tokens", size.extent "outputs"
local threads = size.param "threads"

spec("a constant has a value, and C's spelling is its name", function()
  spec.equal(d_model:value(), 40)
  spec.equal(d_model:c(), "D_MODEL")
  spec.equal(size.of(7):c(), "7")
end)

spec("a product is spelled by its factors, and keeps them when it is named", function()
  local d_q = size.named("d_q", n_heads * d_head)
  spec.equal(d_q:value(), 40)
  spec.equal(d_q:c(), "D_Q")
  spec.equal(d_q:definition(), "N_HEADS * D_HEAD")
  spec.equal(d_q.factors[1]:value(), 5)
  spec.equal(d_q.factors[2]:value(), 8)
end)

spec("sizes are equal by value, not by name", function()
  spec.equal(d_model == n_heads * d_head, true)
  spec.equal(d_model == d_head, false)
  spec.equal(tokens == outputs, false)
  spec.equal(n_heads < d_head, true)
end)

spec("sums and products stay linear in an extent", function()
  local bytes = (tokens * d_model + 3) * 4 + threads * 256
  spec.equal(size.at(bytes, { tokens = 10, threads = 2 }), 10 * 160 + 12 + 512)
  spec.equal(tostring(bytes), "160 * tokens + 12 + 256 * threads")
end)

spec("two extents are an error that names both", function()
  spec.raises("two extents: tokens and outputs", function() return tokens * outputs end)
  spec.raises("two extents: tokens and outputs", function() return tokens + outputs end)
  spec.raises("two extents: tokens and outputs", function() return tokens * 2 + outputs * 2 end)
end)

spec("the square of an extent is an error", function()
  spec.raises("the square of tokens", function() return tokens * tokens end)
  spec.raises("the square of tokens", function() return (tokens + 1) * (tokens * 2) end)
end)

spec("powers of parameters multiply", function()
  local x = threads * threads * 3 + size.param "draft" * threads
  spec.equal(size.at(x, { threads = 4, draft = 5 }), 48 + 20)
  local terms = size.terms(x.fixed)
  spec.equal(#terms, 2)
  spec.equal(terms[2].powers.threads, 2)
end)

spec("a division that leaves a remainder is an error", function()
  spec.equal((d_model / n_heads):value(), 8)
  spec.raises("isn't a multiple", function() return d_model / size.of(7) end)
  spec.raises("divided by zero", function() return d_model // 0 end)
end)

spec("rounding up keeps offsets aligned for every n", function()
  local x = size.rounded(tokens * 100 + 10, 64, 256)
  for n = 0, 20 do
    local at = size.at(x, { tokens = n })
    spec.equal(at % 64, 0)
    if at < n * 100 + 10 then error "rounded down" end
  end
end)

spec("what isn't an integer is no size", function()
  spec.raises("a size is an integer", size.of, 1.5)
  spec.raises("a size is an integer", size.of, "4")
  spec.equal(size.of(4.0):value(), 4)
end)

spec("a shape is shown in the description's words", function()
  spec.equal(size.shape_text { tokens, d_model, size.of(3) }, "(tokens, D_MODEL, 3)")
end)
