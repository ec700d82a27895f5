-- What scripts that change bans have in common.

local WRITTEN = 1

-- Adds a change to the stream. `written` has members and ends, in turn.
local function announce(change, written)
  local last = struct.unpack('>I8', store_position())
  local version = math.min(math.max(last + 1, c.now), 9007199254740991)
  ask('XADD', KEYS[2], 'MAXLEN', '=', text(c.most_changes), text(version) .. '-0', 'c', change, unpack(written))
  return struct.pack('>I8', version) .. change
end

-- The end of a ban that has not ended.
local function end_of(member)
  local ends = tonumber(ask('ZSCORE', KEYS[1], member) or 0)
  return ends > c.now and ends or 0
end
