-- What open holds have of one limit: units by the time at which they end. Twin: crates/core/src/algorithm/held_parts.rs.
--
-- Stored, under a key of its own: mark, seen, then end and units of each part, by end (doubles). A reading has the open parts in
-- `ends` (end, units, end, units, ...), and the sum of their units in `open`. A decision changes one part of a limit at most, so
-- the new string is made of pieces of the old one: that costs a fraction of packing all numbers.

-- The most ends of a limit; how far ahead of the clock `seen` and the end of a hold may lie; and under n, once it is needed, the
-- format of n numbers.
local parts = { most = 64, most_ahead = 7200000000 }

-- The format of so many numbers.
function parts.format(count)
  local format = parts[count]
  if not format then
    format = '<' .. string.rep('d', count)
    parts[count] = format
  end
  return format
end

-- Reads the string of a limit. Returns what is wrong with it, if anything is.
function parts.read(one, key)
  local raw = call('GET', key)
  one.parts_raw, one.parts_kept = raw, ''
  if not raw then return end
  if type(raw) == 'table' or #raw < 32 or #raw > 16 + 16 * parts.most or #raw % 16 ~= 0 then return unreadable(raw) end
  local mark, seen = unpack_struct('<dd', raw)
  if not (exact(mark) and exact(seen)) then return NOT_A_STATE end
  -- One that was written by a clock far ahead counts as absent.
  if seen <= now + parts.most_ahead then one.mark, one.seen, one.parts_kept = mark, seen, raw end
end

-- Reads the parts that have not ended at `at`. Returns what is wrong with the string, if anything is.
function parts.open(one, at)
  local raw = one.parts_kept
  local count = #raw / 8 - 2
  if count <= 0 then return end
  local numbers, open, ended, before, most = { unpack_struct(parts.format(count), raw, 17) }, 0, 0, 0, 2 * CEILING
  for i = 1, count, 2 do
    local goes, units = numbers[i], numbers[i + 1]
    -- As `exact`, without its calls.
    if not (goes > before and goes < most and goes % 1 == 0 and units > 0 and units < most and units % 1 == 0) then
      return NOT_A_STATE
    end
    before = goes
    if goes > at then open = open + units else ended = ended + 1 end
  end
  -- What has ended comes first. Where nothing has, the numbers stay where they are.
  if ended > 0 then
    for i = 1, count - 2 * ended do numbers[i] = numbers[i + 2 * ended] end
  end
  for i = count + 1, count - 2 * ended + 1, -1 do numbers[i] = nil end
  one.ends, one.open, one.ended = numbers, open, ended
end

-- Notes what stands at a place of `ends` instead of what stood there: a packed part, or nothing.
function parts.change(one, place, packed, replaced)
  local at = 16 + 8 * (2 * one.ended + place - 1)
  one.changed, one.packed, one.packed_at, one.packed_to = true, packed, at, at + 1 + (replaced and 16 or 0)
end

-- Adds units that end at `goes`.
function parts.add(one, goes, units)
  local ends, place = one.ends, 1
  while place < #ends and ends[place] < goes do place = place + 2 end
  one.open = one.open + units
  if ends[place] == goes then
    ends[place + 1] = ends[place + 1] + units
    return parts.change(one, place, pack_struct('<dd', goes, ends[place + 1]), true)
  end
  parts.change(one, place, pack_struct('<dd', goes, units), false)
  for i = #ends, place, -1 do ends[i + 2] = ends[i] end
  ends[place], ends[place + 1] = goes, units
end

-- Takes out units that end at `goes`, if they are there.
function parts.take(one, goes, units)
  local ends = one.ends
  for place = 1, #ends, 2 do
    if ends[place] == goes and ends[place + 1] >= units then
      local left = ends[place + 1] - units
      ends[place + 1], one.open = left, one.open - units
      parts.change(one, place, left > 0 and pack_struct('<dd', goes, left) or '', true)
      if left == 0 then
        table.remove(ends, place)
        table.remove(ends, place)
      end
      return
    end
  end
end

-- The earliest time from now on at which `units` more fit. What is held does not drain, so an end counts only if the rest
-- of what is missing is used, for which the engine's own wait is taken. A later end leaves less to wait for, so the shortest time is
-- where both meet, and is found by halves: a wait of a log is a search of its own.
function parts.wait(limit, key, one, units)
  local ends, open, missing, low = one.ends, one.open, {}, nil
  local high, shortest = #ends / 2 + 1, nil
  -- In this order no sum is above 2^53.
  local beyond = one.level + units * limit.weight - limit.capacity
  for i = 0, high - 1 do
    if i > 0 then open = open - ends[2 * i] end
    missing[i] = max(beyond + open * limit.weight, 0)
    if not low and missing[i] <= one.level then low = i end
  end
  while low and low < high do
    local middle = floor((low + high) / 2)
    local after, drained = 0, 0
    if middle > 0 then after = max(ends[2 * middle - 1] - now, 0) end
    if missing[middle] > 0 then drained = wait(limit, key, one, missing[middle]) end
    if after >= drained then high = middle else low = middle + 1 end
    shortest = min(shortest or 2 * CEILING, max(after, drained))
  end
  return shortest or 0
end

-- The string to store, once a part has changed.
function parts.pack(one, at)
  local raw = one.parts_kept
  return pack_struct('<dd', one.mark, at) .. raw:sub(17 + 16 * one.ended, one.packed_at) .. one.packed .. raw:sub(one.packed_to)
end
