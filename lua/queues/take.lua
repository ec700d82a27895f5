-- Hands items of a stream out: those that are due again first, then new ones, no faster than the rate. Twin:
-- crates/queues/src/model/take.rs.
--
-- ARGV: the numbers, with how many items each call asks for, and the token of their delivery in two halves; the name of the consumer in the group; then who takes, for
-- each call.

local fields = {}

-- What is handed out. `handed`, `bytes` and `taker` are of the call at hand.
local t = {
  handed = 0, bytes = 0, taker = false, token_high = 0, token_low = 0, reply = { false },
  -- Arguments of ZADD, the time in them, whether ZADD is not refused, and what records begin with, by size.
  due_args = {}, due_at = false, may_add = false, record_begin = {},
  -- Items that are due, as they were read, the next one to look at, and whether there are no others.
  due = {}, next_due = 1, all_due = false,
  dead = { count = 0, left = {} },
}
q.written, q.hands_out = {}, true

-- Adds an item to the reply. `about` says why it comes again, and which item a dead letter was.
local function hand_out(id, payload, deliveries, about)
  local size, reply, due_args, written = #payload, t.reply, t.due_args, q.written
  t.handed, t.bytes = t.handed + 1, t.bytes + size
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3] = id, payload, about
  local begin = deliveries == 1 and t.record_begin[size]
  if not begin then
    begin = struct.pack('<dd', size, deliveries) .. 't'
    if deliveries == 1 then t.record_begin[size] = begin end
  end
  if not t.due_at then t.due_at = string.format('%.0f', math.min(q.now + q.visibility, 9007199254740991)) end
  local member = member_of(id)
  n = #due_args
  due_args[n + 1], due_args[n + 2] = t.due_at, member
  n = #written
  written[n + 1], written[n + 2] = 'i' .. member, begin .. t.taker
  if t.token_high ~= 0 or t.token_low ~= 0 then
    written[n + 3], written[n + 4] = 'k' .. member, struct.pack('<ddd', t.token_high, t.token_low, deliveries)
  end
end

local function write_due()
  if #t.due_args == 0 then return end
  ask('ZADD', KEYS[2], unpack(t.due_args))
  t.due_args, t.may_add = {}, true
end

-- Reads items that are due.
local function read_due()
  local LOOKS = 100
  write_due()
  t.due = ask('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', q.now), 'LIMIT', 0, LOOKS)
  t.next_due, t.all_due = 1, #t.due < LOOKS
end

-- Makes the group, if it is missing, and says whether it was: of a new stream, and of one that was removed by hand.
local function made_group(reply)
  if type(reply) ~= 'table' or not reply.err then return false end
  if not reply.err:find('NOGROUP', 1, true) then error(reply) end
  ask('XGROUP', 'CREATE', KEYS[1], 'weir', '0', 'MKSTREAM')
  return true
end

-- What hands out items that are due, and what writes the numbers of the dead letters afterwards.
local function due_functions()
  local NACKED, EXPIRED = 1, 2
  local bury, write_dead, forget, parts_of = dead_letters(t.dead)
  local records_of, records = false, false

  local function record(number)
    if records_of ~= t.due then
      local names = {}
      for i = 1, #t.due do names[i] = 'i' .. t.due[i] end
      records_of, records = t.due, ask('HMGET', KEYS[3], unpack(names))
    end
    return records[number] or struct.pack('<dd', 0, 0) .. 't'
  end

  local function hand_out_again(member, raw, size, deliveries)
    local entry = redis.pcall('XCLAIM', KEYS[1], 'weir', ARGV[2], 0, member)
    entry = not made_group(entry) and entry[1]
    if not entry or not entry[2] then
      -- The entry, or its place in the group, was removed by hand.
      ask('XACK', KEYS[1], 'weir', member)
      forget(member)
      q.bytes = math.max(0, q.bytes - size)
      return
    end
    local cause, origin_ms, origin_seq = EXPIRED, -1, 0
    if entry[2][3] == 'o' then origin_ms, origin_seq = parts_of(entry[2][4]) end
    if deliveries == 0 then
      -- Without a record nobody is known to have had it.
      q.first = q.first + 1
      hand_out(entry[1], entry[2][2], 1, origin_ms < 0 and '' or struct.pack('<dddd', 1, 0, origin_ms, origin_seq))
      return
    end
    if raw:sub(17, 17) == 'n' then cause = NACKED end
    if cause == NACKED then q.nacked = q.nacked + 1 else q.expired = q.expired + 1 end
    local about = struct.pack('<dddd', deliveries + 1, cause, origin_ms, origin_seq) .. raw:sub(18)
    hand_out(entry[1], entry[2][2], deliveries + 1, about)
  end

  local function hand_out_due(most)
    for _ = 1, 100 do
      if t.next_due > #t.due then
        if t.all_due then return end
        read_due()
        if #t.due == 0 then return end
      end
      local member, raw = t.due[t.next_due], record(t.next_due)
      local size, deliveries = struct.unpack('<dd', raw)
      if not bury(member, size, deliveries, raw) then
        if t.handed >= most or t.bytes + 65536 > 1048576 then return end
        hand_out_again(member, raw, size, deliveries)
      end
      t.next_due = t.next_due + 1
    end
  end

  return hand_out_due, write_dead
