-- Held log: reservations of a sliding log. Twin: crates/core/src/algorithm/log/held.rs.
--
-- Stored beside the log, under a key of its own: start, cost, number of each reserved call, in their order (three doubles
-- each). A reading has them as `starts`, as they are stored, each start moved back by `span` where the last is more than a
-- window ahead; `ahead` is the last start, if it has not come; `waiting` is how many have not, `first` the first of them.

local HELD_MOST = 9007199254740992 -- 2^53
local HELD_AT_ONCE = 3000 -- numbers of one pack: Lua bounds how many values a call may have

-- The numbers that are stored, all of them whole; nil if something else is.
local function held_unpack(raw)
  local numbers = {}
  local count = #raw / 8
  for from = 1, count, HELD_AT_ONCE do
    local part = min(count + 1 - from, HELD_AT_ONCE)
    local read = { unpack_struct('<' .. string.rep('d', part), raw, from * 8 - 7) }
    if from == 1 then numbers = read else for i = 1, part do numbers[from + i - 1] = read[i] end end
    numbers[from + part] = nil -- where the next number would be
  end
  for i = 1, count do
    local number = numbers[i]
    if not (number >= 0 and number < HELD_MOST and number % 1 == 0) then return nil end
  end
  return numbers
end

local function held_pack(numbers, first)
  local parts = {}
  for from = first, #numbers, HELD_AT_ONCE do
    local last = min(#numbers, from + HELD_AT_ONCE - 1)
    parts[#parts + 1] = pack_struct('<' .. string.rep('d', last + 1 - from), unpack(numbers, from, last))
  end
  return table.concat(parts)
end

-- Counts the starts that are due. Returns what is wrong with what is stored, if anything is.
local function held_read(limit, one, key)
  one.starts, one.span, one.ahead, one.start, one.forget = {}, 0, nil, nil, nil
  one.waiting, one.first = 0, nil
  local raw = call('GET', key)
  one.held_raw = raw
  if not raw then return end
  if type(raw) == 'table' or fmod(#raw, 24) ~= 0 or #raw == 0 then return unreadable(raw) end
  local starts = held_unpack(raw)
  if not starts then return NOT_A_STATE end
  one.starts = starts
  local span, at, count = limit.p1, one.at, #starts
  local moved = max(starts[count - 2] - (at + span), 0)
  one.span = moved
  if one.held.length < 3 then one.origin = 0 end
  if moved > 0 then
    for i = 1, count, 3 do starts[i] = max(starts[i] - moved, 0) end
  end
  -- Starts are in order.
  local level, newest = one.level, one.origin
  for i = 1, count, 3 do
    local start = starts[i]
    if start > at then
      one.waiting, one.first = (count + 1 - i) / 3, start
      break
    end
    if start + span > at then
      level = level + starts[i + 1]
      if start > newest then newest = start end
    end
  end
  one.level, one.origin = level, newest
  one.before = one.level
  if starts[count - 2] > at then one.ahead = starts[count - 2] end
end

-- The earliest time at which a call of `cost`, at most the limit, may start.
local function held_start_of(limit, key, one, cost)
  local span, starts, held = limit.p1, one.starts, one.held
  local from, live, base = one.ahead or one.at, 0, 0
  local first, count = one.extra, 0
  if held.length >= 3 then
    count = (held.length - 1) / 2
    first = log_search(first, count, function(entry)
      return max(log_number(key, 2 * entry + 1) - one.shift, 0) + span <= from
    end)
    if first < count then
      base = log_number(key, 2 * first)
      live = log_between(base, held.total)
    end
  end
  local excess = live + cost - limit.limit
  for i = 1, #starts, 3 do
    if starts[i] + span > from then excess = excess + starts[i + 1] end
  end
  if excess <= 0 then return from end
  if excess <= live then
    local entry = log_search(first, count, function(entry)
      return log_between(base, log_number(key, 2 * entry + 2)) < excess
    end)
    return max(log_number(key, 2 * entry + 1) - one.shift, 0) + span
  end
  excess = excess - live
  for i = 1, #starts, 3 do
    if starts[i] + span > from then
      excess = excess - starts[i + 1]
      if excess <= 0 then return starts[i] + span end
    end
  end
  return from
end

-- Time until the first start that lies ahead is due, if no more may be held.
local function held_full_for(limit, one)
  if one.waiting == 0 or one.waiting < limit.p2 then return nil end
  return one.first - one.at
end

local function held_reset(limit, one)
  if one.ahead then return one.ahead + limit.p1 - one.at end
  if one.level == 0 then return 0 end
  return max(one.origin + limit.p1 - one.at, 0)
end

-- What a reservation is named by, unlike every other that is held.
local function held_number(one)
  local last = one.starts[#one.starts]
  if not last then return max(one.at, 1) end
  return max(one.at, last + 1, 1)
end

-- Enters what is due, and then what was added to make the level `level`: now, or as a start, where the reading has one.
local function held_write(limit, key, held_key, one, level)
  local span, starts, held = limit.p1, one.starts, one.held
  local added, taken = max(level - one.level, 0), max(one.level - level, 0)
  one.level = level
  if one.forget then
    one.starts, one.ahead = {}, nil
    return call('DEL', key, held_key)
  end
  if one.shift > 0 then log_move(key, one.shift, held.length) end
  one.shift = 0
  log_forget()
  local due = #starts + 1 - 3 * one.waiting -- where those begin that are not due
  local reply = level > 0 and log_push_all(key, held, one.extra, one.at - span, starts, due - 1)
  if refused(reply) then return reply end
  if added > 0 and one.start then
    local number, count = held_number(one), #starts
    starts[count + 1], starts[count + 2], starts[count + 3] = one.start, added, number
  elseif added > 0 then
    reply = log_push(key, held, one.extra, one.at, added)
    if refused(reply) then return reply end
  end
  if due > #starts then
    reply, one.starts, one.ahead = call('DEL', held_key), {}, nil
  else
    one.ahead = starts[#starts - 2]
    local goes = ceil_div(one.ahead + span, 1000) + 1
    reply = call('SET', held_key, held_pack(starts, due), SET_EXPIRY, span_of(goes))
  end
  if refused(reply) then return reply end
  -- A start is at most a window ahead, and counts for one.
  if one.held_raw then log_undo(held, 'SET', held_key, one.held_raw, 'PX', whole(ceil_div(2 * span, 1000) + 1))
  else log_undo(held, 'DEL', held_key) end
  if level == 0 then
    one.span, one.extra, held.length = 0, 0, 0
    return call('DEL', key)
  end
  one.origin = held.newest
  if taken > 0 then one.origin = log_pull(key, one, taken) end
  reply = one.extra > 0 and call('LTRIM', key, 2 * one.extra, -1)
  if refused(reply) then return reply end
  held.length = held.length - 2 * one.extra
  one.span, one.extra = 0, 0
  return call(KEY_EXPIRY, key, span_of(ceil_div(one.origin + span, 1000) + 1))
end

-- Removes a reservation; the later ones do not move.
local function held_release(one, number, cost)
  local starts, kept = one.starts, {}
  for i = 1, #starts, 3 do
    if starts[i + 2] ~= number or starts[i + 1] ~= cost then
      local count = #kept
      kept[count + 1], kept[count + 2], kept[count + 3] = starts[i], starts[i + 1], starts[i + 2]
    elseif starts[i] > one.at then one.waiting = one.waiting - 1
    end
  end
  one.starts = kept
end
