-- gen/size.lua -- Sizes with names, and sums of them that are linear in one extent.
--
-- A size is  fixed + slope * extent.  Fixed and slope are polynomials with integer
-- coefficients in the parameters bound at start-up (max_context, threads, ...); an extent is
-- what varies from call to call (tokens, sequences, ...). Sizes of a model (d_model) are
-- constants with a name. What would need two extents, or the square of one, is an error that
-- names both.

local size = {}

-- In the order of enum burin_extent and enum burin_param, runtime/model.h.
size.extents = { "tokens", "sequences", "outputs", "soft" }
size.params = {
  "max_context", "max_pages", "max_sequences", "threads", "draft", "max_soft", "fast_gemm",
}
size.MAX_TERMS = 4
size.extent_names = {}
for _, name in ipairs(size.extents) do size.extent_names[name] = true end

local Size = {}
Size.__index = function(_, key) return Size[key] end
Size.__name = "size"

-- ---- Polynomials: { [key] = factor }, key = params joined by "*", "" for the constant ----

local function sorted_keys(poly)
  local keys = {}
  for key in pairs(poly) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

local MAX = 2 ^ 53 -- of a coefficient; far from where integers wrap

local function bounded(x, y, sign)
  local exact = sign == "*" and x * (y + 0.0) or x + (y + 0.0)
  if math.abs(exact) > MAX then error("a size is beyond 2^53", 0) end
  return sign == "*" and x * y or x + y
end

local function put(poly, key, factor)
  local sum = bounded(poly[key] or 0, factor, "+")
  poly[key] = sum ~= 0 and sum or nil
end

local function sum(a, b, sign)
  local out = {}
  for key, factor in pairs(a) do put(out, key, factor) end
  for key, factor in pairs(b) do put(out, key, factor * sign) end
  return out
end

