-- Sliding log. Twin: crates/core/src/algorithm/log.rs.
--
-- Stored: a list  base, t1, total1, t2, total2, …  Entry k (from 0) has its time at index 2k+1 and the
-- running total up to it at 2k+2, so the total before it is at 2k. Totals are modulo CEILING. Of the
-- limit: p1 = span, p2 = min_gap, p3 = 1 if it accepts reservations (held.lua), and p2 is then max_held. A reading's origin is the newest
-- entry's time, its extra the number of entries that no longer count; it holds the list's length, the total before what
-- counts, the newest entry's time and total, because each look at the list is a command.

local LOG_ENTRIES = 10000
local LOG_AT_ONCE = 1000 -- numbers of one command

-- A short list is read at once: of which key, and what it held, until it is written.
local LOG_SHORT = 31
local log_at_once, log_held

-- Raises what makes the decision fail, and it alone, where the list holds something else.
local function log_number(key, index)
  local number, reply
  if log_at_once ~= key then
    reply = call('LINDEX', key, index)
    number = tonumber(reply)
  elseif index < 0 then number = tonumber(log_held[#log_held + 1 + index])
  else number = tonumber(log_held[index + 1]) end
  if not exact(number) then error(unreadable(reply), 0) end
  return number
end

local function log_between(before, after)
  if after >= before then return after - before end
  return after + CEILING - before
end

-- The first entry from `first` on for which `fails(entry)` holds, of `count`: in steps that double,
-- then by halves, because the answer is nearly always near the head.
local function log_search(first, count, holds)
  local low, step = first, 1
  while low + step - 1 < count and holds(low + step - 1) do
    low = low + step
    step = step * 2
  end
  local high = min(low + step - 1, count)
  while low < high do
    local middle = low + floor_div(high - low, 2)
    if holds(middle) then low = middle + 1 else high = middle end
  end
  return low
end

local function log_read(key, now, p1)
  local length = call('LLEN', key)
  if type(length) == 'table' then return nil, unreadable(length) end
  if length < 3 then return 0, now, now, 0, 0, nil, { length = length } end
  if fmod(length, 2) == 0 then return nil, NOT_A_STATE end
  log_at_once = nil
  if length <= LOG_SHORT then
    log_held = call('LRANGE', key, 0, -1)
    if #log_held == length then log_at_once = key end
  end
  local newest, total = log_number(key, -2), log_number(key, -1)
  local head, base = log_number(key, 1), log_number(key, 0)
  local ahead, shift = newest - now, 0
  if ahead > p1 then shift = ahead end
  local at = max(now, newest - shift)
  local dead = 0
  if max(head - shift, 0) + p1 <= at then
    dead = log_search(1, (length - 1) / 2, function(entry)
      return max(log_number(key, 2 * entry + 1) - shift, 0) + p1 <= at
    end)
    base = log_number(key, 2 * dead)
  end
  local held = { length = length, base = base, newest = newest - shift, total = total }
  return log_between(base, total), at, newest - shift, dead, shift, nil, held
end

local function log_wait(key, one, excess, p1)
  if excess > one.level then return p1 end
  local freed_at = one.origin
  if excess < one.level then
    local base = one.held.base
    local entry = log_search(one.extra, (one.held.length - 1) / 2, function(entry)
      return log_between(base, log_number(key, 2 * entry + 2)) < excess
    end)
    freed_at = max(log_number(key, 2 * entry + 1) - one.shift, 0)
  end
  return max(freed_at + p1 - one.at, 0)
end

-- Rewrites every time as `shift` earlier: the clock that wrote them was ahead and has gone back.
local function log_move(key, shift, length)
  log_at_once = nil
  for entry = 0, (length - 1) / 2 - 1 do
    local index = 2 * entry + 1
    local reply = call('LSET', key, index, whole(max(log_number(key, index) - shift, 0)))
    if refused(reply) then error(reply.err, 0) end
  end
end

-- Remembers what undoes a write.
local function log_undo(held, ...)
  held.undo = held.undo or {}
  held.undo[#held.undo + 1] = { ... }
end

-- Takes `cost` out of the newest entries; returns the time of the newest that is left. What changes that one comes
-- first: a server without memory refuses only what comes before any change. What drops the entries after it cannot be
-- undone without reading all of them, so it is left to `log_drop`, which comes last.
local function log_pull(key, one, cost)
  log_at_once = nil
  local held = one.held
  local first = one.extra
  local base = log_number(key, 2 * first)
  local left, count = log_between(base, held.total) - cost, (held.length - 1) / 2
  local entry = count - 1
  -- Most refunds are of a part of the newest entry, or all of it.
  if entry > first and log_between(base, log_number(key, 2 * entry)) >= left then
    entry = log_search(first, count, function(entry)
      return log_between(base, log_number(key, 2 * entry + 2)) < left
    end)
  end
  local newest, before = log_number(key, 2 * entry + 1), log_number(key, 2 * entry + 2)
  local total = base + left
  if total >= CEILING then total = total - CEILING end
  if total ~= before then
    local reply = call('LSET', key, 2 * entry + 2, whole(total))
    if refused(reply) then error(reply.err, 0) end
    -- From the end, because those that no longer count may be dropped.
    log_undo(held, 'LSET', key, 2 * entry + 2 - held.length, whole(before))
  end
  local length = 2 * entry + 3
  if length < held.length then
    held.beyond = held.length - length
  end
  held.length, held.newest, held.total = length, newest, total
  return max(newest - one.shift, 0)
end

-- Drops the newest entries that `log_pull` has left.
local function log_drop(key, held)
  if not (held and held.beyond) then return nil end
  return call('LTRIM', key, 0, -1 - held.beyond)
end

-- How many of the oldest entries do not count, or have `keep` units or more after them.
local function log_beyond(key, extra, length, newest, keep)
  return log_search(extra, (length - 1) / 2, function(entry)
    return log_between(log_number(key, 2 * entry + 2), newest) >= keep
  end)
end

-- What was read at once no longer holds.
local function log_forget()
  log_at_once = nil
end

-- Records `cost` at `at`, after the `extra` entries that no longer count and those that do.
local function log_push(key, held, extra, at, cost)
  local length, entries = held.length, 0
  if length >= 3 then entries = (length - 1) / 2 - extra end
  local total = held.total or length > 0 and log_number(key, -1) or 0
  local before = total
  local reply
  total = total + cost
  if total >= CEILING then total = total - CEILING end
  if entries > 0 and (held.newest == at or entries >= LOG_ENTRIES) then
    reply = call('LSET', key, -1, whole(total))
    if not refused(reply) then
      log_undo(held, 'LSET', key, -1, whole(before))
      log_undo(held, 'LSET', key, -2, whole(held.newest))
      reply = call('LSET', key, -2, whole(at))
    end
  elseif length > 0 then
    reply, held.length = call('RPUSH', key, whole(at), whole(total)), length + 2
    if not refused(reply) then log_undo(held, 'RPOP', key, 2) end
  else
    reply, held.length = call('RPUSH', key, 0, whole(at), whole(total)), 3
    if not refused(reply) then log_undo(held, 'RPOP', key, 3) end
  end
  held.newest, held.total = at, total
  return reply
end

-- Records what is due of `starts` (held.lua), up to number `last` and after `expired`, with as few commands as possible.
local function log_push_all(key, held, extra, expired, starts, last)
  local from = 1
  while from < last and starts[from] <= expired do from = from + 3 end
  -- One that joins the newest entry goes alone.
  while from < last and (held.length == 0 or starts[from] == held.newest
    or (held.length - 1) / 2 - extra + (last + 1 - from) / 3 > LOG_ENTRIES) do
    local reply = log_push(key, held, extra, starts[from], starts[from + 1])
    if refused(reply) then return reply end
    from = from + 3
  end
  if from > last then return nil end
  local total, newest, numbers, count = held.total or log_number(key, -1), held.newest, {}, 0
  for i = from, last, 3 do
    total = total + starts[i + 1]
    if total >= CEILING then total = total - CEILING end
    if starts[i] ~= newest then
      newest = starts[i]
      numbers[count + 1], count = whole(newest), count + 2
    end
    numbers[count] = whole(total)
  end
  for first = 1, count, LOG_AT_ONCE do
    local part = min(count + 1 - first, LOG_AT_ONCE)
    local reply = call('RPUSH', key, unpack(numbers, first, first + part - 1))
    if refused(reply) then return reply end
    held.length = held.length + part
    log_undo(held, 'RPOP', key, part)
  end
  held.newest, held.total = newest, total
  return nil
end

-- Drops what no longer counts, or is beyond what is kept, and records `cost`. The write that needs memory comes
-- first, so that a server without any refuses before something has changed.
local function log_write(key, one, cost, keep, goes)
  cost = max(cost, 0)
  local extra, held = one.extra, one.held
  local length = held.length
  if one.shift > 0 then log_move(key, one.shift, length) end
  if keep and length >= 3 then extra = log_beyond(key, extra, length, held.total, max(keep - cost, 0)) end
  log_at_once = nil
  if cost > 0 then
    local reply = log_push(key, held, extra, one.at, cost)
    if refused(reply) then return reply end
  end
  local reply = extra > 0 and call('LTRIM', key, 2 * extra, -1)
  if refused(reply) then return reply end
  return call(KEY_EXPIRY, key, span_of(goes))
end
