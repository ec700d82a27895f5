-- Hands items of a stream out: those that are due again first, then new ones, no faster than the rate. Twin:
-- crates/core/src/queue/take.rs.
--
-- ARGV: the numbers, who takes, the name of the consumer in the group.

local FIRST, NACKED, EXPIRED = 0, 1, 2
local taker, consumer = ARGV[2], ARGV[3]
local reply, handed, taken_bytes = { false }, 0, 0
local due_args, record_args = {}, {}

local function has_place(most)
  return handed < most and taken_bytes + MAX_PAYLOAD <= MAX_TAKE_BYTES
end

-- Adds an item to the reply. A dead letter says which item it was.
local function hand_out(entry, deliveries, cause, had)
  local ms, seq = parts_of(entry[1])
  local payload, origin_ms, origin_seq = entry[2][2], -1, 0
  if entry[2][3] == 'o' then origin_ms, origin_seq = parts_of(entry[2][4]) end
  handed, taken_bytes = handed + 1, taken_bytes + #payload
  reply[#reply + 1] = pack('<dddddd', ms, seq, deliveries, cause, origin_ms, origin_seq)
  reply[#reply + 1] = payload
  reply[#reply + 1] = had
  local member = member_of(ms, seq)
  due_args[#due_args + 1] = whole(min(now + visibility, LATEST))
  due_args[#due_args + 1] = member
  record_args[#record_args + 1] = 'i' .. member
  record_args[#record_args + 1] = pack('<dd', #payload, deliveries) .. 't' .. taker
end

-- Makes the group, if it is missing, and says whether it was: of a new stream, and of one that was removed by hand.
local function made_group(reply_of_group)
  if type(reply_of_group) ~= 'table' or not reply_of_group.err then return false end
  if not reply_of_group.err:find('NOGROUP', 1, true) then error(reply_of_group) end
  ask('XGROUP', 'CREATE', ITEMS, GROUP, '0', 'MKSTREAM')
  return true
end

local function claim(id)
  local claimed = redis.pcall('XCLAIM', ITEMS, GROUP, consumer, 0, id)
  return not made_group(claimed) and claimed[1]
end

local function hand_out_due(most)
  local due = ask('ZRANGEBYSCORE', DUE, '-inf', whole(now), 'LIMIT', 0, DUE_LOOKS)
  if #due == 0 then return end
  local fields = {}
  for i = 1, #due do fields[i] = 'i' .. due[i] end
  local records = ask('HMGET', META, unpack(fields))
  for i = 1, #due do
    local member, raw = due[i], records[i] or pack('<dd', 0, 1) .. 't'
    local size, deliveries = unpack_struct('<dd', raw)
    if not bury(member, size, deliveries) then
      if not has_place(most) then return end
      local id = id_of(parts_of(member))
      local entry = claim(id)
      if entry and entry[2] then
        local cause = raw:sub(17, 17) == 'n' and NACKED or EXPIRED
        if cause == NACKED then nacked = nacked + 1 else expired = expired + 1 end
        hand_out(entry, deliveries + 1, cause, raw:sub(18))
      else
        -- The entry, or its place in the group, was removed by hand.
        ask('XACK', ITEMS, GROUP, id)
        forget(member)
        bytes = max(0, bytes - size)
      end
    end
  end
end

local function read_new(most)
  local function read()
    return redis.pcall('XREADGROUP', 'GROUP', GROUP, consumer, 'COUNT', most, 'STREAMS', ITEMS, '>')
  end
  local read_now = read()
  if made_group(read_now) then read_now = read() end
  return read_now and read_now[1] and read_now[1][2] or {}
end

local function hand_out_new(most)
  while has_place(most) do
    local chunk = min(most - handed, floor((MAX_TAKE_BYTES - taken_bytes) / MAX_PAYLOAD))
    local new = read_new(chunk)
    for i = 1, #new do hand_out(new[i], 1, FIRST, '') end
    first = first + #new
    if #new < chunk then return end
  end
end

-- How long until an item that is in the queue may be handed out; -1 if there is none.
local function next_after(wait, held)
  if held > ask('ZCARD', DUE) then return wait end
  local due = ask('ZRANGE', DUE, 0, 0, 'WITHSCORES')
  return due[2] and max(wait, tonumber(due[2]) - now) or -1
end

-- The bucket of burst 1: what an item adds is the period, and `count` drains in each microsecond.
local function drained_level()
  local old = min(level, period)
  local since = max(0, now - level_at)
  return since >= ceil(old / count) and 0 or old - since * count
end

local function run()
  read_meta()
  local most, wait = n, 0
  local drained = 0
  if count > 0 then
    drained = drained_level()
    wait = ceil(drained / count)
    most = wait == 0 and min(most, 1) or 0
  end
  hand_out_due(most)
  hand_out_new(most)
  local stepped = count > 0 and now < level_at
  if count > 0 and (handed > 0 or stepped) then
    level, level_at = handed > 0 and period or drained, now
  end
  if handed > 0 then
    ask('ZADD', DUE, unpack(due_args))
    ask('HSET', META, unpack(record_args))
  end
  local held = depth()
  if handed > 0 or dead_count > 0 or stepped then write_meta() end
  write_dead_meta()
  local next_one = handed > 0 and -1 or next_after(wait, held)
  reply[1] = pack('<dddd', now, held, next_one, dead_count)
  return reply
end
