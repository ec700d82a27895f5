-- Adds all items that are not known by their ids, or none. Twin: crates/core/src/queue/enqueue.rs.
--
-- ARGV: the numbers, with 1 for each item that has an id; then the payloads. The keys of the ids follow the others.
-- A key of an id holds three doubles: until when the id is known, and the item.

local ADDED, FULL, NEVER = 1, 2, 3

local function refuse(status, held)
  return pack('<dddd', now, held, status, 0)
end

local function run()
  read_meta()
  local items, fresh, new_bytes, id_key = {}, {}, 0, FIRST_ID_KEY
  for i = 1, n do
    local payload, key = ARGV[1 + i], false
    if unpack_struct('<d', ARGV[1], 73 + 8 * (i - 1)) == 1 then
      id_key = id_key + 1
      key = KEYS[id_key]
      local raw = ask('GET', key)
      if raw then
        local until_when, ms, seq = unpack_struct('<ddd', raw)
        if now < until_when then items[i] = { ms, seq } end
      end
    end
    if not items[i] then
      fresh[#fresh + 1] = { i, payload, key }
      new_bytes = new_bytes + #payload
    end
  end
  local held = depth()
  if held == 0 then bytes = 0 end
  if #fresh > capacity or new_bytes > max_bytes then return refuse(NEVER, held) end
  if #fresh > 0 and (held + #fresh > capacity or bytes + new_bytes > max_bytes) then return refuse(FULL, held) end
  local until_when = now + visibility
  -- A caller's own clock says nothing of the server's, so its keys live for a span, and for at least a minute.
  local lives = whole(max(ceil(visibility / 1000) + 1, by_caller and 60000 or 0))
  for i = 1, #fresh do
    local place, payload, key = fresh[i][1], fresh[i][2], fresh[i][3]
    add(payload)
    items[place] = { last_ms, last_seq }
    if key then ask('SET', key, pack('<ddd', until_when, last_ms, last_seq), 'PX', lives) end
  end
  if #fresh > 0 then
    bytes, accepted = bytes + new_bytes, accepted + #fresh
    write_meta()
  end
  local reply = { pack('<dddd', now, held + #fresh, ADDED, #fresh) }
  for i = 1, n do reply[i + 1] = pack('<dd', items[i][1], items[i][2]) end
  return table.concat(reply)
end
