-- Hands items of a list out, no faster than the rate. Twin: crates/queues/src/model/take.rs.
--
-- ARGV: as for a stream. What was taken is gone, so nothing is kept of the token.

local fields = {}

-- Takes elements, the oldest first or the newest first.
local POP = q.lifo > 0 and 'RPOP' or 'LPOP'

-- Adds at most so many items to the reply, and says how many.
local function take(most, reply)
  local handed, bytes = 0, 0
  while handed < most and bytes + 65536 <= 1048576 do
    local chunk = math.min(most - handed, math.floor((1048576 - bytes) / 65536))
    local elements = ask(POP, KEYS[1], chunk) or {}
    for i = 1, #elements do
      local ms, seq = struct.unpack('<dd', elements[i])
      local payload, n = elements[i]:sub(17), #reply
      reply[n + 1], reply[n + 2], reply[n + 3] = string.format('%.0f-%.0f', ms, seq), payload, ''
      handed, bytes = handed + 1, bytes + #payload
    end
    if #elements < chunk then break end
  end
  q.bytes, q.first, q.changed = math.max(0, q.bytes - bytes), q.first + handed, q.changed or handed > 0
  return handed
end

local function answer(read)
  local aged, has_more_aged = 0, false
  if q.max_age > 0 then
    local totals
    aged, has_more_aged, totals = q.age_out()
    if totals then q.written = totals end
  end
  local reply, heads, held, taken = { false }, {}, ask(LENGTH, KEYS[1]), 0
  if held > 0 then
    -- It changes nothing. Items that were taken could not be put back if the numbers could not be written. That a server
    -- has no memory is no obstacle: once something was taken, it refuses nothing.
    local numbers = read[1] or string.rep('\0', 104)
    local written = redis.pcall('HSET', KEYS[3], 's', numbers)
    if type(written) == 'table' and written.err and not written.err:find('OOM', 1, true) then error(written) end
  end
  for call = 1, q.calls do
    local most, _, _, at = struct.unpack('<ddd', ARGV[1], q.at)
    local wait, drained = 0, 0
    q.at = at
    if q.count > 0 then
      most, wait, drained = pace(most)
    end
    -- Nothing that is too old is handed out.
    if has_more_aged then most = 0 end
    local handed = take(most, reply)
    if q.count > 0 then charge_pace(handed > 0, drained) end
    taken = taken + handed
    local after = (handed == 0 and held > taken) and wait or -1
    -- The third is how many places are free since the first call.
    heads[call] = struct.pack('<dddd', handed, after, taken, 0)
  end
  reply[1] = struct.pack('<ddd', q.now, held, aged) .. table.concat(heads)
  return reply
end
