-- Places of a stream that become free without a worker: items that are too old, and items that are dropped for new ones. Twin:
-- crates/queues/src/model/room.rs. Calls of such queues are made one by one.

-- The record of an item that was never delivered.
local function no_record(size) return struct.pack('<dd', size, 0) .. 't' end

-- The last item that was delivered: those after it are new. XINFO is a right that only such queues need.
local function last_delivered()
  local groups = redis.pcall('XINFO', 'GROUPS', KEYS[1])
  if groups.err then
    if groups.err:find('no such key', 1, true) then return '0-0' end
    error(groups)
  end
  for i = 1, #groups do
    local about = {}
    for at = 1, #groups[i], 2 do about[groups[i][at]] = groups[i][at + 1] end
    if about.name == 'weir' then return about['last-delivered-id'] end
  end
  return '0-0'
end

-- Items that are due, and their records.
local function due_items(most)
  local due, names = ask('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', q.now), 'LIMIT', 0, most), {}
  for i = 1, #due do names[i] = 'i' .. due[i] end
  return due, #due > 0 and ask('HMGET', KEYS[3], unpack(names)) or {}
end

-- Removes items and what is known of them, and keeps their outcomes. The first commands change nothing, and are refused where
-- the rest would be; the first of all needs no memory.
local function drop_function(left)
  local members, records, keep = {}, {}, archive_function(left)
  for i = 1, #left do
    local member = left[i][2]
    members[i], records[2 * i - 1], records[2 * i] = member, 'i' .. member, 'k' .. member
  end
  ask('ZREM', KEYS[2], '')
  ask('HDEL', KEYS[3], '')
  ask('XACK', KEYS[1], 'weir', '0-0')
  ask('XDEL', KEYS[1], '0-0')
  ask('XLEN', KEYS[4])
  return function()
    if keep then keep() end
    ask('XDEL', KEYS[1], unpack(members))
    ask('XACK', KEYS[1], 'weir', unpack(members))
    ask('HDEL', KEYS[3], unpack(records))
    ask('ZREM', KEYS[2], unpack(members))
  end
end

-- What removes items that are too old: false if the dead letters have no place.
local function aged_functions()
  local AGED_OUT = 4
  local dead, left, size = { count = 0, left = {} }, {}, 0
  if q.max_deliveries > 0 then
    local bury, write_dead = dead_letters(dead)
    return function(member, bytes, record)
      return bury(member, bytes, 0, record or no_record(bytes), true)
    end, function()
      write_dead()
      local keep = archive_function(dead.left)
      if keep then keep() end
      return dead.count
    end
  end
  return function(member, bytes, record, payload)
    left[#left + 1], size = { AGED_OUT, member, record or no_record(bytes), '', payload }, size + bytes
    return true
  end, function()
    if #left == 0 then return 0 end
    local remove = drop_function(left)
    ask('HSET', KEYS[3], unpack(add_totals(ask('HGET', KEYS[3], 't'), 0, 0, 0, 0)))
    remove()
    q.bytes, q.changed = math.max(0, q.bytes - size), true
    return #left
  end
end

-- Removes items that no worker has and that are too old. Returns how many, whether there may be more, and the totals to write if
-- there were any.
function q.age_out()
  local LOOKS, DUE_LOOKS = 1000, 100
  if q.max_age == 0 then return 0, false end
  local function is_aged(ms) return q.now - tonumber(ms) * 1000 > q.max_age end
  local remove, finish = aged_functions()
  local due, records = due_items(DUE_LOOKS)
  local removed, looks, bytes, last, ended = 0, 0, 0, last_delivered(), false
  for i = 1, #due do
    local size = records[i] and struct.unpack('<d', records[i]) or 0
    if is_aged(due[i]:match('^%d+')) and remove(due[i], size, records[i]) then removed = removed + 1 end
  end
  while not ended and looks < LOOKS and bytes + 65536 <= 1048576 do
    local chunk = math.min(LOOKS - looks, math.floor((1048576 - bytes) / 65536))
    local entries = ask('XRANGE', KEYS[1], '(' .. last, '+', 'COUNT', chunk)
    ended = #entries < chunk
    for i = 1, #entries do
      local payload = entries[i][2][2]
      local size = #payload
      last = entries[i][1]
      if not is_aged(last:match('^%d+')) or not remove(member_of(last), size, false, payload) then
        ended = true
        break
      end
      looks, bytes = looks + 1, bytes + size
    end
  end
  local aged = finish()
  return aged, removed == DUE_LOOKS or not ended, aged > 0 and add_totals(ask('HGET', KEYS[3], 't'), aged, 0, 0, 0)
end

-- Finds items to drop for so many new ones, and so many bytes. Returns them and their size, or nothing if that is not
-- enough.
function q.find_oldest(places, bytes)
  local MOST, DROPPED = 1000, 3
  local left, size, last, ended = {}, 0, last_delivered(), false
  while not ended and #left < MOST and (#left < places or size < bytes) do
    local chunk = math.min(MOST - #left, 16)
    local entries = ask('XRANGE', KEYS[1], '(' .. last, '+', 'COUNT', chunk)
    ended = #entries < chunk
    for i = 1, #entries do
      if #left >= places and size >= bytes then break end
      last = entries[i][1]
      local payload = entries[i][2][2]
      left[#left + 1], size = { DROPPED, member_of(last), no_record(#payload), '', payload }, size + #payload
    end
  end
  if #left < MOST and (#left < places or size < bytes) then
    local due, records = due_items(MOST - #left)
    for i = 1, #due do
      if #left >= places and size >= bytes then break end
      left[#left + 1] = { DROPPED, due[i], records[i] or no_record(0), '' }
      size = size + (records[i] and struct.unpack('<d', records[i]) or 0)
    end
  end
  if #left >= places and size >= bytes then return left, size end
end