end

-- The next new items: as many as this call and those after it are sure to take, because what is read and not handed out
-- would be lost to the group. `SURE` of the largest items fit into an answer.
local function read_new(most, SURE)
  local wanted, place = math.min(most - t.handed, math.max(SURE - t.handed, math.floor((1048576 - t.bytes) / 65536))), q.at
  while q.count == 0 and t.all_due and t.next_due > #t.due and place <= #ARGV[1] do
    local asked
    local _
    asked, _, _, place = struct.unpack('<ddd', ARGV[1], place)
    wanted = wanted + math.min(asked, SURE)
  end
  if not t.may_add then
    -- It changes nothing. What is read into the group and is not due would come to nobody. That a server has no memory
    -- is no obstacle: what has read can be written.
    local added = redis.pcall('ZADD', KEYS[2], 'XX', 0, '')
    if type(added) == 'table' and added.err and not added.err:find('OOM', 1, true) then error(added) end
    t.may_add = true
  end
  local read
  for _ = 1, 2 do
    read = redis.pcall('XREADGROUP', 'GROUP', 'weir', ARGV[2], 'COUNT', wanted, 'STREAMS', KEYS[1], '>')
    if not made_group(read) then break end
  end
  local new = read and read[1] and read[1][2] or {}
  return new, #new < wanted
end

-- What a new item of the dead letters was before.
local function origin_of(text)
  local _, _, parts_of = entry_functions()
  return struct.pack('<dddd', 1, 0, parts_of(text))
end

