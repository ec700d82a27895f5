-- What scripts that change something have in common.

local WRITTEN = 1
local GENERATION = 'generation/'
local LAST_VERSION = 9007199254740991

-- Version, both halves of the id of the change, end, and whether it is a deletion. Nothing for what is no record. Records
-- of another format are of a later version of Weir, and stay as they are.
local function header(raw)
  if not raw or #raw < 26 then return nil end
  if raw:byte() ~= 1 then error('ERR a later version of Weir wrote this record of live control', 0) end
  local deleted, version, high, low, ends = struct.unpack('>BI8I4I4I8', raw, 2)
  return version, high, low, ends, deleted == 1
end

local function is_generation(key)
  return key:sub(1, #GENERATION) == GENERATION
end

-- The records of these keys. If the hash was lost, so is what the other keys say of it.
local function read_records(...)
  local read = ask('HMGET', KEYS[1], '', ...)
  c.has_field = read[1] ~= false
  c.is_known = read[1] and #read[1] == 16
  c.position = c.is_known and read[1] or NONE
  if not c.is_known then ask('DEL', KEYS[2], KEYS[3]) end
  return read
end

local function count_of_records()
  return ask('HLEN', KEYS[1]) - (c.has_field and 1 or 0)
end

-- The version of a change whose writer knows this one.
local function next_version(known)
  local last = struct.unpack('>I8', c.position)
  return math.min(math.max(last + 1, c.now, known + 1), LAST_VERSION)
end

-- Writes keys and records, in turn, as one change. The first two commands change nothing: they are refused where the last
-- two would be, which come after what cannot be undone.
local function commit(version, change, written)
  local position, scored = struct.pack('>I8', version) .. change, {}
  for i = 1, #written, 2 do
    if not is_generation(written[i]) then
      local _, _, _, ends = header(written[i + 1])
      scored[#scored + 1] = ends == 0 and 'inf' or text(ends)
      scored[#scored + 1] = written[i]
    end
  end
  ask('ZADD', KEYS[3], 'XX', 0, '')
  ask('HSET', KEYS[1], '', c.position)
  -- Changes of many records leave room for fewer of them. Twin: changes_kept.
  local kept = math.min(math.max(math.floor(c.most_entries / (#written / 2)), 1), c.most_changes)
  ask('XADD', KEYS[2], 'MAXLEN', '=', text(kept), text(version) .. '-0', 'c', change, unpack(written))
  ask('HSET', KEYS[1], '', position, unpack(written))
  if #scored > 0 then ask('ZADD', KEYS[3], unpack(scored)) end
  return position
end
