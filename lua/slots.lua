-- Bucketed window. Twin: crates/core/src/algorithm/slots.rs.
--
-- Stored: how many parts were hit before the newest, width, frame, what those before hold, number and hits of the newest,
-- then number and hits of each before, oldest first (doubles). Of the limit: p1 = width, p2 = frame, which is twice the
-- window, and 1 more if it is strict, p3 = how long the key stays after it is fresh. A reading's origin is the start of the
-- newest part, its span how long that counts, its extra the current part, and its shift is in parts. It holds the parts that
-- count: { width, frame, part1, hits1, part2, hits2, … }, moved by the shift already, and those of another width or frame as
-- one.

local SLOTS_MOST = 361

-- What follows from width and frame: the window, its parts, and how many parts count. Nothing if they are no limit's.
local function slots_shape(width, frame)
  local strict = fmod(frame, 2)
  local window = (frame - strict) / 2
  if width == 0 or width > window or window > CEILING then return nil end
  local parts = ceil_div(window, width)
  return window, parts, parts + strict
end

local function slots_part(at, width, window, parts)
  return floor_div(at, window) * parts + floor_div(fmod(at, window), width)
end

local function slots_start(part, width, window, parts)
  return floor_div(part, parts) * window + fmod(part, parts) * width
end

-- How long a part counts from its start.
local function slots_life(part, width, window, parts, count)
  if count == parts then return window end
  return window + min(width, window - fmod(part, parts) * width)
end

local function slots_opening(at, p1, p2)
  local window, parts = slots_shape(p1, p2)
  return 0, at, at, slots_part(at, p1, window, parts), 0, 0, { p1, p2 }
end

-- How a newest part of these parts reads now: the time, its start, the current part, the shift and how long it counts; nothing
-- if it no longer counts, but the time.
local function slots_time(newest, now, width, frame)
  local window, parts, count = slots_shape(width, frame)
  local start, shift = slots_start(newest, width, window, parts), 0
  local span = slots_life(newest, width, window, parts, count)
  if start - now > span then
    shift = newest - slots_part(now, width, window, parts)
    start = slots_start(newest - shift, width, window, parts)
    span = slots_life(newest - shift, width, window, parts, count)
  end
  local at = max(now, start)
  if at - start >= span then return at end
  return at, start, slots_part(at, width, window, parts), shift, span, count
end

-- The numbers of a stored string, as a reading holds them, or nil.
local function slots_parse(raw)
  local older, width, frame, rest, newest, hits, position = unpack_struct('<dddddd', raw)
  if not (#raw == 48 + 16 * older and exact(width) and exact(frame) and exact(rest) and exact(newest) and exact(hits)) then
    return nil
  end
  local window, parts = slots_shape(width, frame)
  if not window or slots_start(newest, width, window, parts) > 2 * CEILING then return nil end
  local numbers = { width, frame }
  for i = 3, 2 * older + 2, 2 do
    local part, its
    part, its, position = unpack_struct('<dd', raw, position)
    if not (exact(part) and exact(its) and part <= newest) then return nil end
    numbers[i], numbers[i + 1], rest = part, its, rest - its
  end
  if rest ~= 0 then return nil end
  numbers[#numbers + 1], numbers[#numbers + 2] = newest, hits
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
  local width, frame = numbers[1], numbers[2]
  local newest = numbers[#numbers - 1]
  local at, origin, current, shift, span, count = slots_time(newest, now, width, frame)
  if not origin then return slots_opening(at, p1, p2) end
  local level, held, same = 0, { width, frame }, width == p1 and frame == p2
  for i = 3, #numbers, 2 do
    local part, hits = max(numbers[i] - shift, 0), numbers[i + 1]
    if not same then level = level + hits
    elseif part + count > current then
      level = level + hits
      held[#held + 1], held[#held + 2] = part, hits
    end
  end
  if level > CEILING then return nil, NOT_A_STATE end
  if not same then held[3], held[4] = newest - shift, level end
  return level, at, origin, current, shift, span, held
end

-- How much longer a part counts.
local function slots_left(one, part, width, frame)
  local window, parts, count = slots_shape(width, frame)
  return slots_life(part, width, window, parts, count) - (one.at - slots_start(part, width, window, parts))
end

local function slots_wait(one, excess)
  local held, freed = one.held, 0
  for i = 3, #held, 2 do
    freed = freed + held[i + 1]
    if freed >= excess then return slots_left(one, held[i], held[1], held[2]) end
  end
  return one.span - (one.at - one.origin)
end

-- The oldest of the newest `wanted` parts, the one that is now included, and its start.
local function slots_oldest(one, p1, p2, wanted)
  local window, parts, count = slots_shape(p1, p2)
  local oldest = max(slots_part(one.at, p1, window, parts) + 1 - max(min(wanted, count), 1), 0)
  return oldest, slots_start(oldest, p1, window, parts)
end

-- What those hold.
local function slots_newest(one, p1, p2, wanted)
  local held, sum = one.held, 0
  local oldest, from = slots_oldest(one, p1, p2, wanted)
  if held[1] ~= p1 or held[2] ~= p2 then
    if one.origin >= from then return one.level end
    return 0
  end
  for i = 3, #held, 2 do
    if held[i] >= oldest then sum = sum + held[i + 1] end
  end
  return sum
end

-- Makes a part the newest of a reading.
local function slots_renew(one, part, width, frame)
  local window, parts, count = slots_shape(width, frame)
  one.origin, one.span = slots_start(part, width, window, parts), slots_life(part, width, window, parts, count)
end

-- Adds `cost` to the part that is now, or takes -cost out of the newest; in a state of other parts out of and into the
-- only one.
local function slots_change(one, cost, p1, p2)
  local held = one.held
  local last, same = #held, held[1] == p1 and held[2] == p2
  if cost > 0 then
    local part = held[last - 1]
    if same then part = one.extra end
    if last > 2 and held[last - 1] == part then held[last] = held[last] + cost
    else held[last + 1], held[last + 2] = part, cost end
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
  if #held > 2 then slots_renew(one, held[#held - 1], held[1], held[2]) end
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
