-- gen/standard.lua -- The inputs that an engine fills for a text model, by role: the contract with
-- runtime/engine. A program lists those that it reads, in this order.

local size = require "gen.size"

local standard = {}

local tokens, outputs, sequences = size.extent "tokens", size.extent "outputs", size.extent "sequences"
standard.shapes = {
  token_ids = { tokens },
  positions = { tokens },
  sequence_of = { tokens },
  sequence_begin = { sequences + 1 },
  page_table = { sequences, size.param "max_pages" },
  output_rows = { outputs }, -- of one sequence: its last ones, in order
  state_of = { sequences }, -- the slot of a sequence's rings and fixed states
  is_prompt = { sequences }, -- 1: its rows are of the prompt, 0: generated or drafted
  output_positions = { outputs }, -- of these rows: positions ...
  output_sequence_of = { outputs }, -- ... and sequences,
  output_begin = { sequences + 1 }, -- and of each sequence the first
  spans = { tokens }, -- one past the last position that a token's picture has, else past its own
}
standard.order = {
  "token_ids", "positions", "sequence_of", "sequence_begin", "page_table", "output_rows", "state_of",
  "is_prompt", "spans", "output_positions", "output_sequence_of", "output_begin",
}

-- What a description declares with nn.input and an engine fills all the same: soft tokens of
-- pictures and sounds, the row of each that a token takes (or -1), positions as time, row and
-- column, and the hidden rows that a draft begins with.
standard.declared = { soft_rows = true, soft_index = true, positions3 = true, hidden = true }

-- What an engine asks of the programs that it runs. `inputs` are those that it fills (one with a
-- name that isn't here can't be run); `outputs` must be there, a size of nn.dims by its name. A
-- program that isn't listed has inputs and outputs of its own choice.
local filled = {}
for _, names in ipairs { standard.shapes, standard.declared } do
  for name in pairs(names) do filled[name] = true end
end
standard.programs = {
  step = {
    inputs = filled,
    outputs = {
      { name = "logits", shape = { outputs, "n_vocab" },
        hint = "take the rows that are wanted, nn.rows(x, batch.output_rows), before the head" },
    },
  },
}

return standard
