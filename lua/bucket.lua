-- Token bucket, leaky bucket as a meter, GCRA, uniform gate. Twin: crates/core/src/algorithm/bucket.rs.
--
-- Stored: level, at, per_token, when the key goes in ms (four doubles). Of the limit: p1 = drain,
-- weight = per_token; p2 = 1 for a queue, whose level up to p3 is not delayed, 2 where calls pay afterwards, above a
-- level of p3, and else 0.

-- level · new / old, rounded up, saturating at the ceiling. The product does not fit a double, so the
-- quotient is built bit by bit of `new`; only a changed rate comes here.
local function bucket_rescale(level, new, old)
  local quotient, rest = 0, 0
  local whole, part = floor_div(level, old), fmod(level, old)
  local bit = 4503599627370496
  while bit >= 1 do
    quotient, rest = quotient * 2, rest * 2
    if rest >= old then quotient, rest = quotient + 1, rest - old end
    if fmod(floor_div(new, bit), 2) == 1 then
      rest = rest + part
      if rest >= old then quotient, rest = quotient + 1, rest - old end
    end
    bit = bit / 2
  end
  if rest > 0 then quotient = quotient + 1 end
  return min(CEILING, whole * new + quotient)
end

local function bucket_read(key, now, weight, p1)
  local raw = call('GET', key)
  last_raw = raw
  if not raw then return 0, now, now, 0, 0 end
  if type(raw) == 'table' or #raw ~= 32 then return nil, unreadable(raw) end
  local level, at, per_token = unpack_struct('<ddd', raw)
  if not (exact(level) and level <= CEILING and exact(at) and exact(per_token) and per_token > 0) then
    return nil, unreadable(raw)
  end
  if per_token ~= weight then level = bucket_rescale(level, weight, per_token) end
  if at > now then
    local ahead = at - now
    if ahead > ceil_div(level, p1) then return level, now, now, 0, ahead end
    return level, at, at, 0, 0
  end
  local drained = (now - at) * p1
  if drained >= level then return 0, now, now, 0, 0 end
  return level - drained, now, now, 0, 0
end

local function bucket_write(key, level, at, weight, goes)
  return call('SET', key, pack_struct('<dddd', level, at, weight, goes), SET_EXPIRY, span_of(goes))
end
