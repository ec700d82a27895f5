-- Leases. Twin: crates/leases/src/model/held.rs.
--
-- `ends` is a sorted set of ids by the time that their leases end. `records` is a hash:
--   's'          what is held, how many leases there are, the latest end that any has had, until when the keys live,
--                since when there is no lease, and a time before which none ends (older versions do not write it)
--   'i' .. id    weight, what was in flight at its acquisition, and its time; then 'p' and its partition, if it has one
--   'p' .. name  what the partition holds
--   'c'          what is remembered for an adaptive limit
-- An id is stored behind a letter, so none is the name of another field. A record of a negative weight is none: it stands for one
-- that could not be removed.
--
-- A user of Redis may lack the right to any of the commands, and what was done before it stays done. So the numbers are
-- written first: what has written them can write them as they were.

local HELD, KNOWN, RELEASED, NOT_HELD, OTHER_WEIGHT, LIMITED, NEVER, FULL, SAMPLED = 1, 2, 3, 4, 5, 6, 7, 8, 9

-- An error of a key is the reply to the lease.
local function ask(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then error(reply) end
  return reply
end

local function held_of(name)
  local held = l.held_by[name]
  if not held then
    local raw = ask('HGET', l.records, 'p' .. name)
    held = raw and struct.unpack('<d', raw) or 0
    l.held_by[name] = held
  end
  return held
end

local function add_to(name, more)
  local held = held_of(name)
  l.held_by[name] = math.max(0, held + more)
  l.changed_partitions[name] = l.changed_partitions[name] or held
end

-- Takes a lease out of the sums. It has ended at `at`.
local function forget(raw, at)
  local its_weight = struct.unpack('<d', raw)
  l.in_flight, l.count, l.changed = math.max(0, l.in_flight - its_weight), l.count - 1, true
  if #raw > 24 then add_to(raw:sub(26), -its_weight) end
  if l.count == 0 then l.empty_since = at end
end

local function read()
  local names = { 's', 'i' .. l.id, 'c' }
  if l.share >= 0 then names[4] = 'p' .. l.partition end
  local raw = ask('HMGET', l.records, unpack(names))
  if raw[1] then
    l.in_flight, l.count, l.latest_end, l.goes, l.empty_since = struct.unpack('<ddddd', raw[1])
    if #raw[1] >= 48 then l.first_end = struct.unpack('<d', raw[1], 41) end
  end
  l.stored, l.record = raw[1], raw[2]
  if ask('ZCARD', l.ends) ~= l.count then
    -- One of the two keys was evicted. What is left says nothing.
    ask('DEL', l.records, l.ends)
    l.in_flight, l.count, l.latest_end, l.goes, l.empty_since, l.stored, l.record = 0, 0, 0, 0, 0, false, false
    return
  end
  if l.record and struct.unpack('<d', l.record) < 0 then l.record = false end
  if names[4] then l.held_by[l.partition] = raw[4] and struct.unpack('<d', raw[4]) or 0 end
  if raw[3] and struct.unpack('<d', raw[3]) == KIND then l.stored_memory = raw[3]
  elseif raw[3] then ask('HDEL', l.records, 'c') end -- of a controller that the limit has no longer
end

-- Takes leases that have ended out of the sums; they are removed when those are saved. 500 with one command, because Lua
-- can pass so many arguments.
local function expire()
  local CHUNK, until_now = 500, string.format('%.0f', now)
  local ids, names, all = {}, {}, {}
  local gone, own
  repeat
    gone = ask('ZRANGEBYSCORE', l.ends, '-inf', until_now, 'WITHSCORES', 'LIMIT', #ids, CHUNK)
    if #gone > 0 then
      local from = #ids
      for i = 1, #gone / 2 do
        local id = gone[2 * i - 1]
        ids[from + i], names[from + i] = id, 'i' .. id
        if id == l.id then l.record, own = false, from + i end
      end
      local records = ask('HMGET', l.records, unpack(names, from + 1))
      for i = 1, #records do
        all[from + i] = records[i]
        if records[i] then forget(records[i], tonumber(gone[2 * i])) end
      end
    end
  until #gone < 2 * CHUNK
  l.gone, l.gone_ids, l.gone_names, l.gone_records = #ids, ids, names, all
  if #ids > 0 then l.changed, l.gone_own = true, own end
  local first = ask('ZRANGE', l.ends, #ids, #ids, 'WITHSCORES')
  l.first_end = first[2] and tonumber(first[2]) or 0
end

-- Leases that would end later than the longest one may, because the clock was set back, end then.
local function clamp_ends(latest)
  local CHUNK, text = 500, string.format('%.0f', latest)
  local late = ask('ZRANGEBYSCORE', l.ends, '(' .. text, '+inf')
  for from = 1, #late, CHUNK do
    local scored = {}
    for i = from, math.min(#late, from + CHUNK - 1) do
      scored[#scored + 1] = text
      scored[#scored + 1] = late[i]
    end
    ask('ZADD', l.ends, unpack(scored))
  end
  l.latest_end, l.first_end, l.changed = latest, math.min(l.first_end, latest), true
end

-- The largest weight that fits now.
local function room()
  local limit = math.floor(within(l.estimate))
  local shared = math.max(0, limit - l.in_flight)
  if l.share < 0 then return math.min(shared, l.most) end
  local rest = limit % 1000
  local own = math.max(1, (limit - rest) / 1000 * l.share + math.ceil(rest * l.share / 1000))
  return math.min(math.max(shared, own - held_of(l.partition)), l.most)
end

-- The time until so many leases have ended by themselves that the weight fits; -1 if they never do.
local function bound()
  local LOOKS = 100
  local limit, rest, from = math.floor(within(l.estimate)), l.in_flight, l.gone
  if l.weight > limit then return -1 end
  -- Mostly the first one is enough.
  for _, upto in ipairs({ 1, LOOKS }) do
    local first = ask('ZRANGE', l.ends, from, l.gone + upto - 1, 'WITHSCORES')
    if #first == 0 then break end
    local names = {}
    for i = 1, #first / 2 do names[i] = 'i' .. first[2 * i - 1] end
    local records = ask('HMGET', l.records, unpack(names))
    for i = 1, #records do
      if records[i] then rest = rest - struct.unpack('<d', records[i]) end
      if rest + l.weight <= limit then return tonumber(first[2 * i]) - now end
    end
    from = l.gone + upto
  end
  local last = ask('ZRANGE', l.ends, -1, -1, 'WITHSCORES')
  return last[2] and tonumber(last[2]) - now or -1
end

-- Says how long the lease lasts from now.
local function end_it()
  local ends = math.min(now + math.min(l.ttl, l.max_ttl), 9007199254740991)
  l.ends_at = string.format('%.0f', ends)
  l.latest_end, l.changed = math.max(l.latest_end, ends), true
  l.first_end = l.count == 0 and ends or math.min(l.first_end, ends)
  return ends - now
end

local function acquire()
  local MAX_LEASES = 10000
  if l.record then
    local its_weight = struct.unpack('<d', l.record)
    if its_weight ~= l.weight then return OTHER_WEIGHT, its_weight end
    return KNOWN, tonumber(ask('ZSCORE', l.ends, l.id)) - now
  end
  if l.weight > l.most then return NEVER, -1 end
  if l.weight > room() then return LIMITED, bound() end
  if l.count >= MAX_LEASES then
    return FULL, tonumber(ask('ZRANGE', l.ends, l.gone, l.gone, 'WITHSCORES')[2]) - now
  end
  local span = end_it()
  -- The first lease makes a key, which has no expiry yet.
  if l.count == 0 then l.goes = 0 end
  l.in_flight, l.count = l.in_flight + l.weight, l.count + 1
  l.new_record = struct.pack('<ddd', l.weight, l.in_flight, now)
  if l.share >= 0 then
    add_to(l.partition, l.weight)
    l.new_record = l.new_record .. 'p' .. l.partition
  end
  return HELD, span
end

local function release()
  local IGNORED, DROPPED = 2, 3
  if not l.record then return NOT_HELD, 0 end
  local _, its_in_flight, acquired = struct.unpack('<ddd', l.record)
  l.removed = true
  forget(l.record, now)
  local took = l.rtt
  if took < 0 then took = now - acquired end
  if take_sample and l.outcome ~= IGNORED then take_sample(math.max(took, 1), its_in_flight, l.outcome == DROPPED) end
  return RELEASED, 0
end

local function show_sample()
  local DROPPED = 3
  if not take_sample then return SAMPLED, 0 end
  if l.count == 0 then l.empty_since = now end
  take_sample(math.max(l.rtt, 1), l.shown_in_flight, l.outcome == DROPPED)
  l.latest_end, l.changed = math.max(l.latest_end, now), true
  return SAMPLED, 0
end

-- How long keys may outlive what is in them (in µs), so that most calls need not move their expiry, is `GRACE`. If a command
-- is refused, finish.lua undoes what `l.saving` stands for.
local function save()
  -- An id is UTF-8, and may be empty; this is none.
  local GRACE, CHUNK, NOBODY = 4000000, 500, '\255'
  if l.count == 0 and not l.has_memory then
    ask('DEL', l.records, l.ends)
    return
  end
  local frees = l.removed or l.gone > 0
  -- These remove nothing. A new lease could not be taken back if what has ended cannot be removed from both keys.
  if l.gone > 0 and l.ends_at then
    ask('ZREM', l.ends, NOBODY)
    ask('HDEL', l.records, '')
    -- What is written of a lease with the id of one that has ended is not removed.
    if l.gone_own then l.gone_ids[l.gone_own], l.gone_names[l.gone_own] = NOBODY, '' end
  end
  local moved = l.latest_end + l.idle > l.goes
  if moved then l.goes = l.latest_end + l.idle + GRACE end
  local written = {
    's', struct.pack('<dddddd', l.in_flight, l.count, l.latest_end, l.goes, l.empty_since, l.first_end),
  }
  if l.has_memory then written[3], written[4] = 'c', memory() end
  if l.new_record then written[#written + 1], written[#written + 2] = 'i' .. l.id, l.new_record end
  for name in pairs(l.changed_partitions) do
    written[#written + 1], written[#written + 2] = 'p' .. name, struct.pack('<d', l.held_by[name])
  end
  local reply = redis.pcall('HSET', l.records, unpack(written))
  if type(reply) == 'table' and reply.err then
    -- What frees is not refused for want of memory, once something was written that needs none.
    if not (frees and reply.err:find('OOM', 1, true)) then error(reply) end
    ask('ZREM', l.ends, NOBODY)
    ask('HSET', l.records, unpack(written))
  end
  l.saving = true
  -- A caller's own clock says nothing of the server's, so its keys live for a span, and for at least a minute.
  local command, when = 'PEXPIREAT', nil
  if moved then
    when = math.ceil(l.goes / 1000) + 1
    if by_caller then command, when = 'PEXPIRE', math.max(math.ceil((l.goes - now) / 1000), 60000) end
    when = string.format('%.0f', when)
    ask(command, l.records, when)
  end
  if l.removed then ask('HDEL', l.records, 'i' .. l.id) end
  for name in pairs(l.changed_partitions) do
    if l.held_by[name] == 0 then ask('HDEL', l.records, 'p' .. name) end
  end
  for from = 1, l.gone, CHUNK do
    ask('HDEL', l.records, unpack(l.gone_names, from, math.min(l.gone, from + CHUNK - 1)))
  end
  if l.ends_at then ask('ZADD', l.ends, l.ends_at, l.id) end
  if l.removed then ask('ZREM', l.ends, l.id) end
  for from = 1, l.gone, CHUNK do
    ask('ZREM', l.ends, unpack(l.gone_ids, from, math.min(l.gone, from + CHUNK - 1)))
  end
  l.saving = false
  if moved then ask(command, l.ends, when) end
end

-- One lease: 7 doubles.
local function answer(number)
  local ACQUIRE, RENEW, RELEASE, SAMPLE = 1, 2, 3, 4
  begin(number)
  read()
  if l.stored_memory then recall(l.stored_memory) end
  if l.count > 0 then
    local latest = math.min(now + l.max_ttl, 9007199254740991)
    if now >= l.first_end then expire() end
    if l.count > 0 and l.latest_end > latest then clamp_ends(latest) end
  end
  if l.has_memory and l.count == 0 and now >= l.empty_since + l.idle then
    ask('HDEL', l.records, 'c')
    forget_memory()
    l.changed = true
  end
  local status, extra
  if l.op == ACQUIRE then status, extra = acquire()
  elseif l.op == RENEW and l.record then status, extra = KNOWN, end_it()
  elseif l.op == RENEW then status, extra = NOT_HELD, 0
  elseif l.op == RELEASE then status, extra = release()
  elseif l.op == SAMPLE then status, extra = show_sample() end
  local estimate = within(l.estimate)
  local reply = struct.pack('<ddddddd', now, status, math.floor(estimate), l.in_flight, room(), extra, estimate)
  if l.changed then save() end
  return reply
end
