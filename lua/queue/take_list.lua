-- Hands items of a list out, no faster than the rate. Twin: crates/core/src/queue/take.rs.

local reply, handed, taken_bytes = { false }, 0, 0

local function run()
  read_meta()
  local most, wait, drained = n, 0, 0
  if count > 0 then
    local old, since = min(level, period), max(0, now - level_at)
    drained = since >= ceil(old / count) and 0 or old - since * count
    wait = ceil(drained / count)
    most = wait == 0 and min(most, 1) or 0
  end
  while handed < most and taken_bytes + MAX_PAYLOAD <= MAX_TAKE_BYTES do
    local chunk = min(most - handed, floor((MAX_TAKE_BYTES - taken_bytes) / MAX_PAYLOAD))
    local elements = ask('LPOP', ITEMS, chunk) or {}
    for i = 1, #elements do
      local ms, seq = unpack_struct('<dd', elements[i])
      local payload = elements[i]:sub(17)
      reply[#reply + 1] = pack('<dddddd', ms, seq, 1, 0, -1, 0)
      reply[#reply + 1] = payload
      reply[#reply + 1] = ''
      handed, taken_bytes = handed + 1, taken_bytes + #payload
    end
    if #elements < chunk then break end
  end
  local stepped = count > 0 and now < level_at
  if count > 0 and (handed > 0 or stepped) then
    level, level_at = handed > 0 and period or drained, now
  end
  bytes, first = max(0, bytes - taken_bytes), first + handed
  if handed > 0 or stepped then write_meta() end
  local held = depth()
  local next_one = (handed == 0 and held > 0) and wait or -1
  reply[1] = pack('<dddd', now, held, next_one, 0)
  return reply
end
