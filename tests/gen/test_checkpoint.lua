-- tests/gen/test_checkpoint.lua -- `--quant auto`: what headers hold, and that
-- files of any bytes are refused with a reason, in little time and memory.

local spec = require "tests.support.spec"
local checkpoint = require "gen.checkpoint"
local json = require "gen.json"
local describe = require "tests.gen.describe"

local folder = spec.folder()

local function write(name, text)
  local file = assert(io.open(folder .. "/" .. name, "wb"))
  file:write(text)
  file:close()
  return folder .. "/" .. name
end

local model = describe.file("llama_tiny", "small")
require("gen.generate").prepare(model, { target = "any" })

local function refused(path, part)
  local ok, e = pcall(checkpoint.reader, path, model)
  if ok then error("not refused: " .. path, 2) end
  spec.equal(type(e) == "table" and e.code, 4)
  spec.contains(e.message, part)
end

local function text(s) return string.pack("<s8", s) end
local function gguf(n_tensors, n_values, rest) return "GGUF" .. string.pack("<I4I8I8", 3, n_tensors, n_values) .. (rest or "") end
local function tensor(name, kind) return text(name) .. string.pack("<I4I8I8I4I8", 2, 40, 96, kind, 0) end

spec("the formats of a GGUF's tensors, behind values of every type", function()
  local values = text "a" .. string.pack("<I4I4", 4, 7) .. text "b" .. string.pack("<I4", 8) .. text "x"
    .. text "c" .. string.pack("<I4I4I8", 9, 8, 2) .. text "p" .. text "q"
    .. text "d" .. string.pack("<I4I4I8", 9, 6, 3) .. ("\0"):rep(12)
  local path = write("a.gguf", gguf(2, 4, values .. tensor("token_embd.weight", 30) .. tensor("blk.1.attn_q.weight", 14)))
  local format_of = checkpoint.reader(path, model)
  spec.equal(format_of(model.weights[1]), "bf16")
  local wq
  for _, weight in ipairs(model.groups[1].layers[1].weights) do if weight.role == "wq" then wq = weight end end
  local format, why = format_of(wq, 1, model.groups[1])
  spec.equal(format, nil)
  spec.equal(why, "blk.1.attn_q.weight is Q6_K, which isn't supported")
  format, why = format_of(wq, 0, model.groups[1])
  spec.equal(why, "blk.0.attn_q.weight is missing")
end)

spec("formats that a weight can't have", function()
  local norm, embed
  for _, weight in ipairs(model.weights) do
    if weight.role == "norm" then norm = weight elseif weight.role == "embed" then embed = weight end
  end
  local format_of = checkpoint.reader(write("v.gguf", gguf(2, 0, tensor("output_norm.weight", 30) .. tensor("token_embd.weight", 3))), model)
  spec.equal(format_of(norm), "f32") -- from bf16
  local _, why = format_of(embed)
  spec.equal(why, "token_embd.weight is q4_1 in rows of D_MODEL")
  _, why = checkpoint.reader(write("v.gguf", gguf(1, 0, tensor("output_norm.weight", 8))), model)(norm)
  spec.equal(why, "output_norm.weight is a vector in q8_0")
end)

spec("GGUF files that announce more than they hold", function()
  local from, memory = os.clock(), collectgarbage "count"
  refused(write("b.gguf", gguf(10 ^ 9, 0)), "it announces 1000000000 tensors")
  refused(write("c.gguf", gguf(0, 1 << 62)), "it announces")
  refused(write("d.gguf", gguf(-1, 0)), "it announces -1 tensors")
  refused(write("e.gguf", gguf(0, 1, text "a" .. string.pack("<I4I4I8", 9, 8, 10 ^ 9))), "an array of 1000000000 values")
  refused(write("f.gguf", gguf(0, 1, text "a" .. string.pack("<I4I4I8", 9, 0, 1 << 40))), "an array of")
  refused(write("g.gguf", gguf(0, 1, string.pack("<I8", 1 << 33) .. ("x"):rep(20))), "a text of 8589934592 bytes")
  refused(write("h.gguf", gguf(0, 1, text "a" .. string.pack("<I4", 99) .. "12345678")), "unknown type 99")
  refused(write("i.gguf", gguf(2, 0, tensor("x", 0) .. tensor("x", 0))), "stands twice")
  if os.clock() - from > 1 or collectgarbage "count" - memory > 64 * 1024 then error "it took too much" end
end)

