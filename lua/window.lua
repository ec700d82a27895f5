-- Fixed window. Twin: src/algorithm/window.rs.
--
-- Stored: start, hits, span (three doubles). Of the limit: p1 = span, p2 = 1 if anchored. A reading's
-- origin is the start of the window in force, its extra the length.

local function window_opening(at, p1, p2)
  local start = at
  if p2 == 0 then start = at - fmod(at, p1) end
  return 0, at, start, p1, 0
end

local function window_read(key, now, p1, p2)
  local raw = call('GET', key)
  if not raw then return window_opening(now, p1, p2) end
  if type(raw) == 'table' or #raw ~= 24 then return nil, unreadable(raw) end
  local start, hits, span = unpack_struct('<ddd', raw)
  if not (exact(start) and exact(hits) and hits <= CEILING and exact(span) and span > 0 and span <= CEILING) then
    return nil, unreadable(raw)
  end
  local at, shift = now, 0
  if start > now then
    if start - now > span then
      local moved = now
      if p2 == 0 then moved = now - fmod(now, span) end
      shift = start - moved
      start = moved
    else
      at = start
    end
  end
  if at >= start + span then return window_opening(at, p1, p2) end
  return hits, at, start, span, shift
end

local function window_write(key, level, origin, extra, px)
  return call('SET', key, pack_struct('<ddd', origin, level, extra), SET_EXPIRY, px)
end
