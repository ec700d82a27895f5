-- Held log: reservations of a sliding log. Twin: crates/core/src/algorithm/held.rs.
--
-- Stored beside the log, under a key of its own: start, cost, number of each reserved call, in their order (three doubles
-- each). A reading has them as `starts`, moved back by `span` where the last is more than a window ahead; `ahead` is the
-- last start, if it has not come.

-- Counts the starts that are due. Returns what is wrong with what is stored, if anything is.
local function held_read(limit, one, key)
  local starts = {}
  one.starts, one.span, one.ahead, one.start, one.forget = starts, 0, nil, nil, nil
  local raw = call('GET', key)
  one.held_raw = raw
  if not raw then return end
  if type(raw) == 'table' or fmod(#raw, 24) ~= 0 or #raw == 0 then return unreadable(raw) end
  local position = 1
  while position <= #raw do
    local held = {}
    held.start, held.cost, held.number, position = unpack_struct('<ddd', raw, position)
    if not (exact(held.start) and exact(held.cost) and exact(held.number)) then return NOT_A_STATE end
    starts[#starts + 1] = held
  end
  local span, at = limit.p1, one.at
  one.span = max(starts[#starts].start - (at + span), 0)
  if one.held.length < 3 then one.origin = 0 end
  for i = 1, #starts do
    local held = starts[i]
    held.start = max(held.start - one.span, 0)
    if held.start <= at and held.start + span > at then
      one.level, one.origin = one.level + held.cost, max(one.origin, held.start)
    end
  end
  one.before = one.level
  if starts[#starts].start > at then one.ahead = starts[#starts].start end
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
  for i = 1, #starts do
    if starts[i].start + span > from then excess = excess + starts[i].cost end
  end
  if excess <= 0 then return from end
  if excess <= live then
    local entry = log_search(first, count, function(entry)
      return log_between(base, log_number(key, 2 * entry + 2)) < excess
    end)
    return max(log_number(key, 2 * entry + 1) - one.shift, 0) + span
  end
  excess = excess - live
  for i = 1, #starts do
    if starts[i].start + span > from then
      excess = excess - starts[i].cost
      if excess <= 0 then return starts[i].start + span end
    end
  end
  return from
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
  return max(one.at, last.number + 1, 1)
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
  local kept = {}
  local reply
  for i = 1, #starts do
    if starts[i].start > one.at then kept[#kept + 1] = starts[i]
    elseif starts[i].start + span > one.at then
      reply = log_push(key, held, one.extra, starts[i].start, starts[i].cost)
      if refused(reply) then return reply end
    end
  end
  if added > 0 and one.start then
    kept[#kept + 1] = { start = one.start, cost = added, number = held_number(one) }
  elseif added > 0 then
    reply = log_push(key, held, one.extra, one.at, added)
    if refused(reply) then return reply end
  end
  one.starts = kept
  if #kept == 0 then
    reply, one.ahead = call('DEL', held_key), nil
  else
    one.ahead = kept[#kept].start
    local packed = {}
    for i = 1, #kept do packed[i] = pack_struct('<ddd', kept[i].start, kept[i].cost, kept[i].number) end
    local goes = ceil_div(one.ahead + span, 1000) + 1
    reply = call('SET', held_key, table.concat(packed), SET_EXPIRY, span_of(goes))
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
  local kept = {}
  for i = 1, #one.starts do
    local held = one.starts[i]
    if held.number ~= number or held.cost ~= cost then kept[#kept + 1] = held end
  end
  one.starts = kept
end
