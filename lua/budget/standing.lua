-- One limit within a decision: as it was read, and what is to be written. Twins: standing.rs, write.rs and end.rs in
-- crates/core/src/algorithm/budget/.
--
-- Besides what a reading has: `cost`, `granted` and `charged` (nil: none), `uncharged` (the units above `max_debt`),
-- `level_after` (nil: nothing to write), and whether the parts have `changed`. T, the latest time that the parts of the
-- decision have seen, is `ones.now`.

local standing = {}

-- What the numbers of a limit are read into. A table that has a name for each grows only once.
function standing.new_limit()
  return { engine = 0, limit = 0, weight = 0, ceiling = 0, count_denied = 0, p1 = 0, p2 = 0, p3 = 0, shadow = false,
    capacity = 0, upfront = 0, hold = false, spread = false, debt_level = 0, held_at = 0, name = 0, at_once = 0, near = 0,
    parts_at = false }
end

-- What its state and parts are read into.
function standing.new()
  return { level = 0, at = 0, origin = 0, extra = 0, shift = 0, before = 0, span = 0, held = false, cause = 0, retry = 0,
    raw = false, writes = false, cost = 0, granted = 0, charged = 0, level_after = 0, changed = false, ends = 0, open = 0,
    ended = 0, mark = 0, seen = 0, parts_raw = false, parts_kept = '', packed = '', packed_at = 0, packed_to = 0, asked = 0,
    least = 0, digest = 0 }
end

-- Reads the states and the parts of all limits. Returns what is wrong with one, if anything is.
function standing.read_all(limits, count, ones)
  local why = read_all(limits, count, ones)
  if why then return why end
  local at = now
  for i = 1, count do
    local limit, one = limits[i], ones[i]
    one.cost, one.granted, one.charged, one.uncharged, one.level_after, one.changed = 0, nil, nil, 0, nil, false
    one.ends, one.open, one.ended, one.mark, one.seen, one.parts_raw = {}, 0, 0, 0, nil, false
    if limit.parts_at then
      why = parts.read(one, keys[key_at + limit.parts_at])
      if why then return why end
      if one.seen and one.seen > at then at = one.seen end
    end
  end
  for i = 1, count do
    why = limits[i].parts_at and parts.open(ones[i], at)
    if why then return why end
  end
  ones.now = at
end

-- Whether units are judged: all but a named cost of 0.
function standing.is_judged(limit, units)
  return units > 0 or limit.name <= 0
end

-- Judges units beside what is used and held.
function standing.judge(limit, key, one, units)
  if one.open == 0 or units > limit.limit then return judge(limit, key, one, units) end
  one.cause, one.retry = FITS, 0
  -- In this order no sum is above 2^53.
  if one.level + units * limit.weight - limit.capacity + one.open * limit.weight <= 0 then return end
  one.retry = parts.wait(limit, key, one, units)
  if one.retry > 0 then one.cause = COUNT end
end

-- The largest cost that would pass.
function standing.remaining(limit, one)
  if one.open == 0 then return remaining(limit, one) end
  return floor_div(max(limit.capacity - one.level - one.open * limit.weight, 0), limit.weight)
end

-- The next possible end.
function standing.round_up(at, grain)
  return ceil_div(at, grain) * grain
end

-- When the part of a hold ends that is made at T: with the hold, or when a charge made then would no longer count.
function standing.part_end(limit, key, one, at, grain, hold_end)
  local engine, p1 = limit.engine, limit.p1
  local stop
  if engine == WINDOW then
    local level, origin, extra = one.level, one.origin, one.extra
    if at > now then
      local _
      level, _, origin, extra = window_read(key, at, p1, limit.p2, limit.p3)
    end
    local is_anchored = not (limit.p2 == ALIGNED or limit.p2 == MONTH or limit.p2 == SPREAD)
    if not is_anchored or level > 0 then return min(hold_end, origin + extra) end
    stop = at + p1
  elseif engine == LOG then stop = at + p1
  elseif engine == SLIDING then stop = at - fmod(at, p1) + 2 * p1
  elseif engine == SLOTS or engine == SPARSE then
    local window, parts_of, counting = slots_shape(p1, limit.p2)
    stop = slots_start(slots_part(at, p1, window, parts_of) + counting, p1, window, parts_of)
  else return hold_end end
  return min(hold_end, standing.round_up(stop, grain))
end

-- Charges units also above the limit.
function standing.charge_forced(limit, one, units)
  one.charged = debited(limit, one, units)
  one.uncharged = units - one.charged
  one.level_after = next_level(limit, one, FORCE, true, units, units)
end

-- The answer of one limit, after everything is written.
function standing.answer(limit, key, one, allowed, op)
  local left, retry
  if one.open == 0 then left = remaining_after(limit, one, op, one.cost) else left = standing.remaining(limit, one) end
  retry = one.retry
  if allowed or limit.shadow then retry = 0 end
  local reset, last, level, near = reset_after(limit, key, one), one.ends[#one.ends - 1], one.level, 0
  if last then reset = max(reset, last - now) end
  if limit.hold and one.ahead then level = max(level, limit.capacity) end
  if limit.near >= 0 then
    if level + one.open * limit.weight >= limit.near then near = 1 end
    if one.level_after and one.before < limit.near and level >= limit.near then near = near + 2 end
  end
  return pack_struct('<ddddddddddd', one.cause, one.cost, one.granted or -1, one.charged or -1, one.uncharged, left, retry,
    reset, one.open, one.before, near)
end
