-- models/llama_chat.lua -- The chat formats of the models that llama.lua describes: messages
-- in, pieces of text and control tokens out. A format serves the variants whose names begin
-- with its own. runtime/text/chat.h says what a function is given here.

-- ChatML, as SmolLM2's own template has it.
local smollm2 = { stop = { "<|im_end|>", "<|endoftext|>" } }

function smollm2.render(messages, options)
  local pieces = {}

  local function begin(role)
    table.insert(pieces, control "<|im_start|>")
    table.insert(pieces, role .. "\n")
  end
  local function turn(role, content)
    begin(role)
    table.insert(pieces, content)
    table.insert(pieces, control "<|im_end|>")
    table.insert(pieces, "\n")
  end

  if messages[1] and messages[1].role ~= "system" then
    turn("system", "You are a helpful AI assistant named SmolLM, trained by Hugging Face")
  end
  for _, message in ipairs(messages) do turn(message.role, message.content) end
  if options.add_generation_prompt then begin "assistant" end
  return pieces
end

-- Llama 3.2, without tools. The first turn is always the system's: it states the dates.
local llama3_2 = { stop = { "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>" } }

function llama3_2.render(messages, options)
  local pieces = { control "<|begin_of_text|>" }

  local function begin(role)
    table.insert(pieces, control "<|start_header_id|>")
    table.insert(pieces, role)
    table.insert(pieces, control "<|end_header_id|>")
    table.insert(pieces, "\n\n")
  end
  local function turn(role, content)
    begin(role)
    table.insert(pieces, content)
    table.insert(pieces, control "<|eot_id|>")
  end

  local has_system = messages[1] and messages[1].role == "system"
  turn("system", "Cutting Knowledge Date: December 2023\nToday Date: " ..
    (options.date or "26 Jul 2024") .. "\n\n" ..
    (has_system and trim(messages[1].content) or ""))
  for i, message in ipairs(messages) do
    if message.role == "tool" or message.role == "ipython" then
      error("tool results are not part of this format yet")
    elseif i > 1 or not has_system then
      turn(message.role, trim(message.content))
    end
  end
  if options.add_generation_prompt then begin "assistant" end
  return pieces
end

return { ["smollm2"] = smollm2, ["llama-3.2"] = llama3_2 }
