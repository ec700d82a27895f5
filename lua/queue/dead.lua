-- Moving items to the dead letters. Twin: `bury` in crates/core/src/queue/take.rs.

local dead_depth, dead_numbers, dead_count = false, false, 0

local function forget(member)
  ask('ZREM', DUE, member)
  ask('HDEL', META, 'i' .. member)
end

-- Moves an item, if it was delivered often enough and the dead letters have a place.
local function bury(member, size, deliveries)
  if max_deliveries == 0 or deliveries < max_deliveries then return false end
  if not dead_depth then
    dead_depth = ask('XLEN', DEAD)
    local raw = ask('HGET', DEAD_META, 's')
    dead_numbers = raw and { unpack_struct(META_FORMAT, raw) } or { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
    if dead_depth == 0 then dead_numbers[3] = 0 end
  end
  if dead_depth >= capacity or dead_numbers[3] + size > max_bytes then return false end
  local id = id_of(parts_of(member))
  local entry = ask('XRANGE', ITEMS, id, id)[1]
  -- What removes goes first: a server without memory refuses only what comes before any write.
  ask('XACK', ITEMS, GROUP, id)
  ask('XDEL', ITEMS, id)
  forget(member)
  bytes, dead_count = max(0, bytes - size), dead_count + 1
  if entry then
    local ms, seq = next_id(dead_numbers[1], dead_numbers[2])
    ms, seq = add_entry(DEAD, ms, seq, 'p', entry[2][2], 'o', id)
    dead_numbers[1], dead_numbers[2], dead_numbers[3] = ms, seq, dead_numbers[3] + size
    dead_numbers[6] = dead_numbers[6] + 1
    dead_depth, buried = dead_depth + 1, buried + 1
  end
  return true
end

local function write_dead_meta()
  if dead_count > 0 then ask('HSET', DEAD_META, 's', pack(META_FORMAT, unpack(dead_numbers, 1, 13))) end
end
