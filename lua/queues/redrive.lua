-- Moves dead letters that nobody holds to the end of their queue, as new items. Twin: `redrive` in
-- crates/queues/src/model/operate.rs.
--
-- KEYS[7] has the due times of the dead letters. The numbers of the only call are how many of them are looked at, and after
-- which. Reply: the time, the depth, the dead letters that are left, 1 if the queue is full, and the last one that was
-- looked at, or -1 twice if there are no more; then the ids of the items.
--
-- An item is added before its dead letter is removed, so that none is lost.

local fields = { 't' }

-- Dead letters that move, what they have of bytes, and how far the look went.
local function look(held)
  ask('ZREM', KEYS[7], '')
  local most, ms, seq = struct.unpack('<ddd', ARGV[1], q.at)
  local moves, looked, bytes, last, ended, full = {}, 0, 0, string.format('%.0f-%.0f', ms, seq), false, false
  local moved_bytes = 0
  while not ended and not full and looked < most and bytes + 65536 <= 1048576 do
    local chunk = math.min(most - looked, math.floor((1048576 - bytes) / 65536))
    local entries = ask('XRANGE', KEYS[5], '(' .. last, '+', 'COUNT', chunk)
    ended = #entries < chunk
    for i = 1, #entries do
      local id, payload = entries[i][1], entries[i][2][2]
      local member = member_of(id)
      local due = score_of(KEYS[7], member)
      if not due or due <= q.now then
        full = held + #moves >= q.capacity or q.bytes + moved_bytes + #payload > q.max_bytes
        if full then break end
        moves[#moves + 1], moved_bytes = { member = member, payload = payload }, moved_bytes + #payload
      end
      looked, bytes, last = looked + 1, bytes + #payload, id
    end
  end
  return moves, moved_bytes, last, ended and not full, full
end

-- What removes dead letters that have moved. What it asks first changes nothing, and is refused where the rest would be.
local function remove_function(moves, moved_bytes)
  local letters, meta, due = KEYS[5], KEYS[6], KEYS[7]
  local raw = ask('HGET', meta, 's') or string.rep('\0', 104)
  ask('HDEL', meta, '')
  ask('XACK', letters, 'weir', '0-0')
  ask('XDEL', letters, '0-0')
  ask('HSET', meta, 's', raw)
  local members, records = {}, {}
  for i = 1, #moves do
    members[i], records[2 * i - 1], records[2 * i] = moves[i].member, 'i' .. moves[i].member, 'k' .. moves[i].member
  end
  return function()
    local bytes = struct.unpack('<d', raw, 17)
    ask('HSET', meta, 's', raw:sub(1, 16) .. struct.pack('<d', math.max(0, bytes - moved_bytes)) .. raw:sub(25))
    ask('XDEL', letters, unpack(members))
    ask('XACK', letters, 'weir', unpack(members))
    ask('HDEL', meta, unpack(records))
    ask('ZREM', due, unpack(members))
  end
end

local function answer(read)
  local next_id, add_entry, parts_of = entry_functions()
  local held, left = ask(LENGTH, KEYS[1]), ask('XLEN', KEYS[5])
  if held == 0 then q.bytes = 0 end
  if held > 0 and not read[1] then
    q.last_ms, q.last_seq = parts_of(ask('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1][1])
  end
  local moves, moved_bytes, last, ended, full = look(held)
  local last_ms, last_seq = -1, -1
  if not ended then last_ms, last_seq = parts_of(last) end
  local reply = { struct.pack('<dddddd', q.now, held + #moves, left - #moves, full and 1 or 0, last_ms, last_seq) }
  if #moves == 0 then return reply end
  local remove = remove_function(moves, moved_bytes)
  for i = 1, #moves do
    q.last_ms, q.last_seq = next_id(q.last_ms, q.last_seq)
    moves[i].ms, moves[i].seq = q.last_ms, q.last_seq
  end
  q.bytes, q.changed, q.written = q.bytes + moved_bytes, true, add_totals(read[2], 0, 0, 0, #moves)
  q.before = { 't', read[2] or string.rep('\0', 32) }
  q.commit = function()
    for i = 1, #moves do
      local ms, seq = add_entry(KEYS[1], moves[i].ms, moves[i].seq, 'p', moves[i].payload)
      q.committed = true
      reply[i + 1] = struct.pack('<dd', ms, seq)
    end
    remove()
  end
  return reply
end
