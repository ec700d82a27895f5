-- How a queue stands. `n` of the newest outcomes are shown.

local function run()
  read_meta()
  local held = depth()
  if held == 0 then bytes = 0 end
  ask('XTRIM', OUTCOMES, 'MINID', '=', whole(floor(max(0, now - outcomes_for) / 1000)))
  local oldest_ms = oldest()
  local age = oldest_ms and max(0, now - oldest_ms * 1000) or -1
  local reply = { pack('<dddddddddddd', now, held, ask('ZCARD', DUE), bytes, ask('XLEN', DEAD), age, accepted, first,
    nacked, expired, acked, buried), ask('XLEN', OUTCOMES) }
  if n > 0 then
    local newest = ask('XREVRANGE', OUTCOMES, '+', '-', 'COUNT', n)
    for i = 1, #newest do
      local ms, seq = parts_of(newest[i][1])
      local fields = newest[i][2]
      local item_ms, item_seq = parts_of(fields[2])
      reply[#reply + 1] = pack('<ddddd', ms, seq, item_ms, item_seq, tonumber(fields[4]))
      reply[#reply + 1] = fields[6]
      reply[#reply + 1] = fields[8]
    end
  end
  return reply
end
