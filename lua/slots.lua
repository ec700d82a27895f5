-- Bucketed window. Twin: crates/core/src/algorithm/slots.rs.
--
-- Stored: how many slots were hit before the newest, width, count, what those before hold, start and hits
-- of the newest, then start and hits of each before, oldest first (doubles). Of the limit: p1 = width,
-- p2 = count. A reading's origin is the newest slot's start, its span how long it
-- counts, and it holds the slots that count: { width, count, start1, hits1, start2, hits2, … }, moved by
-- the shift already, and those of another width or count as one.

local SLOTS_MOST = 361

local function slots_opening(at, p1, p2)
  return 0, at, at, 0, 0, p1 * p2, { p1, p2 }
end

-- The numbers of a stored string, as a reading holds them, or nil.
local function slots_parse(raw)
  local older, width, count, rest, start, hits, position = unpack_struct('<dddddd', raw)
  if not (#raw == 48 + 16 * older and exact(width) and exact(count) and exact(rest) and exact(start) and exact(hits))
      or width == 0 or count == 0 or width * count > 2 * CEILING then
    return nil
  end
  local numbers = { width, count }
  for i = 3, 2 * older + 2, 2 do
    local from, its
    from, its, position = unpack_struct('<dd', raw, position)
    if not (exact(from) and exact(its)) then return nil end
    numbers[i], numbers[i + 1], rest = from, its, rest - its
  end
  if rest ~= 0 then return nil end
  numbers[#numbers + 1], numbers[#numbers + 2] = start, hits
  return numbers
end

local function slots_read(key, now, p1, p2)
  local raw = call('GET', key)
  last_raw = raw
  if not raw then return slots_opening(now, p1, p2) end
  if type(raw) == 'table' or #raw < 48 or #raw > 48 + 16 * SLOTS_MOST then
    return nil, unreadable(raw)
  end
  local numbers = slots_parse(raw)
  if not numbers then return nil, unreadable(raw) end
  local width, count = numbers[1], numbers[2]
  local newest, span, shift = numbers[#numbers - 1], width * count, 0
  if newest - now > span then shift = newest - (now - fmod(now, width)) end
  local origin = newest - shift
  local at = max(now, origin)
  if at - origin >= span then return slots_opening(at, p1, p2) end
  local level, held, same = 0, { width, count }, width == p1 and count == p2
  for i = 3, #numbers, 2 do
    local start, hits = max(numbers[i] - shift, 0), numbers[i + 1]
    if start > at then return nil, NOT_A_STATE end
    if not same then level = level + hits
    elseif at - start < span then
      level = level + hits
      held[#held + 1], held[#held + 2] = start, hits
    end
  end
  if level > CEILING then return nil, NOT_A_STATE end
  if not same then held[3], held[4] = origin, level end
  return level, at, origin, 0, shift, span, held
end

local function slots_wait(one, excess)
  local held, freed = one.held, 0
  for i = 3, #held, 2 do
    freed = freed + held[i + 1]
    if freed >= excess then return one.span - (one.at - held[i]) end
  end
  return one.span - (one.at - one.origin)
end

-- What the newest `parts` slots hold, the one that is now included.
local function slots_newest(one, p1, p2, parts)
  local held, sum = one.held, 0
  local oldest = one.at - fmod(one.at, p1) - (max(min(parts, p2), 1) - 1) * p1
  for i = 3, #held, 2 do
    if held[i] >= oldest then sum = sum + held[i + 1] end
  end
  return sum
end

-- Adds `cost` to the slot that is now, or takes -cost out of the newest; in a state of other slots out
-- of and into the only one.
local function slots_change(one, cost, p1, p2)
  local held = one.held
  local last = #held
  if cost > 0 then
    local start = one.origin
    if held[1] == p1 and held[2] == p2 then start = one.at - fmod(one.at, p1) end
    if last > 2 and held[last - 1] == start then held[last] = held[last] + cost
    else held[last + 1], held[last + 2] = start, cost end
  end
  local back = max(-cost, 0)
  while back > 0 and last > 2 do
    local taken = min(back, held[last])
    held[last], back = held[last] - taken, back - taken
    if held[last] == 0 then
      held[last], held[last - 1] = nil, nil
      last = last - 2
    end
  end
  if #held > 2 then one.origin = held[#held - 1] end
end

local function slots_write(key, one, goes)
  local held, packed, rest = one.held, { '' }, 0
  local newest = #held - 1
  for i = 3, newest - 2, 2 do
    packed[#packed + 1], rest = pack_struct('<dd', held[i], held[i + 1]), rest + held[i + 1]
  end
  packed[1] = pack_struct('<dddddd', (newest - 3) / 2, held[1], held[2], rest, held[newest], held[newest + 1])
  return call('SET', key, table.concat(packed), SET_EXPIRY, span_of(goes))
end
