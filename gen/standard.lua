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
  output_rows = { outputs },
}
standard.order = {
  "token_ids", "positions", "sequence_of", "sequence_begin", "page_table", "output_rows",
}

-- What an engine asks of the programs that it runs. `inputs` are those that it fills (one with a
-- name that isn't here can't be run); `outputs` must be there, a size of nn.dims by its name. A
-- program that isn't listed has inputs and outputs of its own choice.
standard.programs = {
  step = {
    inputs = standard.shapes,
    outputs = {
      { name = "logits", shape = { outputs, "n_vocab" },
        hint = "take the rows that are wanted, nn.rows(x, batch.output_rows), before the head" },
    },
  },
}

return standard
