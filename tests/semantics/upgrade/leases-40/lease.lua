-- The leases of one key. Twin: crates/core/src/lease/held.rs.
--
-- ENDS is a sorted set of ids by the time that their leases end. RECORDS is a hash:
--   's'          what is held, how many leases there are, the latest end that any has had, until when the keys live,
--                and since when there is no lease
--   'i' .. id    weight, what was in flight at its acquisition, and its time; then 'p' and its partition, if it has one
--   'p' .. name  what the partition holds
--   'c'          what is remembered for an adaptive limit
-- An id is stored behind a letter, so none is the name of another field.

local ACQUIRE, RENEW, RELEASE = 1, 2, 3
local IGNORED, DROPPED = 2, 3
local HELD, KNOWN, RELEASED, NOT_HELD, OTHER_WEIGHT, LIMITED, NEVER, FULL, SAMPLED = 1, 2, 3, 4, 5, 6, 7, 8, 9
local MAX_LEASES, BOUND_LOOKS, LATEST = 10000, 100, 9007199254740991
-- Leases that are removed by one command: Lua can pass so many arguments.
local CHUNK = 500
-- How long keys may outlive what is in them (in us), so that most calls need not move their expiry.
local GRACE = 4000000

local in_flight, count, latest_end, goes, empty_since = 0, 0, 0, 0, 0
local record, stored_memory = false, false
-- What partitions hold, as far as it was read, and which of them have changed.
local held_by, changed_partitions = {}, {}
local changed = false

