-- Sliding window of two counters. Twin: crates/core/src/algorithm/sliding.rs.
--
-- Stored: start, current, previous, span (four doubles). Of the limit: p1 = span. A reading's origin is
-- the start of the window in force, its extra what the one before held, its span the length of both.

local SLIDING_CEILING = CEILING / 2

-- The part of `previous` that still counts, rounded up.
local function sliding_weighted(previous, elapsed, p1)
  return previous - mul_div(previous, elapsed, p1)
end

local function sliding_opening(at, p1)
  return 0, at, at - fmod(at, p1), 0, 0, p1
end

local function sliding_read(key, now, p1)
  local raw = call('GET', key)
  last_raw = raw
  if not raw then return sliding_opening(now, p1) end
  if type(raw) == 'table' or #raw ~= 32 then return nil, unreadable(raw) end
  local start, current, previous, span = unpack_struct('<dddd', raw)
  if not (exact(start) and exact(current) and current <= SLIDING_CEILING and exact(previous)
      and previous <= SLIDING_CEILING and exact(span) and span > 0 and span <= CEILING) then
    return nil, unreadable(raw)
  end
  local lasts = span
  if current > 0 then lasts = 2 * span end
  local at, shift = now, 0
  if start > now then
    if start - now > lasts then
      local moved = now - fmod(now, span)
      shift = start - moved
      start = moved
    else
      at = start
    end
  end
  if at - start >= lasts then return sliding_opening(at, p1) end
  if span ~= p1 then
    local origin = start
    if current == 0 then origin = max(start - span, 0) end
    return min(current + previous, SLIDING_CEILING), at, origin, 0, shift, span
  end
  if at - start >= span then previous, current, start = current, 0, start + span end
  return current + sliding_weighted(previous, at - start, p1), at, start, previous, shift, span
end

-- What this window holds.
local function sliding_current(one, p1)
  return one.level - sliding_weighted(one.extra, one.at - one.origin, p1)
end

local function sliding_wait(one, excess, p1)
  local elapsed = one.at - one.origin
  if one.span ~= p1 then return max(2 * one.span - elapsed, 0) end
  local kept, current = one.level - excess, sliding_current(one, p1)
  if kept >= current then return p1 - mul_div(kept - current, p1, one.extra) - elapsed end
  return 2 * p1 - elapsed - mul_div(kept, p1, current)
end

-- Takes `cost` back, from this window and then from the one before; returns the level after it.
local function sliding_refund(one, cost, p1)
  if one.span ~= p1 then return max(one.level - cost, 0) end
  local current = sliding_current(one, p1)
  one.extra = max(one.extra - max(cost - current, 0), 0)
  return max(current - cost, 0) + sliding_weighted(one.extra, one.at - one.origin, p1)
end

local function sliding_write(key, one, p1, goes)
  local current, previous = one.level, 0
  if one.span == p1 then current, previous = sliding_current(one, p1), one.extra end
  return call('SET', key, pack_struct('<dddd', one.origin, current, previous, one.span), SET_EXPIRY, span_of(goes))
end
