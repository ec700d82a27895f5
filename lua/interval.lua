-- Interval refill. Twin: crates/core/src/algorithm/interval.rs.
--
-- Stored: last, spent, when the key goes in ms (three doubles). Of the limit: p1 = refill, p2 = period, p3 = 1 if aligned. A
-- reading's origin is the last refill.

local function interval_grid(now, p2, p3)
  if p3 == 1 then return now - fmod(now, p2) end
  return now
end

local function interval_read(key, now, ceiling, p1, p2, p3)
  local raw = call('GET', key)
  last_raw = raw
  if not raw then return 0, now, interval_grid(now, p2, p3), 0, 0 end
  if type(raw) == 'table' or #raw ~= 24 then return nil, unreadable(raw) end
  local last, spent = unpack_struct('<dd', raw)
  if not (exact(last) and exact(spent)) then return nil, unreadable(raw) end
  spent = min(spent, ceiling)
  if last > now then
    if last - now > ceil_div(spent, p1) * p2 then
      local origin = interval_grid(now, p2, p3)
      return spent, now, origin, 0, last - origin
    end
    return spent, last, last, 0, 0
  end
  local refills = floor_div(now - last, p2)
  local back = refills * p1
  if back >= spent then return 0, now, interval_grid(now, p2, p3), 0, 0 end
  return spent - back, now, last + refills * p2, 0, 0
end

local function interval_wait(at, origin, excess, p1, p2)
  return origin + ceil_div(excess, p1) * p2 - at
end

local function interval_write(key, level, origin, goes)
  return call('SET', key, pack_struct('<ddd', origin, level, goes), SET_EXPIRY, span_of(goes))
end
