-- Adds all items of a call that are not known by their ids, or none. Twin: crates/queues/src/model/enqueue.rs.
--
-- ARGV: the numbers, with the number of its items for each call, and 1 for each item that has an id, or 2 and the digest of its
-- payload, which is four doubles; then the payloads. A key of an id holds three doubles: until when the id is known, and the
-- item. That of a digest, which follows it, holds the item and the digest: it says nothing of an item that a version without
-- digests has put there since. A key that cannot be read is the error of its call alone.
--
-- Ids and numbers are written before the items: they can be taken back, and an item that was put into the queue without
-- its id could be put there twice.

local fields = {}

-- What finds and remembers items by their ids.
local function id_functions()
  local visibility, until_when, lives = q.visibility, q.now + q.visibility, nil

  -- The item that was accepted under the id of this key; or an error.
  local function known(key)
    local raw = redis.pcall('GET', key)
    if type(raw) == 'table' and raw.err then return nil, raw.err end
    if not raw then return nil end
    local known_until, ms, seq = struct.unpack('<ddd', raw)
    return q.now < known_until and struct.pack('<dd', ms, seq)
  end

  local function remember(key, ms, seq)
    -- A caller's own clock says nothing of the server's, so its keys live for a span, and for at least a minute.
    lives = lives or string.format('%.0f', math.max(math.ceil(visibility / 1000) + 1, q.by_caller and 60000 or 0))
    ask('SET', key, struct.pack('<ddd', until_when, ms, seq), 'PX', lives)
  end

  -- Whether the item was put there with another payload; or an error.
  local function has_other(key, item, digest)
    local raw = redis.pcall('GET', key)
    if type(raw) == 'table' and raw.err then return false, raw.err end
    return raw and raw:sub(1, 16) == item and raw:sub(17) ~= digest
  end

  local function remember_digest(key, item, digest)
    lives = lives or string.format('%.0f', math.max(math.ceil(visibility / 1000) + 1, q.by_caller and 60000 or 0))
    ask('SET', key, item .. digest, 'PX', lives)
  end

  return known, remember, has_other, remember_digest
end

local FAILED, ADDED, FULL, NEVER, OTHER = 0, 1, 2, 3, 4

-- One call: its status, how many items are new, the ids of all or the error, and how many others aged out and are dropped. `e` is where the calls before it ended.
local function put(n, e, next_id)
  local ids, keys, digests, digest_keys, fresh, new_bytes, failed, other = {}, {}, {}, {}, 0, 0, nil, nil
  for i = 1, n do
    local has_id
    has_id, q.at = struct.unpack('<d', ARGV[1], q.at)
    if has_id > 0 then
      if not e.known then e.known, e.remember, e.has_other, e.remember_digest = id_functions() end
      e.id_keys = e.id_keys + 1
      keys[i] = KEYS[e.id_keys]
      local why
      ids[i], why = e.known(keys[i])
      failed = failed or why
      if has_id == 2 then
        e.id_keys = e.id_keys + 1
        digest_keys[i], digests[i] = KEYS[e.id_keys], ARGV[1]:sub(q.at, q.at + 31)
        q.at = q.at + 32
        if ids[i] and not other then
          local is_other
          is_other, why = e.has_other(digest_keys[i], ids[i], digests[i])
          failed = failed or why
          if is_other then other = i - 1 end
        end
      end
    end
    if not ids[i] then fresh, new_bytes = fresh + 1, new_bytes + #ARGV[e.payloads + i] end
  end
  local held = e.held
  if failed then return FAILED, 0, failed end
  if other then return OTHER, other, '' end
  if held == 0 then q.bytes = 0 end
  if fresh > q.capacity or new_bytes > q.max_bytes then return NEVER, 0, '' end
  local aged, dropped = 0, 0
  if q.make_room and fresh > 0 and (held + fresh > q.capacity or q.bytes + new_bytes > q.max_bytes) then
    held, aged, dropped = q.make_room(held, fresh, new_bytes)
    e.held = held
  end
  if fresh > 0 and (held + fresh > q.capacity or q.bytes + new_bytes > q.max_bytes) then return FULL, 0, '', aged, 0 end
  local new = q.new
  for i = 1, n do
    if not ids[i] then
      local ms, seq = next_id(q.last_ms, q.last_seq)
      if e.add_entry then
        -- It is refused where the item's id would be: the record says that none is known.
        if keys[i] then ask('SET', keys[i], struct.pack('<ddd', 0, 0, 0), 'PX', 1) end
        ms, seq = e.add_entry(KEYS[1], ms, seq, 'p', ARGV[e.payloads + i])
      else
        local at = #new
        new[at + 1], new[at + 2], new[at + 3] = e.payloads + i, ms, seq
      end
      q.last_ms, q.last_seq = ms, seq
      ids[i] = struct.pack('<dd', ms, seq)
      if keys[i] then
        if digests[i] then e.remember_digest(digest_keys[i], ids[i], digests[i]) end
        e.remember(keys[i], ms, seq)
        e.remembered = e.remembered or {}
        e.remembered[#e.remembered + 1] = keys[i]
      end
    end
  end
  if fresh > 0 then
    e.held, q.bytes, q.accepted, q.changed = held + fresh, q.bytes + new_bytes, q.accepted + fresh, true
  end
  return ADDED, fresh, table.concat(ids), aged, dropped
end

local function answer(read)
  local reply, reasons, held = {}, {}, ask(LENGTH, KEYS[1])
  local e = { held = held, payloads = 1, id_keys = 6, known = false, remember = false }
  local next_id
  next_id, q.add, e.add_entry = put_functions(held, read[1])
  q.new = {}
  for call = 1, q.calls do
    local n, at = struct.unpack('<d', ARGV[1], q.at)
    q.at = at
    local status, added, ids, aged, dropped = put(n, e, next_id)
    e.payloads = e.payloads + n
    reply[call] = struct.pack('<ddddd', status, e.held, added, aged or 0, dropped or 0)
    if status == FAILED then reasons[#reasons + 1] = ids else reply[call] = reply[call] .. ids end
  end
  q.undo = e.remembered and function()
    for i = 1, #e.remembered do redis.pcall('SET', e.remembered[i], struct.pack('<ddd', 0, 0, 0), 'PX', 1) end
  end
  return { table.concat(reply), unpack(reasons) }
end
