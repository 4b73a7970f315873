-- gen/formats/fp8_block.lua -- Weights as e4m3 bytes, a scale for each block of 128 rows and 128
-- columns: DeepSeek's and Qwen's own releases. The last blocks may be smaller.
--
-- Packed: a tile is 32 rows, which lie within one block's. For each 128 columns a scale as a
-- float, then the bytes.

local fp8 = require "gen.formats.fp8"

local fp8_block = { name = "fp8_block", group = 1, act = fp8.act }

local function blocks(k) return (k + 127) // 128 end

function fp8_block.tile_bytes(k) return (32 * k + 4 * blocks(k) + 63) // 64 * 64 end

function fp8_block.file_row_bytes(k) return k + blocks(k) * 4 / 128 end -- of 128 rows

return fp8_block
