-- models/gemma4_chat.lua -- The chat format of Gemma 4: messages in, pieces of text and control
-- tokens out, as the template that Google published on 2026-07-09 writes them and as transformers'
-- processor puts pictures, frames and sound into its text. runtime/text/chat.h says what a function
-- is given here.

local function is(x)   -- what a template takes for true
  return x and x ~= null and x ~= "" and x ~= 0
    and not (type(x) == "table" and #(keys(x) or x) == 0)
end

local function field(x, name)
  if type(x) == "table" and x[name] ~= null then return x[name] end
end

-- Pieces in order. put(a, b, ...) adds texts, control tokens and lists of both.
local function writer()
  local pieces = {}
  local function put(...)
    for i = 1, select("#", ...) do
      local x = select(i, ...)
      if type(x) == "table" and not x.control then
        for _, piece in ipairs(x) do put(piece) end
      else
        table.insert(pieces, x)
      end
    end
  end
  return pieces, put
end

local function quoted(text) return { control '<|"|>', text, control '<|"|>' } end

-- ---- Values -----------------------------------------------------------------------------

-- A value of an argument: its keys are plain in calls and results, quoted in declarations.
local function value(x, quote_keys)
  local pieces, put = writer()
  local names = keys(x)
  if x == null or x == nil then
    put "null"
  elseif type(x) == "string" then
    put(quoted(x))
  elseif names then
    put "{"
    for i, name in ipairs(names) do
      put(i > 1 and "," or "", quote_keys and quoted(name) or name, ":",
          value(x[name], quote_keys))
    end
    put "}"
  elseif type(x) == "table" then
    put "["
    for i, item in ipairs(x) do put(i > 1 and "," or "", value(item, quote_keys)) end
    put "]"
  else
    put(tostring(x))
  end
  return pieces
end

local function members(object)
  local pieces, put = writer()
  for i, name in ipairs(keys(object)) do
    put(i > 1 and "," or "", name, ":", value(object[name]))
  end
  return pieces
end

-- ---- Tools ------------------------------------------------------------------------------

local function required(names)
  local pieces, put = writer()
  put "required:["
  for i, name in ipairs(names) do put(i > 1 and "," or "", quoted(name)) end
  put "]"
  return pieces
end

-- A type's name in capitals; a list of them as Python would write it.
local function upper_type(x)
  if type(x) ~= "table" then return string.upper(x or "") end
  local names = {}
  for _, name in ipairs(x) do table.insert(names, "'" .. string.upper(name) .. "'") end
  return "[" .. table.concat(names, ", ") .. "]"
end

local parameters

local function list_items(items)
  local pieces, put = writer()
  local first = true
  for _, name in ipairs(keys(items)) do
    local x = items[name]
    if x ~= null then
      put(first and "" or ",")
      first = false
      if name == "properties" then
        put("properties:{", keys(x) and parameters(x) or "", "}")
      elseif name == "required" then
        put(required(x))
      elseif name == "type" and type(x) == "table" then
        local upper = {}
        for _, one in ipairs(x) do table.insert(upper, string.upper(one)) end
        put("type:", value(upper))
      elseif name == "type" then
        put("type:", quoted(string.upper(x)))
      else
        put(name, ":", value(x, true))
      end
    end
  end
  return pieces
end

local about_itself = { description = true, type = true, properties = true, required = true,
                       nullable = true }

local function parameter(x)
  local pieces, put = writer()
  local comma = ""
  local function add(...)
    put(comma, ...)
    comma = ","
  end

  local kind = upper_type(field(x, "type"))
  if is(field(x, "description")) then add("description:", quoted(x.description)) end
  if kind == "STRING" and is(x.enum) then
    add("enum:", value(x.enum, true))
  elseif kind == "ARRAY" and keys(x.items) and is(x.items) then
    add("items:{", list_items(x.items), "}")
  end
  if is(field(x, "nullable")) then add "nullable:true" end
  if kind == "OBJECT" then
    local own = keys(field(x, "properties"))
    add("properties:{", parameters(own and x.properties or x, not own), "}")
    if is(field(x, "required")) then add(required(x.required)) end
  end
  add("type:", quoted(kind), "}")
  return pieces
end

-- The parameters of an object, or where it does not name them those of its members that are none
-- about itself.
function parameters(object, is_itself)
  local pieces, put = writer()
  local first = true
  for _, name in ipairs(keys(object)) do
    if not (is_itself and about_itself[name]) then
      put(first and "" or ",", name, ":{", parameter(object[name]))
      first = false
    end
  end
  return pieces
end

local function declaration(tool)
  local pieces, put = writer()
  local f = tool["function"]
  put("declaration:", field(f, "name") or "", "{description:", quoted(field(f, "description") or ""))
  local p = field(f, "parameters")
  if is(p) then
    put ",parameters:{"
    if is(p.properties) then put("properties:{", parameters(p.properties), "},") end
    if is(p.required) then put(required(p.required), ",") end
    if is(p.type) then put("type:", quoted(upper_type(p.type)), "}") end
  end
  if f.response then
    put ",response:{"
    if is(field(f.response, "description")) then
      put("description:", quoted(f.response.description), ",")
    end
    if upper_type(field(f.response, "type")) == "OBJECT" then
      put("type:", quoted "OBJECT", "}")
    end
  end
  put "}"
  return pieces
end

local function call(tool_call)
  local f = tool_call["function"]
  local arguments = field(f, "arguments")
  if arguments ~= nil and not keys(arguments) then
    error("the arguments of tool call " .. f.name .. " are no JSON object")
  end
  return { control "<|tool_call>", "call:" .. f.name .. "{", arguments and members(arguments) or "",
           "}", control "<tool_call|>" }
end

local function result(name, content)
  return { control "<|tool_response>", "response:" .. name .. "{value:", value(content), "}",
           control "<tool_response|>" }
end

-- ---- Parts ------------------------------------------------------------------------------

local function image(part)
  return { control "<|image>", soft("<|image|>", part.items[1]), control "<image|>" }
end

local function audio(part)
  return { control "<|audio>", soft("<|audio|>", part.items[1]), control "<audio|>" }
end

-- Each frame behind its time, mm:ss.
local function video(part)
  local pieces, put = writer()
  for i, frame in ipairs(part.items) do
    put(i > 1 and " " or "",
        string.format("%02d:%02d ", frame.seconds // 60, frame.seconds % 60 // 1),
        control "<|image>", soft("<|video|>", frame), control "<image|>")
  end
  return pieces
end

local media = { image = image, audio = audio, video = video }

-- An answer without its thoughts.
local function without_thoughts(text)
  local kept = {}
  for _, part in ipairs(split(text, "<channel|>")) do
    table.insert(kept, split(part, "<|channel>")[1])
  end
  return trim(table.concat(kept))
end

-- The pieces of a message's content, and whether there is more than white space.
local function content_of(message, text_of)
  if type(message.content) == "string" then
    local text = text_of(message.content)
    return text, text ~= ""
  end
  local pieces, put = writer()
  local has_content = false
  for _, part in ipairs(message.content) do
    local piece = media[part.type] and media[part.type](part) or text_of(part.text)
    put(piece)
    has_content = has_content or piece ~= ""
  end
  return pieces, has_content
end

-- The results that follow the calls of message `i`; false where none does.
local function results(messages, i)
  local pieces, put = writer()
  local calls, any = messages[i].tool_calls, false
  for k = i + 1, #messages do
    local message = messages[k]
    if message.role ~= "tool" then break end
    local name = message.name or "unknown"
    for _, one in ipairs(calls) do
      if field(one, "id") == message.tool_call_id then name = one["function"].name end
    end
    if type(message.content) == "string" then
      put(result(name, message.content))
    else
      local text, others, put_other = "", writer()
      for _, part in ipairs(message.content) do
        if part.type == "text" then text = text .. part.text
        else put_other(media[part.type](part)) end
      end
      put(result(name, text), others)
    end
    any = true
  end
  return any and pieces
end

-- ---- The format ---------------------------------------------------------------------------

local function system_turn(first, options)
  local pieces, put = writer()
  put(control "<|turn>", "system\n")
  if options.thinking then put(control "<|think|>", "\n") end
  if first and type(first.content) == "string" then
    put(trim(first.content))
  elseif first then
    for _, part in ipairs(first.content) do put(trim(part.text or "") .. " ") end
  end
  for _, tool in ipairs(options.tools or {}) do
    put(control "<|tool>", declaration(tool), control "<tool|>")
  end
  put(control "<turn|>", "\n")
  return pieces
end

-- Which of the messages is the next that is not a tool's.
local function next_speaker(messages, i)
  for k = i + 1, #messages do
    if messages[k].role ~= "tool" then return messages[k].role end
  end
end

-- Models above 4B are told that they don't think, by an empty thought.
local function format(empty_thought)
  local gemma4 = {
    stop     = { "<turn|>", "<eos>", "<|tool_response>" },
    media    = { "image", "video", "audio" },
    thinking = { from = "<|channel>", head = "thought\n", to = "<channel|>" },
    sampling = { temperature = 1, top_k = 64, top_p = 0.95 },   -- generation_config.json
  }

  function gemma4.render(messages, options)
    local pieces, put = writer()
    local first = messages[1] and (messages[1].role == "system" or messages[1].role == "developer")
    local last_user, before, ended = 0, nil, nil   -- `ended`: with a call, or with its results
    for i, message in ipairs(messages) do
      if message.role == "user" then last_user = i end
    end

    put(control "<bos>")
    if first or options.thinking or is(options.tools) then
      put(system_turn(first and messages[1], options))
    end
    for i, message in ipairs(messages) do
      if message.role ~= "tool" and not (first and i == 1) then
        local is_model = message.role == "assistant" or message.role == "model"
        local calls = is(message.tool_calls) and message.tool_calls
        local found = calls and results(messages, i)
        local content, has_content =
          content_of(message, is_model and without_thoughts or trim)
        local speaks_next = next_speaker(messages, i)

        if not (is_model and before == "assistant") then
          put(control "<|turn>", (is_model and "model" or message.role) .. "\n")
        end
        if message.reasoning and i > last_user then
          put(control "<|channel>", "thought\n" .. message.reasoning .. "\n", control "<channel|>")
        end
        for _, one in ipairs(calls or {}) do put(call(one)) end
        put(found or "", content)

        ended = found and "results" or calls and "call" or nil
        if calls and not found then
          put(control "<|tool_response>")
        elseif not (is_model and speaks_next == "assistant") and
               (has_content or speaks_next or not found) then
          put(control "<turn|>", "\n")   -- else the turn goes on
        end
        before = message.role
      end
    end

    if options.add_generation_prompt and not ended then
      put(control "<|turn>", "model\n")
      if empty_thought and not options.thinking then
        put(control "<|channel>", "thought\n", control "<channel|>")
      end
    elseif options.add_generation_prompt and ended == "results" and options.thinking then
      put(control "<|channel>", "thought\n")
    end
    return pieces
  end

  return gemma4
end

return { ["e2b"] = format(false), ["e4b"] = format(false),
         ["26b"] = format(true), ["31b"] = format(true) }
