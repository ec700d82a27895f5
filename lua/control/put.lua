-- One change of an entry. Twin: ControlState::put_above.
--
-- ARGV[2]  the id of the change
-- ARGV[3]  the position of the change that must have written the entry, if `expects` is 1
-- ARGV[4]  the entry's key, ARGV[5] its body or what is kept of a deletion, ARGV[6] the key of a generation, or ''
--
-- A put that is repeated under its id is answered as before.

local STALE, FULL, MISSING = 2, 3, 4
local LAST_END = 9007194959773696

-- Drops entries that ended long ago.
local function drop()
  local before = c.now - c.ended_kept
  if before < 0 then return end
  local old = ask('ZRANGEBYSCORE', KEYS[3], '-inf', text(before), 'LIMIT', 0, text(c.most_dropped))
  if #old > 0 then
    ask('HDEL', KEYS[1], unpack(old))
    ask('ZREM', KEYS[3], unpack(old))
  end
end

local function record(version, change, ends, deleted, body)
  return struct.pack('>BBI8', 1, deleted, version) .. change .. struct.pack('>I8', ends) .. body
end

local function when_it_ends()
  if c.deletes == 1 then return math.min(math.max(c.now, 1), LAST_END) end
  if c.expires_after < 0 then return 0 end
  return math.min(math.max(c.now + c.expires_after, 1), LAST_END)
end

local function answer()
  local change, expected, key, body, generation = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
  local has_generation = generation ~= ''
  drop()
  local read = read_records(key, has_generation and generation or key)
  local version, _, _, ends, deleted = header(read[2])
  if version and read[2]:sub(11, 18) == change then
    local known = { key, read[2] }
    if has_generation and read[3] then known[3], known[4] = generation, read[3] end
    return reply_of(WRITTEN, 0, c.position, known)
  end
  local is_live = version and not deleted and (ends == 0 or ends > c.now)
  local current = is_live and read[2]:sub(3, 18) or NONE
  if c.expects == 1 and expected ~= current then return reply_of(STALE, 0, current, {}) end
  if c.deletes == 1 and not is_live then return reply_of(MISSING, 0, c.position, {}) end
  if not is_live and ask('ZCOUNT', KEYS[3], '(' .. text(c.now), '+inf') >= c.most_entries then
    return reply_of(FULL, c.most_entries, c.position, {})
  end
  local added = (read[2] and 0 or 1) + (has_generation and not read[3] and 1 or 0)
  if added > 0 and count_of_records() + added > c.most_records then
    return reply_of(FULL, c.most_records, c.position, {})
  end
  version = next_version(c.known)
  local written = { key, record(version, change, when_it_ends(), c.deletes, body) }
  if has_generation then written[3], written[4] = generation, record(version, change, 0, 0, '') end
  return reply_of(WRITTEN, 0, commit(version, change, written), written)
end
