-- Warm-up (Guava's SmoothWarmingUp). Twin: crates/core/src/algorithm/warm_up.rs, in the same order of operations.
--
-- Stored: backlog, permits, at, the most permits under the numbers that it was written with (four doubles). Of the
-- limit: p1 = µs of a fresh permit, p2 = the warm-up, p3 = the cold factor. A reading's origin is the backlog, its extra
-- the stored permits, its level the time until the limit is cold. `span` carries the curve.

local function warm_curve(p1, p2, p3)
  local curve = { fresh = p1, threshold = 0.5 * p2 / p1 }
  local cold = p1 * p3
  curve.most = curve.threshold + 2.0 * p2 / (p1 + cold)
  curve.slope = (cold - p1) / (curve.most - curve.threshold)
  curve.each = p2 / curve.most
  return curve
end

-- µs without a backlog until no more permits can be stored.
local function warm_until_cold(curve, stored)
  return max(math.ceil((curve.most - stored) * curve.each), 0)
end

local function warm_read(key, now, p1, p2, p3)
  local curve = warm_curve(p1, p2, p3)
  local raw = call('GET', key)
  last_raw = raw
  if not raw then return 0, now, 0, curve.most, 0, curve end
  if type(raw) == 'table' or #raw ~= 32 then return nil, unreadable(raw) end
  local backlog, stored, at, most = unpack_struct('<dddd', raw)
  if not (exact(backlog) and backlog <= CEILING and exact(at) and stored >= 0 and most > 0 and stored <= most
      and most < CEILING) then
    return nil, unreadable(raw)
  end
  if most ~= curve.most then stored = stored * curve.most / most end
  local until_cold = backlog + warm_until_cold(curve, stored)
  if at > now then
    local ahead = at - now
    if ahead > until_cold then return until_cold, now, backlog, stored, ahead, curve end
    return until_cold, at, backlog, stored, 0, curve
  end
  local elapsed = now - at
  if elapsed >= until_cold then return 0, now, 0, curve.most, 0, curve end
  if elapsed > backlog then stored = min(curve.most, stored + (elapsed - backlog) / curve.each) end
  return until_cold - elapsed, now, max(backlog - elapsed, 0), stored, 0, curve
end

-- What is stored after `cost` permits were taken, and how long they take.
local function warm_time(curve, stored, cost)
  local taken = min(stored, cost)
  local time, rest = 0, taken
  local above = stored - curve.threshold
  if above > 0 then
    local costly = min(above, taken)
    local both = (curve.fresh + above * curve.slope) + (curve.fresh + (above - costly) * curve.slope)
    time = floor(costly * both / 2.0)
    rest = taken - costly
  end
  time = time + floor(curve.fresh * rest) + floor((cost - taken) * curve.fresh)
  return stored - taken, time
end

-- Takes `cost` permits, and returns the level then.
local function warm_spend(one, cost)
  local stored, time = warm_time(one.span, one.extra, cost)
  one.origin, one.extra = one.origin + time, stored
  return one.origin + warm_until_cold(one.span, stored)
end

local function warm_write(key, one, goes)
  return call('SET', key, pack_struct('<dddd', one.origin, one.extra, one.at, one.span.most), SET_EXPIRY, span_of(goes))
end
