-- Moving items to the dead letters. Twin: `bury` in crates/queues/src/model/take.rs.

-- What moves an item, what writes the numbers of the dead letters afterwards, and what forgets a delivery. `dead.count`
-- is how many items went there, and `dead.left` is what the archive is to keep of them.
local function dead_letters(dead)
  local FORMAT, DEAD_LETTERED = '<ddddddddddddd', 2
  local items, due, meta, letters, letters_meta = KEYS[1], KEYS[2], KEYS[3], KEYS[5], KEYS[6]
  local next_id, add_entry, parts_of = entry_functions()
  local depth, numbers, rest = false, false, ''

  local function read()
    depth = ask('XLEN', letters)
    -- The archive can be read.
    ask('XLEN', KEYS[4])
    local raw = ask('HGET', letters_meta, 's')
    numbers = raw and { struct.unpack(FORMAT, raw) } or { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
    rest = raw and raw:sub(105) or ''
    if depth == 0 then numbers[3] = 0 end
    -- These change nothing, and are refused where what moves an item would be. The first of them needs no memory: a
    -- server without any refuses only what comes before any write.
    ask('ZREM', due, '')
    ask('HDEL', meta, '')
    ask('XACK', items, 'weir', '0-0')
    ask('XDEL', items, '0-0')
    ask('HSET', letters_meta, 's', raw or string.rep('\0', 104))
  end

  -- What is left of it, if one of these is refused, is no record that nobody would remove.
  local function forget(member)
    ask('HDEL', meta, 'i' .. member, 'k' .. member)
    ask('ZREM', due, member)
  end

  -- Moves an item, if it was delivered often enough, or is too old, and the dead letters have a place.
  local function bury(member, size, deliveries, record, is_aged)
    if not is_aged and (q.max_deliveries == 0 or deliveries < q.max_deliveries) then return false end
    if not depth then read() end
    if depth >= q.capacity or numbers[3] + size > q.max_bytes then return false end
    local entry = ask('XRANGE', items, member, member)[1]
    if entry then
      local ms, seq = next_id(numbers[1], numbers[2])
      ms, seq = add_entry(letters, ms, seq, 'p', entry[2][2], 'o', entry[1])
      numbers[1], numbers[2], numbers[3] = ms, seq, numbers[3] + size
      numbers[6] = numbers[6] + 1
      depth, q.buried = depth + 1, q.buried + 1
      dead.left[#dead.left + 1] = { DEAD_LETTERED, member, record, '', entry[2][2] }
    end
    ask('XDEL', items, member)
    ask('XACK', items, 'weir', member)
    forget(member)
    q.bytes, dead.count, q.changed = math.max(0, q.bytes - size), dead.count + 1, true
    return true
  end

  local function write()
    if dead.count > 0 then ask('HSET', letters_meta, 's', struct.pack(FORMAT, unpack(numbers, 1, 13)) .. rest) end
  end

  return bury, write, forget, parts_of
end