-- How long until an item that is in the queue may be handed out; -1 if there is none. Where there are more items than due
-- ones, and no new ones, the group has some that are lost to it: a right was missing for a while, or the set was deleted.
-- Of these it looks at up to `looks`, and makes them due. It goes on where the last call ended.
local function next_after(wait, looks)
  local STEP, CONSUMERS, AGAIN = 16, 16, 50000
  write_due()
  if ask(LENGTH, KEYS[1]) > ask('ZCARD', KEYS[2]) then
    if looks == 0 then return wait end
    -- A consumer of the group, the last item that was looked at, and up to which: those that came later are looked at the
    -- next time, so that this ends.
    local upto = string.format('%016.0f-', math.max(q.last_ms, math.floor(q.now / 1000)) + 1)
    local place, seen, found, ended = ask('HGET', KEYS[3], 'p') or '0 0-0 ' .. upto, 0, 0, 0
    while seen < looks and ended < CONSUMERS do
      local consumer, from, last = place:match('^(%d+) (%S+) (%S+)$')
      local read = ask('XREADGROUP', 'GROUP', 'weir', 'weir-' .. consumer, 'COUNT', STEP, 'STREAMS', KEYS[1], from)
      local scored, entries = {}, read and read[1] and read[1][2] or {}
      for i = 1, #entries do
        scored[2 * i - 1], scored[2 * i] = string.format('%.0f', q.now), member_of(entries[i][1])
      end
      if #entries > 0 then found = found + ask('ZADD', KEYS[2], 'NX', unpack(scored)) end
      seen = seen + #entries
      if #entries == STEP and member_of(entries[STEP][1]) < last then
        place = consumer .. ' ' .. entries[STEP][1] .. ' ' .. last
      else
        place, ended = (consumer + 1) % CONSUMERS .. ' 0-0 ' .. upto, ended + 1
      end
    end
    q.written[#q.written + 1], q.written[#q.written + 2], q.changed = 'p', place, true
    if found > 0 then return wait end
    if ended < CONSUMERS then return math.max(wait, AGAIN) end
  end
  local soonest = ask('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  return soonest[2] and math.max(wait, tonumber(soonest[2]) - q.now) or -1
end

local function answer()
  local SURE, dead, LATE, LOOKS, LOOK_EVERY = 16, t.dead, 500, 256, 1000
  local heads, new, next_new, all_new, hand_out_due, write_dead = {}, {}, 1, false, nil, nil
  local delivered = q.first + q.nacked + q.expired
  if q.latest > q.now + 1000000 then
    -- The clock went back: due times that are later than any of now can be go back as far, `LATE` of them in a call. Those
    -- that have gone back are earlier than where the next call goes on.
    q.late_from, q.late_step, q.latest = q.now, q.latest - q.now, q.now
  end
  if q.late_from > 0 then
    local from = string.format('%.0f', math.max(q.late_from, q.now + q.visibility + 1))
    local late = ask('ZRANGEBYSCORE', KEYS[2], from, '+inf', 'WITHSCORES', 'LIMIT', 0, LATE)
    q.late_from, q.changed = #late == 2 * LATE and tonumber(late[#late]) or 0, true
    for i = 1, #late, 2 do
      late[i], late[i + 1] = string.format('%.0f', math.max(q.now, late[i + 1] - q.late_step)), late[i]
    end
    if #late > 0 then ask('ZADD', KEYS[2], unpack(late)) end
  end
  local aged, has_more_aged = 0, false
  if q.max_age > 0 then
    local totals
    aged, has_more_aged, totals = q.age_out()
    if totals then q.written, q.changed = totals, true end
  end
  read_due()
  if #t.due > 0 then hand_out_due, write_dead = due_functions() end
  for call = 1, q.calls do
    local most, high, low, at = struct.unpack('<ddd', ARGV[1], q.at)
    local wait, drained, dead_before = 0, 0, dead.count
    q.at, t.token_high, t.token_low = at, high, low
    t.taker, t.handed, t.bytes = ARGV[2 + call], 0, 0
    if q.count > 0 then
      most, wait, drained = pace(most)
    end
    -- Nothing that is too old is handed out.
    if has_more_aged then most = 0 end
    if hand_out_due then hand_out_due(most) end
    while t.handed < most and (t.handed < SURE or t.bytes + 65536 <= 1048576) do
      local entry = new[next_new]
      if entry then
        local parts = entry[2]
        hand_out(entry[1], parts[2], 1, parts[3] == 'o' and origin_of(parts[4]) or '')
        next_new, q.first = next_new + 1, q.first + 1
      elseif all_new then
        break
      else
        new, all_new = read_new(most, SURE)
        next_new = 1
      end
    end
    if q.count > 0 then charge_pace(t.handed > 0, drained) end
    q.changed = q.changed or t.handed > 0
    local after = t.handed == 0 and next_after(wait, all_new and most > 0 and LOOKS or 0) or -1
    heads[call] = struct.pack('<dddd', t.handed, after, dead.count, dead.count - dead_before)
  end
  write_due()
  -- A queue that is never empty is looked through now and then.
  if math.floor((q.first + q.nacked + q.expired) / LOOK_EVERY) > math.floor(delivered / LOOK_EVERY) then
    next_after(0, LOOKS / 4)
  end
  if write_dead then
    write_dead()
    local keep = archive_function(dead.left)
    if keep then keep() end
  end
  t.reply[1] = struct.pack('<ddd', q.now, ask(LENGTH, KEYS[1]) + dead.count, aged) .. table.concat(heads)
  return t.reply
end
