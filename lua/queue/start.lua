-- What every call of a queue begins with. ../README.md has the contract; the twin of all these files is
-- crates/core/src/queue/.
--
-- ITEMS  the items: a stream with one consumer group, or a list
-- DUE    a sorted set: delivered items by the time at which they are delivered again, in µs
-- META   a hash: 's' numbers of the queue; 'i' .. item: size and deliveries of a delivered item, 't' or 'n' (taken, or
--        given back), and who has or had it
-- An item in DUE and META is its id with leading zeros, so that equal times keep the order of ids.

local ITEMS, DUE, META, OUTCOMES, DEAD, DEAD_META = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local FIRST_ID_KEY = 6
local GROUP = 'weir'
local MAX_PAYLOAD, MAX_TAKE_BYTES, DUE_LOOKS, OUTCOMES_PER_PLACE = 65536, 1048576, 100, 10
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local pack, unpack_struct = struct.pack, struct.unpack

-- `count` and `period` are the rate, 0 for none; `max_deliveries` is 0 where there are no dead letters; `n` is the
-- number of items that are asked for, or the delay.
local now, capacity, max_bytes, visibility, max_deliveries, count, period, outcomes_for, n =
  unpack_struct('<ddddddddd', ARGV[1])
local by_caller = now >= 0
local LATEST = 9007199254740991

local META_FORMAT = '<ddddddddddddd'
local last_ms, last_seq, bytes, level, level_at, accepted, first, nacked, expired, acked, buried, outcome_ms,
  outcome_seq = 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0

-- An error of a key is the reply of the call.
local function ask(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then error(reply) end
  return reply
end

local function whole(x)
  return string.format('%.0f', x)
end

local function id_of(ms, seq)
  return string.format('%.0f-%.0f', ms, seq)
end

local function member_of(ms, seq)
  return string.format('%016.0f-%016.0f', ms, seq)
end

-- The numbers of an id or of a member.
local function parts_of(text)
  local ms, seq = text:match('^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(seq)
end

-- The id that comes at `now`, after the last one.
local function next_id(ms, seq)
  local at = floor(now / 1000)
  if at > ms then return at, 0 end
  return ms, seq + 1
end

-- Adds an entry under an id. Where the numbers of the queue were lost and the stream was not, it chooses the id itself.
local function add_entry(key, ms, seq, ...)
  local made = redis.pcall('XADD', key, id_of(ms, seq), ...)
  if type(made) == 'table' and made.err then
    if not made.err:find('equal or smaller', 1, true) then error(made) end
    made = ask('XADD', key, '*', ...)
    return parts_of(made)
  end
  return ms, seq
end

local function read_meta()
  if not by_caller then
    local time = ask('TIME')
    now = time[1] * 1000000 + time[2]
  end
  local raw = ask('HGET', META, 's')
  if not raw then return end
  last_ms, last_seq, bytes, level, level_at, accepted, first, nacked, expired, acked, buried, outcome_ms, outcome_seq =
    unpack_struct(META_FORMAT, raw)
end

local function write_meta()
  ask('HSET', META, 's', pack(META_FORMAT, last_ms, last_seq, bytes, level, level_at, accepted, first, nacked, expired,
    acked, buried, outcome_ms, outcome_seq))
end
