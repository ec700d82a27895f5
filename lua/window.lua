-- Fixed window. Twin: crates/core/src/algorithm/window.rs.
--
-- Stored: start, hits, span (three doubles). Of the limit: p1 = span, p2 = 0 aligned, 1 anchored, 2 month,
-- 3 spread, p3 = how far ahead (spread, the key's phase). A reading's origin is the start of the window in force, its extra the length.

local WINDOW_DAY = 86400000000
local ALIGNED, MONTH, SPREAD = 0, 2, 3

-- The start of the window of `span` that has `at`.
local function window_aligned(at, span, p3)
  return max(at - fmod(fmod(at, span) + fmod(p3, span), span), 0)
end

-- The day of the month, from 1, of a day since the epoch.
local function window_day_of_month(day)
  local in_era = fmod(day + 719468, 146097)
  local year = floor_div(
    in_era - floor_div(in_era, 1460) + floor_div(in_era, 36524) - floor_div(in_era, 146096), 365)
  local in_year = in_era - (365 * year + floor_div(year, 4) - floor_div(year, 100))
  local month = floor_div(5 * in_year + 2, 153)
  return in_year - floor_div(153 * month + 2, 5) + 1
end

-- When the month that has `at` starts, and how long it is.
local function window_month(at, p3)
  local day = max(floor_div(at + p3, WINDOW_DAY) - 1, 0)
  local first = day - (window_day_of_month(day) - 1)
  local length = 31 - (window_day_of_month(first + 31) - 1)
  return min(max((first + 1) * WINDOW_DAY - p3, 0), at), length * WINDOW_DAY
end

local function window_opening(at, p1, p2, p3)
  local origin, extra = at, p1
  if p2 == ALIGNED or p2 == SPREAD then origin = window_aligned(at, p1, p3)
  elseif p2 == MONTH then origin, extra = window_month(at, p3) end
  return 0, at, origin, extra, 0
end

local function window_read(key, now, p1, p2, p3)
  local raw = call('GET', key)
  last_raw = raw
  if not raw then return window_opening(now, p1, p2, p3) end
  if type(raw) == 'table' or #raw ~= 24 then return nil, unreadable(raw) end
  local start, hits, span = unpack_struct('<ddd', raw)
  if not (exact(start) and exact(hits) and hits <= CEILING and exact(span) and span > 0 and span <= CEILING) then
    return nil, unreadable(raw)
  end
  local at, shift = now, 0
  if start > now then
    if start - now > span then
      local moved = now
      if p2 == ALIGNED or p2 == SPREAD then moved = window_aligned(now, span, p3) end
      shift = start - moved
      start = moved
    else
      at = start
    end
  end
  if at >= start + span then return window_opening(at, p1, p2, p3) end
  return hits, at, start, span, shift
end

local function window_write(key, level, origin, extra, goes)
  return call('SET', key, pack_struct('<ddd', origin, level, extra), SET_EXPIRY, span_of(goes))
end
