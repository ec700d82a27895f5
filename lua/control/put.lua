-- Changes of entries, made as one change: all or none of them. Twin: ControlState::plan.
--
-- ARGV[2]  the id of the change; then five arguments for each entry:
--   1  three doubles: when it ends from now on, -1 for never; whether it is deleted; whether the next argument counts
--   2  the position of the change that must have written the entry
--   3  the entry's key, 4  its body or what is kept of a deletion, 5  the key of a generation, or ''
--
-- Put again under its id, a change is answered as before. The place in the reply is that of the entry that was refused.

local STALE, FULL, MISSING = 2, 3, 4
local LAST_END = 9007194959773696
local EACH = 5

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

local function when_it_ends(after, deletes)
  if deletes == 1 then return math.min(math.max(c.now, 1), LAST_END) end
  if after < 0 then return 0 end
  return math.min(math.max(c.now + after, 1), LAST_END)
end

-- The entries of the call, and what is there under their keys.
local function asked()
  local puts, keys = {}, {}
  for at = 3, #ARGV, EACH do
    local expires_after, deletes, expects = struct.unpack('<ddd', ARGV[at])
    local generation = ARGV[at + 4]
    if generation == '' then generation = nil end
    puts[#puts + 1] = {
      after = expires_after, deletes = deletes, expected = expects == 1 and ARGV[at + 1], key = ARGV[at + 2],
      body = ARGV[at + 3], generation = generation,
    }
    keys[#keys + 1], keys[#keys + 2] = ARGV[at + 2], generation or ARGV[at + 2]
  end
  local read = read_records(unpack(keys))
  for i, put in ipairs(puts) do
    put.own, put.own_generation = read[2 * i], read[2 * i + 1]
  end
  return puts
end

local function was_made(put)
  return header(put.own) and put.own:sub(11, 18) == ARGV[2]
end

-- What was written before under this id.
local function known(puts)
  local records = {}
  for _, put in ipairs(puts) do
    if was_made(put) then
      records[#records + 1], records[#records + 2] = put.key, put.own
      if put.generation and put.own_generation then
        records[#records + 1], records[#records + 2] = put.generation, put.own_generation
      end
    end
  end
  return records
end

-- Why the entries cannot be changed: a reply, or nothing.
local function refusal(puts)
  local lasting = ask('ZCOUNT', KEYS[3], '(' .. text(c.now), '+inf')
  local records = count_of_records()
  for i, put in ipairs(puts) do
    local version, _, _, ends, deleted = header(put.own)
    local is_live = version and not deleted and (ends == 0 or ends > c.now)
    local current = is_live and put.own:sub(3, 18) or NONE
    if put.expected and put.expected ~= current then return reply_of(STALE, 0, current, {}, i - 1) end
    if put.deletes == 1 and not is_live then return reply_of(MISSING, 0, c.position, {}, i - 1) end
    if not is_live then
      if lasting >= c.most_entries then return reply_of(FULL, c.most_entries, c.position, {}, i - 1) end
      lasting = lasting + 1
    end
    local adds = (put.own and 0 or 1) + (put.generation and not put.own_generation and 1 or 0)
    records = records + adds
    if adds > 0 and records > c.most_records then
      return reply_of(FULL, c.most_records, c.position, {}, i - 1)
    end
  end
end

local function answer()
  local change = ARGV[2]
  drop()
  local puts = asked()
  if was_made(puts[1]) then return reply_of(WRITTEN, 0, c.position, known(puts)) end
  local refused = refusal(puts)
  if refused then return refused end
  local version, written = next_version(c.known), {}
  for _, put in ipairs(puts) do
    written[#written + 1] = put.key
    written[#written + 1] = record(version, change, when_it_ends(put.after, put.deletes), put.deletes, put.body)
    if put.generation then
      written[#written + 1], written[#written + 2] = put.generation, record(version, change, 0, 0, '')
    end
  end
  return reply_of(WRITTEN, 0, commit(version, change, written), written)
end