local function join(a, b)
  if a == "" or b == "" then return a .. b end
  local names = {}
  for name in (a .. "*" .. b):gmatch "[^*]+" do names[#names + 1] = name end
  table.sort(names)
  return table.concat(names, "*")
end

local function product(a, b)
  local out = {}
  for key_a, x in pairs(a) do
    for key_b, y in pairs(b) do put(out, join(key_a, key_b), bounded(x, y, "*")) end
  end
  return out
end

local function is_zero(poly) return next(poly) == nil end
local function is_constant(poly)
  return is_zero(poly) or (next(poly) == "" and next(poly, "") == nil)
end

-- { { factor = 4, powers = { threads = 1 } }, ... } in a fixed order.
function size.terms(poly)
  local terms = {}
  for _, key in ipairs(sorted_keys(poly)) do
    local powers = {}
    for name in key:gmatch "[^*]+" do powers[name] = (powers[name] or 0) + 1 end
    terms[#terms + 1] = { factor = poly[key], powers = powers }
  end
  return terms
end

local function poly_text(poly)
  if is_zero(poly) then return "0" end
  local parts = {}
  for _, key in ipairs(sorted_keys(poly)) do
    parts[#parts + 1] = key == "" and tostring(poly[key])
      or poly[key] == 1 and key:gsub("%*", " * ")
      or poly[key] .. " * " .. key:gsub("%*", " * ")
  end
  return table.concat(parts, " + ")
end

-- ---- Making sizes ---------------------------------------------------------------------

local function make(fixed, slope, extent)
  if is_zero(slope) then extent = nil end
  return setmetatable({ fixed = fixed, slope = slope, extent = extent }, Size)
end

function size.is(x) return getmetatable(x) == Size end

-- An integer or a size, as a size.
function size.of(x)
  if size.is(x) then return x end
  if math.type(x) == "float" and x == math.floor(x) then x = math.tointeger(x) end
  if math.type(x) ~= "integer" then
    error("a size is an integer or a named size, got " .. type(x), 0)
  end
  return make(x == 0 and {} or { [""] = x }, {})
end

function size.extent(name)
  local self = make({}, { [""] = 1 }, name)
  self.name = name
  return self
end

function size.param(name)
  local self = make({ [name] = 1 }, {})
  self.name = name
  return self
end

-- The same size under a name; a product keeps its two factors, as n_heads * d_head does.
function size.named(name, x)
  x = size.of(x)
  local self = make(x.fixed, x.slope, x.extent)
  self.name, self.factors = name, x.factors
  self.text = x.name and x.name:upper() or x.text
  return self
end

-- ---- What can be asked of one -----------------------------------------------------------

-- Its value, where neither extents nor parameters are in it.
function Size:is_constant() return not self.extent and is_constant(self.fixed) end

function Size:value()
  if not self:is_constant() then error(tostring(self) .. " isn't known when we generate", 0) end
  return self.fixed[""] or 0
end

-- The constant part, the part a parameter or extent multiplies: tables and tests use these.
function Size:slope_value()
  if not is_constant(self.slope) then error(tostring(self) .. " has no constant slope", 0) end
  return self.slope[""] or 0
end

-- How many there are for each unit of its extent; nil where it isn't a whole multiple of one.
function Size:multiple()
  if self.extent and is_zero(self.fixed) and is_constant(self.slope) then
    return self:slope_value()
  end
end

-- As C spells it: a name, a number, or the expression it was made by.
function Size:c()
  if self.name then return self.name:upper() end
  return self.text or tostring(self)
end

-- The expression behind a name: N_HEADS * D_HEAD.
function Size:definition()
  return self.text or tostring(self:value())
end

local function operand(x)
  local text = x:c()
  return text:find " [+-] " and "(" .. text .. ")" or text
end

-- For messages: the name in capitals (an extent in lower case), or the sum.
function Size:__tostring()
  if self.extent and self.name then return self.name end
  if self.name then return self.name:upper() end
  if self.text then return self.text end
  if not self.extent then return poly_text(self.fixed) end
  local slope = poly_text(self.slope)
  local part = slope == "1" and self.extent
    or (slope:find " %+ " and "(" .. slope .. ")" or slope) .. " * " .. self.extent
  return is_zero(self.fixed) and part or part .. " + " .. poly_text(self.fixed)
end

-- ---- Arithmetic -----------------------------------------------------------------------

local function text_of(a, sign, b)
  if not (a:is_constant() and b:is_constant()) then return nil end
  if not (a.name or a.text or b.name or b.text) then return nil end
  if sign == "*" then return operand(a) .. " * " .. operand(b) end
  return a:c() .. " " .. sign .. " " .. (sign == "-" and operand(b) or b:c())
end

local function add(a, b, sign)
  a, b = size.of(a), size.of(b)
  if a.extent and b.extent and a.extent ~= b.extent then
    error(("a size can't have two extents: %s and %s"):format(a.extent, b.extent), 0)
  end
  local out = make(sum(a.fixed, b.fixed, sign), sum(a.slope, b.slope, sign), a.extent or b.extent)
  out.text = text_of(a, sign == 1 and "+" or "-", b)
  return out
end

Size.__add = function(a, b) return add(a, b, 1) end
Size.__sub = function(a, b) return add(a, b, -1) end

Size.__mul = function(a, b)
  a, b = size.of(a), size.of(b)
  if a.extent and b.extent then
    error(a.extent == b.extent
      and ("a size can't grow with the square of %s"):format(a.extent)
      or ("a size can't have two extents: %s and %s"):format(a.extent, b.extent), 0)
  end
  if b.extent then a, b = b, a end
  local out = make(product(a.fixed, b.fixed), product(a.slope, b.fixed), a.extent)
  out.text = text_of(a, "*", b)
  if not out.extent then out.factors = { a, b } end
  return out
end

-- Exact division of constants; a remainder is an error.
local function divide(a, b)
  a, b = size.of(a), size.of(b)
  local x, y = a:value(), b:value()
  if y == 0 then error(("%s is divided by zero"):format(a), 0) end
  if x % y ~= 0 then error(("%s = %d isn't a multiple of %s = %d"):format(a, x, b, y), 0) end
  local out = size.of(x // y)
  if a.name or b.name then out.text = operand(a) .. " / " .. operand(b) end
  return out
end
Size.__div, Size.__idiv = divide, divide

local function same(a, b)
  if a.extent ~= b.extent then return false end
  for key, factor in pairs(a.fixed) do if b.fixed[key] ~= factor then return false end end
  for key in pairs(b.fixed) do if not a.fixed[key] then return false end end
  for key, factor in pairs(a.slope) do if b.slope[key] ~= factor then return false end end
  for key in pairs(b.slope) do if not a.slope[key] then return false end end
  return true
end
Size.__eq = same
Size.__lt = function(a, b) return size.of(a):value() < size.of(b):value() end
Size.__le = function(a, b) return size.of(a):value() <= size.of(b):value() end

-- Bytes of `count` things of `bytes` each where slope and fixed are rounded up, so that
-- offsets stay aligned at every value of the extent.
local function round_poly(poly, unit)
  local out = {}
  for key, factor in pairs(poly) do out[key] = (factor + unit - 1) // unit * unit end
  return out
end
function size.rounded(x, slope_unit, fixed_unit)
  return make(round_poly(x.fixed, fixed_unit), round_poly(x.slope, slope_unit), x.extent)
end

-- The value for given extents and parameters: { tokens = 5, threads = 2 }.
function size.at(x, values)
  local function poly(p)
    local total = 0
    for key, factor in pairs(p) do
      for name in key:gmatch "[^*]+" do factor = factor * values[name] end
      total = total + factor
    end
    return total
  end
  return poly(x.fixed) + (x.extent and poly(x.slope) * values[x.extent] or 0)
end

function size.same_shape(a, b)
  for i = 1, math.max(#a, #b) do
    if not (a[i] and b[i] and size.of(a[i]) == size.of(b[i])) then return false end
  end
  return true
end

-- (tokens, D_MODEL)
function size.shape_text(shape)
  local parts = {}
  for i, x in ipairs(shape) do parts[i] = tostring(size.of(x)) end
  return "(" .. table.concat(parts, ", ") .. ")"
end

return size