-- An error of a key is the reply of the call.
local function ask(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then error(reply) end
  return reply
end

local function whole(x)
  return string.format('%.0f', x)
end

local function held_of(name)
  local held = held_by[name]
  if not held then
    local raw = ask('HGET', RECORDS, 'p' .. name)
    held = raw and unpack_struct('<d', raw) or 0
    held_by[name] = held
  end
  return held
end

local function add_to(name, more)
  held_by[name] = max(0, held_of(name) + more)
  changed_partitions[name] = true
end

-- Takes a lease out of the sums. It has ended at `at`.
local function forget(raw, at)
  local its_weight = unpack_struct('<d', raw)
  in_flight, count, changed = max(0, in_flight - its_weight), count - 1, true
  if #raw > 24 then add_to(raw:sub(26), -its_weight) end
  if count == 0 then empty_since = at end
end

local function read()
  local fields = { 's', 'i' .. id, 'c' }
  if share >= 0 then fields[4] = 'p' .. partition end
  local raw = ask('HMGET', RECORDS, unpack(fields))
  if raw[1] then in_flight, count, latest_end, goes, empty_since = unpack_struct('<ddddd', raw[1]) end
  record = raw[2]
  if ask('ZCARD', ENDS) ~= count then
    -- One of the two keys was evicted. What is left says nothing.
    ask('DEL', RECORDS, ENDS)
    in_flight, count, latest_end, goes, empty_since, record = 0, 0, 0, 0, 0, false
    return
  end
  if share >= 0 then held_by[partition] = raw[4] and unpack_struct('<d', raw[4]) or 0 end
  if raw[3] and unpack_struct('<d', raw[3]) == KIND then stored_memory = raw[3]
  elseif raw[3] then ask('HDEL', RECORDS, 'c') end -- of a controller that the limit has no longer
end

local function expire()
  local gone
  repeat
    gone = ask('ZRANGEBYSCORE', ENDS, '-inf', whole(now), 'WITHSCORES', 'LIMIT', 0, CHUNK)
    if #gone > 0 then
      local ids, fields = {}, {}
      for i = 1, #gone / 2 do
        ids[i] = gone[2 * i - 1]
        fields[i] = 'i' .. ids[i]
        if ids[i] == id then record = false end
      end
      local records = ask('HMGET', RECORDS, unpack(fields))
      for i = 1, #records do
        if records[i] then forget(records[i], tonumber(gone[2 * i])) end
      end
      ask('ZREM', ENDS, unpack(ids))
      ask('HDEL', RECORDS, unpack(fields))
    end
  until #gone < 2 * CHUNK
end

-- Leases that would end later than the longest one may, because the clock was set back, end then.
local function clamp_ends()
  local latest = min(now + max_ttl, LATEST)
  if count == 0 or latest_end <= latest then return end
  local late = ask('ZRANGEBYSCORE', ENDS, '(' .. whole(latest), '+inf')
  for from = 1, #late, CHUNK do
    local scored = {}
    for i = from, min(#late, from + CHUNK - 1) do
      scored[#scored + 1] = whole(latest)
      scored[#scored + 1] = late[i]
    end
    ask('ZADD', ENDS, unpack(scored))
  end
  latest_end, changed = latest, true
end

local function limit_now()
  return floor(within(estimate))
end

-- The largest weight that fits now.
local function room()
  local limit = limit_now()
  local shared = max(0, limit - in_flight)
  if share < 0 then return min(shared, most) end
  local rest = limit % 1000
  local own = max(1, (limit - rest) / 1000 * share + ceil(rest * share / 1000))
  return min(max(shared, own - held_of(partition)), most)
end

-- The time until so many leases have ended by themselves that the weight fits; -1 if they never do.
local function bound()
  local limit, rest, from = limit_now(), in_flight, 0
  if weight > limit then return -1 end
  -- Mostly the first one is enough.
  for _, upto in ipairs({ 1, BOUND_LOOKS }) do
    local first = ask('ZRANGE', ENDS, from, upto - 1, 'WITHSCORES')
    if #first == 0 then break end
    local fields = {}
    for i = 1, #first / 2 do fields[i] = 'i' .. first[2 * i - 1] end
    local records = ask('HMGET', RECORDS, unpack(fields))
    for i = 1, #records do
      if records[i] then rest = rest - unpack_struct('<d', records[i]) end
      if rest + weight <= limit then return tonumber(first[2 * i]) - now end
    end
    from = upto
  end
  local last = ask('ZRANGE', ENDS, -1, -1, 'WITHSCORES')
  return last[2] and tonumber(last[2]) - now or -1
end

local function end_at(ends)
  ask('ZADD', ENDS, whole(ends), id)
  latest_end, changed = max(latest_end, ends), true
end

local function acquire()
  if record then
    local its_weight = unpack_struct('<d', record)
    if its_weight ~= weight then return OTHER_WEIGHT, its_weight end
    return KNOWN, tonumber(ask('ZSCORE', ENDS, id)) - now
  end
  if weight > most then return NEVER, -1 end
  if weight > room() then return LIMITED, bound() end
  if count >= MAX_LEASES then
    return FULL, tonumber(ask('ZRANGE', ENDS, 0, 0, 'WITHSCORES')[2]) - now
  end
  local ends = min(now + min(ttl, max_ttl), LATEST)
  -- The first lease makes a key, which has no expiry yet.
  if count == 0 then goes = 0 end
  in_flight, count = in_flight + weight, count + 1
  local raw = pack_struct('<ddd', weight, in_flight, now)
  if share >= 0 then
    add_to(partition, weight)
    raw = raw .. 'p' .. partition
  end
  end_at(ends)
  ask('HSET', RECORDS, 'i' .. id, raw)
  return HELD, ends - now
end

local function renew()
  if not record then return NOT_HELD, 0 end
  local ends = min(now + min(ttl, max_ttl), LATEST)
  end_at(ends)
  return KNOWN, ends - now
end

local function release()
  if not record then return NOT_HELD, 0 end
  local _, its_in_flight, acquired = unpack_struct('<ddd', record)
  ask('ZREM', ENDS, id)
  ask('HDEL', RECORDS, 'i' .. id)
  forget(record, now)
  local took = rtt
  if took < 0 then took = now - acquired end
  if take_sample and outcome ~= IGNORED then take_sample(max(took, 1), its_in_flight, outcome == DROPPED) end
  return RELEASED, 0
end

local function show_sample()
  if not take_sample then return SAMPLED, 0 end
  if count == 0 then empty_since = now end
  take_sample(max(rtt, 1), shown_in_flight, outcome == DROPPED)
  latest_end, changed = max(latest_end, now), true
  return SAMPLED, 0
end

local function save(by_caller)
  if count == 0 and not has_memory then
    ask('DEL', RECORDS, ENDS)
    return
  end
  local moved = latest_end + idle > goes
  if moved then goes = latest_end + idle + GRACE end
  local fields = { 's', pack_struct('<ddddd', in_flight, count, latest_end, goes, empty_since) }
  if has_memory then
    fields[3], fields[4] = 'c', memory()
  end
  for name in pairs(changed_partitions) do
    if held_by[name] > 0 then
      fields[#fields + 1], fields[#fields + 2] = 'p' .. name, pack_struct('<d', held_by[name])
    else
      ask('HDEL', RECORDS, 'p' .. name)
    end
  end
  ask('HSET', RECORDS, unpack(fields))
  if not moved then return end
  -- A caller's own clock says nothing of the server's, so its keys live for a span, and for at least a minute.
  local command, when = 'PEXPIREAT', ceil(goes / 1000) + 1
  if by_caller then command, when = 'PEXPIRE', max(ceil((goes - now) / 1000), 60000) end
  ask(command, RECORDS, whole(when))
  ask(command, ENDS, whole(when))
end

local function answer()
  local by_caller = now >= 0
  if not by_caller then
    local time = ask('TIME')
    now = time[1] * 1000000 + time[2]
  end
  read()
  if stored_memory then recall(stored_memory) end
  expire()
  clamp_ends()
  if has_memory and count == 0 and now >= empty_since + idle then
    ask('HDEL', RECORDS, 'c')
    forget_memory()
    changed = true
  end
  local status, extra
  if op == ACQUIRE then status, extra = acquire()
  elseif op == RENEW then status, extra = renew()
  elseif op == RELEASE then status, extra = release()
  else status, extra = show_sample() end
  local reply = pack_struct('<ddddddd', now, status, limit_now(), in_flight, room(), extra, within(estimate))
  if changed then save(by_caller) end
  return reply
end

local ran, reply = pcall(answer)
if ran or type(reply) == 'table' then return reply end
return redis.error_reply(reply)