spec("GGUF arrays within arrays end somewhere", function()
  local nested = text "a" .. string.pack("<I4", 9)
  for _ = 1, 50 do nested = nested .. string.pack("<I4I8", 9, 1) end
  refused(write("j.gguf", gguf(0, 1, nested .. ("\0"):rep(64))), "nested too deeply")
end)

spec("every beginning of a GGUF is refused", function()
  local whole = gguf(1, 1, text "a" .. string.pack("<I4I4", 4, 7) .. tensor("token_embd.weight", 8))
  for n = 0, #whole - 1 do refused(write("k.gguf", whole:sub(1, n)), "k.gguf") end
end)

spec("what isn't GGUF or safetensors", function()
  refused(write("l.gguf", "<!DOCTYPE html><html><body>not found</body></html>"), "not a GGUF file")
  refused(write("l.safetensors", "<!DOCTYPE html><html><body>not found</body></html>"), "a header of")
  refused(folder .. "/nothing.gguf", "no such file")
  refused(folder, "neither model.safetensors nor an index")
end)

local function safetensors(header) return string.pack("<s8", header) end

spec("the dtypes of safetensors, one file or shards", function()
  local a = '{"__metadata__":{"format":"pt"},"model.embed_tokens.weight":{"dtype":"BF16","shape":[96,40],"data_offsets":[0,7680]}}'
  local path = write("m.safetensors", safetensors(a))
  spec.equal(checkpoint.reader(path, model)(model.weights[1]), "bf16")
  spec.shell("mkdir " .. folder .. "/sharded")
  write("sharded/model-00001-of-00001.safetensors", safetensors(a))
  write("sharded/model.safetensors.index.json", '{"weight_map": {"model.embed_tokens.weight": "model-00001-of-00001.safetensors"}}')
  spec.equal(checkpoint.reader(folder .. "/sharded", model)(model.weights[1]), "bf16")
end)

spec("an index can't name a file elsewhere", function()
  spec.shell("mkdir " .. folder .. "/elsewhere")
  for _, name in ipairs { "../m.safetensors", "/etc/passwd", "a/b", "" } do
    write("elsewhere/model.safetensors.index.json", ('{"weight_map": {"x": "%s"}}'):format(name))
    refused(folder .. "/elsewhere", "must be a file's beside it")
  end
end)

spec("safetensors headers that are wrong", function()
  refused(write("n.safetensors", string.pack("<I8", 1 << 62) .. "{}"), "a header of")
  refused(write("n.safetensors", safetensors '{"a":'), "expected a value")
  refused(write("n.safetensors", safetensors '{"a":1}'), "tensor a has no dtype")
  refused(write("n.safetensors", safetensors '{"a":{"dtype":"F32"},"a":{"dtype":"F32"}}'), "stands twice")
  refused(write("n.safetensors", safetensors(("["):rep(1000))), "nested too deeply")
  refused(write("n.safetensors", "12345"), "n.safetensors")
end)

spec("JSON", function()
  spec.equal(json.decode ' [1, -2.5e1, "a\\u00e9\\ud83d\\ude00\\n", true, false, {"x": []}] '[3], "a\u{e9}\u{1F600}\n")
  for _, bad in ipairs { "", "{", "[1,]", '{"a" 1}', '"\\x"', '"\\ud800"', "nul", "1 2", '{"a":1,"a":2}', '"\n"', "-", "[" } do
    local value, why = json.decode(bad)
    spec.equal(value, nil, bad)
    spec.contains(why, "at byte")
  end
end)
