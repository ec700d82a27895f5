-- Decisions over limits with costs of their own, holds and settlements. Twin: crates/core/src/algorithm/budget.rs. README.md
-- beside this has the contract.

-- Reads what the decisions of a group have in common: the limits with the places of their keys after those of states.
local function read_group(ones)
  local group, limits = {}, {}
  group.count, group.decisions, group.grain, group.known_for, position = unpack_struct('<dddd', request, position)
  local last_key = group.count
  for i = 1, group.count do
    local limit = standing.new_limit()
    limits[i], position = limit, read_limit(limit, request, position)
    limit.debt_level, limit.name, limit.at_once, limit.near, position = unpack_struct('<dddd', request, position)
    ones[i] = ones[i] or standing.new()
    group.runs_alone = group.runs_alone or limit.engine == LOG
    if limit.hold then last_key = last_key + 1 end
    limit.held_at = last_key
  end
  for i = 1, group.count do
    local limit = limits[i]
    if group.grain > 0 and limit.name >= 0 and limit.at_once == 0 then
      last_key = last_key + 1
      limit.parts_at = last_key
    end
  end
  group.last_key = last_key
  return group, limits
end

-- Reads what one decision asks: of each limit the cost (-1: none), the least that may be granted instead (-1: all of it), the
-- digest of its key, and the phase of its windows.
local function read_asked(group, limits, ones)
  local asked = { grain = group.grain, known_for = group.known_for, count = group.count }
  asked.op, asked.has_record, asked.digest, asked.mark, asked.hold_for, position =
    unpack_struct('<ddddd', request, position)
  for i = 1, group.count do
    local one = ones[i]
    local phase
    one.asked, one.least, one.digest, phase, position = unpack_struct('<dddd', request, position)
    if limits[i].spread then limits[i].p3 = phase end
  end
  return asked
end

-- Decides one question. Returns the packed answer, or nil and why it could not be decided.
local function decide(limits, count, ones, asked, key)
  local op = asked.op
  local why = standing.read_all(limits, count, ones)
  if why then return nil, why end
  local head
  head, why = budget[op](limits, count, ones, op, asked, key)
  if not head or #head == 8 then return head, why end
  local answer, allowed = { head }, unpack_struct('<d', head) == 1
  for i = 1, count do answer[i + 1] = standing.answer(limits[i], keys[key_at + i], ones[i], allowed, op) end
  return table.concat(answer)
end

-- Decides one question, and takes back what a failed one has written.
local function decide_one(group, limits, ones, asked)
  local FAILED = 2
  local last_key, key = group.last_key, nil
  if asked.has_record > 0 then
    last_key = last_key + 1
    key = keys[key_at + last_key]
  end
  ones.stored, ones.written, ones.remembered = {}, 0, false
  local ran, answer, why
  -- A log's entries are looked at one by one, and any of them may be something else.
  if group.runs_alone then ran, answer, why = pcall(decide, limits, group.count, ones, asked, key)
  else ran, answer, why = true, decide(limits, group.count, ones, asked, key) end
  if not (ran and answer) then
    budget.undo(limits, ones, key)
    reasons = reasons or {}
    reasons[#reasons + 1] = why or answer
    answer = pack_struct('<d', FAILED)
  end
  reply[#reply + 1] = answer
  key_at = key_at + last_key
end

local function decide_group(ones)
  local group, limits = read_group(ones)
  for number = 1, group.decisions do
    local asked = read_asked(group, limits, ones)
    if number > skip then decide_one(group, limits, ones, asked) end
  end
  skip = 0
end

local ones = {}
for _ = 1, groups do decide_group(ones) end
reply[#reply + 1] = pack_struct('<ddd', now, short, admitted)
reply = table.concat(reply)
if reasons then return { reply, unpack(reasons) } end
return reply
