-- How a queue stands. The only number of the only call is how many of the newest outcomes are shown.

local fields = { 't' }

local function oldest_ms(parts_of)
  if LENGTH == 'XLEN' then
    local entry = ask('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
    return entry and parts_of(entry[1])
  end
  local element = ask('LINDEX', KEYS[1], 0)
  return element and struct.unpack('<d', element)
end

local function answer(read)
  local due, outcomes = KEYS[2], KEYS[4]
  local _, _, parts_of = entry_functions()
  local n, held = struct.unpack('<d', ARGV[1], q.at), ask(LENGTH, KEYS[1])
  if held == 0 then q.bytes = 0 end
  trim_archive()
  local oldest = oldest_ms(parts_of)
  local age = oldest and math.max(0, q.now - oldest * 1000) or -1
  local reply = { struct.pack('<dddddddddddd', q.now, held, ask('ZCARD', due), q.bytes, ask('XLEN', KEYS[5]), age,
    q.accepted, q.first, q.nacked, q.expired, q.acked, q.buried) .. (read[2] or string.rep('\0', 32)), ask('XLEN', outcomes) }
  local newest = n > 0 and ask('XREVRANGE', outcomes, '+', '-', 'COUNT', n) or {}
  for i = 1, #newest do
    show_entry(reply, newest[i], parts_of)
  end
  return reply
end
