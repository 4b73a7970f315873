-- tests/gen/replica.lua -- The capture of another engine that ran out of memory: 58 items
-- of 32 frames in every graph, whatever its budget, each as wide as a picture of 280 soft tokens,
-- and two steps of normalization that each make as much again. The decoder is one of 16 GiB.

local v = nn.variants { recipe = "bf16", { "small", n_layers = 1 } }
local d = nn.dims {
  n_layers = v.n_layers, n_vocab = 262144, n_ctx = 4096, n_heads = 64, n_kv_heads = 2,
  d_head = 256, n_rows = 1856, n_patches = 2520, d_patch = 768,
}
d.d_model, d.d_kv = d.n_heads * d.d_head, d.n_kv_heads * d.d_head

local block = nn.block {
  wk = nn.weight("wk.weight", { d.d_kv, d.d_model }),
  wv = nn.weight("wv.weight", { d.d_kv, d.d_model }),
}

function block.forward(w, x, batch, kv)
  return x + nn.attention(x, kv:append(nn.linear(x, w.wk), nn.linear(x, w.wv)))
end

local model = nn.model {
  embed  = nn.weight("embed.weight", { d.n_vocab, d.d_model }),
  layers = nn.layers("layers.%d.", { { d.n_layers, block } }),
  head   = nn.weight("head.weight", { d.n_vocab, d.d_model }),
}

model.encode_image = nn.encoder({ smallest = 70, largest = 1120, frame = 70 }, function(w)
  local pixel_values = nn.input("pixel_values", { d.n_rows, d.n_patches, d.d_patch })
  local soft_ids     = nn.input("soft_ids", { nn.soft }, "i32")
  local shifted      = nn.sigmoid(pixel_values)
  return { soft = nn.embedding(soft_ids, w.embed), pixels = nn.mul(shifted, pixel_values) }
end)

function model.step(w, batch)
  local x = w.layers(nn.embedding(batch.token_ids, w.embed), batch)
  return nn.linear(nn.rows(x, batch.output_rows), w.head)
end

return model
