-- Shows items of a stream, and changes nothing. Twin: crates/queues/src/model/operate.rs.
--
-- The numbers of the only call are how many items are shown at most, and after which. Reply: the time, the depth, and 1 if
-- there may be more; then of each item its id, its payload, and numbers before the name of who had it last.

local fields = {}

-- How often it was delivered, whether it was given back, when it comes again, and which item a dead letter was. -1 stands
-- for none.
local function about(member, parts, raw, parts_of)
  local deliveries, nacked, due, taker, origin_ms, origin_seq = 0, 0, -1, '', -1, 0
  if parts[3] == 'o' then origin_ms, origin_seq = parts_of(parts[4]) end
  if raw then
    local _
    _, deliveries = struct.unpack('<dd', raw)
    nacked, taker = raw:sub(17, 17) == 'n' and 1 or 0, raw:sub(18)
    local score = score_of(KEYS[2], member)
    due = score and math.max(0, score - q.now) or 0
  end
  return struct.pack('<ddddd', deliveries, nacked, due, origin_ms, origin_seq) .. taker
end

local function answer()
  local _, _, parts_of = entry_functions()
  ask('ZREM', KEYS[2], '')
  local most, ms, seq = struct.unpack('<ddd', ARGV[1], q.at)
  local reply, shown, bytes, last, ended = { false }, 0, 0, string.format('%.0f-%.0f', ms, seq), false
  while not ended and shown < most and bytes + 65536 <= 1048576 do
    local chunk = math.min(most - shown, math.floor((1048576 - bytes) / 65536))
    local entries, names = ask('XRANGE', KEYS[1], '(' .. last, '+', 'COUNT', chunk), {}
    for i = 1, #entries do names[i] = 'i' .. member_of(entries[i][1]) end
    local records = #entries > 0 and ask('HMGET', KEYS[3], unpack(names))
    for i = 1, #entries do
      local id, parts = unpack(entries[i])
      local n = #reply
      reply[n + 1], reply[n + 2] = id, parts[2]
      reply[n + 3] = about(names[i]:sub(2), parts, records[i], parts_of)
      shown, bytes, last = shown + 1, bytes + #parts[2], id
    end
    ended = #entries < chunk
  end
  reply[1] = struct.pack('<ddd', q.now, ask(LENGTH, KEYS[1]), ended and 0 or 1)
  return reply
end
