-- Places of a list that become free without a worker: items that are too old, and items that are dropped for new ones. Twin:
-- crates/queues/src/model/room.rs. Calls of such queues are made one by one.

-- Takes the first items away. The first command needs no memory, and the second is refused where the numbers would be.
local function drop_function(count)
  ask('ZREM', KEYS[2], '')
  ask('HSET', KEYS[3], unpack(add_totals(ask('HGET', KEYS[3], 't'), 0, 0, 0, 0)))
  return function() ask('LPOP', KEYS[1], count) end
end

-- Removes items that are too old. Returns how many, whether there may be more, and the totals to write if there were any.
function q.age_out()
  local LOOKS = 1000
  if q.max_age == 0 then return 0, false end
  local looks, bytes, ended = 0, 0, false
  while not ended and looks < LOOKS and bytes + 65536 <= 1048576 do
    local chunk = math.min(LOOKS - looks, math.floor((1048576 - bytes) / 65536))
    local elements = ask('LRANGE', KEYS[1], looks, looks + chunk - 1)
    ended = #elements < chunk
    for i = 1, #elements do
      if q.now - struct.unpack('<d', elements[i]) * 1000 <= q.max_age then
        ended = true
        break
      end
      looks, bytes = looks + 1, bytes + #elements[i] - 16
    end
  end
  if looks > 0 then
    drop_function(looks)()
    q.bytes, q.changed = math.max(0, q.bytes - bytes), true
  end
  return looks, not ended, looks > 0 and add_totals(ask('HGET', KEYS[3], 't'), looks, 0, 0, 0)
end

-- Finds how many items to drop for so many new ones, and so many bytes. Returns their number and their size, or nothing if
-- that is not enough.
function q.find_oldest(places, bytes)
  local MOST = 1000
  local count, size, ended = 0, 0, false
  while not ended and count < MOST and (count < places or size < bytes) do
    local chunk = math.min(MOST - count, 16)
    local elements = ask('LRANGE', KEYS[1], count, count + chunk - 1)
    ended = #elements < chunk
    for i = 1, #elements do
      if count >= places and size >= bytes then break end
      count, size = count + 1, size + #elements[i] - 16
    end
  end
  if count >= places and size >= bytes then return count, size end
end
