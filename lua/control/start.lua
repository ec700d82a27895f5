-- What every script of live control begins with. ../README.md has the contract; the twin is crates/control/src/model/state.rs.
--
-- KEYS[1]  a hash: the records by their keys, and in the empty field the position, which is the version and the id of the
--          last change; nothing if the hash was lost
-- KEYS[2]  a stream: the last changes; the id is the version, the fields are 'c' and the id of the change, and then each record
-- KEYS[3]  a sorted set: the entries by their ends, generations apart
-- ARGV[1]  doubles, as below; what follows is named at the top of each script
-- None of the keys has an expiry.

local NONE = ('\0'):rep(16)

-- `now` is -1 for the server's own time, `known` the greatest version that the writer knows; `most_…` are bounds.
local c = {
  now = 0, known = 0, ended_kept = 0, most_entries = 0, most_records = 0, most_changes = 0, most_dropped = 0,
  most_polled = 0, most_bytes = 0, most_together = 0, position = NONE,
}
c.now, c.known, c.ended_kept, c.most_entries, c.most_records, c.most_changes, c.most_dropped, c.most_polled,
  c.most_bytes, c.most_together = struct.unpack('<dddddddddd', ARGV[1])

-- An error of a key is the reply of the call.
local function ask(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then error(reply) end
  return reply
end

local function text(number)
  return string.format('%.0f', number)
end

local function reply_of(status, number, position, records, place)
  return { struct.pack('<dddd', c.now, status, number, place or 0), position, unpack(records) }
end
