-- Shows items of a list, and changes nothing. Twin: crates/queues/src/model/operate.rs. Numbers and reply are those of browse.lua.

local fields = {}

-- The place of the first item after this one: ids of a list only grow.
local function place_after(ms, seq, held)
  local low, high = 0, held
  while low < high do
    local middle = math.floor((low + high) / 2)
    local its_ms, its_seq = struct.unpack('<dd', ask('LINDEX', KEYS[1], middle))
    if its_ms < ms or (its_ms == ms and its_seq <= seq) then low = middle + 1 else high = middle end
  end
  return low
end

local function answer()
  local most, ms, seq = struct.unpack('<ddd', ARGV[1], q.at)
  local reply, shown, bytes, held, ended = { false }, 0, 0, ask(LENGTH, KEYS[1]), false
  local place, about = place_after(ms, seq, held), struct.pack('<ddddd', 0, 0, -1, -1, 0)
  while not ended and shown < most and bytes + 65536 <= 1048576 do
    local chunk = math.min(most - shown, math.floor((1048576 - bytes) / 65536))
    local elements = ask('LRANGE', KEYS[1], place, place + chunk - 1)
    for i = 1, #elements do
      local its_ms, its_seq = struct.unpack('<dd', elements[i])
      local payload, n = elements[i]:sub(17), #reply
      reply[n + 1], reply[n + 2], reply[n + 3] = string.format('%.0f-%.0f', its_ms, its_seq), payload, about
      shown, bytes = shown + 1, bytes + #payload
    end
    place, ended = place + #elements, #elements < chunk
  end
  reply[1] = struct.pack('<ddd', q.now, held, ended and 0 or 1)
  return reply
end
