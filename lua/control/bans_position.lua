-- Of bans KEYS[1] is a sorted set of members by their ends, and KEYS[2] a stream of changes as that of records: a member
-- is followed by the end of its ban, 0 if it was lifted. The position of bans is that of the stream's last entry.

local function store_position()
  local last = ask('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
  if not last then return NONE end
  return struct.pack('>I8', tonumber(last[1]:match('%d+'))) .. last[2][2]
end
